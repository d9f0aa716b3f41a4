"""Which files of a project always ask before they are changed."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from agent_tui.config import PermissionMode, PermissionsConfig
from agent_tui.tools.base import Intent
from agent_tui.tools.sandbox.protected import is_protected, root_places
from tests.support.every import every
from tests.support.git import git
from tests.support.tool_context import permissions_of

pytestmark = pytest.mark.quick

PROTECTED = """
.git
.git/config
.git/hooks/pre-commit
vendored/.git/config
.GIT/config
.g\u200cit/config
.git./config
.agent-tui/config.toml
.agents/skills/x/SKILL.md
.claude/settings.json
.codex/config.toml
.gemini/settings.json
.cursor/mcp.json
.vscode/tasks.json
packages/app/.vscode/launch.json
.idea/workspace.xml
.envrc
sub/.envrc
.husky/pre-commit
.githooks/pre-push
.pre-commit-config.yaml
.devcontainer/devcontainer.json
.devcontainer.json
.github/workflows/ci.yml
.gitmodules
.npmrc
.mcp.json
my.code-workspace
.cargo/config.toml
.kiro/settings/mcp.json
.qwen/settings.json
.amazonq/rules/a.md
.kilocode/mcp.json
.junie/guidelines.md
.trae/rules.md
.factory/droids/a.md
.roo/mcp.json
.opencode/plugin/a.ts
opencode.json
.crush.json
.gdbinit
.yarn/releases/yarn.cjs
mise.toml
.mise.local.toml
sub/mise.production.toml
.config/mise/config.toml
.config/mise.toml
.mise/config.toml
mise/config.toml
.gitea/workflows/ci.yml
.forgejo/workflows/ci.yml
.drone.yml
.woodpecker.yml
azure-pipelines.yml
"""
FREE = """
src/a.py
Makefile
package.json
conftest.py
README.md
.gitignore
.gitattributes
.github/CODEOWNERS
.github/ISSUE_TEMPLATE/bug.md
git/config
docs/claude/notes.md
envrc
.env
workflows/ci.yml
my.code-workspace.md
.yarn/cache/a.zip
mise.md
.config/app.toml
"""


@every("name", PROTECTED.split())
@every("mode", ["ask", "accept-edits", "auto"])
def test_protected_files_ask_in_every_mode(tmp_path: Path, mode: PermissionMode, name: str) -> None:
    permissions = permissions_of(tmp_path, PermissionsConfig(mode, allow=["edit", "write"]))
    for tool in ("edit", "write"):
        decision = permissions.decide(tool, Intent("edit", tool, [tmp_path.resolve() / name]))
        assert decision.action == "ask"
        assert decision.patterns == [], "nothing that can be answered with 'always'"


WORKFLOW = ".github/workflows/ci.yml"


@every(
    ("rule", "tool", "name", "action"),
    [
        ("edit(./.github/workflows/**)", "edit", WORKFLOW, "allow"),
        ("edit(./.github/workflows/**)", "write", WORKFLOW, "allow"),
        ("edit(.github/workflows/ci.yml)", "apply_patch", WORKFLOW, "allow"),
        ("write(./.github/workflows/**)", "write", WORKFLOW, "allow"),
        ("write(./.github/workflows/**)", "edit", WORKFLOW, "ask"),
        ("edit(./.envrc)", "edit", ".envrc", "allow"),
        ("edit(./.github/**)", "edit", WORKFLOW, "ask"),
        ("edit(./**)", "edit", WORKFLOW, "ask"),
        ("edit(**/workflows/ci.yml)", "edit", WORKFLOW, "ask"),
        ("edit(./.github/w*/**)", "edit", WORKFLOW, "ask"),
        ("edit(./.github/workflows/**)", "edit", ".github/actions/a.yml", "ask"),
        ("edit(./.github/workflows/**)", "edit", ".git/config", "ask"),
    ],
)
@every("mode", ["ask", "auto"])
def test_a_rule_that_names_a_protected_place_allows_our_tools_to_change_it(
    tmp_path: Path, mode: PermissionMode, rule: str, tool: str, name: str, action: str
) -> None:
    path = tmp_path.resolve() / name

    def decided(**more: object) -> str:
        rules = {
            "allow": [rule],
            "ask": [],
            "deny": [],
            **{k: more.pop(k) for k in ("allow", "ask", "deny") if k in more},
        }
        permissions = permissions_of(tmp_path, PermissionsConfig(mode, **rules), **more)  # type: ignore[arg-type]
        return permissions.decide(tool, Intent("edit", tool, [path])).action

    assert decided() == action
    assert decided(can_ask=False) == ("allow" if action == "allow" else "deny")
    # Only where the user said so: not by an answer, nor by the project itself, nor against a rule that asks or denies.
    assert decided(allow=[], remembered=[rule]) == "ask"
    assert decided(brought=[rule]) == "ask"
    assert decided(ask=["edit"]) == "ask"
    assert decided(deny=["edit"]) == "deny"
    assert decided(protected=[path.parent]) == "ask"


def test_where_nobody_is_asked_the_rule_is_named(tmp_path: Path) -> None:
    permissions = permissions_of(tmp_path, PermissionsConfig("auto"), can_ask=False)
    decision = permissions.decide("write", Intent("edit", "write", [tmp_path.resolve() / WORKFLOW]))
    assert f"--allow 'edit(./{WORKFLOW})'" in decision.message


def test_commands_are_held_whatever_names_a_protected_place(tmp_path: Path) -> None:
    rules = PermissionsConfig("auto", allow=["edit(./.github/workflows/**)"])
    permissions = permissions_of(tmp_path, rules)
    assert permissions.path("edit", "edit", tmp_path.resolve() / WORKFLOW).action == "ask"


@every("name", FREE.split())
def test_other_files_are_edited_unasked(tmp_path: Path, name: str) -> None:
    permissions = permissions_of(tmp_path, PermissionsConfig("accept-edits"))
    assert permissions.decide("edit", Intent("edit", "edit", [tmp_path.resolve() / name])).action == "allow"


def test_places_at_the_root_are_all_protected() -> None:
    places = root_places()
    assert {".git", ".vscode", ".envrc", ".github/workflows"} <= set(places)
    assert all(is_protected(PurePosixPath(place)) for place in places)
    assert not is_protected(PurePosixPath("."))


def test_places_that_gits_configuration_names_ask(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "config", "core.hooksPath", "tools/hooks")
    git(tmp_path, "config", "include.path", "../more")
    permissions = permissions_of(tmp_path, PermissionsConfig("auto", allow=["edit"]))
    for name, action in (("tools/hooks/pre-commit", "ask"), ("more", "ask"), ("tools/other", "allow")):
        assert permissions.decide("edit", Intent("edit", "edit", [tmp_path.resolve() / name])).action == action, name
