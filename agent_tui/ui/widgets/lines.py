"""A few drawn lines whose number may change; the widget is as high as they are and hidden without any."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from textual.strip import Strip
from textual.widget import Widget

from agent_tui.ui.draw import Piece, paint_of, strip_of
from agent_tui.ui.safety import Guarded
from agent_tui.ui.theme import Paint


class Lines(Guarded, Widget):
    """Subclasses say how high they are and draw a line."""

    DEFAULT_CSS = """
    Lines { height: auto; background: $background; }
    """

    def __init__(self, *, id: str | None = None, height: int = 0) -> None:
        super().__init__(id=id)
        self.set_height(height)

    def set_height(self, height: int) -> None:
        self.line_count = height
        self.styles.height = height
        self.display = height > 0

    @abstractmethod
    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        """The pieces of line ``y``."""

    def render_line(self, y: int) -> Strip:
        width = self.content_size.width
        return strip_of(self.line(y, width, paint_of(self.app)), width, self.rich_style)
