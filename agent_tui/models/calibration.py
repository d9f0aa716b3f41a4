"""What a model's tokenizer makes of each kind of text: what is known of its family, then what its server reported, and
how sure both are.

A text is counted once with o200k_base, by kind (``KINDS``). The tokens that a model counts are a linear function of
these counts; the factors are a normal distribution which begins at the family's facts and learns from each verified
report (Bayesian linear regression; a report that is far from what was expected weighs as little as Student's t with
``FREEDOM`` degrees gives it). A sum of estimates shares the factors' error, so its spread comes from what the whole
consists of (``Content``), never from the spreads of its parts.

A name may tell of another vocabulary than the server's. So beside what it tells the reports also teach what is known
of any vocabulary (``Calibration.rival``), until they show which of the two they fit.
"""

from __future__ import annotations

import itertools
import math
import struct
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
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
    "korean",
)
"""Tokens of o200k_base by what they consist of. ``words`` follow a space, ``pieces`` do not (of names in code);
``digits``: numbers, up to three digits a token; ``wide``: Chinese and Japanese; ``letters``: letters beyond ASCII of
the alphabets that most vocabularies have words of (Latin, Cyrillic, Hebrew, Arabic), ``scripts``: all others, of which
many know single characters only; ``fragments``: base64, hashes and the like. Two are no tokens, but what other
vocabularies count more for: ``capitals`` are words and pieces that are not in lower case, ``more digits`` the digits
beyond the first of each token, which vocabularies that take digits one by one count."""

TERMS = (*KINDS, "messages", "schemas", "answers", "calls", "results", "further results")
"""What an input consists of: texts by kind, how many messages wrap them, tokens of tool definitions, which providers
write in their own way, how many answers are left of an output without the reasoning in it, how many calls of tools,
and how many of the messages are results of tools: all of them, and those that follow another one. Results are wrapped
otherwise than what users say, and many of them are cleared at once. A change of these needs another version of the
store."""

CAPITALS, MORE = KINDS.index("capitals"), KINDS.index("more digits")
"""The kinds whose counts are no tokens of o200k_base."""

USUAL = (0.36, 0.23, 0.125, 0.035, 0.015, 0.0, 0.005, 0.0, 0.02, 0.28, 0.07, 0.0)
"""Shares of the kinds in code, its documents and what commands print, in tokens of the whole."""

OFF = (0.5, 1.7, 1.2, 0.2, 0.1, 1.4, 2.5, 3.4, 1.0, 0.7, 0.8, 0.5)
"""By how much the tokens of each kind make a text's own error larger, in the noise of usual text: other vocabularies
take names and other languages apart in ways that no count tells, digits never (benchmarks:
``research/vocabulary_facts.py`` fits them)."""

FOREIGN = (0.0, 0.0, 0.0, 0.0, 0.0, 0.05, 0.12, 0.24, 0.0, 0.0, 0.0, 0.05)
"""Standard deviation of the tokens of each kind that another language has than those which were learned from: no
vocabulary knows Russian as well as Hebrew, or Greek as Hindi, however well it is known how it takes code apart. All
texts of a conversation share it, so it adds up in proportion. Qwen, Llama 3 and cl100k are off by 6-35 % there where
their noise says 4-5 (`vocabulary_texts.py`). Over 14 mixed runs the score of the intervals fell by 12 %, at a width
that is 4 % larger (``tests/benchmarks/full_context.py``, 2026-11-23)."""

EXACT, INEXACT = 0.004, 0.012
"""Noises of a vocabulary that is known whole, and that is not: up to the first no language is foreign to it."""

MESSAGES, SCHEMAS, ANSWERS, CALLS, RESULTS, FURTHER = (TERMS.index(term) for term in TERMS[len(KINDS) :])

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
LEAST_NOISE, MOST_NOISE = EXACT, 0.5
NAMED_FALSELY = -3.0
"""How likely it is, as the logarithm of the odds, that a server has another vocabulary than its model's name tells."""
TOLD_APART = 8.0
ENOUGH_TOLD = 60
"""Odds, as a logarithm, at which reports have shown which of two it is; and after how many both are much the same."""
MOST_WIDER = 2.0
"""By how much a report that is outside of its interval makes the variance larger that the factors gave it, at most."""


