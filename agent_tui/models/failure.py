"""Provider failures as values: they cross the worker's pipe, end up in events and on the stored step."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any, Literal

from agent_tui.records import dataclass
from agent_tui.text.secrets import without_keys

FailureKind = Literal[
    "auth",
    "not_found",
    "rate_limit",
    "overloaded",
    "context_overflow",
    "too_large",
    "invalid_request",
    "timeout",
    "connection",
    "interrupted_stream",
    "empty_answer",
    "bad_answer",
    "content_refused",
    "worker",
    "store",
    "budget",
    "hook",
]

Adaptation = Literal[
    "no item ids",
    "no reasoning",
    "reasoning everywhere",
    "short call ids",
    "media",
    "calls as text",
    "system as text",
    "no thinking",
    "no tools",
]
"""How a request is made otherwise for a server that refused it as it was: the ids that it gave items do not go back,
or no reasoning does; every answer has a field for its reasoning; ids of calls are short; pictures and files go as
words (``ModelInfo`` knows those of which more is known); calls and results are text of the model and the user, in turn;
the system prompt begins the user's first message; the model is not asked to think; no tools are declared."""

INTERRUPTED = "Interrupted."
"""Said of an answer that the user ended."""

BEGINS_AGAIN = "Interrupted. The answer begins again."
"""Said of an answer that broke off and is asked for again: what came of it before is replaced."""

ARRIVED_KEPT = "What arrived is kept."
"""Said of an answer that ended in its middle."""

TEXT_KEPT = "Your text is kept."
"""Said of every failure that leaves the user's message unanswered: it need not be typed again."""

GO_ON = "Send “continue” to go on, or /rewind to ask again."
"""What can be done where an answer ended in its middle."""

_IN_A_SHELL = {
    GO_ON: "agent-tui -c -p continue goes on from there.",
    "with /model": "with -m",
    "Run /compact, or choose": "Begin a new session, or choose",
    ", run /compact to make room all the same": "",
    "Drop it with /context, /rewind to before it, or": "Begin a new session, or",
    "/context undo sends": "agent-tui context undo sends",
    "/context shows it": "agent-tui context --rows shows it",
}
"""What is said of ways on to who has no chat."""

RETRYABLE: frozenset[str] = frozenset(
    {"rate_limit", "overloaded", "timeout", "connection", "interrupted_stream", "empty_answer", "worker"}
)

NOT_BILLED: frozenset[FailureKind] = frozenset(
    {
        *("auth", "not_found", "rate_limit", "overloaded", "context_overflow", "too_large", "invalid_request"),
        *("content_refused", "connection"),
    }
)
"""Calls that were refused, or reached nobody. Where nothing of an answer came and no usage was reported, they cost
nothing; of a call that was cut off nobody knows what it cost."""


@dataclass(slots=True, frozen=True)
class Overflow:
    """The sizes that a refusal states, in tokens; None is what it does not say.

    ``input`` is the prompt as the provider counted it (``exact`` unless it says "about" or "at least"), ``output`` the
    answer that was asked for. ``total`` is a size of which the text does not say whether it holds the output.
    ``window`` is the whole context, ``max_input`` the largest prompt, ``max_output`` the model's longest answer.
    ``text`` is the passage the numbers were read from.
    """

    input: int | None = None
    output: int | None = None
    total: int | None = None
    window: int | None = None
    max_input: int | None = None
    max_output: int | None = None
    exact: bool = True
    text: str = ""
    answering: bool = False
    """The answer itself ran into the end of the window: a shorter one would end there, too."""

    @property
    def only_output(self) -> bool:
        """True when the text complains of the answer's length alone: any prompt would have been refused."""
        return self.max_output is not None and self.input is None and self.window is None and self.max_input is None


@dataclass(slots=True, frozen=True)
class Failure:
    """Why a step failed. ``message`` is one line for the user, secrets removed; ``detail`` is the provider's own text.

    ``retry_after`` is in seconds, where the provider said so. ``status`` is the HTTP status where there was one.
    ``overflow`` are the sizes of a refusal as too long, where the text says any. ``way`` is what can be done about it:
    the end of ``message``, in our own words.
    """

    kind: FailureKind
    message: str
    detail: str = ""
    status: int | None = None
    retry_after: float | None = None
    overflow: Overflow | None = None
    again: bool | None = None
    """Whether it may be tried again, where that does not follow from its kind: the server says so, or a limit of the
    user's is reached."""
    way: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", without_keys(self.message, fields=False))
        object.__setattr__(self, "detail", without_keys(self.detail, fields=False))

    @property
    def retryable(self) -> bool:
        return self.kind in RETRYABLE if self.again is None else self.again

    @property
    def cause(self) -> str:
        """What happened, without what is kept and what can be done about it."""
        for kept in (TEXT_KEPT, ARRIVED_KEPT):
            before, there, _ = self.message.rpartition(kept)
            if there:
                return before.strip()
        return self.message.removesuffix(self.way).strip()


def make_failure(kind: FailureKind, cause: str, way: str = "", *, kept: str = TEXT_KEPT, **more: Any) -> Failure:
    """A failure with its line: what happened, whether anything is lost, what can be done."""
    return Failure(kind, " ".join(filter(None, (cause, kept, way))), way=way, **more)


def with_more(failure: Failure, words: str) -> Failure:
    """The same with another sentence on what can be done."""
    return replace(failure, message=f"{failure.message} {words}", way=f"{failure.way} {words}".lstrip())


def without_text_kept(failure: Failure) -> Failure:
    """The same of a call that nobody typed a text for: a summary, a subagent's, one that goes on from a tool's
    result."""
    before, kept, after = failure.message.rpartition(TEXT_KEPT)
    return replace(failure, message=f"{before}{after.lstrip()}".strip()) if kept else failure


def without_ways(failure: Failure) -> Failure:
    """The same of a call that is made again by itself: nothing is kept, and nothing to be done."""
    return replace(failure, message=failure.cause or failure.message, way="")


def in_a_shell(message: str, way: str) -> str:
    """The line of a failure or a notice for a run without a chat; ``way`` is how it ends."""
    said = message.removesuffix(way).rstrip().removesuffix(TEXT_KEPT).rstrip()
    for chat, shell in _IN_A_SHELL.items():
        way = way.replace(chat, shell)
    return f"{said} {way}".strip()


def inner_failure(error: Exception, unsent: bool = False) -> Failure:
    """An error of our own that ended a turn. ``unsent``: the user's message waits."""
    kept = f" {TEXT_KEPT}" if unsent else ""
    return Failure("invalid_request", f"Internal error: {error}. See the log for details.{kept}")
