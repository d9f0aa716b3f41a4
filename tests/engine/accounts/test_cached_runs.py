"""The real program against providers with a true prefix cache: every miss named as it was, none told that was none.

Short forms of ``tests.benchmarks.cache``.
"""

from __future__ import annotations

import pytest

from agent_tui.providers.client import ModelClient
from tests.support.cached_runs import CachedRun, busy_run, cached_run
from tests.support.forms import only_long
from tests.support.true_runs import scratch

pytestmark = pytest.mark.asyncio(loop_scope="module")

SILENT = {"waited", "model back", "resumed", "forked", "there and back", "edited"}
"""What is done without any need of a word."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("anthropic", ["tool went", "expired", "memory", "thinking", "schema", "dropped"]),
        ("old claude", ["pruned", "waited", "model", "model back", "edited"]),
        ("openai chat", ["memory", "expired", "dropped", "compacted", "resumed", "there and back"]),
        ("responses", ["tool went", "forked", "thinking", "schema"]),
        ("gemini", ["model", "tool went", "dropped"]),
        ("deepseek", ["memory", "evicted", "pruned"]),
        ("vllm", ["tool went", "dropped"]),
    ],
)
async def test_every_miss_has_its_name(worker: ModelClient, name: str, kinds: list[str]) -> None:
    outcome = await cached_run(name, 2 + 3 * len(kinds), kinds, worker, every=3)
    assert outcome.wrong == []
    assert outcome.heard >= {*kinds} - SILENT
    plain, expected, read = outcome.predicted()
    assert plain > len(kinds) and abs(expected - read) <= 0.05 * read


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "steps", "calls"),
    [
        ("anthropic", 1, 40),
        ("anthropic", 24, 1),
        ("old claude", 2, 12),
        *only_long(("anthropic", 2, 12), ("old claude", 1, 40), ("old claude", 24, 1)),
    ],
)
async def test_many_calls_leave_nothing_unread(worker: ModelClient, name: str, steps: int, calls: int) -> None:
    """Whatever one request left in the cache is read by the next one; where thinking is left out when the user speaks,
    whatever was there when that turn began."""
    busy = await busy_run(name, 3, steps, calls, worker)
    assert busy.outcome.wrong == [] and busy.outcome.named == {}
    kept: list[tuple[int, int]] = []
    begun: dict[int, int] = {}
    for exchange in busy.exchanges:
        usage = exchange.usage
        assert usage is not None
        if kept:
            turn, last = kept[-1]
            spoken = name == "old claude" and turn != exchange.turn
            assert usage.cache_read == (begun[turn] if spoken else last)
        kept.append((exchange.turn, usage.cache_read + usage.cache_write))
        begun.setdefault(*kept[-1])
    assert len(kept) == 3 * (steps + 1)
    expected = [seen.expected for seen in busy.outcome.seen][1:]
    assert expected == [pytest.approx(seen.read, rel=0.03) for seen in busy.outcome.seen][1:]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["old claude", "responses", *only_long("anthropic", "openai chat")])
async def test_an_undo_reads_what_its_messages_were_sent_with(worker: ModelClient, name: str) -> None:
    """However much was said since the compaction, for which an edited file had moved into the prompt's beginning."""
    with scratch() as folder:
        run = CachedRun(name, 64_000, {3: "edited", 4: "compacted", 6: "undone"}, worker, folder)
        outcome = await run.go(6)
    assert outcome.wrong == []
    done = run.servers["m"].truth.turns()
    before = next(e.usage for e in reversed(done) if e.turn < 4)
    turn = next(e.usage for e in done if e.turn == 3)
    after = next(e.usage for e in done if e.turn == 6)
    assert before is not None and after is not None and turn is not None
    # Where thinking is left out when the user speaks, that is what there was when the last turn before it began.
    kept = turn.input if run.kept.forgets else before.input
    assert after.cache_read >= kept - 2 * run.kept.unit
    assert after.input > 1.3 * before.input
