"""The transcript's styles, made from the theme's variables. A theme may set ``transcript-…`` variables of its own."""

from __future__ import annotations

from collections.abc import Mapping

from rich.color import Color as RichColor
from rich.style import Style
from textual.color import Color, ColorParseError

_PLAIN: dict[str, str] = {
    "strong": "bold",
    "em": "italic",
    "strike": "strike",
    "link": "underline",
    "h1": "bold underline",
    "h2": "bold",
    "h3": "bold",
    "h4": "bold italic",
    "h5": "italic",
    "h6": "italic",
    "th": "bold",
    "title": "bold",
    "selected": "reverse",
    "match": "bold underline",
    "match_now": "reverse bold",
    "reasoning": "italic",
}
"""Attributes by style name; they must tell things apart where there are no colours."""

_FRONT: dict[str, tuple[str, ...]] = {
    "muted": ("muted",),
    "faint": ("faint",),
    "rule": ("line",),
    "h1": ("transcript-heading", "primary"),
    "h2": ("transcript-heading", "primary"),
    "h3": ("transcript-heading-minor", "foreground"),
    "h4": ("transcript-heading-minor", "foreground"),
    "h5": ("transcript-heading-minor", "foreground"),
    "h6": ("muted",),
    "th": ("transcript-heading", "primary"),
    "inline": ("transcript-code", "accent"),
    "link": ("transcript-link", "primary"),
    "bullet": ("transcript-bullet", "primary"),
    "quote": ("muted",),
    "quote_bar": ("transcript-quote", "secondary"),
    "label": ("muted",),
    "user_bar": ("user", "primary"),
    "reasoning": ("muted",),
    "reasoning_bar": ("line",),
    "running": ("transcript-running", "accent"),
    "waiting": ("warning",),
    "ok": ("success",),
    "failed": ("error",),
    "info": ("muted",),
    "quiet": ("faint",),
    "warning": ("warning",),
    "error": ("error",),
    "summary": ("transcript-summary", "accent"),
    "add": ("diff-add", "success"),
    "remove": ("diff-remove", "error"),
    "hunk": ("secondary",),
    "match": ("warning",),
    "match_now": ("warning",),
    "tok_comment": ("transcript-comment", "muted"),
    "tok_keyword": ("transcript-keyword", "primary"),
    "tok_string": ("transcript-string", "success"),
    "tok_number": ("transcript-number", "warning"),
    "tok_name": ("transcript-name", "accent"),
    "tok_type": ("transcript-type", "secondary"),
    "tok_error": ("error",),
}
"""Foreground by style name: the first variable that the theme has."""

_BACK: dict[str, tuple[str, ...]] = {
    "user": ("transcript-user-background", "surface"),
    "code": ("transcript-code-background", "surface"),
    "chip": ("primary",),
}

_BANDS: dict[str, tuple[str, float]] = {
    "added": ("add", 0.14),
    "removed": ("remove", 0.14),
    "added_word": ("add", 0.30),
    "removed_word": ("remove", 0.30),
}
"""Backgrounds of a diff: the colour each is made with, and how much of it. Where the background is the terminal's own,
the whole text has that colour instead of those of its code, and words are underlined."""

_SHARES = {"muted": 0.62, "faint": 0.55, "line": 0.18}
"""How much of the foreground is in the mixed colours of a theme that does not name them."""


class Palette:
    """Rich styles by name, several names separated by spaces (later ones win), over the widget's own ``base``."""

    def __init__(self, variables: Mapping[str, str], base: Style) -> None:
        self.variables = variables
        self.base = base
        self._made: dict[tuple[str, str | None], Style] = {}

    def __call__(self, names: str, link: str | None = None) -> Style:
        """The style for ``names``; ``link`` makes it a terminal hyperlink."""
        made = self._made.get((names, link))
        if made is None:
            made = Style()
            parts = names.split()
            if self._flat and ("added" in parts or "removed" in parts):
                parts = [name for name in parts if not name.startswith("tok_")]
            for name in parts:
                made += self._one(name)
            if link is not None:
                return self.base + made + Style(link=link)
            made = self._made[(names, link)] = self.base + made
        return made

    def _one(self, name: str) -> Style:
        if name in _BANDS:
            return self._band(*_BANDS[name], word=name.endswith("_word"))
        style = Style.parse(_PLAIN.get(name, ""))
        front, back = self._color(_FRONT.get(name, ())), self._color(_BACK.get(name, ()))
        if name == "chip" and back is not None:
            text = self._color(("background",)) or RichColor.parse("default")
            if text.is_default:  # a colour that only the terminal knows stands in front of nothing but its background
                return Style(color=back, bold=True, reverse=True)
            return Style(color=text, bgcolor=back, bold=True)
        return style + Style(color=front, bgcolor=back)

    @property
    def _flat(self) -> bool:
        """True where nothing can be mixed with the background: only the terminal knows it."""
        back = self.base.bgcolor
        return back is None or back.triplet is None

    def _band(self, color: str, share: float, *, word: bool) -> Style:
        front = self._color(_FRONT[color])
        if self._flat:
            return Style(underline=True) if word else Style(color=front)
        if front is None or self.base.bgcolor is None:
            return Style()
        mixed = Color.from_rich_color(self.base.bgcolor).blend(Color.from_rich_color(front), share, 1)
        # What stands on the stronger one keeps no colour of its code: it could not be read there.
        return Style(color=self.base.color if word else None, bgcolor=mixed.rich_color)

    def _color(self, names: tuple[str, ...]) -> RichColor | None:
        for name in names:
            value = self.variables.get(name)
            if value:
                try:
                    color = Color.parse(value)
                except ColorParseError:
                    continue
                return self._over(color)
        share = next((_SHARES[name] for name in names if name in _SHARES), None)
        return None if share is None else self._mixed(share)

    def _over(self, color: Color) -> RichColor:
        if color.a < 1 and color.ansi is None and self.base.bgcolor is not None:
            return (Color.from_rich_color(self.base.bgcolor) + color).rich_color
        return color.rich_color

    def _mixed(self, share: float) -> RichColor | None:
        front, back = self.base.color, self.base.bgcolor
        if front is None or back is None or front.is_default or back.is_default:
            return None
        return Color.from_rich_color(back).blend(Color.from_rich_color(front), share, 1).rich_color
