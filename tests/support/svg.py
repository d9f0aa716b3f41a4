"""A screen as SVG that looks alike everywhere: it needs no font of the network, and the blocks and lines that charts
and frames are made of are drawn, as fonts leave gaps between them. Its description says what stands on it."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.cells import cell_len
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from textual.strip import Strip

WIDE, HIGH = 9.6, 20.0
"""Of a cell, in units of the picture; a letter of most fonts is three fifths as wide as its size."""
PAD = 14.0
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, Liberation Mono, monospace"

Box = tuple[float, float, float, float]
_SHADES = {"░": 0.25, "▒": 0.5, "▓": 0.75}
_QUADRANTS = {
    "▖": "c",
    "▗": "d",
    "▘": "a",
    "▙": "acd",
    "▚": "ad",
    "▛": "abc",
    "▜": "abd",
    "▝": "b",
    "▞": "bc",
    "▟": "bcd",
}
_ARMS = {
    "─": "lr", "│": "ud", "┌": "rd", "┐": "ld", "└": "ru", "┘": "lu", "├": "rud", "┤": "lud", "┬": "lrd", "┴": "lru",
    "┼": "lrud", "╭": "rd", "╮": "ld", "╰": "ru", "╯": "lu", "━": "LR", "┃": "UD", "╸": "L", "╺": "R", "╴": "l",
    "╶": "r", "╵": "u", "╷": "d",
}  # fmt: skip
_DRAWN = re.compile("([\u2580-\u259f\u2800-\u28ff" + "".join(_ARMS) + "])")
# Words whose letters are equally wide in any fixed font; other signs, which may not be, one by one.
_RUNS = re.compile("[!-~\u00a1-\u024f]+|\\S")


@dataclass(frozen=True)
class Colors:
    """The colours of the terminal that the picture is of."""

    theme: TerminalTheme

    def of(self, style: Style) -> tuple[str, str]:
        """Foreground and background."""
        fore = self._hex(style.color, True)
        back = self._hex(style.bgcolor, False)
        return (back, fore) if style.reverse else (fore, back)

    def _hex(self, color: object, foreground: bool) -> str:
        from rich.color import Color

        color = color if isinstance(color, Color) else Color.default()
        return color.get_truecolor(self.theme, foreground).hex


def dots(sign: str) -> list[Box]:
    """The same for a sign of Braille, of which spinners are made."""
    places = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3)]
    return [(0.15 + 0.45 * x, 0.06 + 0.25 * y, 0.25, 0.12) for bit, (x, y) in enumerate(places) if ord(sign) & 1 << bit]


def block(sign: str) -> list[Box]:
    """The parts of a cell that a block element fills: x, y, width, height, each a share of the cell."""
    code = ord(sign)
    if sign in _SHADES or sign == "█":
        return [(0, 0, 1, 1)]
    if sign in _QUADRANTS:
        return [("bd".count(q) * 0.5, "cd".count(q) * 0.5, 0.5, 0.5) for q in _QUADRANTS[sign]]
    if 0x2581 <= code <= 0x2587:
        share = (code - 0x2580) / 8
        return [(0, 1 - share, 1, share)]
    if 0x2589 <= code <= 0x258F:
        return [(0, 0, (0x2590 - code) / 8, 1)]
    return [{"▀": (0, 0, 1, 0.5), "▐": (0.5, 0, 0.5, 1), "▔": (0, 0, 1, 0.125), "▕": (0.875, 0, 0.125, 1)}[sign]]


def line(sign: str) -> list[Box]:
    """The same for a sign that frames are drawn with: what goes through is one part."""
    arms = _ARMS[sign]
    thick = 2.4 if arms.isupper() else 1.2
    x, y, arms = thick / WIDE / 2, thick / HIGH / 2, arms.lower()
    boxes: list[Box] = []
    if "l" in arms or "r" in arms:
        left, right = 0.0 if "l" in arms else 0.5 - x, 1.0 if "r" in arms else 0.5 + x
        boxes.append((left, 0.5 - y, right - left, 2 * y))
    if "u" in arms or "d" in arms:
        top, bottom = 0.0 if "u" in arms else 0.5 - y, 1.0 if "d" in arms else 0.5 + y
        boxes.append((0.5 - x, top, 2 * x, bottom - top))
    return boxes


@dataclass
class Rect:
    x: float
    y: float
    width: float
    height: float
    fill: str
    opacity: float = 1.0


def merged(rects: Iterable[Rect]) -> Iterator[Rect]:
    """Those side by side as one, and then those below each other."""
    for across in (True, False):
        done: list[Rect] = []
        ends: dict[tuple[object, ...], Rect] = {}
        for rect in rects:
            same = (rect.fill, rect.opacity, *((rect.y, rect.height) if across else (rect.x, rect.width)))
            before = ends.get((*same, round(rect.x if across else rect.y, 3)))
            if before is None:
                before = Rect(**vars(rect))
                done.append(before)
            else:
                del ends[(*same, round(rect.x if across else rect.y, 3))]
                if across:
                    before.width += rect.width
                else:
                    before.height += rect.height
            end = before.x + before.width if across else before.y + before.height
            ends[(*same, round(end, 3))] = before
        rects = done
    yield from rects


def drawing(strips: Sequence[Strip], colors: Colors, title: str) -> str:
    """The picture of a screen's lines."""
    ground = _ground(strips, colors)
    behind: list[Rect] = []
    before: list[Rect] = []
    texts: list[str] = []
    classes: dict[str, str] = {}
    for row, strip in enumerate(strips):
        column = 0
        for segment in strip:
            style = segment.style or Style()
            fore, back = colors.of(style)
            width = cell_len(segment.text)
            if back != ground:
                behind.append(Rect(PAD + column * WIDE, PAD + row * HIGH, width * WIDE, HIGH, back))
            for piece in _DRAWN.split(segment.text):
                x, y = PAD + column * WIDE, PAD + row * HIGH
                if _DRAWN.fullmatch(piece):
                    opacity = _SHADES.get(piece, 1.0)
                    parts = line if piece in _ARMS else dots if piece >= "\u2800" else block
                    for bx, by, bw, bh in parts(piece):
                        before.append(Rect(x + bx * WIDE, y + by * HIGH, bw * WIDE, bh * HIGH, fore, opacity))
                else:
                    texts += _texts(piece, x, y, _look(style, fore), classes)
                column += cell_len(piece)
    columns = max((cell_len(strip.text) for strip in strips), default=0)
    wide, high = columns * WIDE + 2 * PAD, len(strips) * HIGH + 2 * PAD
    words = "\n".join(strip.text.rstrip() for strip in strips)
    rules = "".join(f".{name}{{{look}}}" for look, name in classes.items())
    sheet = f"text{{font:16px {FONTS};white-space:pre}}.b{{shape-rendering:crispEdges}}{rules}"
    frame = f'width="{wide - 1:g}" height="{high - 1:g}" rx="9" fill="{ground}" stroke="#6e7681"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {high:g}" role="img">',
            f"<title>{html.escape(title)}</title>",
            f"<desc>{html.escape(words, quote=False)}</desc>",
            f"<style>{sheet}</style>",
            f'<rect x="0.5" y="0.5" {frame}/>',
            '<g class="b">',
            *map(_rect, merged(behind)),
            *map(_rect, merged(before)),
            "</g>",
            *texts,
            "</svg>\n",
        ]
    )


