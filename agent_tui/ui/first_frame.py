"""The first frame, drawn before anything of Textual is imported: what Textual draws a fifth of a second later is the
same, cell by cell. Only the standard library is imported here, and only what every start needs.

Where this is not sure to be so (few colours, a theme of named colours, a narrow terminal, vim's keys) nothing is drawn.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_tui.config import AUTO_THEME
from agent_tui.paths import package_themes, private_dir

if TYPE_CHECKING:
    from types import FrameType

    from agent_tui.config import UiConfig
    from agent_tui.paths import Paths

NAME = "agent-tui"
WORDMARK = (
    ("▄▀█ █▀▀ █▀▀ █▄ █ ▀█▀", "     ▀█▀ █ █ █"),
    ("█▀█ █▄█ ██▄ █ ▀█  █ ", " ▀▀   █  █▄█ █"),
)
"""The name in two lines: ``agent`` and the rest."""
LEAST_WIDTH, LOW = 44, 16
"""On a narrower or lower screen the name is a word."""
PLACEHOLDER = "Ask anything · / commands · @ files · ! shell · ? keys"
STARTING = "starting…"
ROOMY = 28
"""From this many lines on, the prompt has air above and below."""
ENTER, LEAVE, SHOW_CURSOR = "\x1b[?1049h", "\x1b[?1049l", "\x1b[?25h"
MARK_PASTES, MARK_NO_PASTES = "\x1b[?2004h", "\x1b[?2004l"
PASTE_BEGINS = b"\x1b[200~"
SMALLEST = (60, 8)
"""Columns and lines; below them the prompt is laid out otherwise."""

DEFAULT_THEME, LIGHT_THEME = "agent-dark", "agent-light"
ANSI_THEME, ANSI_LIGHT_THEME = "ansi", "ansi-light"
OWN_CHOICE = frozenset((DEFAULT_THEME, LIGHT_THEME, ANSI_THEME, ANSI_LIGHT_THEME))
"""The themes that are worn because of what the terminal is."""
CHOICE_FILE, BACKGROUND_FILE = "theme", "background"
"""In the state folder: the theme chosen last, and whether the terminal was light or dark."""

DEFAULT: dict[str, Any] = {
    "name": DEFAULT_THEME,
    "dark": True,
    "colors": {
        "primary": "#74b3ff",
        "secondary": "#8fa3b8",
        "accent": "#e6b450",
        "success": "#7fc07a",
        "warning": "#e0a545",
        "error": "#ef6b73",
        "foreground": "#d5dae1",
        "background": "#0f1318",
        "surface": "#161b22",
        "panel": "#1f2630",
    },
    "variables": {
        "muted": "#97a1ae",
        "faint": "#7f8997",
        "line": "#2b333e",
        "user": "#74b3ff",
        "diff-add": "#7fc07a",
        "diff-remove": "#ef6b73",
        "selection": "#2f5d96",
        "selection-text": "#ffffff",
        "context-system": "#74b3ff",
        "context-environment": "#5fc2c0",
        "context-memory": "#b696f0",
        "context-skills": "#e08fc0",
        "context-tools": "#e6b450",
        "context-servers": "#d9915b",
        "context-documents": "#8fcf7e",
        "context-messages": "#4d86d6",
        "context-user": "#9ccf6a",
        "context-summary": "#d678c8",
        "context-free": "#2b333e",
        "context-tool-results": "#e0765a",
        "context-reasoning": "#a3b1c6",
        "context-reserve": "#5b4a2a",
    },
}
"""The default theme's file, agent-dark.toml, as it is: the start with it reads and parses none."""


# The theme to start with


def wanted_theme(configured: str, state: Path) -> str:
    """The theme to start with: the configured one, else the one chosen last with /theme, else ``AUTO_THEME``."""
    if configured != AUTO_THEME:
        return configured
    return _said(state / CHOICE_FILE)[:100] or configured


def theme_for(light: bool | None, few: bool) -> str:
    """The theme for a background, where it is known; ``few``: the terminal has 16 colours."""
    if few:
        return ANSI_LIGHT_THEME if light else ANSI_THEME
    return LIGHT_THEME if light else DEFAULT_THEME


def told_by_environment(environ: Mapping[str, str]) -> bool | None:
    """Returns whether the last number of ``COLORFGBG``, one of the 16 colours, is a white one; None without it."""
    last = environ.get("COLORFGBG", "").rpartition(";")[2]
    return int(last) in (7, *range(9, 16)) if last.isdecimal() and int(last) < 16 else None


