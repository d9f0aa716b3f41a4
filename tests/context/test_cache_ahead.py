"""Looking ahead at what would be sent leaves no trace in what is known of what was."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_tui.context.cache_paths import SentMessages, SentPaths
from agent_tui.models.steps import Sent, Step

WAYS = st.lists(st.lists(st.sampled_from("abc"), max_size=6), min_size=1, max_size=8)


def messages(way: list[str], same: int = 0) -> SentMessages:
    return SentMessages([f"key {one}" for one in way], way, same)


def shared(one: list[str], other: list[str]) -> int:
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


@given(WAYS, WAYS)
def test_what_is_stored_is_the_same_with_and_without_looking(sent: list[list[str]], ahead: list[list[str]]) -> None:
    plain, looking = SentPaths(), SentPaths()
    before: list[str] = []
    for number, way in enumerate(sent):
        same = shared(before, way)
        for way_ahead in ahead:
            with looking.ahead("next", messages(way_ahead, shared(before, way_ahead))):
                end = looking.end(step("next"))
                assert end is not None and list(looking.messages(end).digests) == way_ahead
            assert looking.end(step("next")) is None
        stored = [paths.record(f"step {number}", messages(way, same), {}, []) for paths in (plain, looking)]
        assert stored[0] == stored[1] and isinstance(stored[0], Sent)
        before = way


def step(name: str) -> Step:
    return Step(name, "turn", "m", "p", "a", "m")
