"""The closed union of everything that can happen in a session. The UI and the headless printer match on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Literal, TypeAlias

from agent_tui.models.context import ContextUsage, Draft, SessionTotals
from agent_tui.models.failure import Failure
from agent_tui.models.forms import FormField
from agent_tui.models.messages import Message, Metadata
from agent_tui.models.requests import Delta
from agent_tui.models.session import SessionInfo
from agent_tui.models.steps import CompactionRecord, Step
from agent_tui.models.usage import Cost
from agent_tui.records import dataclass
from agent_tui.text.secrets import without_keys

ApprovedMode = Literal["ask", "accept-edits", "auto"]
"""The permission mode that a plan is carried out in."""

APPROVED_MODES: tuple[ApprovedMode, ...] = ("ask", "accept-edits", "auto")


@dataclass(slots=True, frozen=True)
class PlanAnswer:
    """``mode`` None: the plan is declined, with ``feedback`` or without a word. ``plan`` is its text as the user left
    it."""

    mode: ApprovedMode | None
    plan: str
    feedback: str = ""


@dataclass(slots=True, frozen=True)
class QuestionAnswer:
    """The ``chosen`` ones of the choices, and what the user wrote instead or besides. Neither: declined."""

    chosen: tuple[str, ...] = ()
    text: str = ""

    @property
    def declined(self) -> bool:
        return not self.chosen and not self.text.strip()


ServerAction = Literal["accept", "decline", "cancel"]


@dataclass(slots=True, frozen=True)
class ServerAnswer:
    """The user's word to an MCP server that asked: yes with the ``values`` of its form, no, or (``cancel``) neither."""

    action: ServerAction
    values: Metadata = field(default_factory=dict)


JobState = Literal["running", "ended", "stopped"]
PortReach = Literal["all", "sandbox", "itself"]
"""Who reaches the ports that a command opens: everybody on the machine, the other commands in the sandbox, or nobody
but itself."""


@dataclass(slots=True, frozen=True)
class SubagentFacts:
    """A subagent at work: its type, the steps it took, the tokens of its context now, of which ``window``, and what it
    cost."""

    type: str
    steps: int
    tokens: int
    window: int | None
    cost: Cost


@dataclass(slots=True, frozen=True)
class JobInfo:
    """``id`` is what model and user name it by. ``ended`` says that it ended by itself, with the exit ``code``
    (negative: the signal), ``stopped`` that somebody ended it. Times are seconds since the epoch.
    ``last_line`` of its output is cleaned and short; ``pid`` is the process whose end is that of all it started;
    ``log`` is the file with its output. ``kept``: it goes on when the program ends, which it can where it ``can_stay``.
    ``reach``: of its ports. A subagent (``agent``) has no process: ``command`` is its task."""

    id: str
    command: str
    state: JobState
    started: float
    pid: int
    log: str
    last_line: str = ""
    code: int | None = None
    finished: float | None = None
    kept: bool = False
    reach: PortReach = "all"
    agent: SubagentFacts | None = None
    can_stay: bool = False

    def seconds(self, now: float) -> float:
        """Returns how long it has run, or ran."""
        return max(0.0, (self.finished if self.finished is not None else now) - self.started)


StopReason = Literal["end", "step_limit", "interrupted", "refused", "length", "budget", "error"]
NoticeLevel = Literal["info", "warning", "error"]
WaitingKind = Literal["queued", "steer", "held", "failed", "unanswered"]


@dataclass(slots=True, frozen=True)
class SessionChanged:
    """The session's own facts changed: opened, renamed, cleared, forked, rewound. The transcript is to be rebuilt
    when ``reload`` is set."""

    info: SessionInfo
    reload: bool = False


@dataclass(slots=True, frozen=True)
class TurnStarted:
    """A turn begins."""


@dataclass(slots=True, frozen=True)
class MessageAdded:
    """A complete message joined the conversation: the user's, or a tool's result."""

    message: Message


@dataclass(slots=True, frozen=True)
class StepStarted:
    """A model call began. ``message`` is the answer before anything of it came, and stays so: what comes is told by
    ``PartDelta``, the whole by ``StepEnded``."""

    step: Step
    message: Message


