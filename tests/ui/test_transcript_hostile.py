"""Hostile text reaches the screen as visible characters or not at all."""

from __future__ import annotations

import pytest

from agent_tui.models.messages import Message, ReasoningPart, ToolCallPart, ToolResultPart, user_message
from agent_tui.models.requests import Delta
from agent_tui.text.clean import drawable
from agent_tui.ui.flow.layout import MAX_LINE
from agent_tui.ui.transcript.face import FaceBlock, FirstStep
from tests.support.forms import one_of
from tests.ui.transcripts import Holder, answer, screen

pytestmark = pytest.mark.quick

NASTY = (
    "\x1b[2J\x1b]0;title\x07\x1b]52;c;aGk=\x07\x1b]8;;http://evil\x1b\\x\x00\x08\x7f\x9b31m\u202eabc\u2066\ud800\t"
    "[bold red]markup[/] {{x}} [@click=app.quit]q[/] &#27;[31m &#x202e;"
)


def active(text: str) -> list[str]:
    return [c for c in text if ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c in "\u202e\u2066" or "\ud800" <= c <= "\udfff"]


@pytest.mark.parametrize("width", [20, 80])
async def test_no_control_character_reaches_the_screen(width: int) -> None:
    app = Holder()
    async with app.run_test(size=(width, 80)) as pilot:
        t = app.transcript
        call = ToolCallPart("c\x1b", f"na{NASTY}me", '{"path": "a\x1b[31m"}')
        table = f"| {NASTY} | b |\n|---|---|\n| {NASTY} | c |"
        source = (
            f"# {NASTY}\n\n- {NASTY}\n\n> {NASTY}\n\n```{NASTY}\n{NASTY}\n```\n\n{table}\n\n<b {NASTY}>\n\n`{NASTY}`"
        )
        display = {"kind": "diff", "text": f"--- {NASTY}\n+{NASTY}"}
        todo = {"kind": "list", "items": [{"text": NASTY, "status": "pending"}]}
        t.load(
            [
                user_message(NASTY),
                answer(source, "m", ReasoningPart(NASTY), call),
                Message("r", "tool", [ToolResultPart("c\x1b", "x", NASTY, is_error=True, display=display)]),
                answer("", "l", ToolCallPart("list", "todo", "{}")),
                Message("s", "tool", [ToolResultPart("list", "todo", "", display=todo)]),
                Message("f", "assistant", [], "failed", note=NASTY),
            ]
        )
        t.add_notice("error", NASTY)
        t.show_block(FaceBlock(NASTY, [NASTY], [FirstStep(NASTY, NASTY)], NASTY, small=False))
        t.tool_started("other", NASTY)
        t.tool_output("other", NASTY)
        t.toggle_reasoning()
        t.toggle_tools()
        await pilot.pause()
        t.scroll_home(animate=False)
        await pilot.pause()
        seen = 0
        while True:
            for line in screen(t):
                assert active(line) == []
                seen += "[bold" in line
            for y in range(t.size.height):
                for segment in t.render_line(y):
                    assert segment.style is None or segment.style.link is None or segment.style.link.startswith("http")
            if t.is_vertical_scroll_end:
                break
            t.scroll_page_down(animate=False)
            await pilot.pause()
        assert seen
        app.export_screenshot()


def test_what_is_harmless_is_left_alone() -> None:
    text = "tabs\tand\nlines, ünïcödé, שלום \u200f, 👩‍👩‍👧, e\u0301"
    assert drawable(text) == text
    assert drawable("a\x1bb\x00c\x7f") == "a␛b␀c␡"


HUGE = {
    "unbroken": lambda: "x" * 3_000_000,
    "words": lambda: "word " * 2_000_000,
    "null bytes": lambda: "a\x00" * 1_000_000,
    "wide": lambda: "日本" * 1_000_000,
}


@pytest.mark.parametrize("kind", one_of(HUGE))
async def test_a_huge_line_is_shown_as_far_as_it_makes_sense(kind: str) -> None:
    text = HUGE[kind]()
    app = Holder()
    async with app.run_test(size=(80, 20)) as pilot:
        t = app.transcript
        t.load(
            [
                user_message(text),
                answer(text, "m"),
                Message("a", "assistant", [ToolCallPart("c", "bash", "{}")]),
                Message("r", "tool", [ToolResultPart("c", "bash", text)]),
            ]
        )
        await pilot.pause()
        screen(t)
        t.toggle_tools()
        await pilot.pause()
        assert "more characters" in "".join(line.removeprefix("    │ ") for line in screen(t))
        t.scroll_home(animate=False)
        await pilot.pause()
        screen(t)
        assert t.last_answer() is text or t.last_answer() == text
        assert t.virtual_size.height < 4 * MAX_LINE


@pytest.mark.slow
async def test_many_lines_of_markdown_are_capped_visibly() -> None:
    app = Holder()
    async with app.run_test(size=(80, 20)) as pilot:
        t = app.transcript
        t.load([answer("a line of text\n\n" * 150_000)])
        await pilot.pause()
        assert "more characters" in screen(t)[-1]


MALFORMED = {
    "stars": "*" * 5_000,
    "brackets": "[" * 5_000,
    "quotes": ">" * 2_000 + " x",
    "lists": "- " * 2_000,
    "backticks": "`" * 4_001,
    "lines": "a\n" * 5_000,
    "images": "![" * 3_000,
    "pipes": "|" * 4_000,
    "table": "| a |\n|---|\n" + "| x |\n" * 2_000,
    "open emphasis": "*a _b " * 1_000,
    "tags": "<" * 5_000,
    "entities": "&" * 5_000,
    "address": "[a](http://[x)",
    "definition": "[x]: <\n\n[x]",
}


async def test_malformed_markdown_is_survived() -> None:
    app = Holder()
    async with app.run_test(size=(60, 20)) as pilot:
        t = app.transcript
        for kind, source in MALFORMED.items():
            t.clear()
            t.begin_answer(Message(kind, "assistant", status="streaming"))
            for at in range(0, len(source), 999):
                t.apply_delta(kind, Delta(0, "text", source[at : at + 999]))
            t._frame()
            t.end_answer(answer(source, kind))
            await pilot.pause()
            assert any(line.strip() for line in screen(t)), kind


async def test_events_for_things_that_do_not_exist_are_harmless() -> None:
    app = Holder()
    t = app.transcript
    t.add_message(user_message("before mount"))
    async with app.run_test(size=(60, 20)) as pilot:
        t.apply_delta("nobody", Delta(0, "text", "x"))
        t.end_answer(answer("appeared at its end", "late"))
        t.tool_waiting("none", True)
        t.add_message(Message("r", "tool", [ToolResultPart("orphan", "bash", "out")]))
        await pilot.pause()
        text = "\n".join(screen(t))
        assert "before mount" in text and "appeared at its end" in text and "✓ bash" in text


async def test_any_size() -> None:
    app = Holder()
    async with app.run_test(size=(300, 100)) as pilot:
        t = app.transcript
        t.load(
            [user_message("q"), answer("# x\n\n- a\n\n```py\nx\n```\n\n|a|b|\n|-|-|\n|1|2|", "m", ReasoningPart("y"))]
        )
        t.toggle_reasoning()
        for size in ((300, 100), (20, 5), (3, 2), (1, 1)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            screen(t)
