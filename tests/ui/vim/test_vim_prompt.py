"""Vim's keys on the prompt of the running screen."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events

from agent_tui.config import Settings, UiConfig
from agent_tui.models.events import TurnStarted
from agent_tui.ui.screens.help import HelpScreen
from agent_tui.ui.screens.sessions import RewindPicker
from tests.support.app import Running, running

VIM = Settings(ui=UiConfig(vim=True))


async def keys(run: Running, text: str) -> None:
    """Types characters; ``<`` … ``>`` is a key by its name."""
    while text:
        if text[0] == "<":
            name, _, text = text[1:].partition(">")
            await run.pilot.press(name)
        else:
            await run.pilot.press(text[0])
            text = text[1:]
    await run.pilot.pause()


@pytest.mark.quick
async def test_modes_are_shown_with_what_is_pending(tmp_path: Path) -> None:
    async with running(tmp_path, settings=VIM) as run:
        assert "INSERT" in run.shown()
        await keys(run, "one two three<escape>")
        assert "NORMAL" in run.shown()
        await keys(run, "2d")
        assert "NORMAL 2d" in run.shown()
        await keys(run, "b")
        assert run.app.prompt.text == "one e"
        assert "2d" not in run.shown()
        await keys(run, "v")
        assert "VISUAL" in run.shown()
        await keys(run, "V")
        assert "V-LINE" in run.shown()


@pytest.mark.slow
async def test_enter_sends_in_every_mode_and_typing_begins_anew(tmp_path: Path) -> None:
    async with running(tmp_path, settings=VIM) as run:
        await keys(run, "one<ctrl+j>two<escape>ggx<enter>")
        await run.until(lambda: run.agent.called("submit"))
        assert run.agent.called("submit") == [("ne\ntwo", [])]
        assert "INSERT" in run.shown()
        await keys(run, "x<escape>u")
        assert run.app.prompt.is_empty


async def test_one_stay_in_insert_mode_is_one_step_of_undo(tmp_path: Path) -> None:
    async with running(tmp_path, settings=VIM) as run:
        await keys(run, "first<escape>o<ctrl+j>second<backspace><backspace>x<escape>")
        assert run.app.prompt.text == "first\n\nsecox"
        await keys(run, "u")
        assert run.app.prompt.text == "first"
        await keys(run, "<ctrl+r>")
        assert run.app.prompt.text == "first\n\nsecox"
        await keys(run, "<ctrl+underscore><ctrl+underscore>")
        assert run.app.prompt.is_empty


@pytest.mark.slow
async def test_what_came_from_outside_can_be_undone_as_well(tmp_path: Path) -> None:
    async with running(tmp_path, settings=VIM) as run:
        await keys(run, "keep this<escape><ctrl+c>")
        assert run.app.prompt.is_empty
        await keys(run, "u")
        assert run.app.prompt.text == "keep this"


@pytest.mark.slow
async def test_the_repeated_change_types_again_what_was_typed(tmp_path: Path) -> None:
    async with running(tmp_path, settings=VIM) as run:
        await keys(run, "a b c<escape>0cwlong<escape>w.w.")
        assert run.app.prompt.text == "long long long"


async def test_j_and_k_go_through_the_history_at_the_ends(tmp_path: Path) -> None:
    async with running(tmp_path, settings=VIM) as run:
        await keys(run, "older<enter>newer<enter>mine<escape>")
        await keys(run, "k")
        assert run.app.prompt.text == "newer"
        await keys(run, "k")
        assert run.app.prompt.text == "older"
        await keys(run, "jj")
        assert run.app.prompt.text == "mine"


@pytest.mark.slow
async def test_escape_leaves_first_and_interrupts_then(tmp_path: Path) -> None:
    async with running(tmp_path, settings=VIM) as run:
        run.agent.turns.busy = True
        run.agent.publish(TurnStarted())
        await keys(run, "more<escape>")
        assert not run.agent.called("interrupt")
        await keys(run, "d<escape>")
        assert not run.agent.called("interrupt")
        await keys(run, "<escape>")
        assert len(run.agent.called("interrupt")) == 1
        run.agent.turns.busy = True
        await keys(run, "cc<escape>")
        assert len(run.agent.called("interrupt")) == 2, "on an empty prompt there is nothing to leave"


async def test_escape_twice_on_empty_goes_back_as_without_vim(tmp_path: Path) -> None:
    from agent_tui.models.messages import user_message

    async with running(tmp_path, settings=VIM) as run:
        run.agent.conversation.path.append(user_message("one"))
        await keys(run, "<escape><escape>")
        await run.screen(RewindPicker)


@pytest.mark.slow
async def test_on_an_empty_prompt_the_signs_mean_what_they_always_do(tmp_path: Path) -> None:
    async with running(tmp_path, settings=VIM) as run:
        await keys(run, "<escape>/")
        assert run.app.prompt.text == "/"
        assert "INSERT" in run.shown()
        await keys(run, "<escape>dd?")
        await run.screen(HelpScreen)


async def test_a_slash_in_text_searches_the_transcript(tmp_path: Path) -> None:
    async with running(tmp_path, settings=VIM) as run:
        await keys(run, "text<escape>/")
        await run.until(lambda: run.app.query("FindBar"))
        assert run.app.prompt.text == "text"


async def test_what_is_selected_is_copied_whole(tmp_path: Path) -> None:
    async with running(tmp_path, settings=VIM) as run:
        await keys(run, "one two<escape>0ve<ctrl+c>")
        assert run.app.clipboard == "one"
        await keys(run, '<escape>w"+yiw')
        assert run.app.clipboard == "two"
        await keys(run, '0"+P')
        await run.until(lambda: run.app.prompt.text == "twoone two")


@pytest.mark.slow
async def test_no_proposals_open_while_the_cursor_only_passes(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x")
    async with running(tmp_path, settings=VIM) as run:
        await keys(run, "see @a")
        await run.until(lambda: run.app.completions.open)
        await keys(run, "<escape>")
        assert not run.app.completions.open
        await keys(run, "hl")
        assert not run.app.completions.open


async def test_the_command_switches_while_the_program_runs(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        assert "INSERT" not in run.shown()
        await keys(run, "/vim on <enter>")
        await run.until(lambda: run.app.prompt.vim)
        await keys(run, "abc<escape>x")
        assert run.app.prompt.text == "ab"
        await keys(run, "dd/vim<enter>")
        await run.until(lambda: run.app.prompt.vim is None)
        await run.pilot.pause()
        assert "NORMAL" not in run.shown() and "INSERT" not in run.shown()
        await keys(run, "dd")
        assert run.app.prompt.text == "dd"


@pytest.mark.slow
async def test_characters_typed_elsewhere_are_keys_too(tmp_path: Path) -> None:
    async with running(tmp_path, settings=VIM) as run:
        await keys(run, "abc<escape>")
        run.app.transcript.focus()
        await keys(run, "x")
        assert run.app.prompt.text == "ab"


PASTED: list[tuple[str, str | None]] = [
    ("hhP", None),
    ("x", "see  now"),
    ("db", "see  now"),
    ("ciwX<escape>", "see X now"),
    ("hhrZ", None),
    ("hh~", None),
    ("dd", ""),
]


async def test_a_long_paste_goes_whole_or_stays(tmp_path: Path) -> None:
    long = "line\n" * 30
    async with running(tmp_path, settings=VIM) as run:
        await keys(run, 'z<escape>yl"_dd')
        for typed, left in PASTED:
            run.app.prompt.set_text("see  now")
            await keys(run, "0ea<right>")
            run.app.prompt.post_message(events.Paste(long))
            await run.until(lambda: "[Pasted" in run.app.prompt.text)
            before = run.app.prompt.text
            await keys(run, f"<escape>{typed}")
            text = run.app.prompt.text
            assert run.app.prompt.placeholders.expand(text)[0].count("line\n") in (0, 30), typed
            if left is None:
                assert text == before, typed
                continue
            assert not left or text == left, typed
            await keys(run, "u")
            assert long in run.app.prompt.whole_text, typed
