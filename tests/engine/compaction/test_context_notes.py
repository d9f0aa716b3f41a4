"""The model is told how full its context is: at the moments that matter, in the numbers of ``/context``, briefly."""

from __future__ import annotations

import random
import re
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest

from agent_tui.config import AgentConfig, ContextConfig, PermissionsConfig, Settings
from agent_tui.context.compaction.plan import message_tokens
from agent_tui.engine.agent import Agent
from agent_tui.engine.compaction.context_notes import ALL_SHARE
from agent_tui.engine.notes import note_in, put_note, take_note_out
from agent_tui.models.events import CompactionEnded, Event, StepStarted
from agent_tui.models.messages import CONTEXT_NOTE, Message, TextPart, ToolResultPart, recall_id
from agent_tui.text.numbers import tokens
from tests.benchmarks.tool_tokens import encoding
from tests.engine.acting import Act, acting, call, says
from tests.engine.dialect_bodies import check_bodies
from tests.support.agents import TokenCounter, parts_for, running, say

pytestmark = pytest.mark.asyncio

LINE = re.compile(r"Context: (~?[\d.]+k?) of ([\d.]+k) used before compaction")
NAMED = re.compile(r"(~?[\d.]+k?) \[(\d{6})\]")


def world(folder: Path, resume: str | None = None, steps: int = 100, **context: object):  # type: ignore[no-untyped-def]
    (folder / "p").mkdir(exist_ok=True)
    for size in (20, 90, 300, 900):
        (folder / "p" / f"f{size}.txt").write_text("".join(f"{n}: a note about {n * 47}\n" for n in range(size)))
    settings = Settings(
        permissions=PermissionsConfig(mode="auto"),
        context=ContextConfig(**context),  # type: ignore[arg-type]
        agent=AgentConfig(step_limit=steps),
    )
    parts = parts_for(
        folder / "home", folder / "p", resume=resume, settings=settings, counter=TokenCounter(), can_ask=False
    )
    return running(parts)


def read(size: int, limit: int = 0) -> Act:
    return call("read", path=f"f{size}.txt", **({"limit": limit} if limit else {}))


def notes(agent: Agent) -> list[str]:
    return [note for message in agent.conversation.path if (note := note_in(message, CONTEXT_NOTE))]


def watch(agent: Agent) -> list[str]:
    """Compares the numbers of ``/context`` with those of each request, and of the line in it; returns the lines."""
    told: list[str] = []
    seen: set[str] = set()

    def look(event: Event) -> None:
        if not isinstance(event, StepStarted):
            return
        usage = agent.context.usage()
        if usage.total != agent.conversation.steps[-1].estimated_input:
            told.append("the request has other numbers")  # no subscriber can fail a test
        newest = [m for m in agent.conversation.path if m.status != "streaming"][-1]
        note = note_in(newest, CONTEXT_NOTE)
        if note is None or newest.id in seen:
            return
        seen.add(newest.id)
        said = LINE.search(note)
        now = (tokens(usage.total, usage.approximate), tokens(usage.limit, False))
        sizes = {recall_id(i): tokens(size, True) for i, size in message_tokens(usage).items()}
        right = said is None or said.groups() == now  # without numbers it says what failed
        right = right and all(sizes[name] == size for size, name in NAMED.findall(note))
        told.append(note if right else f"{note} but it is {now}")

    agent.subscribe(look, numbers=False)
    return told


