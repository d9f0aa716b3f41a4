"""The agent as the commands see it: small protocols by what a command does with it, and all of them together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from agent_tui.config import PermissionMode, Settings
    from agent_tui.context.accounting.lost import LostReasoning
    from agent_tui.context.accounting.spending import BudgetLine, BudgetName
    from agent_tui.context.past.history import History
    from agent_tui.context.project.user_commands import UserCommand
    from agent_tui.engine.models.efforts import EffortChoice
    from agent_tui.models.branches import Branch, Moved
    from agent_tui.models.context import ContextUsage
    from agent_tui.models.events import Event, WaitingMessage
    from agent_tui.models.jobs import JobInfo
    from agent_tui.models.messages import AttachmentPart, Message, Metadata
    from agent_tui.models.requests import Effort, ModelInfo, ModelSpec, SentMessage
    from agent_tui.models.search import IndexState, SessionHit
    from agent_tui.models.session import SessionInfo
    from agent_tui.models.steps import CompactionRecord, Step
    from agent_tui.paths import Paths


class SearchesSessions(Protocol):
    """Searches, one after the other, for one thread at a time."""

    def hits(self, query: str, project: str | None = None, stopped: Callable[[], bool] = ...) -> Iterator[SessionHit]:
        """Sessions with every word of the query, as they are found. Raises StoreError, soon when ``stopped``."""

    def state(self) -> IndexState:
        """How it gets at what was said. Raises StoreError."""

    def stop(self) -> None:
        """Ends what runs of a search that is ``stopped`` by now; from any thread."""

    def close(self) -> None: ...


class StoredSessions(Protocol):
    """What is read of the store; the store writes behind the agent alone."""

    def session(self, session_id: str) -> SessionInfo:
        """The session whose id begins like this. Raises StoreError when there is none, or more than one."""

    def sessions(self, project: str | None = None, limit: int | None = None) -> list[SessionInfo]:
        """Sessions, newest first."""

    def search_reader(self) -> SearchesSessions:
        """Searches what they are called and what was said in them; to be closed."""

    def summaries(self, session_id: str) -> dict[str, Message]:
        """The summary messages of a session, by id."""

    def tree_size(self, session_id: str) -> tuple[int, int]:
        """How many messages a session has on all its branches, and how many branches beside the conversation."""

    def export(self, session_id: str) -> Metadata:
        """Everything of a session, as the JSON export has it."""


class SessionFacts(Protocol):
    """What is to be read of the session in front."""

    @property
    def info(self) -> SessionInfo: ...
    @property
    def messages(self) -> Sequence[Message]: ...
    @property
    def store(self) -> StoredSessions: ...
    @property
    def root(self) -> Path: ...
    @property
    def cwd(self) -> Path: ...
    @property
    def paths(self) -> Paths: ...
    @property
    def spec(self) -> ModelSpec: ...
    @property
    def mode(self) -> PermissionMode: ...
    @property
    def effort(self) -> Effort: ...
    @property
    def branch(self) -> str | None: ...
    @property
    def trusted(self) -> bool: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def read_only_reason(self) -> str: ...


class ChangesSession(Protocol):
    """Starts, opens, copies and names sessions."""

    async def clear(self) -> LostReasoning | None: ...
    async def resume(self, session_id: str) -> None: ...
    async def fork(self, message_id: str | None = None) -> None: ...
    async def go_back(self, restore_files: bool = False) -> Moved: ...
    def branches(self) -> Sequence[Branch]: ...
    def rename(self, title: str) -> None: ...


class ChoosesModel(Protocol):
    """The model and how much it thinks."""

    @property
    def busy(self) -> bool: ...
    def models(self) -> list[ModelSpec]: ...
    async def set_model(self, key: str) -> tuple[ModelInfo, LostReasoning | None]: ...
    def set_effort(self, effort: Effort) -> LostReasoning | None: ...
    def levels(self) -> list[EffortChoice]: ...
    async def until_described(self) -> None: ...
    async def forget_limits(self) -> int: ...


class CountsContext(Protocol):
    """What fills the window, and what always stays in it."""

    @property
    def steps(self) -> Sequence[Step]: ...
    def context_usage(self) -> ContextUsage: ...
    def context_stats(self) -> str: ...
    def reset_context_stats(self) -> None: ...
    @property
    def pinned(self) -> list[str]: ...
    def pin(self, path: str) -> None: ...
    def unpin(self, path: str) -> None: ...


class Compacts(Protocol):
    """Compaction at the user's word."""

    async def compact(self, focus: str = "") -> None: ...
    def compact_preview(self) -> str: ...
    async def compact_undo(self) -> None: ...


