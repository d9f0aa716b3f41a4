"""Themes: TOML files in the package and in the user's folder; the styles and lines that drawn widgets make of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.color import Color, ColorParseError
from textual.strip import Strip
from textual.theme import Theme

from agent_tui.models.rows import DRAWN_ROWS, FREE, RESERVE
from agent_tui.paths import package_themes, private_dir
from agent_tui.ui.first_frame import CHOICE_FILE, DEFAULT, DEFAULT_THEME

if TYPE_CHECKING:
    from textual.app import App


COLORS = (
    "primary",
    "secondary",
    "accent",
    "success",
    "warning",
    "error",
    "foreground",
    "background",
    "surface",
    "panel",
)
VARIABLES = (
    "muted",
    "faint",
    "line",
    "user",
    "diff-add",
    "diff-remove",
    "selection",
    "selection-text",
    *(row.variable for row in DRAWN_ROWS),
)
_TOP = {"name", "dark", "ansi", "colors", "variables"}


class Themes(NamedTuple):
    """The themes that were found, by name, and one line for each file that is no theme."""

    themes: dict[str, Theme]
    problems: list[str]


def load_theme(path: Path) -> Theme:
    """A theme from a file. Raises ``ValueError`` with one line that names the file and what is wrong."""
    import tomllib  # the default theme is no file

    try:
        return _theme(tomllib.loads(path.read_text(encoding="utf-8")), path.stem)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise ValueError(f"theme {path}: {reason}") from error


def load_themes(user_folder: Path) -> Themes:
    """All themes; a user's file of the same name wins over the package's. One broken file leaves the others."""
    found = Themes({}, [])
    for folder in (package_themes(), user_folder):
        for path in sorted(folder.glob("*.toml")) if folder.is_dir() else ():
            try:
                theme = load_theme(path)
            except ValueError as error:
                found.problems.append(str(error))
            else:
                found.themes[theme.name] = theme
    return found


def start_theme(name: str, user_folder: Path) -> tuple[Theme, str | None]:
    """The theme to start with, reading as few files as possible, and a line when it is not the one asked for."""
    if name == DEFAULT_THEME and not (user_folder / f"{name}.toml").is_file():
        return _theme(DEFAULT, name), None
    problem = None
    for path in (folder / f"{name}.toml" for folder in (user_folder, package_themes())):
        if path.is_file():
            try:
                return load_theme(path), None
            except ValueError as error:
                problem = problem or str(error)
    for theme in load_themes(user_folder).themes.values():
        if theme.name == name:
            return theme, problem
    names = ", ".join(sorted(p.stem for p in package_themes().glob("*.toml")))
    problem = problem or f"no such theme: {name!r}. There are: {names}"
    return _theme(DEFAULT, DEFAULT_THEME), problem


def keep_choice(name: str, state: Path) -> str | None:
    """Remembers the chosen theme for the next start; a line when that is impossible."""
    try:
        private_dir(state)
        (state / CHOICE_FILE).write_text(name + "\n", encoding="utf-8")
    except OSError as error:
        return f"could not save the theme: {error.strerror or error}"
    return None


def variable_defaults(theme: Theme) -> dict[str, str]:
    """Values for our own variables that a theme leaves out, derived from its colours."""
    if theme.ansi:
        mixed = {
            "muted": "ansi_default",
            "faint": "ansi_default",
            "line": "ansi_bright_black",
            "ansi-background": "ansi_black" if theme.dark else "ansi_white",
            "selection": "ansi_default",
            "selection-text": "ansi_default",
        }
    else:
        mixed = _mixed(theme)
    pick = {
        "user": theme.primary,
        "diff-add": theme.success or theme.primary,
        "diff-remove": theme.error or theme.primary,
        **{row.variable: getattr(theme, row.color, None) or theme.primary for row in DRAWN_ROWS},
        **{rest.variable: mixed[rest.color] for rest in (FREE, RESERVE)},
    }
    return {**mixed, **pick}


def _mixed(theme: Theme) -> dict[str, str]:
    """Colours between those that a theme names, so that they can be read wherever they stand."""

    front = Color.parse(theme.foreground or ("#e0e0e0" if theme.dark else "#202020"))
    back = Color.parse(theme.background or ("#121212" if theme.dark else "#efefef"))
    on = [back, *(Color.parse(color) for color in (theme.surface, theme.panel) if color)]
    selection = back.blend(Color.parse(theme.primary), 0.35, 1)
    return {
        "muted": toward(back, front, 0.62, on, LEAST_TEXT).hex,
        "faint": toward(back, front, 0.36, on, LEAST_FAINT).hex,
        "line": back.blend(front, 0.18, 1).hex,
        "selection": selection.hex,
        "selection-text": text_on(selection, front).hex,
    }


class Paint:
    """Styles by the names of theme variables (``muted``, ``primary``). A theme change makes a new one."""

    def __init__(self, variables: dict[str, str]) -> None:
        self.variables = variables
        self._made: dict[tuple[str | None, str | None, bool, bool, bool], Style] = {}

    def __call__(
        self,
        front: str | None = None,
        back: str | None = None,
        *,
        bold: bool = False,
        italic: bool = False,
        reverse: bool = False,
    ) -> Style:
        key = (front, back, bold, italic, reverse)
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = Style(
                color=None if front is None else _color(self.variables, front).rich_color,
                bgcolor=None if back is None else _color(self.variables, back).rich_color,
                bold=bold or None,
                italic=italic or None,
                reverse=reverse or None,
            )
        return made


FADED = "faded "
"""Before the name of a colour: that colour, near to the background."""


def _color(variables: dict[str, str], name: str) -> Color:
    if name.startswith(FADED):
        return _color(variables, name.removeprefix(FADED)).blend(_color(variables, "background"), 0.6)
    try:
        return Color.parse(variables.get(name, "ansi_default"))
    except ColorParseError:
        return Color.parse("ansi_default")


def _theme(data: dict[str, Any], stem: str) -> Theme:
    unknown = sorted(set(data) - _TOP)
    if unknown:
        raise ValueError(f"unknown key {unknown[0]!r}; allowed are {', '.join(sorted(_TOP))}")
    colors, variables = data.get("colors", {}), data.get("variables", {})
    if not isinstance(colors, dict) or not isinstance(variables, dict):
        raise ValueError("[colors] and [variables] are tables")
    for key in colors:
        if key not in COLORS:
            raise ValueError(f"unknown colour {key!r}; allowed are {', '.join(COLORS)}")
    if "primary" not in colors:
        raise ValueError("[colors] needs at least primary")
    for key, value in (*colors.items(), *((k, v) for k, v in variables.items() if k in VARIABLES)):
        try:
            Color.parse(value)
        except (ColorParseError, TypeError, AttributeError):
            raise ValueError(f"{key} = {value!r} is not a colour") from None
    for key in ("dark", "ansi"):
        if not isinstance(data.get(key, True), bool):
            raise ValueError(f"{key} is true or false")
    name = data.get("name", stem)
    if not isinstance(name, str) or not name.strip():
        raise ValueError("name is a text")
    theme = Theme(name=name, dark=data.get("dark", True), ansi=data.get("ansi", False), **colors)
    own = {k: str(v) for k, v in variables.items()}
    if theme.ansi or not own.keys() >= set(VARIABLES):  # what is complete needs nothing mixed
        own = {**variable_defaults(theme), **own}
    theme.variables = {**_textual_variables(theme, own), **own}
    return theme


def _textual_variables(theme: Theme, own: dict[str, str]) -> dict[str, str]:
    """Textual's own variables where its choice does not suit a quiet screen."""
    back = theme.background or own["line"]
    bars = dict.fromkeys(
        ("scrollbar-background", "scrollbar-background-hover", "scrollbar-background-active", "scrollbar-corner-color"),
        back,
    )
    return {
        **bars,
        "scrollbar": own["line"],
        "scrollbar-hover": own["faint"],
        "scrollbar-active": own["muted"],
        "screen-selection-background": own["selection"],
        "screen-selection-foreground": own["selection-text"],
        "input-selection-background": own["selection"],
        "input-selection-foreground": own["selection-text"],
        "border": theme.primary,
        "border-blurred": own["line"],
    }


