"""Trust is of what a folder brings along, thing by thing: what changed since waits, and the rest goes on."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_tui.bootstrap import make_agent
from agent_tui.commands import registry
from agent_tui.commands.project import trust_info
from agent_tui.context.trust import FolderTrust
from agent_tui.engine.about import BROUGHT, CONFIGURATION, OFFERED, REMEMBERED, SESSION
from agent_tui.engine.agent import Agent
from agent_tui.errors import ConfigError
from agent_tui.options import Options
from agent_tui.store.store import Store
from agent_tui.text.lookalikes import name_problem
from agent_tui.tools.base import Intent
from agent_tui.tools.files.fingerprints import fingerprint
from agent_tui.tools.files.named_files import named_files, with_environment
from tests.support.forms import examples, one_of

HOOKS = {
    "permissions": {"deny": ["Bash(rm:*)"], "allow": ["Bash(ls)"]},
    "hooks": {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "sh tools/check.sh"}]},
            {"matcher": "Edit", "hooks": [{"type": "command", "command": "python3 tools/lint.py", "timeout": 5}]},
        ]
    },
}
SERVERS = {
    "mcpServers": {
        "files": {"command": "node", "args": ["tools/server.js", "a b"], "env": {"NODE_OPTIONS": "-r ./tools/pre.js"}},
        "web": {"url": "https://mcp.example.org/x", "headers": {"X-Team": "blue"}},
    }
}
CONFIG = """
[agent]
step_limit = 5
[permissions]
allow = ["bash(make)"]
deny = ["bash(rm *)"]
[models.near]
model = "openai/near"
api_base = "http://127.0.0.1:9/v1"
[mcp.own]
command = "sh"
args = ["tools/own.sh"]
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "data" / "sessions.db") as opened:
        yield opened


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    write(root, ".agent-tui/config.toml", CONFIG)
    write(root, ".agent-tui/commands/go.md", "go !`date`")
    write(root, ".claude/agents/finder.md", "---\nname: finder\ndescription: d\n---\nFind.")
    write(root, ".claude/settings.json", json.dumps(HOOKS))
    write(root, ".mcp.json", json.dumps(SERVERS))
    write(root, ".agents/skills/tidy/SKILL.md", "---\ndescription: d\n---\ntext")
    write(root, ".agents/skills/tidy/run.sh", "echo tidy")
    write(root, ".agents/skills/other/SKILL.md", "---\ndescription: d\n---\nother")
    write(root, "tools/check.sh", "#!/bin/sh\n. tools/lib.sh\n")
    write(root, "tools/lib.sh", "echo lib\n")
    write(root, "tools/lint.py", "import helper\n")
    write(root, "tools/helper.py", "print()\n")
    write(root, "tools/server.js", "1\n")
    write(root, "tools/pre.js", "2\n")
    write(root, "tools/own.sh", "3\n")
    write(root, "src/a.py", "")
    git(root, "init", "-q")
    git(root, "remote", "add", "origin", "https://example.org/a.git")
    return root


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def edit(root: Path, name: str, old: str, new: str) -> None:
    text = (root / name).read_text()
    assert old in text
    (root / name).write_text(text.replace(old, new))


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True)


def accepted(root: Path, store: Store) -> FolderTrust:
    trust = FolderTrust(root, store.trust)
    assert trust.accept() and trust.is_settled and trust.line() == ""
    return trust


def shown(trust: FolderTrust) -> str:
    info = trust_info(trust.question())
    return "" if info is None else info.text


def used(trust: FolderTrust) -> set[str]:
    """What of the folder is in force: hooks, servers, settings, rules, files."""
    layer, servers = trust.config(), trust.servers()
    values = layer.values if layer is not None else {}
    rules = values.get("permissions", {})
    found = {f"{hook.event} {hook.matcher}" for hook in trust.hooks() if not hook.refused}
    found |= {name for name in servers.entries if name not in servers.waits}
    found |= {f"{which} {rule}" for which in rules for rule in rules[which]}
    found |= {f"{which} {rule}" for which, rule, place in trust.foreign_rules().rules if place in PLACES_OF_RULES}
    found |= {*values.get("models", {}), *values.get("mcp", {}), *values.get("agent", {})}
    return found | {file.relative_to(trust.root).as_posix() for file in trust.files()}


