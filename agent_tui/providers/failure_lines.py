"""The lines that users read when a call fails: what happened, whether their text is safe, what to do. Also what a
server says in the body of an error, and what its refusals teach."""

from __future__ import annotations

import ast
import html
import json
import re
from collections.abc import Iterable
from typing import Any, Literal

from agent_tui.models.failure import TEXT_KEPT, Failure, FailureKind, Overflow
from agent_tui.providers.catalog import Called, dialect_of
from agent_tui.providers.net import BoundError, RedirectError
from agent_tui.providers.secrets import redact
from agent_tui.text.clean import printable, program_output
from agent_tui.text.numbers import duration

DETAIL_LIMIT = 4_000
"""Characters of the provider's own text that are kept."""

NO_CREDIT = re.compile(
    r"insufficient[_ ]quota|credit balance|insufficient (?:credits|balance|funds)|billing_(?:hard_limit|not_active)",
    re.IGNORECASE,
)
MISSING_PACKAGE = re.compile(
    r"No module named ['\"]([\w.]+)|Install it with: ?(pip install [^\n]+)|(SDK not found)", re.I
)
_TLS = re.compile(r"\[SSL:|certificate verify|CERTIFICATE_VERIFY|sslv3|tlsv1|wrong version number", re.IGNORECASE)
_HTTPS_WANTED = re.compile(r"to (?:the |an )?HTTPS|\\x15\\x03|\x15\x03", re.IGNORECASE)
"""What servers say, or send (a TLS alert), to a request that was not encrypted."""
_TLS_NAMES = frozenset({"SSLError", "SSLCertVerificationError", "ClientConnectorSSLError"})
_ADVERTISING = re.compile(
    r"\n?\s*(?:Give Feedback / Get Help|LiteLLM\.Info|LiteLLM Retried|This looks like a bug in LiteLLM).*"
)


def failure(
    kind: FailureKind,
    *,
    provider: str,
    model: str,
    detail: str = "",
    status: int | None = None,
    wait: float | None = None,
    names: Iterable[str] = (),
    address: str | None = None,
    key_env: str | None = None,
    overflow: Overflow | None = None,
) -> Failure:
    """A failure with its line for the user: what happened, whether their text is safe, what to do. ``address`` is the
    configured one, if any; only what is no secret of it is told. ``key_env`` is the configured variable of the key."""
    line = _line(kind, Called(provider, address, key_env), model, detail, status, wait, set(names))
    if overflow is not None and kind == "context_overflow" and _answer_too_long(overflow):
        what = f"The conversation and the answer asked for are together larger than {model} accepts"
        line = (
            f"{what}{f' (HTTP {status})' if status else ''}{_said(detail)} {TEXT_KEPT} Use /compact, or another model."
        )
    return Failure(kind, line, detail, status, wait, overflow)


def _answer_too_long(overflow: Overflow) -> bool:
    """Returns whether the conversation alone would have fitted."""
    if overflow.input is None or overflow.output is None or overflow.window is None:
        return False
    return overflow.input < overflow.window


def bound_failure(error: BoundError, provider: str, started: bool, address: str | None = None) -> Failure:
    """The failure of a call that reached one of our own bounds. ``address`` is the configured one, if any."""
    kept = "What arrived is kept." if started else TEXT_KEPT
    text = without_advertising(str(error))
    called = Called(provider, address)
    # A redirect's own words begin with the address.
    who = "" if called.own and isinstance(error, RedirectError) else f"{called.first}: "
    return Failure(error.kind, f"{who}{text} {kept}", text)


