"""What a model's tokenizer makes of each kind of text: what is known of its family, then what its server reported, and
how sure both are.

A text is counted once with o200k_base, by kind (``KINDS``). The tokens that a model counts are a linear function of
these counts; the factors are a normal distribution which begins at the family's facts and learns from each verified
report (Bayesian linear regression; a report that is far from what was expected weighs as little as Student's t with
``FREEDOM`` degrees gives it). A sum of estimates shares the factors' error, so its spread comes from what the whole
consists of (``Content``), never from the spreads of its parts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import field, replace
from operator import mul

from agent_tui.records import dataclass

KINDS = (
    "words",
    "pieces",
    "capitals",
    "digits",
    "more digits",
    "wide",
    "letters",
    "scripts",
    "space",
    "symbols",
    "fragments",
)
"""Tokens of o200k_base by what they consist of. ``words`` follow a space, ``pieces`` do not (of names in code);
``digits``: numbers, up to three digits a token; ``wide``: Chinese, Japanese and Korean; ``letters``: other letters
beyond ASCII that Europe writes, ``scripts``: all others; ``fragments``: base64, hashes and the like. Two are no tokens,
but what other vocabularies count more for: ``capitals`` are words and pieces that are not in lower case, ``more
digits`` the digits beyond the first of each token, which vocabularies that take digits one by one count."""

TERMS = (*KINDS, "messages", "schemas", "requests")
"""What an input consists of: texts by kind, how many messages wrap them, tokens of tool definitions, which providers
write in their own way, and 1 for a whole request: what a server adds to each by itself."""

CAPITALS, MORE = KINDS.index("capitals"), KINDS.index("more digits")
"""The kinds whose counts are no tokens of o200k_base."""

USUAL = (0.36, 0.23, 0.125, 0.035, 0.015, 0.0, 0.005, 0.0, 0.02, 0.28, 0.07)
"""Shares of the kinds in code, its documents and what commands print, in tokens of the whole."""

MESSAGES, SCHEMAS, REQUESTS = (TERMS.index(term) for term in TERMS[len(KINDS) :])

GRAIN = 0.02
"""Steps of ``Calibration.coarse``."""

SMALL = 60
"""Tokens that are added to those of a text for its own error: the shortest has one, too."""

ADDED_LEAST = 30
"""Fewer tokens than this are no prompt that a server adds."""

FREEDOM = 4
BOUND = 1.96
"""Standard deviations on each side of an estimate that hold 95 % of a normal distribution."""

MISSED, WIDEN = 0.05, 0.35
"""Share of the intervals that miss, and by how much, as a logarithm, one that does widens the next."""
LEAST_NOISE, MOST_NOISE = 0.004, 0.5


@dataclass(slots=True)
class Content:
    """What an estimated number consists of, so that its spread is known; adds up. ``terms`` as in ``TERMS``;
    ``plain``: tokens beside them, which no factor changes (pictures, reasoning, what wraps a message in the family's
    template); ``squares``: the sum of the squared tokens of its texts, whose own errors are independent of each other;
    ``rough``: the variance of what is no counted text, tokens squared."""

    terms: list[float] = field(default_factory=lambda: [0.0] * len(TERMS))
    plain: float = 0.0
    squares: float = 0.0
    rough: float = 0.0

    def add(self, other: Content, times: float = 1.0) -> None:
        """Add what another number consists of, or take it away (``times`` −1): its own errors stay in either case."""
        for place, term in enumerate(other.terms):
            self.terms[place] += times * term
        self.plain += times * other.plain
        self.squares += other.squares * times * times
        self.rough += other.rough * times * times

    def rounded(self) -> Content:
        """As it is stored with a step, whatever the order in which it was added up."""
        terms = [round(term, 3) + 0.0 for term in self.terms]
        return Content(terms, round(self.plain, 3) + 0.0, round(self.squares, 1), round(self.rough, 1))

    def copy(self) -> Content:
        return Content(list(self.terms), self.plain, self.squares, self.rough)


def raw_total(counts: Sequence[int]) -> int:
    """The o200k_base tokens of counts by kind."""
    return sum(counts) - counts[CAPITALS] - counts[MORE]


def words_only(tokens: int) -> tuple[int, ...]:
    """Counts by kind of a text of which only the tokens are known."""
    return (tokens, *(0,) * (len(KINDS) - 1))


def text_content(counts: Sequence[int] | None, tokens: int) -> Content:
    """What a text of so many o200k_base tokens consists of. Without ``counts`` it is taken for what most texts are."""
    known = counts if counts is not None and len(counts) == len(KINDS) else [share * tokens for share in USUAL]
    return Content([*map(float, known), *(0.0,) * (len(TERMS) - len(KINDS))], squares=float((tokens + SMALL) ** 2))


@dataclass(slots=True, frozen=True)
class Calibration:
    """The factors of ``TERMS`` and how sure they are. ``covariance``: the rows of the matrix as far as its diagonal;
    ``noise``: the standard deviation of a text's own error as a share of its tokens; ``reports``: how many it learned
    from."""

    factors: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    noise: float = 0.03
    reports: int = 0

    def tokens(self, content: Content) -> float:
        """The tokens of the content, unrounded."""
        return content.plain + sum(map(mul, self.factors, content.terms), 0.0)

    def variance(self, content: Content) -> float:
        return self._known(content.terms)[1] + self._own(content)

    def spread(self, content: Content) -> int:
        """Half the width of the interval that holds the true number 95 times of 100, in tokens."""
        return math.ceil(BOUND * math.sqrt(self.variance(content)) - 1e-9)

    def learned(self, content: Content, measured: float) -> Calibration:
        """The calibration after a report, in which the content took so many tokens."""
        if not any(content.terms):
            return self
        off = measured - self.tokens(content)
        along, shared = self._known(content.terms)
        # A report is in whole tokens: whatever it measures, it is not surer than that.
        variance = shared + self._own(content) + 1
        surprise = off * off / variance
        weight = min(1.0, (FREEDOM + 1) / (FREEDOM + surprise))
        gain = [weight * a / variance for a in along]
        factors = tuple(_rounded(f + g * off) for f, g in zip(self.factors, gain, strict=True))
        covariance = tuple(
            tuple(_rounded(c - g * a) for c, a in zip(row, along, strict=False))
            for row, g in zip(self.covariance, gain, strict=True)
        )
        # The interval is widened by what it missed and narrowed by what it held, so that it holds as often as it says.
        missed = (surprise > BOUND * BOUND) - MISSED
        noise = min(MOST_NOISE, max(LEAST_NOISE, self.noise * math.exp(WIDEN * missed)))
        return Calibration(factors, covariance, _rounded(noise), self.reports + 1)

    def adding(self, tokens: float) -> Calibration:
        """With so many tokens that the server adds to each request, as its reports have shown: no other factor is to
        learn from that."""
        factors = *self.factors[:REQUESTS], float(tokens) if tokens >= ADDED_LEAST else 0.0
        own = (0.0,) * REQUESTS + (self.covariance[REQUESTS][REQUESTS],)
        return replace(self, factors=factors, covariance=(*self.covariance[:REQUESTS], own))

    def coarse(self, known: Calibration) -> Calibration:
        """The same in steps that most reports do not change, for what is kept between calculations: what is ``known``
        of the family times one number, and another for the share by which texts are off."""
        if not self.reports:
            return self
        usual = text_content(None, 1_000)
        times = GRAIN * round(self.tokens(usual) / known.tokens(usual) / GRAIN)
        off = 2.0 ** math.ceil(math.log2(max(LEAST_NOISE, math.sqrt(self.variance(usual)) / (1_000 + SMALL))))
        return Calibration(tuple(times * factor for factor in known.factors), (), off, self.reports)

    def _known(self, terms: Sequence[float]) -> tuple[list[float], float]:
        """The covariance times the terms, and the variance that the factors' errors bring."""
        along = [sum(map(mul, row, terms)) for row in self.covariance]
        for place, row in enumerate(self.covariance):
            if term := terms[place]:
                for before in range(place):
                    along[before] += row[before] * term
        return along, max(0.0, sum(map(mul, along, terms)))

    def _own(self, content: Content) -> float:
        return self.noise * self.noise * content.squares + content.rough