@dataclass(slots=True, frozen=True)
class PartDelta:
    """The streaming message ``message_id`` changed as ``delta`` says."""

    message_id: str
    delta: Delta


@dataclass(slots=True, frozen=True)
class AnswerInterrupted:
    """The streaming message ``message_id`` broke off, or came to nothing, and is asked for again: the next delta of it
    begins it anew, and replaces all that came of it before."""

    message_id: str


@dataclass(slots=True, frozen=True)
class StepEnded:
    """The answer is stored: complete, stopped or failed. Carries the final message (authoritative) and step."""

    step: Step
    message: Message


OWN_COMMAND = "shell"
"""What ``ToolStarted`` is named for the user's own ``!command``; no tool is called that."""


@dataclass(slots=True, frozen=True)
class ToolStarted:
    """A tool call begins to run. ``summary`` is one line for people, e.g. ``read app.py``."""

    call_id: str
    name: str
    summary: str


@dataclass(slots=True, frozen=True)
class ToolOutput:
    """Live output of a running tool."""

    call_id: str
    text: str


@dataclass(slots=True, frozen=True)
class RuleOffer:
    """Rules that an answer may add. Together they cover all of a call: none of them alone need do so."""

    rules: tuple[str, ...]
    lasts: Literal["project", "session"] = "project"
    """``project``: remembered for it; ``session``: in force until the program ends, and stored nowhere."""


@dataclass(slots=True, frozen=True)
class PermissionAsked:
    """A tool waits for the user's word; answer with ``agent.permissions.answer(request_id, …)``.

    ``display`` holds what would happen: ``{"kind": "diff"|"command"|"text", "text": …, "path": …}``. A plain yes allows
    this call once; with one of the ``offers`` it adds those rules, too.
    """

    request_id: str
    call_id: str
    tool: str
    summary: str
    display: Metadata
    offers: Sequence[RuleOffer] = ()
    reason: str = ""


@dataclass(slots=True, frozen=True)
class PermissionAnswered:
    request_id: str
    allowed: bool


@dataclass(slots=True, frozen=True)
class PlanPresented:
    """The model has finished its plan (Markdown). It waits for ``agent.questions.answer_plan(…)``; without a
    ``request_id`` nobody can answer, and the plan is what the turn ends with."""

    request_id: str
    plan: str


@dataclass(slots=True, frozen=True)
class QuestionAsked:
    """The model asks the user; answer with ``agent.questions.answer_question(…)``. ``several`` of the choices may be
    chosen, and free text is always possible."""

    request_id: str
    question: str
    choices: tuple[str, ...]
    several: bool = False


@dataclass(slots=True, frozen=True)
class ServerAsked:
    """An MCP server asks; answer with ``agent.servers.answer(…)``. A ``form`` has ``fields`` to fill in; a ``url`` is
    to be opened, by who says yes, and ``about`` is where that leads. ``text`` is the server's, made plain."""

    request_id: str
    server: str
    kind: Literal["form", "url"]
    text: str
    fields: tuple[FormField, ...] = ()
    url: str = ""
    about: str = ""


@dataclass(slots=True, frozen=True)
class Way:
    """A way on from where a turn stopped, taken with ``key``. ``asks`` names what is to be written first, not shown
    where it is ``secret``; ``models``: another model is to be chosen, and the turn goes on with it."""

    key: str
    label: str
    asks: str = ""
    secret: bool = False
    models: bool = False

    @property
    def feedback(self) -> bool:
        return bool(self.asks)


@dataclass(slots=True, frozen=True)
class StopAsked:
    """A turn stopped at something that the user can change; answer with ``agent.stops.answer(…)``. What is not among
    the ``ways`` leaves it as it is."""

    request_id: str
    question: str
    ways: tuple[Way, ...]


@dataclass(slots=True, frozen=True)
class QuestionClosed:
    """A plan or a question, also a server's, is answered, or is open no more."""

    request_id: str


@dataclass(slots=True, frozen=True)
class ContextChanged:
    """The calculator's newest answer. ``in_flight`` are estimated tokens of the answer that is still streaming;
    the status line shows ``usage.total + in_flight`` with ``~`` while they are not 0."""

    usage: ContextUsage
    in_flight: int = 0


