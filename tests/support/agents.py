"""A whole agent for tests: real store, real demo model with a script, a counter that needs no worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from agent_tui.bootstrap import commands_of
from agent_tui.config import ContextConfig, PermissionsConfig, Settings
from agent_tui.context.trust import FolderTrust
from agent_tui.engine.agent import Agent
from agent_tui.engine.extensions import Workspace
from agent_tui.engine.models import ModelCatalogue
from agent_tui.engine.state import AgentParts
from agent_tui.models.calibration import KINDS
from agent_tui.models.events import Event, TurnEnded, WaitingKind
from agent_tui.models.messages import AttachmentPart, ToolResultPart
from agent_tui.models.requests import Counter, ModelSpec, Provider
from agent_tui.paths import Paths, private_dir
from agent_tui.providers.counting import count_all
from agent_tui.providers.demo import DemoProvider
from agent_tui.store.store import Store
from agent_tui.tools.files.access import FileAccess
from tests.support.tool_context import permissions_of
from tests.support.waiting import PATIENCE

E = TypeVar("E")


def words_only(tokens: int) -> tuple[int, ...]:
    """Counts by kind of a text of which only the tokens are known."""
    return (tokens, *(0,) * (len(KINDS) - 1))


class WordCounter:
    """Counts a token for every four characters, at once: close to a tokenizer and always the same."""

    running = True

    async def count(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        return [words_only(-(-len(text) // 4)) for text in texts]


class TokenCounter:
    """The tokenizer the worker uses, in this process."""

    running = True

    async def count(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        return count_all(texts)


class NoBackend:
    """Stands in for the worker, which the demo model does not need."""

    async def prepare(self, spec: ModelSpec) -> None:
        return None

    async def close(self) -> None:
        return None


@dataclass(slots=True)
class Recorder:
    """Keeps all events of an agent."""

    events: list[Event] = field(default_factory=list)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        self._news.set()

    async def until(self, condition: Callable[[], object]) -> None:
        """Waits for the event after which the condition holds. Raises TimeoutError."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._news.clear()
                await self._news.wait()

    def of(self, kind: type[E]) -> list[E]:
        return [e for e in self.events if isinstance(e, kind)]

    @property
    def last_end(self) -> TurnEnded:
        return self.of(TurnEnded)[-1]


def waiting(agent: Agent, kind: WaitingKind | None = None) -> list[str]:
    """What waits, the next first; only what waits as ``kind`` where that is given."""
    return [waits.text for waits in agent.waiting.listed if kind in (None, waits.kind)]


@cache
def _empty_database() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "sessions.db"
        Store.open(path).close()
        return path.read_bytes()


def open_store(path: Path) -> Store:
    """``Store.open``; a new file is a copy of one that was made before."""
    if not path.exists():
        private_dir(path.parent)
        path.write_bytes(_empty_database())
    return Store.open(path)


def parts_for(
    home: Path,
    project: Path,
    *,
    script: str | None = None,
    settings: Settings | None = None,
    provider: Callable[[Counter], Provider] | None = None,
    counter: Counter | None = None,
    workspace: Workspace | None = None,
    resume: str | None = None,
    continue_newest: bool = False,
    can_ask: bool = True,
) -> AgentParts:
    """What an Agent is built from, in ``home`` and for the project folder ``project``."""
    project.mkdir(parents=True, exist_ok=True)
    settings = settings or Settings(permissions=PermissionsConfig(mode="auto"), context=ContextConfig())
    paths = Paths(home / "config", home / "data", home / "state", home / "cache")
    counter = counter or WordCounter()
    file: Path | None = None
    if script is not None:
        file = home / "script.toml"
        home.mkdir(parents=True, exist_ok=True)
        file.write_text(script, "utf-8")
    store = open_store(paths.database)
    trust = FolderTrust(project, store.trust)
    if commands := commands_of(settings):
        # What a test starts may lie where commands write: the repository below TMPDIR, or what it is installed in.
        trust.commands = commands
        assert trust.accept()
    return AgentParts(
        settings=settings,
        paths=paths,
        root=project,
        cwd=project,
        store=store,
        provider=provider(counter) if provider else DemoProvider(counter, file, pace=0.0),
        counter=counter,
        backend=NoBackend(),
        catalogue=ModelCatalogue(settings),
        workspace=workspace or Workspace(FileAccess([project]), project),
        permissions=permissions_of(project, settings.permissions, can_ask=can_ask),
        trust=trust,
        resume=resume,
        continue_newest=continue_newest,
    )


@asynccontextmanager
async def running(parts: AgentParts) -> AsyncIterator[tuple[Agent, Recorder]]:
    """A started agent and what it published; closed at the end."""
    agent = Agent(parts)
    recorder = Recorder()
    agent.subscribe(recorder)
    await agent.start()
    try:
        yield agent, recorder
    finally:
        await agent.close()


async def say(agent: Agent, text: str, attachments: tuple[AttachmentPart, ...] = ()) -> None:
    async with asyncio.timeout(60):
        agent.turns.submit(text, attachments)
        await agent.turns.join()


def results(agent: Agent) -> list[ToolResultPart]:
    return [m.tool_result for m in agent.conversation.path if m.tool_result is not None]