def _line(
    kind: FailureKind,
    called: Called,
    model: str,
    detail: str,
    status: int | None,
    wait: float | None,
    names: set[str],
) -> str:
    provider = called.provider
    http = f" (HTTP {status})" if status else ""
    said = "." if detail == f"HTTP {status}" else _said(detail)
    other = "choose another model with /model"
    match kind:
        case "auth":
            return f"{_auth(called, detail, status)}{http}{said} {TEXT_KEPT} {called.give_key}"
        case "not_found":
            what = f"{called.first_place} does not know the model {model}, or the address is wrong"
            return f"{what}{http}{said} {TEXT_KEPT} Check the name and api_base, or {other}."
        case "rate_limit":
            when = f" It asks to wait {duration(wait)}." if wait else ""
            return f"{called.first} limits the rate of requests{http}{said}{when} {TEXT_KEPT} Try again, or {other}."
        case "overloaded":
            return f"{called.first} is overloaded or failing{http}{said} {TEXT_KEPT} Try again in a moment."
        case "context_overflow":
            what = f"The conversation is larger than {model} accepts"
            return f"{what}{http}{said} {TEXT_KEPT} Use /compact, or a larger model with /model."
        case "invalid_request" if MISSING_PACKAGE.search(detail):
            what = f"{provider} needs a Python package that is not installed{_package(provider, detail)}."
            return f"{what} {TEXT_KEPT} Install it where agent-tui runs, or {other}."
        case "invalid_request":
            return f"{called.first} refused the request{http}{said} {TEXT_KEPT} Check the model's settings, or {other}."
        case "timeout":
            return f"{called.first} did not answer in time{http}. {TEXT_KEPT} Try again, or raise agent.timeout."
        case "connection" if names & _TLS_NAMES or _TLS.search(detail):
            what = f"No secure connection to {called.place}: TLS failed."
            return f"{what} {TEXT_KEPT} Check api_base (http or https) and the certificate."
        case "connection":
            what = f"No connection to {called.place}."
            return f"{what} {TEXT_KEPT} Check that the server runs, api_base and the network, then try again."
        case "interrupted_stream":
            return f"The answer of {called.name} broke off. What arrived is kept. Try again, or ask it to go on."
        case "empty_answer":
            what = f"{called.first_place} ended its answer without a word of it."
            return f"{what} {TEXT_KEPT} Try again; if it stays so, check that api_base is the address of its API."
        case "bad_answer" if _HTTPS_WANTED.search(detail):
            return (
                f"{called.first_place} speaks https, and was spoken to in http. {TEXT_KEPT} Write https:// in api_base."
            )
        case "bad_answer":
            if names & {"NotAnAnswerError"}:
                said = f": {detail}."
            what = f"What {called.place} sent is no answer of a model"
            return f"{what}{said} {TEXT_KEPT} Check that api_base is the address of its API, http or https included."
        case "content_refused":
            return f"{called.first} refused the content{http}{said} {TEXT_KEPT} Rephrase it, or {other}."
        case _:
            return f"The provider worker failed. {TEXT_KEPT} It restarts by itself; try again."


def _auth(called: Called, detail: str, status: int | None) -> str:
    if status == 402 or NO_CREDIT.search(detail):
        return f"{called.first} says there is no credit or quota left"
    if status == 403:
        return f"{called.first} does not allow this key to do that"
    return f"{called.first} refused the key"


def _package(provider: str, detail: str) -> str:
    """Returns the package that the provider is known to need; otherwise the name that could not be imported."""
    if needed := dialect_of(provider).needs_package:
        return f" ({needed})"
    match = MISSING_PACKAGE.search(detail)
    return f" ({match[1]})" if match and match[1] else ""


def worker_failure(detail: str = "") -> Failure:
    """The worker died or hangs."""
    return failure("worker", provider="", model="", detail=redact(without_advertising(detail))[:DETAIL_LIMIT])


def _said(detail: str) -> str:
    """The provider's own words in one short sentence, or a full stop."""
    words = re.sub(r"\s+", " ", _words(detail).replace("\\n", " ").replace('\\"', '"')).strip().rstrip(".: -")
    if not words:
        return "."
    return f": {words[:160]}{'…' if len(words) > 160 else ''}."


def _words(detail: str) -> str:
    """Returns the words of a text around an error: the heading of a page, the message of an object, else its first
    line."""
    if page := PAGE.search(detail):
        return words_of(detail[page.start() :])
    match = re.search(r"""["']message["']\s*:\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')""", detail)
    if match and (found := match.group(1) or match.group(2)):
        return _unwrapped(found)
    line = _unwrapped(detail.split("\n", 1)[0])
    return line or _of_object(detail)


def _unwrapped(words: str) -> str:
    """Without the names of exceptions, and without objects, which are for programs."""
    return re.sub(
        r"litellm\.[A-Za-z]+:\s*|\w+Exception\s*-\s*|\w+Error(?::| -)\s*|Error code: \d+\s*-\s*|\{.*", "", words
    ).strip()


