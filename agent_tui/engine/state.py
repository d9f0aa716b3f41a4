"""The state that the parts of an agent share: what it was built from, who hears what happens, what runs, and the
session in front with its model."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import field, replace
from enum import Enum
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from agent_tui.config import Settings
from agent_tui.context.trust import FolderTrust
from agent_tui.engine.compaction.service import CompactionService
from agent_tui.engine.conversation import Conversation
from agent_tui.engine.extensions import Extensions, ExtraTools, Workspace, starter_for
from agent_tui.engine.hooks import Facts, Hooks
from agent_tui.engine.models import ModelCatalogue
from agent_tui.engine.runtime import Runtime
from agent_tui.errors import AgentError
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import Event, Notice
from agent_tui.models.messages import Message, Metadata
from agent_tui.models.requests import Counter, ModelInfo, ModelSpec, Provider
from agent_tui.models.steps import Step
from agent_tui.paths import Paths
from agent_tui.providers.catalog import images_of
from agent_tui.providers.dialects.record import USUAL_IMAGES, ImageLimits
from agent_tui.providers.secrets import Redactor
from agent_tui.records import dataclass
from agent_tui.store.keys import KeyStore
from agent_tui.store.store import Store
from agent_tui.tools.permissions.permissions import Permissions
from agent_tui.tools.rules.foreign import ForeignRules
from agent_tui.tools.sandbox.jail import Jail

if TYPE_CHECKING:
    from agent_tui.engine.transcript import HookTranscript
    from agent_tui.tools.hooks import Hook
    from agent_tui.tools.starter import Starter

log = logging.getLogger(__name__)


class Backend(Protocol):
    """What calls models as the Agent sees it: warmed up early, closed at the end."""

    async def prepare(self, spec: ModelSpec) -> None:
        """Loads what the model needs, ahead of its first call. Raises WorkerError."""
        ...

    async def close(self) -> None: ...


@dataclass(slots=True)
class AgentParts:
    """What an Agent is built from; ``bootstrap`` fills it in."""

    settings: Settings
    paths: Paths
    root: Path
    cwd: Path
    store: Store
    provider: Provider
    counter: Counter
    backend: Backend
    catalogue: ModelCatalogue
    workspace: Workspace
    permissions: Permissions
    trust: FolderTrust
    extra_tools: ExtraTools | None = None
    extensions: Extensions | None = None
    reload: Callable[[], Settings] | None = None
    """Reads the settings again, after the folder was trusted."""
    added_dirs: list[Path] = field(default_factory=list)
    jail: Jail | None = None
    model_key: str | None = None
    run_budget: float | None = None
    """Dollars that may be spent in all."""
    is_chat: bool = True
    """Somebody reads what is told: a session whose model is gone goes on with another."""
    resume: str | None = None
    """The id of a session that is there, or the beginning of one."""
    session: str | None = None
    """The id of a session to go on with, or to begin."""
    continue_newest: bool = False
    hooks: Callable[[], Sequence[Hook]] | None = None
    """Finds the hooks that are in force."""
    numbers: Callable[[ContextUsage, Sequence[Step]], Metadata] | None = None
    """Makes the JSON of the context that hooks are told."""
    secrets: Redactor = field(default_factory=Redactor)
    """Knows the user's keys."""
    notices: list[Notice] = field(default_factory=list)
    foreign: ForeignRules = field(default_factory=ForeignRules)


STILL_OPENING = "The session is still loading."


class Binding:
    """A session, the model it talks to and its compaction. Another session or model is another binding.

    The model's facts may still have to come: until then what the configuration says stands in.
    """

    def __init__(self, runtime: Runtime, compaction: CompactionService) -> None:
        self.runtime = runtime
        self.conversation = runtime.conversation
        self.compaction = compaction
        self.failed = False
        """There was no answer to the question for the model's facts: they are to be asked for again."""
        self._described = asyncio.Event()

    @property
    def described(self) -> bool:
        """True when the model's facts have been asked for, with or without an answer."""
        return self._described.is_set()

    def describe_as(self, info: ModelInfo, failed: bool = False) -> None:
        """The model's facts have come, or (``failed``) what is to stand in for them until they do."""
        self.runtime.describe_as(info)
        self.failed = failed
        self._described.set()

    async def until_described(self) -> None:
        await self._described.wait()