def _rounded(value: float) -> float:
    """As it is stored: to nine digits."""
    return round(value, 8 - math.floor(math.log10(abs(value)))) if value and math.isfinite(value) else value


def usable(known: Calibration | None) -> Calibration | None:
    """What was learned before; None where another version knew other kinds of text, and where it is no calibration."""
    if known is None or len(known.factors) != len(TERMS):
        return None
    rows = known.covariance
    numbers = (*known.factors, *itertools.chain(*rows), known.noise)
    if not all(isinstance(number, (float, int)) and math.isfinite(number) for number in numbers):
        return None
    sure = [len(row) for row in rows] == [*range(1, len(TERMS) + 1)] and all(row[-1] >= 0 for row in rows)
    return known if sure and known.noise > 0 else None


def beginning(
    factors: Sequence[float], deviations: Sequence[float], noise: float = 0.03, whole: float = 0.0
) -> Calibration:
    """The calibration before any report: the family's factors and their standard deviations. ``whole``: that of all
    together, as a share of them: the model may not have the vocabulary that its name tells of."""
    rows = tuple(
        tuple(whole * whole * f * g + (deviation**2 if i == j else 0.0) for j, g in enumerate(factors[: i + 1]))
        for i, (f, deviation) in enumerate(zip(factors, deviations, strict=True))
    )
    return Calibration(tuple(factors), rows, noise)
