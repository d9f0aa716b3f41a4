"""Sequences for the terminal that tmux or GNU screen runs in: they keep to themselves what they do not know."""

from __future__ import annotations

from collections.abc import Mapping

LONGEST = 512
"""Bytes of a piece: GNU screen passes on 768 at most."""


def passed_on(sequence: str, environment: Mapping[str, str]) -> str:
    """The sequence as a multiplexer hands it on, where the program runs in one; ASCII that ends in BEL, if any end."""
    if environment.get("TMUX"):
        return through_tmux(sequence)
    if environment.get("STY"):
        pieces = (sequence[at : at + LONGEST] for at in range(0, len(sequence), LONGEST))
        return "".join(f"\x1bP{piece}\x1b\\" for piece in pieces)
    return sequence


def through_tmux(sequence: str) -> str:
    """The sequence as tmux hands it on to the terminal around it, where ``allow-passthrough`` is set."""
    return f"\x1bPtmux;{sequence.replace(chr(27), chr(27) * 2)}\x1b\\"
