"""What the transcript says: thoughts with their time, pastes folded, what was attached, the end of running output."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.style import Style

from agent_tui.engine.turns.stream import StreamProcessor
from agent_tui.models.failure import Failure
from agent_tui.models.messages import AttachmentPart, Message, ReasoningPart, TextPart, ToolCallPart, user_message
from agent_tui.models.requests import Delta
from agent_tui.models.steps import Step
from agent_tui.ui.flow.layout import MAX_PROSE
from agent_tui.ui.flow.palette import Palette
from agent_tui.ui.markdown.flows import code_flows
from tests.support.app import Clock
from tests.ui.transcripts import Holder, answer, body

pytestmark = pytest.mark.quick

PASTE = "\n".join(f"line {n}" for n in range(120))


def test_a_thought_lasts_from_its_first_word_to_the_first_of_what_follows() -> None:
    clock = Clock()
    message = Message("m", "assistant")
    processor = StreamProcessor(message, "", clock)
    for seconds, delta in (
        (0.0, Delta(0, "reasoning", "so ")),
        (3.0, Delta(0, "reasoning", "then")),
        (1.0, Delta(1, "text", "Yes")),
        (60.0, Delta(1, "text", ".")),
        (0.0, Delta(2, "reasoning", "and")),
        (2.0, Delta(2, "reasoning", "", closed=True)),
    ):
        clock.now += seconds
        processor.apply(delta)
    clock.now += 9.0
    processor.finish()
    assert [p.seconds for p in message.parts if isinstance(p, ReasoningPart)] == [4.0, 2.0]


@pytest.mark.parametrize(
    ("seconds", "header"),
    [(None, "Thought · ~1 tokens"), (0.0, "Thought · ~1 tokens"), (3.0, "Thought for 3 s · ~1 tokens")],
)
async def test_the_header_of_a_thought_says_how_long_it_took(seconds: float | None, header: str) -> None:
    app = Holder()
    async with app.run_test(size=(60, 10)) as pilot:
        app.transcript.load([answer("said", "m", ReasoningPart("hm", seconds=seconds))])
        await pilot.pause()
        assert body(app.transcript)[0] == f"  ▸ {header}"


@pytest.mark.parametrize("width", [80, 200])
def test_code_ends_where_prose_does_and_only_a_longer_line_goes_on(width: int) -> None:
    palette = Palette({"code": "#101010"}, Style())
    code = f"short\n{'x' * 150}"
    lines = [
        line for row, flow in enumerate(code_flows(code, "", (("  ", ""),))) for line in flow.lay(row, width, palette)
    ]
    ends = [len(line.plain) for line in lines]
    edge = min(width, 2 + MAX_PROSE)
    if width == 200:
        assert ends == [edge, edge, 2 + 1 + 150], "a line that fits the terminal is not broken"
    else:
        assert ends == [width] * 4, "a line that does not is wrapped"
    assert all(line.fill == palette("") for line in lines)


async def test_what_was_pasted_stays_folded_until_it_is_opened() -> None:
    text = f"Explain {PASTE} please"
    message = user_message(text, pasted=[[8, 8 + len(PASTE)]])
    app = Holder()
    async with app.run_test(size=(60, 20)) as pilot:
        t = app.transcript
        t.load([message])
        await pilot.pause()
        assert body(t) == ["▌ Explain [Pasted 120 lines] please", "▌ ▸ what was pasted"]
        await pilot.click(t, offset=(4, 2))
        await pilot.pause()
        assert t.virtual_size.height > 120 and body(t)[:2] == ["▌ Explain line 0", "▌ line 1"]


async def test_what_is_attached_is_named_in_the_project() -> None:
    root = Path("/home/me/project")
    parts = [
        AttachmentPart("src/app.py:3-9", "text/x-python", text="x", path=f"{root}/src/app.py"),
        AttachmentPart(f"{root}/docs/", "text/plain", text="x", path=f"{root}/docs"),
        AttachmentPart("document change", "text/plain", text="x", path=f"{root}/notes.md"),
        AttachmentPart("/etc/hosts", "text/plain", text="x", path="/etc/hosts"),
    ]
    app = Holder()
    async with app.run_test(size=(60, 20)) as pilot:
        app.transcript.load([user_message("look", attachments=parts)], root=root)
        await pilot.pause()
        assert body(app.transcript)[:4] == [
            "▌ + src/app.py:3-9 (text/x-python)",
            "▌ + docs (text/plain)",
            "▌ + document change notes.md",
            "▌ + /etc/hosts (text/plain)",
        ]


async def test_a_running_command_shows_its_last_lines_until_it_is_over() -> None:
    app = Holder()
    async with app.run_test(size=(60, 20)) as pilot:
        t = app.transcript
        t.add_message(Message("m", "assistant", [ToolCallPart("c", "bash", '{"command": "make"}')]))
        t.end_answer(Message("m", "assistant", [ToolCallPart("c", "bash", '{"command": "make"}')]))
        t.tool_started("c", "make")
        for n in range(9):
            t.tool_output("c", f"\x1b[32mstep {n}\x1b[0m\n")
        t.tool_output("c", "10 %\r20 %")
        t._frame()
        await pilot.pause()
        assert body(t)[1:] == ["    │ … +5 lines", *(f"    │ step {n}" for n in range(5, 9)), "    │ 20 %"]


async def test_an_answer_without_a_word_says_so_whenever_it_is_shown() -> None:
    empty = Message("m", "assistant", [ReasoningPart("hm")], note="demo gave an empty answer.")
    app = Holder()
    async with app.run_test(size=(60, 12)) as pilot:
        app.transcript.load([user_message("hi"), empty])
        await pilot.pause()
        assert body(app.transcript)[-1] == "  · demo gave an empty answer."


async def test_a_refusal_for_its_size_leaves_the_word_to_what_follows() -> None:
    step = Step("s", "turn", "m", "p", "chat", "m", failure=Failure("context_overflow", "Too large for the model."))
    app = Holder()
    async with app.run_test(size=(60, 12)) as pilot:
        t = app.transcript
        t.begin_answer(Message("m", "assistant", status="streaming"))
        t.end_answer(Message("m", "assistant", status="failed", note="Too large for the model."), step)
        await pilot.pause()
        assert body(t) == []
        t.end_answer(Message("n", "assistant", [TextPart("half")], "failed", note="It broke off."), step)
        await pilot.pause()
        assert body(t)[-1] == "  ✗ It broke off."
