"""Asks the terminal what it can do, and reads its answers: pictures, the keys of a newline, through tmux too."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from threading import Thread
from typing import Literal, TypeAlias

from agent_tui.config import Images
from agent_tui.pipes.programs import find_program
from agent_tui.pipes.start import run
from agent_tui.records import dataclass
from agent_tui.text.clean import plain_line

NAME = "\x1b[>q"
"""XTVERSION: the terminal's name and version."""
CELL = "\x1b[16t"
"""How large a cell is, in pixels."""
COLORS, LARGEST = "\x1b[?1;1;0S", "\x1b[?2;1;0S"
"""XTSMGRAPHICS: how many colours a sixel picture may have, and how large it may be. Others than those who draw sixels
may take it for scrolling."""
ATTRIBUTES = "\x1b[c"
SIXELS = "4"
"""The attribute of a terminal that draws sixels."""
PROBE, PLAIN_PROBE = 31, 32
"""The numbers of the pictures that the questions to kitty speak of; they are never sent."""
PLACEHOLDERS = f"\x1b_Gi={PROBE},a=q,U=1,s=1,v=1,t=d,f=24;AAAA\x1b\\"
"""Whether kitty holds pictures in a text. Before 0.28 it calls ``U`` an error or says nothing. Konsole knows nothing of
it and says yes: this is for kitty and Ghostty alone."""
DRAWS = f"\x1b_Gi={PLAIN_PROBE},a=q,s=1,v=1,t=d,f=24;AAAA\x1b\\"
"""Whether it draws pictures over the text at least."""

REPLY = re.compile(
    r"\x1b_G(?P<kitty>[^\x1b\x07]{0,200})\x1b\\"
    r"|\x1bP>\|(?P<name>[^\x1b\x07]{0,100})\x1b\\"
    r"|\x1b\[6;(?P<high>\d{1,4});(?P<wide>\d{1,4})t"
    r"|\x1b\[\?(?P<what>[12]);(?P<values>[\d;]{1,20})S"
    r"|\x1b\[\?(?P<attributes>[\d;]{0,60})c"
)
_LEAST, _MOST = 4, 100
"""Pixels of a cell's side that are believed."""


def called(name: str) -> str:
    """Returns the name that a terminal gives itself, as people may be shown it."""
    return plain_line(name, 60)


def believed(cell: tuple[int, int]) -> tuple[int, int] | None:
    """The size of a cell in pixels, where it can be one."""
    return cell if min(cell) >= _LEAST and max(cell) <= _MOST else None


class Replies:
    """All that one terminal has answered."""

    def __init__(self) -> None:
        self.placeholders = False
        self.draws = False
        self.name = ""
        self.cell: tuple[int, int] | None = None
        self.sixels = False
        self.colors: int | None = None
        self.largest: tuple[int, int] | None = None
        self.rounds = 0
        """How often the last answer came."""

    def take(self, reply: re.Match[str]) -> bool:
        """Notes a reply that matched ``REPLY``; whether it was the last."""
        found = reply.groupdict()
        if found["attributes"] is not None:
            self.sixels = SIXELS in found["attributes"].split(";")[1:]
            self.rounds += 1
            return True
        if found["kitty"] is not None:
            self.placeholders = self.placeholders or found["kitty"] == f"i={PROBE};OK"
            self.draws = self.draws or found["kitty"] == f"i={PLAIN_PROBE};OK"
        elif found["name"] is not None:
            self.name = called(found["name"])
        elif found["high"] is not None:
            self.cell = believed((int(found["wide"]), int(found["high"])))
        elif found["what"] is not None:
            self._limit(found["what"], [int(n) for n in found["values"].split(";") if n])
        return False

    def _limit(self, what: str, values: list[int]) -> None:
        # The first is 0 where it could be said.
        if what == "1" and len(values) >= 2 and values[0] == 0 and values[1] >= 2:
            self.colors = values[1]
        elif what == "2" and len(values) >= 3 and values[0] == 0 and min(values[1:3]) > 0:
            self.largest = (values[1], values[2])


