"""The line below the status line that a command of the user's writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.color import Color
from rich.style import Style

from agent_tui.text.cells import shorten
from agent_tui.text.clean import colour_runs
from agent_tui.ui.theme import Paint, Piece, width_of
from agent_tui.ui.widgets.lines import Lines


class OwnLine(Lines):
    """What the command said last; without a word it takes no room."""

    DEFAULT_CSS = """
    OwnLine { padding: 0 1; background: $background; }
    """

    def __init__(self) -> None:
        super().__init__(id="own-line")
        self.text = ""

    def show(self, text: str) -> None:
        """One line of a program's output, its colours included."""
        if text != self.text:
            self.text = text
            self.set_height(1 if any(said.strip() for _, said in colour_runs(text)) else 0)
            self.refresh()

    def line(self, y: int, width: int, paint: Paint) -> Sequence[Piece]:
        pieces: list[Piece] = []
        room = width
        for said, style in styled(self.text):
            if room <= 0:
                break
            piece = (shorten(said, room), paint("muted") + style)
            pieces.append(piece)
            room -= width_of([piece])
        return pieces


def styled(text: str) -> Iterator[Piece]:
    """The pieces of a line of a program's output in the styles it gave them."""
    style = Style()
    for codes, said in colour_runs(text):
        style = _after(style, codes)
        yield said, style


_ON = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strike"}
_OFF = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("reverse",), 29: ("strike",)}


def _after(style: Style, codes: Sequence[int]) -> Style:
    """A style after SGR codes; those that are not known change nothing."""
    left = list(codes)
    while left:
        code = left.pop(0)
        if code == 0:
            style = Style()
        elif code in _ON:
            style += Style(**{_ON[code]: True})  # type: ignore[arg-type]
        elif code in _OFF:
            style += Style(**dict.fromkeys(_OFF[code], False))  # type: ignore[arg-type]
        elif code in (38, 48) and (color := _color(left)) is not None:
            style += Style(color=color) if code == 38 else Style(bgcolor=color)
        elif 30 <= code <= 37 or 90 <= code <= 97:
            style += Style(color=Color.from_ansi(code - 30 if code < 90 else code - 82))
        elif 40 <= code <= 47 or 100 <= code <= 107:
            style += Style(bgcolor=Color.from_ansi(code - 40 if code < 100 else code - 92))
        elif code in (39, 49):
            style = _without(style, front=code == 39)
    return style


def _color(left: list[int]) -> Color | None:
    """The colour that follows 38 or 48, taken from the codes that are left."""
    kind = left.pop(0) if left else 0
    numbers = [left.pop(0) for _ in range({5: 1, 2: 3}.get(kind, 0)) if left]
    if any(number > 255 for number in numbers):
        return None
    if kind == 5 and len(numbers) == 1:
        return Color.from_ansi(numbers[0])
    return Color.from_rgb(*numbers) if kind == 2 and len(numbers) == 3 else None


def _without(style: Style, *, front: bool) -> Style:
    kept = Style(color=None if front else style.color, bgcolor=style.bgcolor if front else None)
    return style.without_color + kept
