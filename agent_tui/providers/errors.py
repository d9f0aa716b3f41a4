"""Errors of providers and the network, told apart and put into words: every kind of ``Failure``.

Works on what is seen of an error (attributes, names of classes, words), so that nothing of a library is imported here,
and the gateway can send it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from agent_tui.models.failure import RETRYABLE, Failure, FailureKind, Overflow
from agent_tui.providers.catalog import Called
from agent_tui.providers.dialects.endings import BadEnd, Ending
from agent_tui.providers.failure_lines import (
    DETAIL_LIMIT,
    MISSING_PACKAGE,
    NO_CREDIT,
    failure,
    without_advertising,
    words_of,
)
from agent_tui.providers.overflow import is_overflow, sizes
from agent_tui.providers.refusals import names_history, speaks_of_bytes
from agent_tui.providers.secrets import redact
from agent_tui.providers.waits import reset_after, retry_after, said_wait, wants_retry
from agent_tui.records import dataclass

_REFUSED = re.compile(
    r"content[_ ]policy|content[_ ]filter|content management policy|responsibleaipolicy|safety system|usage policy|"
    r"prohibited_content|blocked by .{0,30}(?:safety|filter|guardrail)|moderation",
    re.I,
)
_OVERLOADED = re.compile(
    r"overloaded|over capacity|at capacity|temporarily unavailable|high demand|try again later|"
    r"server_error|internal_error|\bapi_error|internal server error|service_unavailable",
    re.I,
)
_RATE = re.compile(r"rate_limit_e(?:rror|xceeded)|too_many_requests|resource_exhausted", re.I)
_BAD_KEY = re.compile(r"api[-_ ]?key (?:not valid|is invalid)|api_key_invalid|invalid api key", re.I)
_AUTH = re.compile(
    r"(?:invalid|incorrect|missing|no|expired) (?:x-)?api[-_ ]?key|"
    r"api[-_ ]?key (?:is |was )?(?:not valid|invalid|missing|not set|not found|required|must be set)|"
    r"authentication|unauthorized|api_key client option must be set|unable to locate credentials|permission[_ ]denied",
    re.I,
)
_MISSING_MODEL = re.compile(
    r"model.{0,80}(?:not found|does not exist|not exist|not available|unknown)|"
    r"not_found_error|model_not_found|no such model|invalid model name",
    re.I | re.S,
)
_CUT = re.compile(
    r"incomplete (?:chunked )?read|peer closed connection|connection (?:was )?(?:reset|closed|lost|aborted)|"
    r"payload is not completed|transferencodingerror|contentlengtherror|server disconnected|premature|unexpected eof|"
    r"not enough data|response ended",
    re.I,
)
_LOST = re.compile(r"(?:^|[:\-]\s*)connection error\.?\s*(?:$|\n)", re.IGNORECASE | re.MULTILINE)
"""All that is left of a lost connection where LiteLLM made a status (500) of it."""
_NO_HTTP = re.compile(
    r"bad status line|illegal (?:status line|header)|plain HTTP request was sent to (?:the )?HTTPS|"
    r"client sent an HTTP request to an HTTPS server",
    re.I,
)
_NO_HTTP_NAMES = frozenset({"BadStatusLine", "InvalidHeader", "LineTooLong"})
_CONNECT_NAMES = frozenset(
    {"ConnectError", "ConnectionRefusedError", "ClientConnectorError", "gaierror", "ConnectTimeout"}
)
_NETWORK_NAMES = _CONNECT_NAMES | {
    *("RemoteProtocolError", "ReadError", "ClientPayloadError", "ServerDisconnectedError", "IncompleteRead"),
    *("SSLError", "ConnectionResetError", "BrokenPipeError"),
}
_TIMEOUT_NAMES = frozenset(
    {"Timeout", "APITimeoutError", "TimeoutError", "ReadTimeout", "ConnectTimeout", "PoolTimeout"}
    | {"SocketTimeoutError", "ServerTimeoutError"}
)
_UPSTREAM = re.compile(
    r"network[ _]?error|upstream|timed? ?out|timeout|unexpected eof|econn|socket|connection|terminated|aborted|"
    r"bad gateway|fetch failed|provider returned error|unavailable|try again",
    re.IGNORECASE,
)
"""What gateways send in the place of an answer where what is behind them failed."""
_INVALID = re.compile(
    r"invalid_(?:request|argument|prompt|image|base64|value|function)|bad_?request|unsupported_|request_too_large",
    re.IGNORECASE,
)
"""Kinds of an error inside a stream that will be the same next time."""
_REFUSALS = (None, 400, 413, 422, 500)
"""Statuses with which a request is refused for its size; None where an error arrives inside a stream."""

_UNABLE = re.compile(
    r"--jinja\b|jinja template|chat template|parser for this template|\btemplate: ?[\w.]*:\d+|at row \d+, column \d+|"
    r"conversation roles must|failed to parse (?:messages|tools|tool call|input at)|error parsing tool call|"
    r"does not support (?:tools|images|thinking|chat)|parse grammar|json schema conversion failed|unrecognized schema|"
    r"(?:image|audio|tool|tool_choice)s? (?:input |param |call )?(?:is|are) not supported|not supported by this model",
    re.IGNORECASE,
)
"""What servers of one's own answer with 500 that will be the same next time: what the model, its template or the way
it was started cannot do."""

SHOWN = 120
"""Characters of an answer that is no model's, for the line that says so."""


