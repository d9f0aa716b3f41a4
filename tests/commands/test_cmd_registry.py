"""Commands: found, completed, answered, and what goes to files."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from agent_tui.commands import registry
from agent_tui.commands.info import Info, layout
from agent_tui.commands.mentions import expand_mentions, mentions, project_files, quote_path
from agent_tui.errors import AgentError
from agent_tui.text import numbers
from agent_tui.tools.files.access import FileAccess
from tests.support.every import every
from tests.support.fake_agent import FakeAgent, UserCommand

pytestmark = pytest.mark.quick


async def run(agent: FakeAgent, line: str) -> registry.CommandResult:
    return await registry.run(agent, line)


def test_every_command_has_help_and_the_documented_name() -> None:
    commands = registry.load()
    assert list(commands) == list(registry.ORDER), "each has its place in the help, and each place its command"
    assert all(c.summary and not c.summary.endswith(".") for c in commands.values())
    # A list on a screen of 80 columns shows it whole.
    assert {c.name: c.summary for c in commands.values() if len(c.summary) > 52} == {}
    for alias, name in (("new", "clear"), ("undo", "rewind"), ("cost", "usage"), ("quit", "exit")):
        found = registry.find(alias)
        assert found is not None and found.name == name


def test_unknown_names_get_the_nearest() -> None:
    assert registry.nearest("contxt")[0] == "context"
    assert "compact" in registry.nearest("comp")
    assert registry.nearest("zzzzzz") == []


async def test_what_other_agents_call_a_command_runs_it_or_gets_a_word(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    ours = {*registry.load(), *(alias for c in registry.load().values() for alias in c.aliases)}
    assert not ours & {*registry.ELSEWHERE, *registry.INSTEAD}
    assert not {*registry.ELSEWHERE} & {*registry.INSTEAD} and {*registry.ELSEWHERE.values()} <= {*registry.COMMANDS}
    for name in (*registry.ELSEWHERE, *registry.INSTEAD):
        assert registry.complete(agent, f"/{name}")[0].insert == f"/{name}"
        agent.project.own_commands = [UserCommand(name, "mine")]
        assert [c.detail for c in registry.complete(agent, f"/{name}")[:1]] == ["mine"]
        typed = ([len(name) + 2, len(name) + 3],)
        assert await run(agent, f"/{name} x") == registry.Submit(f"{name}: x", typed), "the arguments are the user's"
        agent.project.own_commands = []
    assert await run(agent, "/continue") == await run(agent, "/resume")
    assert await run(agent, "/Bashes") == await run(agent, "/jobs")
    said = await run(agent, "/Memory")
    assert isinstance(said, registry.Text) and said.error and "AGENTS.md" in said.text
    for words in registry.INSTEAD.values():
        named = [word.strip(",.;:") for word in words.split() if word.startswith("/")]
        assert all(registry.find(word[1:]) for word in named), words


def test_completion_of_names_aliases_and_arguments(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    found = registry.complete(agent, "/co")
    assert {"/context", "/compact", "/copy", "/doctor"} <= {c.label.split()[0] for c in found}
    assert registry.complete(agent, "/ne")[0].insert == "/clear"
    words = [word for command in registry.load().values() for word in (command.name, *command.aliases)]
    assert [registry.complete(agent, f"/{word}")[0].insert.rstrip() for word in words] == [f"/{w}" for w in words]
    assert [c.label for c in registry.complete(agent, "/thinking m")] == ["medium"]
    names = [c.label.split()[0] for c in registry.complete(agent, "/")]
    assert names[:4] == ["/context", "/compact", "/model", "/resume"]
    assert not {"/vim", "/picture"} & {*names, *(c.label.split()[0] for c in registry.complete(agent, "/vi"))}
    assert registry.complete(agent, "/nothing x") == []


async def test_doctor_says_what_to_do_at_the_end_of_a_long_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = FakeAgent(tmp_path)
    detail = f"{'why it is so, ' * 30}where that fails, remove it"

    async def doctor() -> list[tuple[str, str, str]]:
        return [("warn", "sessions", detail)]

    monkeypatch.setattr(agent.project, "doctor", doctor)
    answer = await run(agent, "/doctor")
    assert isinstance(answer, Info) and detail in answer.text


@every(
    ("text", "command"),
    [
        ("/help", True),
        ("/unknown thing", True),
        ("/usr/bin is full", False),
        ("/ hello", False),
        ("hello", False),
        ("//x", False),
    ],
)
def test_what_is_a_command(text: str, command: bool) -> None:
    assert registry.is_command(text) is command


async def test_answers(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    agent.answer("older")
    agent.answer("newest")
    assert await run(agent, "/copy") == registry.Copy("newest", "the last answer")
    assert await run(agent, "/copy 2") == registry.Copy("older", "answer 2 from the end")
    assert isinstance(await run(agent, "/copy 9"), registry.Text)
    assert await run(agent, "/context") == registry.OpenScreen("context")
    assert await run(agent, "/exit") == registry.Quit()
    assert await run(agent, "/compact the parser") == registry.Nothing()
    assert agent.called("compact") == ["the parser"]
    assert isinstance(await run(agent, "/init"), registry.Submit)
    unknown = await run(agent, "/contxt")
    assert isinstance(unknown, registry.Text) and unknown.error and "/context" in unknown.text
    with pytest.raises(AgentError):
        await run(agent, "/model nonsense")


async def test_every_command_answers_without_arguments(tmp_path: Path) -> None:
    for name in registry.ORDER:
        if name not in {"exit", "init"}:
            answer = await run(FakeAgent(tmp_path), f"/{name}")
            if isinstance(answer, registry.Text | Info):
                assert answer.text and "\x1b" not in answer.text, name


async def test_permissions_are_shown_set_and_removed(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    shown = await run(agent, "/permissions")
    assert isinstance(shown, Info) and "bash(git status*)" in shown.text
    await run(agent, "/permissions plan")
    assert agent.mode.now == "plan"
    removed = await run(agent, "/permissions remove bash(git status*)")
    assert removed == registry.Text("Removed bash(git status*).")
    await run(agent, "/permissions allow bash(npm test*)")
    assert agent.called("allow") == ["bash(npm test*)"]


async def test_export_writes_where_it_was_told(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    await run(agent, "/export json out.json")
    assert json.loads((tmp_path / "out.json").read_text())["session"]["id"] == "ses_1"
    await run(agent, "/export page.html")
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    await run(agent, "/context export my numbers.json")
    assert json.loads((tmp_path / "my numbers.json").read_text())["total"] == agent.usage.total
    with pytest.raises(AgentError, match="already exists"):
        await run(agent, "/context export my numbers.json")
    failed = await run(agent, "/export md /nowhere/at/all.md")
    assert isinstance(failed, registry.Text) and failed.error


async def test_export_leaves_the_project_and_every_file_that_is_there_alone(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    before = sorted(tmp_path.iterdir())
    told = [await run(agent, "/export"), await run(agent, "/export md"), await run(agent, "/export json")]
    texts = [one.text for one in told if isinstance(one, registry.Text) and not one.error]
    files = [Path(text.removeprefix("Exported to ").removesuffix(".")) for text in texts]
    assert len({*files}) == 3 and all(file.is_file() and file.parent == agent.paths.exports for file in files)
    assert set(tmp_path.iterdir()) - {*before} <= {agent.paths.data}
    mine = tmp_path / "notes.md"
    mine.write_text("mine")
    refused = await run(agent, "/export notes.md")
    assert isinstance(refused, registry.Text) and refused.error and str(mine) in refused.text
    assert mine.read_text() == "mine"


def test_mentions_are_paths_not_addresses(tmp_path: Path) -> None:
    (tmp_path / "a b.txt").write_text("x")
    (tmp_path / "c.txt").write_text("y")
    text = 'see @c.txt, @"a b.txt" and me@host.org or @nobody'
    assert [m.path for m in mentions(text)] == ["c.txt", "a b.txt", "nobody"]
    parts, problems = expand_mentions(text, tmp_path, FileAccess([tmp_path]))
    assert [(p.name, p.text) for p in parts] == [("c.txt", "y"), ("a b.txt", "x")]
    assert problems == []
    assert quote_path("a b.txt") == '@"a b.txt"' and quote_path("c.txt") == "@c.txt"
    (tmp_path / "bin").write_bytes(b"\0\1")
    assert expand_mentions("@bin", tmp_path, FileAccess([tmp_path]))[1] == ["bin: neither text nor an image"]


def test_project_files_respect_gitignore_with_and_without_git(tmp_path: Path) -> None:
    for name in ("keep.py", "build/out.o", "src/.gitignore", "src/a.py", "src/gen.py", "node_modules/x.js"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("gen.py\n" if name.endswith(".gitignore") else "")
    (tmp_path / ".gitignore").write_text("build/\nnode_modules/\n")
    expected = [".gitignore", "keep.py", "src/.gitignore", "src/a.py"]
    assert project_files(tmp_path) == expected
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    assert project_files(tmp_path) == expected


def test_numbers_for_people() -> None:
    assert [numbers.tokens(n, False) for n in (None, 0, 999, 1000, 84_200, 999_949, 1_200_000)] == [
        *("?", "0", "999", "1k", "84.2k", "999.9k", "1.2M")
    ]
    assert numbers.tokens(84_200, approximate=True) == "~84.2k"
    assert [numbers.money(n) for n in (None, 0.0, 0.0042, 0.42, 12.0)] == ["$?", "$0", "$0.0042", "$0.42", "$12.00"]
    assert [numbers.age(0, now) for now in (5, 300, 7200, 172_800)] == ["now", "5 min", "2 h", "2 d"]


async def test_what_the_sandbox_enforces_fits_on_80_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = FakeAgent(tmp_path)
    words = "look (bubblewrap and Landlock): " + ", ".join(["writes nothing but private temporary files"] * 5)

    async def lines() -> list[str]:
        return ["bubblewrap", words]

    monkeypatch.setattr(agent.project, "sandbox_lines", lines)
    shown = await run(agent, "/status")
    assert isinstance(shown, Info)
    laid = ["".join(text for text, _ in line.pieces) for line in layout(shown, 72)]
    assert max(map(len, laid)) <= 72
    assert " ".join(" ".join(laid).split()).endswith(f"Sandbox bubblewrap {words}")
