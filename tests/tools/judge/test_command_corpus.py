"""Commands kept as data: no hostile one runs unasked, and everyday ones ask no more than is written beside them.

The judge alone is held to this: where a sandbox holds, it is said to.
"""

from __future__ import annotations

import pytest

from agent_tui.config import PermissionMode, PermissionsConfig
from agent_tui.tools.base import Intent
from agent_tui.tools.permissions.permissions import Permissions
from agent_tui.tools.sandbox.policy import Network
from tests.support.commands import MODES, World, held, judged, lines, sections
from tests.support.forms import LONG, some

HOSTILE = lines("hostile.txt")
EVERYDAY = lines("everyday.txt")

# A project's own code may run in auto, and its files may be changed; in accept-edits by what is written to them.
IN_THE_PROJECT = frozenset(lines("hostile_in_auto.txt"))


def test_the_corpus_is_large_and_without_repetition() -> None:
    assert len(set(HOSTILE)) == len(HOSTILE) >= 600
    assert len(set(EVERYDAY)) == len(EVERYDAY) >= 250


@pytest.mark.parametrize("mode", ["ask", "plan"])
def test_no_hostile_command_runs_unasked(world: World, mode: PermissionMode) -> None:
    unasked = [command for command in HOSTILE if judged(world, command, mode).action == "allow"]
    assert unasked == []


@pytest.mark.parametrize("mode", ["accept-edits", "auto"])
def test_where_edits_and_commands_are_allowed_only_the_project_is_at_stake(world: World, mode: PermissionMode) -> None:
    unasked = {command for command in HOSTILE if judged(world, command, mode).action == "allow"}
    assert unasked <= IN_THE_PROJECT
    if mode == "auto":
        assert unasked == IN_THE_PROJECT, "an entry of the list asks by now: take it out"


def test_headless_and_rules_that_allow_much_do_not_let_them_pass(world: World) -> None:
    """Rules for readers, as users write them, and what "always" remembers for honest commands."""
    rules = ["bash(cat *)", "bash(ls*)", "bash(grep *)", "bash(git status*)", "bash(git diff*)", "bash(git log *)"]
    for command in HOSTILE:
        if command.split()[0] not in ("cat", "ls", "grep", "git"):
            assert judged(world, command, "ask", allow=rules, can_ask=False).action == "deny", command


NETWORKS: tuple[Network, ...] = ("ask", "allow", "deny")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("network", NETWORKS)
def test_where_a_sandbox_holds_nothing_leaves_it_unasked(world: World, mode: PermissionMode, network: Network) -> None:
    # Every command in every mode, in the long form with every network.
    for command in some([*HOSTILE, *EVERYDAY][0 if LONG else NETWORKS.index(network) :], len(NETWORKS)):
        decision = held(world, command, mode, network)
        allowed = {"look"} if mode in ("ask", "plan") else {"look", "work"}
        assert decision.action != "allow" or (decision.domain in allowed and not decision.network), command


REACHING = [command for heading, command in sections("everyday.txt") if heading == "Reaching out"]


@pytest.mark.parametrize("mode", ["accept-edits", "auto"])
def test_where_a_sandbox_holds_the_honest_ask_only_to_reach_out(world: World, mode: PermissionMode) -> None:
    assert [c for c in EVERYDAY if held(world, c, mode).action != "allow"] == REACHING
    asked = [c for c in EVERYDAY if held(world, c, mode, "allow").action != "allow"]
    assert asked == [
        *("git push", "git pull", "git fetch", "git push origin feature"),
        *("gh pr list", "gh pr view 12", "gh issue view 3", "docker ps"),
    ]
    assert [c for c in EVERYDAY if held(world, c, "plan").action == "ask"] == []


def test_where_a_sandbox_holds_looking_is_never_asked_about(world: World) -> None:
    looking = [c for heading, c in sections("everyday.txt") if heading.startswith(("Looking", "Reading", "Searching"))]
    for mode in ("ask", "plan"):
        assert [c for c in looking if held(world, c, mode).action != "allow"] == []


# What each everyday command did before programs were known one by one: it may not have become worse.
@pytest.mark.parametrize(("mode", "unasked"), [("ask", 150), ("accept-edits", 154), ("plan", 150), ("auto", 267)])
def test_everyday_commands_ask_no_more_than_they_did(world: World, mode: PermissionMode, unasked: int) -> None:
    assert sum(judged(world, command, mode).action == "allow" for command in EVERYDAY) >= unasked


def test_no_hostile_command_leaves_by_asking_for_it(world: World) -> None:
    permissions = Permissions(world.root, world.root, PermissionsConfig("auto"), holds=lambda domain: True)
    plain = Permissions(world.root, world.root, PermissionsConfig("accept-edits"))
    for command in HOSTILE:
        decision = permissions.decide("bash", Intent("command", command, command=command, outside=True))
        assert decision.action != "allow", command
    assert plain.decide("bash", Intent("command", "x", command="x", outside=True)).action == "ask"


def test_what_always_offers_lets_no_hostile_command_pass(world: World) -> None:
    """Every rule that an honest user gets by saying "always" to all everyday commands, together."""
    rules = {p for c in EVERYDAY for p in judged(world, c, "ask").patterns}
    judge = Permissions(world.root, world.root, PermissionsConfig("ask", allow=sorted(rules)))
    unasked = {c for c in HOSTILE if judge.decide("bash", Intent("command", c, command=c)).action == "allow"}
    assert unasked <= IN_THE_PROJECT
