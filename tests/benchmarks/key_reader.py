"""Everything that reads keys, one behind the other, and what must hold of whatever comes out."""

from __future__ import annotations

import re
from collections.abc import Sequence

from textual import events

from agent_tui.plain.line import meaning_of
from agent_tui.terminal_input import KeyPress, PastedText, TerminalInput, TerminalReader, TerminalReport, TypedText
from agent_tui.ui.textual_private.keys import MOST_CELLS, TerminalMessages
from tests.support.app import Clock

ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""What must not stand in a text, but for tabs and line breaks."""


class KeyReader:
    """The reader with the screen's and plain mode's use of it. Raises AssertionError where one of them is given what
    it must not be given, and whatever they raise."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.reader = TerminalReader(self.clock)
        self._messages = TerminalMessages()
        self._letters: set[str] = set()
        self._pressed: set[str] = set()
        """What has been looked at: it means the same each time."""

    def feed(self, data: bytes) -> list[TerminalInput]:
        return self._checked(self.reader.feed(data))

    def wait(self, seconds: float) -> list[TerminalInput]:
        self.clock.now += seconds
        return self._checked(self.reader.tick())

    def flush(self) -> list[TerminalInput]:
        found = self._checked(self.reader.flush())
        assert self.reader.wait is None
        return found

    def _checked(self, inputs: Sequence[TerminalInput]) -> list[TerminalInput]:
        for one in inputs:
            match one:
                case TypedText(text):
                    assert text and "\n" not in text and "\t" not in text and not ACTING.search(text), one
                    for letter in set(text) - self._letters:
                        self._look_at_messages(TypedText(letter))
                    self._letters.update(text)
                case KeyPress(sequence):
                    if sequence not in self._pressed:
                        written, name = meaning_of(sequence)
                        assert not (written and name) and not ACTING.search(written), one
                        self._look_at_messages(one)
                        self._pressed.add(sequence)
                case PastedText(text):
                    assert text and not ACTING.search(text), one
                case TerminalReport():
                    self._look_at_messages(one)
        return list(inputs)

    def _look_at_messages(self, one: TerminalInput) -> None:
        for message in self._messages.of(one):
            if isinstance(message, events.Key):
                assert message.key.encode(), one
                assert not ACTING.search(message.character or "") or len(message.key) > 1, one
            elif isinstance(message, events.Resize):
                assert 0 < message.size.width <= MOST_CELLS and 0 < message.size.height <= MOST_CELLS, one
