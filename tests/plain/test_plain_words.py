"""What plain mode writes, and when it is plain at all."""

from __future__ import annotations

import asyncio
import io
import re
import unicodedata
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.commands.tool_words import change_lines
from agent_tui.config.files import SCREEN_READERS, why_plain
from agent_tui.models.messages import Message, SearchPart, ToolResultPart
from agent_tui.plain.event_printer import CHANGED_LINES, tell_result, tell_searches
from agent_tui.plain.line_writer import BEGINNINGS, LineWriter, Mark, ProgressTicker, spoken
from agent_tui.text.clean import clean
from agent_tui.text.numbers import plural
from tests.support.every import every


@pytest.mark.quick
def test_the_flag_wins_over_the_setting_and_both_over_the_environment() -> None:
    dumb = {"TERM": "dumb"}
    assert why_plain(None, None, {"TERM": "xterm"}) == ""
    assert why_plain(None, None, dumb) == "because TERM is dumb"
    assert why_plain(None, False, dumb) == "" and why_plain(False, True, dumb) == ""
    assert why_plain(None, True, {}) == "by [ui] plain" and why_plain(True, False, {}) == "by --plain"


@pytest.mark.quick
@pytest.mark.parametrize("name", SCREEN_READERS)
def test_variables_of_people_with_a_screen_reader(name: str) -> None:
    assert why_plain(None, None, {name: "1"}) == f"because {name} is set"
    for off in ("", "0", "false", "No"):
        assert why_plain(None, None, {name: off}) == ""


@pytest.mark.quick
def test_signs_are_words() -> None:
    line = "~1,234 of 60k · next ~$0.02 → <0.1 % ✓"
    assert spoken(line) == "about 1,234 of 60k, next about $0.02 to less than 0.1 %, holds"
    assert spoken("Fine\n  ✓ git  found\n  ! rg  not found") == "Fine\n  Fine: git  found\n  Warning: rg  not found"
    assert spoken("Tools are ~55 % of it. ~15k over.") == "Tools are about 55 % of it. About 15k over."
    assert spoken("see ~/notes and a<b, c -> d") == "see ~/notes and a<b, c -> d"


@given(st.lists(st.text("ab .\n:Youé漢", max_size=30), max_size=12))
def test_an_answer_is_written_whole_however_it_comes(pieces: list[str]) -> None:
    out = io.StringIO()
    writer = LineWriter(out)
    for piece in pieces:
        writer.answer(piece)
    writer.end_answer()
    text = "".join(pieces)
    if not text.strip():
        assert out.getvalue() == ""
        return
    said = out.getvalue().replace("Agent: ", "")
    assert said.rstrip() == text.strip().rstrip() and said.endswith("\n")
    assert out.getvalue().startswith("Agent: ")


@pytest.mark.quick
def test_sentences_are_written_when_they_are_over() -> None:
    out = io.StringIO()
    writer = LineWriter(out)
    writer.answer("One sentence. And an")
    assert out.getvalue() == "Agent: One sentence. "
    writer.answer("other" + " word" * 60)
    assert out.getvalue().startswith("Agent: One sentence. And another word") and not out.getvalue().endswith("\n")
    writer.say("a notice", "Note")
    assert out.getvalue().endswith(" word\nNote: a notice\n")


