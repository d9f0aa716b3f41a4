"""The loopback server: reads a request in its dialect, counts it, refuses or answers it, and keeps the truth."""

from __future__ import annotations

import json
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Protocol
from urllib.parse import urlsplit

from tests.support.true_provider.anthropic import Anthropic
from tests.support.true_provider.cache import PrefixCache
from tests.support.true_provider.chat import Chat
from tests.support.true_provider.gemini import Gemini
from tests.support.true_provider.responses import Responses
from tests.support.true_provider.script import Script, asks_for_headings
from tests.support.true_provider.tokens import Tokenizer
from tests.support.true_provider.wire import Answer, Exchange, Model, Question, Refusal, Refused, Signer, Tools, Usage

LEAST_OUTPUT = 16
TOO_LONG = "Your input exceeds the context window of this model. Please adjust your input and try again."
"""As OpenAI says it, without a number."""
DIALECTS: dict[str, Any] = {"anthropic": Anthropic, "chat": Chat, "responses": Responses, "gemini": Gemini}


class Dialect(Protocol):
    """One provider's API."""

    explicit_cache: bool
    strict_output: bool
    model: Model

    def read(self, body: dict[str, Any], headers: Mapping[str, str], path: str) -> Question: ...
    def output(self, answer: Answer) -> int: ...
    def overflow(self, question: Question, asked: int) -> str: ...
    def error(self, refused: Refused) -> bytes: ...
    def counted(self, question: Question) -> bytes: ...
    def answer(self, question: Question, answer: Answer, usage: Usage) -> bytes: ...


@dataclass(slots=True)
class Truth:
    """Everything that happened, in order. ``bodies`` holds the requests that were refused as invalid;
    ``crashes`` what this server could not understand."""

    exchanges: list[Exchange] = field(default_factory=list)
    bodies: list[tuple[int, str, Any]] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)

    def turns(self) -> list[Exchange]:
        """The answered requests of turns."""
        return [e for e in self.exchanges if e.kind == "turn" and e.usage is not None]

    def refused(self, *why: Refusal) -> list[Exchange]:
        return [e for e in self.exchanges if e.refusal in why]