@dataclass(slots=True)
class Content:
    """What an estimated number consists of, so that its spread is known; adds up. ``terms`` as in ``TERMS``;
    ``plain``: tokens beside them, which no factor changes (pictures, reasoning, what wraps a message in the family's
    template); ``squares``: the sum of the squares of its texts' tokens, each kind as often as ``OFF`` says: their own
    errors are independent of each other;
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


def text_content(counts: Sequence[int] | None, tokens: int) -> Content:
    """What a text of so many o200k_base tokens consists of. Without ``counts`` it is taken for what most texts are."""
    known = counts if counts is not None and len(counts) == len(KINDS) else [share * tokens for share in USUAL]
    own = sum(map(mul, OFF, known)) + SMALL
    return Content([*map(float, known), *(0.0,) * (len(TERMS) - len(KINDS))], squares=own * own)


@dataclass(slots=True, frozen=True)
class Factors:
    """The factors of ``TERMS`` and how sure they are. ``covariance``: the rows of the matrix as far as its diagonal;
    ``noise``: the standard deviation of a text's own error as a share of its tokens; ``reports``: how many it learned
    from; ``added``: tokens that the server adds to each request by itself."""

    factors: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    noise: float = 0.03
    reports: int = 0
    added: float = 0.0

    def tokens(self, content: Content) -> float:
        """The tokens of the content, unrounded."""
        return content.plain + sum(map(mul, self.factors, content.terms), 0.0)

    def variance(self, content: Content) -> float:
        return self._known(content.terms)[1] + self._own(content)

    def spread(self, content: Content) -> int:
        """Half the width of the interval that holds the true number 95 times of 100, in tokens."""
        return math.ceil(BOUND * math.sqrt(self.variance(content)) - 1e-9)

    def shares_of_error(self, whole: Content, parts: Sequence[Content]) -> list[float]:
        """By how much each of the parts of a whole is expected to be off where the whole is, in proportion."""
        along, _ = self._known(whole.terms)
        return [max(0.0, sum(map(mul, along, part.terms)) + self._own(part)) for part in parts]

    def taught(self, content: Content, measured: float) -> Factors:
        off = measured - self.tokens(content)
        along, shared = self._known(content.terms)
        # A report is in whole tokens: whatever it measures, it is not surer than that.
        own = self._own(content) + 1
        surprise = off * off / (shared + own)
        # What is outside of its interval shows that these factors are less sure than was thought.
        wider = min(MOST_WIDER, max(1.0, surprise / BOUND**2))
        variance = wider * shared + own
        weight = wider * min(1.0, (FREEDOM + 1) / (FREEDOM + off * off / variance)) / variance
        factors = tuple(f + weight * a * off for f, a in zip(self.factors, along, strict=True))
        less = wider * weight - ((wider - 1) / shared if shared else 0.0)
        rows = (
            [c - less * b * a for c, a in zip(row, along, strict=False)]
            for row, b in zip(self.covariance, along, strict=True)
        )
        # What is rounded must not leave a negative variance.
        covariance = tuple((*row, max(0.0, last)) for *row, last in rows)
        # The interval is widened by what it missed and narrowed by what it held, so that it holds as often as it says.
        missed = (surprise > BOUND * BOUND) - MISSED
        noise = min(MOST_NOISE, max(LEAST_NOISE, self.noise * math.exp(WIDEN * missed)))
        return Factors(factors, covariance, noise, self.reports + 1, self.added)

    def likelihood(self, content: Content, measured: float) -> float:
        """The logarithm of how likely the report is, by Student's t: an odd one says little of the vocabulary."""
        variance, off = self.variance(content) + 1, measured - self.tokens(content)
        return -(math.log(variance) + (FREEDOM + 1) * math.log(1 + off * off / (FREEDOM * variance))) / 2

    def _known(self, terms: Sequence[float]) -> tuple[list[float], float]:
        """The covariance times the terms, and the variance that the factors' errors bring."""
        along = [sum(map(mul, row, terms)) for row in self.covariance]
        for place, row in enumerate(self.covariance):
            if term := terms[place]:
                for before in range(place):
                    along[before] += row[before] * term
        return along, max(0.0, sum(map(mul, along, terms)))

    def _own(self, content: Content) -> float:
        foreign = min(1.0, max(0.0, (self.noise - EXACT) / (INEXACT - EXACT)))
        spoken = foreign * sum(map(mul, FOREIGN, content.terms), 0.0)
        return self.noise * self.noise * content.squares + spoken * spoken + content.rough

    def numbers(self) -> list[float]:
        return [*self.factors, *itertools.chain(*self.covariance), self.noise, self.added]