LEAST_TEXT = 4.5
"""What the guidelines ask of text (level AA)."""
LEAST_FAINT = 4.0
"""What text that may be overlooked keeps here."""
_STEP = 0.02


def contrast(one: Color, two: Color) -> float:
    """The contrast of two opaque colours, 1 to 21."""
    light, dark = sorted((_luminance(one), _luminance(two)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def toward(back: Color, front: Color, share: float, on: Sequence[Color], least: float) -> Color:
    """``back`` with ``share`` of ``front``, or more of it where less than ``least`` would be left on one of ``on``."""
    while share < 1:
        mixed = back.blend(front, share, 1)
        if all(contrast(mixed, each) >= least for each in on):
            return mixed
        share += _STEP
    return front


def text_on(back: Color, wanted: Color) -> Color:
    """``wanted``, or black or white where it could not be read on ``back``."""
    choices = (wanted, Color(255, 255, 255), Color(0, 0, 0))
    return next((c for c in choices if contrast(c, back) >= LEAST_TEXT), max(choices, key=lambda c: contrast(c, back)))


def _luminance(color: Color) -> float:
    parts = [part / 255 for part in color.rgb]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


Piece: TypeAlias = tuple[str, Style]


def paint_of(app: App[Any]) -> Paint:
    variables = app.theme_variables
    known: Paint | None = getattr(app, "_drawing_paint", None)
    if known is None or known.variables is not variables:
        known = Paint(variables)
        setattr(app, "_drawing_paint", known)  # noqa: B010
    return known


def strip_of(pieces: Iterable[Piece], width: int, base: Style) -> Strip:
    """One line of exactly ``width`` cells; ``base`` shows where a piece says nothing."""
    line = Strip([Segment(text, style) for text, style in pieces if text])
    return line.adjust_cell_length(width, Style()).apply_style(base)


def width_of(pieces: Iterable[Piece]) -> int:
    return sum(cell_len(text) for text, _ in pieces)