class StreamError(Exception):
    """An error the provider sent as an event of a stream that had begun with status 200."""

    def __init__(self, event: Mapping[str, Any]) -> None:
        inner = event.get("error")
        inner = inner if isinstance(inner, Mapping) else event
        self.message = words_of(dict(inner)) or "error event"
        self.body = dict(inner)
        code = inner.get("code", inner.get("status_code"))
        self.status_code = int(code) if str(code).isdigit() else None
        super().__init__(self.message)


class NotAnAnswerError(Exception):
    """Status 200, and yet nothing that a model's API sends: a login page, another program's words."""

    def __init__(self, content_type: str, head: bytes) -> None:
        text = head.decode("utf-8", "replace").strip()
        try:
            words = words_of(json.loads(text))
        except (ValueError, RecursionError):
            words = words_of(text)
        shown = " ".join((words or text).split())
        more = "…" if len(shown) > SHOWN else ""
        kind = content_type.partition(";")[0].strip()[:60] or "no content type"
        super().__init__(f"{kind} “{shown[:SHOWN]}{more}”")


@dataclass(slots=True, frozen=True)
class SeenFailure:
    """What is seen of an error: ``own`` are the names of its classes, ``names`` of those beneath it, too."""

    own: list[str]
    names: list[str]
    text: str
    status: int | None = None
    headers: list[dict[str, str]] = field(default_factory=list)


class GatewayError(Exception):
    """An error in the gateway's library."""

    def __init__(self, seen: SeenFailure) -> None:
        super().__init__(seen.text)
        self.seen = seen


def chain(error: BaseException) -> list[BaseException]:
    """The error and what lies beneath it: a library's ``original_exception``, then causes and contexts."""
    found: list[BaseException] = []
    queue: list[object] = [error]
    while queue and len(found) < 20:
        current = queue.pop(0)
        if isinstance(current, BaseException) and not any(current is known for known in found):
            found.append(current)
            queue += [getattr(current, "original_exception", None), current.__cause__, current.__context__]
    return found


def seen_of(error: BaseException) -> SeenFailure:
    if isinstance(error, GatewayError):
        return error.seen
    errors = chain(error)
    text = "\n".join(dict.fromkeys(t for t in map(_text, errors) if t))
    headers = [found for error in errors for found in _headers(error)]
    return SeenFailure(sorted(_names(error)), sorted(_names(*errors)), text, _http_status(errors), headers)


