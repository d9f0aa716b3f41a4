"""What can go wrong around a compaction, through the whole agent and with the demo model's scripts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_tui.engine.agent import Agent
from agent_tui.engine.runtime import Runtime
from agent_tui.errors import AgentError
from agent_tui.models.events import (
    CompactionEnded,
    CompactionStarted,
    Event,
    Notice,
    RetryWaiting,
    SessionChanged,
    StepStarted,
)
from agent_tui.models.messages import CLEARED_RESULT
from agent_tui.models.requests import SentMessage
from tests.engine.compaction.compaction_talks import (
    BAD_SUMMARIES,
    WINDOW,
    codes,
    fill,
    opened,
    outcomes,
    shown,
    summary_script,
    turn,
)
from tests.support.forms import one_of

HANGS = WINDOW + '[[step]]\nkind = "compaction"\ntext = "## Goal"\nhang = true\n'
OVERFLOWS = WINDOW + '[[step]]\nmatch = "now it"\nerror = { kind = "context_overflow" }\nrepeat = %d\n'
WAYS = ("/compact", "/model", "/clear")

pytestmark = pytest.mark.usefixtures("unprepared")


def view(agent: Agent) -> list[SentMessage]:
    return list(agent.conversation.view())


@pytest.mark.parametrize("name", one_of(BAD_SUMMARIES, every=3))
async def test_a_bad_summary_is_done_without_and_a_failed_call_changes_nothing(tmp_path: Path, name: str) -> None:
    """Either is told once, with what it means."""
    step, why = BAD_SUMMARIES[name]
    async with opened(tmp_path, summary_script(step)) as (agent, seen):
        before = await fill(agent, seen)
        sent = view(agent)
        seen.events.clear()
        ended = await turn(agent, seen, "why?")
        assert ended.stop_reason == "end"
        told = seen.of(CompactionEnded)[0].text
        (line,) = [line for line in shown(seen) if why in line]
        assert line.count(why) == 1
        assert why in told and [s.kind for s in agent.conversation.steps].count("compaction") == (
            1 + ("auth" not in step)
        )
        if "auth" not in step:
            assert outcomes(seen) == ["done"] and "; summarised without the model" in told
            assert agent.conversation.own_records[-1].left_out and "not_compacted" not in codes(seen)
            assert "; summarised without the model" in line
            return
        assert "but was not compacted: it failed" in line and "Continuing" in line
        assert not [line for line in shown(seen) if "compacts at" in line], "it did not"
        assert outcomes(seen) == ["failed"] and agent.context.usage().total > before
        assert view(agent)[: len(sent)] == sent and agent.conversation.own_records == []
        assert codes(seen).count("not_compacted") == 1


@pytest.mark.slow
async def test_a_summary_call_is_tried_again_like_a_step(tmp_path: Path) -> None:
    script = summary_script('error = { kind = "rate_limit", retry_after = 0.0 }').replace("repeat = 0", "repeat = 2")
    async with opened(tmp_path, script) as (agent, seen):
        await fill(agent, seen)
        assert (await turn(agent, seen, "why?")).stop_reason == "end"
        assert [e.attempt for e in seen.of(RetryWaiting)] == [1, 2]
        assert outcomes(seen) == ["done"]


@pytest.mark.slow
async def test_esc_ends_the_wait_of_a_summary_call(tmp_path: Path) -> None:
    async with opened(tmp_path, summary_script('error = { kind = "overloaded", retry_after = 200.0 }')) as (
        agent,
        seen,
    ):
        await fill(agent, seen, 0.7)
        agent.subscribe(interrupts(agent, RetryWaiting))
        await agent.compaction.now()
        assert outcomes(seen) == ["cancelled"] and len(seen.of(RetryWaiting)) == 1
        assert agent.conversation.own_records == [] and not agent.turns.busy


@pytest.mark.slow
async def test_a_summary_call_that_is_too_long_itself_is_made_in_parts(tmp_path: Path) -> None:
    script = summary_script('error = { kind = "context_overflow" }').replace("repeat = 0", "repeat = 2")
    async with opened(tmp_path, script) as (agent, seen):
        await fill(agent, seen)
        assert (await turn(agent, seen, "why?")).stop_reason == "end"
        assert outcomes(seen) == ["done"]
        calls = [s for s in agent.conversation.steps if s.kind == "compaction"]
        assert [s.status for s in calls[:2]] == ["failed", "failed"]
        assert len(calls) >= 4 and {s.status for s in calls[2:]} == {"complete"}


@pytest.mark.slow
async def test_an_overflow_without_numbers_is_first_asked_for_a_shorter_answer(tmp_path: Path) -> None:
    async with opened(tmp_path, OVERFLOWS % 1) as (agent, seen):
        await fill(agent, seen, 0.7)
        assert (await turn(agent, seen, "now it is too long")).stop_reason == "end"
        assert outcomes(seen) == [] and agent.conversation.own_records == []
        refused, answered = agent.conversation.steps[-2:]
        assert refused.max_output is not None and answered.max_output == refused.max_output // 2
        assert [n.code for n in seen.of(Notice) if n.code == "less_output"]


async def test_an_overflow_after_the_compaction_stops_with_three_ways_on(tmp_path: Path) -> None:
    async with opened(tmp_path, OVERFLOWS % 0) as (agent, seen):
        await fill(agent, seen, 0.7)
        ended = await turn(agent, seen, "now it is too long")
        assert ended.stop_reason == "error" and ended.failure is not None
        assert outcomes(seen) == ["done"]
        assert [s.failure.kind for s in agent.conversation.steps if s.failure] == ["context_overflow"] * 3
        told = next(n.text for n in seen.of(Notice) if n.code == "context_full")
        assert all(way in told for way in WAYS)
        assert (await turn(agent, seen, "hello")).stop_reason == "end"


@pytest.mark.quick
async def test_esc_cancels_a_compaction_the_user_asked_for(tmp_path: Path) -> None:
    async with opened(tmp_path, HANGS) as (agent, seen):
        await fill(agent, seen, 0.7)
        sent = view(agent)
        forget = agent.subscribe(interrupts(agent))
        await agent.compaction.now()
        forget()
        assert outcomes(seen) == ["cancelled"] and view(agent) == sent
        assert not agent.turns.busy
        assert (await turn(agent, seen, "and on")).stop_reason == "end"


@pytest.mark.slow
async def test_closing_during_a_compaction_ends_the_turn_too(tmp_path: Path) -> None:
    async with opened(tmp_path, HANGS) as (agent, seen):
        await fill(agent, seen)
        started = asyncio.Event()
        agent.subscribe(lambda e: started.set() if starts(e) else None)
        calls = len(seen.of(StepStarted))
        agent.turns.submit("why?")
        agent.turns.submit("and this waits")
        await started.wait()
        session = agent.conversation.info.id
    assert seen.last_end.stop_reason == "interrupted"
    assert len(seen.of(StepStarted)) == calls
    async with opened(tmp_path, resume=session) as (agent, seen):
        await agent.context.ready()
        assert agent.conversation.own_records == [] and agent.conversation.summaries == {}
        assert [s.status for s in agent.conversation.steps if s.kind == "compaction"] == ["stopped"]
        assert agent.conversation.path[-1].text == "why?"
        assert (await turn(agent, seen, "go on")).stop_reason == "end"
        assert outcomes(seen) == ["done"]


@pytest.mark.slow
async def test_a_second_window_sees_the_compaction_whole_and_changes_nothing_meanwhile(tmp_path: Path) -> None:
    async with opened(tmp_path) as (agent, seen):
        await fill(agent, seen, 0.7)
        before, session = view(agent), agent.conversation.info.id
        async with opened(tmp_path, resume=session) as (second, heard):
            assert second.conversation.read_only and view(second) == before
            await agent.compaction.now()
            assert outcomes(seen) == ["done"] and view(second) == before
            for change in (second.compaction.now, second.compaction.undo):
                with pytest.raises(AgentError, match="read-only"):
                    await change()
            # Nothing was asked of a model, which would have cost.
            assert view(second) == before and not heard.of(CompactionStarted)
        async with opened(tmp_path, resume=session) as (third, _):
            assert view(third) == view(agent) != before


def interrupts(agent: Agent, kind: type[Event] = CompactionStarted) -> Callable[[Event], None]:
    """Presses Esc as soon as a compaction (or another kind of event) is shown."""

    def look(event: Event) -> None:
        if isinstance(event, kind):
            asyncio.get_running_loop().call_soon(agent.turns.interrupt)

    return look


def starts(event: object) -> bool:
    return isinstance(event, CompactionStarted)


@pytest.mark.slow
async def test_an_undo_is_told_below_the_transcript_it_brings_back(tmp_path: Path) -> None:
    async with opened(tmp_path) as (agent, seen):
        await fill(agent, seen, 0.8)
        await agent.compaction.now()
        # The newest turn stays word for word.
        assert [s.message.id for s in agent.conversation.view()[-2:]] == [m.id for m in agent.conversation.path[-2:]]
        seen.events.clear()
        await agent.compaction.undo()
        kinds = [type(e) for e in seen.events if isinstance(e, (SessionChanged, CompactionEnded, Notice))]
        assert kinds == [SessionChanged, CompactionEnded], "nothing is paused below the limit"
        assert "Compaction undone" in seen.of(CompactionEnded)[0].text


async def test_an_unknown_window_never_compacts_by_itself(tmp_path: Path) -> None:
    async with opened(tmp_path, "", models="large") as (agent, seen):
        await agent.context.ready()
        runtime = agent.runtime
        assert runtime is not None
        runtime.info.limits = type(runtime.info.limits)(None, None, None, "unknown")
        for number in range(14):
            assert (await turn(agent, seen, f"{number}: tell me a lot")).stop_reason == "end"
        usage = agent.context.usage()
        assert usage.limit is None and usage.percent is None and usage.total > 12_000
        assert not seen.of(CompactionStarted) and "unknown window" in usage.why
        await agent.compaction.now()
        assert outcomes(seen) == ["done"]


@pytest.mark.slow
async def test_results_that_are_together_larger_than_the_limit_are_sent_clipped_and_kept_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As those of tools that keep to no limit, and of a session that goes on with a smaller window.
    monkeypatch.setattr(Runtime, "tools_config", lambda runtime, calls=1: runtime.settings.tools)
    script = (
        WINDOW
        + '[[step]]\nmatch = "big"\ntool_calls = ['
        + ",".join(f'{{ name = "read", arguments = {{ path = "big.txt", limit = {990 + n} }} }}' for n in range(3))
        + "]\n"
        + '[[step]]\nmatch = "big"\ntext = "read it"\n'
    )
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "big.txt").write_text("\n".join(f"line {n} of a large file" for n in range(1_000)))
    async with opened(tmp_path, script) as (agent, seen):
        assert (await turn(agent, seen, "look at the big one")).stop_reason == "end"
        assert outcomes(seen) == ["done"] and "large tool result" in seen.of(CompactionEnded)[0].text
        sent = next(s.message.tool_result for s in agent.conversation.view() if s.message.role == "tool")
        kept = next(m.tool_result for m in agent.conversation.path if m.role == "tool")
        assert sent is not None and kept is not None
        assert "more characters not sent; recall id " in sent.text and len(kept.text) > len(sent.text)
        assert agent.context.usage().total <= (agent.context.usage().limit or 0)


@pytest.mark.slow
async def test_one_long_turn_is_pruned_and_compacted_inside(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    for number in range(12):
        (tmp_path / "p" / f"f{number}.txt").write_text(f"line of file {number}\n" * (60 + 10 * number))
    read = 'tool_calls = [{ name = "read", arguments = { path = "f%d.txt" } }]'
    steps = "".join(f'[[step]]\ntext = "{"words " * 320}"\nreasoning = "hm"\n{read % (i % 12)}\n' for i in range(40))
    async with opened(tmp_path, f'window = 16000\n{steps}[[step]]\ntext = "all read"\n') as (agent, seen):
        assert (await turn(agent, seen, "read them all")).stop_reason == "end"
        assert agent.conversation.path[-1].text == "all read"
        assert len(agent.conversation.path) == 82
        done = [e for e in seen.of(CompactionEnded) if e.outcome == "done"]
        assert {"prune", "summary"} == {r.kind for e in done for r in e.records}
        assert len(done) == len(seen.of(CompactionStarted)) >= 3
        results = [m.tool_result.text for m in agent.conversation.path if m.tool_result is not None]
        assert CLEARED_RESULT not in results


@pytest.mark.slow
async def test_before_a_switch_to_a_smaller_model_the_old_one_compacts(tmp_path: Path) -> None:
    async with opened(tmp_path, "", models="large") as (agent, seen):
        for number in range(7):
            await turn(agent, seen, f"{number}: tell me a lot")
        assert agent.context.usage().total > 4_500 and not seen.of(CompactionStarted)
        info, _ = await agent.models.switch("small")
        assert info.limits.window == 6_000 and agent.models.spec.key == "small"
        assert "compact_before_switch" in codes(seen) and outcomes(seen) == ["done"]
        call = next(s for s in agent.conversation.steps if s.kind == "compaction")
        assert call.model_key == "large" and agent.conversation.own_records[-1].reason == "switch"
        await agent.context.ready()
        usage = agent.context.usage()
        assert usage.limit == 4_500 and usage.total <= usage.limit
        assert (await turn(agent, seen, "hello small one")).stop_reason == "end"
        assert len(outcomes(seen)) == 1


@pytest.mark.slow
async def test_a_switch_does_not_compact_where_nothing_may(tmp_path: Path) -> None:
    async with opened(tmp_path, "", auto=False, models="large") as (agent, seen):
        for number in range(7):
            await turn(agent, seen, f"{number}: tell me a lot")
        await agent.models.switch("small")
        told = next(n.text for n in seen.of(Notice) if n.code == "compact_before_switch")
        assert "auto_compact is false" in told and not seen.of(CompactionStarted)