PLACES_OF_RULES = (".claude/settings.json", ".claude/settings.local.json")
GO, FINDER = ".agent-tui/commands/go.md", ".claude/agents/finder.md"
TIDY, OTHER = ".agents/skills/tidy/SKILL.md", ".agents/skills/other/SKILL.md"
CHECK, LINT = "PreToolUse Bash", "PreToolUse Edit"
ALL = {
    *(CHECK, LINT, "files", "web", "allow bash(make)", "deny bash(rm *)", "allow bash(ls)", "near", "own"),
    *("step_limit", GO, FINDER, TIDY, OTHER),
}


@pytest.fixture(autouse=True)
def no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))


@pytest.mark.slow
def test_nothing_is_used_before_and_all_of_it_after(root: Path, store: Store) -> None:
    trust = FolderTrust(root, store.trust)
    assert trust.state == "never" and used(trust) == set() and not trust.lets_git_out
    line = trust.line()
    assert "2 hooks, 3 MCP servers" in line and "/trust" in line and "\n" not in line
    accepted(root, store)
    again = FolderTrust(root, store.trust)
    assert again.is_settled and used(again) == ALL and again.lets_git_out and again.line() == ""


def test_a_run_without_the_servers_of_the_project_has_none(root: Path, store: Store) -> None:
    trust = accepted(root, store)
    trust.has_servers = False
    assert ALL - used(trust) == {"files", "web"}


def test_a_folder_that_brings_nothing_says_nothing(tmp_path: Path, store: Store) -> None:
    assert FolderTrust(tmp_path / "empty", store.trust).line() == ""


def renamed(root: Path, name: str) -> None:
    """The script of a hook has another name."""
    (root / "tools/check.sh").rename(root / "tools" / name)
    edit(root, ".claude/settings.json", "check.sh", name)


CHANGES: dict[str, tuple[Callable[[Path], object], set[str], str]] = {
    # What is done, what is used no longer, and words of the question.
    "a script": (lambda root: write(root, "tools/check.sh", "evil"), {CHECK}, "+ evil"),
    "a script of a script": (lambda root: write(root, "tools/lib.sh", "evil"), {CHECK}, "+ evil"),
    "a module": (lambda root: write(root, "tools/helper.py", "evil()"), {LINT}, "+ evil()"),
    "a new module beside it": (lambda root: write(root, "tools/json.py", "evil()"), {LINT}, "evil()"),
    "a hook's command": (
        lambda root: edit(root, ".claude/settings.json", "sh tools/check.sh", "sh tools/lib.sh"),
        {CHECK},
        "+ sh tools/lib.sh",
    ),
    "a hook's matcher": (lambda root: edit(root, ".claude/settings.json", '"Edit"', '".*"'), {LINT}, "PreToolUse .*"),
    "a hook renamed with its script": (
        lambda root: renamed(root, "quiet.sh"),
        {CHECK},
        "sh tools/quiet.sh",
    ),
    "a hook in another file": (
        lambda root: write(root, ".claude/settings.local.json", json.dumps({"hooks": HOOKS["hooks"]})),
        set(),
        ".claude/settings.local.json, new",
    ),
    "the file of hooks renamed": (
        lambda root: (root / ".claude/settings.json").rename(root / ".claude/settings.local.json"),
        {CHECK, LINT, "allow bash(ls)"},
        ".claude/settings.local.json, new",
    ),
    "a server's argument": (lambda root: edit(root, ".mcp.json", "a b", "a c"), {"files"}, "a c"),
    "a server's environment": (lambda root: edit(root, ".mcp.json", "pre.js", "p.js"), {"files"}, "NODE_OPTIONS"),
    "what a server's environment names": (lambda root: write(root, "tools/pre.js", "evil"), {"files"}, "+ evil"),
    "a server's script": (lambda root: write(root, "tools/server.js", "evil"), {"files"}, "+ evil"),
    "a server's address": (lambda root: edit(root, ".mcp.json", "example.org", "example.net"), {"web"}, "example.net"),
    "a server's header": (lambda root: edit(root, ".mcp.json", "blue", "red"), {"web"}, "+ headers.X-Team = red"),
    "a new server": (lambda root: edit(root, ".mcp.json", '"web"', '"new": {"command": "x"}, "web"'), set(), "= x"),
    "a rule more": (
        lambda root: edit(root, ".agent-tui/config.toml", '["bash(make)"]', '["bash(make)", "bash(curl *)"]'),
        set(),
        "rule allow bash(curl *)",
    ),
    "a model's address": (lambda root: edit(root, ".agent-tui/config.toml", ":9/", ":8/"), {"near"}, ":8/v1"),
    "a setting": (lambda root: edit(root, ".agent-tui/config.toml", "= 5", "= 500"), {"step_limit"}, "+ 500"),
    "a configured server's script": (lambda root: write(root, "tools/own.sh", "evil"), {"own"}, "+ evil"),
    "no TOML any more": (
        lambda root: write(root, ".agent-tui/config.toml", "= ="),
        {"allow bash(make)", "near", "own", "step_limit"},
        "config.toml",
    ),
    "a skill": (lambda root: write(root, TIDY, "---\ndescription: d\n---\nevil"), {TIDY}, "+ evil"),
    "a skill's script": (lambda root: write(root, ".agents/skills/tidy/run.sh", "evil"), {TIDY}, "+ evil"),
    "a skill's new file": (lambda root: write(root, ".agents/skills/tidy/x/y.sh", "evil"), {TIDY}, "evil"),
    "a new skill": (lambda root: write(root, ".agents/skills/new/SKILL.md", "evil"), set(), "skill new"),
    "a command": (lambda root: write(root, GO, "go !`curl evil`"), {GO}, "+ go !`curl evil`"),
    "a new command": (lambda root: write(root, ".claude/commands/x/y.md", "evil"), set(), "command /x/y"),
    "a type of subagent": (lambda root: write(root, FINDER, "---\ndescription: d\n---\nevil"), {FINDER}, "+ evil"),
}


