"""Takes what the terminal answers to a question out of what is typed, such as whether its background is light."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from agent_tui.records import dataclass

PATIENCE = 0.1
"""Seconds in which the rest of an answer must follow its beginning; else it was keys."""


@dataclass(eq=False)
class Answers:
    """Takes answers out of what is typed."""

    _answer: re.Pattern[str]
    _beginning: re.Pattern[str]
    """Matches an answer that has come in part, up to ``_longest`` characters of it."""
    _longest: int
    _heard: Callable[[re.Match[str]], object]
    _clock: Callable[[], float] = time.monotonic
    _held: str = ""
    _since: float = 0.0

    def take(self, text: str) -> str:
        """Takes the answers out of ``text`` and returns what is left for the prompt. The beginning of an answer is held
        until the next call."""
        text, self._held = self._held + text, ""
        while (answer := self._answer.search(text)) is not None:
            self._heard(answer)
            text = text[: answer.start()] + text[answer.end() :]
        if (begun := self._beginning.search(text)) is not None and len(text) - begun.start() < self._longest:
            self._held, self._since = text[begun.start() :], self._clock()
            text = text[: begun.start()]
        return text

    def give_back(self) -> str:
        """Returns the text that was held and is no answer after all."""
        if not self._held or self._clock() - self._since < PATIENCE:
            return ""
        held, self._held = self._held, ""
        return held


QUERY = "\x1b]11;?\x1b\\"
"""Asks for the background's colour. Terminals that do not know it say nothing; tmux answers for the one around it."""
LIGHT = 0.5
"""Relative luminance (gamma left as it is) above which a background is light."""
LONGEST_COLOUR = 64
"""Characters of an answer at most."""

_ANSWER = re.compile(r"\x1b\]11;(?:rgba?:([0-9a-fA-F/]{5,19})|[^\x07\x1b]{0,40})(?:\x07|\x1b\\)")
_BEGINNING = re.compile(r"\x1b\](?:1(?:1(?:;[^\x07\x1b]*\x1b?)?)?)?\Z")


class BackgroundAnswers(Answers):
    """Takes the terminal's answer out of what is typed; ``heard`` is called with whether the background is light."""

    def __init__(self, heard: Callable[[bool], object], clock: Callable[[], float] = time.monotonic) -> None:
        def told(answer: re.Match[str]) -> None:
            if answer[1] and (light := is_light(answer[1])) is not None:
                heard(light)

        super().__init__(_ANSWER, _BEGINNING, LONGEST_COLOUR, told, clock)


def is_light(parts: str) -> bool | None:
    """Returns whether a colour like ``ffff/fafa/f0f0`` is light; None where it is none."""
    numbers = [part for part in parts.split("/") if part]
    if len(numbers) < 3 or max(map(len, numbers)) > 4:
        return None
    red, green, blue = (int(part, 16) / ((1 << 4 * len(part)) - 1) for part in numbers[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > LIGHT
