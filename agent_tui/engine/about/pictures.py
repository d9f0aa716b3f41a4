"""How this terminal shows pictures, and what to set where it could do better.

In the conversation itself only where they are a part of the text that scrolls: kitty's graphics protocol with its
placeholders (sw.kovidgoyal.net/kitty/graphics-protocol), which kitty has since 0.28 and Ghostty since its first
version. All others draw over the text: kitty before, iTerm2 by its protocol (iterm2.com/documentation-images.html),
many as sixels. There a picture is a line that opens a screen of its own, with coarse blocks where the terminal draws
nothing. tmux hands on what is wrapped for it since 3.3 where ``allow-passthrough`` is set, and draws sixels itself
where it was built so and the terminal around it can.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agent_tui.config import Images
from agent_tui.engine.about.replies import KITTY_TERMS, LIMITS, Replies, asked_of, called
from agent_tui.engine.about.tmux import ask_tmux, tell_tmux

Way: TypeAlias = Literal["line", "blocks", "sixel", "iterm2", "kitty", "inline"]
"""``line`` only names them; ``inline`` has them in the conversation; all others draw on a screen of their own."""

ASKED_OF_TMUX = "#{client_termname}|#{client_termtype}|#{allow-passthrough}|#{client_termfeatures}"
SILENT = ("linux", "dumb", "")
"""Terminals that would write a question on the screen, or are none."""
ITERM2 = ("iTerm", "WezTerm", "mintty")
"""How the names (XTVERSION, ``TERM_PROGRAM``) begin of those who draw by iTerm2's protocol: in all colours, so that it
is better than sixels."""
OPENS = "a line; a click or /picture shows it"
COARSE = f"{OPENS} in coarse blocks"
_KITTY = (0, 28)
_PASS = "put set -g allow-passthrough on into ~/.tmux.conf for true ones"
_INSIST = '[ui] images = "sixel" (or "iterm2") insists'
_NAMES = {"sixel": "as sixels", "iterm2": "by iTerm2's protocol", "kitty": "by kitty's graphics protocol"}


@dataclass(slots=True, frozen=True)
class Graphics:
    """``detail`` is for people. ``wrapped``: each sequence is to be wrapped for tmux. ``few_colors``: tmux makes each
    colour one of 256. ``question`` is what to ask the terminal, whose answer may change all this, if any."""

    way: Way
    detail: str
    wrapped: bool = False
    few_colors: bool = False
    question: str = ""


IN_A_PAGE = Graphics("blocks", f"{COARSE}: the page of the browser draws none")
TOO_FEW_COLORS = Graphics(
    "line", "a line in the conversation: they need 256 colours, which this terminal is not known for"
)


def graphics(
    setting: Images,
    environment: Mapping[str, str],
    tmux: Callable[[], str] | None = None,
    replies: Replies | None = None,
) -> Graphics:
    """``tmux`` answers ``ASKED_OF_TMUX``; without it the server that runs is asked, which takes a moment. ``replies``:
    what the terminal said to the ``question``, once it did."""
    if setting == "off":
        return Graphics("line", 'a line in the conversation: [ui] images = "off"')
    if "NO_COLOR" in environment:
        return Graphics("line", "a line in the conversation: they need colours, and NO_COLOR is set")
    term = environment.get("TERM", "")
    if environment.get("TMUX"):
        return _in_tmux(setting, (tmux or told_by_tmux)(), replies)
    if environment.get("STY") or term.startswith("screen"):
        return Graphics("blocks", f"{COARSE}: GNU screen does not hand them on")
    apple = environment.get("TERM_PROGRAM") == "Apple_Terminal"
    question = "" if term in SILENT else _next_question(setting, asked_of(term, apple), replies)
    if setting == "kitty":
        return Graphics("inline", 'in the conversation: [ui] images = "kitty"')
    if setting in ("iterm2", "sixel"):
        return Graphics(setting, _opens(setting, f'[ui] images = "{setting}"'), question=question)
    if term in SILENT:
        return Graphics("blocks", f"{COARSE}: this terminal draws none")
    if replies is None:
        program = _program(environment)
        if program.startswith(ITERM2):
            return Graphics("iterm2", _opens("iterm2", program), question=question)
        return Graphics("blocks", f"{COARSE}: the terminal has not said what it can", question=question)
    return _answered(replies, environment, question)


def _next_question(setting: Images, first: str, replies: Replies | None) -> str:
    """What is asked now: first what it can, then how large and colourful sixels may be."""
    if replies is None:
        return first
    wanted = replies.sixels or setting == "sixel"
    return LIMITS if wanted and replies.rounds < 2 else ""


def _answered(replies: Replies, environment: Mapping[str, str], question: str) -> Graphics:
    name = replies.name
    if replies.placeholders:
        return Graphics("inline", f"in the conversation{_by(name)}")
    if replies.draws:
        return Graphics("kitty", f"{_opens('kitty', name)}; kitty has them in the conversation from 0.28 on")
    named = name or _program(environment)
    if named.startswith(ITERM2):
        return Graphics("iterm2", _opens("iterm2", named))
    if replies.sixels:
        return Graphics("sixel", _opens("sixel", name), question=question)
    return Graphics("blocks", f"{COARSE}: this terminal{_by(name)} says of no way to draw them; {_INSIST}")


def _program(environment: Mapping[str, str]) -> str:
    """What the terminal calls itself where it was not asked."""
    return called(environment.get("TERM_PROGRAM") or environment.get("LC_TERMINAL", ""))


def _opens(way: Literal["sixel", "iterm2", "kitty"], why: str) -> str:
    return f"{OPENS} {_NAMES[way]}{_by(why)}"


def _by(name: str) -> str:
    return f" ({name})" if name else ""


def _in_tmux(setting: Images, answer: str, replies: Replies | None) -> Graphics:
    parts = [*answer.strip().split("|"), "", "", "", ""]
    name, kind, passing, features = parts[0], called(parts[1]), parts[2], parts[3]
    # A number in tmux 3.3, a word afterwards.
    passes = passing in ("1", "on", "all")
    known = features.split(",")
    few = "RGB" not in known
    if passes and (setting == "kitty" or (setting == "auto" and _known(name, kind))):
        return Graphics("inline", "in the conversation, through tmux", wrapped=True, few_colors=few)
    if setting == "iterm2" or (setting == "auto" and kind.startswith(ITERM2)):
        if passes:
            return Graphics("iterm2", f"{_opens('iterm2', kind)}, through tmux", wrapped=True)
    elif setting in ("auto", "sixel") and "sixel" in known:
        # Built with it, and for a terminal that can: tmux itself says whether, as any terminal.
        said = replies is not None and replies.sixels
        question = _next_question(setting, asked_of("", True), replies)
        if said:
            return Graphics("sixel", f"{_opens('sixel', kind)}, drawn by tmux", question=question)
        if replies is None:
            return Graphics("blocks", f"{COARSE}: tmux has not said what it can", question=question)
    elif setting == "sixel" and passes:
        return Graphics("sixel", f"{_opens('sixel', kind)}, through tmux", wrapped=True)
    could = setting != "auto" or _known(name, kind) or kind.startswith(ITERM2)
    if could and not passes:
        return Graphics("blocks", f"{COARSE}: {_PASS if passing else 'tmux hands true ones on from 3.3 on'}")
    return Graphics("blocks", f"{COARSE}: the terminal around tmux is not known to draw them; {_INSIST}")


def _known(name: str, kind: str) -> bool:
    """Whether the terminal around tmux has placeholders, by the name and version that it told tmux."""
    if kind.lower().startswith("ghostty") or name == KITTY_TERMS[1]:
        return True
    version = re.match(r"kitty\((\d+)\.(\d+)", kind)
    return version is not None and (int(version[1]), int(version[2])) >= _KITTY


def told_by_tmux(wanted: str = ASKED_OF_TMUX) -> str:
    """What the tmux that runs says of this pane and of who looks at it; empty where it says nothing."""
    return ask_tmux("display-message", "-p", wanted)


def place_in_tmux() -> tuple[int, int]:
    """Columns left of this pane and rows above it, on the terminal around tmux."""
    found = told_by_tmux("#{pane_left}|#{pane_top}|#{status-position}|#{status}").split("|")
    if len(found) != 4 or not (found[0].isdigit() and found[1].isdigit()):
        return 0, 0
    left, top, position, status = found
    lines = int(status) if status.isdigit() else int(status == "on")
    return int(left), int(top) + (lines if position == "top" else 0)


def redraw_tmux() -> None:
    """Has tmux write everything again: it does not know what was drawn over its cells. Does not wait."""
    tell_tmux("refresh-client")
