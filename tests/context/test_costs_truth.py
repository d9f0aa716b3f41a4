"""Numbers against a provider that counts truly, in a vocabulary that the calculator does not know: no further off after
anything that happens than the calculator was that made all numbers anew from the reports (``DERIVED``),
but for ``OTHERWISE``."""

from __future__ import annotations

import pytest

from tests.context.eventful_session import EVENTS, Miss, figures, many_sessions
from tests.context.test_long_runs import TARGETS

DERIVED = {
    True: {
        "first": (1273, 1839, 50),
        "plain": (7, 92, 96),
        "clear": (79, 300, 100),
        "summary": (122, 953, 92),
        "undo": (11, 259, 88),
        "drop": (21, 283, 93),
        "group": (220, 245, 100),
        "effort": (13, 17, 94),
        "switch": (3942, 8254, 33),
        "restart": (9, 19, 90),
    },
    False: {
        "first": (1273, 1839, 50),
        "plain": (8, 93, 95),
        "clear": (102, 358, 95),
        "summary": (142, 1005, 95),
        "undo": (24, 242, 87),
        "drop": (31, 283, 97),
        "group": (180, 263, 100),
        "effort": (29, 201, 100),
        "switch": (3942, 8254, 33),
        "restart": (12, 41, 92),
    },
}
"""The median and the 95th percentile of the errors in tokens, and how many percent of the intervals held, by whether
reasoning was counted and what had happened before: six models, each with a vocabulary that takes 0.85, 1 and 1.3 times
what is known of its family, 45 turns (2026-11-28)."""

OTHERWISE = {
    ("group", 0): 290,
    ("group", 1): 505,
    ("drop", 1): 515,
    ("effort", 1): 400,
    ("effort", 2): 88,
    ("restart", 1): 45,
}
"""What may be more, or less, than that, by event and place. This provider adds nothing for tools, against what is known
of the families; a drop right after another model came takes what nobody has measured; and an effort is changed 16
times. With real vocabularies each of them is nearer than it was."""
PROMISED = 95
"""Intervals that hold more often than that are wider than they have to be."""
SLACK = 2
"""Tokens; and percent of the intervals."""


def beyond(found: dict[str, list[Miss]], bounds: dict[str, tuple[int, int, int]]) -> list[str]:
    """What is worse than its bound."""
    worse: list[str] = []
    for event, limits in bounds.items():
        for place, (value, limit) in enumerate(zip(figures(found[event]), limits, strict=True)):
            allowed = OTHERWISE.get((event, place), min(limit, PROMISED) if place == 2 else limit)
            if value < allowed - SLACK if place == 2 else value > max(limit, allowed) + SLACK:
                worse.append(f"{event}: {('median', 'p95', 'held')[place]} {value}, bound {allowed}")
    return worse


@pytest.mark.slow
@pytest.mark.parametrize("counted", [True, False])
def test_no_number_is_further_off_than_those_made_of_all_reports(counted: bool) -> None:
    found = many_sessions(TARGETS, (0.85, 1.0, 1.3), counted, 45, 5)
    assert found.keys() >= DERIVED[counted].keys() and found.keys() <= {"first", "plain", *EVENTS}
    assert not (worse := beyond(found, DERIVED[counted])), worse


FEW = {0.85: ((8, 83, 95), (36, 443, 87)), 1.3: ((18, 371, 95), (41, 318, 100))}
"""The same figures of that calculator for the sessions below: plain steps, and those that follow on something."""


@pytest.mark.slow
@pytest.mark.parametrize("times", FEW)
def test_a_few_sessions_are_as_near(times: float) -> None:
    found = many_sessions(TARGETS[::2], [times], times < 1, 20, 8)
    plain, after = found["plain"], [miss for event in EVENTS if event != "switch" for miss in found[event]]
    for misses, (median, p95, held) in zip((plain, after), FEW[times], strict=True):
        now = figures(misses)
        assert now[0] <= median + SLACK and now[1] <= p95 + SLACK and now[2] >= min(held, PROMISED) - SLACK, (
            now,
            median,
            p95,
            held,
        )
