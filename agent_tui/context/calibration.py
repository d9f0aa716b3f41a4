"""What a model's tokenizer makes of each kind of text: what is known of its family, then what its server reported, and
how sure both are.

A text is counted once with o200k_base, by kind (``KINDS``). The tokens that a model counts are a linear function of
these counts; the factors are a normal distribution which begins at the family's facts and learns from each verified
report (Bayesian linear regression; a report that is far from what was expected weighs as little as Student's t with
``FREEDOM`` degrees gives it). A sum of estimates shares the factors' error, so its spread comes from what the whole
consists of (``Content``), never from the spreads of its parts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from agent_tui.records import dataclass

KINDS = ("words", "digits", "more digits", "wide", "letters", "space", "symbols", "fragments")
"""Tokens of o200k_base by what they consist of. ``digits``: numbers, up to three digits a token; ``more digits`` are
digits beyond the first of each such token, which only vocabularies that take digits one by one count. ``wide``:
Chinese, Japanese and Korean; ``letters``: other letters beyond ASCII; ``fragments``: base64, hashes and the like."""

TERMS = (*KINDS, "messages", "schemas", "requests")
"""What an input consists of: texts by kind, how many messages wrap them, tokens of tool definitions, which providers
write in their own way, and 1 for a whole request: what a server adds to each by itself."""

FREEDOM = 4
BOUND = 1.96
"""Standard deviations on each side of an estimate that hold 95 % of a normal distribution."""


@dataclass(slots=True)
class Content:
    """What an estimated number consists of, so that its spread is known; adds up. ``terms`` as in ``TERMS``;
    ``squares``: the sum of the squared tokens of its messages, whose own errors are independent of each other;
    ``rough``: the variance of what is no text (pictures, reasoning that nobody counted), tokens squared."""

    terms: list[float]
    squares: float = 0.0
    rough: float = 0.0

    def add(self, other: Content, times: float = 1.0) -> None:
        """Add what another number consists of, or take it away (``times`` −1): its own errors stay in either case."""
        for place, term in enumerate(other.terms):
            self.terms[place] += times * term
        self.squares += other.squares * times * times
        self.rough += other.rough * times * times


def nothing() -> Content:
    return Content([0.0] * len(TERMS))


@dataclass(slots=True, frozen=True)
class Calibration:
    """The factors of ``TERMS`` and how sure they are. ``covariance``: rows of the matrix; ``noise``: the standard
    deviation of a message's own error as a share of its tokens; ``reports``: how many it learned from."""

    factors: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    noise: float = 0.03
    reports: int = 0

    def tokens(self, content: Content) -> float:
        """The tokens of the text, unrounded."""
        return sum(f * t for f, t in zip(self.factors, content.terms, strict=True))

    def variance(self, content: Content) -> float:
        return self._known(content.terms)[1] + self._own(content)

    def spread(self, content: Content) -> int:
        """Half the width of the interval that holds the true number 95 times of 100, in tokens."""
        return math.ceil(BOUND * math.sqrt(self.variance(content)) - 1e-9)

    def learned(self, content: Content, off: float) -> Calibration:
        """The calibration after a report: ``off`` tokens is what was measured of the content less its estimate."""
        along, shared = self._known(content.terms)
        variance = shared + self._own(content)
        if variance <= 0:
            return self
        weight = (FREEDOM + 1) / (FREEDOM + off * off / variance)
        gain = [weight * a / variance for a in along]
        factors = tuple(f + g * off for f, g in zip(self.factors, gain, strict=True))
        covariance = tuple(
            tuple(c - g * a for c, a in zip(row, along, strict=True))
            for row, g in zip(self.covariance, gain, strict=True)
        )
        return Calibration(factors, covariance, self.noise, self.reports + 1)

    def _known(self, terms: Sequence[float]) -> tuple[list[float], float]:
        """The covariance times the terms, and the variance that the factors' errors bring."""
        along = [sum(c * t for c, t in zip(row, terms, strict=True)) for row in self.covariance]
        return along, max(0.0, sum(a * t for a, t in zip(along, terms, strict=True)))

    def _own(self, content: Content) -> float:
        return self.noise * self.noise * content.squares + content.rough


def beginning(factors: Sequence[float], deviations: Sequence[float]) -> Calibration:
    """The calibration before any report: the family's factors and their standard deviations."""
    size = range(len(TERMS))
    rows = tuple(tuple(deviations[i] ** 2 if i == j else 0.0 for j in size) for i in size)
    return Calibration(tuple(factors), rows)
