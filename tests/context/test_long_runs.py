"""Long sessions with a provider that counts truly: the numbers stay near it and no row tells a lie."""

from __future__ import annotations

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from agent_tui.context.accounting.usage import calculate_context_usage
from agent_tui.models.requests import Target
from tests.context.counting_model import Session
from tests.support.contexts import BOUND, CLAUDE, assert_identities, row, usual
from tests.support.forms import examples, one_of

OLD_CLAUDE = Target("anthropic", "chat", "claude-sonnet-4-5", "claude")
RESPONSES = Target("openai", "responses", "gpt-5", "gpt")
DEEPSEEK = Target("deepseek", "chat", "deepseek-v4-flash", "deepseek")
GLM = Target("zai", "chat", "glm-4.6", "glm")
TARGETS = (CLAUDE, OLD_CLAUDE, BOUND, RESPONSES, DEEPSEEK, GLM)
WARM = 10
"""Steps with something measured, after which the tokenizer's difference is known."""


def check_rows(session: Session) -> None:
    for number, outcome in enumerate(session.outcomes):
        usage = outcome.usage
        assert_identities(usage)
        rows = {r.id: r.tokens for r in usage.rows}
        shown = rows["system"] + rows["tools"]
        assert rows["system"] > 0 and rows["tools"] > 0 and rows["messages"] > 0
        assert 0.65 * outcome.fixed < shown < 1.7 * outcome.fixed + 500, f"step {number}: {shown} of {outcome.fixed}"


def errors(session: Session) -> list[int]:
    """Of the steps that were built on a measured one, once that had happened often enough; smallest first."""
    anchored = [o for o in session.outcomes if o.usage.anchor_step is not None][WARM:]
    return sorted(abs(o.usage.total - o.actual) for o in anchored)


@pytest.mark.slow
@settings(max_examples=examples(4, 20), deadline=None, phases=(Phase.explicit, Phase.generate), database=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(TARGETS),
    st.floats(0.7, 1.45),
    st.booleans(),
    st.sampled_from([32_000, 200_000]),
)
@example(670_582, CLAUDE, 0.708, False, 200_000)
def test_no_row_is_ever_a_wrong_zero(seed: int, target: Target, factor: float, counted: bool, window: int) -> None:
    """Nor is one scaled with a warning, however the provider's tokens compare with the family's within what is believed
    of a tokenizer, also before that is learned: in the example a summary leaves nothing measured but the prompt."""
    session = Session(target, seed, factor * usual(target), counted, window)
    session.run(15)
    check_rows(session)
    fresh = calculate_context_usage(session.conversation.inputs(calibration=session.calibration, effort=session.effort))
    kept = session.accounts.usage(session.conversation.inputs(calibration=session.calibration, effort=session.effort))
    assert kept == fresh, "what is reused changes nothing"


@pytest.mark.parametrize(("target", "factor"), one_of([(CLAUDE, 1.0), (BOUND, 1.3), (RESPONSES, 1.1), (GLM, 0.9)]))
def test_hundreds_of_steps_stay_near_the_provider(target: Target, factor: float) -> None:
    session = Session(target, 7, factor)
    session.run(70)
    assert len(session.outcomes) > 200
    check_rows(session)
    wrong = errors(session)
    p95 = wrong[int(0.95 * len(wrong))]
    assert p95 <= 300, f"p95 {p95}, worst {wrong[-5:]}"


@pytest.mark.slow
@pytest.mark.parametrize("target", one_of([CLAUDE, BOUND]), ids=lambda t: t.model)
def test_thinking_stays_on_through_prunes_and_summaries(target: Target) -> None:
    session = Session(target, 11, usual(target), window=60_000)
    for number in range(40):
        session.turn(4)
        session.prune()
        if number % 5 == 4:
            session.summarise()
    assert all(outcome.thinking for outcome in session.outcomes)
    kinds = {record.kind for record in session.conversation.records}
    assert kinds == {"prune", "summary"}
    check_rows(session)


def test_what_was_left_out_stays_out_until_the_prefix_is_rebuilt() -> None:
    session = Session(CLAUDE, 3)
    session.turn(2)
    session.effort = "off"
    session.turn(1)
    before = session.conversation.steps[-1].sent_reasoning
    assert before is not None and not any(run[2] for run in before)
    session.effort = "medium"
    session.turn(1)
    runs = session.conversation.steps[-1].sent_reasoning
    assert runs is not None and runs[0][2] == 0 and runs[-1][2] == 1, "only what was thought since goes along"
    assert any("rewrite" in (leaf.replay or "") for leaf in row(session.usage(), "messages", "reasoning").children)
    session.prune()
    session.turn(1)
    runs = session.conversation.steps[-1].sent_reasoning
    assert runs is not None and runs[0][2] == 0, "what was cleared must not be filled up with it"
    check_rows(session)


def test_undo_brings_back_what_a_compaction_left_out() -> None:
    session = Session(BOUND, 3)
    for _ in range(3):
        session.turn(3)
    before = session.usage()
    session.prune()
    assert session.usage().calculation.dropped_reasoning > 0
    session.turn(0)
    session.undo()
    session.conversation.path = session.conversation.path[:-2]
    after = session.usage()
    assert (after.total, after.calculation.last_input) == (before.total, before.calculation.last_input)
    # By what the reports in between have taught, what the first one settled is shared out otherwise.
    assert [row.id for row in after.rows] == [row.id for row in before.rows]
    assert after.rows[-1].tokens == pytest.approx(before.rows[-1].tokens, rel=0.02)


@pytest.mark.slow
def test_a_session_of_an_older_version_goes_on() -> None:
    """Its steps do not say what they sent: today's rule stands in for it, and no row goes to zero."""
    session = Session(CLAUDE, 5, remembered=False)
    session.run(15)
    session.remembered = True
    session.run(15)
    for outcome in session.outcomes:
        rows = {r.id: r.tokens for r in outcome.usage.rows}
        assert rows["system"] > 0 and rows["tools"] > 0
        assert_identities(outcome.usage)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.88, 1.15])
def test_a_provider_that_counts_no_reasoning_is_learned_from_as_well(factor: float) -> None:
    ratios: list[float] = []
    for seed in range(5):
        session = Session(DEEPSEEK, seed, factor, counts_reasoning=False)
        session.run(25)
        ratios.append(session.usage().accuracy.ratio * usual(DEEPSEEK))
        wrong = errors(session)
        assert wrong[int(0.95 * len(wrong))] <= 300
    assert sum(ratios) / len(ratios) == pytest.approx(factor, rel=0.05)


@pytest.mark.slow
def test_reasoning_that_nobody_counted_is_not_off_by_the_tokenizer_when_it_goes() -> None:
    """Of a hundred thousand tokens of thinking that are left out at once, a tenth of the text beside them is much."""
    session = Session(CLAUDE, 17, 1.0, counts_reasoning=False)
    for _ in range(30):
        session.turn(4)
    session.effort = "off"
    session.turn(0)
    outcome = session.outcomes[-1]
    assert outcome.usage.calculation.dropped_reasoning > 50_000
    assert abs(outcome.usage.total - outcome.actual) <= 0.01 * outcome.actual
    check_rows(session)