class ListsWaiting(Protocol):
    """What was typed and is not sent."""

    @property
    def waiting(self) -> list[WaitingMessage]: ...


class HoldsBudgets(Protocol):
    """What may be spent."""

    def budgets(self) -> list[BudgetLine]: ...
    def set_budget(self, name: BudgetName, limit: float | None) -> None: ...


class HoldsRules(Protocol):
    """What may be done without a question."""

    def set_mode(self, mode: PermissionMode) -> None: ...
    def permission_rules(self) -> list[tuple[str, str, str]]: ...
    def remove_permission_rule(self, rule: str) -> bool: ...
    def trust_details(self) -> str: ...
    def trust(self, sure: bool = False) -> str: ...
    async def sandbox_lines(self) -> list[str]: ...


class OffersCommands(Protocol):
    """The user's own commands."""

    def user_commands(self) -> Sequence[UserCommand]: ...


class ListsExtensions(OffersCommands, Protocol):
    """What a project and its servers bring along."""

    def skills(self) -> list[tuple[str, str, str]]: ...
    def tools(self) -> list[tuple[str, str, str, int | None, bool]]: ...
    def mcp_servers(self) -> list[tuple[str, str, str]]: ...
    async def mcp_reconnect(self, name: str) -> str: ...
    async def doctor(self) -> list[tuple[str, str, str]]: ...


class RunsInBackground(Protocol):
    """Commands in the background."""

    def jobs(self) -> list[JobInfo]: ...
    async def stop_job(self, job_id: str) -> str: ...
    def keep_job(self, job_id: str, keep: bool = True) -> str: ...
    def job_output(self, job_id: str) -> str: ...


class PublishesEvents(Protocol):
    def subscribe(self, callback: Callable[[Event], None]) -> Callable[[], None]:
        """Calls ``callback`` with every event from now on; returns what ends that."""


class ExplainsContext(PublishesEvents, Protocol):
    """All that is shown of the context."""

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


class NamesResources(Protocol):
    def mcp_resources(self) -> list[tuple[str, str]]:
        """(``server:uri``, description) of every MCP resource."""


class ReadsAttachments(Protocol):
    """What goes with a message, as the model in use takes it."""

    @property
    def busy(self) -> bool: ...
    @property
    def cwd(self) -> Path: ...
    @property
    def folders(self) -> list[Path]: ...
    def heard(self, own_words: str) -> None:
        """The user wrote this themselves: hosts named in it may be fetched from."""

    async def mcp_attachments(self, text: str) -> tuple[list[AttachmentPart], list[str]]: ...
    async def fit_images(self, parts: Sequence[AttachmentPart]) -> tuple[list[AttachmentPart], list[str], list[str]]:
        """The parts, a line for each image that was scaled down, and one for each that was left out."""


class CommandAgent(
    ListsWaiting,
    SessionFacts,
    ChangesSession,
    ChoosesModel,
    CountsContext,
    ExplainsContext,
    Compacts,
    HoldsBudgets,
    HoldsRules,
    ListsExtensions,
    RunsInBackground,
    Protocol,
):
    """Everything that some command needs."""


class CompletesWords(CommandAgent, NamesResources, Protocol):
    """What completion proposes from."""
