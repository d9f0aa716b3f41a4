"""Any sequence of what a user does with a session keeps it valid, complete and truly counted."""

from __future__ import annotations

import contextlib
import random
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from agent_tui.config import PermissionsConfig, Settings
from agent_tui.context.accounting.usage import FollowedCosts, calculate_context_usage
from agent_tui.context.costs import costs_of
from agent_tui.engine.agent import Agent
from agent_tui.engine.edits import Dropped
from agent_tui.errors import AgentError
from agent_tui.models.codec import dumps
from agent_tui.models.events import CompactionStarted, Event, PartDelta, ToolStarted
from agent_tui.models.messages import AttachmentPart, attachments_of
from agent_tui.models.requests import Effort
from tests.engine.dialect_bodies import check_bodies
from tests.support.agents import TokenCounter, parts_for, running
from tests.support.contexts import assert_identities
from tests.support.forms import examples
from tests.support.scripts import step

TWO_CALLS = step("both", read={"path": "notes.txt"}, list={"path": "."}) + step("done")


def named(dropped: Dropped) -> str:
    return dropped.message.id if dropped.attachment is None else f"{dropped.message.id}#{dropped.attachment}"


EFFORTS: list[Effort] = ["off", "low", "high"]


def body(agent: Agent) -> str:
    return dumps([item.message for item in agent.runtime.view()])