class Hub:
    """Events go to all subscribers, in the order they subscribed; background work that fails is told as one."""

    def __init__(self, hide: Callable[[str], str] = str) -> None:
        self._hide = hide
        self._subscribers: list[Callable[[Event], None]] = []
        self._followers = 0
        self._background: set[asyncio.Task[Any]] = set()

    def subscribe(self, callback: Callable[[Event], None], *, numbers: bool = False) -> Callable[[], None]:
        """Calls ``callback`` with every event from now on; returns what ends that. ``ContextChanged`` is among them
        as long as any subscriber asks for ``numbers``."""
        self._subscribers.append(callback)
        self._followers += numbers

        def end() -> None:
            if callback in self._subscribers:
                self._subscribers.remove(callback)
                self._followers -= numbers

        return end

    def is_followed(self) -> bool:
        """Returns whether anybody reads the numbers."""
        return self._followers > 0

    def publish(self, event: Event) -> None:
        """Tells everybody, without the user's keys in a line for him; one subscriber's failure is in the log and keeps
        nothing from the others."""
        if isinstance(event, Notice):
            event = replace(event, text=self._hide(event.text))
        for callback in tuple(self._subscribers):
            try:
                callback(event)
            except Exception:
                log.exception("A subscriber failed on %s", type(event).__name__)

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> None:
        """Does work in the background; it ends with the agent at the latest."""
        self.keep(asyncio.create_task(work, name=name))

    def keep(self, task: asyncio.Task[Any]) -> None:
        """The same of a task that runs already."""
        self._background.add(task)
        task.add_done_callback(self._reap)

    async def settled(self) -> None:
        """Waits until nothing goes on in the background."""
        while self._background:
            await asyncio.gather(*self._background, return_exceptions=True)
            await asyncio.sleep(0)  # nobody waits for what has ended: the loop would never take it away

    async def close(self) -> None:
        """Ends what goes on in the background."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)

    def _reap(self, task: asyncio.Task[Any]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("Background task %s failed", task.get_name(), exc_info=error)
            self.publish(Notice("error", str(error) or type(error).__name__, "background"))


class RunState(Enum):
    """``OPENING``: no session is bound yet. ``LOOKING``: a session is only read. ``TURN``: the model works, or is about
    to. ``INTERRUPTED``: the user ended that and it has not stopped yet. ``COMPACTING``: the user asked for it.
    ``WORKING``: other work that excludes turns, such as a switch of models. ``CLOSING``: nothing begins any more."""

    OPENING = "opening"
    LOOKING = "looking"
    IDLE = "idle"
    TURN = "turn"
    INTERRUPTED = "interrupted"
    COMPACTING = "compacting"
    WORKING = "working"
    CLOSING = "closing"


CHANGES: Mapping[RunState, frozenset[RunState]] = {
    RunState.OPENING: frozenset({RunState.IDLE, RunState.LOOKING, RunState.CLOSING}),
    RunState.LOOKING: frozenset({RunState.CLOSING}),
    RunState.IDLE: frozenset({RunState.TURN, RunState.COMPACTING, RunState.WORKING, RunState.CLOSING}),
    RunState.TURN: frozenset({RunState.INTERRUPTED, RunState.IDLE, RunState.CLOSING}),
    # An interrupt may come too late for its turn; then the next message follows.
    RunState.INTERRUPTED: frozenset({RunState.TURN, RunState.IDLE, RunState.CLOSING}),
    RunState.COMPACTING: frozenset({RunState.IDLE, RunState.CLOSING}),
    RunState.WORKING: frozenset({RunState.IDLE, RunState.CLOSING}),
    RunState.CLOSING: frozenset(),
}

BUSY = frozenset({RunState.TURN, RunState.INTERRUPTED, RunState.COMPACTING, RunState.WORKING})
"""States in which something runs that excludes a turn, or is one."""


class IllegalChangeError(RuntimeError):
    """A change of state that cannot be: a mistake in this program, never the user's."""


