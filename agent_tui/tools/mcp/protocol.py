"""The messages between the program and the tool host, in both directions.

A server's state is told with each change; each request has one answer, or Refused. Servers ask, too: their questions
have ids of their own, and an answer each.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from agent_tui.config import McpServer
from agent_tui.models.messages import Metadata
from agent_tui.pipes.pipe import PipeLanguage, Refused
from agent_tui.records import dataclass

LOG_VARIABLE = "AGENT_TUI_HOST_LOG"
"""Environment variable naming the file that takes whatever libraries print; without it that is thrown away."""

TEXT_LIMIT = 5_000_000
"""Characters of one result's text that cross the pipe; what is longer is cut, visibly."""

DATA_LIMIT = 14_000_000
"""Characters of base64 of one image that cross the pipe, about 10 MB of image."""

ServerState = Literal["starting", "connected", "failed", "disabled", "untrusted"]


@dataclass(slots=True, frozen=True)
class Servers:
    """All that should run, by name; ``roots`` are the folders that they are told of."""

    servers: dict[str, McpServer]
    roots: list[str] = field(default_factory=list)


@dataclass(slots=True, frozen=True)
class Reconnect:
    server: str


@dataclass(slots=True, frozen=True)
class CancelRequest:
    """Nobody waits for the request of this id any more."""


@dataclass(slots=True, frozen=True)
class CallTool:
    """Answered with ToolAnswer, and Progress before it."""

    server: str
    tool: str
    arguments: Metadata


@dataclass(slots=True, frozen=True)
class ReadResource:
    """Answered with Contents."""

    server: str
    uri: str


@dataclass(slots=True, frozen=True)
class FillPrompt:
    """Answered with PromptAnswer."""

    server: str
    name: str
    arguments: dict[str, str]


@dataclass(slots=True, frozen=True)
class SignInRequest:
    """Signs in by OAuth. Answered with Told (where the token is kept), and Progress before it: the address that the
    user has to open."""

    server: str


@dataclass(slots=True, frozen=True)
class Paste:
    """The address that a browser on another machine ended on, for the sign-in that waits for it. Answered with Told."""

    server: str
    address: str


@dataclass(slots=True, frozen=True)
class SignOut:
    """Answered with Told: empty where no token was kept."""

    server: str


Request = CallTool | ReadResource | FillPrompt | SignInRequest | Paste | SignOut


@dataclass(slots=True, frozen=True)
class ToolEntry:
    """A tool as its server describes it. ``schema`` should be a JSON Schema object. The server's claims: that it only
    reads, that it may destroy, that it reaches beyond the server; what it does not say is taken as the protocol has it.
    """

    name: str
    description: str
    schema: Metadata
    read_only: bool = False
    destructive: bool = True
    open_world: bool = True


@dataclass(slots=True, frozen=True)
class ResourceEntry:
    uri: str
    name: str
    description: str
    media_type: str


@dataclass(slots=True, frozen=True)
class PromptArgument:
    name: str
    required: bool


@dataclass(slots=True, frozen=True)
class PromptEntry:
    name: str
    description: str
    arguments: list[PromptArgument]


@dataclass(slots=True, frozen=True)
class Entries:
    """The offer of a connected server, in its order; ``instructions`` are what it says of its use. ``reads``: it has
    resources, listed or not. ``left_out`` names what of it cannot be used, and why."""

    tools: list[ToolEntry] = field(default_factory=list)
    instructions: str = ""
    resources: list[ResourceEntry] = field(default_factory=list)
    prompts: list[PromptEntry] = field(default_factory=list)
    reads: bool = False
    left_out: list[str] = field(default_factory=list)


@dataclass(slots=True, frozen=True)
class ServerChange:
    """A server's state, a line about it, and its offer where it is connected."""

    server: str
    state: ServerState
    detail: str = ""
    offer: Entries | None = None


@dataclass(slots=True, frozen=True)
class Children:
    """The processes that the host has started."""

    pids: list[int]


@dataclass(slots=True, frozen=True)
class Progress:
    text: str


@dataclass(slots=True, frozen=True)
class Image:
    """``data`` is base64."""

    media_type: str
    data: str


@dataclass(slots=True, frozen=True)
class ToolAnswer:
    text: str
    is_error: bool = False
    images: list[Image] = field(default_factory=list)
    waited: float = 0.0
    """Seconds that the user was waited for meanwhile."""


@dataclass(slots=True, frozen=True)
class ResourceContent:
    """One content of a resource: ``text``, or ``data`` in base64."""

    uri: str
    media_type: str
    text: str | None = None
    data: str | None = None


@dataclass(slots=True, frozen=True)
class Contents:
    contents: list[ResourceContent]


@dataclass(slots=True, frozen=True)
class PromptAnswer:
    """A prompt's messages one after the other."""

    text: str


@dataclass(slots=True, frozen=True)
class Elicit:
    """A server asks the user to fill in a form, or (``url``) to open an address. Answered with Elicited."""

    server: str
    text: str
    schema: Metadata = field(default_factory=dict)
    url: str = ""


@dataclass(slots=True, frozen=True)
class Elicited:
    """``values`` is what a form was filled in with."""

    action: Literal["accept", "decline", "cancel"]
    values: Metadata = field(default_factory=dict)


@dataclass(slots=True, frozen=True)
class Withdrawn:
    """The server waits no more for the answer to the question of this id."""


@dataclass(slots=True, frozen=True)
class Told:
    text: str


@dataclass(slots=True, frozen=True)
class MayStart:
    """Before each start of a server's program. Answered with Start, or Refused and why it may not be started."""

    server: str


@dataclass(slots=True, frozen=True)
class ServerStart:
    """The absolute program, and all of its environment."""

    program: str
    environment: dict[str, str]


@dataclass(slots=True, frozen=True)
class Relay:
    """A message for a server inside the program that drives the run. Answered with Relayed, or Refused."""

    server: str
    message: Metadata


@dataclass(slots=True, frozen=True)
class Relayed:
    """What that server says to it; what it says to a notification means nothing."""

    message: Metadata


TO_HOST = PipeLanguage(
    {
        "servers": Servers,
        "reconnect": Reconnect,
        "cancel": CancelRequest,
        "call": CallTool,
        "read": ReadResource,
        "prompt": FillPrompt,
        "elicited": Elicited,
        "start": ServerStart,
        "relayed": Relayed,
        "refused": Refused,
        "sign_in": SignInRequest,
        "paste": Paste,
        "sign_out": SignOut,
    }
)
FROM_HOST = PipeLanguage(
    {
        "server": ServerChange,
        "children": Children,
        "progress": Progress,
        "answer": ToolAnswer,
        "contents": Contents,
        "filled": PromptAnswer,
        "told": Told,
        "refused": Refused,
        "elicit": Elicit,
        "may_start": MayStart,
        "relay": Relay,
        "withdrawn": Withdrawn,
    }
)
