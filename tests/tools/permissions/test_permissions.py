"""Files, addresses and servers: what is asked about, what an answer allows, what is said where nobody can answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_tui.config import PermissionsConfig
from agent_tui.errors import ConfigError
from agent_tui.models.events import RuleOffer
from agent_tui.tools.base import Intent, ServerTool
from agent_tui.tools.permissions.permissions import Permissions
from tests.support.every import every
from tests.support.tool_context import Make, bash, edit, permissions_of, read

pytestmark = pytest.mark.quick


def test_edits_follow_mode_rules_and_links(make: Make, root: Path) -> None:
    inside = root / "src/a.py"
    assert [edit(make(mode), inside).action for mode in ("ask", "accept-edits", "auto", "plan")] == [
        "ask", "allow", "allow", "deny",
    ]  # fmt: skip
    assert edit(make(), inside).patterns == ["edit(./src/a.py)"]
    assert edit(make(allow=["edit(src/**)"]), inside).action == "allow"
    assert edit(make("auto", ask=["edit(src/**)"]), inside).action == "ask"
    assert edit(make("auto", deny=["edit(*.py)"]), inside).action == "deny"
    for path in ("link/new", "../outside/new", "file-link", "/etc/hosts", ".git/config", "git-link/hooks/x",
                 ".agent-tui/config.toml", ".mcp.json", "src/.GIT/config"):  # fmt: skip
        decision = edit(make("auto", allow=["edit", "edit(/**)", "edit(**)"]), root / path)
        assert (decision.action, decision.patterns) == ("ask", []), path


def test_reading_is_free_inside_and_asked_about_outside(make: Make, root: Path, tmp_path: Path) -> None:
    assert read(make("plan"), root / "src/a.py").action == "allow"
    for path in ("../outside/secret", "link/secret", "file-link", "/etc/passwd"):
        assert read(make("auto", allow=["read"]), root / path).action == "ask"
    assert read(make(readable=[tmp_path / "outside"]), tmp_path / "outside/secret").action == "allow"
    assert edit(make("auto", readable=[tmp_path / "outside"]), tmp_path / "outside/secret").action == "ask"
    assert read(make(added=[tmp_path / "outside"]), root / "link/secret").action == "allow"
    assert edit(make("auto", protected=[root / "src"]), root / "src/a.py").action == "ask"


@every(
    ("url", "auto", "rule"),
    [
        ("https://docs.python.org/3/", "ask", "allow"),
        ("https://docs.python.org.evil.com/", "ask", "ask"),
        ("https://evil.com/docs.python.org", "ask", "ask"),
        ("http://localhost:8000/", "ask", "ask"),
        ("http://127.1/", "ask", "ask"),
        ("http://0x7f000001/", "ask", "ask"),
        ("http://2130706433/", "ask", "ask"),
        ("http://[::1]/", "ask", "ask"),
        ("http://[::ffff:10.0.0.1]/", "ask", "ask"),
        ("http://169.254.169.254/latest", "ask", "ask"),
        ("http://metadata.google.internal/", "ask", "ask"),
        ("http://intranet/", "ask", "ask"),
        ("http://localhost./", "ask", "ask"),
    ],
)
def test_fetching(make: Make, url: str, auto: str, rule: str) -> None:
    intent = Intent("network", "fetch", url=url)
    assert make().decide("fetch", intent).action == "ask"
    assert make("auto").decide("fetch", intent).action == auto
    assert make(allow=["fetch(docs.python.org)", "fetch(docs.python.org/*)"]).decide("fetch", intent).action == rule


def test_mcp_and_internal_tools(make: Make) -> None:
    intent = Intent("mcp", "call", server=ServerTool("github", "push"))
    asked = make().decide("mcp__github__push", intent)
    assert (asked.patterns, asked.session) == (["mcp(github.push)"], ["mcp(github.push)", "mcp(github)"])
    assert make(allow=["github__*"]).decide("github__push", intent).action == "allow"
    assert make("auto", deny=["github__*"]).decide("github__push", intent).action == "deny"
    assert make("plan").decide("todo", Intent("internal", "todo")).action == "allow"


def test_who_cannot_be_asked_refuses_and_says_what_would_allow_it(make: Make, root: Path) -> None:
    permissions = make(can_ask=False)
    decision = bash(permissions, "git commit -m x")
    assert decision.action == "deny"
    assert "nobody can be asked" in decision.message
    assert "--allow 'bash(git commit *)'" in decision.message
    assert "--permission-mode accept-edits" in edit(permissions, root / "src/a.py").message
    assert "--add-dir" in read(permissions, Path("/etc/passwd")).message
    assert bash(permissions, "git status").action == "allow"


@every("rule", ["", "(x)", "bash(", "bash)x(", "a b"])
def test_a_rule_that_cannot_be_read_is_an_error(make: Make, rule: str) -> None:
    with pytest.raises(ConfigError, match=r"permissions\.allow: the rule"):
        make(allow=[rule])


def test_what_is_said_for_the_session_holds_for_edits_and_folders_and_is_not_stored(make: Make, root: Path) -> None:
    saved: list[str] = []
    permissions = make(save=saved.append, ask=["edit(src/deep/**)"])
    asked = edit(permissions, root / "src/a.py")
    assert asked.session == ["edit(./**)", "edit(./src/**)"]
    permissions.accept(RuleOffer(("edit(./src/**)",), "session"))
    assert edit(permissions, root / "src/b.py").action == "allow"
    assert permissions.decide("write", Intent("edit", "x", [root / "src/b.py"])).action == "allow"
    assert edit(permissions, root / "src/deep/b.py").action == "ask", "a rule of the user says to ask"
    assert edit(permissions, root / "b.py").action == "ask"
    permissions.accept(RuleOffer(("edit(./**)",), "session"))
    assert edit(permissions, root / "b.py").action == "allow"
    for path in (root / ".git/hooks/x", root / ".agent-tui/config.toml", root.parent / "outside/x", root / "link/x"):
        assert edit(permissions, path).action == "ask", path
    assert bash(permissions, "echo x > b.py").action == "ask"
    permissions.mode = "plan"
    assert edit(permissions, root / "b.py").action == "deny"
    assert saved == [] and edit(make(), root / "b.py").action == "ask"


def test_a_folder_outside_can_be_allowed_for_the_session(make: Make, root: Path) -> None:
    outside = (root.parent / "outside").resolve()
    permissions = make(deny=[f"read({outside}/hidden)"])
    asked = read(permissions, outside / "secret")
    assert asked.action == "ask" and asked.session == [f"read({outside}/**)"]
    permissions.accept(RuleOffer((asked.session[0],), "session"))
    assert read(permissions, outside / "secret").action == read(permissions, outside / "inner/x").action == "allow"
    assert read(permissions, outside / "hidden").action == "deny"
    assert read(permissions, root.parent / "other").action == edit(permissions, outside / "x").action == "ask"
    assert bash(permissions, f"cat {outside}/secret").action == "ask", "a command reaches more than it names"
    for wide in (Path("/x"), Path.home() / "x", Path("/tmp/x")):
        assert permissions.decide("read", Intent("read", "x", [wide])).session == []


@pytest.mark.parametrize("apart", [True, False])
def test_registries_are_open_to_what_needs_them(tmp_path: Path, apart: bool) -> None:
    """Through our own way out nothing else is; where hosts cannot be told apart, to that command alone."""
    granted = permissions_of(
        tmp_path,
        PermissionsConfig("auto", allow=["network(mine.example.com)"]),
        holds=lambda domain: True,
        network="registries",
        tells_hosts_apart=lambda: apart,
    )
    for command in ("pip install six", ".venv/bin/pip install six", "npm install", "cargo add serde"):
        found = bash(granted, command)
        assert (found.action, found.domain, found.network) == ("allow", "work", not apart), command
    assert not bash(granted, "make").network
    assert bash(granted, "curl -sS https://mine.example.com/x").action == "allow"
    asked = bash(granted, "curl -sS https://example.com/x")
    assert (asked.action, asked.network) == ("ask", True)


@pytest.mark.parametrize("command", ["pip install six", "python3 -m venv .venv && .venv/bin/pip install six"])
def test_a_refusal_for_the_network_names_what_would_open_it(tmp_path: Path, command: str) -> None:
    def made(**more: object) -> Permissions:
        config = PermissionsConfig("accept-edits")
        return permissions_of(tmp_path, config, can_ask=False, holds=lambda domain: True, **more)

    refused = bash(made(tells_hosts_apart=lambda: True), command)
    assert refused.action == "deny" and "--network registries" in refused.message
    assert bash(made(network="registries", tells_hosts_apart=lambda: True), command).action == "allow"


def test_file_tools_read_unasked_what_held_commands_can_read(make: Make) -> None:
    seen = Path("/usr/lib").resolve() / "os-release"
    held = {"holds": lambda domain: True, "sees": lambda path, kind: path.name == "os-release" and kind == "read"}
    assert read(make(**held), seen).action == "allow"
    assert read(make("plan", **held), seen).action == "allow"
    assert read(make(**{**held, "holds": lambda domain: domain == "free"}), seen).action == "ask"
    assert read(make(**held, ask=["read(//**/os-release)"]), seen).action == "ask"
    assert read(make(**held, deny=["read(//**/os-release)"]), seen).action == "deny"
    assert read(make(**held), Path("/var/beside")).action == "ask"
    assert edit(make("auto", **held), seen).action == "ask"


def test_a_file_that_its_owner_may_not_write_is_asked_about(make: Make, root: Path) -> None:
    path = root / "src/a.py"
    path.chmod(0o444)
    assert edit(make("auto", allow=["edit(**)"]), path).action == "ask"
    assert edit(make("auto", allow=["edit(**)"]), path).reason.endswith("a.py is read-only")
    assert (edit(make("bypass"), path).action, edit(make("plan"), path).action) == ("allow", "deny")
    assert read(make(), path).action == "allow"
    path.chmod(0o644)
    assert edit(make("auto"), path).action == "allow"


def test_a_file_with_further_names_is_asked_about(make: Make, root: Path) -> None:
    """A command may have given a second name to a file that decides what runs, where it cannot change that itself."""
    (root / ".envrc").write_text("mine")
    (root / "src/other.txt").hardlink_to(root / ".envrc")
    assert edit(make("auto", allow=["edit(**)"]), root / "src/other.txt").action == "ask"
    assert edit(make("bypass"), root / "src/other.txt").action == "allow"
    assert read(make(), root / "src/other.txt").action == "allow"
    (root / ".envrc").unlink()
    assert edit(make("auto"), root / "src/other.txt").action == "allow"
