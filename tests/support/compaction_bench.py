"""A session in a store with a scripted model: executor, compactions, conversation and store, without an agent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from agent_tui.config import Settings
from agent_tui.context.tokens import TokenCounterMetrics
from agent_tui.engine.compaction.service import CompactionService
from agent_tui.engine.conversation import Conversation
from agent_tui.engine.questions import CallVerdict
from agent_tui.engine.request_prefix import RequestPrefix
from agent_tui.engine.runtime import CountService, Runtime
from agent_tui.engine.turns.executor import TurnExecutor
from agent_tui.engine.turns.toolrunner import ToolRunner
from agent_tui.models.events import Event, Notice, TurnEnded
from agent_tui.models.failure import Failure
from agent_tui.models.messages import RECALL_TOOL, Message, Metadata, TextPart, new_id, user_message
from agent_tui.models.requests import (
    Delta,
    Failed,
    Finished,
    ModelInfo,
    ModelRequest,
    ModelSpec,
    Provider,
    Started,
    StreamItem,
    ToolSchema,
    UsageReport,
)
from agent_tui.models.steps import FixedPart
from agent_tui.models.usage import TokenUsage
from agent_tui.store.store import Store
from agent_tui.tools.base import Intent, ToolContext, ToolOutcome
from agent_tui.tools.registry import ToolRegistry
from tests.support.compaction_world import (
    TARGET,
    CharCounter,
    assert_valid,
    model_info,
    raw,
    sections,
    sent_text,
    words,
)
from tests.support.tool_context import make_context

OVERFLOW = Failed(Failure("context_overflow", "The prompt is too long."))
M = TypeVar("M", bound=Provider)


class ReadTool:
    """Answers every call with text of ``tokens`` tokens."""

    group = "builtin"
    schema = ToolSchema("read", "Reads.", {"type": "object", "properties": {"path": {"type": "string"}}})

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        return Intent("read", "read")

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        return ToolOutcome(words(self.tokens, str(arguments.get("path"))))


@dataclass
class ReadingModel:
    """Reads ``reads`` files one after another, then answers. Above ``window``, the one it really has, it overflows."""

    reads: int = 0
    window: int = 10**9
    summary: Callable[[], list[StreamItem]] = lambda: [Delta(0, "text", sections()), Finished("stop")]
    requests: list[ModelRequest] = field(default_factory=list)
    gate: asyncio.Event | None = None
    at_gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        self.requests.append(request)
        yield Started(TARGET)
        size = sum(raw(sent_text([s])) + 4 for s in request.messages)
        if request.kind == "compaction":
            if self.gate is not None:
                self.at_gate.set()
                await self.gate.wait()
            for item in self.summary():
                yield item
            return
        assert_valid(request.messages)
        if size > self.window:
            yield OVERFLOW
            return
        if self.reads > 0:
            self.reads -= 1
            yield Delta(0, "tool_call", json.dumps({"path": f"f{self.reads}"}), call_id=f"c{self.reads}", name="read")
            yield UsageReport(TokenUsage(size, 20))
            yield Finished("tool_calls")
            return
        yield Delta(0, "text", "Done.")
        yield UsageReport(TokenUsage(size, 2))
        yield Finished("stop")

    async def describe(self, spec: ModelSpec) -> ModelInfo:
        return replace(model_info(), spec=spec)

    async def count_exact(self, request: ModelRequest) -> int | None:
        return None

    @property
    def kinds(self) -> list[str]:
        return [r.kind for r in self.requests]


def prefix() -> RequestPrefix:
    """What every request begins with: the tool that brings back what is no longer sent."""
    return RequestPrefix(fixed=[FixedPart("tools", "builtin", RECALL_TOOL, 4, "recall", 1)])


class Bench(Generic[M]):
    """A session in a temporary store with a scripted model."""

    def __init__(self, folder: Path, model: M, info: ModelInfo, settings: Settings, tokens: int) -> None:
        self.model, self.settings, self.info, self.folder, self.tokens = model, settings, info, folder, tokens
        self.events: list[Event] = []
        self.file = folder / "sessions.db"
        self.store = Store.open(self.file)
        self.attach(Conversation(self.store, self.store.sessions.create("/project", "test")))

    def attach(self, conversation: Conversation) -> None:
        self.conversation = conversation
        counts = CountService(CharCounter(), TokenCounterMetrics())
        self.runtime = Runtime(conversation, self.model, counts, self.settings, self.info, "off", prefix())
        find = lambda name: ModelSpec(name, name)  # noqa: E731
        self.service = CompactionService(self.runtime, CharCounter(), self.prepare, find)
        registry = ToolRegistry([ReadTool(self.tokens)])

        async def allow(*_: object) -> CallVerdict:
            return CallVerdict(True)

        runner = ToolRunner(registry, lambda calls=1: make_context(self.folder / "project"), allow)
        self.executor = TurnExecutor(self.runtime, runner, self.service)

    async def prepare(self) -> None:
        await self.runtime.counts.ensure(self.conversation, self.runtime.request_prefix)

    def fill(self, messages: int, tokens: int) -> None:
        """An earlier conversation of this many messages, which no step has measured."""
        for number in range(messages // 2):
            self.conversation.append(user_message(f"old {number} " + words(tokens)))
            answer = Message(new_id("msg"), "assistant", [TextPart(words(tokens))])
            self.conversation.append(answer)

    async def turn(self, text: str) -> TurnEnded:
        async for event in self.executor.run(user_message(text)):
            self.events.append(event)
        ended = self.events[-1]
        assert isinstance(ended, TurnEnded)
        return ended

    def of(self, kind: type[Event]) -> list[Event]:
        return [e for e in self.events if isinstance(e, kind)]

    def notices(self, code: str) -> list[Notice]:
        return [e for e in self.events if isinstance(e, Notice) and e.code == code]

    def restart(self) -> None:
        session = self.conversation.info.id
        self.store.close()
        self.store = Store.open(self.file)
        self.attach(Conversation(self.store, self.store.sessions.get(session)))


class Make(Protocol):
    """Makes a bench; ``context`` are settings of that table, ``tokens`` is how long each file is that is read."""

    def __call__(
        self, model: M, info: ModelInfo | None = None, *, auto: bool = True, tokens: int = 900, **context: object
    ) -> Bench[M]: ...


@contextmanager
def benches(folder: Path) -> Iterator[Make]:
    """Benches in a folder; their stores are closed at the end."""
    with ExitStack() as stack:

        def make(
            model: M, info: ModelInfo | None = None, *, auto: bool = True, tokens: int = 900, **context: object
        ) -> Bench[M]:
            settings = Settings()
            settings.context.auto_compact = auto
            for name, value in context.items():
                setattr(settings.context, name, value)
            bench = Bench(folder, model, info or model_info(), settings, tokens)
            stack.callback(lambda: bench.store.close())
            return bench

        yield make
