"""The parts of a tool: a schema the model sees, an intent that can be judged, and a run that answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from agent_tui.config import ToolsConfig
from agent_tui.models.events import PlanAnswer, QuestionAnswer
from agent_tui.models.messages import AttachmentPart, Message, Metadata
from agent_tui.models.requests import ToolSchema
from agent_tui.providers.dialects.record import USUAL_IMAGES, ImageLimits
from agent_tui.providers.secrets import Redactor
from agent_tui.records import dataclass
from agent_tui.tools.git.remotes import RemoteReach
from agent_tui.tools.sandbox.jail import Jail
from agent_tui.tools.sandbox.policy import Domain, Network
from agent_tui.tools.sandbox.words import Stopped

if TYPE_CHECKING:
    from agent_tui.tools.children.jobs import Jobs

ContextAction = Literal["status", "drop", "fold", "keep", "compact"]
WhenAsked = Literal["", "where it would change something", "always"]
"""When the user is asked about what a model does to its own context: never, where the permission mode asks before
something changes, or in every mode."""

IntentKind = Literal["read", "edit", "command", "network", "mcp", "internal", "question"]


@dataclass(slots=True, frozen=True)
class ServerTool:
    """A tool of an MCP server, and what the server claims of it: that it ``only_looks``, and whether it reaches an
    ``open_world`` beyond the server. Claims can make a question needless that a user's consent covers, never more."""

    server: str
    tool: str
    only_looks: bool = False
    open_world: bool = True


@dataclass(slots=True)
class Intent:
    """The intended effect of a call, known before it runs: permissions judge it and the user is shown it.

    ``summary`` is one line (``edit app.py``); ``display`` is ``{"kind": "diff"|"command"|"text", "text": …,
    "path": …}``. ``paths`` are absolute, links resolved. ``tool`` is the name that rules are asked about where the
    call stands for one of another tool. ``outside``: a command that asks to leave the sandbox. ``goes_on``: one that
    runs beside the turns. ``server``: the tool of an MCP server that is called.
    """

    kind: IntentKind
    summary: str
    paths: list[Path] = field(default_factory=list)
    command: str | None = None
    url: str | None = None
    display: Metadata | None = None
    tool: str | None = None
    outside: bool = False
    goes_on: bool = False
    server: ServerTool | None = None
    asks: WhenAsked = ""
    """When the user is asked about what changes nothing but the model's own context."""
    hook: Literal["", "allow", "ask"] = ""
    """What the user's hooks say of it: nothing, that it needs no question, or that it needs one, and why."""
    hook_reason: str = ""
    ask_hooks: Callable[[], Awaitable[tuple[str, str]]] | None = None
    """Asks those that may answer in the place of the user: ``allow``, ``deny`` or nothing, and why."""
    expects: Callable[[], Awaitable[str]] | None = field(default=None, compare=False)
    """Finds out what the user is told below the question. Raises ToolError where the call could only fail."""


@dataclass(slots=True)
class ToolOutcome:
    """A tool's answer."""

    text: str
    """For the model."""
    is_error: bool = False
    display: Metadata | None = None
    """For people: ``{"kind": "diff"|"text"|"list"}`` with a ``summary`` of a few words; ``text`` is in it where it
    differs from the answer's own text (a diff)."""
    attachments: list[AttachmentPart] = field(default_factory=list)
    ends_turn: bool = False
    """The model is not asked to go on."""
    waited: float = 0.0
    """Seconds of its run in which the user was waited for."""
    stopped: Stopped | None = None
    """What a command that was only let look wanted besides, once it has ended by itself."""


class User(Protocol):
    """The user, as tools ask them."""

    async def approve(self, plan: str) -> PlanAnswer | None:
        """Returns the user's answer to a plan; None when nobody is there. Raises ToolError outside plan mode."""
        ...

    async def choose(self, question: str, choices: tuple[str, ...], several: bool) -> QuestionAnswer:
        """Asks the user and returns the answer. Raises ToolError when nobody is there."""
        ...


class OwnContext(Protocol):
    """The context of who calls a tool: the session's, or a subagent's."""

    def asks(self, action: ContextAction) -> WhenAsked: ...

    async def expected(self, action: ContextAction, names: Sequence[str], text: str, focus: str) -> str:
        """What doing it would say, without doing it. Raises ToolError where it cannot be."""
        ...

    async def tend(self, action: ContextAction, names: Sequence[str], text: str, focus: str) -> ToolOutcome:
        """Does an action and says what it frees. Raises ToolError where it cannot be."""
        ...