@pytest.mark.forms(1)
@pytest.mark.parametrize("what", CHANGES)
def test_what_changed_alone_waits_and_is_shown(root: Path, store: Store, what: str) -> None:
    change, unused, words = CHANGES[what]
    trust = accepted(root, store)
    change(root)
    for now in (FolderTrust(root, store.trust), trust):
        now.look()
        assert now.state == "changed" and now.trusted and now.lets_git_out
        assert used(now) == ALL - unused
        line = now.line()
        assert "Changed since" in line and "\n" not in line and "/trust" in line
    assert words in shown(trust)
    assert trust.accept() and trust.is_settled and FolderTrust(root, store.trust).is_settled


def link_out(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/hostname")


def fill(folder: Path) -> None:
    for number in range(30):
        (folder / f"{number}.md").touch()


GUARDS_OFF: dict[str, Callable[[Path], object]] = {
    "its script": lambda root: write(root, "tools/check.sh", ""),
    "its script's script": lambda root: write(root, "tools/lib.sh", ""),
    "its script gone": lambda root: (root / "tools/check.sh").unlink(),
    "its command": lambda root: edit(root, ".claude/settings.json", "tools/check.sh", "tools/lib.sh"),
    "its matcher": lambda root: edit(root, ".claude/settings.json", '"Bash"', '"Nothing"'),
    "its event": lambda root: edit(root, ".claude/settings.json", "PreToolUse", "PostToolUse"),
    "all hooks off": lambda root: edit(root, ".claude/settings.json", '{"perm', '{"disableAllHooks": true, "perm'),
    "settings that are no JSON": lambda root: write(root, ".claude/settings.json", "{"),
    "no settings": lambda root: (root / ".claude/settings.json").unlink(),
    "a link out of the project": lambda root: link_out(root / "tools/check.sh"),
    "more than can be looked at": lambda root: fill(root / ".agents/skills/tidy"),
}


@pytest.mark.forms(3)
@pytest.mark.parametrize("what", GUARDS_OFF)
def test_a_hook_that_was_accepted_lets_nothing_pass_until_its_change_is_seen(
    root: Path, store: Store, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_tui.context.brought.MAX_FILES", 30)
    trust = accepted(root, store)
    GUARDS_OFF[what](root)
    for now in (trust, FolderTrust(root, store.trust)):
        now.look()
        guards = [hook for hook in now.hooks() if hook.concerns(["Bash"]) and hook.event == "PreToolUse"]
        assert [bool(hook.refused) for hook in guards] == [True] and now.was_accepted
        assert guards[0].command == "sh tools/check.sh"
    if trust.question() and trust.accept():
        assert not any(hook.refused for hook in trust.hooks())


def test_a_hook_that_was_never_accepted_holds_nothing_back(root: Path, store: Store) -> None:
    never = FolderTrust(root, store.trust)
    assert never.hooks() == [] and not never.was_accepted
    trust = accepted(root, store)
    edit(root, ".claude/settings.json", '"PreToolUse": [', '"PreToolUse": [{"hooks": [{"command": "false"}]}, ')
    trust.look()
    assert [hook.matcher for hook in trust.hooks()] == ["Bash", "Edit"]


@pytest.mark.forms(1)
@pytest.mark.parametrize("what", one_of(CHANGES, 4))
def test_what_is_as_it_was_needs_no_question(root: Path, store: Store, what: str) -> None:
    trust = accepted(root, store)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file() and ".git/" not in str(path)}
    CHANGES[what][0](root)
    trust.look()
    for path in [path for path in root.rglob("*") if path.is_file() and ".git/" not in str(path)]:
        if path not in before:
            path.unlink()
    for path, data in before.items():
        path.write_bytes(data)
    trust.look()
    assert trust.is_settled and used(trust) == ALL


@pytest.mark.slow
def test_rules_that_hold_back_hold_until_it_is_known_that_they_went(root: Path, store: Store) -> None:
    trust = accepted(root, store)
    edit(root, ".agent-tui/config.toml", 'deny = ["bash(rm *)"]', "")
    write(root, ".claude/settings.json", json.dumps({"hooks": HOOKS["hooks"]}))
    trust.look()
    assert used(trust) == ALL - {"allow bash(ls)"}
    text = shown(trust)
    assert "rule deny bash(rm *) in .agent-tui/config.toml" in text and "rule deny Bash(rm:*)" in text
    (root / ".agent-tui/config.toml").unlink()
    trust.look()
    assert "deny bash(rm *)" in used(trust)
    shown(trust)
    assert trust.accept() and "deny bash(rm *)" not in used(trust) and trust.is_settled


@pytest.mark.slow
def test_what_git_would_run_keeps_git_inside(root: Path, store: Store) -> None:
    git(root, "config", "core.hooksPath", "tools/git")
    trust = accepted(root, store)
    for name in (".git/hooks/post-commit", "tools/git/pre-push", ".husky/pre-commit", ".githooks/x"):
        write(root, name, "evil")
        trust.look()
        assert not trust.lets_git_out and used(trust) == ALL, name
        assert f"git hook {name}" in shown(trust).replace(f" in {name}", "")
        assert trust.accept() and trust.lets_git_out


def test_what_does_not_matter_does_not_ask_again(root: Path, store: Store) -> None:
    trust = accepted(root, store)
    write(root, "src/a.py", "changed")
    write(root, "AGENTS.md", "Use tabs.")
    write(root, ".husky/_/husky.sh", "written by every installation")
    write(root, ".agents/skills/tidy/__pycache__/x.pyc", "written by every run")
    git(root, "config", "user.name", "Somebody")
    for name in (".mcp.json", "tools/check.sh"):
        os.utime(root / name, (1, 1))
    trust.look()
    assert trust.is_settled and FolderTrust(root, store.trust).is_settled


def test_all_is_shown_word_for_word_and_nothing_acts(root: Path, store: Store) -> None:
    long = "echo " + " ".join(f"word{n}" for n in range(500))
    hostile = "printf '\x1b[2K\x9b1m'\r # \u202etxt\u200b\nsecond line"
    hooks = [{"type": "command", "command": command} for command in (long, hostile, *(f"true {n}" for n in range(40)))]
    write(root, ".claude/settings.json", json.dumps({"hooks": {"Stop": [{"hooks": hooks}]}}))
    write(root, ".agents/skills/tidy/run.sh", "".join(f"line {n}\n" for n in range(300)))
    edit(root, ".agent-tui/config.toml", '["bash(make)"]', json.dumps([f"bash(x{n})" for n in range(50)]))
    text = shown(FolderTrust(root, store.trust))
    assert long in text and "second line" in text and "⟨U+202E⟩txt⟨U+200B⟩" in text and "␛[2K⟨U+009B⟩1m" in text
    for words in (*(f"true {n}" for n in range(40)), *(f"line {n}" for n in range(300)), "command = node"):
        assert words in text
    for words in (*(f"allow bash(x{n})" for n in range(50)), "node tools/server.js 'a b'", "https://mcp.example.org/x"):
        assert words in text
    for words in ("headers.X-Team = blue", "NODE_OPTIONS = -r ./tools/pre.js", "api_base = http://127.0.0.1:9/v1"):
        assert words in text
    assert "go !`date`" in text and "agent.step_limit = 5" in text
    assert not any((ord(char) < 32 and char != "\n") or char in "\u202e\u200b\x9b" for char in text)
    assert text.index("Hooks, which") < text.index("MCP servers, which") < text.index("Skills")


def test_a_file_that_cannot_be_shown_is_counted(root: Path, store: Store) -> None:
    (root / ".agents/skills/tidy/data.bin").write_bytes(b"\0" * 10)
    write(root, ".agents/skills/tidy/long.txt", "x" * 200_000)
    info = trust_info(FolderTrust(root, store.trust).question())
    assert info is not None and info.actions[0].hidden == " and 2 files cannot be"
    assert "data.bin: 10 bytes, cannot be shown here" in info.text


@pytest.mark.forms(1)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"command": "x", "env": {"A": "b\nurl = c"}}, {"command": "x", "env": {"A": "b"}, "url": "c"}),
        ({"command": "x", "env.A": "b"}, {"command": "x", "env": {"A": "b"}}),
        ({"command": "x", "args": ["a b"]}, {"command": "x", "args": ["a", "b"]}),
        ({"command": "x a"}, {"command": "x", "args": ["a"]}),
        ({"command": "x", "timeout": "5"}, {"command": "x", "timeout": 5}),
        ({"command": "x", "args": "true"}, {"command": "x", "args": True}),
        ("x", {"x": 1}),
    ],
)
def test_no_two_definitions_are_one(root: Path, store: Store, one: object, other: object) -> None:
    write(root, ".mcp.json", json.dumps({"mcpServers": {"files": one}}))
    trust = accepted(root, store)
    write(root, ".mcp.json", json.dumps({"mcpServers": {"files": other}}))
    trust.look()
    assert [item.name for item in trust.waiting] == ["files"]
    assert "\n      url = c" not in shown(FolderTrust(root, store.trust)) or isinstance(other, dict)


