"""A loopback HTTP server for tests: serves given bytes, statuses, headers, cuts and silence, and records requests."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit


@dataclass(slots=True)
class Recorded:
    """A request as it arrived; ``at`` is ``time.monotonic()`` (one clock a machine) when its body was complete."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes
    at: float

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        """A header's value, whatever the case of its name."""
        return next((v for k, v in self.headers.items() if k.lower() == name.lower()), None)


@dataclass(slots=True)
class Reply:
    """What to answer. ``body`` may be several writes, made as they are asked for. ``cut``: the connection closes before
    the body's announced end. ``hang``: after the body nothing more is sent until the server closes. ``hold``: an event
    that is waited for before the status line is sent. ``drop``: the connection is closed instead of an answer."""

    body: bytes | Iterable[bytes] = b""
    status: int = 200
    content_type: str = "text/event-stream"
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    hang: bool = False
    hold: threading.Event | None = None
    drop: bool = False


def sse(events: Iterable[Any], *, named: bool = False) -> bytes:
    """Server-sent events: dicts as JSON, strings as they are; ``named`` adds ``event: <type>`` lines (Anthropic)."""
    out = []
    for event in events:
        data = event if isinstance(event, str) else json.dumps(event)
        name = f"event: {event['type']}\n" if named and isinstance(event, dict) and "type" in event else ""
        out.append(f"{name}data: {data}\n\n")
    return "".join(out).encode()


def json_reply(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Reply:
    return Reply(json.dumps(value).encode(), status, "application/json", headers or {})


def chat_chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    """One chunk of an OpenAI chat stream."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "test-model",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        **more,
    }


def chat_events(
    texts: Iterable[str],
    finish: str | None = "stop",
    usage: dict[str, Any] | None = None,
    done: bool = True,
) -> list[Any]:
    """The events of an OpenAI chat stream that says ``texts``."""
    events: list[Any] = [chat_chunk({"role": "assistant", "content": ""})]
    events += [chat_chunk({"content": text}) for text in texts]
    if finish:
        events.append(chat_chunk({}, finish))
    if usage is not None:
        events.append({**chat_chunk({}), "choices": [], "usage": usage})
    if done:
        events.append("[DONE]")
    return events


CHAT_USAGE = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}


def chat_stream(texts: Iterable[str], finish: str | None = "stop", usage: dict[str, Any] | None = CHAT_USAGE) -> bytes:
    """A whole OpenAI chat stream that says ``texts``."""
    return sse(chat_events(texts, finish, usage))


def anthropic_events(texts: Iterable[str], stop_reason: str = "end_turn") -> list[dict[str, Any]]:
    """The events of an Anthropic Messages stream that says ``texts``."""
    usage = {"input_tokens": 11, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test", "content": []}
    return [
        {"type": "message_start", "message": {**message, "stop_reason": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}} for text in texts),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop_reason}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ]


class Loopback:
    """A server on 127.0.0.1 with a thread a connection. Replies to a path are used up in order; the last one stays.
    A path not served is answered with 404, and with ``posts_only`` so is every GET. Use it as a context manager."""

    def __init__(self, *, posts_only: bool = False) -> None:
        self.requests: list[Recorded] = []
        self._posts_only = posts_only
        self._replies: dict[str, list[Reply]] = {}
        self._judge: Callable[[Recorded], Reply | bytes] | None = None
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)
        self.closing = threading.Event()
        self._gone = threading.Semaphore(0)
        owner = self

        class Handler(_Handler):
            loopback = owner

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def serve(self, path: str, *replies: Reply | bytes) -> None:
        """Answers ``path`` (without query; ``*`` is any other) with these replies, replacing what was served before."""
        with self._lock:
            self._replies[path] = [r if isinstance(r, Reply) else Reply(r) for r in replies]

    def answer_by(self, judge: Callable[[Recorded], Reply | bytes]) -> None:
        """Answers every POST by what it asks, as real servers do."""
        self._judge = judge

    def judged(self, request: Recorded) -> Reply | None:
        """The answer of who judges requests here; None where nobody does."""
        reply = self._judge(request) if self._judge is not None and request.method == "POST" else None
        return Reply(reply) if isinstance(reply, bytes) else reply

    def next_reply(self, path: str, method: str = "POST") -> Reply:
        with self._lock:
            queue = self._replies.get(path) or self._replies.get("*")
            if method == "GET" and self._posts_only:
                queue = None
            if not queue:
                return json_reply({"error": {"message": f"nothing is served at {path}"}}, 404)
            return queue.pop(0) if len(queue) > 1 else queue[0]

    def record(self, request: Recorded) -> None:
        with self._arrived:
            self.requests.append(request)
            self._arrived.notify_all()

    def wait_for_requests(self, count: int, timeout: float = 20.0) -> None:
        """Blocks until ``count`` requests have arrived. Raises TimeoutError."""
        with self._arrived:
            if not self._arrived.wait_for(lambda: len(self.requests) >= count, timeout):
                raise TimeoutError(f"{len(self.requests)} of {count} requests arrived")

    def client_left(self) -> None:
        self._gone.release()

    def wait_for_client_to_leave(self, timeout: float = 20.0) -> None:
        """Blocks until a client closed the connection of a hanging reply. Raises TimeoutError."""
        if not self._gone.acquire(timeout=timeout):
            raise TimeoutError("the client kept its connection open")

    def close(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def __enter__(self) -> Loopback:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients of these tests hang up on purpose; that is no error worth printing."""


class _Handler(BaseHTTPRequestHandler):
    loopback: Loopback
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urlsplit(self.path)
        request = Recorded(self.command, parts.path, parts.query, dict(self.headers.items()), body, time.monotonic())
        self.loopback.record(request)
        reply = self.loopback.judged(request) or self.loopback.next_reply(parts.path, self.command)
        if reply.hold is not None:
            reply.hold.wait(30)
        if reply.drop:
            self.close_connection = True
            return
        writes = [reply.body] if isinstance(reply.body, bytes) else reply.body
        whole = not (reply.cut or reply.hang) and isinstance(writes, list) and len(writes) == 1
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if whole and isinstance(writes, list):
            self.send_header("Content-Length", str(len(writes[0])))
        else:
            self.send_header("Transfer-Encoding", "chunked")
        try:
            self.end_headers()
            for data in writes:
                self.wfile.write(data if whole else b"%x\r\n%s\r\n" % (len(data), data) if data else b"")
            self.wfile.flush()
        except OSError:
            # Gone before the answer: that is leaving, too.
            self.loopback.client_left()
            raise
        if reply.hang:
            self._hang()
        if reply.cut or reply.hang:
            self.close_connection = True
        elif not whole:
            self.wfile.write(b"0\r\n\r\n")

    def _hang(self) -> None:
        self.connection.settimeout(0.05)
        while not self.loopback.closing.is_set():
            try:
                if not self.connection.recv(1):
                    self.loopback.client_left()
                    return
            except TimeoutError:
                continue
            except OSError:
                self.loopback.client_left()
                return


def closed_port() -> int:
    """A port on 127.0.0.1 that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