GENERAL = "general-purpose"
"""The type of a subagent that has no other."""


@dataclass(slots=True, frozen=True)
class Task:
    """The task of a subagent, in a few words and as it is told; of which ``type`` it is, empty for none."""

    title: str
    prompt: str
    type: str = ""
    background: bool = False


Subagent = Callable[[Task, Callable[[str], None]], Awaitable[ToolOutcome]]
"""Does a task in a context of its own; the second argument gets lines on how it goes. One in the background is only
started. Raises ToolError where it may not begin."""


FileVersion: TypeAlias = tuple[int, int, int]
"""A file's modification time in ns, its size in bytes, its inode."""


@dataclass(slots=True)
class TodoItem:
    text: str
    status: Literal["pending", "in_progress", "completed"] = "pending"


@dataclass(slots=True)
class ToolMemory:
    """The memory of the tools as long as the session lives: the ``files`` the model has read, by path, and as they were
    then; its todo list."""

    files: dict[str, FileVersion] = field(default_factory=dict)
    todo: list[TodoItem] = field(default_factory=list)


@dataclass(slots=True, frozen=True)
class Past:
    """The conversation, its oldest message first, and the ids of those messages that are not sent in full any more."""

    path: Sequence[Message] = ()
    gone: frozenset[str] = frozenset()


class Keeping(Protocol):
    """Keeps what a command destroys or changes, so that it comes back."""

    async def before(self) -> None:
        """A command is about to run."""

    async def after(self) -> list[str]:
        """It has ended; what there is to say of it, one line each. To be called once for each ``before``."""
        ...


@dataclass(slots=True)
class ToolContext:
    """The services and settings that a running tool may use."""

    cwd: Path
    root: Path
    session_id: str
    config: ToolsConfig
    spill_dir: Path
    """Receives output that was too long to send."""
    added_dirs: list[Path] = field(default_factory=list)
    emit: Callable[[str], None] = lambda text: None
    """Shows live output."""
    keep: Callable[[str], None] = lambda text: None
    """Takes what a tool that is being interrupted has to tell; it becomes part of the call's result."""
    before_change: Callable[[Path], None] = lambda path: None
    """Must be called before a file is created, changed or removed, so that ``/rewind`` can restore it."""
    after_change: Callable[[Path], None] = lambda path: None
    """Must be called when it was, so that a later change by others is noticed."""
    subagent: Subagent | None = None
    allowed_paths: frozenset[Path] | None = None
    """The paths the call was allowed for; None where nothing was judged by path."""
    hidden: Callable[[Path], bool] = lambda path: False
    """True for files that a search passes over: the user denies reading them."""
    memory: ToolMemory = field(default_factory=ToolMemory)
    """Lives as long as the session."""
    jail: Jail | None = None
    """What holds commands to ``domain``."""
    domain: Domain = "free"
    network: Network | None = None
    """What a command was allowed besides the configuration."""
    remotes: tuple[RemoteReach, ...] = ()
    """What a command's git may reach from there."""
    first_look: bool = False
    """A command is only let look until the user was asked about the rest, so what is stopped has to be told."""
    secrets: Redactor = field(default_factory=Redactor)
    """Takes the user's keys out of what a tool says: before it is capped, which might cut a key in two."""
    images: ImageLimits = USUAL_IMAGES
    """What the model takes: larger images are scaled down before they become part of an answer."""
    user: User | None = None
    """Who can be asked; None for a subagent's call."""
    past: Callable[[], Past] = Past
    """What ``recall`` looks through: this session's own."""
    own: OwnContext | None = None
    """The context of the conversation that the call is from; None where there is none."""
    jobs: Jobs | None = None
    """The commands in the background; None where nothing can run there."""
    keeping: Keeping | None = None
    """Is told of every command that may write."""


class Tool(Protocol):
    """A tool. ``group`` is its child row in ``/context``: ``builtin`` or ``mcp:<server>``."""

    @property
    def schema(self) -> ToolSchema: ...

    @property
    def group(self) -> str: ...

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        """Returns the effect the call would have. Raises ToolError for arguments that make no sense."""
        ...

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        """Does it. Raises ToolError with a text for the model; cancellation must leave nothing running."""
        ...
