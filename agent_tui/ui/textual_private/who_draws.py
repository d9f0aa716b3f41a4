"""Says who draws: the program in its own way, or, where that failed, Textual."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from agent_tui.ui.screen_buffer import ScreenBuffer, can_scroll_regions

if TYPE_CHECKING:
    from textual.geometry import Offset

T = TypeVar("T")


class DrawingWatch:
    """Says who draws. ``told`` hears it when that is Textual."""

    def __init__(self, told: Callable[[], object]) -> None:
        self.buffer = ScreenBuffer(can_scroll_regions())
        self.problem = ""
        """Why Textual draws; empty while the program does."""
        self.error: Exception | None = None
        """What failed."""
        self.cursor: Offset | None = None
        """Where the cursor was put last."""
        self.told = told
        self.of_widget: Exception | None = None

    def attempt(self, own: Callable[[], T], textual: Callable[[], T]) -> T:
        """Draws in the program's own way; where that fails and Textual's does not, in Textual's from now on. Where both
        fail the fault is a widget's."""
        try:
            return own()
        except Exception as error:
            if error is self.of_widget:
                raise
            try:
                drawn = textual()
            except Exception as widget_error:
                self.of_widget = widget_error
                raise
            self.problem = f"drawn in Textual's own way, slower: {type(error).__name__}: {error}"
            self.error = error
            self.told()
            return drawn
