"""Whether the terminal is light or dark: it is asked (OSC 11), and its answer never reaches the prompt."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

QUERY = "\x1b]11;?\x1b\\"
"""Asks for the background's colour. Terminals that do not know it say nothing; tmux answers for the one around it."""
LIGHT = 0.5
"""Relative luminance (gamma left as it is) above which a background is light."""
PATIENCE = 0.1
"""Seconds in which the rest of an answer must follow its beginning; else it was keys."""
LONGEST = 64
"""Characters of an answer at most."""

_ANSWER = re.compile(r"\x1b\]11;(?:rgba?:([0-9a-fA-F/]{5,19})|[^\x07\x1b]{0,40})(?:\x07|\x1b\\)")
_BEGINNING = re.compile(r"\x1b\](?:1(?:1(?:;[^\x07\x1b]*\x1b?)?)?)?\Z")


class Listener:
    """Takes the terminal's answer out of what is typed; ``heard`` is called with whether the background is light."""

    def __init__(self, heard: Callable[[bool], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._heard = heard
        self._clock = clock
        self._held = ""
        self._since = 0.0

    def take(self, text: str) -> str:
        """What is left of ``text`` for the prompt. The beginning of an answer is held until the next call."""
        text, self._held = self._held + text, ""
        while (answer := _ANSWER.search(text)) is not None:
            if answer[1] and (light := is_light(answer[1])) is not None:
                self._heard(light)
            text = text[: answer.start()] + text[answer.end() :]
        if (begun := _BEGINNING.search(text)) is not None and len(text) - begun.start() < LONGEST:
            self._held, self._since = text[begun.start() :], self._clock()
            text = text[: begun.start()]
        return text

    def give_back(self) -> str:
        """What was held and is no answer after all."""
        if not self._held or self._clock() - self._since < PATIENCE:
            return ""
        held, self._held = self._held, ""
        return held


def is_light(parts: str) -> bool | None:
    """Whether a colour like ``ffff/fafa/f0f0`` is light; None where it is none."""
    numbers = [part for part in parts.split("/") if part]
    if len(numbers) < 3 or max(map(len, numbers)) > 4:
        return None
    red, green, blue = (int(part, 16) / ((1 << 4 * len(part)) - 1) for part in numbers[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > LIGHT
