"""What a change loses of earlier reasoning, in tokens, dollars and words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent_tui.context.accounting.inputs import ContextInputs
from agent_tui.context.accounting.lost import LostReasoning, WayBack, lost_reasoning, lost_text
from agent_tui.models.messages import Metadata, ReasoningPart
from agent_tui.models.requests import Target
from agent_tui.models.usage import Cost, Prices, PriceTier, Rates, TokenUsage
from tests.support.contexts import BOUND, CLAUDE, Conversation, model
from tests.support.every import every

pytestmark = pytest.mark.quick

THOUGHT = 4_000
PRICES = Prices(3e-6, 15e-6, 3e-7)
OPUS = Target("anthropic", "chat", "claude-opus-4-6", "claude")
RESPONSES = Target("openai", "responses", "gpt-5", "gpt")
GEMINI = Target("gemini", "gemini", "gemini-3-pro-preview", "gemini")
DEEPSEEK = Target("deepseek", "chat", "deepseek-reasoner", "deepseek")
SIGNED: Metadata = {"type": "thinking", "signature": "sig"}


def talk(
    target: Target = CLAUDE, metadata: Metadata | None = SIGNED, turns: int = 3, cost: float | None = 0.1
) -> Conversation:
    """Turns in each of which 4,000 tokens are thought and 100 answered."""
    talk = Conversation(target)
    for turn in range(turns):
        talk.say(f"question {turn}")
        usage = TokenUsage(1_000 + turn * 4_200, THOUGHT + 100, reasoning=THOUGHT)
        step = talk.answer(usage, reasoning=ReasoningPart("hm", metadata, prefix="now"))
        step.cost_usd = None if cost is None else PRICES.cost(usage)
    return talk


def inputs(talk: Conversation, prices: Prices = PRICES) -> ContextInputs:
    found = talk.inputs()
    return replace(found, model=replace(found.model, prices=prices))


def switched(talk: Conversation, prices: Prices = PRICES, to: Target = OPUS) -> LostReasoning | None:
    before = inputs(talk, prices)
    return lost_reasoning(before, replace(before, model=model(to)), WayBack("/model test", before))


def test_it_costs_what_the_steps_were_billed_for_it() -> None:
    lost = switched(talk())
    assert lost is not None and (lost.tokens, lost.basis) == (3 * THOUGHT, "reported")
    assert lost.cost.whole == pytest.approx(3 * THOUGHT * 15e-6)
    assert (lost.back_now, lost.back_later) == (lost.tokens, lost.tokens)
    assert lost_text(lost) == "12k reasoning tokens ($0.18 to make) are no longer sent; /model test brings them back."


def test_what_the_provider_billed_itself_wins_over_the_list() -> None:
    dear = talk()
    for step in dear.steps:
        assert step.cost_usd is not None
        step.cost_usd *= 2
    lost = switched(dear)
    assert lost is not None and lost.cost.whole == pytest.approx(2 * 3 * THOUGHT * 15e-6)


def test_a_long_request_and_dear_thinking_are_priced_as_they_were() -> None:
    prices = Prices(3e-6, 15e-6, reasoning=30e-6, tiers=(PriceTier(5_000, Rates(6e-6, 22e-6)),))
    long = talk()
    for step in long.steps:
        assert step.usage is not None
        step.cost_usd = prices.cost(step.usage)
    lost = switched(long, prices)
    assert lost is not None
    assert lost.cost.whole == pytest.approx(THOUGHT * (30e-6 + 22e-6 + 22e-6)), "the first of three was short"


def test_what_has_no_price_is_not_made_up() -> None:
    unpriced = switched(talk(cost=None), Prices())
    assert unpriced is not None and unpriced.cost == Cost(0.0, 3)
    assert "(price unknown)" in lost_text(unpriced)
    half = talk()
    half.steps[0].cost_usd = None
    lost = switched(half)
    assert lost is not None and lost.cost.unpriced == 1 and "(≥ $0.12 to make)" in lost_text(lost)
    free = talk()
    for step in free.steps:
        step.cost_usd = 0.0
    nothing = switched(free, Prices(0.0, 0.0))
    assert nothing is not None and "($0 to make)" in lost_text(nothing)


def test_an_estimate_says_so() -> None:
    guessed = talk()
    for step in guessed.steps:
        assert step.usage is not None
        step.usage = replace(step.usage, reasoning=None)
    lost = switched(guessed)
    assert lost is not None and lost.basis == "estimated"
    assert abs(lost.tokens - 3 * THOUGHT) <= 0.03 * 3 * THOUGHT
    assert lost_text(lost).startswith("~1")


def test_too_little_is_not_spoken_of() -> None:
    little = talk()
    for step in little.steps:
        step.usage = TokenUsage(1_000, 400, reasoning=300)
    assert switched(little) is None
    assert lost_text(None) == ""


@every(
    ("target", "metadata"),
    [
        (Target("anthropic", "chat", "claude-sonnet-4-5", "claude"), SIGNED),
        (RESPONSES, {"encrypted_content": "opaque"}),
        (GEMINI, {"thought_signature": "sig"}),
        (DEEPSEEK, None),
    ],
)
def test_what_a_closed_turn_drops_anyway_is_not_lost_but_within_a_turn_it_is(
    target: Target, metadata: Metadata | None
) -> None:
    idle = talk(target, metadata)
    assert switched(idle) is None
    idle.say("look into it")
    usage = TokenUsage(20_000, THOUGHT + 100, reasoning=THOUGHT)
    step = idle.answer(usage, text="", calls=("c1",), reasoning=ReasoningPart("hm", metadata, prefix="now"))
    step.cost_usd = PRICES.cost(usage)
    idle.path[-1].parts[-1] = replace(idle.path[-1].parts[-1], provider_metadata=metadata)
    idle.result("c1")
    assert switched(idle) is None, "an interrupted turn is closed by the next message as well"
    before = inputs(idle)
    lost = lost_reasoning(before, replace(before, model=model(OPUS)), turn_open=True)
    assert lost is not None and 0.9 * THOUGHT <= lost.tokens <= THOUGHT


def test_another_name_for_the_same_model_loses_nothing() -> None:
    assert switched(talk(), to=CLAUDE) is None


def test_signatures_that_are_bound_are_lost_with_what_they_stand_on() -> None:
    bound = talk(BOUND)
    before = inputs(bound)
    changed = replace(before, fixed_fingerprint="other tools")
    lost = lost_reasoning(before, changed, WayBack("the old tools", before))
    assert lost is not None and lost.tokens == 3 * THOUGHT
    again = lost_reasoning(changed, before)
    assert again is None, "what does not fit now cannot be lost"
    free = inputs(talk(CLAUDE))
    assert lost_reasoning(free, replace(free, fixed_fingerprint="other tools")) is None


def test_a_part_that_comes_back_is_told_in_tokens() -> None:
    talked = talk()
    before = inputs(talked)
    cut = replace(before, view=before.view[2:])
    lost = lost_reasoning(before, replace(cut, model=model(OPUS)), WayBack("/model test", cut))
    assert lost is not None and lost.tokens == 3 * THOUGHT
    assert lost_text(lost).endswith("; /model test brings 8k of them back.")


def test_what_did_not_happen_yet_is_told_so() -> None:
    lost = LostReasoning(12_000, "reported", Cost(0.18))
    assert lost_text(lost, would=True) == (
        "12k reasoning tokens ($0.18 to make) would no longer be sent; nothing brings them back."
    )
