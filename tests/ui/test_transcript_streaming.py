"""A streamed answer looks like the loaded one, whatever the chunks were; work is bounded."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.models.messages import Message, ReasoningPart, SearchPart, TextPart, ToolCallPart, ToolResultPart
from agent_tui.models.requests import Delta
from agent_tui.ui.markdown.splitter import Splitter
from tests.support.every import every
from tests.support.forms import examples
from tests.ui.transcripts import Holder, answer, body, screen

pytestmark = pytest.mark.quick

TEXTS = {
    "mixed": "# T\n\npara **b**\nmore\n\n- a\n- b\n  - c\n\n  loose\n- d\n\n1. x\n1. y\n\n"
    "```py\nx = '''\n\n'''\n```\nend\n---\nt",
    "setext": "para\n***bold*** on\n\ntitle\n===\n\nx\n-\n\n- a\n\n\n- b\ntext\n",
    "table": "intro\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\nafter\n\n> q\nlazy\n\nend",
    "fence": "```python\n" + "".join(f"x{k} = '{k}'\n" for k in range(350)) + "```\n\nafter",
    "open fence": "~~~\n" + "line\n" * 205,
    "nested fence": "- item\n  ```\n  code\n  ```\n- next\n\n````md\n```\ninner\n```\n````\n",
    "paragraph": "word and more " * 2_000,
    "unbroken": "x" * 20_000,
    "references": "see [a] and [b][c]\n\n- [a]\n\n[a]: https://x.org\n[c]: https://y.org\n\nend",
    "line ends": "a\r\nb\r\n\r\n- c\r- d\r\n",
}


def chunks(text: str, cuts: list[int]) -> list[tuple[object, ...]]:
    splitter = Splitter()
    at = 0
    for cut in [*sorted({min(c, len(text)) for c in cuts}), len(text)]:
        splitter.feed(text[at:cut])
        splitter.rest()
        at = cut
    splitter.finish()
    return [(c.source, c.gap, c.code, c.language, c.first, c.number, c.glue) for c in splitter.done] + [
        tuple(splitter.references)
    ]


@every("name", TEXTS)
@every("size", [1, 3, 7, 50, 1_000])
def test_chunks_do_not_depend_on_how_the_text_arrived(name: str, size: int) -> None:
    text = TEXTS[name]
    if len(text) // size > 3_000:
        pytest.skip("one character at a time is for the short texts")
    assert chunks(text, list(range(0, len(text), size))) == chunks(text, [])


_LINES = st.sampled_from(
    ["", "text", "- item", "  - nested", "  more", "1. one", "2) two", "> quote", "```", "```py", "~~~", "    code",
     "# head", "===", "---", "| a | b |", "|---|---|", "[a]: https://x.org", "<b>", "***", "* star", "\tx"]
)  # fmt: skip


@settings(max_examples=examples(100, 1_000), deadline=None)
@given(st.lists(_LINES, max_size=14), st.lists(st.integers(0, 120), max_size=6))
def test_any_lines_in_any_pieces(lines: list[str], cuts: list[int]) -> None:
    text = "\n".join(lines)
    assert chunks(text, cuts) == chunks(text, [])


async def test_streamed_looks_like_loaded() -> None:
    app = Holder()
    async with app.run_test(size=(60, 50)) as pilot:
        transcript = app.transcript
        for name, text in TEXTS.items():
            transcript.clear()
            transcript.begin_answer(Message("m1", "assistant", status="streaming"))
            for n, at in enumerate(range(0, len(text), max(1, len(text) // 40))):
                transcript.apply_delta("m1", Delta(0, "text", text[at : at + max(1, len(text) // 40)]))
                if n % 5 == 0:
                    transcript._frame()
            transcript.end_answer(answer(text))
            await pilot.pause()
            shown = screen(transcript)
            transcript.load([answer(text)])
            await pilot.pause()
            assert screen(transcript) == shown, name


async def test_all_parts_stream() -> None:
    app = Holder()
    async with app.run_test(size=(70, 30)) as pilot:
        t = app.transcript
        t.begin_answer(Message("m", "assistant", status="streaming"))
        t.apply_delta("m", Delta(0, "reasoning", "thinking hard"))
        await pilot.pause()
        assert "Thinking · ~4 tokens · thinking hard" in body(t)[0]
        t.apply_delta("m", Delta(0, "reasoning", "", closed=True))
        t.apply_delta("m", Delta(1, "text", "Reading *it*"))
        t.apply_delta("m", Delta(2, "tool_call", '{"path":', call_id="c", name="read"))
        t.apply_delta("m", Delta(2, "tool_call", ' "a.py"}'))
        t._frame()
        await pilot.pause()
        assert body(t)[0].startswith("  ▸ Thought")
        assert "  Reading it" in body(t)
        assert "○ read a.py" in body(t)[-1]
        final = Message(
            "m",
            "assistant",
            [ReasoningPart("thinking hard"), TextPart("Reading *it*"), ToolCallPart("c", "read", '{"path": "a.py"}')],
        )
        t.end_answer(final)
        t.tool_started("c", "read a.py")
        await pilot.pause()
        assert "● read a.py" in body(t)[-1]
        t.tool_output("c", "partial")
        t.add_message(Message("r", "tool", [ToolResultPart("c", "read", "1\n2\n3", seconds=1.25)]))
        await pilot.pause()
        assert "✓ read a.py" in body(t)[-1] and "3 lines · 1.2 s" in body(t)[-1]


CALL = {"id": "srvtoolu_1", "query": "who \x1b[31mwon", "item": {}}
SOURCES = [["A", "https://a.example/"], ["B\x1b]0;x\x07", "https://b.example/"]]
FOUND = {"id": "srvtoolu_1", "sources": SOURCES, "item": {}}


async def test_a_search_at_the_provider_is_a_call_with_its_sources() -> None:
    streamed, loaded = Holder(), Holder()
    final = Message("m", "assistant", [SearchPart(CALL), SearchPart(FOUND), TextPart("They won.")])
    async with streamed.run_test(size=(70, 30)) as pilot:
        t = streamed.transcript
        t.begin_answer(Message("m", "assistant", status="streaming"))
        t.apply_delta("m", Delta(0, "search", metadata=CALL | {"query": ""}))
        t._frame()
        await pilot.pause()
        assert body(t)[-1].split() == ["●", "web_search", "▸"]
        t.apply_delta("m", Delta(0, "search", metadata=CALL))
        t.apply_delta("m", Delta(1, "search", metadata=FOUND))
        t.apply_delta("m", Delta(2, "text", "They won."))
        t._frame()
        await pilot.pause()
        assert body(t)[0].startswith("  ✓ web_search who ␛[31mwon") and "2 sources" in body(t)[0]
        t.end_answer(final)
        await pilot.pause()
        shown = screen(t)
    async with loaded.run_test(size=(70, 30)) as pilot:
        loaded.transcript.load([final])
        await pilot.pause()
        assert screen(loaded.transcript) == shown
        loaded.transcript.toggle_tools()
        await pilot.pause()
        text = "\n".join(body(loaded.transcript))
        assert "A · https://a.example/" in text and "https://b.example/" in text and "\x1b" not in text


async def test_what_a_paused_search_found_stands_with_its_call() -> None:
    app = Holder()
    async with app.run_test(size=(70, 30)) as pilot:
        t = app.transcript
        t.begin_answer(Message("m", "assistant", status="streaming"))
        t.apply_delta("m", Delta(0, "search", metadata=CALL))
        t.end_answer(Message("m", "assistant", [SearchPart(CALL)]))
        t.begin_answer(Message("n", "assistant", status="streaming"))
        t.apply_delta("n", Delta(0, "search", metadata=FOUND))
        t.end_answer(Message("n", "assistant", [SearchPart(FOUND), TextPart("They won.")]))
        await pilot.pause()
        (line,) = (line for line in body(t) if "web_search" in line)
        assert line.startswith("  ✓") and "2 sources" in line


async def test_the_final_message_wins() -> None:
    app = Holder()
    async with app.run_test(size=(60, 20)) as pilot:
        t = app.transcript
        t.begin_answer(Message("m", "assistant", status="streaming"))
        t.apply_delta("m", Delta(0, "text", "what was streamed"))
        failed = Message("m", "assistant", [TextPart("what is true")], "failed", note="overloaded")
        t.end_answer(failed)
        await pilot.pause()
        assert body(t) == ["  what is true", "", "  ✗ overloaded"]


async def test_an_interrupted_answer_is_shown_as_such_and_replaced() -> None:
    app = Holder()
    async with app.run_test(size=(60, 20)) as pilot:
        t = app.transcript
        t.begin_answer(Message("m", "assistant", status="streaming"))
        t.apply_delta("m", Delta(0, "reasoning", "hm", closed=True))
        t.apply_delta("m", Delta(1, "text", "half an ans"))
        t.interrupt_answer("m")
        await pilot.pause()
        assert body(t)[-3:] == ["  half an ans", "", "  ! Interrupted. The answer begins again."]
        t.apply_delta("m", Delta(0, "text", "The whole"))
        await pilot.pause()
        assert body(t) == ["  The whole"]
        t.apply_delta("m", Delta(0, "text", " answer."))
        t.end_answer(Message("m", "assistant", [TextPart("The whole answer.")]))
        await pilot.pause()
        assert body(t) == ["  The whole answer."]


async def test_an_interrupted_answer_of_which_nothing_comes_anew_stays() -> None:
    app = Holder()
    async with app.run_test(size=(60, 20)) as pilot:
        t = app.transcript
        t.begin_answer(Message("m", "assistant", status="streaming"))
        t.apply_delta("m", Delta(0, "text", "half an ans"))
        t.interrupt_answer("m")
        t.end_answer(Message("m", "assistant", [TextPart("half an ans")], "failed", note="It broke."))
        await pilot.pause()
        assert body(t) == ["  half an ans", "", "  ✗ It broke."]


async def test_nothing_is_made_of_what_is_folded_or_out_of_view() -> None:
    app = Holder()
    async with app.run_test(size=(60, 10)) as pilot:
        t = app.transcript
        t.load([answer("\n".join(f"line {k}\n" for k in range(50)), "old")])
        await pilot.pause()
        t.scroll_home(animate=False)
        await pilot.pause()
        t.begin_answer(Message("m", "assistant", status="streaming"))
        for _ in range(100):
            t.apply_delta("m", Delta(0, "reasoning", "thought\n\n"))
            t.apply_delta("m", Delta(1, "text", "word\n\n"))
        t._frame()
        await pilot.pause()
        blocks = t.document.entries[-1].blocks
        assert blocks is not None
        assert [block.body._splitter for block in blocks] == [None, None]  # type: ignore[attr-defined]
        total = t.virtual_size.height
        t.scroll_end(animate=False)
        await pilot.pause()
        assert "word" in body(t)[-1]
        assert blocks[0].body._splitter is None  # type: ignore[attr-defined]
        assert t.virtual_size.height == pytest.approx(total, abs=120)


async def test_finished_pieces_are_laid_out_once() -> None:
    app = Holder()
    async with app.run_test(size=(60, 20)) as pilot:
        t = app.transcript
        t.begin_answer(Message("m", "assistant", status="streaming"))
        t.apply_delta("m", Delta(0, "text", "first paragraph\n\nsecond\n\nthird"))
        t._frame()
        await pilot.pause()
        first = [slot.line for slot in t.slots if "first" in slot.line.plain]
        for _ in range(5):
            t.apply_delta("m", Delta(0, "text", " and\n\nmore"))
            t._frame()
        assert [slot.line for slot in t.slots if "first" in slot.line.plain] == first


def test_nothing_heavy_is_imported_before_something_is_drawn() -> None:
    heavy = ("markdown_it", "pygments.lexers")
    code = f"import sys, agent_tui.ui.transcript; print([m for m in {heavy!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


async def test_an_answer_that_was_streaming_when_it_was_loaded_goes_on() -> None:
    app = Holder()
    async with app.run_test(size=(60, 20)) as pilot:
        t = app.transcript
        t.load([Message("m", "assistant", [TextPart("so **far**")], "streaming")])
        await pilot.pause()
        t.apply_delta("m", Delta(0, "text", " and on"))
        t._frame()
        await pilot.pause()
        assert body(t) == ["  so far and on"]
