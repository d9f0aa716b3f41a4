"""The agent as the screen sees it: small protocols by what a helper or a screen does with it, and all of them together.

The commands' own are in ``commands.agent_protocol``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from agent_tui.commands.agent_protocol import (
    CompletesWords,
    ListsWaiting,
    OffersCommands,
    PublishesEvents,
    ReadsAttachments,
    RunsInBackground,
)

if TYPE_CHECKING:
    from agent_tui.config import PermissionMode
    from agent_tui.context.accounting.lost import LostReasoning
    from agent_tui.engine.models.efforts import EffortChoice
    from agent_tui.models.branches import Branch, FilesMoved, Moved
    from agent_tui.models.messages import AttachmentPart, Message, Written
    from agent_tui.models.questions import ApprovedMode
    from agent_tui.models.requests import ModelInfo, ModelSpec
    from agent_tui.models.session import SessionInfo
    from agent_tui.store import Store


class RefreshesContext(Protocol):
    """Looks whether files that are part of every request have changed."""

    @property
    def busy(self) -> bool: ...
    async def refresh_context(self) -> bool: ...


class MayBeReadOnly(OffersCommands, Protocol):
    """A session that is open elsewhere takes commands only."""

    @property
    def read_only(self) -> bool: ...


class KeepsWaiting(ListsWaiting, PublishesEvents, Protocol):
    """What waits to be sent, and what can be done with it."""

    def send_waiting(self, message_id: str | None = None) -> bool: ...
    def take_back(self, message_id: str | None = None) -> Written | None: ...
    def move_waiting(self, message_id: str, by: int) -> bool: ...


class TakesMessages(KeepsWaiting, Protocol):
    """What is sent to the agent, and what can be taken back or ended."""

    @property
    def busy(self) -> bool: ...
    @property
    def read_only(self) -> bool: ...
    def submit(
        self,
        text: str,
        attachments: Sequence[AttachmentPart] = (),
        pasted: Sequence[list[int]] = (),
        behind: str | None = None,
    ) -> None: ...
    def steer(
        self, text: str, attachments: Sequence[AttachmentPart] = (), pasted: Sequence[list[int]] = ()
    ) -> None: ...
    def interrupt(self) -> bool: ...
    async def shell(self, command: str) -> None: ...


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
    def store(self) -> Store: ...


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


class WatchesJobs(PublishesEvents, RunsInBackground, Protocol):
    """Commands in the background, as they come and go."""


class ChatAgent(
    CompletesWords,
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

    def tell_pictures(self, detail: str) -> None:
        """How this terminal shows pictures, for whoever asks after its health."""

    def tell_drawing(self, problem: str) -> None:
        """What of the installed Textual cannot be used."""

    def left_running(self) -> list[str]:
        """After the end: a line for each command that goes on."""
