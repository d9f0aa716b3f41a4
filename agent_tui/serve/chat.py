"""The one chat behind the page: a process that goes on when the page is left, reloaded or opened elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from agent_tui import terminal_output
from agent_tui.errors import EXIT_ERROR, EXIT_USAGE
from agent_tui.options import SERVED
from agent_tui.pipes.start import spawn_in_loop
from agent_tui.text.clean import clean
from agent_tui.urls import page_address

log = logging.getLogger(__name__)

PATIENCE = 10.0
"""Seconds the chat has to store what is left when the server ends."""

_SAID = 4_000
"""Characters of what the chat said at its end that are shown."""


class Viewer(Protocol):
    """The page that shows the chat. Neither waits: a page that does not keep up is let go."""

    def data(self, payload: bytes) -> None:
        """Bytes for its terminal."""

    def open_url(self, url: str) -> None: ...
    def close(self) -> None: ...


class ServedChat:
    """Starts the chat with the first page, shows it to the newest, and starts it anew, with the same session, for one
    that comes after its end. ``command`` is that of its process, ``changed`` is called when it begins and ends."""

    def __init__(self, command: Sequence[str], changed: Callable[[], None] = lambda: None) -> None:
        self._command = command
        self._changed = changed
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._viewer: Viewer | None = None
        self._session = ""
        self._starting = asyncio.Lock()

    @property
    def running(self) -> bool:
        return self._process is not None

    async def attach(self, viewer: Viewer, columns: int, lines: int) -> None:
        """Shows the chat in another page; the one before is closed."""
        before, self._viewer = self._viewer, viewer
        if before is not None:
            before.close()
        async with self._starting:
            if self._process is None:
                await self._start(columns, lines)
            else:
                self._write(meta("attach", width=columns, height=lines))

    def detach(self, viewer: Viewer) -> None:
        """The page is gone; the chat goes on without one."""
        if self._viewer is viewer:
            self._viewer = None
            self.focus(False)

    def typed(self, text: str) -> None:
        self._write(data(text.encode("utf-8", "replace")))

    def resize(self, columns: int, lines: int) -> None:
        self._write(meta("resize", width=columns, height=lines))

    def focus(self, has: bool) -> None:
        self._write(meta("focus" if has else "blur"))

    async def close(self) -> None:
        """Ends the chat with everything stored; what does not end is killed."""
        process, reading = self._process, self._reading
        if process is None or reading is None:
            return
        self._write(meta("quit"))
        done, _ = await asyncio.wait({reading}, timeout=PATIENCE)
        if not done:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await asyncio.wait({reading})

    def _write(self, packet: bytes) -> None:
        stdin = self._process.stdin if self._process is not None else None
        if stdin is not None and not stdin.is_closing():
            stdin.write(packet)

    async def _start(self, columns: int, lines: int) -> None:
        told = json.dumps({"columns": columns, "lines": lines, "resume": self._session})
        self._process = process = await spawn_in_loop(
            self._command,
            {**os.environ, SERVED: told, "TEXTUAL_COLOR_SYSTEM": "truecolor"},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            # What is typed in the terminal of the server is for the server.
            start_new_session=True,
        )
        self._reading = asyncio.create_task(self._follow(process), name="served chat")
        self._changed()

    async def _follow(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None and process.stderr is not None
        errors = asyncio.create_task(_end_of(process.stderr))
        try:
            await self._read(process.stdout)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the end
        except ValueError as error:
            log.error("The chat wrote something else than packets: %s", error)
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        code, said = await process.wait(), clean(await errors).strip()
        if code in (EXIT_ERROR, EXIT_USAGE):
            # Gone on with, the session might end it just so.
            self._session = ""
        self._process = None
        if said:
            terminal_output.tell(said)
        viewer, self._viewer = self._viewer, None
        if viewer is not None:
            viewer.data(_last_words(said))
            viewer.close()
        self._changed()

    async def _read(self, stream: asyncio.StreamReader) -> None:
        while (line := await stream.readline()) != BEGIN:
            if not line:
                return
        while True:
            kind, payload = await packet(stream)
            if kind == b"D" and self._viewer is not None:
                self._viewer.data(payload)
            elif kind == b"M":
                self._heard(facts_of(payload))

    def _heard(self, facts: dict[str, Any]) -> None:
        """Nothing but the session's name and pages to open: no file is handed out."""
        match facts:
            case {"type": "session", "id": str(name)}:
                self._session = name
            case {"type": "open_url", "url": str(url)} if self._viewer is not None and (page := page_address(url)):
                self._viewer.open_url(page)


def _last_words(said: str) -> bytes:
    """Returns the bytes that the page shows of a chat that has ended."""
    lines = [*said.splitlines(), "", "The chat has ended. Reload the page to continue."]
    # The terminal's own screen again, empty, with a cursor.
    return ("\x1b[?1049l\x1b[?1003l\x1b[?1000l\x1b[?25h\x1b[2J\x1b[H" + "\r\n".join(lines)).encode()


async def _end_of(stream: asyncio.StreamReader) -> str:
    kept = b""
    while data := await stream.read(1 << 16):
        kept = (kept + data)[-_SAID:]
    return kept.decode("utf-8", "replace")


BEGIN = b"__GANGLION__\n"
"""The line after which packets come; what stands before it is no packet."""

MOST = 1 << 25
"""Bytes of a packet: a frame of the largest screen is far below it."""


def data(payload: bytes) -> bytes:
    """Returns the packet for what was typed."""
    return b"D%s%s" % (len(payload).to_bytes(4, "big"), payload)


def meta(kind: str, **facts: Any) -> bytes:
    """Something said about the screen."""
    payload = json.dumps({"type": kind, **facts}).encode()
    return b"M%s%s" % (len(payload).to_bytes(4, "big"), payload)


async def packet(stream: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """The next packet: letter and payload. Raises IncompleteReadError at the end, ValueError for what is none."""
    head = await stream.readexactly(5)
    size = int.from_bytes(head[1:], "big")
    if head[:1] not in b"DMP" or size > MOST:
        raise ValueError(f"no packet: {head!r}")
    return head[:1], await stream.readexactly(size)


def facts_of(payload: bytes) -> dict[str, Any]:
    """The object of an ``M`` packet; empty for what is none."""
    try:
        found = json.loads(payload)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
