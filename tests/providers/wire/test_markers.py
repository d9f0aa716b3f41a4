"""Where Claude's cache markers are put: whatever an earlier request wrote, and what still fits of it, is read."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_tui.providers.dialects.claude import mark_fixed, marked_places
from agent_tui.providers.dialects.outgoing import CacheMarks
from tests.support.forms import examples
from tests.support.true_provider.cache import PrefixCache
from tests.support.true_provider.wire import Segment

pytestmark = pytest.mark.quick

Loop = list[int]
"""A turn as the numbers of tool calls of its answers but the last."""
SYSTEM, BLOCK = 2_000, 100
"""Tokens of the system prompt, and of each other block."""
TURNS = st.lists(st.lists(st.integers(1, 40), max_size=6), min_size=1, max_size=5)


@dataclass
class Talk:
    """A conversation with a provider that keeps what is marked; where it ``forgets``, thinking counts only in the turn
    that is open. A message is its role and its blocks."""

    forgets: bool
    cache: PrefixCache = field(default_factory=lambda: PrefixCache(explicit=True))
    messages: list[tuple[str, list[str]]] = field(default_factory=list)

    def request(self) -> tuple[int, int]:
        """Tokens of the whole request, and those of it that were read."""
        places = marked_places([role for role, _ in self.messages], False, self.forgets)
        open_turn = max(n for n, (role, _) in enumerate(self.messages) if role == "user")
        sent = [Segment("system", "s", SYSTEM, marked=True)]
        for n, (role, blocks) in enumerate(self.messages):
            shown = [b for b in blocks if not (self.forgets and n < open_turn and b.startswith("thinking"))]
            sent += [Segment(role, b, BLOCK, n in places and b is shown[-1]) for b in shown]
        assert sum(segment.marked for segment in sent) <= 4
        return sum(segment.tokens for segment in sent), self.cache.use(sent)[0]

    def say(self, role: str, *blocks: str) -> None:
        self.messages.append((role, [f"{block} {len(self.messages)}" for block in blocks]))


@given(turns=TURNS, forgets=st.booleans())
@example(turns=[[12], [24, 40]], forgets=False)
@example(turns=[[1] * 30, [], [1] * 30], forgets=True)
@settings(max_examples=examples(20, 200), deadline=None)
def test_all_that_still_fits_is_read(turns: list[Loop], forgets: bool) -> None:
    talk = Talk(forgets)
    begun = before = 0
    for number, turn in enumerate(turns):
        talk.say("user", "question")
        for step, calls in enumerate([*turn, 0]):
            total, read = talk.request()
            if number or step:
                assert read == (begun if forgets and not step else before)
            before = total
            if not step:
                begun = total
            talk.say("assistant", "thinking", *[f"call {n}" for n in range(calls)])
            for n in range(calls):
                talk.say("tool", f"result {n}")


@pytest.mark.parametrize("forgets", [False, True])
def test_a_message_between_the_steps_of_a_turn_costs_nothing(forgets: bool) -> None:
    talk = Talk(forgets)
    talk.say("user", "question")
    begun, _ = talk.request()
    talk.say("assistant", "thinking", *[f"call {n}" for n in range(12)])
    for n in range(12):
        talk.say("tool", f"result {n}")
    talk.say("user", "mind the time")
    between, read = talk.request()
    assert read == begun
    talk.say("assistant", "thinking", *[f"call {n}" for n in range(12)])
    for n in range(12):
        talk.say("tool", f"result {n}")
    assert talk.request()[1] == between


def test_the_summary_takes_a_marker_that_is_left() -> None:
    roles = ["user", "user", "assistant", "tool", "assistant", "tool"]
    assert marked_places(roles, True, forgets=False) == [0, 3, 5]
    assert marked_places(roles, True, forgets=True) == [1, 3, 5]
    assert marked_places(roles[:4], True, forgets=True) == [0, 1, 3]
    assert marked_places(roles[:1], True, forgets=True) == [0]
    assert marked_places([], False, forgets=True) == []


def test_what_an_undo_brings_back_is_marked_where_it_ended() -> None:
    """The answers since then are of another beginning: what was written there fits no longer."""
    roles = ["user", "assistant", "tool", "assistant", "user", "assistant", "tool", "assistant", "user"]
    assert marked_places(roles, False, forgets=False) == [6, 8]
    assert marked_places(roles, False, forgets=False, sent_before=3) == [2, 8]
    assert marked_places(roles, False, forgets=True, sent_before=3) == [0, 2, 8]


def test_tools_are_marked_where_there_is_no_system_prompt() -> None:
    tools, marks = [{"name": "a"}, {"name": "b"}], CacheMarks(None, 0, False, False, 0)
    given = [*tools]
    mark_fixed([], tools, marks)
    assert [sorted(tool) for tool in tools] == [["name"], ["cache_control", "name"]]
    assert given == [{"name": "a"}, {"name": "b"}], "a tool is declared the same way to the next one"
