"""Estimates learn a real vocabulary from what its server reports, and odd reports do no harm."""

from __future__ import annotations

import random

import pytest

from agent_tui.context.tokens import FAMILIES, O200K, UNSURE
from agent_tui.models.calibration import KINDS, TERMS, Calibration, Content, raw_total, text_content, usable
from agent_tui.providers.counting import by_kind
from agent_tui.providers.litellm import VOCABULARIES, place
from tests.benchmarks.league.vocabularies import vocabulary
from tests.benchmarks.vocabulary_texts import LINES


def content_of(text: str) -> Content:
    counts = by_kind(text)
    return text_content(counts, raw_total(counts))


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


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_reported_a_calibration_stays_one(seed: int) -> None:
    chosen = random.Random(seed)
    known = chosen.choice(list(FAMILIES.values())).beginning
    for _ in range(400):
        terms = [0.0] * len(TERMS)
        for term in chosen.sample(range(len(TERMS)), 3):
            terms[term] = chosen.choice([1, 10, 1e3, 1e5, -1e3]) * chosen.random()
        content = Content(terms, squares=chosen.choice([0.0, 1.0, 1e4]))
        known = known.learned(content, known.tokens(content) * chosen.choice([1, 1.1, 3, 0]) + chosen.gauss(0, 5))
    assert usable(known) is known
