"""The quiet line at the end of a turn."""

from __future__ import annotations

from agent_tui.commands.turn_words import TurnTexts, turn_line
from agent_tui.models.context import SessionTotals
from agent_tui.models.events import TurnEnded
from agent_tui.models.messages import Message, ToolResultPart
from agent_tui.models.usage import Cost, TokenUsage
from tests.support.every import every

USAGE = TokenUsage(50_000, 2_100)
ESTIMATED = TokenUsage(50_000, 2_100, source="estimated")


@every(
    ("usage", "cost", "seconds", "files", "line"),
    [
        (USAGE, Cost(0.0123), 6.2, 2, "6 s · 2.1k tokens · $0.01 · 2 files"),
        (ESTIMATED, Cost(0.0123), 6.2, 0, "6 s · ~2.1k tokens · $0.01"),
        (USAGE, Cost(0.0087, 2), None, 1, "2.1k tokens · ≥ $0.0087 · 1 file"),
        (USAGE, Cost(0.0, 1), 0.4, 0, "0.4 s · 2.1k tokens"),
        (None, Cost(), 6.0, 0, ""),
    ],
)
def test_a_line_says_what_is_known(
    usage: TokenUsage | None, cost: Cost, seconds: float | None, files: int, line: str
) -> None:
    assert turn_line(SessionTotals(usage, cost), seconds, files) == line


def test_files_that_calls_changed_are_counted_once_and_for_one_turn() -> None:
    def changed(path: str, error: bool = False) -> Message:
        display = {"kind": "diff", "path": path, "text": ""}
        return Message("m", "tool", [ToolResultPart("c", "edit", "done", is_error=error, display=display)])

    told, ended = TurnTexts(), TurnEnded("end", bill=SessionTotals(USAGE))
    for message in (changed("a.py"), changed("a.py"), changed("b.py"), changed("c.py", True)):
        told.add_message(message)
    assert told.ending(ended, None)[1] == "2.1k tokens · 2 files"
    assert told.ending(ended, None)[1] == "2.1k tokens"