@dataclass(slots=True, frozen=True)
class DraftChanged:
    """What is written and not sent yet has become more or less, or is counted now; None: nothing is."""

    draft: Draft | None


@dataclass(slots=True, frozen=True)
class RetryWaiting:
    """The step failed, before its first delta or in its answer (``AnswerInterrupted``), and is tried again after
    ``seconds``; an interrupt ends the wait."""

    seconds: float
    attempt: int
    attempts: int
    failure: Failure


@dataclass(slots=True, frozen=True)
class CompactionStarted:
    """``estimated``: a part of the tokens is an estimate, which may be off by ``spread``."""

    before_tokens: int
    reason: str
    estimated: bool = True
    spread: int = 0


@dataclass(slots=True, frozen=True)
class CompactionEnded:
    """``records`` is empty unless ``outcome`` is ``done``; ``text`` is the finished line for the user, who is not shown
    it where it is ``quiet``: what follows says it too."""

    outcome: Literal["done", "not_worth_it", "failed", "cancelled", "undone", "nothing"]
    text: str
    records: list[CompactionRecord] = field(default_factory=list)
    quiet: bool = False


@dataclass(slots=True, frozen=True)
class ContextEdited:
    """The user dropped something of the conversation, or restored it."""

    record: CompactionRecord


@dataclass(slots=True, frozen=True)
class Notice:
    """One line for the user. ``code`` is stable and scriptable, e.g. ``context_80``, ``model_detected``. ``way``: see
    ``Failure``."""

    level: NoticeLevel
    text: str
    code: str = ""
    way: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", without_keys(self.text, fields=False))


@dataclass(slots=True, frozen=True)
class WaitingMessage:
    """A message of the user's that has no answer on its way. ``queued`` ones go out after the turn, ``steer`` ones at
    the next step. The others go nowhere until the user says so: ``held`` ones waited when the session was last left,
    ``failed`` ones could not be sent. An ``unanswered`` one is in the conversation, but its request failed: it goes
    along with the next message. ``why`` is what was said of the failure."""

    id: str
    text: str
    kind: WaitingKind
    why: str = ""


@dataclass(slots=True, frozen=True)
class QueueChanged:
    """The messages that wait, the next first. ``paused``: none of them goes out by itself, until the user sends
    something."""

    waiting: list[WaitingMessage]
    paused: bool = False


@dataclass(slots=True, frozen=True)
class MessagesWithdrawn:
    """These messages are no longer in the conversation: what was not answered is taken back, dropped or sent anew."""

    ids: list[str]


LOADING = "litellm_loading"
"""The state of the worker in which a request through LiteLLM waits for it."""


@dataclass(slots=True, frozen=True)
class BackendChanged:
    """The state of the process that counts, and calls models through LiteLLM: ``stopped``, ``ready``,
    ``litellm_loading``, ``litellm_ready``. For the screen only: a first request waits until LiteLLM is loaded."""

    state: str


@dataclass(slots=True, frozen=True)
class JobsChanged:
    """A command in the background was started, has ended or is to be kept; ``running`` is how many there are now."""

    running: int


@dataclass(slots=True, frozen=True)
class TurnEnded:
    """The turn is over and the stored conversation is valid to send. ``bill`` is what its calls used and cost, its
    subagents' and summaries included."""

    stop_reason: StopReason
    failure: Failure | None = None
    bill: SessionTotals = field(default_factory=SessionTotals, compare=False)


Event: TypeAlias = (
    SessionChanged
    | TurnStarted
    | MessageAdded
    | StepStarted
    | PartDelta
    | AnswerInterrupted
    | StepEnded
    | ToolStarted
    | ToolOutput
    | PermissionAsked
    | PermissionAnswered
    | PlanPresented
    | QuestionAsked
    | ServerAsked
    | StopAsked
    | QuestionClosed
    | ContextChanged
    | DraftChanged
    | RetryWaiting
    | CompactionStarted
    | CompactionEnded
    | ContextEdited
    | Notice
    | QueueChanged
    | MessagesWithdrawn
    | BackendChanged
    | JobsChanged
    | TurnEnded
)
