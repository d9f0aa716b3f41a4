"""What a terminal is asked about pictures, and what it answers. The last question is one that every terminal answers
(its attributes, DA1), so that with its answer all others are in that will come."""

from __future__ import annotations

import re

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
BEGINNING = re.compile(
    r"\x1b(?:_(?:G[^\x1b\x07]{0,200}\x1b?)?|P(?:>(?:\|[^\x1b\x07]{0,100}\x1b?)?)?|\[(?:6(?:;\d{0,4}){0,2}|\?[\d;]{0,60})?)\Z"
)
"""A reply that has come in part."""
LONGEST = 220
"""Characters of a reply at most."""
_LEAST, _MOST = 4, 100
"""Pixels of a cell's side that are believed."""


def called(name: str) -> str:
    """What a terminal says that it is called, as people may be shown it."""
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
    """What a terminal of this ``TERM`` is asked first; ``apple`` is the one of macOS, which prints what it does not
    know."""
    if apple:
        return ATTRIBUTES
    kitty = PLACEHOLDERS + DRAWS if term in KITTY_TERMS else ""
    return kitty + NAME + CELL + ATTRIBUTES


LIMITS = COLORS + LARGEST + ATTRIBUTES
"""What one that draws sixels is asked then."""
KITTY_TERMS = ("xterm-kitty", "xterm-ghostty")
"""Values of ``TERM`` of terminals that are worth being asked whether they hold pictures in a text."""
