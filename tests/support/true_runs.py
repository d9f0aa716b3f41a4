"""The product's agent, with its store, its tools and the provider worker, in talk with providers that count truly: what
all runs stand on. What is done between two messages, and what is held against the servers, each adds for itself."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agent_tui.config import AgentConfig, ContextConfig, ModelConfig, PermissionsConfig, Settings
from agent_tui.engine.agent import Agent
from agent_tui.engine.extensions import Extensions, Workspace
from agent_tui.engine.state import AgentParts
from agent_tui.models.events import Event, TurnEnded
from agent_tui.providers.client import ModelClient
from agent_tui.tools.files.access import FileAccess
from tests.support.agents import Recorder, parts_for
from tests.support.end_to_end import KEY_VARIABLE
from tests.support.long_run_figures import Flavour
from tests.support.true_provider import BusyScript, ProjectFile, Script, TrueProvider
from tests.support.true_provider.wire import Answer, Question


class TrueRun:
    """One session, whose models are those of ``flavours``: the first one is that of the beginning. ``options`` are
    further settings of every model."""

    brings = False
    """Whether the project's memory files, skills and MCP servers are sent."""
    can_ask = False
    keeps = False
    """Whether the servers keep what they are sent."""
    retries = 1

    def __init__(
        self, flavours: Mapping[str, Flavour], window: int, script: Script, worker: ModelClient, folder: Path,
        **options: Any,
    ) -> None:  # fmt: skip
        self.flavours, self.window, self.script = dict(flavours), window, script
        self.worker, self.folder, self.home, self.options = worker, folder, folder, options
        self.project = folder / "project"
        self.key = next(iter(flavours))
        self._turn = 0
        self.servers = {key: self.serve(flavour) for key, flavour in flavours.items()}
        self.session: str | None = None
        self.ended: TurnEnded | None = None
        self._broken: Exception | None = None

    @property
    def server(self) -> TrueProvider:
        """The one that the session talks to."""
        return self.servers[self.key]

    @property
    def turn(self) -> int:
        """The number of the turn, which the servers are told."""
        return self._turn

    @turn.setter
    def turn(self, number: int) -> None:
        self._turn = number
        for server in self.servers.values():
            server.turn = number

    def serve(self, flavour: Flavour) -> TrueProvider:
        """A server of this model, with its vocabulary."""
        model = replace(flavour.model, window=self.window, max_output=min(flavour.model.max_output, self.window))
        return TrueProvider(flavour.dialect, model, self.script, vocabulary=flavour.vocabulary, keeps=self.keeps)

    def settings(self) -> Settings:
        models = {
            key: ModelConfig(
                flavour.name,
                api_base=self.servers[key].url + flavour.path,
                api_key_env=KEY_VARIABLE,
                api=flavour.api,
                **{"context_window": self.window, "reasoning_effort": "medium", **self.options},
            )
            for key, flavour in self.flavours.items()
        }
        return Settings(
            default_model=next(iter(models)),
            models=models,
            context=ContextConfig(exact_counting="off"),
            permissions=PermissionsConfig(mode="auto"),
            agent=AgentConfig(retries=self.retries, timeout=60.0),
        )

    def parts(self) -> AgentParts:
        """What the agent is built from."""
        settings, worker, project = self.settings(), self.worker, self.project
        parts = parts_for(
            self.home, project, settings=settings, provider=lambda counter: worker, counter=worker,
            can_ask=self.can_ask, resume=self.session,
        )  # fmt: skip
        if self.brings:
            extensions = Extensions(
                settings, parts.paths, parts.permissions.files, project, parts.trust, home=self.folder / "user"
            )
            parts.extensions, parts.extra_tools = extensions, extensions.tools
            brought = extensions.memory.blocks, extensions.skills.blocks, extensions.mcp.instructions
            parts.workspace = Workspace(FileAccess([project]), project, brought)
        return parts

    async def open(self, seen: Recorder | None = None) -> Agent:
        """A new agent goes on with the session."""
        agent = Agent(self.parts())
        if seen is not None:
            agent.subscribe(seen)
        agent.subscribe(self._listen)
        await agent.start()
        await agent.context.ready()
        if agent.parts.extensions is not None:
            await agent.parts.extensions.ready()
        return agent

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[tuple[Agent, Recorder]]:
        """The same, with what it publishes; closed at the end."""
        seen = Recorder()
        agent = await self.open(seen)
        try:
            yield agent, seen
        finally:
            await agent.close()

    async def say(self, agent: Agent, text: str) -> TurnEnded | None:
        """One turn, and how it ended."""
        self.ended = None
        agent.turns.submit(text)
        await agent.turns.join()
        self.session = agent.conversation.info.id
        return self.ended

    def close(self) -> None:
        """Ends the servers."""
        for server in self.servers.values():
            server.close()

    def check(self) -> None:
        """Raises what went wrong where nobody could see it."""
        if self._broken is not None:
            raise self._broken
        for server in self.servers.values():
            assert not server.truth.crashes, server.truth.crashes[0]

    def _listen(self, event: Event) -> None:
        """An error in here would only be logged by the agent."""
        if isinstance(event, TurnEnded):
            self.ended = event
        try:
            self.see(event)
        except Exception as error:
            self._broken = self._broken or error

    def see(self, event: Event) -> None:
        """Is called with everything that the agent publishes."""


@dataclass(slots=True)
class LongAnswers(BusyScript):
    """Calls a tool twice a turn, then says much; in turn ``brief`` little. The first of ``summaries`` are given to
    requests for a summary."""

    steps: int = 2
    brief: int = 4
    summaries: list[Answer] = field(default_factory=list)

    def answer(self, question: Question, turn: int, step: int, number: int) -> Answer:
        answer = BusyScript.answer(self, question, turn, step, number)
        if step == self.steps:
            answer.text = self.words(random.Random(turn), 150 if turn == self.brief else 2_500)
        return answer

    def summary(self, question: Question, call: int) -> Answer | None:
        return self.summaries.pop(0) if self.summaries else BusyScript.summary(self, question, call)


def write_lines(project: Path) -> ProjectFile:
    """The one file of a project, whose lines the scripted model reads."""
    project.mkdir(exist_ok=True)
    (project / "a.txt").write_text("".join(f"line {n} of a file of the project\n" for n in range(900)))
    return ProjectFile("a.txt", 900)


def make_project(folder: Path, seed: int) -> list[ProjectFile]:
    """A project with files of all lengths, which the scripted model reads."""
    files = []
    for n in range(12):
        rng = random.Random(f"{seed}/file/{n}")
        lines = 150 * (n + 1) if n < 11 else 6_000
        path = folder / "src" / f"part_{n}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(
            f"value_{rng.randint(1, 9999)} = compute(left={rng.randint(1, 99)}, right={rng.randint(1, 99)})\n"
            for _ in range(lines)
        )
        path.write_text(text, "utf-8")
        files.append(ProjectFile(f"src/part_{n}.py", lines))
    return files


@contextmanager
def scratch() -> Iterator[Path]:
    """A new folder for one run, whose name is the same each time where nothing else runs: it is in the prompt, and
    counted."""
    root = Path(tempfile.gettempdir())
    for number in range(1_000):
        folder = root / f"true-run-{number}"
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        break
    else:
        raise AssertionError(f"{root} is full of runs that were cut off; remove its true-run-* folders")
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
