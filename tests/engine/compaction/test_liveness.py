"""As long as system, tools and the newest message fit the window, a message can be sent: whatever happened before."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_tui.engine.compaction.auto import MAX_FAILURES
from tests.engine.compaction.liveness import SCRIPTS, Life
from tests.support.forms import examples, one_of

WINDOWS = (4_096, 8_192, 32_768, 200_000)
SHARE = st.sampled_from([0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.97, 1.2])
"""Of the window: from one line to more than fits."""

TURN = st.tuples(
    st.just("send"), SHARE, st.lists(SHARE, max_size=4).map(tuple), st.sampled_from([0.001, 0.001, 0.01, 0.3, 0.9])
)
OPERATION = st.one_of(
    TURN,
    TURN,
    TURN,
    st.tuples(st.just("compact")),
    st.tuples(st.just("undo")),
    st.tuples(st.just("undo_where_it_was")),
    st.tuples(st.just("rewind"), st.sampled_from([1.0, 0.8, 0.5, 0.0])),
    st.tuples(st.just("fork")),
    st.tuples(st.just("restart")),
    st.tuples(st.just("script"), st.sampled_from(sorted(SCRIPTS))),
)


async def live(life: Life, window: int, operations: list[tuple[object, ...]]) -> None:
    for name, *arguments in operations:
        if name == "send":
            size, calls, own = arguments
            assert isinstance(size, float) and isinstance(calls, tuple) and isinstance(own, float)
            await life.send(int(size * window), tuple(int(c * window) for c in calls), int(own * window))
        elif name == "compact":
            await life.compact()
        else:
            getattr(life, str(name))(*arguments)
        # Whatever it was: one line can be sent, at the latest once summaries have failed too often.
        for _ in range(MAX_FAILURES):
            if await life.send(5):
                break
        else:
            assert await life.send(5)


@pytest.mark.parametrize("tries", one_of([2, examples(12, 200)]))
def test_no_sequence_ends_a_session(tries: int) -> None:
    @settings(
        max_examples=tries,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example],
    )
    @given(st.sampled_from(WINDOWS), st.lists(OPERATION, min_size=4, max_size=11))
    def no_sequence_ends_a_session(window: int, operations: list[tuple[object, ...]]) -> None:
        asyncio.run(live(Life.of(window), window, operations))

    no_sequence_ends_a_session()


@pytest.mark.slow
@pytest.mark.parametrize("window", one_of([4_096, 32_768]))
@pytest.mark.parametrize("script", one_of(sorted(SCRIPTS), 3))
async def test_full_windows_go_on_whatever_the_summary_call_does(window: int, script: str) -> None:
    life = Life.of(window)
    life.script(script)
    sent = [
        await life.send(window // 100, (int((0.02, 0.3, 0.1, 0.7)[number % 4] * window), int(0.05 * window)))
        for number in range(12)
    ]
    fails = script in ("broken", "too long")
    assert life.stops == 12 - sum(sent) <= MAX_FAILURES * fails, "only a call that failed is waited for"
    assert all(sent[-4:])