def asked_of(term: str, apple: bool) -> str:
    """Returns the questions that a terminal of this ``TERM`` is asked first; ``apple`` is the one of macOS, which
    prints what it does not know."""
    if apple:
        return ATTRIBUTES
    return (PLACEHOLDERS + DRAWS if term in KITTY_TERMS else "") + NAME + CELL + ATTRIBUTES


LIMITS = COLORS + LARGEST + ATTRIBUTES
"""What one that draws sixels is asked then."""
KITTY_TERMS = ("xterm-kitty", "xterm-ghostty")
"""Values of ``TERM`` of terminals that are worth being asked whether they hold pictures in a text."""


TMUX_PATIENCE = 2.0
"""Seconds that it is waited for."""


def ask_tmux(*words: str) -> str:
    """Runs a tmux command and returns what tmux says; empty where it says nothing, or is not there."""
    program = find_program("tmux")
    if program is None:
        return ""
    try:
        done = run([program, *words], capture_output=True, timeout=TMUX_PATIENCE)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace").strip()


Way: TypeAlias = Literal["line", "blocks", "sixel", "iterm2", "kitty", "inline"]
"""``line`` only names them; ``inline`` has them in the conversation; all others draw on a screen of their own."""

ASKED_OF_TMUX = "#{client_termname}|#{client_termtype}|#{allow-passthrough}|#{client_termfeatures}"
SILENT = ("linux", "dumb", "")
"""Terminals that would write a question on the screen, or are none."""
ITERM2 = ("iTerm", "WezTerm", "mintty")
"""How the names (XTVERSION, ``TERM_PROGRAM``) begin of those who draw by iTerm2's protocol: in all colours, so that it
is better than sixels."""
OPENS = "shown as a line; a click or /picture opens it"
COARSE = f"{OPENS} in coarse blocks"
_KITTY = (0, 28)
_PASS = "add `set -g allow-passthrough on` to ~/.tmux.conf for full pictures"
_INSIST = '[ui] images = "sixel" (or "iterm2") forces it'
_NAMES = {"sixel": "as sixels", "iterm2": "as iTerm2 images", "kitty": "as kitty graphics"}


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
        return _in_tmux(setting, (tmux or told_by_tmux)(), replies)
    if environment.get("STY") or term.startswith("screen"):
        return Graphics("blocks", f"{COARSE}: GNU screen does not pass pictures through")
    apple = environment.get("TERM_PROGRAM") == "Apple_Terminal"
    question = "" if term in SILENT else _next_question(setting, asked_of(term, apple), replies)
    if setting == "kitty":
        return Graphics("inline", 'in the conversation: [ui] images = "kitty"')
    if setting in ("iterm2", "sixel"):
        return Graphics(setting, _opens(setting, f'[ui] images = "{setting}"'), question=question)
    if term in SILENT:
        return Graphics("blocks", f"{COARSE}: this terminal draws no pictures")
    if replies is None:
        program = _program(environment)
        if program.startswith(ITERM2):
            return Graphics("iterm2", _opens("iterm2", program), question=question)
        return Graphics("blocks", f"{COARSE}: the terminal did not report what it can draw", question=question)
    return _answered(replies, environment, question)


def _next_question(setting: Images, first: str, replies: Replies | None) -> str:
    """Returns the questions to ask now: first what it can, then how large and colourful sixels may be."""
    if replies is None:
        return first
    wanted = replies.sixels or setting == "sixel"
    return LIMITS if wanted and replies.rounds < 2 else ""


