"""An answer with very many tool calls: a limit that is said, and work that grows with their number alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from agent_tui.context.accounting import rows
from agent_tui.context.accounting.tally import calls_before
from agent_tui.engine import notes
from agent_tui.engine.turns import step
from agent_tui.engine.turns.executor import MORE_CALLS, ChangedNumbers
from agent_tui.models.events import Notice
from agent_tui.models.requests import Counter, Delta, Finished, ModelRequest, Started, StreamItem
from agent_tui.providers.demo import DemoProvider
from tests.support.agents import parts_for, running
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.quick


class ManyCalls(DemoProvider):
    """Its first answer makes so many calls; ``given`` counts those that were taken from it."""

    def __init__(self, counter: Counter, calls: int) -> None:
        super().__init__(counter, None, pace=0.0)
        self._calls = calls
        self.given = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        async for item in super().stream(request):
            if self.given or not isinstance(item, Started):
                yield Delta(0, "text", "done") if not isinstance(item, Started) else item
                if not isinstance(item, Started):
                    yield Finished("stop")
                    return
                continue
            yield item
            for number in range(self._calls):
                self.given += 1
                yield Delta(number, "tool_call", f'{{"path": "no{number}"}}', call_id=f"c{number}", name="read")
            yield Finished("tool_calls")
            return


async def test_no_more_than_so_many_calls_are_run_and_both_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step, "MOST_CALLS", 20)
    made: list[ManyCalls] = []

    def provider(counter: Counter) -> ManyCalls:
        made.append(ManyCalls(counter, 3_000))
        return made[0]

    async with running(parts_for(tmp_path / "home", tmp_path / "p", provider=provider)) as (agent, seen):
        agent.turns.submit("go")
        await agent.turns.join()
        results = [m.tool_result for m in agent.conversation.path if m.tool_result is not None]
        assert [r.call_id for r in results] == [f"c{n}" for n in range(20)]
        assert made[0].given == 21, "the stream was not read on"
        assert results[-1].text.endswith(MORE_CALLS) and not any(MORE_CALLS in r.text for r in results[:-1])
        assert [n.level for n in seen.of(Notice) if n.code == "many_calls"] == ["warning"]
        assert seen.last_end.stop_reason == "end" and not agent.conversation.open_calls()


@pytest.mark.parametrize("calls", [40, 80])
async def test_each_result_costs_the_same(calls: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked, read = 0, 0
    search, told = calls_before, notes.newest_note

    def counted(*given: Any) -> object:
        nonlocal looked
        looked += 1
        return search(*given)

    def read_mode(*given: Any) -> object:
        nonlocal read
        read += 1
        return told(*given)

    monkeypatch.setattr(rows, "calls_before", counted)
    monkeypatch.setattr(notes, "newest_note", read_mode)
    parts = parts_for(tmp_path / "home", tmp_path / "p", provider=lambda counter: ManyCalls(counter, calls))
    async with running(parts) as (agent, _):
        agent.turns.submit("go")
        await agent.turns.join()
        assert len([m for m in agent.conversation.path if m.tool_result is not None]) == calls
    assert read == 2, "the conversation was read for more than the message and all results"
    # Once for each calculation, of which there may be one for a result, and not once for each result of each.
    assert looked <= 2 * calls + 20


async def test_numbers_are_told_soon_and_take_a_tenth_of_the_time() -> None:
    told: list[float] = []
    again = asyncio.Event()

    def tell() -> None:
        told.append(time.monotonic())
        time.sleep(0.002)
        if len(told) == 2:
            again.set()

    numbers = ChangedNumbers(tell)
    numbers.change()
    assert len(told) == 1, "the first is told at once"
    for _ in range(50):
        numbers.change()
    assert len(told) == 1
    async with asyncio.timeout(PATIENCE):
        await again.wait()
    assert told[1] - told[0] >= 0.018
    numbers.change()
    numbers.close()
