"""Requests to a provider and what comes back, independent of any provider."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import field
from typing import Literal, Protocol, TypeAlias

from agent_tui.config import ModelSettings
from agent_tui.models.failure import Adaptation, Failure
from agent_tui.models.messages import AttachmentPart, Message, Metadata
from agent_tui.models.rows import RowId
from agent_tui.models.steps import StepKind
from agent_tui.models.usage import Limits, Prices, TokenUsage
from agent_tui.records import dataclass

Effort = Literal["off", "low", "medium", "high"]
Counting = Literal["input_tokens", "tokenize"]
"""Endpoints of servers, llama.cpp's and vLLM's, that count a request by their own tokenizer and template."""
FinishReason = Literal["stop", "tool_calls", "length", "refused", "paused", "unknown"]
"""``paused``: the provider has tools of its own running, and goes on where it is sent what it said."""

WITHOUT_CALL = "without a call"
"""Ends the words for an ``unknown`` end that was said to be for a call, where none came."""


@dataclass(slots=True, frozen=True)
class ModelSpec(ModelSettings):
    """A model that can be called, with its settings: ``model`` is LiteLLM's name, ``key`` what the user calls it."""

    key: str
    model: str
    api_key: str | None = field(default=None, kw_only=True, repr=False, compare=False)


@dataclass(slots=True, frozen=True)
class Target:
    """The destination of a request, resolved: what ``Origin`` will say of the answer, and the tokenizer family."""

    provider: str
    api: str
    model: str
    family: str


@dataclass(slots=True)
class ModelInfo:
    """The facts known about a model before calling it. ``reasoning`` None: not known."""

    spec: ModelSpec
    target: Target
    limits: Limits
    prices: Prices
    reasoning: bool | None = None
    images: bool | None = None
    problem: str | None = None
    counting: Counting | None = None
    """Its server can count a request, cheaply enough to be asked before one is sent; how."""
    silent: bool = False
    """Its server could say more, and did not answer: it is to be asked again."""
    unreachable: bool = False
    """Nothing listens at its server's address."""
    files: bool = True
    """False: its server has refused PDF files."""
    doubt: str | None = None
    """Why its name may be mistyped, in a sentence."""
    tools: bool | None = None
    """False: the chat template of its server leaves tools and calls out, so none are offered; None: not known."""
    parallel: bool = True
    """False: its server answers one request at a time, or nobody knows better: a second one beside a turn would wait
    for that, or cost it its cache."""


@dataclass(slots=True, frozen=True)
class Media:
    """What a model is shown of pictures and PDF files; a line of text stands for all else that has none."""

    images: bool = True
    files: bool = True

    def takes(self, part: AttachmentPart) -> bool:
        """Returns whether the part goes to it as it is."""
        if part.media_type.startswith("image/"):
            return self.images and bool(part.data)
        # A model that cannot see is shown no pages.
        return part.media_type == "application/pdf" and self.images and self.files and bool(part.data)


ALL_MEDIA = Media()


@dataclass(slots=True, frozen=True)
class SentMessage:
    """A message as it is sent: cleared or clipped results are already replaced.

    ``key`` is the message's id, with a suffix where its content differs from what is stored (``#cleared``);
    ``stored`` is then the message as it is stored.
    """

    message: Message
    key: str
    stored: Message | None = None


@dataclass(slots=True)
class ToolSchema:
    """A tool as the model sees it. ``parameters`` is a JSON Schema object. ``provider``: it runs at the provider, and
    this declares it there; with all that the provider says of it, it has about so many ``tokens``."""

    name: str
    description: str
    parameters: Metadata
    provider: Metadata | None = None
    tokens: int = 0
    _text: str = field(default="", init=False, repr=False, compare=False)

    @property
    def text(self) -> str:
        """As it is counted: compact JSON, close to what every provider makes of it. Each request asks for it again."""
        if not self._text:
            told = {"name": self.name, "description": self.description, "parameters": self.parameters}
            self._text = json.dumps(self.provider or told, ensure_ascii=False, separators=(",", ":"))
        return self._text


@dataclass(slots=True)
class OfferedTool:
    """A tool in the request; ``group`` is its child row in ``/context``. A ``deferred`` one is listed there but not
    sent."""

    schema: ToolSchema
    group: str
    deferred: bool = False


@dataclass(slots=True)
class SystemBlock:
    """A piece of what is sent beside the conversation; blocks are sent in order, byte-stable within a session.

    ``row`` is its row in ``/context``, ``group`` and ``label`` its child there, ``path`` the file to edit.
    """

    row: RowId
    text: str
    group: str = ""
    label: str = ""
    path: str | None = None


@dataclass(slots=True)
class ReplayRule:
    """The facts known, beside the conversation itself, about which of it may go back to a model, and how.

    ``left_out`` are answers whose reasoning was left out of the prefix that the provider has in its cache: sent again
    it would silently rewrite all of it. ``bound``: this model at this server was seen to refuse signatures behind
    another prefix. ``ask_drop`` False: the server refuses to be asked to drop them itself. ``adaptations`` are what
    else it refuses. ``until`` are answers up to which nothing that their maker signed goes back, and ``text_until``
    messages up to which calls go as text: these were refused, and later ones may be right. ``most_media`` are the bytes
    of pictures and files that it takes in one request, as far as refusals have taught.
    """

    left_out: list[str] = field(default_factory=list)
    bound: bool = False
    ask_drop: bool = True
    adaptations: list[Adaptation] = field(default_factory=list)
    until: list[str] = field(default_factory=list)
    text_until: list[str] = field(default_factory=list)
    most_media: int | None = None

    def needs(self, adaptation: Adaptation) -> bool:
        """Says whether the request is to be made in that way."""
        return adaptation in self.adaptations


