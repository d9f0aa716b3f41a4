"""The prompt's helpers: completion, pastes, files, shell lines, commands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from textual import events

from agent_tui.history import PromptHistory
from agent_tui.models.image_headers import base64_size
from agent_tui.models.messages import AttachmentPart
from agent_tui.text.search import match_paths
from agent_tui.ui.prompt.placeholders import Placeholders, is_long
from agent_tui.ui.screens.context_screen import ContextScreen
from tests.support.app import running
from tests.support.fake_agent import FakeAgent


@pytest.mark.quick
async def test_slash_completes_names_and_arguments(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await run.type("/comp")
        await run.until(lambda: run.app.completions.open)
        assert run.app.completions.proposals[0].label.startswith("/compact")
        await run.pilot.press("tab")
        await run.until(lambda: run.app.prompt.text == "/compact ")
        await run.until(lambda: [p.label for p in run.app.completions.proposals] == ["preview", "show", "undo"])
        await run.pilot.press("down", "down", "down", "tab", "enter")
        await run.until(lambda: run.agent.called("compact_undo"))


@pytest.mark.slow
async def test_enter_runs_a_command_without_an_argument_that_nobody_chose(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        for keys in (["enter"], ["tab", "enter"]):
            await run.type("/conte")
            await run.until(lambda: run.app.completions.open)
            await run.pilot.press(keys[0])
            if len(keys) > 1:
                await run.until(lambda: run.app.completions.open and run.app.prompt.text == "/context ")
                await run.pilot.press(keys[1])
            await run.screen(ContextScreen)
            run.clock.now += 1
            await run.pilot.press("escape")
            await run.until(lambda: len(run.app.screen_stack) == 1)


@pytest.mark.slow
async def test_what_a_command_does_has_room_before_what_it_takes(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await run.pilot.press(*"/comp")
        for width in (60, 80, 120):
            await run.pilot.resize_terminal(width, 24)
            await run.until(lambda: run.app.completions.open and "/compact" in run.shown())
            row = next(line for line in run.shown().splitlines() if "/compact" in line)
            said = "Summarise older messages to make room"
            assert said[: width - 25] in row
            assert "/compact …" in row or "undo" in row, "arguments are whole or left out"


@pytest.mark.slow
async def test_tab_leaves_a_blank_behind_every_command(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await run.type("/clea")
        await run.until(lambda: run.app.completions.open)
        await run.pilot.press("tab", *"x")
        await run.until(lambda: run.app.prompt.text == "/clear x")


@pytest.mark.quick
async def test_at_completes_files_and_attaches_them(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "parser.py").write_text("def parse(): ...\n")
    (tmp_path / ".gitignore").write_text("ignored.py\n")
    (tmp_path / "ignored.py").write_text("")
    async with running(tmp_path) as run:
        await run.type("look at @prs")
        await run.until(lambda: run.app.completions.open)
        assert [p.label for p in run.app.completions.proposals] == ["src/parser.py"]
        await run.pilot.press("tab")
        await run.until(lambda: run.app.prompt.text == "look at @src/parser.py ")
        await run.pilot.press("enter")
        await run.until(lambda: run.agent.called("submit"))
        text, attachments = run.agent.called("submit")[0]
        assert text == "look at @src/parser.py "
        assert [(a.name, a.text) for a in attachments] == [("src/parser.py", "def parse(): ...\n")]


@pytest.mark.slow
async def test_escape_closes_the_popup_and_it_stays_closed(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await run.type("/he")
        await run.until(lambda: run.app.completions.open)
        await run.pilot.press("escape")
        await run.pilot.pause()
        assert not run.app.completions.open
        assert run.app.prompt.text == "/he"


@pytest.mark.quick
async def test_long_paste_becomes_a_placeholder_and_is_sent_whole(tmp_path: Path) -> None:
    pasted = "\n".join(f"line {i}" for i in range(40))
    async with running(tmp_path) as run:
        run.app.prompt.post_message(events.Paste(pasted.replace("\n", "\r\n")))
        await run.until(lambda: not run.app.prompt.is_empty)
        assert run.app.prompt.text == "[Pasted text #1 · 40 lines]"
        await run.type(" see")
        await run.pilot.press("enter")
        await run.until(lambda: run.agent.called("submit"))
        assert run.agent.called("submit")[0][0] == pasted + " see"


async def test_backspace_removes_a_placeholder_at_once(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        run.app.prompt.post_message(events.Paste("x" * 5000))
        await run.until(lambda: not run.app.prompt.is_empty)
        await run.pilot.press("backspace")
        await run.pilot.pause()
        assert run.app.prompt.is_empty


async def test_dropped_images_become_images(tmp_path: Path) -> None:
    for name in ("a b.png", "it's.png"):
        (tmp_path / name).write_bytes(b"\x89PNG\r\n\x1a\nrest")
    (tmp_path / "notes.txt").write_text("x")
    text = f"'{tmp_path}/a b.png' file://{tmp_path}/it%27s.png {tmp_path}/notes.txt"
    async with running(tmp_path) as run:
        run.app.prompt.post_message(events.Paste(text))
        await run.until(lambda: not run.app.prompt.is_empty)
        assert run.app.prompt.text == f"[Image #1] [Image #2] @{tmp_path}/notes.txt"


@pytest.mark.slow
async def test_what_was_changed_in_the_history_stays_changed_until_something_is_sent(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        prompt = run.app.prompt
        for sent in ("one", "two"):
            prompt.history_file.add(sent)
        await run.type("draft")
        seen = []
        for key in ("up", "!", "up", "?", "down", "down", "up"):
            await run.pilot.press(key)
            await run.pilot.pause()
            seen.append(prompt.text)
        assert seen == ["two", "two!", "one", "one?", "two!", "draft", "two!"]
        await run.pilot.press("enter")
        await run.until(lambda: run.agent.called("submit"))
        await run.pilot.press("up")
        await run.pilot.press("up")
        assert prompt.text == "two"


@pytest.mark.slow
async def test_pasted_image_path_becomes_the_image(tmp_path: Path) -> None:
    image = tmp_path / "shot.png"
    image.write_bytes(b"\x89PNG\r\n\x1a\nrest")
    async with running(tmp_path) as run:
        run.app.prompt.post_message(events.Paste(str(image)))
        await run.until(lambda: not run.app.prompt.is_empty)
        await run.type(" what is this")
        await run.pilot.press("enter")
        await run.until(lambda: run.agent.called("submit"))
        _, attachments = run.agent.called("submit")[0]
        assert [(a.media_type, a.name) for a in attachments] == [("image/png", "shot.png")]


@pytest.mark.slow
async def test_an_image_that_is_too_large_is_scaled_and_it_is_said(tmp_path: Path) -> None:
    image = tmp_path / "shot.png"
    Image.new("RGB", (4_000, 1_000), "navy").save(image)
    async with running(tmp_path) as run:
        run.app.prompt.post_message(events.Paste(str(image)))
        await run.until(lambda: not run.app.prompt.is_empty)
        await run.pilot.press("enter")
        await run.until(lambda: run.agent.called("submit"))
        _, (attachment,) = run.agent.called("submit")[0]
        assert base64_size(attachment.data or "") == (2_000, 500)
        await run.until(lambda: "shot.png scaled from 4000×1000 to 2000×500" in run.shown())


@pytest.mark.quick
async def test_exclamation_mark_runs_in_the_shell(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await run.type("!git status")
        await run.pilot.press("enter")
        await run.until(lambda: run.agent.called("shell"))
        assert run.agent.called("shell") == ["git status"]


async def test_unknown_command_names_the_nearest(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await run.type("/contextt")
        await run.pilot.press("enter")
        await run.until(lambda: "/context" in run.shown())
        assert not run.agent.called("submit")


async def test_a_path_is_a_message_not_a_command(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await run.type("/usr/bin is full")
        await run.pilot.press("enter")
        await run.until(lambda: run.agent.called("submit"))


@pytest.mark.quick
def test_placeholders_round_trip() -> None:
    kept = Placeholders()
    long = "a" * 2000
    name = kept.collapse(long)
    image = kept.image(AttachmentPart("a.png", "image/png", data="eA=="))
    assert kept.expand(f"{name} and {image} [Pasted text #9 · 3 lines]") == (
        f"{long} and {image} [Pasted text #9 · 3 lines]",
        [AttachmentPart("a.png", "image/png", data="eA==")],
        [[0, 2000]],
    )
    assert kept.collapse("short") == "short"
    assert is_long("x\n" * 16) and not is_long("x\n" * 15) and not is_long("x" * 1000)


@pytest.mark.quick
def test_file_matching_prefers_names_over_paths_over_scattered_letters() -> None:
    paths = ["docs/parser.md", "src/a/parse.py", "parser/z.txt", "src/other.py", "p/a/r/s/e.txt"]
    found = match_paths("parse", paths)
    assert found[:2] == ["docs/parser.md", "src/a/parse.py"]
    assert found[2] == "parser/z.txt"
    assert "src/other.py" not in found
    assert "p/a/r/s/e.txt" in match_paths("prse", paths)


@pytest.mark.quick
def test_history_is_per_project_and_survives_broken_lines(tmp_path: Path) -> None:
    one = PromptHistory(tmp_path, "/one")
    one.add("hello")
    one.add("hello")
    PromptHistory(tmp_path, "/two").add("other")
    with one.path.open("a") as file:
        file.write("not json\n[1]\n")
    again = PromptHistory(tmp_path, "/one")
    assert again.entries == ["hello"]
    assert (one.path.stat().st_mode & 0o777) == 0o600
    again.save_draft("draft")
    assert PromptHistory(tmp_path, "/one").load_draft() == "draft"
    assert PromptHistory(tmp_path, "/two").load_draft() == ""


def test_the_draft_of_a_window_that_runs_is_not_shown_in_another(tmp_path: Path) -> None:
    held = (
        "import sys, pathlib; from agent_tui.history import PromptHistory\n"
        "kept = PromptHistory(pathlib.Path(sys.argv[1]), '/one'); kept.save_draft('theirs')\n"
        "print('ready', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", held, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout is not None and other.stdout.readline() == b"ready\n"
            mine = PromptHistory(tmp_path, "/one")
            assert mine.load_draft() == ""
            mine.save_draft("mine")
        finally:
            other.kill()
    assert mine.load_draft() == "mine"
    assert PromptHistory(tmp_path, "/one").load_draft() == "theirs", "what a crash left is brought back"


@pytest.mark.quick
async def test_hostile_titles_and_names_are_text(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    agent.conversation.info.title = "[red]x[/red] \x1b]2;evil\x07\x1b[31m"
    agent.project.branch = "[bold]\x1b[2Jbranch"
    agent.usage.model = "[link=javascript:1]m\x00odel"
    async with running(tmp_path, agent, size=(140, 30)) as run:
        assert "[bold][2Jbranch" in run.shown()
        assert "\x1b" not in run.shown()
        run.app.open_screen("context")
        await run.until(lambda: "[link=javascript:1]model" in run.shown())


@pytest.mark.slow
async def test_enter_takes_no_proposal_that_was_made_for_fewer_letters(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await run.type("/")
        await run.until(lambda: run.app.completions.open)
        prompt = run.app.prompt
        # The next letters and Enter arrive before anything new was proposed.
        prompt.insert_text("model gpt")
        prompt.action_send()
        await run.until(lambda: run.agent.called("set_model"))
        assert run.agent.called("set_model") == ["gpt"]
        assert len(run.app.screen_stack) == 1


@pytest.mark.slow
async def test_resources_of_mcp_servers_complete_after_the_sign(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    agent.project.resources = [("docs:file:///guide", "The guide"), ("docs:two words", "cannot be named")]
    async with running(tmp_path, agent) as run:
        await run.type("read @docs:")
        await run.until(lambda: run.app.completions.open)
        assert [p.label for p in run.app.completions.proposals] == ["docs:file:///guide"]
        assert "The guide" in run.shown()
        await run.pilot.press("tab")
        await run.pilot.pause()
        assert run.app.prompt.text == "read @docs:file:///guide "


@pytest.mark.slow
async def test_a_completed_file_takes_lines_or_words_as_they_are_typed(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "parser.py").write_text("one\ntwo\nthree\nfour\n")
    async with running(tmp_path) as run:
        for typed, text in (
            (":2-3 why", "see @src/parser.py:2-3 why"),
            (" why", "see @src/parser.py why"),
            ("why", "see @src/parser.py why"),
            (", then", "see @src/parser.py, then"),
        ):
            run.agent.calls.clear()
            await run.type("see @pars")
            await run.until(lambda: run.app.completions.open)
            await run.pilot.press("tab")
            await run.type(typed)
            assert run.app.prompt.text == text
            await run.pilot.press("enter")
            await run.until(lambda: run.agent.called("submit"))
            attachment = run.agent.called("submit")[0][1][0]
            assert attachment.text == ("two\nthree\n" if ":" in typed else "one\ntwo\nthree\nfour\n")
            run.agent.turns.busy = False


async def test_up_after_clearing_begins_at_the_newest(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        for text in ("first", "second"):
            await run.type(text)
            await run.pilot.press("enter")
        await run.pilot.press("up", "up")
        assert run.app.prompt.text == "first"
        await run.pilot.press("ctrl+c", "up")
        assert run.app.prompt.text == "second", "what was cleared came from the history itself"
        await run.pilot.press("ctrl+c")
        await run.type("not sent yet")
        await run.pilot.press("ctrl+c")
        await run.pilot.pause()
        assert run.app.prompt.is_empty
        await run.pilot.press("up")
        assert run.app.prompt.text == "not sent yet"
        await run.pilot.press("up")
        assert run.app.prompt.text == "second"
        await run.pilot.press("down", "enter")
        await run.until(lambda: len(run.agent.called("submit")) == 3)
        lines = (run.agent.paths.state / "history.jsonl").read_text().splitlines()
        assert [json.loads(line)["text"] for line in lines] == ["first", "second", "not sent yet"]
