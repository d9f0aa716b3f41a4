"""The columns of the breakdown: what stands in them, and which there is room for."""

from __future__ import annotations

from dataclasses import dataclass

TOKENS, CHANGE, SHARE, BASIS, CACHED, COST = 10, 11, 11, 12, 13, 12
GAP = 2
"""More before the words that say how a number is known, where there is room."""
LEAST_LABEL, LABEL, WIDE_LABEL = 10, 28, 40


@dataclass(slots=True, frozen=True)
class Columns:
    """Cells for each column; 0: it is left out. ``note`` is what is left for words at the end of a line."""

    label: int
    change: int
    share: int
    basis: int
    cached: int
    cost: int
    note: int


def columns(width: int, compared: bool, shares: bool = True) -> Columns:
    """The columns of a line of ``width`` cells. ``compared``: with differences to another moment; ``shares``: the
    window is known."""
    left = width - TOKENS
    change = CHANGE if compared and left >= LEAST_LABEL + CHANGE else 0
    share = SHARE if shares and left - change >= LEAST_LABEL + SHARE else 0
    left -= change + share
    basis = BASIS if left >= 26 + BASIS else 0
    money = left - basis >= WIDE_LABEL + GAP + CACHED + COST
    basis, cached, cost = (basis + GAP, CACHED, COST) if money else (basis, 0, 0)
    left -= basis + cached + cost
    label = max(LEAST_LABEL, min(WIDE_LABEL if money else LABEL, left))
    return Columns(label, change, share, basis, cached, cost, max(0, left - label))


def headings(cells: Columns) -> str:
    """The names of the columns, above them. What was cached is of the last request; the price is without any cache."""
    line = f"{'':<{cells.label}}{'tokens':>{TOKENS}}"
    for name, size in (("change", cells.change), ("of window", cells.share)):
        line += name.rjust(size) if size else ""
    line += "how known".rjust(cells.basis) if cells.basis else ""
    for name, size in (("cached last", cells.cached), ("full price", cells.cost)):
        line += name.rjust(size) if size else ""
    return line
