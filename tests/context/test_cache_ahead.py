"""What steps sent is made again of what is stored with them; looking ahead at what would be sent leaves no trace."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_tui.context.cache_paths import SentHistory, SentMessages
from agent_tui.models.steps import Step

WAYS = st.lists(st.lists(st.sampled_from("abc"), max_size=6), min_size=1, max_size=40)


def messages(way: list[str]) -> SentMessages:
    return SentMessages([f"key {one}" for one in way], list(way))


def step(name: str) -> Step:
    return Step(name, "turn", "m", "p", "a", "m")


@given(WAYS, st.booleans())
def test_what_was_sent_is_made_again_of_what_is_stored(ways: list[list[str]], again: bool) -> None:
    sent, steps = SentHistory(), [step(f"step {number}") for number in range(len(ways))]
    for one, way in zip(steps, ways, strict=True):
        sent.expect(step("next"), messages(["z", *way]))
        if again:
            sent.record(one, messages([*way, "changed"]), {}, [])
        sent.record(one, messages(way), {}, [])
        assert sent.of(one) == messages(way)
    read = SentHistory()
    read.take(steps)
    for one, way in zip(steps, ways, strict=True):
        assert sent.of(one) == read.of(one) == messages(way)
        assert not sent.was_sent("key z", one)
