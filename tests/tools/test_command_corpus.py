"""Commands kept as data: no hostile one runs unasked, and everyday ones ask no more than is written beside them.

The judge alone is held to this: no sandbox stands behind it here.
"""

from __future__ import annotations

from typing import get_args

import pytest

from agent_tui.config import PermissionMode, PermissionsConfig
from agent_tui.tools.base import Intent
from agent_tui.tools.permissions import Decision, Permissions
from tests.support.commands import World, lines, make_world

HOSTILE = lines("hostile.txt")
EVERYDAY = lines("everyday.txt")
MODES: tuple[PermissionMode, ...] = get_args(PermissionMode)

# A project's own code may run in auto, and its files may be changed; in accept-edits by what is written to them.
IN_THE_PROJECT = frozenset(lines("hostile_in_auto.txt"))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"))


def judged(world: World, command: str, mode: PermissionMode, **more: object) -> Decision:
    rules = {key: more.pop(key) for key in ("allow", "ask", "deny") if key in more}
    permissions = Permissions(world.root, world.root, PermissionsConfig(mode, **rules), **more)  # type: ignore[arg-type]
    return permissions.decide("bash", Intent("command", command, command=command))


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