@pytest.mark.slow
async def test_a_threshold_is_told_once_with_what_is_largest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = acting(monkeypatch, [read(90), read(300), read(300, 299), read(20), read(20, 19)])
    async with world(tmp_path) as (agent, _):
        told = watch(agent)
        await say(agent, "look")
        assert told == notes(agent) and 1 <= len(told) <= 4
        assert any("largest: read f300.txt" in line for line in told)
        counter = encoding()
        window = agent.context.usage().window or 0
        assert counter is None or all(len(counter.encode(line)) <= 60 for line in told)
        assert sum(len(line) // 3 for line in told) <= window * ALL_SHARE * 1.5
        for before, after in pairwise(sent):
            assert after.messages[: len(before.messages)] == before.messages, "what was sent stays the same"


@pytest.mark.slow
async def test_a_compaction_is_told_before_and_after(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = [read(90, 90 - n) for n in range(18)]
    acting(monkeypatch, reads)
    async with world(tmp_path) as (agent, seen):
        told = watch(agent)
        await say(agent, "look")
        assert [event.outcome for event in seen.of(CompactionEnded)].count("done")
        assert any("the next step may compact" in line for line in told)
        assert any("compacted from" in line for line in told)


@pytest.mark.slow
async def test_off_adds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acting(monkeypatch, [read(900), read(900, 899), read(90)])
    async with world(tmp_path, tell_model=False) as (agent, _):
        await say(agent, "look")
        assert not notes(agent)


@pytest.mark.slow
async def test_what_failed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acting(monkeypatch, [says("Hello."), read(20), read(20, 19)])
    async with world(tmp_path) as (agent, _):
        await say(agent, "hello")
        asked = agent._state.binding.compaction.asked
        asked.add()
        asked.fail(asked.waiting()[0], "The fold was not made: it is too long.")
        await say(agent, "look")
        assert not asked.failures()
        assert notes(agent) == ["The fold was not made: it is too long."]


@pytest.mark.slow
async def test_what_failed_is_told_also_where_nothing_else_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acting(monkeypatch, [says("Hello."), read(900), read(900, 899)])
    async with world(tmp_path, tell_model=False) as (agent, _):
        await say(agent, "hello")
        asked = agent._state.binding.compaction.asked
        asked.add()
        asked.fail(asked.waiting()[0], "The fold was not made: it is too long.")
        await say(agent, "look")
        assert not asked.failures()
        assert notes(agent) == ["The fold was not made: it is too long."]


async def test_a_line_is_known_again_whatever_it_names() -> None:
    line = "Context: 1k of 2k used before compaction; largest: bash cat <document> ~1k [123456]."
    asked = Message("msg_1", "user", [TextPart("look")])
    result = Message("msg_2", "tool", [ToolResultPart("call_1", "bash", "done")])
    for message in (asked, result):
        put_note(message, CONTEXT_NOTE, line)
        assert note_in(message, CONTEXT_NOTE) == line
        take_note_out(message, CONTEXT_NOTE)
    assert (asked.text, asked.parts) == ("look", [TextPart("look")])
    assert result.parts == [ToolResultPart("call_1", "bash", "done")]


@pytest.mark.slow
async def test_a_line_that_could_not_be_sent_is_not_told_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acting(monkeypatch, [read(900)])
    async with world(tmp_path, steps=1) as (agent, _):
        await say(agent, "look")
        compaction, path = agent._state.binding.compaction, agent.conversation.path
        assert path[-1].role == "tool" and not notes(agent), "the turn ended before it was sent"
        for _ in range(3):
            await compaction.tell_context()
        result = path[-1].tool_result
        assert result is not None and result.text.count("Context: ") == len(notes(agent)) == 1


@pytest.mark.slow
async def test_a_threshold_of_another_model_is_not_taken_for_one_of_this(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acting(monkeypatch, [read(900), says("Read."), says("Done.")])
    async with world(tmp_path) as (agent, _):
        await say(agent, "look")
        told = notes(agent)
        await say(agent, "and now?")
        assert notes(agent) == told, "nothing was crossed"
        # The line before leaves no room beside it.
        monkeypatch.setattr("agent_tui.engine.compaction.context_notes.ALL_SHARE", 0.05)
        next(step for step in reversed(agent.conversation.steps) if step.kind == "turn").model_key = "another"
        await say(agent, "and now?")
        assert len(notes(agent)) == len(told) + 1


async def _random_session(seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Returns how many requests it made, and lines it was told."""
    rng = random.Random(seed)
    acts: list[Act] = []

    for _ in range(rng.randrange(4, 14)):
        match rng.randrange(8):
            case 0:
                acts.append(lambda names: f"Done {rng.random()}.")
            case 1:
                acts.append(
                    lambda names: ("context", {"action": "drop", "names": rng.sample(names, min(2, len(names)))})
                )
            case 2:
                acts.append(lambda names: ("context", {"action": "fold", "names": names[:3], "text": "Read them."}))
            case 3:
                acts.append(
                    call("context", action=rng.choice(("status", "compact", "keep")), text=f"Note {len(acts)}.")
                )
            case _:
                size = rng.choice((20, 90, 300, 900))
                acts.append(read(size, rng.randrange(10, size)))
    requests = acting(monkeypatch, acts)
    async with world(folder, compact_at=rng.choice((None, 6_000, 9_000))) as (agent, _):
        told = watch(agent)
        for turn in range(3):
            await say(agent, f"look {turn} " + "at all of it " * rng.choice((1, 1, 200)))
            if rng.random() < 0.2:
                await agent.compaction.now()
        assert told == notes(agent)
        for request in requests[-3:]:
            check_bodies(request.messages)
        window = agent.context.usage().window or 0
        sent = [note_in(item.message, CONTEXT_NOTE) for item in agent.conversation.view()]
        assert sum(len(line) / 4 for line in sent if line) <= window * ALL_SHARE
        return len(requests), len(told)


async def test_the_numbers_are_those_of_the_context_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = 0
    for seed in range(4):
        (tmp_path / str(seed)).mkdir()
        told += (await _random_session(seed, tmp_path / str(seed), monkeypatch))[1]
    assert told >= 4


@pytest.mark.slow
async def test_the_numbers_are_those_of_the_context_screen_in_500_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = told = 0
    for seed in range(500):
        with monkeypatch.context() as patch, tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            made = await _random_session(seed, Path(folder), patch)
        steps, told = steps + made[0], told + made[1]
    assert told > 500 and steps > 4 * 500
