"""What a terminal sends when keys are pressed, as keys."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterator

_STRING = r"\x1b[\]PX^_][^\x00-\x1f\x7f]{0,400}"
"""What a terminal answers to a question (OSC, DCS, APC). Nobody asks here; an editor that had the terminal may have."""
_ANSWER = re.compile(rf"{_STRING}(?:\x07|\x1b\\)")
_BEGUN = re.compile(rf"{_STRING}\x1b?\Z|\x1b(?:\[[ -?]{{0,30}}|O)?\Z")
"""What may become an answer or a key with what comes next."""
_SEQUENCE = re.compile(r"\x1b(?:\[([0-9;:<=>?]*)([ -/]*[@-~])|O([@-~])|([^\[O\]PX^_\x1b]))")
_FINALS = {
    "A": "up",
    "B": "down",
    "C": "right",
    "D": "left",
    "H": "home",
    "F": "end",
}
_NUMBERED = {"1": "home", "3": "delete", "4": "end", "7": "home", "8": "end"}
_ALT = {"b": "word left", "f": "word right", "d": "word delete", "\x7f": "word back", "\x08": "word back"}
_CONTROLS = {
    "\n": "enter",
    "\r": "enter",
    "\t": "tab",
    "\x7f": "back",
    "\x08": "back",
    "\x01": "home",
    "\x02": "left",
    "\x03": "interrupt",
    "\x04": "leave",
    "\x05": "end",
    "\x06": "right",
    "\x07": "cancel",
    "\x0b": "cut right",
    "\x0c": "again",
    "\x0e": "down",
    "\x10": "up",
    "\x12": "search",
    "\x14": "swap",
    "\x15": "cut left",
    "\x17": "word back",
    "\x19": "paste",
    "\x1a": "suspend",
    "\x1c": "quit",
    "\x1f": "undo",
}


class Keys:
    """Bytes to keys: a letter is itself, whether it can be seen or not (a wide blank, what joins two letters); anything
    else has a name of more than one letter. What is not whole yet waits for the rest."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    @property
    def waits(self) -> bool:
        """Whether something has begun that may be an escape sequence, or Esc alone."""
        return bool(self._rest)

    def forget(self) -> None:
        """What has begun was Esc alone, or nothing that came to its end: that means nothing here."""
        self._rest = ""

    def feed(self, data: bytes) -> Iterator[str]:
        text = self._rest + self._decoder.decode(data)
        self._rest = ""
        at = 0
        while at < len(text):
            if text[at] != "\x1b":
                key = _CONTROLS.get(text[at], "") if unicodedata.category(text[at]) == "Cc" else text[at]
                at += 1
            elif match := _ANSWER.match(text, at):
                key = ""
                at = match.end()
            elif match := _SEQUENCE.match(text, at):
                key = _named(match)
                at = match.end()
            elif text.startswith("\x1b\x1b", at):
                at += 1
                continue
            elif _BEGUN.match(text, at):
                self._rest = text[at:]
                return
            else:  # nothing that a terminal sends
                at += 1
                continue
            if key:
                yield key


def _named(match: re.Match[str]) -> str:
    parameters, final, single, alt = match.groups()
    if alt is not None:
        return _ALT.get(alt, "")
    if single is not None:
        return _FINALS.get(single, "")
    number, _, modifier = parameters.partition(";")
    name = _NUMBERED.get(number, "") if final == "~" else _FINALS.get(final, "")
    if name in ("left", "right") and modifier in ("3", "5", "7"):
        return f"word {name}"
    return name
