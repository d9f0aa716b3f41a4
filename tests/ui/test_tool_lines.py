"""What a tool's line says of its output."""

from __future__ import annotations

import pytest

from agent_tui.models.messages import Metadata, ToolResultPart
from agent_tui.ui.transcript.tool_block import ToolBlock


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
