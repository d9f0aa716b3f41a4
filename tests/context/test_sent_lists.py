"""What steps sent is made again of what is stored with them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_tui.context.sent_lists import SentLists, SentMessages
from agent_tui.models.steps import Step

WAYS = st.lists(st.lists(st.sampled_from("abc"), max_size=6), min_size=1, max_size=40)


def messages(number: int, way: list[str]) -> SentMessages:
    """Those of a request that goes on from any answer before it; a capital one is treated otherwise."""
    keys = [f"m{place}" for place in range(number)]
    return SentMessages([*keys, *(f"key {one}" for one in way)], [*keys, *way])


@given(WAYS, st.lists(st.integers(0, 40), min_size=40, max_size=40), st.booleans())
def test_what_was_sent_is_made_again_of_what_is_stored(ways: list[list[str]], ends: list[int], again: bool) -> None:
    sent, steps, made = SentLists(), list[Step](), list[SentMessages]()
    for number, way in enumerate(ways):
        step = Step(f"step {number}", "turn", "m", "p", "a", "m", message_id=f"m{number}")
        made.append(messages(min(number, ends[number]), way))
        sent.record(step, SentMessages(made[-1].keys, []), steps)
        assert step.sent_keys is not None and not step.sent_keys.digests
        steps.append(step)
        if again:
            sent.record(step, SentMessages([*made[-1].keys, "key z"], [*made[-1].digests, "changed"]), steps)
        sent.record(step, made[-1], steps)
    read = SentLists()
    for step, messages_ in zip(steps, made, strict=True):
        assert sent.of(step, steps) == read.of(step, steps) == messages_


def test_a_copy_without_what_a_step_goes_on_from_knows_nothing_of_it() -> None:
    sent, steps = SentLists(), list[Step]()
    for number in range(3):
        steps.append(Step(f"step {number}", "turn", "m", "p", "a", "m", message_id=f"m{number}"))
        sent.record(steps[-1], messages(number, ["a"]), steps)
    assert SentLists().of(steps[2], steps[2:]) is None and SentLists().of(steps[2], steps[1:]) == messages(2, ["a"])
