"""Servers that count by a real vocabulary and lie, or do not: which are named, when, and what is shown meanwhile."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from functools import partial

import pytest

from agent_tui.context.tokens import family_of
from agent_tui.models.calibration import REQUESTS
from agent_tui.models.usage import TokenUsage
from tests.context.lying_server import (
    LOCAL,
    Lie,
    Talk,
    all_summed,
    cached_left_out,
    cached_twice,
    cuts,
    honest,
    keeps,
    silent_of_cache,
    summed,
)

LIES: dict[str, tuple[Lie, str]] = {
    "cached twice": (cached_twice, "cached twice"),
    "cached left out": (cached_left_out, "cached left out"),
    "three calls a report": (summed, "summed"),
    "all calls until now": (all_summed, "summed"),
}


@pytest.mark.parametrize("vocabulary", ["claude", "cl100k"])
@pytest.mark.parametrize("name", LIES)
def test_a_liar_is_named_within_three_requests_and_never_shown(name: str, vocabulary: str) -> None:
    lie, doubt = LIES[name]
    for seed in range(3):
        talk = Talk(lie, seed, vocabulary)
        for _ in range(8):
            talk.turn()
        assert doubt in talk.doubts()[:3] and talk.doubts()[3:] == [doubt] * 5
        assert set(talk.doubts()) == {"", "doubted", doubt}
        for exchange in talk.exchanges:
            assert abs(exchange.usage.total - exchange.true) < 0.15 * exchange.true
        steps = talk.conversation.steps
        assert all(s.usage is not None and s.usage.input == e.said for s, e in zip(steps, talk.exchanges, strict=True))


def always_said(usage: TokenUsage, talk: Talk, true: int, output: int) -> TokenUsage:
    return usage


def table(seed: int) -> str:
    """So many digits that vocabularies differ most in them."""
    chance = random.Random(seed)
    return "\n".join(f"{chance.randrange(10**6):06},{chance.random() * 1_000:.4f}" for _ in range(800))


@pytest.mark.parametrize("vocabulary", ["claude", "cl100k"])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("name", ["cached twice", "cached left out"])
def test_a_liar_is_named_although_its_first_lie_was_hidden_by_a_wide_estimate(
    name: str, first: bool, vocabulary: str
) -> None:
    lie, doubt = LIES[name]
    talk = Talk(lie, 3, vocabulary)
    talk.texts = itertools.cycle(["The parser keeps what it found in a table. " * 4, "And what is next?"])
    if first:
        talk.turn()
    talk.say(table(1))
    talk.step()
    for _ in range(6):
        talk.turn()
    assert doubt in talk.doubts()[:3] and set(talk.doubts()[3:]) == {doubt}
    for exchange in talk.exchanges[3:]:
        assert abs(exchange.usage.total - exchange.true) < 0.01 * exchange.true
        assert exchange.verdict.doubt != "unsteady"


@pytest.mark.parametrize("thinking", ["off", "medium"])
def test_three_equal_reports_of_requests_that_grew_a_little_are_a_server_that_cuts(thinking: str) -> None:
    talk = Talk(cuts(16_000), 3)
    talk.thinking = thinking
    talk.texts = itertools.cycle(["The parser keeps what it found in a table. " * 4, "And what is next?"])
    talk.say(table(1) * 2)
    for _ in range(3):
        talk.step()
        talk.say()
    assert talk.exchanges[-1].verdict.doubt == "truncated" and talk.exchanges[-1].verdict.keeps == 16_000
    assert abs(talk.usage().total - talk.true()) <= talk.usage().spread, "what was cut off is no measure of it"


@pytest.mark.parametrize("lie", [keeps, cuts])
def test_a_server_that_leaves_out_the_oldest_text_is_named(lie: Callable[[int], Lie]) -> None:
    window = 8_000
    for seed in range(8):
        talk, over = Talk(lie(window), seed), 0
        while "truncated" not in talk.doubts():
            talk.turn()
            over += talk.exchanges[-1].true > window + 200
            assert over <= 3
        assert abs((talk.exchanges[-1].verdict.keeps or 0) - window) < 0.15 * window
        assert abs(talk.usage().total - talk.true()) < 0.1 * talk.true(), "ours is shown"


@pytest.mark.parametrize("report", [honest, silent_of_cache])
@pytest.mark.parametrize("hidden", [0, 5_012])
@pytest.mark.parametrize("vocabulary", ["claude", "cl100k"])
def test_an_honest_server_is_never_named_and_never_refused_twice(vocabulary: str, hidden: int, report: Lie) -> None:
    for seed in range(2):
        talk = Talk(report, seed, vocabulary, hidden, window=60_000)
        for _ in range(40):
            talk.turn(talk.random.choice([0, 0, 1, 3]))
            if talk.usage().total > 0.7 * talk.window or talk.random.random() < 0.05:
                talk.summarise()
        doubts = talk.doubts()
        assert set(doubts) <= {"", "doubted"}
        assert not any(a and b for a, b in itertools.pairwise(doubts))
        for exchange in talk.exchanges[2 if hidden else 0 :]:
            assert abs(exchange.usage.total - exchange.true) < 0.01 * talk.window


def test_a_prompt_that_a_gateway_adds_is_a_constant_known_from_the_second_request_on() -> None:
    talk = Talk(honest, 2, "claude", 5_012)
    talk.turn()
    talk.turn()
    assert talk.doubts() == ["doubted", ""], "one report alone may be anything"
    talk.turn()
    added = talk.calibration.factors[REQUESTS] if talk.calibration is not None else 0
    assert talk.exchanges[1].verdict.always and abs(added - 5_012) < 400
    rows = {row.label: row for row in talk.usage().rows[0].children}
    assert abs(rows["added by the server"].tokens - added) <= 10
    later = Talk(honest, 5, "claude", 5_012, calibration=talk.calibration)
    later.turn()
    assert later.doubts() == [""] and abs(later.exchanges[0].usage.total - later.exchanges[0].true) < 400
    gone = Talk(honest, 6, "claude", calibration=talk.calibration)
    for text in ("Hello.", "And now?"):
        gone.say(text)
        gone.step()
    assert "truncated" not in gone.doubts()
    assert gone.calibration is not None and gone.calibration.factors[-1] < 400, "it is forgotten when it is gone"


def test_what_conversations_learn_of_a_server_at_once_counts_once() -> None:
    """Subagents run beside each other, and each is shown it before it knows of the others."""
    stored = family_of(LOCAL).beginning
    for seed in (2, 3, 4):
        talk = Talk(honest, seed, "claude", 5_012)
        for text in ("Hello.", "And now?"):
            talk.say(text)
            talk.step()
        always = talk.exchanges[1].verdict.always
        assert always is not None
        stored = stored.adding(always)
    assert abs(stored.factors[REQUESTS] - 5_012) < 400


def test_one_report_that_is_off_is_doubted_and_the_next_is_believed() -> None:
    odd = [3]
    talk = Talk(lambda talk, true, output: TokenUsage(48_000 if len(talk.exchanges) in odd else true, output))
    for _ in range(8):
        talk.turn()
    assert talk.doubts() == ["", "", "", "doubted", "", "", "", ""]


def test_another_model_that_answers_is_named() -> None:
    talk = Talk(lambda talk, true, output: TokenUsage(round(true * (1.6 if talk.model == "other" else 1)), output))
    for number in range(6):
        talk.model = "other" if number == 3 else "unheard-of"
        talk.turn()
    assert talk.doubts() == ["", "", "", "another model", "", ""]


def test_why_all_is_estimated_says_whether_there_was_no_report_or_one_that_is_not_believed() -> None:
    said = {
        "the provider reported no usage": TokenUsage(900, 40, source="estimated"),
        "the provider's report of it is not believed": TokenUsage(9_000_000, 40),
    }
    for why, usage in said.items():
        talk = Talk(partial(always_said, usage))
        talk.turn()
        assert talk.usage().why.endswith(f"All of it is estimated: the last call is no measure of it, because {why}.")
