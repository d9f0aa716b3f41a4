"""What the terminal answers to a question never reaches the prompt."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

PATIENCE = 0.1
"""Seconds in which the rest of an answer must follow its beginning; else it was keys."""


class Answers:
    """Takes the answers that match ``answer`` out of what is typed and hands each to ``heard``; ``beginning`` matches
    one that has come in part, up to ``longest`` characters of it."""

    def __init__(
        self,
        answer: re.Pattern[str],
        beginning: re.Pattern[str],
        longest: int,
        heard: Callable[[re.Match[str]], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._answer = answer
        self._beginning = beginning
        self._longest = longest
        self._heard = heard
        self._clock = clock
        self._held = ""
        self._since = 0.0

    def take(self, text: str) -> str:
        """What is left of ``text`` for the prompt. The beginning of an answer is held until the next call."""
        text, self._held = self._held + text, ""
        while (answer := self._answer.search(text)) is not None:
            self._heard(answer)
            text = text[: answer.start()] + text[answer.end() :]
        if (begun := self._beginning.search(text)) is not None and len(text) - begun.start() < self._longest:
            self._held, self._since = text[begun.start() :], self._clock()
            text = text[: begun.start()]
        return text

    def give_back(self) -> str:
        """What was held and is no answer after all."""
        if not self._held or self._clock() - self._since < PATIENCE:
            return ""
        held, self._held = self._held, ""
        return held