class User:
    """One user at one terminal, with a mind of their own."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.random = folder, random.Random(seed)
        self.stack = AsyncExitStack()
        self.agent: Agent
        self.stored: dict[str, str] = {}
        self.records: set[str] = set()
        self.left: dict[str, list[str]] = {}
        self.session = ""
        self.sent = 0

    async def open(self, session: str | None = None) -> None:
        settings = Settings(permissions=PermissionsConfig(mode="auto"))
        parts = parts_for(
            self.folder / "home",
            self.folder / "p",
            script="window = 7000\nmax_output = 1500\n" + TWO_CALLS * 3,
            settings=settings,
            counter=TokenCounter(),
            resume=session,
        )
        self.agent, _ = await self.stack.enter_async_context(running(parts))
        await self.agent.context.ready()

    async def send(self) -> None:
        self.sent += 1
        what = ["why?", "tell me a lot", "read notes.txt", "list the files", "tell me a lot " + "and more " * 90]
        files = [
            AttachmentPart(f"n{i}.md", "text/plain", text="a line\n" * 40) for i in range(self.random.choice([0, 0, 2]))
        ]
        self.agent.turns.submit(f"{self.sent}: {self.random.choice(what)}", attachments=files)
        await self.agent.turns.join()

    async def send_and_interrupt(self) -> None:
        wait, kinds = self.random.randrange(40), (PartDelta, ToolStarted, CompactionStarted)
        seen = 0

        def press(event: Event) -> None:
            nonlocal seen
            seen += isinstance(event, kinds)
            if seen > wait:
                self.agent.turns.interrupt()

        forget = self.agent.subscribe(press)
        await self.send()
        forget()

    async def compact(self) -> None:
        await self.agent.compaction.now(self.random.choice(["", "the numbers"]))

    async def undo(self) -> None:
        # It holds wherever the compaction does.
        self.left.clear()
        await self.agent.compaction.undo()

    async def rewind(self) -> None:
        mine = [m for m in self.agent.conversation.path if m.role == "user"]
        if mine:
            newest = self.random.choice([mine[-1], mine[-1], self.random.choice(mine)])
            self.leave()
            await self.agent.branches.rewind(newest.id)

    def leave(self) -> None:
        head = self.agent.conversation.info.head_id
        if head is not None:
            self.left[head] = [item.key for item in self.agent.conversation.view()]

    async def branch(self) -> None:
        """Any branch is as it was left, whatever was compacted elsewhere, and as it is where it is opened."""
        others = self.agent.branches.all()
        if not others:
            return
        self.leave()
        end = self.random.choice(others).end
        await self.agent.branches.go_to(end)
        await self.agent.context.ready()
        assert self.agent.conversation.path[-1].id == end
        if end in self.left:
            assert [item.key for item in self.agent.conversation.view()] == self.left[end]
        await self.restart()

    async def fork(self) -> None:
        path = self.agent.conversation.path
        if path:
            view, total = list(self.agent.conversation.view()), self.agent.context.usage().total
            await self.agent.sessions.fork()
            await self.agent.context.ready()
            assert self.agent.conversation.view() == view
            assert self.agent.context.usage().total == total

    async def restart(self) -> None:
        await self.agent.context.ready()
        view, usage = list(self.agent.conversation.view()), self.agent.context.usage()
        path, session = [m.id for m in self.agent.conversation.path], self.agent.conversation.info.id
        if not path:
            return
        await self.stack.aclose()
        await self.open(session)
        assert [m.id for m in self.agent.conversation.path] == path
        assert self.agent.conversation.view() == view
        now = self.agent.context.usage()
        assert (now.total, now.rows, now.calculation) == (usage.total, usage.rows, usage.calculation)

    async def drop(self) -> None:
        self.left.clear()
        path = self.agent.conversation.path
        if not path:
            return
        start = self.random.randrange(len(path))
        ids = [m.id for m in path[start : start + self.random.choice([1, 1, 2, 5])]]
        if self.random.random() < 0.4:
            results = [m.id for m in path if m.role == "tool"]
            files = [f"{m.id}#{n + 1}" for m in path for n, _ in enumerate(attachments_of(m))]
            ids = [self.random.choice([*results, *files, ids[0]])]
        view, usage = body(self.agent), self.agent.context.usage()
        try:
            plan = self.agent.edits.plan(ids)
        except AgentError:
            return
        await self.agent.edits.drop(ids, later=self.random.random() < 0.2)
        gone = {named(d) for d in self.agent.edits.dropped() if not d.waiting}
        if gone.issuperset(plan.part_ids):
            assert self.agent.context.usage().total == usage.total - plan.freed
            if self.random.random() < 0.5:
                await self.agent.edits.undo()
                assert body(self.agent) == view
                assert self.agent.context.usage().total == usage.total

    async def restore(self) -> None:
        self.left.clear()
        dropped = self.agent.edits.dropped()
        if dropped:
            back = named(self.random.choice(dropped))
            await self.agent.edits.restore([back])
            assert back not in map(named, self.agent.edits.dropped())

    async def undo_edit(self) -> None:
        self.left.clear()
        with contextlib.suppress(AgentError):
            await self.agent.edits.undo()

    async def effort(self) -> None:
        self.agent.models.set_effort(self.random.choice(EFFORTS))

    async def pin(self) -> None:
        if self.agent.context.pinned:
            self.agent.context.unpin(self.agent.context.pinned[0])
        else:
            self.agent.context.pin("notes.txt")

    async def act(self) -> str:
        acts: list[Any] = [self.send] * 5 + [self.send_and_interrupt, self.compact, self.undo, self.rewind, self.rewind]
        acts += [self.branch] * 3
        acts += [self.drop] * 4 + [self.restore, self.undo_edit]
        acts += [self.fork, self.restart, self.restart, self.effort, self.pin]
        act = self.random.choice(acts)
        await act()
        await self.agent.context.ready()
        return str(act.__name__)

    def check(self) -> None:
        agent = self.agent
        assert not agent.turns.busy
        view = agent.conversation.view()
        check_bodies(view)
        usage, runtime = agent.context.usage(), agent.runtime
        assert runtime is not None
        assert_identities(usage)
        fresh = calculate_context_usage(runtime.inputs())
        assert (fresh.total, fresh.rows, fresh.calculation) == (usage.total, usage.rows, usage.calculation)
        steps, target = agent.conversation.steps, runtime.info.target
        assert FollowedCosts().follow(steps, target).tokens == costs_of(steps, target).tokens, (
            "costs are those of the reports"
        )
        assert all(s.status != "running" for s in agent.conversation.steps)
        self.check_nothing_lost()

    def check_nothing_lost(self) -> None:
        store, session = self.agent.store, self.agent.conversation.info.id
        stored = {i: dumps(m) for i, m in store.messages.all(session).items()}
        records = {r.id for r in store.compactions.all(session)}
        if session == self.session:
            assert {i: stored.get(i) for i in self.stored} == self.stored
            assert self.records <= records
        self.session, self.stored, self.records = session, stored, records


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(examples(3, 8)))
async def test_a_session_survives_whatever_its_user_does(tmp_path: Path, seed: int) -> None:
    user = User(tmp_path, seed)
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "notes.txt").write_text("a note of some length\n" * 60)
    await user.open()
    done: list[str] = []
    try:
        for _ in range(45):
            done.append(await user.act())
            user.check()
    except BaseException:
        print("\n".join(done))
        raise
    finally:
        await user.stack.aclose()
