"""What an Agent consists of and what can be read of it; events and background tasks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from agent_tui.config import PermissionMode
from agent_tui.context.project.text_files import Stamp
from agent_tui.context.tokens.metrics import TokenCounterMetrics
from agent_tui.engine.compaction.service import CompactionService
from agent_tui.engine.counts.counting import CountService
from agent_tui.engine.parts import AgentParts
from agent_tui.engine.project.permissions import PermissionDesk
from agent_tui.engine.project.prefix import StablePrefix
from agent_tui.engine.project.toolbox import Toolbox
from agent_tui.engine.session.conversation import Conversation
from agent_tui.engine.session.sessions import Sessions
from agent_tui.engine.turns.executor import TurnExecutor
from agent_tui.engine.turns.inbox import Inbox
from agent_tui.engine.turns.runtime import Runtime
from agent_tui.errors import OPEN_ELSEWHERE, AgentError
from agent_tui.models.events import (
    Event,
    Notice,
)
from agent_tui.models.messages import AttachmentPart, Message
from agent_tui.models.requests import Effort, ModelInfo, ModelSpec
from agent_tui.models.session import SessionInfo
from agent_tui.models.steps import CompactionRecord, Step
from agent_tui.providers.catalog.families import images_of
from agent_tui.providers.dialects.image_limits import USUAL, ImageLimits
from agent_tui.tools.files.pictures import fit_attachments, needs_fitting
from agent_tui.tools.sandbox.policy import Domain, domain_for

log = logging.getLogger(__name__)


class AgentState:
    """The parts of an Agent, its current session and its subscribers. What an Agent can do is built on it."""

    def __init__(self, parts: AgentParts) -> None:
        self.parts = parts
        self.settings = parts.settings
        self.paths = parts.paths
        self.root = parts.root
        self.cwd = parts.cwd
        self.store = parts.store
        self.metrics = TokenCounterMetrics()
        self._subscribers: list[Callable[[Event], None]] = []
        self._inbox = Inbox()
        self._counts = CountService(parts.counter, self.metrics)
        self._task: asyncio.Task[Any] | None = None
        self._background: set[asyncio.Task[Any]] = set()
        self._executor: TurnExecutor | None = None
        self._described = asyncio.Event()
        self._started = False
        self._closing = False
        self._in_turns = False
        self._interrupted = False
        self._undescribed = False
        self._model_gone: Notice | None = None
        self._tools_stale = False
        self._tools_left_out: tuple[str, ...] = ()
        self._stamps: dict[Path, Stamp | None] = {}
        self._prefix = StablePrefix()
        self._compacting: CompactionService | None = None
        self.sessions = Sessions(parts)
        self.desk = PermissionDesk(parts.permissions, self.publish, parts.jail.ready if parts.jail else None)
        self.runtime: Runtime | None = None
        self.workspace = parts.workspace
        self.toolbox = Toolbox(
            parts.settings, parts.paths, parts.root, parts.cwd, parts.added_dirs, lambda: self.conversation
        )
        self.toolbox.extra = parts.extra_tools
        self.toolbox.secrets = parts.secrets
        self.toolbox.hidden = parts.permissions.denies_reading
        self.toolbox.jail = parts.jail
        self.toolbox.domain = self._domain
        self.toolbox.images = lambda: self.image_limits

    def _domain(self) -> Domain:
        """What commands are held to that run without a question and of which nothing else is said. What a rule allows
        in ``ask`` is meant to work."""
        return "work" if self.mode == "ask" else domain_for(self.mode)

    @property
    def info(self) -> SessionInfo:
        return self.conversation.info

    @property
    def conversation(self) -> Conversation:
        return self.sessions.current

    @property
    def read_only(self) -> bool:
        return self.conversation.read_only

    @property
    def read_only_reason(self) -> str:
        return OPEN_ELSEWHERE if self.read_only else ""

    @property
    def busy(self) -> bool:
        """Whether a turn or a compaction runs."""
        return self._task is not None and not self._task.done()

    @property
    def messages(self) -> list[Message]:
        return self.conversation.path

    @property
    def records(self) -> list[CompactionRecord]:
        return self.conversation.records

    @property
    def steps(self) -> list[Step]:
        return self.conversation.steps

    @property
    def spec(self) -> ModelSpec:
        return self._runtime.info.spec

    @property
    def model_info(self) -> ModelInfo | None:
        """What is known about the model; None until it has been described."""
        return self._runtime.info if self._described.is_set() else None

    @property
    def image_limits(self) -> ImageLimits:
        """What the model in use takes of images; the usual while the session is still opening."""
        return images_of(self.runtime.info.target) if self.runtime is not None else USUAL

    async def fit_images(self, parts: Sequence[AttachmentPart]) -> tuple[list[AttachmentPart], list[str], list[str]]:
        """Attachments as the model in use takes them: a line for each image that was scaled down, and one for each
        that had to be left out."""
        limits = self.image_limits
        if not needs_fitting(parts, limits):
            return list(parts), [], []
        return await asyncio.to_thread(fit_attachments, parts, limits)

    @property
    def mode(self) -> PermissionMode:
        return self.desk.permissions.mode

    @property
    def effort(self) -> Effort:
        return self._runtime.effort

    @property
    def queue(self) -> list[str]:
        return self._inbox.queued_texts()

    @property
    def held(self) -> list[str]:
        """What waited when the session was last left; ``send_waiting`` sends it."""
        return self._inbox.held_texts()

    @property
    def steering(self) -> list[str]:
        return self._inbox.steer_texts()

    @property
    def pinned(self) -> list[str]:
        return list(self.info.state.pinned)

    @property
    def branch(self) -> str:
        """The git branch at the start of the session; empty outside a repository."""
        return self.workspace.git.branch

    @property
    def trusted(self) -> bool:
        return self.parts.trusted

    @property
    def folders(self) -> list[Path]:
        """Where files are read and attached without asking: the project and the folders added to it."""
        return [self.parts.root, *self.parts.added_dirs]

    @property
    def _runtime(self) -> Runtime:
        if self.runtime is None:
            raise AgentError("The session is still opening.")
        return self.runtime

    def subscribe(self, callback: Callable[[Event], None]) -> Callable[[], None]:
        """Calls ``callback`` with every event from now on; returns what ends that."""
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback) if callback in self._subscribers else None

    def publish(self, event: Event) -> None:
        for callback in tuple(self._subscribers):
            try:
                callback(event)
            except Exception:
                log.exception("A subscriber failed on %s", type(event).__name__)

    def _spawn(self, work: Coroutine[Any, Any, Any], name: str) -> None:
        self._keep(asyncio.create_task(work, name=name))

    def _keep(self, task: asyncio.Task[Any]) -> None:
        self._background.add(task)
        task.add_done_callback(self._reap)

    def _reap(self, task: asyncio.Task[Any]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("Background task %s failed", task.get_name(), exc_info=error)
            self.publish(Notice("error", str(error) or type(error).__name__, "background"))
