"""Whether the terminal is light or dark: it is asked (OSC 11), and its answer never reaches the prompt."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from agent_tui.ui.terminal.answers import Answers

QUERY = "\x1b]11;?\x1b\\"
"""Asks for the background's colour. Terminals that do not know it say nothing; tmux answers for the one around it."""
LIGHT = 0.5
"""Relative luminance (gamma left as it is) above which a background is light."""
LONGEST = 64
"""Characters of an answer at most."""

_ANSWER = re.compile(r"\x1b\]11;(?:rgba?:([0-9a-fA-F/]{5,19})|[^\x07\x1b]{0,40})(?:\x07|\x1b\\)")
_BEGINNING = re.compile(r"\x1b\](?:1(?:1(?:;[^\x07\x1b]*\x1b?)?)?)?\Z")


class Listener(Answers):
    """Takes the terminal's answer out of what is typed; ``heard`` is called with whether the background is light."""

    def __init__(self, heard: Callable[[bool], object], clock: Callable[[], float] = time.monotonic) -> None:
        def told(answer: re.Match[str]) -> None:
            if answer[1] and (light := is_light(answer[1])) is not None:
                heard(light)

        super().__init__(_ANSWER, _BEGINNING, LONGEST, told, clock)


def is_light(parts: str) -> bool | None:
    """Whether a colour like ``ffff/fafa/f0f0`` is light; None where it is none."""
    numbers = [part for part in parts.split("/") if part]
    if len(numbers) < 3 or max(map(len, numbers)) > 4:
        return None
    red, green, blue = (int(part, 16) / ((1 << 4 * len(part)) - 1) for part in numbers[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > LIGHT