def classify(error: BaseException, called: Called, model: str, started: bool, secrets: Iterable[str] = ()) -> Failure:
    """The failure an exception stands for. ``started``: part of the answer had arrived. Never raises."""
    seen = seen_of(error)
    names, text, status, headers = set(seen.names), seen.text, seen.status, seen.headers
    told = sizes(text) if status in _REFUSALS else None
    kind = kind_of(seen, started)
    if kind not in ("context_overflow", "invalid_request"):
        told = None
    elif told is not None:
        kind = "invalid_request" if told.only_output else "context_overflow"
    if kind == "context_overflow" and started:
        told = replace(told or Overflow(), answering=True)
    if kind == "connection" or (kind in ("interrupted_stream", "timeout", "bad_answer") and status in (500, 503)):
        status = None
    detail = redact(without_advertising(text), secrets)[:DETAIL_LIMIT]
    wait = _wait(kind, headers, text)
    again = next((said for one in headers if (said := wants_retry(one)) is not None), None)
    again = None if kind == "context_overflow" else again
    return replace(failure(kind, called, model, detail, status, wait, names, told, started), again=again)


def _wait(kind: FailureKind, headers: Sequence[Mapping[str, str]], text: str) -> float | None:
    """Seconds that the provider asks to wait: by the header that is made for it, by its words, or where only the rate
    of requests was too high by when its limits are reset."""
    now = time.time()
    waits = [retry_after(one, now) for one in headers]
    if kind in RETRYABLE:
        waits.append(said_wait(text))
    if kind == "rate_limit":
        waits += [reset_after(one, now) for one in headers]
    return next((wait for wait in waits if wait is not None), None)


_BAD_ENDS: dict[Ending, FailureKind] = {
    "overflow": "context_overflow",
    "broken": "overloaded",
    "rejected": "invalid_request",
    "unknown": "empty_answer",
}


def bad_end_failure(end: BadEnd, called: Called, model: str, started: bool) -> Failure:
    """The failure of an answer that ended in a way that leaves none. ``started``: part of it had arrived."""
    kind = _BAD_ENDS[end.ending]
    if started and end.ending in ("broken", "unknown"):
        kind = "interrupted_stream"
    overflow = Overflow(text=end.words, answering=True) if kind == "context_overflow" else None
    said = f"it ended with “{end.words}”"
    return failure(kind, called, model, said, names={"BadEnd"}, overflow=overflow, started=started)


def _names(*errors: BaseException) -> set[str]:
    return {cls.__name__ for error in errors for cls in type(error).__mro__}


@dataclass(slots=True, frozen=True)
class FailureRule:
    """A failure is of this kind where everything given fits."""

    kind: FailureKind
    status: Container[int | None] | None = None
    own: frozenset[str] = frozenset()
    """The error is of one of these classes."""
    names: frozenset[str] = frozenset()
    """It, or what lies beneath it, is."""
    says: Callable[[str], object] | None = None
    started: bool | None = None
    """Part of the answer had arrived."""
    unless: frozenset[str] = frozenset()

    def fits(self, seen: SeenFailure, started: bool) -> bool:
        return (
            (self.status is None or seen.status in self.status)
            and self.started in (None, started)
            and not (self.own and self.own.isdisjoint(seen.own))
            and not (self.names and self.names.isdisjoint(seen.names))
            and self.unless.isdisjoint(seen.names)
            and (self.says is None or bool(self.says(seen.text)))
        )


def _classes(*names: str) -> frozenset[str]:
    return frozenset(names)


def _is_lost(text: str) -> bool:
    return bool(_LOST.search(text) or _CUT.search(text))