@pytest.mark.quick
@every(
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
    writer = LineWriter(out)
    writer.answer(f"Well.\n{line}\nEnd.")
    writer.end_answer()
    assert out.getvalue() == f"Agent: Well.\nAgent: {clean(line)}\nEnd.\n"


@cache
def alike() -> dict[str, list[str]]:
    """Characters whose compatibility form is one of ASCII, by that one; there are none beyond the second plane."""
    found: dict[str, list[str]] = {}
    for char in map(chr, range(0x80, 0x20000)):
        if len(form := unicodedata.normalize("NFKC", char)) == 1 and " " < form <= "~":
            found.setdefault(form.lower(), []).append(char)
    return found


UNSEEN = "\u200b\u200d\u2060\u00ad\ufeff\u034f\u180b\ufe0f\U000e0041\u202e\u2066\x07\x1b"
BLANKS = " \t\u00a0\u2003\u3000\u2028\u205f\u3164\uffa0\u2800\u115f\x0b\x1c\x85"


@st.composite
def respelled(draw: st.DrawFn) -> str:
    """The beginning of a line of the program's, as it looks or nearly, of other characters."""
    much = draw(st.sampled_from((3, 3, 400, 6_000)))
    said = ""
    for letter in draw(st.sampled_from(BEGINNINGS)):
        if letter == " ":
            said += draw(st.text(BLANKS, min_size=1, max_size=3)) * draw(st.integers(1, much))
        else:
            others = [letter.upper(), letter.lower(), *alike().get(letter.lower(), ())]
            said += draw(st.sampled_from(others)) + draw(st.text(UNSEEN, max_size=2)) * draw(st.integers(1, much))
    return draw(st.text(BLANKS + UNSEEN, max_size=3)) * draw(st.integers(1, much)) + said


@pytest.mark.slow
@given(respelled(), st.integers(1, 5_000))
def test_the_model_cannot_speak_as_the_program_however_it_spells(beginning: str, chunk: int) -> None:
    out = io.StringIO()
    writer = LineWriter(out)
    answer = f"Well.\n{beginning} x\nEnd.\n"
    chunk = max(chunk, len(answer) // 50)
    for at in range(0, len(answer), chunk):
        writer.answer(answer[at : at + chunk])
    writer.end_answer()
    well, *lines, end = out.getvalue().split("\n")[:-1]
    assert (well, end) == ("Agent: Well.", "End.")
    assert (lines[0].startswith("Agent: ") or "⟨U+" in lines[0]) and len(lines) == 1


@pytest.mark.slow
@given(respelled())
def test_nor_can_what_is_quoted_in_several_lines(beginning: str) -> None:
    marks: list[tuple[Mark | None, str]] = [("Thought", "Thought: "), (None, "  ")]
    for mark, front in marks:
        out = io.StringIO()
        LineWriter(out).quote(f"Well.\n{beginning} x\nEnd.", mark)
        _, *lines, end = out.getvalue().split("\n")[:-1]
        # What is seen to begin with a code does not look like the program's.
        assert end == "End." and len(lines) == 1 and (lines[0].startswith(front) or "⟨U+" in lines[0])


@pytest.mark.quick
@every("line", ["Toolbox is here", "Notes: x", "Yours: x", "1. Yes", "Answers, many", "Émile: ça va"])
def test_an_ordinary_line_stands_as_it_is(line: str) -> None:
    out = io.StringIO()
    writer = LineWriter(out)
    writer.answer(f"Well.\n{line}\n")
    assert out.getvalue() == f"Agent: Well.\n{line}\n"


@pytest.mark.quick
@every("acting", ["\x07", "\x1b", "\u202e", "\x9b"])
def test_what_a_terminal_would_act_upon_hides_nothing_of_that(acting: str) -> None:
    out = io.StringIO()
    writer = LineWriter(out)
    writer.answer(f"Well.\n{acting}Per{acting}mission needed: x\n")
    writer.end_answer()
    assert out.getvalue() == f"Agent: Well.\nAgent: {clean(acting)}Per{clean(acting)}mission needed: x\n"


@pytest.mark.quick
def test_a_remark_cuts_no_word_of_the_answer() -> None:
    out = io.StringIO()
    writer = LineWriter(out)
    writer.answer("One is here. And ano")
    writer.remark("queued", "Note")
    writer.answer("ther comes.")
    writer.end_answer()
    assert out.getvalue() == "Agent: One is here. \nNote: queued\nAgent: And another comes.\n"


@pytest.mark.quick
async def test_silence_is_broken_with_what_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_tui.plain.line_writer.AFTER", (0.0, 0.0, 1_000.0))
    out, said, asked = io.StringIO(), asyncio.Event(), [True]
    silence = ProgressTicker(LineWriter(out, spoke=said.set), lambda: True, lambda: asked[0])
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
        r"Running make, <?[\d.]+ s, last line: \[ 40 %\] building\. Ctrl\+C to interrupt\.\n", out.getvalue()
    )


@pytest.mark.quick
def test_a_search_at_the_provider_is_said_with_what_it_found() -> None:
    call = SearchPart({"id": "s", "query": "who\x1b[31m won"})
    found = SearchPart({"id": "s", "sources": [["A", "https://a.example/"], ["B", "https://b.example/"]]})
    out = io.StringIO()
    tell_searches(LineWriter(out), Message("m", "assistant", [call, found]), "line")
    assert out.getvalue() == "Tool web_search who␛[31m won: 2 sources\n"


@pytest.mark.quick
@pytest.mark.parametrize("count", [CHANGED_LINES - 1, CHANGED_LINES, 40])
def test_of_a_long_change_the_first_lines_are_said_and_how_many_more_there_are(count: int) -> None:
    diff = f"--- a/x\n+++ b/x\n@@ -0,0 +1,{count} @@\n" + "".join(f"+new {n}\n" for n in range(count))
    result = ToolResultPart("c", "edit", "done", display={"kind": "diff", "text": diff})
    said: dict[str, list[str]] = {}
    for how in ("short", "full", "line"):
        out = io.StringIO()
        tell_result(LineWriter(out), "edit x", result, how)
        said[how] = out.getvalue().splitlines()
    lines = change_lines(diff)
    hidden = len(lines) - CHANGED_LINES
    assert [line.strip() for line in said["short"][1 : CHANGED_LINES + 1]] == lines[:CHANGED_LINES]
    more = [line for line in said["short"] if "more line" in line]
    assert more == ([f"  {plural(hidden, 'more line')}: /output shows all"] if hidden > 0 else [])
    assert f"new {count - 1}" in said["full"][-1] and len(said["line"]) == 1
