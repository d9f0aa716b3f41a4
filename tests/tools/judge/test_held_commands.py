"""What the sandbox makes harmless is not asked about: paths after ``cd``, and what a line made itself."""

from __future__ import annotations

import pytest

from agent_tui.config import PermissionMode, PermissionsConfig
from agent_tui.tools.base import Intent
from agent_tui.tools.rules.decision import Decision
from tests.support.commands import World, make_world
from tests.support.every import every
from tests.support.tool_context import permissions_of

pytestmark = pytest.mark.quick


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("held"))


def decided(
    world: World, mode: PermissionMode, command: str, held: bool = True, deny: tuple[str, ...] = ()
) -> Decision:
    config = PermissionsConfig(mode, deny=list(deny))
    holds = (lambda domain: True) if held else (lambda domain: False)
    return permissions_of(world.root, config, holds=holds).decide("bash", Intent("command", command, command=command))


AFTER_CD = [
    "cd src && ../.venv/bin/pytest -q",
    "cd src && python -m pytest ../tests/test_app.py",
    "cd src && sed -i s/a/b/ ../a",
    "cd src && echo x > ../out.txt",
    "cd src && rm ../a",
    "cd src && grep -rn main ../tests",
]
MADE = [
    "sleep 9 & kill %1",
    "sleep 9 & kill -9 $!",
    "(sleep 9 & p=$!; sleep 1; kill $p)",
    'sleep 9 & pid=$!; kill -s TERM "$pid"',
]


@every("mode", ["accept-edits", "auto"])
@every("command", AFTER_CD + MADE)
def test_what_is_the_projects_or_the_lines_own_runs_inside(world: World, mode: PermissionMode, command: str) -> None:
    found = decided(world, mode, command)

    assert (found.action, found.domain) in (("allow", "work"), ("allow", "look")), found.reason


@every("command", AFTER_CD + MADE)
def test_without_a_sandbox_it_is_asked_about(world: World, command: str) -> None:
    assert decided(world, "accept-edits", command, held=False).action == "ask"


@every(
    "command",
    [
        "cd src && cat ../../outside/secret",
        "cd src && ../../outside/run",
        "cd src && cp ../a /etc/a",
        "cd src && rm -rf ..",
        "cd src && echo x > ../.git/hooks/pre-commit",
        "cd src && git push ../../outside",
        "find . -print0 | xargs -0 rm",
        "ls | xargs -n 1 rm -f",
        "find . -delete",
        "find . -type f -exec rm {} +",
        "find . -name '*' -delete",
        "sleep 9 & kill -9 -1 %1",
        "sleep 9 & kill -- -$!",
        "sleep 9 & p=$!; p=1; kill $p",
        "sleep 9 & echo 1 | xargs kill %1",
        "pkill python",
        'tmp=$(mktemp -d); cp a "$tmp"; rm -r "$tmp"',
        'tmp=$(mktemp -d); tmp=src; rm -r "$tmp"',
        'tmp=$(mktemp -d; echo src); rm -r "$tmp"',
        'tmp=$(mktemp -d); rm -rf "$tmp"/*',
        'tmp=$(mktemp -u); rm -rf "$tmp"',
        'read tmp; rm -rf "$tmp"',
    ],
)
def test_what_may_be_more_than_that_asks(world: World, command: str) -> None:
    assert decided(world, "auto", command).action == "ask"


def test_what_a_rule_denies_stays_denied_from_every_folder(world: World) -> None:
    deny = ("read(../a)", "read(a)")

    assert decided(world, "auto", "cd src && cat ../a", deny=deny).action == "deny"


@pytest.mark.parametrize("mode", ["ask", "plan"])
def test_looking_above_the_folder_that_cd_went_to_is_held_to_looking(world: World, mode: PermissionMode) -> None:
    for command in ("cd src && cat ../README.md", "(cd src && ../tool.sh --version)"):
        found = decided(world, mode, command)

        assert (found.action, found.domain) == ("allow", "look"), command


def headless(world: World, mode: PermissionMode, command: str, held: bool = True) -> str:
    holds = (lambda domain: True) if held else (lambda domain: False)
    permissions = permissions_of(world.root, PermissionsConfig(mode), can_ask=False, holds=holds)
    found = permissions.decide("bash", Intent("command", command, command=command))
    assert found.action == "deny"
    return found.message


def test_a_refusal_names_no_mode_that_would_refuse_it_too(world: World) -> None:
    assert "--permission-mode" not in headless(world, "auto", "kill 1")
    assert "--permission-mode" not in headless(world, "accept-edits", "kill 1")
    assert "--permission-mode auto" in headless(world, "accept-edits", "make", held=False)
    assert "--permission-mode accept-edits" in headless(world, "ask", "touch x")


def test_a_program_that_commands_put_into_their_temporary_folder_runs_inside(world: World) -> None:
    command = "/tmp/v/bin/python -V"
    permissions = permissions_of(
        world.root, PermissionsConfig("auto"), holds=lambda domain: True, sees=lambda path, kind: True
    )

    assert decided(world, "auto", command).action == "ask"
    assert permissions.decide("bash", Intent("command", command, command=command)).action == "allow"