@dataclass(slots=True, frozen=True)
class Calibration(Factors):
    """What is believed of a server. ``rival``: what the same reports taught when what is known of another vocabulary
    comes first; ``odds``: the logarithm of how much likelier that is."""

    rival: Factors | None = None
    odds: float = NAMED_FALSELY

    def learned(self, content: Content, measured: float) -> Calibration:
        """The calibration after a report, in which the content took so many tokens."""
        if not any(content.terms):
            return self
        made, rival = self.taught(content, measured), self.rival
        if rival is None:
            return _calibration(made)
        odds = self.odds + rival.likelihood(content, measured) - self.likelihood(content, measured)
        rival = rival.taught(content, measured)
        if odds > 0:
            made, rival, odds = rival, made, -odds
        if odds < -TOLD_APART or made.reports >= ENOUGH_TOLD:
            rival, odds = None, NAMED_FALSELY
        return replace(_calibration(made), added=self.added, rival=rival, odds=odds)

    def against(self, rival: Factors) -> Calibration:
        """The same before any report, where what is known may as well be the ``rival``."""
        return replace(self, rival=Factors(rival.factors, rival.covariance, rival.noise))

    def adding(self, tokens: float) -> Calibration:
        """With so many tokens that the server adds to each request, as its reports have shown."""
        return replace(self, added=float(tokens) if tokens >= ADDED_LEAST else 0.0)

    def coarse(self, known: Calibration) -> Calibration:
        """The same in steps that most reports do not change, for what is kept between calculations: what is ``known``
        of the family, or of its rival where the reports showed that one, times one number, and another for the share by
        which texts are off."""
        if not self.reports:
            return self
        usual, bases = text_content(None, 1_000), (known, known.rival or known)
        scaled = []
        for base in bases:
            times = GRAIN * round(self.tokens(usual) / base.tokens(usual) / GRAIN)
            scaled.append(tuple(times * factor for factor in base.factors))
        own = self.factors[: len(KINDS)]
        nearest = min(scaled, key=lambda factors: math.dist(own, factors[: len(KINDS)]))
        off = 2.0 ** math.ceil(math.log2(max(LEAST_NOISE, math.sqrt(self.variance(usual)) / (1_000 + SMALL))))
        return Calibration(nearest, (), off, self.reports)

    def packed(self) -> str:
        """The same for what is stored with every step, in a third of the letters: exactly, where the numbers are those
        of ``usable``."""
        whole = self.numbers() if self.rival is None else [*self.numbers(), self.odds, *self.rival.numbers()]
        return b64encode(struct.pack(f"<I{len(whole)}f", self.reports, *whole)).decode()


def _calibration(factors: Factors) -> Calibration:
    return Calibration(factors.factors, factors.covariance, factors.noise, factors.reports, factors.added)


_NUMBERS = len(TERMS) + len(TERMS) * (len(TERMS) + 1) // 2 + 2
_PACKED = {4 * (1 + count): count for count in (_NUMBERS, 2 * _NUMBERS + 1)}
"""How many numbers follow the first, by the bytes of all: without a rival, and with one."""
MOST = 1e38
"""Beyond what single precision holds."""


def unpacked(text: str) -> Calibration | None:
    """The calibration of what ``packed`` made; None for anything else."""
    try:
        data = b64decode(text)
    except ValueError:
        return None
    if len(data) not in _PACKED:
        return None
    reports, *numbers = struct.unpack(f"<I{_PACKED[len(data)]}f", data)
    left = iter(numbers)
    made = _calibration(_made(left, reports))
    return made if len(numbers) == _NUMBERS else replace(made, odds=next(left), rival=_made(left, reports))


def _made(left: Iterator[float], reports: int) -> Factors:
    count = len(TERMS)
    factors, *rows = (tuple(itertools.islice(left, length)) for length in (count, *range(1, count + 1)))
    return Factors(factors, tuple(rows), next(left), reports, next(left))


def usable(known: Calibration | None) -> Calibration | None:
    """What was learned before, in numbers of single precision; None where another version knew other kinds of text, and
    where it is no calibration."""
    if known is None or not _sound(known):
        return None
    told = known.rival is None or not _finite(known.odds) or not _sound(known.rival)
    return unpacked((replace(known, rival=None, odds=NAMED_FALSELY) if told else known).packed())


def _sound(known: Factors) -> bool:
    rows, numbers = known.covariance, known.numbers()
    if len(known.factors) != len(TERMS) or [len(row) for row in rows] != [*range(1, len(TERMS) + 1)]:
        return False
    return all(map(_finite, numbers)) and all(row[-1] >= 0 for row in rows) and known.noise > 0


def _finite(number: float) -> bool:
    return isinstance(number, (float, int)) and abs(number) < MOST


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
