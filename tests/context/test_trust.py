"""Trust is of what a folder brings along: what changed since is not trusted, nor is another repository."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_tui.bootstrap import make_agent
from agent_tui.commands import registry
from agent_tui.context.trust import FolderTrust
from agent_tui.engine.about import BROUGHT, CONFIGURATION, REMEMBERED, SESSION
from agent_tui.engine.agent import Agent
from agent_tui.errors import ConfigError
from agent_tui.options import Options
from agent_tui.store.schema import MIGRATIONS, migrate
from agent_tui.store.store import Store
from agent_tui.tools.base import Intent


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "data" / "sessions.db") as opened:
        yield opened


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    write(root, ".agent-tui/config.toml", "[agent]\nstep_limit = 5\n")
    write(root, ".agent-tui/commands/go.md", "go")
    write(root, ".mcp.json", '{"mcpServers": {}}\n')
    write(root, ".agents/skills/tidy/SKILL.md", "---\ndescription: d\n---\ntext")
    write(root, ".agents/skills/tidy/run.sh", "echo tidy")
    write(root, "src/a.py", "")
    git(root, "init", "-q")
    git(root, "remote", "add", "origin", "https://example.org/a.git")
    return root


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True)


def trusted(root: Path, store: Store) -> None:
    trust = FolderTrust(root, store.trust)
    assert trust.accept() and trust.trusted and trust.holds()


def test_what_a_folder_brings_is_named_until_it_is_trusted_and_stays_so(root: Path, store: Store) -> None:
    trust = FolderTrust(root, store.trust)
    assert not trust.trusted and trust.state == "never"
    line = trust.line()
    for name in (".agent-tui/config.toml (conf", ".mcp.json (MCP", ".agents/skills (skills", "/trust", "--trust"):
        assert name in line
    assert "\n" not in line
    trusted(root, store)
    again = FolderTrust(root, store.trust)
    assert again.trusted and again.line() == "" and again.holds()


def test_a_folder_that_brings_nothing_says_nothing(tmp_path: Path, store: Store) -> None:
    assert FolderTrust(tmp_path / "empty", store.trust).line() == ""


CHANGES: dict[str, Callable[[Path], None]] = {
    ".agent-tui/config.toml changed": lambda root: write(root, ".agent-tui/config.toml", "[permissions]\nmode='auto'"),
    ".agent-tui/config.toml gone": lambda root: (root / ".agent-tui/config.toml").unlink(),
    ".agent-tui/commands/evil.md new": lambda root: write(root, ".agent-tui/commands/evil.md", "evil"),
    ".agent-tui/commands/sub/evil.md new": lambda root: write(root, ".agent-tui/commands/sub/evil.md", "evil"),
    ".mcp.json changed": lambda root: write(root, ".mcp.json", '{"mcpServers": {"x": {"command": "evil"}}}'),
    ".agents/skills/tidy/SKILL.md changed": lambda root: write(root, ".agents/skills/tidy/SKILL.md", "---\n---\nevil"),
    ".agents/skills/tidy/run.sh changed": lambda root: write(root, ".agents/skills/tidy/run.sh", "evil"),
    ".agents/skills/new/SKILL.md new": lambda root: write(root, ".agents/skills/new/SKILL.md", "evil"),
    ".git/hooks/pre-commit new": lambda root: write(root, ".git/hooks/pre-commit", "evil"),
    ".husky/pre-push new": lambda root: write(root, ".husky/pre-push", "evil"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_changed_is_named_and_not_trusted(root: Path, store: Store, what: str) -> None:
    trusted(root, store)
    CHANGES[what](root)
    trust = FolderTrust(root, store.trust)
    assert trust.state == "changed" and not trust.holds()
    assert what in trust.line() and "\n" not in trust.line()
    assert what in trust.details()
    assert trust.accept() and FolderTrust(root, store.trust).trusted


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_in_a_running_session_ends_the_trust(root: Path, store: Store, what: str) -> None:
    trust = FolderTrust(root, store.trust)
    assert trust.accept() and trust.holds()
    CHANGES[what](root)
    assert not trust.holds() and not trust.trusted and what in trust.line()


def test_what_does_not_matter_does_not_ask_again(root: Path, store: Store) -> None:
    trusted(root, store)
    write(root, "src/a.py", "changed")
    write(root, "AGENTS.md", "Use tabs.")
    write(root, ".husky/_/husky.sh", "written by every installation")
    git(root, "config", "user.name", "Somebody")
    os.utime(root / ".mcp.json")
    trust = FolderTrust(root, store.trust)
    assert trust.trusted and trust.holds()
    os.utime(root / ".mcp.json", (1, 1))
    assert trust.holds(), "written again, with the same content"


def test_the_difference_is_shown_short_and_without_control_characters(root: Path, store: Store) -> None:
    trusted(root, store)
    write(
        root, ".mcp.json", '{"mcpServers": {}}\n' + "\x1b[31mevil\u202e\n" + "".join(f"line {i}\n" for i in range(50))
    )
    details = FolderTrust(root, store.trust).details()
    assert "+ evil" in details.replace("[31m", "") and "more lines" in details
    assert not any((ord(c) < 32 and c != "\n") or c == "\u202e" for c in details)
    assert len(details.splitlines()) < 12


def test_another_repository_at_the_same_path_is_not_trusted(root: Path, store: Store, tmp_path: Path) -> None:
    trusted(root, store)
    kept = {p: p.read_text() for p in (*(root / ".agent-tui").rglob("*.*"), root / ".mcp.json") if p.is_file()}
    kept |= {p: p.read_text() for p in (root / ".agents").rglob("*.*") if p.is_file()}
    shutil.rmtree(root)
    for path, text in kept.items():
        write(root, str(path.relative_to(root)), text)
    git(root, "init", "-q")
    git(root, "remote", "add", "origin", "https://example.org/a.git")
    trust = FolderTrust(root, store.trust)
    assert trust.state == "elsewhere" and "Another repository" in trust.line()


def test_another_origin_is_another_repository(root: Path, store: Store) -> None:
    trusted(root, store)
    git(root, "remote", "add", "fork", "https://example.org/fork.git")
    assert FolderTrust(root, store.trust).trusted
    git(root, "remote", "set-url", "origin", "https://example.org/evil.git")
    assert FolderTrust(root, store.trust).state == "elsewhere"


def test_only_what_was_shown_is_trusted(root: Path, store: Store) -> None:
    trust = FolderTrust(root, store.trust)
    write(root, ".mcp.json", "slipped in")
    assert not trust.accept() and not trust.trusted
    assert not FolderTrust(root, store.trust).trusted
    assert trust.accept(), "it has been shown now"


def test_a_link_is_looked_at_where_it_leads_and_cycles_end(root: Path, store: Store, tmp_path: Path) -> None:
    write(tmp_path, "elsewhere/SKILL.md", "one")
    (root / ".agents/skills/linked").symlink_to(tmp_path / "elsewhere")
    (root / ".agents/skills/round").symlink_to(root / ".agents/skills")
    trusted(root, store)
    write(tmp_path, "elsewhere/SKILL.md", "two")
    assert FolderTrust(root, store.trust).state == "changed"


def test_more_than_can_be_looked_at_is_not_trusted(root: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_tui.context.trust.MAX_FILES", 3)
    trust = FolderTrust(root, store.trust)
    assert not trust.accept() and not trust.trusted and "cannot be trusted" in trust.line()
    monkeypatch.setattr("agent_tui.context.trust.MAX_FILES", 100)
    monkeypatch.setattr("agent_tui.context.trust.MAX_BYTES", 10)
    assert FolderTrust(root, store.trust).state == "unknown"


def test_what_is_no_regular_file_holds_nothing_up(root: Path, store: Store) -> None:
    os.mkfifo(root / ".agents/skills/tidy/pipe")
    trusted(root, store)


def test_a_folder_trusted_by_an_earlier_version_is_asked_about_once(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "old.db"
    connection = sqlite3.connect(file, isolation_level=None)
    migrate(connection, MIGRATIONS[:2])
    connection.execute("INSERT INTO trusted (folder, created) VALUES (?, 1.0)", (str(root).encode(),))
    connection.close()
    with Store.open(file) as store:
        trust = FolderTrust(root, store.trust)
        assert trust.state == "unconfirmed" and "/trust" in trust.line() and "before its contents" in trust.line()
        assert trust.accept() and FolderTrust(root, store.trust).trusted


def test_rules_of_an_earlier_version_hold_where_their_repository_is_known(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "old.db"
    connection = sqlite3.connect(file, isolation_level=None)
    migrate(connection, MIGRATIONS[:5])
    identity = FolderTrust(root, Store.open(tmp_path / "other.db").trust).identity
    connection.execute("INSERT INTO trusted VALUES (?, 1.0, ?, '{}')", (str(root).encode(), identity))
    for project in (str(root), "/never/trusted"):
        connection.execute(
            "INSERT INTO permission_rule (project, rule) VALUES (?, ?)", (project.encode(), b"bash(make)")
        )
    connection.close()
    with Store.open(file) as store:
        assert store.rules.of(root, identity) == [("allow", "bash(make)")]
        assert store.rules.of("/never/trusted", "any") == []
        assert store.rules.of_others("/never/trusted", "any") == [("allow", "bash(make)")]


async def test_a_remembered_rule_is_asked_again_in_another_repository_at_the_path(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(root)
    call = Intent("command", "make install", command="make install")

    async def opened() -> Agent:
        return await make_agent(Options(model="demo"))

    agent = await opened()
    assert agent.parts.permissions.decide("bash", call).action == "ask"
    agent.parts.permissions.rules.remember(["bash(make install)"])
    assert agent.parts.permissions.decide("bash", call).action == "allow"
    agent.store.close()
    agent = await opened()
    assert agent.parts.permissions.decide("bash", call).action == "allow"
    agent.store.close()
    shutil.rmtree(root / ".git")
    git(root, "init", "-q")
    agent = await opened()
    assert agent.parts.permissions.decide("bash", call).action == "ask"
    assert [(decision, rule) for decision, rule, _ in agent.project.permission_rules()] == [
        ("asked", "bash(make install)")
    ]
    assert agent.project.remove_permission_rule("bash(make install)")
    assert agent.project.permission_rules() == []
    agent.store.close()


async def test_rules_are_told_by_where_they_come_from(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(root)
    (tmp_path / "home" / "config").mkdir(parents=True)
    (tmp_path / "home" / "config" / "config.toml").write_text('[permissions]\ndeny = ["bash(rm *)"]\n')
    (root / ".agent-tui" / "config.toml").write_text(
        '[permissions]\nask = ["bash(git push*)"]\nallow = ["bash(make)"]\n'
    )
    agent = await make_agent(Options(model="demo", trust=True, allow=["bash(ls *)"]))
    agent.project.add_permission_rule("allow", "bash(npm test*)")
    agent.parts.permissions.rules.allow_for_session("edit(./**)")
    assert {rule: (decision, where) for decision, rule, where in agent.project.permission_rules()} == {
        "bash(rm *)": ("deny", CONFIGURATION),
        "bash(git push*)": ("ask", BROUGHT),
        "bash(make)": ("allow", BROUGHT),
        "bash(ls *)": ("allow", CONFIGURATION),
        "bash(npm test*)": ("allow", REMEMBERED),
        "edit(./**)": ("allow", SESSION),
    }
    agent.store.close()


async def test_a_rule_that_is_given_here_holds_at_once_and_at_the_next_start(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(root)

    async def decided(agent: Agent, words: str = "") -> str:
        """What happens to the command ``make`` after a line of /permissions."""
        if words:
            await registry.run(agent, f"/permissions {words}")
        return agent.parts.permissions.decide("bash", Intent("command", "make", command="make")).action

    agent = await make_agent(Options(model="demo", trust=True, permission_mode="auto"))
    assert await decided(agent) == "allow"
    assert await decided(agent, "deny bash(make)") == "deny"
    assert await decided(agent, "ask bash(make)") == "ask", "one rule, which says something else now"
    agent.store.close()
    agent = await make_agent(Options(model="demo", permission_mode="auto"))
    assert await decided(agent) == "ask"
    assert await decided(agent, "deny bash(make)") == "deny"
    assert await decided(agent, "remove bash(make)") == "allow"
    for wrong in ("deny bsh(make)", "ask todo(x)", "deny bash("):
        before = agent.project.permission_rules()
        with pytest.raises(ConfigError) as refused:
            await registry.run(agent, f"/permissions {wrong}")
        assert "\n" not in str(refused.value) and agent.project.permission_rules() == before
    agent.store.close()