class RunStates:
    """The state now. Only ``change`` changes it."""

    def __init__(self) -> None:
        self._now = RunState.OPENING

    @property
    def now(self) -> RunState:
        return self._now

    @property
    def busy(self) -> bool:
        return self._now in BUSY

    @property
    def in_turn(self) -> bool:
        """True when the model works, or is about to."""
        return self._now in (RunState.TURN, RunState.INTERRUPTED)

    def change(self, to: RunState) -> None:
        """Raises IllegalChangeError for a change that is not in ``CHANGES``."""
        if to not in CHANGES[self._now]:
            raise IllegalChangeError(f"{self._now.value} → {to.value}")
        self._now = to


class AgentState:
    """What every part of an agent works on."""

    def __init__(self, parts: AgentParts) -> None:
        self.parts = parts
        self.events = Hub(parts.secrets.mask)
        self.run = RunStates()
        self.keys = KeyStore(parts.paths.data, keyring=not parts.settings.agent.private_file)
        """Where the user's keys are."""
        self._binding: Binding | None = None
        self._hooks_transcript: HookTranscript | None = None
        self.hooks = Hooks(parts.hooks, self.events.publish, self.events.keep, self.events.subscribe, self._facts)
        """The user's commands that run at events."""

    def _facts(self) -> Facts:
        parts, runtime, numbers = self.parts, self.runtime, self.parts.numbers
        conversation = runtime.conversation
        return Facts(
            conversation.info.id,
            parts.root,
            parts.cwd,
            parts.permissions.mode,
            parts.paths.cache / "output" / conversation.info.id,
            parts.secrets,
            self.environment,
            self.starter,
            None if numbers is None else partial(numbers, runtime.usage(), list(conversation.steps)),
            partial(self._transcript, list(conversation.path)),
        )

    @cached_property
    def starter(self) -> Starter:
        """Starts hooks and the status command."""
        return starter_for(self.parts.trust, self.parts.paths)

    def _transcript(self, messages: Sequence[Message]) -> Path:
        """Writes what of the conversation its hooks have not been shown yet; returns the file."""
        from agent_tui.engine.transcript import HookTranscript

        self._hooks_transcript = self._hooks_transcript or HookTranscript()
        parts, session = self.parts, self.conversation.info.id
        folder = parts.paths.cache / "output" / session
        return self._hooks_transcript.update(folder, session, parts.cwd, messages, parts.secrets)

    def environment(self, own: bool) -> Mapping[str, str]:
        """What a hook finds: the user's ``own`` all that this program has, as their ``!commands`` do."""
        from agent_tui.tools.sandbox.environment import QUIET, child_env

        if own:
            return {**os.environ, **QUIET}
        return self.parts.jail.environment() if self.parts.jail is not None else child_env(os.environ)

    @property
    def opened(self) -> bool:
        """True when there is a session."""
        return self._binding is not None

    @property
    def binding(self) -> Binding:
        """The session and model in force. Raises AgentError before the first session is opened; the only place that
        does."""
        if self._binding is None:
            raise AgentError(STILL_OPENING)
        return self._binding

    @property
    def runtime(self) -> Runtime:
        return self.binding.runtime

    @property
    def conversation(self) -> Conversation:
        return self.binding.conversation

    @property
    def image_limits(self) -> ImageLimits:
        """The limits of the model in use on images; the usual ones before the first session is opened."""
        return images_of(self.runtime.info.target) if self.opened else USUAL_IMAGES

    def bind(self, binding: Binding) -> None:
        """From here on everything is done with this one."""
        if self._binding is not None:
            self._binding.compaction.drop_prepared()
        self._binding = binding
