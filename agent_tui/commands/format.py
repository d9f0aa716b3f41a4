"""Numbers and foreign text for people: one way to write tokens, money, ages, and to make text harmless."""

from __future__ import annotations

import re
import time
import unicodedata
from functools import lru_cache

from agent_tui.door import CONTROLS as _CONTROLS
from agent_tui.door import clean

__all__ = [
    "age",
    "clean",
    "duration",
    "money",
    "one_line",
    "percent",
    "plural",
    "spelled",
    "tokens",
    "visible",
]

_ONE_LINE: dict[int, int | str | None] = {
    **_CONTROLS,
    0x09: " ",
    0x0A: " ",
    0x0D: " ",
    0x2028: " ",
    0x2029: " ",
    0x85: " ",
}


def one_line(text: str, limit: int = 400) -> str:
    """Cleaned text on one line, at most ``limit`` characters: for titles, labels, the terminal's own title."""
    cut = text[: limit * 2].translate(_ONE_LINE)
    cut = " ".join(cut.split())
    return cut if len(cut) <= limit else cut[: limit - 1] + "…"


def tokens(count: int | None, approximate: bool = False) -> str:
    """A short token count: ``950``, ``84.2k``, ``1.2M``; ``?`` when unknown; ``~`` in front when approximate."""
    if count is None:
        return "?"
    mark = "~" if approximate else ""
    size = abs(count)
    if size < 1_000:
        return f"{mark}{count}"
    if size < 999_950:
        return f"{mark}{_short(count / 1_000)}k"
    return f"{mark}{_short(count / 1_000_000)}M"


def _short(value: float) -> str:
    text = f"{value:.1f}"
    return text.removesuffix(".0")


def money(dollars: float | None) -> str:
    """Dollars: four digits after the point below a cent, two above; ``$?`` when no price is known."""
    if dollars is None:
        return "$?"
    if 0 < dollars < 0.01:
        return f"${dollars:.4f}"
    return f"${dollars:,.2f}"


def percent(value: float | None, digits: int = 1) -> str:
    return "?" if value is None else f"{value:.{digits}f} %"


def age(then: float, now: float | None = None) -> str:
    """How long ago a time (seconds since the epoch) was: ``now``, ``5 min``, ``3 h``, ``2 d``, ``4 w``, ``1 y``."""
    seconds = max(0.0, (time.time() if now is None else now) - then)
    for limit, size, unit in ((60, 1, ""), (3600, 60, "min"), (86_400, 3600, "h"), (1_209_600, 86_400, "d")):
        if seconds < limit:
            return f"{int(seconds // size)} {unit}" if unit else "now"
    days = int(seconds // 86_400)
    return f"{days // 7} w" if days < 365 else f"{days // 365} y"


def duration(seconds: float | None) -> str:
    """Seconds for people: ``0.4 s``, ``8 s``, ``2 m 05 s``."""
    if seconds is None:
        return "?"
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{int(seconds // 60)} m {int(seconds % 60):02d} s"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def visible(text: str) -> str:
    """Text whose control characters are shown as symbols instead of acting: for what the user is asked to allow."""
    return text.translate(_PICTURES)


_PICTURES: dict[int, int | str] = {c: 0x2400 + c for c in range(0x20) if c not in (0x09, 0x0A)}
_PICTURES.update({c: f"<U+{c:04X}>" for c in _CONTROLS if c >= 0x7F and not 0xD800 <= c < 0xE000})
_PICTURES.update(dict.fromkeys(range(55296, 57344), 65533))


_NOT_PLAIN = re.compile("[^\n\t -~]")
_BLANK = frozenset(
    # Letters, marks and symbols by category that nevertheless show as nothing or as a blank.
    "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
    + "".join(map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0000, 0xE1000))))
)


def spelled(text: str, *, line: bool = False) -> str:
    """Text in which nothing is hidden, for what the user is asked to allow: control characters as symbols; characters
    that are invisible, turn the direction of text or look like a blank as codes (``⟨U+202E⟩``).

    Newlines and tabs stay, unless all has to stand on one ``line``: then they are symbols, too.
    """
    text = _NOT_PLAIN.sub(_spell, text)
    return text.replace("\n", "␊").replace("\t", "␉") if line else text


def _spell(match: re.Match[str]) -> str:
    return _code(match.group())


@lru_cache(maxsize=4096)
def _code(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp", "Zs") or char in _BLANK:
        return f"⟨U+{code:04X}⟩"
    return char
