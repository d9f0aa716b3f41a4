"""Servers that count by a real vocabulary and lie, or do not: which are named, when, and what is shown meanwhile."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from agent_tui.context.accounting.reports import told_text
from agent_tui.context.accounting.spending import session_totals
from agent_tui.context.tokens import family_of
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
from tests.support.every import every
from tests.support.forms import one_of

LIES: dict[str, tuple[Lie, str]] = {
    "cached twice": (cached_twice, "cached twice"),
    "cached left out": (cached_left_out, "cached left out"),
    "three calls a report": (summed, "summed"),
    "all calls until now": (all_summed, "summed"),
}


@every("vocabulary", ["claude", "cl100k"])
@every("name", LIES)
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


@pytest.mark.slow
@every("vocabulary", ["claude", "cl100k"])
@every("wide", [0, 1, 2])
@every("name", ["cached twice", "cached left out", "all calls until now"])
def test_a_liar_is_named_although_a_wide_estimate_hides_one_of_its_lies(name: str, wide: int, vocabulary: str) -> None:
    lie, doubt = LIES[name]
    for seed in (1, 2):
        talk = Talk(lie, seed, vocabulary)
        for number in range(8):
            talk.say(table(seed) if number == wide else None)
            talk.step()
        assert doubt in talk.doubts()[:3] and set(talk.doubts()[3:]) == {doubt}
        for exchange in talk.exchanges[3:]:
            assert abs(exchange.usage.total - exchange.true) <= exchange.usage.spread + 0.01 * exchange.true


def test_what_a_report_taught_is_taken_back_once_it_is_not_believed() -> None:
    """The second report is within the interval of a wide estimate, so that it is learned from."""
    talk = Talk(all_summed, 3)
    talk.turn()
    before = talk.calibration
    talk.say(table(1))
    talk.step()
    assert talk.calibration != before and not talk.doubts()[-1]
    talk.turn()
    assert talk.doubts()[-1] == "summed" and talk.exchanges[-1].verdict.taken_back is not None
    assert talk.calibration is not None and before is not None and talk.calibration.reports == before.reports
    assert talk.calibration.factors == pytest.approx(before.factors, rel=1e-5), "as far as it is stored with a step"


def test_an_answer_that_was_paid_twice_names_nobody() -> None:
    """A gateway that made one call again, and the next request is of a size that nobody can know."""
    again = [2]
    talk = Talk(lambda talk, true, output: TokenUsage(true * (2 if len(talk.exchanges) in again else 1), output))
    for number in range(8):
        talk.say(table(1) if number == 3 else None)
        talk.step()
    assert set(talk.doubts()) == {"", "doubted"} and talk.doubts()[3:] == [""] * 5


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
            newest = talk.exchanges[-1]
            # Less than a tenth is within what an estimate may be off.
            over += newest.true - newest.said > 0.1 * newest.true
            assert over <= 3
        assert abs((talk.exchanges[-1].verdict.keeps or 0) - window) < 0.15 * window
        assert abs(talk.usage().total - talk.true()) < 0.1 * talk.true(), "ours is shown"


@pytest.mark.parametrize(
    ("vocabulary", "hidden", "report"),
    one_of(itertools.product(["cl100k", "claude"], [5_012, 0], [silent_of_cache, honest])),
)
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


def test_reports_that_are_as_expected_change_nothing_that_is_known_of_others() -> None:
    """Each step of which something else is believed has all costs behind it settled again."""
    talk = Talk(honest, 4, "cl100k")
    for _ in range(6):
        talk.say()
        talk.step()
    assert [dict(exchange.verdict.truth) for exchange in talk.exchanges] == [{}] * 6


def test_a_prompt_that_a_gateway_adds_is_a_constant_known_from_the_second_request_on() -> None:
    talk = Talk(honest, 2, "claude", 5_012)
    talk.turn()
    talk.turn()
    assert talk.doubts() == ["doubted", ""], "one report alone may be anything"
    talk.turn()
    added = talk.calibration.added if talk.calibration is not None else 0
    assert talk.exchanges[1].verdict.always and abs(added - 5_012) < 400
    rows = {row.label: row for row in talk.usage().rows[0].children}
    assert abs(rows["added by the server"].tokens - added) <= 10
    later = Talk(honest, 5, "claude", 5_012, calibration=talk.calibration)
    later.turn()
    first = later.exchanges[0]
    assert later.doubts() == [""] and abs(first.usage.total - first.true) <= first.usage.spread < 400
    gone = Talk(honest, 6, "claude", calibration=talk.calibration)
    for text in ("Hello.", "And now?"):
        gone.say(text)
        gone.step()
    assert "truncated" not in gone.doubts()
    assert gone.calibration is not None and gone.calibration.added < 400, "it is forgotten when it is gone"


@pytest.mark.forms(1)
@pytest.mark.parametrize("vocabulary", ["claude", "cl100k"])
def test_a_prompt_that_a_gateway_adds_makes_nothing_else_less_sure(vocabulary: str) -> None:
    """However long the texts are that it was first seen with."""
    inside = 0
    for seed in range(8):
        talk = Talk(honest, seed, vocabulary, 5_012)
        for _ in range(3):
            talk.turn()
        assert talk.calibration is not None and abs(talk.calibration.added - 5_012) < 500
        later = Talk(honest, seed + 30, vocabulary, 5_012, calibration=talk.calibration)
        later.turn()
        alone = Talk(honest, seed + 30, vocabulary)
        alone.turn()
        first = later.exchanges[0]
        assert first.usage.spread <= 1.15 * alone.exchanges[0].usage.spread
        inside += abs(first.usage.total - first.true) <= first.usage.spread
    assert inside >= 7


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
    assert abs(stored.added - 5_012) < 400


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
        "its usage report looks wrong": TokenUsage(9_000_000, 40),
    }
    for why, usage in said.items():
        talk = Talk(partial(always_said, usage))
        talk.turn()
        assert talk.usage().why.endswith(f"All of it is estimated: the last call does not measure it, because {why}.")


def test_a_report_is_quoted_in_grammar() -> None:
    talk = Talk(lambda talk, true, output: TokenUsage(1 if len(talk.exchanges) == 3 else true, output))
    for _ in range(4):
        talk.turn()
    told = told_text(talk.conversation.steps[-1], talk.exchanges[-1].verdict)
    assert "it reports 1 token of input where" in told


def test_a_count_is_no_step_of_a_turn() -> None:
    talk = Talk(honest)
    talk.turn()
    counted = replace(talk.conversation.steps[-1], id="count", kind="count")
    totals = session_totals([*talk.conversation.steps, counted])
    assert totals.steps == 1 and totals.by_kind["count"].calls == 1


def test_a_report_of_next_to_nothing_is_not_believed_after_a_summary() -> None:
    """All of the request is estimated then, and what is shown decides how long an answer is asked for."""
    talk = Talk(lambda talk, true, output: TokenUsage(true // 20 if len(talk.exchanges) == 4 else true, output))
    for number in range(7):
        if number == 4:
            talk.summarise()
        talk.turn()
    assert talk.doubts() == ["", "", "", "", "doubted", "", ""]
    assert all(abs(e.usage.total - e.true) < 0.15 * e.true for e in talk.exchanges)
