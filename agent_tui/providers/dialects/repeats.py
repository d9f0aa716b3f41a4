"""What of a piece of a stream is new: servers and gateways repeat what they have said in ways no document tells."""

from __future__ import annotations

import json
import re
from typing import Any

SURE = 16
"""Characters from which on a text said again is no chance: no token is as long."""
_LEAST, _MORE = 4, 8
"""Characters from which on it is none where the text had come in several pieces: in a last piece, in any other."""


class RunningText:
    """One text that comes in pieces. ``add`` returns what a piece adds to it, by these rules:

    1. A piece adds itself. So every API has it.
    2. What came with the *start* of a part (``open``) may be said again by the pieces behind it, at once or bit by bit.
       It is a repetition when all of it was said again, else nothing of it is.
    3. A piece that says *all so far and goes on* adds what it goes on with: the server repeats the whole each time.
       While little was said that may be chance (``#``, then ``##``); the next piece tells, for which it is held back.
    4. A *last* piece that says all so far adds nothing. One before the last is held back in the same way.

    Where chance could have made the same, and nothing that follows decides, the piece is text: nothing is lost.
    """

    __slots__ = ("_cumulative", "_echo", "_held", "_opening", "_pieces", "length")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self.length = 0
        self._opening: str | None = None
        """What came with the start, as long as the pieces may be saying it again."""
        self._echo = ""
        self._held: str | None = None
        self._cumulative = False

    @property
    def text(self) -> str:
        if len(self._pieces) > 1:
            # Joined once: the next look has little to do. Two pieces stay two, which ``_is_telling`` asks for.
            self._pieces = ["", "".join(self._pieces)]
        return "".join(self._pieces)

    def append(self, text: str) -> None:
        """Takes a text that is known to be new."""
        self._pieces.append(text)
        self.length += len(text)

    def open(self, text: str) -> str:
        """Takes what came with the start of a part."""
        if text:
            self.append(text)
            self._opening = text
        return text

    def add(self, piece: str, last: bool = False) -> str:
        if len(piece) < self.length and self._opening is None and self._held is None:
            self._pieces.append(piece)
            self.length += len(piece)
            return piece
        return self._compare(piece, last) if piece else ""

    def settle(self) -> str:
        """Returns what was held back and is text: nothing more comes that could tell."""
        if self._held is None and self._opening is None:
            return ""
        held, echo, whole = self._held, self._echo, self.text
        self._held, self._opening, self._echo = None, None, ""
        new = echo
        if held is not None:
            # The same once more was only held where it had come in several pieces, as no piece is by chance.
            told = held == whole or len(whole) >= (_LEAST if whole.isalpha() else _MORE)
            new = held[len(whole) :] if told else held
        self.append(new)
        return new

    def complete(self, whole: str) -> str:
        """Returns what is missing of a text that is told as a whole behind its pieces. Told otherwise than it came,
        the pieces have the last word."""
        new = self.settle()
        said = self.text
        rest = whole[len(said) :] if whole.startswith(said) else ""
        self.append(rest)
        return new + rest

    def _compare(self, piece: str, last: bool) -> str:
        if self._opening is not None:
            return self._after_opening(piece)
        whole = self.text
        if self._held is not None:
            return self._after_held(piece, whole)
        if not whole or not piece.startswith(whole):
            self.append(piece)
            return piece
        more = piece[len(whole) :]
        told = last and self._is_telling()
        if more and (self._cumulative or told or len(whole) >= SURE):
            return self._go_on(more)
        if not more and (self._cumulative or told):
            return ""
        if not last and (more or (len(self._pieces) > 1 and len(whole) >= _MORE)):
            self._held = piece
            return ""
        self.append(piece)
        return piece

    def _after_held(self, piece: str, whole: str) -> str:
        held, self._held = self._held or "", None
        if piece.startswith(held) and len(piece) > len(held):
            return self._go_on(piece[len(whole) :])
        self.append(held + piece)
        return held + piece

    def _after_opening(self, piece: str) -> str:
        opening, echo = self._opening or "", self._echo + piece
        if len(echo) < len(opening) and opening.startswith(echo):
            self._echo = echo
            return ""
        self._opening, self._echo = None, ""
        new = echo[len(opening) :] if self._says_again(opening, echo) else echo
        self.append(new)
        return new

    def _says_again(self, said: str, piece: str) -> bool:
        return piece.startswith(said)

    def _go_on(self, more: str) -> str:
        self._cumulative = True
        self.append(more)
        return more

    def _is_telling(self) -> bool:
        return self.length >= SURE or (len(self._pieces) > 1 and self.length >= _LEAST)


class RunningArguments(RunningText):
    """The arguments of a call. They are JSON, which tells a repetition from a continuation: where the text goes on with
    the piece as JSON it is no repetition, unless the piece is the beginning of an object just as well."""

    __slots__ = ()

    def goes_on(self, piece: str) -> bool:
        """Returns whether a piece plainly continues them: neither is an object over, nor does one begin."""
        return bool(self._pieces) and not self._pieces[-1].rstrip().endswith("}") and not piece.lstrip().startswith("{")

    def _compare(self, piece: str, last: bool) -> str:
        if self._opening is not None:
            return self._after_opening(piece)
        whole = self.text
        new = piece[len(whole) :] if whole and self._says_again(whole, piece) else piece
        self.append(new)
        return new

    def _says_again(self, said: str, piece: str) -> bool:
        if not said.lstrip().startswith("{") or not piece.startswith(said):
            return False
        return not is_json_beginning(said + piece) or is_json_beginning(piece)

    def settle(self) -> str:
        if self._opening is None:
            return ""
        new = self._echo
        self._opening, self._echo = None, ""
        self.append(new)
        return new


def is_whole_json(text: str) -> bool:
    """Returns whether a text is one object of JSON."""
    if not text.rstrip().endswith("}"):
        return False
    try:
        return isinstance(_loaded(text), dict)
    except (ValueError, RecursionError):
        return False


def is_json_beginning(text: str) -> bool:
    """Returns whether a text is JSON, or can become it when more comes."""
    try:
        _loaded(text)
    except json.JSONDecodeError as error:
        unfinished = error.msg.startswith("Unterminated string") or error.pos >= len(text.rstrip())
        return unfinished or _CUT_WORD.fullmatch(text, error.pos) is not None
    except RecursionError:
        return True
    return True


_CUT_WORD = re.compile(r"-|t|tr|tru|f|fa|fal|fals|n|nu|nul|[.eE][+-]?|u[0-9a-fA-F]{0,4}")
"""What is an error before the end of a text that is only cut off there: in a word, a number, an escape."""


def _any_number(digits: str) -> int:
    return int(digits) if len(digits) < 100 else 0


def _loaded(arguments: str) -> Any:
    return json.loads(arguments or "{}", parse_int=_any_number, strict=False)


def same_arguments(one: str, other: str) -> bool:
    """Returns whether two texts are the same arguments, however they are written."""
    if one == other:
        return True
    try:
        return bool(_loaded(one) == _loaded(other))
    except (ValueError, RecursionError):
        return False
