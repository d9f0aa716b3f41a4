"""A served chat that is no chat: a script that says what it is told."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

pytest.importorskip("aiohttp", reason="needs the serve extra")
pytest.importorskip("textual_serve", reason="needs the serve extra")

from agent_tui.serve.chat import ServedChat
from tests.support.waiting import PATIENCE

CHILD = r"""
import json, os, sys
told = json.loads(os.environ["AGENT_TUI_SERVED"])
def write(kind, payload):
    sys.stdout.buffer.write(kind + len(payload).to_bytes(4, "big") + payload)
    sys.stdout.buffer.flush()
def say(text):
    write(b"D", text.encode())
def meta(**facts):
    write(b"M", json.dumps(facts).encode())
sys.stdout.buffer.write(b"before\n__GANGLION__\n")
say("told " + json.dumps(told))
while head := sys.stdin.buffer.read(5):
    payload = sys.stdin.buffer.read(int.from_bytes(head[1:], "big"))
    if head[:1] == b"M":
        facts = json.loads(payload)
        say("meta " + json.dumps(facts))
        if facts["type"] == "quit":
            break
        continue
    match payload.decode().split(" ", 1):
        case ["session", name]:
            meta(type="session", id=name)
        case ["url", url]:
            meta(type="open_url", url=url, new_tab=True)
        case ["meta", text]:
            write(b"M", text.encode())
        case ["much"]:
            for _ in range(200):
                say("x" * 100_000)
            say("all of it")
        case ["garbage"]:
            sys.stdout.buffer.write(b"no packet at all")
            sys.stdout.buffer.flush()
        case ["fail", text]:
            print(text, file=sys.stderr)
            sys.exit(2)
        case ["end"]:
            sys.exit(0)
    say("typed " + payload.decode())
"""


class Watching:
    """A page that keeps what it is shown."""

    def __init__(self) -> None:
        self.shown = ""
        self.urls: list[str] = []
        self.closed = False
        self._news = asyncio.Event()

    def data(self, payload: bytes) -> None:
        self.shown += payload.decode()
        self._news.set()

    def open_url(self, url: str) -> None:
        self.urls.append(url)

    def close(self) -> None:
        self.closed = True
        self._news.set()

    async def until(self, ready: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not ready():
                self._news.clear()
                await self._news.wait()

    async def sees(self, text: str) -> None:
        await self.until(lambda: text in self.shown)

    @property
    def told(self) -> dict[str, object]:
        """What the chat was told at its start."""
        found: dict[str, object] = json.JSONDecoder().raw_decode(self.shown.partition("told ")[2])[0]
        return found


@pytest.fixture
async def chat(tmp_path: Path) -> AsyncIterator[ServedChat]:
    script = tmp_path / "child.py"
    script.write_text(CHILD, "utf-8")
    chat = ServedChat([sys.executable, "-I", str(script)])
    yield chat
    await chat.close()
    assert not chat.running
