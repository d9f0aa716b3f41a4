"""Moving in the transcript, and what of it is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_tui.ui.chat.stage import Stage

WHOLE = 1000
"""So many pages are the way to the start or the end."""


class Reading:
    """What the keys of the main screen do to the transcript."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def toggle_tools(self) -> None:
        self._stage.hint("Tool output open" if self._stage.transcript.toggle_tools() else "Tool output closed")

    def toggle_reasoning(self) -> None:
        self._stage.hint("Reasoning shown" if self._stage.transcript.toggle_reasoning() else "Reasoning hidden")

    def scroll(self, pages: int) -> None:
        """By pages; by ``WHOLE`` to the end, from where on it follows, or to the start."""
        transcript = self._stage.transcript
        if pages >= WHOLE:
            transcript.follow_end()
        elif pages <= -WHOLE:
            transcript.scroll_home(animate=False)
        else:
            transcript.scroll_relative(y=pages * max(1, transcript.size.height - 2), animate=False)

    def jump(self, by: int) -> None:
        """To the question before (-1) or after (1)."""
        if not self._stage.transcript.jump_user(by):
            self._stage.hint("No question further up" if by < 0 else "No question further down")

    def follow_changed(self, follow: bool, new: int) -> None:
        """The transcript follows its end again, or has ``new`` entries below what is seen."""
        if follow:
            self._stage.hint("")
        elif new:
            self._stage.hint(f"{new} new below · Ctrl+End follows")
