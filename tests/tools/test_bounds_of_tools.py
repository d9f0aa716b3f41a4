"""Servers that tools talk to: lines without end, and a head that comes a byte at a time."""

from __future__ import annotations

import socket
import threading

import anyio
import pytest

from agent_tui.errors import ToolError
from agent_tui.tools.builtin.http_get import get
from agent_tui.tools.children.process import Stop
from agent_tui.tools.mcp import transport as mcp_transport
from agent_tui.tools.mcp.transport import WholeLines
from agent_tui.urls import parse_url

pytestmark = pytest.mark.quick


class Pieces:
    def __init__(self, *pieces: bytes) -> None:
        self._pieces = list(pieces)

    async def receive(self) -> bytes:
        if not self._pieces:
            raise anyio.EndOfStream
        return self._pieces.pop(0)


async def test_messages_come_as_whole_lines() -> None:
    lines = WholeLines(Pieces(b'{"a"', b': "w\xc3', b'\xb6rd"}\n{"b"', b": 1}\nrest"), "utf-8", "strict")
    assert [text async for text in lines] == ['{"a": "wörd"}\n', '{"b": 1}\n', "rest"]


async def test_a_message_without_end_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_transport, "MESSAGE_LIMIT", 1_000)
    lines = WholeLines(Pieces(*[b"x" * 100] * 20), "utf-8", "strict")
    with pytest.raises(anyio.BrokenResourceError):
        async for _ in lines:
            pass


def test_a_head_that_drips_ends_with_the_time() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    done = threading.Event()

    def drip() -> None:
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
            while not done.wait(0.05):
                try:
                    connection.sendall(b"x")
                except OSError:
                    return

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    try:
        with pytest.raises(ToolError, match="did not answer within"):
            get(parse_url(f"http://127.0.0.1:{server.getsockname()[1]}/"), 0.5, Stop(), "test")
    finally:
        done.set()
        thread.join(5)
        server.close()