def _answered(replies: Replies, environment: Mapping[str, str], question: str) -> Graphics:
    name = replies.name
    if replies.placeholders:
        return Graphics("inline", f"in the conversation{_by(name)}")
    if replies.draws:
        return Graphics("kitty", f"{_opens('kitty', name)}; kitty shows them in the conversation from 0.28")
    named = name or _program(environment)
    if named.startswith(ITERM2):
        return Graphics("iterm2", _opens("iterm2", named))
    if replies.sixels:
        return Graphics("sixel", _opens("sixel", name), question=question)
    return Graphics("blocks", f"{COARSE}: this terminal{_by(name)} reports no way to draw them; {_INSIST}")


def _program(environment: Mapping[str, str]) -> str:
    """Returns the name the terminal gives itself where it was not asked."""
    return called(environment.get("TERM_PROGRAM") or environment.get("LC_TERMINAL", ""))


def _opens(way: Literal["sixel", "iterm2", "kitty"], why: str) -> str:
    return f"{OPENS} {_NAMES[way]}{_by(why)}"


def _by(name: str) -> str:
    return f" ({name})" if name else ""


def _in_tmux(setting: Images, answer: str, replies: Replies | None) -> Graphics:
    name, kind, passing, features, *_ = [*answer.strip().split("|"), "", "", "", ""]
    kind, known = called(kind), features.split(",")
    # A number in tmux 3.3, a word afterwards.
    passes = passing in ("1", "on", "all")
    if passes and (setting == "kitty" or (setting == "auto" and _known(name, kind))):
        return Graphics("inline", "in the conversation, through tmux", wrapped=True, few_colors="RGB" not in known)
    if setting == "iterm2" or (setting == "auto" and kind.startswith(ITERM2)):
        if passes:
            return Graphics("iterm2", f"{_opens('iterm2', kind)}, through tmux", wrapped=True)
    elif setting in ("auto", "sixel") and "sixel" in known:
        # Built with it, and for a terminal that can: tmux itself says whether, as any terminal.
        question = _next_question(setting, asked_of("", True), replies)
        if replies is not None and replies.sixels:
            return Graphics("sixel", f"{_opens('sixel', kind)}, drawn by tmux", question=question)
        if replies is None:
            return Graphics("blocks", f"{COARSE}: tmux did not report what it can draw", question=question)
    elif setting == "sixel" and passes:
        return Graphics("sixel", f"{_opens('sixel', kind)}, through tmux", wrapped=True)
    could = setting != "auto" or _known(name, kind) or kind.startswith(ITERM2)
    if could and not passes:
        return Graphics("blocks", f"{COARSE}: {_PASS if passing else 'tmux passes full pictures through from 3.3'}")
    return Graphics("blocks", f"{COARSE}: the terminal around tmux is not known to draw them; {_INSIST}")


def _known(name: str, kind: str) -> bool:
    """Returns whether the terminal around tmux has placeholders, by the name and version that it told tmux."""
    if kind.lower().startswith("ghostty") or name == KITTY_TERMS[1]:
        return True
    version = re.match(r"kitty\((\d+)\.(\d+)", kind)
    return version is not None and (int(version[1]), int(version[2])) >= _KITTY


def told_by_tmux(wanted: str = ASKED_OF_TMUX) -> str:
    """Returns what the tmux that runs says of this pane and of who looks at it; empty where it says nothing."""
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
    Thread(target=ask_tmux, args=["refresh-client"], name="tmux", daemon=True).start()


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


ALWAYS = "Ctrl+J, and \\ before Enter"
CLIENT = "client_termfeatures"
"""What tmux found out about the terminal around it; all else that it is asked for are options."""
WORKS = ""
"""In place of what would have to be set."""


@dataclass(slots=True, frozen=True)
class Known:
    """A terminal: what has to be set for each key, nothing where it works as it is."""

    name: str
    shift: str = WORKS
    alt: str = WORKS


_FULL_SCREEN = "the terminal uses it for full screen"
_OPTION = "set Option as Meta in the terminal's keyboard settings"

