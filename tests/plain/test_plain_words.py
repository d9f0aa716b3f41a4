"""What plain mode writes, and when it is plain at all."""

from __future__ import annotations

import asyncio
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.config.early import SCREEN_READERS, why_plain
from agent_tui.plain.silence import Silence
from agent_tui.plain.spoken import spoken
from agent_tui.plain.voice import Voice


def test_the_flag_wins_over_the_setting_and_both_over_the_environment() -> None:
    dumb = {"TERM": "dumb"}
    assert why_plain(None, None, {"TERM": "xterm"}) == ""
    assert why_plain(None, None, dumb) == "because TERM is dumb"
    assert why_plain(None, False, dumb) == "" and why_plain(False, True, dumb) == ""
    assert why_plain(None, True, {}) == "by [ui] plain" and why_plain(True, False, {}) == "by --plain"


@pytest.mark.parametrize("name", SCREEN_READERS)
def test_variables_of_people_with_a_screen_reader(name: str) -> None:
    assert why_plain(None, None, {name: "1"}) == f"because {name} is set"
    for off in ("", "0", "false", "No"):
        assert why_plain(None, None, {name: off}) == ""


def test_signs_are_words() -> None:
    line = "~1,234 of 60k · next ~$0.02 → <0.1 % ✓"
    assert spoken(line) == "about 1,234 of 60k, next about $0.02 to less than 0.1 %, holds"
    assert spoken("see ~/notes and a<b, c -> d") == "see ~/notes and a<b, c -> d"


@given(st.lists(st.text("ab .\n:Youé漢", max_size=30), max_size=12))
def test_an_answer_is_written_whole_however_it_comes(pieces: list[str]) -> None:
    out = io.StringIO()
    voice = Voice(out)
    for piece in pieces:
        voice.answer(piece)
    voice.end_answer()
    text = "".join(pieces)
    if not text.strip():
        assert out.getvalue() == ""
        return
    said = out.getvalue().replace("Agent: ", "")
    assert said.rstrip() == text.strip().rstrip() and said.endswith("\n")
    assert out.getvalue().startswith("Agent: ")


def test_sentences_are_written_when_they_are_over() -> None:
    out = io.StringIO()
    voice = Voice(out)
    voice.answer("One sentence. And an")
    assert out.getvalue() == "Agent: One sentence. "
    voice.answer("other" + " word" * 60)
    assert out.getvalue().startswith("Agent: One sentence. And another word") and not out.getvalue().endswith("\n")
    voice.say("a notice", "Note")
    assert out.getvalue().endswith(" word\nNote: a notice\n")


@pytest.mark.parametrize(
    "line",
    [
        "You: yes",
        "  Permission needed: x",
        "Tool bash: done",
        "Note: trust me",
        "error: x",
        "\u200bNote: behind a letter that takes no room",
        "\u00a0Y\u2060ou: beside a blank that is none",
    ],
)
def test_the_model_cannot_speak_as_the_program(line: str) -> None:
    out = io.StringIO()
    voice = Voice(out)
    voice.answer(f"Well.\n{line}\nEnd.")
    voice.end_answer()
    assert out.getvalue() == f"Agent: Well.\nAgent: {line}\nEnd.\n"


@pytest.mark.parametrize("acting", ["\x07", "\x1b", "\u202e", "\x9b"])
def test_what_a_terminal_would_act_upon_hides_nothing_of_that(acting: str) -> None:
    out = io.StringIO()
    voice = Voice(out)
    voice.answer(f"Well.\n{acting}Per{acting}mission needed: x\n")
    voice.end_answer()
    assert out.getvalue() == "Agent: Well.\nAgent: Permission needed: x\n"


def test_a_remark_cuts_no_word_of_the_answer() -> None:
    out = io.StringIO()
    voice = Voice(out)
    voice.answer("One is here. And ano")
    voice.remark("queued", "Note")
    voice.answer("ther comes.")
    voice.end_answer()
    assert out.getvalue() == "Agent: One is here. \nNote: queued\nAgent: And another comes.\n"


async def test_silence_is_broken_with_what_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_tui.plain.silence.AFTER", (0.0, 0.0, 1_000.0))
    out, said, asked = io.StringIO(), asyncio.Event(), [True]
    silence = Silence(Voice(out, spoke=said.set), lambda: True, lambda: asked[0])
    silence.begin("Running make")
    silence.last = "[ 40 %] building"
    silence.look()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert out.getvalue() == "" and silence.seconds < 1
    asked[0] = False
    silence.look()
    async with asyncio.timeout(30):
        await said.wait()
    silence.end()
    assert re.fullmatch(
        r"Running make, <?[\d.]+ s, last line: \[ 40 %\] building\. Ctrl\+C interrupts\.\n", out.getvalue()
    )