class TrueProvider:
    """A provider on 127.0.0.1. ``turn`` is set by whoever drives it, before each message.

    Of the next request of a turn it may be told to report another usage (``lie``), or to refuse it as too long
    (``refuse``); ``only_count`` has it refuse all that come, and count them. ``keeps``: the body of every request stays
    in ``kept``, by the number of its exchange.
    """

    def __init__(
        self,
        dialect: str,
        model: Model,
        script: Script,
        cache: Callable[[bool], PrefixCache] = PrefixCache,
        vocabulary: Callable[[str], int] | None = None,
        keeps: bool = False,
    ) -> None:
        self.model, self.script, self.keeps = model, script, keeps
        self.kept: dict[int, Any] = {}
        self.truth = Truth()
        self.turn = 0
        self.lie: Callable[[Usage], Usage] | None = None
        self.refuse = self.only_count = False
        tools = Tools(model, Tokenizer(model.factor, model.noise, vocabulary), Signer(model.name))
        self.dialect: Dialect = DIALECTS[dialect](tools)
        self._tokenizer = tools.tokenizer
        self.cache = cache(self.dialect.explicit_cache)
        self._lock = threading.Lock()
        self._steps: dict[int, int] = {}
        self._summaries = 0
        owner = self

        class Handler(_Handler):
            provider = owner

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def resize(self, window: int) -> None:
        """The server is started anew with another window."""
        self.model = replace(self.model, window=window)
        self.dialect.model = self.model

    def count(self, text: str) -> int:
        """Tokens of a text by this provider's tokenizer."""
        return self._tokenizer.count(text)

    def handle(self, path: str, headers: Mapping[str, str], raw: bytes) -> tuple[int, str, bytes]:
        """Status, content type and body of the answer to a request."""
        with self._lock:
            body: Any = None
            try:
                body = json.loads(raw)
                return self._respond(body, headers, path)
            except Refused as refused:
                if refused.why == "invalid":
                    self._note(None, "turn", "invalid", refused.message)
                    self.truth.bodies.append((self.turn, refused.message, body))
                return refused.status, "application/json", self.dialect.error(refused)
            except Exception:
                self.truth.crashes.append(traceback.format_exc())
                raise
            finally:
                if self.keeps:
                    self.kept[len(self.truth.exchanges) - 1] = json.loads(raw)

    def _respond(self, body: dict[str, Any], headers: Mapping[str, str], path: str) -> tuple[int, str, bytes]:
        question = self.dialect.read(body, headers, path)
        if "count" in path or path.endswith("input_tokens"):
            self._note(question, "count", "", "")
            return 200, "application/json", self.dialect.counted(question)
        # A request for a summary is told by what it says; nothing else asks for headings.
        kind = "summary" if asks_for_headings(question) else "turn"
        if self.only_count:
            self._note(question, kind, "only counted", "")
            raise Refused("It is only counted", why="only counted")
        if self.refuse and kind == "turn":
            self.refuse = False
            self._note(question, kind, "told to", TOO_LONG)
            raise Refused(TOO_LONG, code="context_length_exceeded", why="told to")
        room = self._room(question, kind)
        answer = self._scripted(question, kind)
        if answer is None:
            self._note(question, kind, "failed", "Internal server error")
            raise Refused("Internal server error", status=500, why="failed")
        usage = self._count(question, answer, room, kind)
        exchange = self._note(question, kind, "", "")
        exchange.usage, exchange.verdict = usage, self.cache.verdict
        lie, told = self.lie, usage
        if lie is not None and kind == "turn":
            self.lie, told, exchange.lied = None, lie(usage), True
        data = self.dialect.answer(question, answer, told)
        if kind == "turn":
            self._steps[self.turn] = self._steps.get(self.turn, 0) + 1
        return 200, "text/event-stream", data

    def _room(self, question: Question, kind: str) -> int:
        """Tokens there are for the answer; a request that does not fit is refused."""
        window, asked = self.model.window, question.max_output
        why: Refusal = ""
        if question.input + LEAST_OUTPUT > window:
            why = "input"
        elif self.dialect.strict_output and asked is not None and question.input + asked > window:
            why = "output"
        if why:
            message = self.dialect.overflow(question, asked or 0)
            self._note(question, kind, why, message)
            raise Refused(message, code="context_length_exceeded", why=why)
        room = window - question.input
        return min(room, asked) if asked is not None else room

    def _scripted(self, question: Question, kind: str) -> Answer | None:
        if kind == "summary":
            self._summaries += 1
            return self.script.summary(question, self._summaries)
        return self.script.answer(question, self.turn, self._steps.get(self.turn, 0), len(self.truth.exchanges))

    def _count(self, question: Question, answer: Answer, room: int, kind: str) -> Usage:
        """Fits the answer into its room and counts it."""
        if answer.reasoning:
            answer.reasoning_tokens = min(max(1, self._tokenizer.count(answer.reasoning)), max(1, room // 2))
            if self.model.summarised:
                answer.reasoning = answer.reasoning[: len(answer.reasoning) // 3]
        visible = self.dialect.output(answer)
        if answer.reasoning_tokens + visible > room:
            answer.calls, answer.cut = [], True
            share = max(0.0, (room - answer.reasoning_tokens) / max(1, visible))
            answer.text = answer.text[: int(len(answer.text) * share * 0.8)] or "Well"
            visible = self.dialect.output(answer)
        read, written = self.cache.use(question.segments, kind == "turn")
        output = visible + answer.reasoning_tokens
        return Usage(question.input, output, answer.reasoning_tokens, read, written)

    def _note(self, question: Question | None, kind: str, refusal: Refusal, message: str) -> Exchange:
        number = len(self.truth.exchanges)
        if question is None:
            found = Exchange(number, self.turn, kind, refusal, message, 0, None, 0, 0, 0, False, False)
        else:
            found = Exchange(
                number,
                self.turn,
                kind,
                refusal,
                message,
                question.input,
                question.max_output,
                question.of("system", "tools"),
                question.of("tools"),
                question.newest_user,
                question.thinking,
                self.model.thinks,
                dropped=len(question.dropped),
                thought=question.of("thinking"),
            )
        self.truth.exchanges.append(found)
        return found

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def __enter__(self) -> TrueProvider:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no error worth printing."""


class _Handler(BaseHTTPRequestHandler):
    provider: TrueProvider
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._send(404, "application/json", b'{"error": {"message": "not found"}}')

    def do_POST(self) -> None:
        raw = self.rfile.read(length := int(self.headers.get("Content-Length") or 0))
        if len(raw) < length:
            return  # Who asked was killed or interrupted while it sent.
        headers = {name.lower(): value for name, value in self.headers.items()}
        self._send(*self.provider.handle(urlsplit(self.path).path, headers, raw))

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _send(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()
