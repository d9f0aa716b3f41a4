"""Whether this terminal can hold pictures in a text that scrolls, and what to set where it could.

That takes kitty's graphics protocol with its placeholders (sw.kovidgoyal.net/kitty/graphics-protocol): kitty has them
since 0.28 and Ghostty since its first version; WezTerm and Konsole know the protocol and not these. tmux hands pictures
on since 3.3 where ``allow-passthrough`` is set, and the placeholders are text to it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agent_tui.config import Images

ASKED_OF_TMUX = "#{client_termname}|#{client_termtype}|#{allow-passthrough}|#{client_termfeatures}"
FORCE = '[ui] images = "kitty" shows them without asking'
_KITTY = (0, 28)


@dataclass(slots=True, frozen=True)
class Graphics:
    """``shows`` is whether pictures are shown: "ask" leaves it to the terminal's answer. ``detail`` is for people.
    ``few_colors``: tmux makes colours one of 256."""

    shows: bool | str
    detail: str
    in_tmux: bool = False
    few_colors: bool = False


def graphics(setting: Images, environment: Mapping[str, str], tmux: Callable[[], str] | None = None) -> Graphics:
    """``tmux`` answers ``ASKED_OF_TMUX``; without it the server that runs is asked, which takes a moment."""
    if setting == "off":
        return Graphics(False, 'as one line: [ui] images = "off"')
    if "NO_COLOR" in environment:
        return Graphics(False, "as one line: they need colours, and NO_COLOR is set")
    term = environment.get("TERM", "")
    if environment.get("TMUX"):
        return _in_tmux(setting, (tmux or _tmux)())
    if environment.get("STY") or term.startswith("screen"):
        return Graphics(False, "as one line: GNU screen does not hand them on")
    if setting == "kitty":
        return Graphics(True, 'shown: [ui] images = "kitty"')
    if term == "xterm-kitty":
        return Graphics("ask", "shown by kitty from 0.28 on")
    if term == "xterm-ghostty":
        return Graphics("ask", "shown by Ghostty")
    return Graphics(False, f"as one line: kitty and Ghostty can show them, this terminal is not known to; {FORCE}")


def _in_tmux(setting: Images, answer: str) -> Graphics:
    parts = [*answer.strip().split("|"), "", "", "", ""]
    name, kind, passes, features = parts[:4]
    # A number in tmux 3.3, a word afterwards.
    if passes not in ("1", "on", "all"):
        need = "put set -g allow-passthrough on into ~/.tmux.conf" if passes else "tmux hands them on from 3.3 on"
        return Graphics(False, f"as one line: {need}")
    if setting != "kitty" and not _known(name, kind):
        return Graphics(False, f"as one line: the terminal around tmux is not known to show them; {FORCE}")
    few = "RGB" not in features.split(",")
    return Graphics(True, "shown, through tmux", in_tmux=True, few_colors=few)


def _known(name: str, kind: str) -> bool:
    """Whether the terminal around tmux has placeholders, by the name and version that it told tmux."""
    if kind.lower().startswith("ghostty") or name == "xterm-ghostty":
        return True
    version = re.match(r"kitty\((\d+)\.(\d+)", kind)
    return version is not None and (int(version[1]), int(version[2])) >= _KITTY


def _tmux() -> str:
    program = shutil.which("tmux")
    if program is None:
        return ""
    try:
        done = subprocess.run(
            [program, "display-message", "-p", ASKED_OF_TMUX],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=2.0,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")