def _of_object(detail: str) -> str:
    """Returns the words of the first object in a text, whatever it calls them: JSON, or as Python writes it."""
    start = detail.find("{")
    if start < 0:
        return ""
    try:
        return words_of(json.JSONDecoder().raw_decode(detail, start)[0])
    except (ValueError, RecursionError):
        pass
    try:
        return words_of(ast.literal_eval(detail[start : detail.rfind("}") + 1]))
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return ""


def without_advertising(text: str) -> str:
    """Without control characters (they would reach the terminal) and without LiteLLM's advertising."""
    return printable(_ADVERTISING.sub("", program_output(text))).strip()


ReplayFact = Literal["bound", "no_drop_field"]
"""``bound``: it refuses signatures behind another prefix. ``no_drop_field``: it does not know ``block_binding``."""

_FIELD = re.compile(r"block_binding|prefix_mismatch_behavior|thinking-binding-controls", re.I)
_SIGNATURE = re.compile(
    r"invalid.{0,40}signature.{0,80}(?:thinking|reasoning|block)|(?:thinking|reasoning).{0,80}signature.{0,60}invalid|"
    r"bound to a different conversation",
    re.I | re.S,
)


_SCHEMA = re.compile(
    r"response[_ ]?(?:format|mime[_ ]?type|json[_ ]?schema|schema)|output[_ ]config|output[_ ]format|text\.format|"
    r"json[_ ]?schema|structured[_ ]output|\bgrammar|guided|unmarshal\b.{0,80}\bformat\b|\bformat\b.{0,40}\bjson\b|"
    r"schema.{0,40}(?:complex|too large|compil)",
    re.I | re.S,
)
_TOOL = re.compile(r"\btools?[.\[]|for function|input_schema|function_declarations", re.I)


def refuses_schema(failure: Failure) -> bool:
    """Returns whether a request was refused for the schema that its answer was to be held to."""
    if failure.kind != "invalid_request" or failure.status not in (400, 422, 500, 501, None):
        return False
    text = f"{failure.detail}\n{failure.message}"
    return _SCHEMA.search(text) is not None and _TOOL.search(text) is None


def replay_fact(failure: Failure) -> ReplayFact | None:
    """Returns what a refused request teaches; None where it was refused for anything else."""
    if failure.kind != "invalid_request" or failure.status not in (400, 422, None):
        return None
    text = f"{failure.detail}\n{failure.message}"
    if _SIGNATURE.search(text):
        return "bound"
    return "no_drop_field" if _FIELD.search(text) else None


_TITLE = re.compile(r"<title[^>]*>(.*?)</title>|<h1[^>]*>(.*?)</h1>", re.IGNORECASE | re.DOTALL)
_UNSEEN = re.compile(r"<(script|style|head)\b.*?(?:</\1>|$)|<!--.*?(?:-->|$)", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
PAGE = re.compile(r"<!doctype html|<html\b|<title>", re.IGNORECASE)
"""Where an HTML page begins."""

_PAGE_CHARS = 20_000
_SEEN_CHARS = 200
_NAMES = ("message", "error", "detail", "details", "error_message", "msg", "errors", "reason", "title", "type")
_DEPTH = 4


def words_of(body: Any) -> str:
    """Returns what an error's body says, without its wrapping; empty when it says nothing. ``body`` is parsed JSON or
    text."""
    if isinstance(body, str):
        return _page(body) if body.lstrip()[:1] == "<" else body.strip()
    return _inside(body, _DEPTH)


def _inside(value: Any, depth: int) -> str:
    if isinstance(value, str):
        return value.strip()
    if depth == 0:
        return ""
    if isinstance(value, list):
        return next((found for item in value[:5] if (found := _inside(item, depth - 1))), "")
    if isinstance(value, dict):
        return next((found for name in _NAMES if (found := _inside(value.get(name), depth - 1))), "")
    return ""


def _page(text: str) -> str:
    """The heading of an HTML page, for what stands below it is for browsers; without one, how its text begins."""
    text = text[:_PAGE_CHARS]
    found = _TITLE.search(text)
    inner = next((group for group in found.groups() if group), "") if found else ""
    if words := _visible(inner):
        return words
    return _visible(_UNSEEN.sub(" ", text))[:_SEEN_CHARS]


def _visible(markup: str) -> str:
    return " ".join(html.unescape(_TAG.sub(" ", markup)).split())
