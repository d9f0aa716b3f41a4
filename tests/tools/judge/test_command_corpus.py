"""Commands kept as data: no hostile one runs unasked, and everyday ones ask no more than is written beside them.

The judge alone is held to this: where a sandbox holds, it is said to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from agent_tui.config import PermissionMode, PermissionsConfig
from agent_tui.tools.base import Intent
from agent_tui.tools.rules.decision import Decision
from agent_tui.tools.sandbox.policy import Network
from tests.support.commands import MODES, World, held, judged, lines, sections
from tests.support.every import every
from tests.support.forms import LONG, one_of, some
from tests.support.tool_context import permissions_of

HOSTILE = lines("hostile.txt")
EVERYDAY = lines("everyday.txt")


@pytest.mark.quick
def test_the_corpus_is_large_and_without_repetition() -> None:
    assert len(set(HOSTILE)) == len(HOSTILE) >= 600
    assert len(set(EVERYDAY)) == len(EVERYDAY) >= 250


NEVER_UNASKED: tuple[PermissionMode, ...] = ("ask", "accept-edits", "plan")
TURNS = one_of(range(len(NEVER_UNASKED)))
"""Each turn judges every command, in one of these modes after the other: all turns each in all of them."""


def in_turn(commands: Sequence[Any], turn: int) -> Iterator[tuple[Any, PermissionMode]]:
    for number, command in enumerate(commands):
        yield command, NEVER_UNASKED[(number + turn) % len(NEVER_UNASKED)]


@pytest.mark.parametrize("turn", TURNS)
def test_where_nothing_holds_no_hostile_command_runs_unasked(world: World, turn: int) -> None:
    assert [told for told in in_turn(HOSTILE, turn) if judged(world, *told).action == "allow"] == []


IN_THE_PROJECT = frozenset(lines("hostile_in_auto.txt"))


@pytest.mark.slow
def test_auto_without_a_sandbox_puts_the_project_at_stake_and_no_more(world: World) -> None:
    """It changes the project's files and runs its code, as it says."""
    unasked = {command for command in HOSTILE if judged(world, command, "auto").action == "allow"}
    assert unasked <= IN_THE_PROJECT
    assert unasked == IN_THE_PROJECT, "an entry of the list asks by now: take it out"


@pytest.mark.slow
def test_headless_and_rules_that_allow_much_do_not_let_them_pass(world: World) -> None:
    """Rules for readers, as users write them, and what "always" remembers for honest commands."""
    rules = ["bash(cat *)", "bash(ls*)", "bash(grep *)", "bash(git status*)", "bash(git diff*)", "bash(git log *)"]
    for command in HOSTILE:
        if command.split()[0] not in ("cat", "ls", "grep", "git"):
            assert judged(world, command, "ask", allow=rules, can_ask=False).action == "deny", command


NETWORKS: tuple[Network, ...] = ("ask", "allow", "deny")


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("network", NETWORKS)
def test_where_a_sandbox_holds_nothing_leaves_it_unasked(world: World, mode: PermissionMode, network: Network) -> None:
    # Every command in every mode, in the long form with every network.
    for command in some([*HOSTILE, *EVERYDAY][0 if LONG else NETWORKS.index(network) :], len(NETWORKS)):
        decision = held(world, command, mode, network)
        allowed = {"look"} if mode in ("ask", "plan") else {"look", "work"}
        unasked = decision.action == "allow"
        assert not unasked or (decision.domain in allowed and not decision.network and not decision.remotes), command


REACHING = [command for heading, command in sections("everyday.txt") if heading == "Reaching out"]
REMOVING = [command for heading, command in sections("everyday.txt") if heading == "Removing by unknown names"]


@pytest.mark.slow
@pytest.mark.parametrize("mode", one_of(["auto", "accept-edits"]))
def test_where_a_sandbox_holds_the_honest_ask_only_to_reach_out(world: World, mode: PermissionMode) -> None:
    assert [c for c in EVERYDAY if held(world, c, mode).action != "allow"] == REACHING + REMOVING
    asked = [c for c in EVERYDAY if held(world, c, mode, "allow").action != "allow"]
    assert asked == [
        *("git push", "git pull", "git fetch", "git push origin feature"),
        *("gh pr list", "gh pr view 12", "gh issue view 3", "docker ps"),
        *REMOVING,
    ]
    assert [c for c in EVERYDAY if held(world, c, "plan").action == "ask"] == []


def test_where_a_sandbox_holds_looking_is_never_asked_about(world: World) -> None:
    looking = [c for heading, c in sections("everyday.txt") if heading.startswith(("Looking", "Reading", "Searching"))]
    for mode in ("ask", "plan"):
        assert [c for c in looking if held(world, c, mode).action != "allow"] == []


@pytest.mark.slow
@pytest.mark.parametrize("turn", TURNS)
def test_where_nothing_holds_plain_readers_run_and_nothing_else(world: World, turn: int) -> None:
    told = in_turn(sections("everyday.txt"), turn)
    unasked = [(heading, c) for (heading, c), mode in told if judged(world, c, mode).action == "allow"]
    assert len(unasked) >= 300
    assert not {heading for heading, _ in unasked} & {"Building and testing", "Changing things", "Reaching out"}


REAL_WORK = lines("real_work.txt")


@pytest.mark.quick
@every(("mode", "most"), [("ask", 15), ("accept-edits", 10), ("auto", 10)])
def test_an_honest_day_asks_little(world: World, mode: PermissionMode, most: int) -> None:
    """Of forty commands of real work; what asks leaves the machine, or is known to change files in ``ask``."""
    asked = [command for command in REAL_WORK if held(world, command, mode).action == "ask"]
    assert len(REAL_WORK) == 40 and len(asked) <= most, asked
    building = [c for heading, c in sections("real_work.txt") if heading in ("Looking", "Building, testing, serving")]
    assert not {*asked} & {*building}
    assert all(held(world, command, mode).action == "allow" for command in building)


@pytest.mark.slow
def test_no_hostile_command_leaves_by_asking_for_it(world: World) -> None:
    permissions = permissions_of(world.root, PermissionsConfig("auto"), holds=lambda domain: True)
    plain = permissions_of(world.root, PermissionsConfig("accept-edits"))
    for command in HOSTILE:
        decision = permissions.decide("bash", Intent("command", command, command=command, outside=True))
        assert decision.action != "allow", command
    assert plain.decide("bash", Intent("command", "x", command="x", outside=True)).action == "ask"


@pytest.mark.slow
@pytest.mark.parametrize("judge", [judged, held])
def test_what_always_offers_lets_no_hostile_command_pass(world: World, judge: Callable[..., Decision]) -> None:
    """Every rule that an honest user gets by saying "always" to all everyday commands, together: changing files of the
    project was allowed, the rest was not, also where no sandbox holds any more."""
    decisions = [judge(world, command, "ask") for command in EVERYDAY]
    rules = {p for d in decisions for p in (d.if_stopped or d).patterns}
    own = (
        "Redirections",
        "Wrappers",
        "Ways of the shell",
        "More of the shell",
        "Writes by programs that are said to read",
    )
    for heading, command in sections("hostile.txt"):
        inside = held(world, command, "ask", allow=sorted(rules))
        assert inside.action != "allow" or (inside.domain != "free" and not inside.network and not inside.remotes), (
            command
        )
        if heading not in own and command not in ("make", "./run.sh"):
            assert judged(world, command, "ask", allow=sorted(rules)).action == "ask", command