WRONG = (
    "[hooks]\nStop = 1",
    "[hooks]\nStop = [1, {}]",
    "[hooks]\nStop = [{ command = 'x', timeout = 'long', matcher = 5 }]",
    "[hooks.Stop]\n0 = 1",
    "mcp = 1",
    "[mcp]\nx = 1",
    "[mcp.x]\ncommand = 1\nargs = 5",
    "[permissions]\nallow = 'x'",
    "[permissions]\nallow = [1]",
    "[permissions]\nmode = 'plan'",
    "permissions = []",
    "[models]\nx = 1",
)


@pytest.mark.forms(2)
@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_shown_like_the_rest(root: Path, store: Store, text: str) -> None:
    write(root, ".agent-tui/config.toml", text.replace("\n", "\r\n"))
    trust = accepted(root, store)
    layer = trust.config()
    assert layer is not None and layer.values == tomllib.loads(text)
    trust.hooks()


@pytest.mark.forms(1)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model = 'x'", "setting model in .agent-tui/config.toml: there is no setting model"),
        ("x = 1979-05-27", "there is no setting x"),
        ("[agent]\nstep_limits = 5", "there is no setting agent.step_limits"),
        ("[models.far]\nmodle = 'x'", "there is no setting models.far.modle"),
        ("[hooks]\nStop = [{ command = 'true', more = 1 }]", "there is no setting hooks.Stop.0.more"),
        ("[ui]\nstatus_command = 'x'", "setting ui.status_command in .agent-tui/config.toml: only your own"),
        ("[sandbox]\nmode = 'off'", "only your own configuration may set this"),
        ("[permissions]\nmode = 'bypass'", 'only your own configuration may set it to "bypass"'),
    ],
)
def test_what_no_project_may_set_is_said_before_the_yes_and_never_kept(
    root: Path, store: Store, text: str, said: str
) -> None:
    write(root, ".agent-tui/config.toml", text + "\n")
    trust = FolderTrust(root, store.trust)
    question = shown(trust)
    assert said in question[question.index("Cannot be trusted") :] and trust.accept()
    assert trust.config() is None and said in trust.line() and trust.is_settled
    write(root, ".agent-tui/config.toml", "")
    trust.look()
    assert trust.is_settled and trust.line() == ""


