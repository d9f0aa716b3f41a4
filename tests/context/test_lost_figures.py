"""What a change loses of earlier reasoning, in tokens, dollars and words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent_tui.context.accounting.lost import LostReasoning, lost_reasoning, lost_text
from agent_tui.models.messages import Metadata, ReasoningPart
from agent_tui.models.requests import Target
from agent_tui.models.usage import TokenUsage
from tests.support.contexts import BOUND, CLAUDE, Conversation, model
from tests.support.every import every

pytestmark = pytest.mark.quick

THOUGHT = 4_000
OPUS = Target("anthropic", "chat", "claude-opus-4-6", "claude")
RESPONSES = Target("openai", "responses", "gpt-5", "gpt")
GEMINI = Target("gemini", "gemini", "gemini-3-pro-preview", "gemini")
DEEPSEEK = Target("deepseek", "chat", "deepseek-reasoner", "deepseek")
SIGNED: Metadata = {"type": "thinking", "signature": "sig"}


def talk(target: Target = CLAUDE, metadata: Metadata | None = SIGNED, turns: int = 3) -> Conversation:
    """Turns in each of which 4,000 tokens are thought and 100 answered."""
    talk = Conversation(target)
    for turn in range(turns):
        talk.say(f"question {turn}")
        usage = TokenUsage(1_000 + turn * 4_200, THOUGHT + 100, reasoning=THOUGHT)
        talk.answer(usage, reasoning=ReasoningPart("hm", metadata, prefix="now"))
    return talk


def switched(talk: Conversation, to: Target = OPUS) -> LostReasoning | None:
    before = talk.inputs()
    return lost_reasoning(before, replace(before, model=model(to)))


def test_it_is_said_in_one_number() -> None:
    lost = switched(talk())
    assert lost == LostReasoning(3 * THOUGHT)
    assert lost_text(lost) == "12k reasoning tokens are no longer sent."
    assert lost_text(lost, would=True) == "12k reasoning tokens would no longer be sent."


def test_an_estimate_says_so() -> None:
    guessed = talk()
    for step in guessed.steps:
        assert step.usage is not None
        step.usage = replace(step.usage, reasoning=None)
    lost = switched(guessed)
    assert lost is not None and lost.estimated
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
    idle.answer(usage, text="", calls=("c1",), reasoning=ReasoningPart("hm", metadata, prefix="now"))
    idle.path[-1].parts[-1] = replace(idle.path[-1].parts[-1], provider_metadata=metadata)
    idle.result("c1")
    assert switched(idle) is None, "an interrupted turn is closed by the next message as well"
    before = idle.inputs()
    lost = lost_reasoning(before, replace(before, model=model(OPUS)), turn_open=True)
    assert lost is not None and 0.9 * THOUGHT <= lost.tokens <= THOUGHT


def test_another_name_for_the_same_model_loses_nothing() -> None:
    assert switched(talk(), to=CLAUDE) is None


def test_signatures_that_are_bound_are_lost_with_what_they_stand_on() -> None:
    bound = talk(BOUND)
    before = bound.inputs()
    changed = replace(before, fixed_fingerprint="other tools")
    lost = lost_reasoning(before, changed)
    assert lost is not None and lost.tokens == 3 * THOUGHT
    again = lost_reasoning(changed, before)
    assert again is None, "what does not fit now cannot be lost"
    free = talk(CLAUDE).inputs()
    assert lost_reasoning(free, replace(free, fixed_fingerprint="other tools")) is None
