"""The lines that users read when a call fails: what happened, whether their text is safe, what to do. Also what a
server says in the body of an error."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection
from contextlib import suppress
from typing import Any

from agent_tui.models.failure import ARRIVED_KEPT, GO_ON, TEXT_KEPT, Failure, FailureKind, Overflow, make_failure
from agent_tui.providers.catalog import Called, dialect_of
from agent_tui.providers.net import BoundError, RedirectError
from agent_tui.providers.secrets import redact
from agent_tui.text.clean import printable, program_output
from agent_tui.text.numbers import duration
from agent_tui.urls import read_address

DETAIL_LIMIT = 4_000
"""Characters of the provider's own text that are kept."""

NO_CREDIT = re.compile(
    r"insufficient[_ ]quota|credit balance|insufficient (?:credits|balance|funds)|billing_(?:hard_limit|not_active)|"
    r"budget has been exceeded|budget_exceeded|exceeded ?budget|crossed budget",
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
    called: Called,
    model: str,
    detail: str = "",
    status: int | None = None,
    wait: float | None = None,
    names: Collection[str] = (),
    overflow: Overflow | None = None,
    started: bool = False,
) -> Failure:
    """A failure with its line for the user: what happened, whether their text is safe, what to do. ``names`` are the
    classes of the exceptions behind it; ``started``: a part of the answer had arrived."""
    http = f" (HTTP {status})" if status else ""
    said = http + ("." if detail == f"HTTP {status}" else _said(detail))
    other = "choose another model with /model"
    match kind:
        case "auth":
            broke = _no_credit(detail, status)
            advice = f"Add credit or raise the limit there, or {other}." if broke else called.give_key
            what = f"{_auth(called, detail, status)}{said}"
        case "not_found":
            what = f"{called.first_place} does not know the model {model}, or the address is wrong{said}"
            advice = f"Check the name and api_base, or {other}."
        case "rate_limit":
            when = f" It says to wait {duration(wait)}." if wait else ""
            what, advice = f"{called.first} is limiting the rate of requests{said}{when}", f"Try again, or {other}."
        case "overloaded":
            what, advice = f"{called.first} is overloaded or failing{said}", "Try again in a moment."
        case "context_overflow" if overflow is not None and overflow.answering:
            what = f"The conversation and the answer are larger than {model} accepts{said}"
            advice = "Run /compact, or choose a larger model with /model."
        case "context_overflow" if overflow is not None and _answer_too_long(overflow):
            what = f"The conversation plus the requested answer is larger than {model} accepts{said}"
            advice = "Run /compact, or choose another model with /model."
        case "context_overflow":
            what = f"The conversation is larger than {model} accepts{said}"
            advice = "Run /compact, or choose a larger model with /model."
        case "too_large":
            what = f"The request has more bytes than {called.name} takes{said}"
            advice = "Leave out what is large: /context shows it."
        case "invalid_request" if MISSING_PACKAGE.search(detail):
            package = _package(called.provider, detail)
            what = f"{called.provider} needs a Python package that is not installed{package}."
            advice = f"Install it where agent-tui runs, or {other}."
        case "invalid_request":
            what, advice = f"{called.first} refused the request{said}", f"Check the model's settings, or {other}."
        case "timeout":
            what, advice = f"{called.first} did not answer in time{http}.", "Try again, or raise agent.timeout."
        case "connection" if not _TLS_NAMES.isdisjoint(names) or _TLS.search(detail):
            what = f"No secure connection to {called.place}: TLS failed."
            advice = "Check api_base (http or https) and the certificate."
        case "connection":
            proxy = _proxy(called)
            what = f"No connection to {called.place}{proxy and f' through the proxy {proxy}'}."
            first = "the proxy in HTTPS_PROXY or HTTP_PROXY" if proxy else "that the server runs"
            advice = f"Check {first}, api_base and the network, then try again."
        case "interrupted_stream":
            why = said if "BadEnd" in names else "."
            what, advice, started = f"The answer of {called.name} was cut off{why}", GO_ON, True
        case "empty_answer" if "BadEnd" in names:
            what, advice = f"{called.first_place} sent an empty answer{said}", f"Try again, or {other}."
        case "empty_answer":
            what = f"{called.first_place} sent an empty answer."
            advice = "Try again. If it happens again, check that api_base is the address of its API."
        case "bad_answer" if _HTTPS_WANTED.search(detail):
            what = f"{called.first_place} expects https, but api_base says http."
            advice = "Change it to https://."
        case "bad_answer":
            words = f": {detail}." if "NotAnAnswerError" in names else said.removeprefix(http)
            what = f"{called.first_place} sent something that is not a model's answer{words}"
            advice = "Check that api_base is the address of its API, http or https included."
        case "content_refused":
            what, advice = f"{called.first} refused the content{said}", f"Rephrase it, or {other}."
        case _:
            what, advice = "The provider worker failed.", "It restarts automatically; try again."
    if started:
        # The message was answered, in part: to send it again would be another one.
        advice = GO_ON if re.match(r"Try again|It restarts", advice) else advice
    kept = ARRIVED_KEPT if started else TEXT_KEPT
    more = {"detail": detail, "status": status, "retry_after": wait, "overflow": overflow}
    return make_failure(kind, what, advice, kept=kept, **more)