def test_what_an_earlier_version_kept_of_them_is_not_missed(root: Path, store: Store) -> None:
    trust = accepted(root, store)
    row = store.trust.get(root)
    assert row is not None and row.content is not None
    content = json.loads(row.content)
    for name, text in (("model", '"x"'), ("ui.status_command", '"x"'), ("permissions.mode", '"bypass"')):
        content["items"].append([["setting", ".agent-tui/config.toml", name], "0", {}, {"": text}])
    store.trust.put(root, trust.identity, json.dumps(content))
    assert FolderTrust(root, store.trust).is_settled


def test_a_file_is_shown_once(root: Path, store: Store) -> None:
    edit(root, ".mcp.json", "tools/server.js", "tools/check.sh")
    text = shown(FolderTrust(root, store.trust))
    hooks, servers = text.split("MCP servers, which")
    assert "tools/check.sh, " in hooks and "tools/check.sh: shown above" in servers


def test_a_file_that_was_no_toml_and_is_now_is_not_used(root: Path, store: Store) -> None:
    write(root, ".agent-tui/config.toml", "= =")
    trust = accepted(root, store)
    write(root, ".agent-tui/config.toml", "[permissions]\nallow = ['bash']")
    with pytest.raises(ConfigError, match="not valid TOML"):
        trust.config()
    trust.look()
    assert trust.config() is None


