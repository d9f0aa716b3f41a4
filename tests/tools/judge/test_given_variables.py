"""Variables that the shell starts with count as what they hold, and only where that is certain."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_tui.config import PermissionMode, PermissionsConfig
from agent_tui.tools.base import Intent
from agent_tui.tools.rules.decision import Decision
from tests.support.every import every
from tests.support.tool_context import permissions_of

pytestmark = pytest.mark.quick


def judged(
    root: Path,
    command: str,
    mode: PermissionMode = "auto",
    *,
    holds: bool = True,
    deny: list[str] | None = None,
    allow: list[str] | None = None,
) -> Decision:
    permissions = permissions_of(
        root,
        PermissionsConfig(mode, deny=deny or [], allow=allow or []),
        holds=lambda domain: holds or domain == "free",
        sees=lambda path, kind: path.is_relative_to(root.parent / "tmp"),
        temporary=root.parent / "tmp",
    )
    return permissions.decide("bash", Intent("command", command, command=command))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "project/build").mkdir(parents=True)
    (tmp_path / "tmp").mkdir()
    return tmp_path / "project"


@every(
    "command",
    [
        'rm -rf "$PWD/build"',
        "rm -rf $PWD/build ${PWD}/dist",
        'mkdir -p "$PWD/out" && mv build "${PWD}/out"',
        'rm -rf "$TMPDIR/x"',
        'cp README.md "$TMPDIR"',
    ],
)
def test_what_is_certain_asks_nothing(root: Path, command: str) -> None:
    assert judged(root, command).action == "allow"


@every(
    "command",
    [
        'rm -rf "$PWD"',
        'rm -rf "$PWD/.."',
        'rm -rf "$PWD"/*',
        'rm -rf "$HOME"',
        "rm -rf $HOME/x",
        'rm -rf "$OLDPWD/build"',
        'PWD=/etc; rm -rf "$PWD/build"',
        'cd /etc; rm -rf "$PWD/build"',
        'cd /etc && (rm -rf "$PWD/build")',
        'pushd /etc; rm -rf "$PWD/build"',
        'read PWD < x; rm -rf "$PWD/build"',
        'for PWD in /etc; do rm -rf "$PWD/build"; done',
        'eval "$X"; rm -rf "$PWD/build"',
        'source x; rm -rf "$PWD/build"',
        'TMPDIR=/; rm -rf "$TMPDIR/etc"',
        'export HOME=/; rm -rf "$HOME/etc"',
        'printf -v PWD /etc; rm -rf "$PWD/build"',
        'rm -rf "${PWD%project}"',
        """cd /etc; bash -c 'rm -rf "$PWD/build"'""",
        """HOME=/etc bash -c 'rm -rf "$HOME/x"'""",
        'rm -rf "${PWD:+/etc}"',
        'rm -rf "$PWDX/build"',
        'git push; rm -rf "$TMPDIR/x"',
    ],
)
def test_what_is_not_certain_or_leads_out_asks(root: Path, command: str) -> None:
    assert judged(root, command).action == "ask"


def test_without_a_sandbox_the_folder_for_temporary_files_is_anybodys(root: Path) -> None:
    assert judged(root, 'rm -rf "$TMPDIR/x"', holds=False).action == "ask"
    assert judged(root, 'rm -rf "$PWD/build"', holds=False).action == "allow"


def test_rules_are_held_against_both_ways_to_write_it(root: Path) -> None:
    command = 'rm -rf "$PWD/build"'
    assert judged(root, command, deny=["bash(rm -rf $PWD/*)"]).action == "deny"
    assert judged(root, command, deny=[f"bash(rm -rf {root}/*)"]).action == "deny"
    assert judged(root, command, "ask", allow=["bash(rm -rf $PWD/build)"]).action == "allow"
    assert judged(root, 'rm -rf "$PWD/src"', "ask").action == "ask"


def test_a_file_that_a_rule_denies_is_found_behind_a_variable(root: Path) -> None:
    (root / ".env").write_text("KEY=x")
    assert judged(root, 'cat "$PWD/.env"', deny=["read(.env)"]).action == "deny"


@every(("place", "advised"), [("~/.ssh", False), ("~/.aws/credentials", False), ("/srv/data", True)])
def test_a_protected_place_is_no_folder_to_add(root: Path, place: str, advised: bool) -> None:
    permissions = permissions_of(root, PermissionsConfig("ask"), can_ask=False)
    decision = permissions.decide("bash", Intent("command", "ls", command=f"ls {place}"))
    assert decision.action == "deny"
    assert ("--add-dir" in decision.message) is advised
    path = Path(place).expanduser()
    told = permissions.decide("read", Intent("read", "read", paths=[path])).message
    assert ("--add-dir" in told) is advised
