"""What a tool's line says of its output."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from rich.style import Style

from agent_tui.models.messages import INTERRUPTED_RESULT, Metadata, ToolResultPart
from agent_tui.ui.flow.palette import Palette
from agent_tui.ui.transcript.tools import ToolBlock

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("display", "expected"),
    [
        ({"kind": "text"}, ["2 lines"]),
        ({"kind": "text", "lines": 200_000, "sent": 5_366}, ["200,000 lines", "5,366 sent"]),
        ({"kind": "text", "lines": "many", "sent": None}, ["2 lines"]),  # stored by who knows which version
    ],
)
def test_the_lines_there_are_and_the_lines_that_were_sent(display: Metadata, expected: list[str]) -> None:
    block = ToolBlock("k", "c", "bash", '{"command": "seq 1 200000"}')
    block.result = ToolResultPart("c", "bash", "1\n2", display=display)
    assert list(block._facts()) == expected


@pytest.mark.parametrize(
    ("display", "expected"),
    [
        ({"kind": "text", "answer": "not approved", "text": "# Plan\n\n1. x"}, ["not approved"]),
        ({"kind": "text", "answer": "a \x1b[31mlong" + "g" * 90}, ["a long" + "g" * 53 + "…"]),
    ],
)
def test_what_the_user_answered_stands_in_the_line(display: Metadata, expected: list[str]) -> None:
    block = ToolBlock("k", "c", "present_plan", '{"plan": "# Plan"}')
    block.result = ToolResultPart("c", "present_plan", "The user …", display=display)
    assert list(block._facts()) == expected


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_long_refusal_leaves_room_for_what_was_refused(width: int) -> None:
    block = ToolBlock("k", "c", "bash", '{"command": "git push origin main"}')
    block.preview = False
    block.result = ToolResultPart("c", "bash", "Refused: git reaches out only if trusted; x" * 3, is_error=True)
    (flow,) = block._header(False)
    (line,) = flow.lay(0, width, Palette({}, Style()))
    text = line.plain
    assert cell_len(text) <= width and text.rstrip().endswith("▸")
    assert "bash git push" in text and "Refused: git" in text


def lines_of(block: ToolBlock) -> list[str]:
    flows = [flow for piece in block.pieces(False) for flow in piece.make()]
    return [line.plain.strip() for flow in flows for line in flow.lay(0, 100, Palette({}, Style()))]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Refused: git reaches out only in a trusted folder; the user can trust it with /trust.", "refused"),
        ("present_plan works in plan mode only, and the mode is ask: do the work.", "failed"),
        ("No such file: a.py\nThere is: b.py", "failed"),
    ],
)
def test_why_a_call_failed_is_said_once_and_whole(text: str, said: str) -> None:
    block = ToolBlock("k", "c", "bash", '{"command": "git push"}')
    block.result = ToolResultPart("c", "bash", text, is_error=True)
    header, *rest = lines_of(block)
    assert header.endswith(f"{said} · ▸")
    assert [line.removeprefix("│ ") for line in rest] == text.split("\n")
    block.preview = False
    (alone,) = lines_of(block)
    assert text.split("\n")[0][:20] in alone and alone.count("failed") == 0


@pytest.mark.parametrize("kept", ["", "".join(f"line {n}\n" for n in range(9))])
def test_an_interrupted_command_keeps_what_it_said(kept: str) -> None:
    block = ToolBlock("k", "c", "bash", '{"command": "make"}')
    text = f"{INTERRUPTED_RESULT} by the user. Its output until then:\n{kept}" if kept else INTERRUPTED_RESULT
    block.result = ToolResultPart("c", "bash", text, is_error=True)
    header, *rest = lines_of(block)
    assert header.startswith("⊘ bash make") and header.endswith("interrupted · ▸")
    assert rest == (["│ … +4 lines", *(f"│ line {n}" for n in range(4, 9))] if kept else [])
