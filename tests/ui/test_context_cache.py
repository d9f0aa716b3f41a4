"""The list of calls and what they read from the cache, opened with ``c`` on the context screen."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from agent_tui.commands.report import ContextReport
from agent_tui.commands.report_json import cache_json
from agent_tui.commands.usage import sum_rows
from agent_tui.models.steps import CacheMiss, Step
from agent_tui.models.usage import TokenUsage
from agent_tui.ui.screens.context_cache import CachePicker
from agent_tui.ui.screens.context_screen import ContextScreen
from agent_tui.ui.screens.text import TextScreen
from tests.support.app import Running, running
from tests.support.forms import one_of
from tests.support.usages import sample_usage

OURS = CacheMiss("ours", "tools changed: MCP server github\x1b[31m came", 90_000, 0, 0.31)
EXPIRED = CacheMiss("expired", "idle for 6 min", 91_000, 1_000, None)
UNKNOWN = CacheMiss("unknown", "", 92_000, 0, 0.25)


def step(number: int, miss: CacheMiss | None = None, read: int | None = 90_000, **more: object) -> Step:
    made = Step(f"s{number}", "turn", "m", "anthropic", "chat", "claude", status="complete", created=time.time() - 60)
    told = {"ephemeral_1h_input_tokens": 1_024.0}
    made.usage = TokenUsage(100_000, 10, cache_read=miss.read if miss else read, cache_write=1_024, told=told)
    made.expected_read, made.miss, made.cache_life = (miss.expected if miss else 90_000), miss, 300.0
    for name, value in more.items():
        setattr(made, name, value)
    return made


def steps() -> list[Step]:
    old = step(0, read=None, expected_read=None, cache_life=None)
    summary = step(9, kind="compaction")
    return [old, step(1), step(2, OURS), summary, step(3, EXPIRED), step(4, UNKNOWN, kind="subagent")]


async def opened(run: Running, found: list[Step]) -> CachePicker:
    run.agent.conversation.steps.extend(found)
    run.app.open_screen("context")
    await run.screen(ContextScreen)
    await run.pilot.press("c")
    await run.screen(CachePicker)
    screen = run.app.screen
    assert isinstance(screen, CachePicker)
    await run.pilot.pause()
    return screen


@pytest.mark.slow
@pytest.mark.parametrize("size", one_of([((80, 24),), ((200, 50),), ((60, 16),)]))
async def test_it_lists_calls_newest_first_with_cause_and_price(tmp_path: Path, size: tuple[int, int]) -> None:
    async with running(tmp_path, size=size) as run:
        screen = await opened(run, steps())
        assert [entry.step_id for entry in screen.shown] == ["s4", "s3", "s2", "s1", "s0"]
        shown = run.shown()
        assert "provider's" in shown and "$0.31" in shown and "not reported" in shown and "\x1b" not in shown
        assert ("tools changed: MCP server github" in shown) == (size[0] >= 110)
        await run.pilot.press("enter")
        await run.screen(TextScreen)
        assert "1,024" in run.shown() and "5 min" in run.shown()


@pytest.mark.parametrize("size", one_of([((60, 20),), ((80, 24),), ((200, 50),)]))
async def test_every_column_stands_below_its_name(tmp_path: Path, size: tuple[int, int]) -> None:
    async with running(tmp_path, size=size) as run:
        await opened(run, steps())
        lines = run.shown().splitlines()
        at = next(n for n, line in enumerate(lines) if " age " in line and " why " in line)
        head, row = lines[at], next(line for line in lines[at:] if "$0.31" in line)
        # Words stand at the left of their column, numbers at the right.
        assert row[head.index("why") :].startswith(("tools", "AGENTS")), f"{head}\n{row}"
        for name in ("input", "read", "price"):
            end = head.index(name) + len(name)
            assert row[end - 1] != " " and row[end : end + 1] in (" ", "", "│"), f"{name}\n{head}\n{row}"
        assert ("expected" in head) == (size[0] >= 80)


@pytest.mark.slow
async def test_causes_can_be_searched(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        screen = await opened(run, steps())
        await run.type("expired")
        assert [entry.step_id for entry in screen.shown] == ["s3"]


@pytest.mark.slow
async def test_thousands_of_calls_open_and_only_what_is_seen_is_drawn(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        screen = await opened(run, [step(number) for number in range(2_000)])
        assert len(screen.shown) == 2_000


def test_the_sums_are_those_of_the_calls() -> None:
    found = {row.name.strip(): (row.value, row.text) for row in sum_rows(steps())}
    assert found["All"] == ("≥ $0.56", "272k tokens in 3 calls")
    assert found["by us"][0] == "$0.31" and "$?" in found["expired"][0]
    assert list(sum_rows([step(1)])) == []


def test_json_has_the_same_figures() -> None:
    data = json.loads(json.dumps(cache_json(ContextReport(sample_usage(), steps=steps()))))
    assert data["misses"]["tokens"] == 272_000 and data["misses"]["cost_usd"] is None
    assert data["misses"]["cost_known_usd"] == pytest.approx(0.56) and data["misses"]["unpriced_calls"] == 1
    assert data["misses"]["by_cause"]["ours"]["count"] == 1
    assert [one["step"] for one in data["steps"]] == ["s0", "s1", "s2", "s3", "s4"]
    assert data["steps"][0]["cache_read_tokens"] is None and data["steps"][0]["expected_read_tokens"] is None
    assert data["steps"][4]["miss"] == {"cause": "unknown", "what": "", "tokens": 92_000, "cost_usd": 0.25}
    assert data["steps"][1]["provider_says"] == {"ephemeral_1h_input_tokens": 1024.0}
