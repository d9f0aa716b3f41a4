"""How pictures are shown on this terminal: asks it, or the tmux around this program, and reads its answer."""

from __future__ import annotations

import os
import re
import select
import sys
import time
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

from agent_tui.config import Images
from agent_tui.engine.tmux import ask_tmux
from agent_tui.records import dataclass
from agent_tui.text.clean import plain_line

PROBE = 31
"""The number of the picture that the question to kitty speaks of; it is never sent."""
PLACEHOLDERS = f"\x1b_Gi={PROBE},a=q,U=1,s=1,v=1,t=d,f=24;AAAA\x1b\\"
"""Whether kitty holds pictures in a text. Before 0.28 it calls ``U`` an error or says nothing. Konsole knows nothing of
it and says yes: this is for kitty and Ghostty alone."""
NAME = "\x1b[>q"
"""XTVERSION: the terminal's name and version."""
ATTRIBUTES = "\x1b[c"
"""What every terminal answers, and so the end of the questions."""
QUESTION = PLACEHOLDERS + NAME + ATTRIBUTES

REPLY = re.compile(
    r"\x1b_G(?P<kitty>[^\x1b\x07]{0,200})\x1b\\"
    r"|\x1bP>\|(?P<name>[^\x1b\x07]{0,100})\x1b\\"
    r"|\x1b\[\?(?P<attributes>[\d;]{0,60})c"
)


def readable_name(name: str) -> str:
    """Returns the name that a terminal gives itself, as people may be shown it."""
    return plain_line(name, 60)


class Replies:
    """All that one terminal has answered."""

    def __init__(self) -> None:
        self.placeholders = False
        self.name = ""

    def take(self, reply: re.Match[str]) -> bool:
        """Notes a reply that matched ``REPLY``; whether it was the last."""
        said = reply.groupdict()
        if said["kitty"] is not None:
            self.placeholders = self.placeholders or said["kitty"] == f"i={PROBE};OK"
        elif said["name"] is not None:
            self.name = readable_name(said["name"])
        return said["attributes"] is not None


Way: TypeAlias = Literal["line", "blocks", "inline"]
"""``line`` only names them; ``blocks`` draws them coarsely on a screen of their own; ``inline`` has them in the
conversation."""

ASKED_OF_TMUX = "#{client_termname}|#{client_termtype}|#{allow-passthrough}|#{client_termfeatures}"
KITTY_TERMS = ("xterm-kitty", "xterm-ghostty")
"""Values of ``TERM`` of terminals that can hold pictures in a text."""
NO_SCREEN = ("linux", "dumb", "")
COARSE = "shown as a line; a click or /picture opens it in coarse blocks"
_KITTY = (0, 28)
_PASS = "add `set -g allow-passthrough on` to ~/.tmux.conf for full pictures"
_INSIST = '[ui] images = "kitty" forces it'


@dataclass(slots=True, frozen=True)
class Graphics:
    """How pictures are shown."""

    way: Way
    detail: str
    """For people."""
    wrapped: bool = False
    """Each sequence is to be wrapped for tmux."""
    few_colors: bool = False
    """Tmux makes each colour one of 256."""
    question: str = ""
    """What to ask the terminal, whose answer may change all this, if any."""


IN_A_PAGE = Graphics("blocks", f"{COARSE}: the browser page draws no pictures")
TOO_FEW_COLORS = Graphics(
    "line", "a line in the conversation: pictures need 256 colours, which this terminal does not report"
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
        return Graphics("line", "a line in the conversation: NO_COLOR is set")
    term = environment.get("TERM", "")
    if environment.get("TMUX"):
        return _in_tmux(setting, (tmux or described_by_tmux)())
    if environment.get("STY") or term.startswith("screen"):
        return Graphics("blocks", f"{COARSE}: GNU screen does not pass pictures through")
    if setting == "kitty":
        return Graphics("inline", 'in the conversation: [ui] images = "kitty"')
    if term in NO_SCREEN:
        return Graphics("blocks", f"{COARSE}: this terminal draws no pictures")
    if term not in KITTY_TERMS:
        program = readable_name(environment.get("TERM_PROGRAM") or environment.get("LC_TERMINAL", ""))
        return Graphics("blocks", f"{COARSE}: {_by(program)} is not known for kitty's graphics; {_INSIST}")
    if replies is None:
        return Graphics("blocks", f"{COARSE}: the terminal did not report what it can draw", question=QUESTION)
    if replies.placeholders:
        return Graphics("inline", f"in the conversation ({replies.name})" if replies.name else "in the conversation")
    return Graphics("blocks", f"{COARSE}: {_by(replies.name)} reports no pictures in a text; kitty has them from 0.28")


def _by(name: str) -> str:
    return name or "this terminal"


def _in_tmux(setting: Images, answer: str) -> Graphics:
    name, kind, passing, features, *_ = [*answer.strip().split("|"), "", "", "", ""]
    if setting != "kitty" and not _has_placeholders(name, kind):
        around = readable_name(kind) or "the terminal around tmux"
        return Graphics("blocks", f"{COARSE}: {around} is not known for kitty's graphics; {_INSIST}")
    # A number in tmux 3.3, a word afterwards.
    if passing in ("1", "on", "all"):
        few = "RGB" not in features.split(",")
        return Graphics("inline", "in the conversation, through tmux", wrapped=True, few_colors=few)
    return Graphics("blocks", f"{COARSE}: {_PASS if passing else 'tmux passes full pictures through from 3.3'}")


def _has_placeholders(name: str, kind: str) -> bool:
    """Returns whether the terminal around tmux has them, by the name and version that it told tmux."""
    if kind.lower().startswith("ghostty") or name == KITTY_TERMS[1]:
        return True
    version = re.match(r"kitty\((\d+)\.(\d+)", kind)
    return version is not None and (int(version[1]), int(version[2])) >= _KITTY


def described_by_tmux() -> str:
    """Returns what the tmux that runs says of who looks at this pane; empty where it says nothing."""
    return ask_tmux("display-message", "-p", ASKED_OF_TMUX)


PATIENCE = 1.0
"""Seconds in which a terminal answers, however far away it is; those that answer end the wait."""


def ask_terminal(setting: Images, environment: Mapping[str, str]) -> Graphics:
    """Returns how pictures are shown here. Asks where input and output are a terminal; waits for its answer."""
    found = graphics(setting, environment)
    if not found.question or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return found
    try:
        replies = _asked(found.question)
    except (ImportError, OSError, ValueError):
        return found
    return graphics(setting, environment, replies=replies) if replies is not None else found


def _in_background(terminal: int) -> bool:
    try:
        return os.tcgetpgrp(terminal) != os.getpgrp()
    except OSError:  # not the one that stops and wakes its programs
        return False


def _asked(question: str) -> Replies | None:
    """The replies, or None where they did not come, or are another program's to take: the system would stop one in the
    background. The terminal is as it was afterwards."""
    import termios
    import tty

    terminal = sys.stdin.fileno()
    if _in_background(terminal):
        return None
    before = termios.tcgetattr(terminal)
    replies, text, end = Replies(), "", time.monotonic() + PATIENCE
    try:
        tty.setcbreak(terminal, termios.TCSADRAIN)
        os.write(sys.stdout.fileno(), question.encode())
        while (left := end - time.monotonic()) > 0 and select.select([terminal], [], [], left)[0]:
            text += os.read(terminal, 1_024).decode("utf-8", "replace")
            while (reply := REPLY.search(text)) is not None:
                text = text[reply.end() :]
                if replies.take(reply):
                    return replies
        return None
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