_LIBRARYS = _classes("APIConnectionError", "InternalServerError")
RULES = (
    FailureRule("context_overflow", status=_REFUSALS, says=is_overflow),
    FailureRule("too_large", status={413}),
    FailureRule("too_large", status={400, None}, says=speaks_of_bytes),
    FailureRule("context_overflow", names=_classes("ContextWindowExceededError")),
    FailureRule("bad_answer", own=_classes("NotAnAnswerError")),
    FailureRule("invalid_request", names=_classes("ModuleNotFoundError", "ImportError")),
    FailureRule("invalid_request", says=MISSING_PACKAGE.search),
    FailureRule("content_refused", names=_classes("ContentPolicyViolationError")),
    FailureRule("timeout", names=_TIMEOUT_NAMES, unless=_classes("RateLimitError")),
    FailureRule("connection", status={500, 502, 503}, names=_CONNECT_NAMES),
    FailureRule("bad_answer", names=_NO_HTTP_NAMES, started=False),
    FailureRule("bad_answer", says=_NO_HTTP.search, started=False),
    FailureRule("bad_answer", status={None}, names=_classes("JSONDecodeError", "UnicodeDecodeError"), started=False),
    FailureRule("interrupted_stream", names=_NETWORK_NAMES, started=True),
    FailureRule("connection", names=_NETWORK_NAMES),
    FailureRule("interrupted_stream", status={None, 500}, own=_LIBRARYS, says=_is_lost, started=True),
    FailureRule("connection", status={None, 500}, own=_LIBRARYS, says=_is_lost),
    FailureRule("auth", says=NO_CREDIT.search),
    FailureRule("content_refused", status={403}, says=_REFUSED.search),
    FailureRule("auth", status={401, 402, 403}),
    FailureRule("auth", own=_classes("AuthenticationError", "PermissionDeniedError")),
    FailureRule("rate_limit", status={429}),
    FailureRule("rate_limit", own=_classes("RateLimitError")),
    FailureRule("rate_limit", says=_RATE.search),
    FailureRule("invalid_request", status={400, 404, 500, 501, None}, says=names_history),
    FailureRule("not_found", status={404}),
    FailureRule("not_found", own=_classes("NotFoundError")),
    FailureRule("timeout", status={408}),
    FailureRule("invalid_request", status={500, 501, None}, says=_UNABLE.search),
    FailureRule("overloaded", status={503, 529}),
    FailureRule("overloaded", says=lambda text: "overloaded_error" in text.lower()),
    FailureRule("content_refused", status={400, 422, None}, says=_REFUSED.search),
    FailureRule("auth", status={400, 422}, says=_BAD_KEY.search),
    FailureRule("not_found", status={400}, says=_MISSING_MODEL.search),
    FailureRule("invalid_request", status=range(400, 500)),
    FailureRule("overloaded", status=range(500, 600)),
    FailureRule("overloaded", says=_OVERLOADED.search),
    FailureRule("auth", says=_AUTH.search),
    FailureRule("invalid_request", status={None}, own=_classes("StreamError"), says=_INVALID.search),
    FailureRule("interrupted_stream", started=True),
    FailureRule("overloaded", own=_classes("StreamError"), says=_UPSTREAM.search),
    FailureRule("connection", names=_classes("OSError")),
    # The library's name for whatever it did not expect of an answer; a lost connection is told apart above.
    FailureRule("empty_answer", names=_classes("APIConnectionError")),
)
"""The kinds of failures: the first rule that fits."""


def kind_of(seen: SeenFailure, started: bool) -> FailureKind:
    """The kind of a failure. ``started``: part of the answer had arrived."""
    return next((rule.kind for rule in RULES if rule.fits(seen, started)), "invalid_request")


def _text(error: BaseException) -> str:
    message = getattr(error, "message", None)
    text = message if isinstance(message, str) and message else str(error)
    body = getattr(error, "body", None)
    if isinstance(body, (dict, str)) and body and str(body) not in text:
        text = f"{text}\n{body}"
    return text or type(error).__name__


def _http_status(errors: list[BaseException]) -> int | None:
    """The status of the response itself where it is still there (LiteLLM turns 413 into 400 and 529 into 500), else
    the first one given. LiteLLM gives connection errors and timeouts made-up statuses (500, 408)."""
    made_up = {"APIConnectionError", "APITimeoutError", "MidStreamFallbackError"}
    found = [(e, s) for e in errors if not _names(e) & made_up and (s := _status(e)) is not None]
    return next((s for e, s in found if type(e).__name__ == "HTTPStatusError"), found[0][1] if found else None)


def _status(error: BaseException) -> int | None:
    for holder in (error, getattr(error, "response", None)):
        value = getattr(holder, "status_code", None) or getattr(holder, "status", None)
        if isinstance(value, (int, str)) and str(value).isdigit() and 400 <= int(value) < 600:
            return int(value)
    return None


def _headers(error: BaseException) -> list[dict[str, str]]:
    holders = (
        getattr(error, "litellm_response_headers", None),
        getattr(error, "headers", None),
        getattr(getattr(error, "response", None), "headers", None),
    )
    return [{str(k): str(v) for k, v in holder.items()} for holder in holders if isinstance(holder, Mapping)]
