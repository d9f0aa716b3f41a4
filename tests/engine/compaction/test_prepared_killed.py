"""``kill -9`` while a summary is written beside a turn, before any statement of the store or event of the provider:
nothing is lost, nothing is half in force, what was paid counts once, and the next compaction is made as ever.

``python -m tests.engine.compaction.test_prepared_killed FOLDER NUMBER`` is the program that is killed, before its
point of that number. Each line it says is ``point`` as it began to prepare, or what is known to be stored by then.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent_tui.config import Settings
from agent_tui.engine.conversation import Conversation
from agent_tui.models.events import CompactionEnded, MessageAdded
from agent_tui.models.messages import user_message
from agent_tui.models.requests import Delta, Finished, ModelRequest, StreamItem, UsageReport
from agent_tui.models.usage import TokenUsage
from tests.engine.compaction.test_prepared import SlowWriter
from tests.support.compaction_bench import Bench
from tests.support.compaction_world import assert_valid, model_info, sections
from tests.support.contexts import assert_identities
from tests.support.forms import LONG

KILLS = 60 if LONG else 4
ANSWER: list[StreamItem] = [Delta(0, "text", sections()), UsageReport(TokenUsage(9_000, 500)), Finished("stop")]
PRICE = 9_000 * 1e-6 + 500 * 2e-6


@dataclass
class Mortal(SlowWriter):
    """Ends the program before one of its points."""

    dies_at: int = -1
    points: int = 0

    def point(self, *_: object) -> None:
        if self.points == self.dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.points += 1

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        if request.kind == "compaction":
            say("call", str(self.points))
        async for item in super().stream(request):
            self.point()
            yield item
            self.point()


def say(*words: str) -> None:
    print(*words, flush=True)


def opened(folder: Path, model: SlowWriter) -> Bench[SlowWriter]:
    return Bench(folder, model, model_info(), Settings(), 300)


async def live(folder: Path, number: int) -> None:
    """Fills a session, prepares a summary near the limit and compacts at it."""
    model = Mortal(reads=14, summary=lambda: list(ANSWER), dies_at=number)
    world = opened(folder, model)
    say("session", world.conversation.info.id)
    world.fill(30, 300)
    for message in world.conversation.path:
        say("message", message.id)
    world.store.database.connection.set_trace_callback(model.point)
    async for event in world.executor.run(user_message("Rule: never touch vendor. Read fourteen files.")):
        match event:
            case MessageAdded(message):
                say("message", message.id)
            case CompactionEnded("done"):
                say("compacted", str(model.points))
    say("end", str(model.points))
    world.store.close()


def life(folder: Path, number: int) -> list[list[str]]:
    command = [sys.executable, "-m", "tests.engine.compaction.test_prepared_killed", str(folder), str(number)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def told(lines: list[list[str]], kind: str) -> list[str]:
    return [rest[0] for name, *rest in lines if name == kind]


@pytest.mark.slow
async def test_a_kill_beside_a_turn_leaves_a_session_that_goes_on(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    lines = life(whole, -1)
    first, compacted, end = int(told(lines, "call")[0]), int(told(lines, "compacted")[0]), int(told(lines, "end")[0])
    assert first < compacted < end
    # From the write before the call to some after the compaction, its own statements among them.
    chosen = {
        first - 2,
        compacted - 1,
        *range(first, min(end, compacted + 20), max(1, (compacted + 20 - first) // KILLS)),
    }
    fates = set()
    for number in sorted(chosen):
        folder = tmp_path / str(number)
        folder.mkdir()
        lines = life(folder, number)
        assert not told(lines, "end")
        fates.add(await goes_on(folder, lines))
    assert len(fates) > 1, f"kills before and after the summary was in force: {fates}"


async def goes_on(folder: Path, lines: list[list[str]]) -> bool:
    """Checks the session of a program that was killed; whether a compaction was in force."""
    world = opened(folder, SlowWriter(summary=lambda: list(ANSWER)))
    try:
        (session,) = told(lines, "session")
        world.store.locks.take(session)
        world.store.recover(session)
        world.attach(Conversation(world.store, world.store.sessions.get(session)))
        conversation = world.conversation
        assert {m.id for m in conversation.path} >= set(told(lines, "message")), "nothing is lost"
        assert_valid(conversation.view())
        in_force = [r for r in conversation.records if r.kind == "summary"]
        assert in_force or not told(lines, "compacted")
        assert all(r.summary_id in conversation.summaries for r in in_force)
        paid = [step for step in conversation.steps if step.kind == "compaction"]
        assert len(told(lines, "call")) <= len(paid) <= len(told(lines, "call")) + 1
        assert all(step.status != "running" for step in paid)
        totals = world.runtime.usage().session
        assert totals.by_kind["compaction"].calls == len(paid) if paid else "compaction" not in totals.by_kind
        known = sum(step.cost.known for step in paid)
        assert known == pytest.approx(PRICE * sum(step.cost_usd is not None for step in paid))
        marks = {step.prepared for step in paid if step.prepared}
        assert totals.unused == len(marks - {r.message_ids[-1] for r in in_force})
        world.model.reads = 14
        ended = await world.turn("And on.")
        assert ended.stop_reason == "end"
        assert any(r.kind == "summary" and not r.left_out for r in conversation.records)
        assert_valid(conversation.view())
        assert_identities(world.runtime.usage())
        later = [s.prepared for s in conversation.steps[len(paid) :] if s.prepared and s not in paid]
        assert not marks & {*later}, "never two for the same cut"
        return bool(in_force)
    finally:
        world.store.close()


def main() -> None:
    folder, number = sys.argv[1:]
    asyncio.run(live(Path(folder), int(number)))


if __name__ == "__main__":
    main()