@dataclass(slots=True, frozen=True)
class Reckoned:
    """The figures of a request as it is sent, in the words of ``/context``: ``total`` tokens of input, the ``limit``
    beyond which would be compacted (None: not known), and whether it would."""

    total: int
    limit: int | None
    would_compact: bool


@dataclass(slots=True)
class ModelRequest:
    """One model call. ``documents`` and the system blocks are the request prefix."""

    id: str
    spec: ModelSpec
    session_id: str
    system: list[SystemBlock]
    messages: list[SentMessage]
    """The conversation as it will be sent."""
    tools: list[ToolSchema]
    max_output: int | None
    effort: Effort
    fixed_fingerprint: str = ""
    """Of system and tools."""
    timeout: float = 120.0
    """Seconds without a byte."""
    content_timeout: float = 600.0
    """Seconds in which bytes come, but nothing of the answer."""
    answer_timeout: float = 0.0
    """Seconds for all of it; 0 for as long as it takes."""
    documents: list[SystemBlock] = field(default_factory=list)
    kind: StepKind = "turn"
    """What the call is for: a provider sends all kinds alike, a scripted one answers them differently."""
    replay: ReplayRule = field(default_factory=ReplayRule)
    output_schema: Metadata | None = None
    """The JSON Schema that the last answer of the run has to fit."""
    output_due: bool = False
    """This request is for that answer, no tool is needed for it."""
    media: Media = ALL_MEDIA
    """What the server was not seen to refuse of pictures and files."""
    capped: bool = False
    """``max_output`` is what a budget has room for: it holds over what the model's own settings ask for."""
    sent_before: int = 0
    """So many of the messages were sent by the newest request that they begin with, where that was not the last one:
    after an undo, or on another branch. 0 otherwise."""
    reckoned: Reckoned | None = None
    """None while its parts are still being counted."""


@dataclass(slots=True, frozen=True)
class Delta:
    """A change to part number ``index`` of the answer (parts are numbered in order of appearance from 0).

    ``text`` is appended (for a tool call: to its raw arguments). ``metadata``, when given, replaces the part's
    ``provider_metadata``. ``closed`` means the part takes no more text. For tool calls ``call_id`` and ``name`` are
    given on the first delta. A text whose delta is of ``reasoning`` turned out to be a thought.
    """

    index: int
    kind: Literal["text", "reasoning", "tool_call", "search"]
    text: str = ""
    metadata: Metadata | None = None
    closed: bool = False
    call_id: str | None = None
    name: str | None = None


@dataclass(slots=True, frozen=True)
class UsageReport:
    """Usage, as soon as it is known; a later report of the same step replaces it."""

    usage: TokenUsage
    cost_usd: float | None = None
    problem: str | None = None
    """Why the report is not believed, where that shows from itself."""
    believed: TokenUsage | None = None
    """The estimate that stands in for it then; None where ``usage`` is one already."""
    model: str = ""
    """The model that answered, as the answer names it; empty where it does not."""


@dataclass(slots=True, frozen=True)
class Started:
    """The request is on its way; ``target`` is what was resolved, ``notes`` what the user should be told
    (for instance "Thinking is off: the maximum output leaves no room for it.")."""

    target: Target
    notes: tuple[str, ...] = ()


@dataclass(slots=True, frozen=True)
class Finished:
    """The answer ended as the provider meant it to. ``dropped`` are the places of reasoning blocks that it says it left
    out of the request (``messages.1.content.0``), none where it says nothing."""

    reason: FinishReason
    message_metadata: Metadata | None = None
    dropped: list[str] = field(default_factory=list)
    words: str = ""
    """How the provider calls that reason."""


@dataclass(slots=True, frozen=True)
class Failed:
    """The answer ended in a failure; always the last item of a stream. Streams never raise for provider errors."""

    failure: Failure


StreamItem: TypeAlias = Started | Delta | UsageReport | Finished | Failed


class Provider(Protocol):
    """A source of answers. ``stream`` ends with exactly one ``Finished`` or ``Failed``; closing it cancels the call."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]: ...

    async def describe(self, spec: ModelSpec) -> ModelInfo:
        """Returns what is known about the model. Never raises for an unknown one: ``problem`` then says why."""
        ...

    async def count_exact(self, request: ModelRequest) -> int | None:
        """The provider's own count of the request's input tokens; None where it has no such endpoint or it failed."""
        ...


class Counter(Protocol):
    """Counts o200k_base tokens by kind."""

    @property
    def running(self) -> bool:
        """Whether it answers at once, without a process that has to be started."""
        ...

    async def count(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        """Counts by kind (``models.calibration.KINDS``) in the order given. Raises WorkerError when no tokenizer can be
        had."""
        ...