def outside(root: Path) -> Path:
    write(root.parent, "elsewhere/file.sh", "evil")
    return root.parent / "elsewhere" / "file.sh"


def link(path: Path, to: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(to)


def linked_folder(root: Path) -> None:
    shutil.move(root / ".agent-tui", root.parent / "moved")
    (root / ".agent-tui").symlink_to(root.parent / "moved")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


REFUSED: dict[str, tuple[Callable[[Path], object], set[str], str]] = {
    "a script that leads out": (lambda root: link(root / "tools/check.sh", outside(root)), {CHECK}, "out of the proj"),
    "a pipe": (lambda root: pipe(root / ".agents/skills/tidy/run.sh"), {TIDY}, "not a regular file"),
    "a huge file": (lambda root: os.truncate(root / "tools/check.sh", 20_000_000), {CHECK}, "larger than 16"),
    "a folder that leads out": (
        linked_folder,
        {"allow bash(make)", "near", "own", "step_limit", GO},
        "out of the project",
    ),
    "servers that lead out": (lambda root: link(root / ".mcp.json", outside(root)), {"files", "web"}, "out of the"),
    "a twin by case": (lambda root: write(root, "tools/Check.sh", "evil"), {CHECK}, "looks the same"),
    "a twin by width": (lambda root: write(root, "tools/\uff43heck.sh", "evil"), {CHECK}, "looks the same"),
    "a letter of another alphabet": (
        lambda root: renamed(root, "\u0441heck.sh"),
        {CHECK},
        "letters that look like others",
    ),
    "a server called like another": (
        lambda root: edit(root, ".mcp.json", '"web"', '"w\\u0435b"'),
        {"web"},
        "letters that look like others",
    ),
}


@pytest.mark.forms(6)
@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_told_is_refused_in_a_line_and_the_rest_is_trusted(root: Path, store: Store, what: str) -> None:
    change, unused, words = REFUSED[what]
    change(root)
    trust = FolderTrust(root, store.trust)
    assert words in shown(trust)
    assert trust.accept() and used(trust) == ALL - unused
    assert trust.line().startswith("Not trusted: ") and words in trust.line() and "\n" not in trust.line()
    again = FolderTrust(root, store.trust)
    assert used(again) == ALL - unused and again.line() == trust.line()


@pytest.mark.parametrize(
    ("name", "fine"),
    [
        *((name, True) for name in ("check.sh", "проверка.sh", "größe.py", "検査.sh", "a-β.txt")),
        *((name, False) for name in ("\u0441heck.sh", "\u0441\u043e\u0440\u0443.sh", "x\u200b.sh")),
        *((name, False) for name in ("y\u202e.sh", "a\u00a0b", "\x1b.sh")),
    ],
)  # fmt: skip
def test_names_that_look_like_others(name: str, fine: bool) -> None:
    assert (name_problem(name) == "") == fine


def test_commands_of_the_user_that_name_files_here_are_asked_about(root: Path, store: Store) -> None:
    trust = accepted(root, store)
    files = fingerprint(named_files("sh tools/mine.sh; ls /", root, root), root)
    assert files == {}
    trust.commands = [
        ("sh tools/mine.sh", "sh tools/mine.sh"),
        ("date", "date"),
        ("python3 -c 1", ["python3", "-c", "1"]),
        ("sh tools/server.sh", with_environment({"my-token": "hidden", "B": "1"}, "sh", "tools/server.sh")),
    ]
    assert trust.is_settled
    write(root, "tools/mine.sh", "echo mine\n")
    write(root, "tools/server.sh", "echo server\n")
    trust.look()
    assert "command of yours sh tools/server.sh" in shown(trust) and "hidden" not in shown(trust)
    files = fingerprint(named_files("sh tools/mine.sh", root, root), root)
    assert trust.changed_since_accepted(files) == ["tools/mine.sh"]
    assert "command of yours sh tools/mine.sh" in shown(trust) and "echo mine" in shown(trust)
    assert trust.accept() and trust.changed_since_accepted(files) == []
    write(root, "tools/mine.sh", "evil\n")
    assert trust.changed_since_accepted(fingerprint(named_files("sh tools/mine.sh", root, root), root))


def test_files_are_accepted_only_where_the_folder_is_trusted(root: Path, store: Store) -> None:
    files = fingerprint(named_files("sh tools/check.sh", root, root), root)
    trust = FolderTrust(root, store.trust)
    assert trust.changed_since_accepted(files) == ["tools/check.sh", "tools/lib.sh"]
    assert trust.accept() and trust.changed_since_accepted(files) == []
    git(root, "remote", "set-url", "origin", "https://example.org/evil.git")
    assert FolderTrust(root, store.trust).changed_since_accepted(files) == ["tools/check.sh", "tools/lib.sh"]


def test_only_what_was_shown_is_accepted(root: Path, store: Store) -> None:
    trust = FolderTrust(root, store.trust)
    trust.question()
    write(root, "tools/lib.sh", "slipped in")
    assert not trust.accept() and not trust.trusted and not FolderTrust(root, store.trust).trusted
    trust.question()
    write(root, "tools/lib.sh", "again")
    trust.look()  # who looks meanwhile has shown nothing
    assert not trust.accept() and not trust.trusted
    trust.question()
    assert trust.accept()


@pytest.mark.slow
def test_a_race_of_writes_accepts_nothing_else(root: Path, store: Store) -> None:
    trust = accepted(root, store)
    for number in range(examples(25, 100)):
        write(root, "tools/lib.sh", f"echo {number:03}\n")
        trust.look()
        assert CHECK not in used(trust), number
    write(root, "tools/lib.sh", "echo lib\n")
    trust.look()
    assert trust.is_settled


def test_another_repository_at_the_same_path_is_not_trusted(root: Path, store: Store, tmp_path: Path) -> None:
    accepted(root, store)
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
    accepted(root, store)
    git(root, "remote", "add", "fork", "https://example.org/fork.git")
    assert FolderTrust(root, store.trust).trusted
    git(root, "remote", "set-url", "origin", "https://example.org/evil.git")
    assert FolderTrust(root, store.trust).state == "elsewhere"


@pytest.mark.slow
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
        "bash(ls)": ("offered", f"{OFFERED}.claude/settings.json"),
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