BY_PROGRAM: dict[str, Known] = {
    "iTerm.app": Known("iTerm2", alt="set Left Option to Esc+ (Profiles, Keys)"),
    "ghostty": Known("Ghostty"),
    "WezTerm": Known("WezTerm", "set enable_kitty_keyboard = true in wezterm.lua", _FULL_SCREEN),
    "WarpTerminal": Known("Warp"),
    "rio": Known("Rio"),
    "zed": Known("Zed"),
    "vscode": Known(
        "VS Code",
        "from 1.109.5; earlier, bind shift+enter to workbench.action.terminal.sendSequence with \\u001b\\r",
        "works; on macOS set terminal.integrated.macOptionIsMeta",
    ),
    "Apple_Terminal": Known(
        "Terminal.app", "not distinguished from Enter", "check Use Option as Meta Key (Profiles, Keyboard)"
    ),
}
"""By ``TERM_PROGRAM``. Sources: the terminals' own documentation and terminfo.dev."""
BY_TERM: dict[str, Known] = {
    "xterm-kitty": Known("kitty"),
    "xterm-ghostty": BY_PROGRAM["ghostty"],
    "foot": Known("foot"),
    "alacritty": Known("Alacritty", "from 0.13"),
    "rio": BY_PROGRAM["rio"],
    "linux": Known("the Linux console", "not distinguished from Enter"),
}
"""By the beginning of ``TERM``."""
BY_VARIABLE: dict[str, Known] = {
    "KITTY_WINDOW_ID": BY_TERM["xterm-kitty"],
    "WT_SESSION": Known(
        "Windows Terminal", "add an action sendInput with \\n for shift+enter to its settings.json", _FULL_SCREEN
    ),
    "XTERM_VERSION": Known("xterm"),
}
_OTHER = Known("", "only with the kitty keyboard protocol", "works; on macOS set Option as Meta in the terminal")


def new_line_keys(environment: Mapping[str, str], tmux: Callable[[str], str] | None = None) -> list[tuple[str, str]]:
    """(what, detail): which keys work here, and what to set for each that does not. ``tmux`` answers an option of the
    server (empty where it is not known); without it the server that runs is asked."""
    if environment.get("TMUX"):
        known = _tmux(tmux or _option)
    elif environment.get("STY") or environment.get("TERM", "").startswith("screen"):
        known = Known("GNU screen", "not distinguished from Enter")
    else:
        known = _terminal(environment)
    keys = (("Shift+Enter", known.shift), ("Alt+Enter", known.alt))
    works = ", ".join([ALWAYS, *(key for key, setting in keys if setting == WORKS)])
    where = f" (in {known.name})" if known.name else ""
    return [("new line", f"{works}{where}"), *((f"  {key}", setting) for key, setting in keys if setting != WORKS)]


def _terminal(environment: Mapping[str, str]) -> Known:
    found = BY_PROGRAM.get(environment.get("TERM_PROGRAM", ""))
    if found is not None:
        return found
    for name, known in BY_VARIABLE.items():
        if environment.get(name):
            return known
    if environment.get("LC_TERMINAL") == "iTerm2":
        return BY_PROGRAM["iTerm.app"]
    term = environment.get("TERM", "")
    return next((known for begin, known in BY_TERM.items() if term.startswith(begin)), _OTHER)


def _tmux(option: Callable[[str], str]) -> Known:
    """tmux hands the key on where it is asked to, and gets it where the terminal around it has the feature."""
    passes = option("extended-keys")
    if not passes:
        return Known("tmux", "needs tmux 3.2 or newer")
    needs = [] if passes in ("on", "always") else ["set -s extended-keys on"]
    if "extkeys" not in option("terminal-features") + option(CLIENT):
        needs.append("set -as terminal-features '*:extkeys'")
    put = f"add to ~/.tmux.conf: {' and '.join(needs)}; the terminal around tmux must support it, too"
    return Known("tmux", put if needs else "works if the terminal around tmux supports it")


def _option(name: str) -> str:
    if name == CLIENT:
        return ask_tmux("display-message", "-p", f"#{{{CLIENT}}}")
    return ask_tmux("show-options", "-sv", name)
