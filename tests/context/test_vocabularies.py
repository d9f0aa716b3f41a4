"""Estimates learn a real vocabulary from what its server reports, and odd reports do no harm."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from agent_tui.context.tokens import FAMILIES, O200K, UNSURE
from agent_tui.models.calibration import KINDS, TERMS, Calibration, Content, raw_total, text_content, unpacked, usable
from agent_tui.providers.counting import by_kind
from agent_tui.providers.litellm_files import VOCABULARIES, place
from tests.benchmarks.league.vocabularies import vocabulary
from tests.benchmarks.vocabulary_texts import LINES
from tests.support.every import every


def content_of(text: str) -> Content:
    counts = by_kind(text)
    return text_content(counts, raw_total(counts))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cl100k", "claude2"])
def test_a_vocabulary_that_nothing_is_known_of_is_learned_and_the_intervals_hold(name: str) -> None:
    files, rng, known = place(*VOCABULARIES), random.Random(3), UNSURE
    assert files is not None
    count, held, before, after = vocabulary(name, files), [], 0.0, 0.0
    for number in range(160):
        line = LINES[rng.choice(sorted(LINES))]
        text = "\n".join(line(rng, row) for row in range(rng.choice([4, 20, 60])))
        content, true = content_of(text), count(text)
        if number >= 40:
            held.append(abs(true - known.tokens(content)) <= known.spread(content))
            before += abs(true - UNSURE.tokens(content))
            after += abs(true - known.tokens(content))
        known = known.learned(content, true)
    assert after < 0.5 * before
    assert sum(held) / len(held) >= 0.88


def test_three_odd_reports_do_no_harm() -> None:
    rng, known = random.Random(1), O200K
    texts = [content_of("\n".join(LINES["csv"](rng, row) for row in range(40))) for _ in range(12)]
    for content in texts:
        known = known.learned(content, known.tokens(content))
    odd = known
    for content in texts[:3]:
        odd = odd.learned(content, 4 * known.tokens(content))
    for content in texts:
        assert odd.tokens(content) == pytest.approx(known.tokens(content), rel=0.02)


def test_what_was_learned_is_not_clamped() -> None:
    known: Calibration = UNSURE
    content = content_of("\n".join(LINES["columns of digits"](random.Random(2), row) for row in range(60)))
    for _ in range(30):
        known = known.learned(content, 2.6 * raw_total([int(term) for term in content.terms[: len(KINDS)]]))
    assert known.tokens(content) == pytest.approx(
        2.6 * raw_total([int(t) for t in content.terms[: len(KINDS)]]), rel=0.05
    )


MIXED = ["tests", "json rows", "log", "minified", "prose", "timings", "listing", "ids"]


@pytest.mark.slow
@every(("name", "factor"), [("claude-4.7", 1.0), ("claude", 1.25), ("qwen", 0.8), ("gpt", 1.3)])
def test_a_server_that_is_not_what_its_name_says_is_learned_about_as_fast_as_one_without_a_name(
    name: str, factor: float
) -> None:
    """It counts a number times what o200k_base does."""
    errors: dict[Calibration, float] = {}
    held: list[bool] = []
    for first in (FAMILIES[name].beginning, UNSURE):
        errors[first] = 0.0
        for seed in range(8):
            rng, known = random.Random(seed), first
            for number in range(30):
                line = LINES[rng.choice(MIXED)]
                content = content_of("\n".join(line(rng, row) for row in range(rng.choice([20, 60]))))
                true = factor * raw_total([int(term) for term in content.terms[: len(KINDS)]])
                off = abs(true - known.tokens(content))
                errors[first] += off if number >= 6 else 0
                held += [off <= known.spread(content)] if number >= 6 else []
                known = known.learned(content, true)
    assert errors[FAMILIES[name].beginning] <= 2 * errors[UNSURE]
    assert sum(held) / len(held) > 0.9


def test_what_is_kept_between_calculations_is_of_the_vocabulary_that_was_shown() -> None:
    """A server that is called Qwen and does not take digits one by one: rows of numbers are not half as large again."""
    rng, family = random.Random(7), FAMILIES["qwen"].beginning
    known = family
    for _ in range(20):
        content = content_of("\n".join(LINES[rng.choice([*MIXED, "csv"])](rng, row) for row in range(40)))
        known = known.learned(content, 1.1 * raw_total([int(term) for term in content.terms[: len(KINDS)]]))
    numbers = content_of("\n".join(LINES["csv"](rng, row) for row in range(80)))
    true = 1.1 * raw_total([int(term) for term in numbers.terms[: len(KINDS)]])
    assert known.coarse(family).tokens(numbers) == pytest.approx(true, rel=0.1)


@pytest.mark.slow
@every("name", ["claude-4.7", "gpt", "qwen", "gemini", "mistral"])
def test_a_name_that_is_true_is_believed_and_then_stored_alone(name: str) -> None:
    known = family = FAMILIES[name].beginning
    rng = random.Random(5)
    for _ in range(60):
        content = content_of("\n".join(LINES[rng.choice(MIXED)](rng, row) for row in range(rng.choice([4, 20]))))
        noise = family.noise * content.squares**0.5
        known = known.learned(content, family.tokens(content) + rng.gauss(0, noise))
    assert known.rival is None
    assert known.tokens(content) == pytest.approx(family.tokens(content), rel=0.05)


@every("number", [math.nan, math.inf, -math.inf, 1e300, -1e300])
def test_what_no_single_precision_holds_is_no_calibration(number: float) -> None:
    begun = FAMILIES["llama"].beginning
    known = usable(replace(begun, odds=number))
    assert begun.rival is not None and known is not None and known.rival is None
    for name in ("noise", "added"):
        assert usable(replace(begun, **{name: number})) is None  # type: ignore[arg-type]
        kept = usable(replace(begun, rival=replace(begun.rival, **{name: number})))  # type: ignore[arg-type]
        assert kept is not None and kept.rival is None


@pytest.mark.slow
def test_what_misses_of_one_kind_makes_no_other_less_sure() -> None:
    rng, known = random.Random(4), UNSURE
    korean = content_of("프로그램의 다음 입력이 얼마나 큰지 알려 주세요. " * 20)
    for _ in range(200):
        content = content_of("\n".join(LINES["csv"](rng, row) for row in range(20)))
        known = known.learned(content, rng.choice([0.6, 1.6]) * known.tokens(content))
    assert replace(known, noise=UNSURE.noise).spread(korean) <= 1.05 * UNSURE.spread(korean)


def test_texts_are_as_sure_as_what_they_consist_of() -> None:
    """Numbers are taken apart by a rule, names and languages by what a vocabulary happens to know."""
    spreads = [
        replace(O200K, noise=0.05).spread(content_of(text)) / raw_total(by_kind(text))
        for text in ("3141592653589 " * 60, "getUserNameFromRequestHeader" * 60, "नमस्ते दुनिया " * 60)
    ]
    assert 2 * spreads[0] < spreads[1] < spreads[2]


@pytest.mark.slow
@every("seed", range(6))
def test_whatever_is_reported_a_calibration_stays_one(seed: int) -> None:
    chosen = random.Random(seed)
    known = chosen.choice(list(FAMILIES.values())).beginning
    for _ in range(400):
        terms = [0.0] * len(TERMS)
        for term in chosen.sample(range(len(TERMS)), 3):
            terms[term] = chosen.choice([1, 10, 1e3, 1e5, -1e3]) * chosen.random()
        content = Content(terms, squares=chosen.choice([0.0, 1.0, 1e4]))
        known = known.learned(content, known.tokens(content) * chosen.choice([1, 1.1, 3, 0]) + chosen.gauss(0, 5))
    kept = usable(known)
    assert kept is not None and usable(kept) == kept == unpacked(kept.packed())
    assert usable(replace(known, rival=replace(UNSURE, covariance=()))) is not None, "without what is no calibration"
    assert kept.factors == pytest.approx(known.factors, rel=1e-6)