def _proxy(called: Called) -> str:
    """The proxy by which a server is reached, without what stands in its address besides; empty without one."""
    from urllib.request import getproxies, proxy_bypass

    server = read_address(called.address or dialect_of(called.provider).base)
    if server is not None and (server.loopback or proxy_bypass(server.host)):
        return ""
    proxies = getproxies()
    proxy = read_address(proxies.get(server.scheme if server is not None else "https") or proxies.get("all"))
    return proxy.origin if proxy is not None else ""


def _answer_too_long(overflow: Overflow) -> bool:
    """Returns whether the conversation alone would have fitted."""
    if overflow.input is None or overflow.output is None or overflow.window is None:
        return False
    return overflow.input < overflow.window


def unpaid(failure: Failure) -> bool:
    """Returns whether a call was refused because nobody pays for it any more, whatever the key."""
    return _no_credit(failure.detail, failure.status)


def _no_credit(detail: str, status: int | None) -> bool:
    return status == 402 or NO_CREDIT.search(detail) is not None


def _auth(called: Called, detail: str, status: int | None) -> str:
    if _no_credit(detail, status):
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


def bound_failure(error: BoundError, called: Called, started: bool) -> Failure:
    """The failure of a call that reached one of our own bounds."""
    kept = ARRIVED_KEPT if started else TEXT_KEPT
    text = without_advertising(str(error))
    # A redirect's own words begin with the address.
    who = "" if called.own and isinstance(error, RedirectError) else f"{called.first}: "
    way = GO_ON if started else error.way
    return make_failure(error.kind, f"{who}{text}", way, kept=kept, detail=text, again=error.again)


def worker_failure(detail: str) -> Failure:
    return failure("worker", Called(""), "", redact(without_advertising(detail))[:DETAIL_LIMIT])


def _said(detail: str) -> str:
    """The provider's own words in one short sentence, or a full stop."""
    words = re.sub(r"\s+", " ", _words(detail).replace("\\n", " ").replace('\\"', '"')).strip().rstrip(".: -")
    return f": {words[:160]}{'…' if len(words) > 160 else ''}." if words else "."


def _words(detail: str) -> str:
    """Returns the words of a text around an error: the heading of a page, what its first object says, the message of
    one that was cut off, else its first line."""
    if page := PAGE.search(detail):
        return words_of(detail[page.start() :])
    if words := _unwrapped(_of_object(detail)):
        return words
    match = re.search(r"""["']message["']\s*:\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')""", detail)
    if match and (found := match[1] or match[2]):
        return _unwrapped(found)
    return _unwrapped(detail.split("\n", 1)[0])


def _unwrapped(words: str) -> str:
    """Without the names of exceptions, and without objects, which are for programs: what those say stands for them."""
    if inner := _of_object(words):
        return _unwrapped(inner)
    return re.sub(
        r"litellm\.[A-Za-z]+:\s*|\w+Exception\s*-\s*|\w+Error(?::| -)\s*|Error code: \d+\s*-\s*|\{.*", "", words
    ).strip()


def _of_object(detail: str) -> str:
    """Returns the words of the first object in a text, whatever it calls them: JSON, or as Python writes it."""
    start = detail.find("{")
    if start < 0:
        return ""
    with suppress(ValueError, RecursionError):
        return words_of(json.JSONDecoder().raw_decode(detail, start)[0])
    with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
        return words_of(ast.literal_eval(detail[start : detail.rfind("}") + 1]))
    return ""


def without_advertising(text: str) -> str:
    """Without control characters (they would reach the terminal) and without LiteLLM's advertising."""
    return printable(_ADVERTISING.sub("", program_output(text))).strip()


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
    if depth and isinstance(value, dict) and (passed_on := _passed_on(value)):
        return passed_on
    inner = value[:5] if isinstance(value, list) else map(value.get, _NAMES) if isinstance(value, dict) else ()
    return next((found for one in inner if (found := _inside(one, depth - 1))), "") if depth else ""


def _passed_on(error: dict[str, Any]) -> str:
    """Returns what the provider behind a gateway said, where the gateway's own words only say that it said something
    (openrouter.ai/docs/api-reference/errors, read 2026-11-22)."""
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    return (_words(raw) if isinstance(raw, str) else words_of(raw)) if raw else ""


def _page(text: str) -> str:
    """The heading of an HTML page, for what stands below it is for browsers; without one, how its text begins."""
    text = text[:_PAGE_CHARS]
    heading = _TITLE.search(text)
    words = _visible(heading[1] or heading[2] or "") if heading else ""
    return words or _visible(_UNSEEN.sub(" ", text))[:_SEEN_CHARS]


def _visible(markup: str) -> str:
    from html import unescape

    return " ".join(unescape(_TAG.sub(" ", markup)).split())
