"""The agent as the screen sees it: small protocols by what a helper or a screen does with it, and all of them together.

The commands' own are in ``commands.agent_protocol``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from agent_tui.commands.agent_protocol import CommandAgent, OffersCommands, RunsInBackground, StoredSessions

if TYPE_CHECKING:
    from agent_tui.config import PermissionMode, Settings
    from agent_tui.context.accounting.lost import LostReasoning
    from agent_tui.context.past.history import History
    from agent_tui.engine.control.efforts import EffortChoice
    from agent_tui.models.branches import Branch, FilesMoved, Moved
    from agent_tui.models.context import ContextUsage
    from agent_tui.models.events import Event
    from agent_tui.models.messages import AttachmentPart, Message
    from agent_tui.models.questions import ApprovedMode
    from agent_tui.models.requests import ModelInfo, ModelSpec, SentMessage
    from agent_tui.models.session import SessionInfo
    from agent_tui.models.steps import CompactionRecord, Step
    from agent_tui.paths import Paths


class PublishesEvents(Protocol):
    def subscribe(self, callback: Callable[[Event], None]) -> Callable[[], None]:
        """Calls ``callback`` with every event from now on; returns what ends that."""


class RefreshesContext(Protocol):
    """Looks whether files that are part of every request have changed."""

    @property
    def busy(self) -> bool: ...
    async def refresh_context(self) -> bool: ...


class MayBeReadOnly(OffersCommands, Protocol):
    """A session that is open elsewhere takes commands only."""

    @property
    def read_only(self) -> bool: ...


class TakesMessages(Protocol):
    """What is sent to the agent, and what can be taken back or ended."""

    @property
    def busy(self) -> bool: ...
    @property
    def read_only(self) -> bool: ...
    def submit(self, text: str, attachments: Sequence[AttachmentPart] = ()) -> None: ...
    def steer(self, text: str, attachments: Sequence[AttachmentPart] = ()) -> None: ...
    def take_back(self) -> tuple[str, list[AttachmentPart]] | None: ...
    def send_waiting(self) -> bool: ...
    def interrupt(self) -> bool: ...
    async def shell(self, command: str) -> None: ...


class ReadsAttachments(Protocol):
    """What goes with a message, as the model in use takes it."""

    @property
    def busy(self) -> bool: ...
    @property
    def cwd(self) -> Path: ...
    @property
    def folders(self) -> list[Path]: ...
    async def mcp_attachments(self, text: str) -> tuple[list[AttachmentPart], list[str]]: ...
    async def fit_images(self, parts: Sequence[AttachmentPart]) -> tuple[list[AttachmentPart], list[str], list[str]]:
        """The parts, a line for each image that was scaled down, and one for each that was left out."""


class HasMode(Protocol):
    @property
    def mode(self) -> PermissionMode: ...
    def set_mode(self, mode: PermissionMode) -> None: ...


class AsksUser(Protocol):
    def answer_permission(
        self, request_id: str, allow: bool, pattern: str | None = None, feedback: str = ""
    ) -> None: ...
    def answer_plan(self, request_id: str, mode: ApprovedMode | None, plan: str, feedback: str = "") -> None: ...
    def answer_question(self, request_id: str, chosen: Sequence[str] = (), text: str = "") -> None: ...


class NamesResources(Protocol):
    def mcp_resources(self) -> list[tuple[str, str]]:
        """(``server:uri``, description) of every MCP resource."""


class ComparesModels(Protocol):
    """The models to choose from, and what is known of each."""

    @property
    def spec(self) -> ModelSpec: ...
    @property
    def model_info(self) -> ModelInfo | None: ...
    def models(self) -> list[ModelSpec]: ...
    async def describe(self, key: str) -> ModelInfo: ...
    def lost_by_model(self, info: ModelInfo) -> LostReasoning | None: ...


class ComparesEfforts(Protocol):
    """How much the model can think."""

    def efforts(self) -> list[EffortChoice]: ...


class ListsSessions(Protocol):
    """The sessions to choose from."""

    @property
    def root(self) -> Path: ...
    @property
    def info(self) -> SessionInfo: ...
    @property
    def store(self) -> StoredSessions: ...


class Rewinds(Protocol):
    """The way back to an earlier message, and to other branches."""

    @property
    def root(self) -> Path: ...
    @property
    def messages(self) -> Sequence[Message]: ...
    def branches(self) -> Sequence[Branch]: ...
    def lost_by_going(self, head: str | None) -> LostReasoning | None: ...
    def files_by_going(self, head: str | None) -> FilesMoved: ...
    async def rewind(self, message_id: str, restore_files: bool = False) -> Moved: ...
    async def go_to(self, head: str | None, restore_files: bool = False) -> Moved: ...
    async def fork(self, message_id: str | None = None) -> None: ...


class ExplainsContext(PublishesEvents, Protocol):
    """All that the context screen shows."""

    @property
    def settings(self) -> Settings: ...
    @property
    def paths(self) -> Paths: ...
    @property
    def info(self) -> SessionInfo: ...
    @property
    def store(self) -> StoredSessions: ...
    @property
    def records(self) -> Sequence[CompactionRecord]: ...
    @property
    def steps(self) -> Sequence[Step]: ...
    @property
    def model_info(self) -> ModelInfo | None: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def read_only_reason(self) -> str: ...
    def context_usage(self) -> ContextUsage: ...
    def trigger_total(self) -> int: ...
    def part_text(self, fingerprint: str) -> str | None: ...
    def sent_message(self, message_id: str) -> SentMessage | None: ...
    def history(self) -> History: ...
    @property
    def messages(self) -> Sequence[Message]: ...
    def context_stats(self) -> str: ...
    def compact_preview(self) -> str: ...
    async def count_exact(self) -> int | None: ...
    async def refresh_context(self) -> bool: ...


class WatchesJobs(RunsInBackground, PublishesEvents, Protocol):
    """Commands in the background, and their output."""

    def job_output(self, job_id: str) -> str: ...


class CompletesWords(CommandAgent, NamesResources, Protocol):
    """What completion proposes from."""


class ChatAgent(
    CompletesWords,
    ExplainsContext,
    RefreshesContext,
    TakesMessages,
    ReadsAttachments,
    AsksUser,
    ComparesModels,
    ComparesEfforts,
    Rewinds,
    WatchesJobs,
    Protocol,
):
    """Everything that some part of the screen needs."""

    async def start(self) -> None:
        """Opens the session. Raises AgentError when it cannot be opened."""

    async def close(self) -> None:
        """Ends what runs and stores what is left. Raises StoreError when something could not be stored."""

    def left_running(self) -> list[str]:
        """After the end: a line for each command that goes on."""