def told_before(state: Path, environ: Mapping[str, str]) -> bool | None:
    """Returns whether the background is light: as the environment says, else as the terminal said the last time."""
    told = told_by_environment(environ)
    return told if told is not None else {"light": True, "dark": False}.get(_said(state / BACKGROUND_FILE))


def keep_background(light: bool, state: Path) -> None:
    """The next start begins with what the terminal said now. It is only a guess: nothing is lost without it."""
    said = "light" if light else "dark"
    if said != _said(state / BACKGROUND_FILE):
        try:
            private_dir(state)
            (state / BACKGROUND_FILE).write_text(said + "\n", encoding="utf-8")
        except OSError:
            return


def _said(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


# The frame


class FirstFrame:
    """Takes the terminal, and gives it to Textual (``hand_over``) or, where it does not come to that, back to the shell
    as it was (``close``, also when the process is to end)."""

    def __init__(self, terminal: int, keys: int) -> None:
        """File descriptors: signals come in the middle of what a buffered file writes."""
        self._terminal, self._keys = terminal, keys
        self._before: list[Any] | None = None
        self._handlers: dict[int, Any] = {}
        self._typed = b""
        self.stands = False

    def show(self, text: str) -> None:
        """Nothing that is typed meanwhile is echoed, or lost; Ctrl+Z waits for Textual, too. Raises OSError where the
        terminal does not take it, and leaves that as it was."""
        import termios

        try:
            self._before = termios.tcgetattr(self._keys)
            quiet = termios.tcgetattr(self._keys)
        except termios.error as gone:
            raise OSError(*gone.args) from None
        # By keys and not by lines, which have a length; Ctrl+C takes nothing away of what was typed.
        quiet[3] = quiet[3] & ~termios.ECHO & ~termios.ICANON | termios.NOFLSH
        quiet[6][termios.VSUSP] = b"\0"
        quiet[6][termios.VMIN], quiet[6][termios.VTIME] = 1, 0
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            known = signal.getsignal(number)
            if known in (signal.SIG_DFL, signal.default_int_handler):
                self._handlers[number] = known
                signal.signal(number, self._ended)
        self.stands = True
        try:
            termios.tcsetattr(self._keys, termios.TCSANOW, quiet)
            self._write(text + MARK_PASTES)
        except BaseException:
            self.close()
            raise

    def hand_over(self) -> tuple[bytes, list[Any]] | None:
        """Leaves the frame to who goes on with it. Returns what was typed, and the modes that the terminal is to have
        in the end; until then nothing is echoed and no key is a signal. None where no frame stands."""
        if not self.stands or self._before is None:
            return None
        import termios

        try:
            no_signals = termios.tcgetattr(self._keys)
            no_signals[3] &= ~termios.ISIG
            termios.tcsetattr(self._keys, termios.TCSANOW, no_signals)
        except termios.error as gone:
            raise OSError(*gone.args) from None
        self._read_typed()
        self._restore_handlers()
        return self._typed, self._before

    def close(self) -> None:
        if not self.stands:
            return
        self._restore_handlers()
        import termios

        try:
            if self._before is not None:
                termios.tcsetattr(self._keys, termios.TCSANOW, self._before)
            self._write(MARK_NO_PASTES + LEAVE + SHOW_CURSOR)
        except (OSError, ValueError, termios.error):  # the terminal is gone, and with it what there was to put back
            return

    def _restore_handlers(self) -> None:
        self.stands = False
        for number, known in self._handlers.items():
            signal.signal(number, known)

    def _read_typed(self) -> None:
        """Takes what has been typed so far."""
        with suppress(OSError):
            while select.select([self._keys], [], [], 0)[0] and (data := os.read(self._keys, 1 << 16)):
                self._typed += data

    def _write(self, text: str) -> None:
        data = text.encode()
        while data:
            data = data[os.write(self._terminal, data) :]

    def _ended(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            self._read_typed()
            if PASTE_BEGINS in self._typed:
                return  # a Ctrl+C that was pasted is none
        self.close()
        os.kill(os.getpid(), number)


def first_frame(ui: UiConfig, paths: Paths, environ: Mapping[str, str], *, face: bool) -> FirstFrame | None:
    """Shows the first frame, with the name on it where the session is a new one (``face``); None where it cannot."""
    if ui.vim or "NO_COLOR" in environ or sys.__stdin__ is None or sys.__stderr__ is None:
        return None
    try:
        if not sys.__stderr__.isatty() or sys.__stderr__.encoding.lower() != "utf-8":
            return None
        keys = sys.__stdin__.fileno()
        size = os.get_terminal_size(keys)
        look = Look.of(ui, paths, environ)
        if look is None or size.columns < SMALLEST[0] or size.lines < SMALLEST[1]:
            return None
        frame = FirstFrame(sys.__stderr__.fileno(), keys)
        frame.show(drawn(size.columns, size.lines, look, face=face))
    except (OSError, ValueError):  # Textual finds out, and says, what is wrong with this terminal
        return None
    return frame


class Look:
    """The colours of the first frame, as the terminal is told them."""

    def __init__(self, colors: Mapping[str, str], rgb: bool) -> None:
        self._colors, self._rgb = colors, rgb

    @classmethod
    def of(cls, ui: UiConfig, paths: Paths, environ: Mapping[str, str]) -> Look | None:
        """None where the terminal has too few colours for the theme, or the theme does not name them as such."""
        rgb = environ.get("COLORTERM", "").strip().lower() in ("truecolor", "24bit")
        named = environ.get("TERM", "").lower()
        if environ.get("TEXTUAL_COLOR_SYSTEM", "auto") != "auto" or not (rgb or named.endswith("-256color")):
            return None
        wanted = wanted_theme(ui.theme, paths.state)
        data = _theme_data(
            theme_for(told_before(paths.state, environ), False) if wanted == AUTO_THEME else wanted, paths.themes
        )
        colors = {**data.get("colors", {}), **data.get("variables", {})}
        needed = {name: colors.get(name, "") for name in ("foreground", "background", "surface", "primary", "faint")}
        plain = all(isinstance(c, str) and len(c) == 7 and c[0] == "#" for c in needed.values())
        return cls(needed, rgb) if plain and not data.get("ansi") else None

    def __call__(self, text: str, front: str, back: str = "background", bold: bool = False) -> str:
        return f"\x1b[{'1;' if bold else ''}38;{self._code(front)};48;{self._code(back)}m{text}\x1b[0m"

    def _code(self, name: str) -> str:
        red, green, blue = bytes.fromhex(self._colors[name][1:])
        return f"2;{red};{green};{blue}" if self._rgb else f"5;{nearest(red, green, blue)}"


def nearest(red: int, green: int, blue: int) -> int:
    """The one of 256 colours that Rich takes for a colour."""
    from colorsys import rgb_to_hls

    _, light, saturation = rgb_to_hls(red / 255, green / 255, blue / 255)
    if saturation < 0.15:
        gray = round(light * 25)
        return 16 if gray == 0 else 231 if gray == 25 else 231 + gray
    steps = (round(one / 95 if one < 95 else 1 + (one - 95) / 40) for one in (red, green, blue))
    return 16 + sum(step * weight for step, weight in zip(steps, (36, 6, 1), strict=True))


def _theme_data(name: str, folder: Path) -> dict[str, Any]:
    """A theme's file as it is; empty where it is none, which is said later."""
    for path in (folder / f"{name}.toml", package_themes() / f"{name}.toml"):
        if path.is_file():
            import tomllib

            try:
                return tomllib.loads(path.read_text(encoding="utf-8"))
            except ValueError:
                return {}
        if name == DEFAULT_THEME:
            return DEFAULT
    return {}


def drawn(width: int, height: int, look: Look, *, face: bool) -> str:
    """The frame as it is written."""
    blank = look(" " * width, "foreground")
    bar = look("▌", "primary", "surface")
    air = [bar + look(" " * (width - 1), "foreground", "surface")] if height >= ROOMY else []
    prompt = (
        bar
        + look(" ", "foreground", "surface")
        + look(PLACEHOLDER[0], "background", "foreground")
        + look(f"{PLACEHOLDER[1:]:<{width - 3}}", "faint", "surface")
    )
    status = (
        look(" ", "foreground")
        + look(STARTING, "foreground", bold=True)
        + look("  ", "foreground")
        + look("ask", "primary")
        + look(" " * (width - len(STARTING) - 6), "foreground")
    )
    below = [blank, *air, prompt, *air, status]
    above = [blank, *_name(width, height, look)] if face else []
    rows = [*above, *[blank] * (height - len(below) - len(above)), *below]
    return ENTER + "\x1b[?25l" + "".join(f"\x1b[{y};1H{row}" for y, row in enumerate(rows, 1))


def _name(width: int, height: int, look: Look) -> list[str]:
    if is_small(width, height):
        return [look("  ", "foreground") + look(f"{NAME:<{width - 2}}", "foreground", bold=True)]
    return [
        look("  ", "foreground") + look(agent, "primary") + look(f"{rest:<{width - 2 - len(agent)}}", "foreground")
        for agent, rest in WORDMARK
    ]


def is_small(width: int, height: int) -> bool:
    """Returns whether the name is a word on a screen of that size."""
    return width < LEAST_WIDTH or height < LOW
