"""What a call cost: known, free, unknown, or known in part; and what many cost together."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from agent_tui.context.accounting.reports import Errors, Followed
from agent_tui.context.accounting.spending import Sums, session_totals
from agent_tui.context.tokens import O200K
from agent_tui.models.calibration import text_content
from agent_tui.models.context import SessionTotals
from agent_tui.models.failure import Failure, FailureKind
from agent_tui.models.requests import Target
from agent_tui.models.steps import Step, StepKind
from agent_tui.models.usage import NO_COST, Cost, TokenUsage, cost_fields, counts_json
from tests.support.every import every

pytestmark = pytest.mark.quick

STEP = Step("stp", "turn", "m", "openai", "chat", "m", status="complete", usage=TokenUsage(10, 5), finish_reason="stop")


def test_costs_add_up_and_one_unknown_part_makes_the_whole_unknown() -> None:
    cost = Cost(0.25) + Cost(0.5) + NO_COST
    assert (cost, cost.whole) == (Cost(0.75), 0.75)
    assert (cost + Cost(unpriced=2)).whole is None
    assert cost_fields(cost + Cost(unpriced=2)) == {"cost_usd": None, "cost_known_usd": 0.75, "unpriced_calls": 2}


def test_a_finished_call_costs_what_its_price_says_and_an_unknown_price_is_not_0() -> None:
    assert replace(STEP, cost_usd=0.25).cost == Cost(0.25)
    assert replace(STEP, cost_usd=0.0).cost == NO_COST
    assert STEP.cost == Cost(unpriced=1)


def test_a_call_that_never_said_what_it_cost_holds_what_was_expected() -> None:
    call = replace(STEP, status="running", usage=None, finish_reason=None, assumed_usd=0.02)
    assert (call.held_usd, call.cost) == (0.02, NO_COST)
    found = replace(call, status="stopped")
    assert (found.held_usd, found.cost) == (0.02, Cost(unpriced=1))
    assert replace(found, cost_usd=0.015).held_usd == pytest.approx(0.005), "cut off after a report of a part"
    assert replace(STEP, cost_usd=0.05, assumed_usd=0.02).held_usd == 0.0


def test_a_call_that_was_cut_off_cost_at_least_what_was_reported() -> None:
    cut = replace(STEP, status="stopped", finish_reason=None, message_id="msg")
    assert replace(cut, cost_usd=0.25).cost == Cost(0.25, 1)
    assert replace(cut, usage=None).cost == Cost(unpriced=1)
    assert replace(cut, cost_usd=0.0).cost == NO_COST, "a free model stays free"
    ended = replace(cut, status="failed", cost_usd=0.25, finish_reason="refused")
    assert ended.cost == Cost(0.25), "what came after the provider's last word does not make its report incomplete"


@every(
    ("kind", "unpriced"),
    [("rate_limit", 0), ("context_overflow", 0), ("connection", 0), ("timeout", 1), ("interrupted_stream", 1)],
)
def test_a_refused_call_costs_nothing_and_a_lost_one_nobody_knows(kind: FailureKind, unpriced: int) -> None:
    failed = replace(STEP, status="failed", usage=None, finish_reason="unknown", failure=Failure(kind, "It failed."))
    assert failed.cost == Cost(unpriced=unpriced)
    assert replace(failed, message_id="msg").cost == Cost(unpriced=1), "it was refused after an answer had begun"


def test_counting_is_free() -> None:
    assert replace(STEP, kind="count", usage=TokenUsage(9_000, 0)).cost == NO_COST


def test_a_call_under_way_counts_as_far_as_it_is_known() -> None:
    running = replace(STEP, status="running", finish_reason=None)
    assert running.cost == NO_COST and replace(running, cost_usd=0.1).cost == Cost(0.1)


@every("seed", range(20))
def test_the_kinds_add_up_to_the_whole_and_following_gives_what_counting_anew_gives(seed: int) -> None:
    dice, followed, steps = random.Random(seed), Followed(Sums()), list[Step]()
    target = Target("openai", "chat", "m", "gpt")
    errors = Followed(Errors(target))
    kinds: tuple[StepKind, ...] = ("turn", "compaction", "subagent", "count")
    for number in range(60):
        running = [step for step in steps if step.status == "running"]
        if running and dice.random() < 0.5:
            step = dice.choice(running)
            step.status = dice.choice(("complete", "stopped", "failed"))
            step.usage = dice.choice((None, TokenUsage(dice.randrange(9_000), 5, dice.choice((None, 3)), 7, None)))
            step.cost_usd = dice.choice((None, 0.0, dice.random()))
            step.estimated_input, step.actual_input = 1_000, dice.choice((None, 990, 1_010, 1_100))
            step.estimated_spread, step.anchor_step = dice.choice((None, 20)), dice.choice((None, "stp0"))
            step.growth = dice.choice((None, text_content(None, 500)))
        else:
            steps.append(Step(f"stp{number}", dice.choice(kinds), "m", "openai", "chat", "m"))
        totals = session_totals(steps)
        assert followed.follow(steps).totals() == totals
        accuracy = Followed(Errors(target)).follow(steps).accuracy(O200K, O200K)
        assert errors.follow(steps).accuracy(O200K, O200K) == accuracy
        assert accuracy.calls == sum(step.kind == "turn" and bool(step.actual_input) for step in steps)
        assert_kinds_add_up(totals)
    assert followed.follow(steps[:3]).totals() == session_totals(steps[:3]), "a shorter list is another one"


def assert_kinds_add_up(totals: SessionTotals) -> None:
    of = totals.by_kind.values()
    assert sum((kind.cost for kind in of), NO_COST) == totals.cost
    assert sum(kind.calls for name, kind in totals.by_kind.items() if name != "count") == totals.steps
    assert sum(kind.doubted for kind in of) == totals.doubted
    for name, whole in counts_json(totals.usage).items():
        known = [value for kind in of if (value := counts_json(kind.usage)[name]) is not None]
        assert whole == (sum(known) if known else None)