def to_png(file: Path) -> bool:
    """Draws the picture's points beside it; False where nothing is installed that can."""
    target = file.with_suffix(".png")
    if shutil.which("rsvg-convert"):
        subprocess.run(["rsvg-convert", "-z", "1.3", "-o", target, file], check=True)
        return True
    try:
        import cairosvg  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError:
        return False
    # It takes the first font alone, and no heed of how long a text shall be.
    svg = file.read_text(encoding="utf-8").replace("font:16px ui-monospace", "font:15.4px DejaVu Sans Mono")
    cairosvg.svg2png(bytestring=svg.encode(), write_to=str(target), scale=1.3)
    return True


def _ground(strips: Sequence[Strip], colors: Colors) -> str:
    """The background of the corner, which goes on around the screen."""
    first = next((segment for strip in strips for segment in strip if segment.text), None)
    return colors.of((first and first.style) or Style())[1]


def words_of(svg: str) -> str:
    """What stands on the screen that the picture is of."""
    found = re.search(r"<desc>(.*?)</desc>", svg, re.DOTALL)
    return html.unescape(found[1]) if found else ""


def _look(style: Style, fore: str) -> str:
    look = f"fill:{fore}"
    for wanted, rule in (
        (style.bold, "font-weight:bold"),
        (style.italic, "font-style:italic"),
        (style.dim, "opacity:.6"),
        (style.underline, "text-decoration:underline"),
        (style.strike, "text-decoration:line-through"),
    ):
        look += f";{rule}" if wanted else ""
    return look


def _texts(piece: str, x: float, y: float, look: str, classes: dict[str, str]) -> Iterator[str]:
    for found in _RUNS.finditer(piece):
        name = classes.setdefault(look, f"c{len(classes)}")
        at, width = x + cell_len(piece[: found.start()]) * WIDE, cell_len(found[0]) * WIDE
        place = f'x="{_short(at)}" y="{_short(y + 15)}" textLength="{_short(width)}"'
        yield f'<text class="{name}" {place}>{html.escape(found[0], quote=False)}</text>'


def _rect(rect: Rect) -> str:
    shade = f' opacity="{rect.opacity:g}"' if rect.opacity < 1 else ""
    place = f'x="{_short(rect.x)}" y="{_short(rect.y)}" width="{_short(rect.width)}" height="{_short(rect.height)}"'
    return f'<rect {place} fill="{rect.fill}"{shade}/>'


def _short(number: float) -> str:
    return f"{round(number, 2):g}"
