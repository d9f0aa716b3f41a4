"""A session that lives through anything: turns, failing summaries, undo, rewind, fork, restart; in memory and fast."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

from agent_tui.context.accounting.inputs import CompactionSettings
from agent_tui.context.accounting.next_input import fits_to_send
from agent_tui.context.accounting.usage import Calculator, calculate_context_usage
from agent_tui.context.compaction.situation import CompactionReason
from agent_tui.context.view import build_view
from agent_tui.engine.compaction.auto import MAX_FAILURES, AutoCompaction, CompactNow, Proceed, Stop
from agent_tui.models.context import ContextUsage
from agent_tui.models.messages import Part, TextPart, ToolCallPart
from agent_tui.models.requests import SentMessage
from agent_tui.models.session import SessionState
from tests.support.compaction_world import (
    FakeModel,
    Script,
    World,
    answer,
    assert_valid,
    failure,
    model_info,
    sections,
    words,
)

SCRIPTS: dict[str, Script] = {
    "good": answer(sections()),
    "long": answer(sections(words(600))),
    "cut off": answer(sections(), "length"),
    "empty": answer(""),
    "refused": answer(sections(), "refused"),
    "chatty": answer("You are right, let us go on."),
    "broken": failure("bad_answer", "The provider answered nonsense."),
    "too long": failure("context_overflow", "Too long."),
}

SPARE = 60
"""Tokens of a placeholder and of what estimates may be off in the smallest request there could be."""


@dataclass
class Stage:
    """What was sent, and the numbers, before a compaction."""

    operation: str
    head: str | None
    view: list[SentMessage]
    usage: ContextUsage


@dataclass
class Life:
    """``stops`` counts refused turns; each is checked to be one that could not have been sent."""

    world: World
    policy: AutoCompaction = field(default_factory=AutoCompaction)
    stages: list[Stage] = field(default_factory=list)
    stops: int = 0
    turns: int = 0

    @classmethod
    def of(cls, window: int) -> Life:
        return cls(World(model_info(window, min(8_192, window // 4)), accounts=Calculator()))

    async def send(self, size: int, calls: tuple[int, ...] = (), arguments: int = 10) -> bool:
        """One turn: a message of ``size`` tokens, then a step for each of ``calls``, with a result of so many tokens;
        the calls' own arguments have ``arguments`` tokens. False when it was stopped."""
        world = self.world
        self.turns += 1
        world.user(f"Message {len(world.messages)}. " + words(size))
        self.policy.turn_started()
        for number, result in enumerate((*calls, None)):
            if not await self._step():
                return False
            if result is None:
                world.measured([TextPart(f"Answer {len(world.messages)}. " + words(40))])
            else:
                call_id = f"c{len(world.messages)}-{number}"
                text = json.dumps({"path": f"f{number}.py", "content": words(arguments)})
                world.measured([ToolCallPart(call_id, "read", text)])
                world.results(words(result, "line"))
            self.policy.model_replied()
        return True

    async def _step(self) -> bool:
        world = self.world
        self.policy.step_started()
        for _ in range(4):
            world.policy = CompactionSettings(paused=self.policy.paused, off=self.policy.off)
            usage = world.usage()
            decision = self.policy.before_step(usage)
            match decision:
                case CompactNow(reason, without_model):
                    await self.compact(reason, without_model)
                case Proceed():
                    assert fits_to_send(usage)
                    assert_valid(world.view())
                    assert self._newest() in [s.message.id for s in world.view()], "the user's newest message is sent"
                    return True
                case Stop(text):
                    self.stops += 1
                    # A summary whose call failed is tried again with the next message, until there are none.
                    assert 0 < self.policy.failures < MAX_FAILURES + 1 or not self.could_be_sent(), text
                    return False
        raise AssertionError("it loops")

    def _newest(self) -> str:
        return next(m.id for m in reversed(self.world.path) if m.role == "user")

    def could_be_sent(self) -> bool:
        """Whether system, tools and the newest user message alone leave room for an answer."""
        newest = next(m for m in reversed(self.world.path) if m.role == "user")
        inputs = replace(self.world.inputs(), view=[SentMessage(newest, newest.id)], steps=[], records=[])
        usage = calculate_context_usage(inputs)
        return fits_to_send(replace(usage, total=usage.total + SPARE + usage.total // 50))

    async def compact(self, reason: CompactionReason = "manual", without_model: bool = False) -> None:
        world = self.world
        view, usage = world.view(), world.usage()
        plan = world.plan_without_model(reason) if without_model else world.plan(reason)
        result = await world.compactor().run(plan)
        world.commit(result)
        self.policy.compacted(result)
        if without_model:
            assert result.steps == []
        if result.done:
            now = world.usage()
            assert result.after == now.total < usage.total
            assert len({r.operation_id for r in result.records}) == 1
            assert_valid(world.view())
            self.stages.append(Stage(result.records[0].operation_id, world.head, view, usage))
        else:
            assert world.view() == view

    def undo(self) -> None:
        operation = self.world.undo()
        if operation is None:
            return
        self.policy.undone(self.world.usage())
        if not self.stages or self.stages[-1].operation != operation:
            self.stages.clear()
            return
        stage = self.stages.pop()
        if stage.head == self.world.head:
            self.world.policy = CompactionSettings()
            now = self.world.usage()
            assert self.world.view() == stage.view
            assert (now.total, now.rows, now.calculation) == (
                stage.usage.total,
                stage.usage.rows,
                stage.usage.calculation,
            )

    def undo_where_it_was(self) -> None:
        """Goes back to where the newest compaction happened and takes it back."""
        if self.stages:
            self.world.head = self.stages[-1].head
            self.undo()

    def rewind(self, share: float) -> None:
        path = self.world.path
        users = [m for m in path if m.role == "user"]
        if users:
            self.world.head = users[int(share * (len(users) - 1))].parent_id

    def fork(self) -> None:
        """A copy has the records that concern its path, and none of what came after."""
        world = self.world
        kept = {m.id for m in world.path}
        view = world.view()
        world.records = [
            r
            for r in world.records
            if (kept.issuperset(r.message_ids) if r.kind == "summary" else kept & {*r.message_ids})
        ]
        assert world.view() == view
        self.stages.clear()

    def restart(self) -> None:
        self.policy = AutoCompaction.from_state(self.policy.kept_in(SessionState()), auto_compact=True)

    def script(self, name: str) -> None:
        self.world.model = FakeModel([SCRIPTS[name]])

    def parts(self) -> list[Part]:
        return [p for m in self.world.path for p in m.parts]

    def rebuilt(self) -> list[SentMessage]:
        world = self.world
        return build_view(world.path, world.records, world.summaries)
