"""The server: one page, the few files it needs, and its connection to the chat; everything else is refused."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

from agent_tui.errors import AgentError
from agent_tui.serve.chat import ServedChat
from agent_tui.serve.gate import HEADERS, Gate
from agent_tui.serve.page import asset, page

MOST_BEHIND = 8 << 20
"""Bytes that wait for a page before it is let go; the chat must not wait for a slow network."""

MOST_TYPED = 4 << 20
"""Bytes of one message of a page: a large paste."""

MOST_CELLS = 1_000
"""Columns and lines of a screen."""

HEARTBEAT = 15.0
"""Seconds between two questions whether a page is still there."""


class Page:
    """A connected page. What it gets waits in a queue of its own."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket
        self._queue: asyncio.Queue[bytes | str | None] = asyncio.Queue()
        self._behind = 0
        self._closing = False

    def data(self, payload: bytes) -> None:
        self._put(payload)

    def open_url(self, url: str) -> None:
        self._put(json.dumps(["open_url", {"url": url, "new_tab": True}]))

    def pong(self, stamp: object) -> None:
        self._put(json.dumps(["pong", stamp]))

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._queue.put_nowait(None)

    def _put(self, message: bytes | str) -> None:
        if self._closing:
            return
        self._behind += len(message)
        if self._behind > MOST_BEHIND:
            self.close()
        else:
            self._queue.put_nowait(message)

    async def send(self) -> None:
        """Sends until it is closed, from here or there."""
        try:
            while (message := await self._queue.get()) is not None:
                if isinstance(message, bytes):
                    await self._socket.send_bytes(message)
                else:
                    await self._socket.send_str(message)
                self._behind -= len(message)
            await self._socket.close(code=WSCloseCode.GOING_AWAY)
        except ConnectionError:
            self._closing = True


class Server:
    """Serves one chat. ``title`` is that of its page."""

    def __init__(self, gate: Gate, chat: ServedChat, title: str) -> None:
        self._gate = gate
        self._chat = chat
        self._title = title

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._guarded])
        app.router.add_get("/{token}/", self._page)
        app.router.add_get("/{token}/ws", self._connect)
        app.router.add_get("/{token}/static/{name}", self._asset)
        app.router.add_route("*", "/{token:[^/]*}{rest:.*}", self._nothing)
        return app

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
        """Every request is judged before anything else is done with it."""
        why = self._gate.refusal(
            request.match_info.get("token", ""),
            request.headers.get("Host", ""),
            request.headers.get("Origin"),
            needs_origin=request.path.endswith("/ws"),
        )
        if why is not None:
            return web.Response(status=403, text=f"{why}\n", headers=HEADERS)
        response: web.StreamResponse = await handler(request)
        return response

    async def _nothing(self, request: web.Request) -> web.Response:
        return web.Response(status=404, text="There is nothing here.\n", headers=HEADERS)

    async def _page(self, request: web.Request) -> web.Response:
        scheme = "wss" if request.headers.get("X-Forwarded-Proto", request.scheme) == "https" else "ws"
        text = page(self._title, f"{scheme}://{request.host}/{self._gate.token}/ws")
        return web.Response(text=text, content_type="text/html", headers=HEADERS)

    async def _asset(self, request: web.Request) -> web.Response:
        found = await asyncio.to_thread(asset, request.match_info["name"])
        if found is None:
            return await self._nothing(request)
        body, kind = found
        return web.Response(body=body, content_type=kind, headers=HEADERS)

    async def _connect(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(heartbeat=HEARTBEAT, max_msg_size=MOST_TYPED)
        await socket.prepare(request)
        viewer = Page(socket)
        sending = asyncio.create_task(viewer.send(), name="page")
        try:
            columns, lines = (_cells(request.query.get(name)) for name in ("width", "height"))
            await self._chat.attach(viewer, columns or 80, lines or 24)
            async for message in socket:
                if message.type is not WSMsgType.TEXT or not self._heard(viewer, message.data):
                    await socket.close(code=WSCloseCode.UNSUPPORTED_DATA)
        finally:
            self._chat.detach(viewer)
            viewer.close()
            await sending
        return socket

    def _heard(self, viewer: Page, text: str) -> bool:
        """Does what the page asks for; False for what no page of ours says."""
        try:
            said = json.loads(text)
        except ValueError:
            return False
        match said:
            case ["stdin", str(typed)]:
                self._chat.typed(typed)
            case ["resize", {"width": width, "height": height}] if _cells(width) and _cells(height):
                self._chat.resize(_cells(width), _cells(height))
            case ["focus"] | ["blur"]:
                self._chat.focus(said == ["focus"])
            case ["ping", stamp]:
                viewer.pong(str(stamp)[:40])
            case _:
                return False
        return True


def _cells(value: object) -> int:
    """A number of columns or lines; 0 for what is none."""
    if isinstance(value, bool) or not isinstance(value, (int, str)) or not str(value).isdecimal():
        return 0
    return min(int(str(value)[:6]), MOST_CELLS)


async def serve(command: Sequence[str], host: str, port: int, title: str, told: Callable[[str], None]) -> None:
    """Serves the chat that ``command`` starts until a signal ends it. ``told`` gets the address once it is open.
    Raises AgentError where nothing can listen there."""
    gate, chat = Gate(host), ServedChat(command)
    runner = web.AppRunner(Server(gate, chat, title).application(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as error:
            raise AgentError(f"agent-tui serve cannot listen on {host}:{port}: {error.strerror or error}.") from None
        opened = runner.addresses[0]
        shown = f"[{host}]" if ":" in host else host
        asked = _asked_to_end()
        told(f"http://{shown}:{opened[1]}/{gate.token}/")
        await asked.wait()
    finally:
        await chat.close()
        await runner.cleanup()


def _asked_to_end() -> asyncio.Event:
    """Set once a signal asks for the end; what the caller ignores (``nohup``) stays ignored."""
    loop, asked = asyncio.get_running_loop(), asyncio.Event()
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if signal.getsignal(number := getattr(signal, name)) is not signal.SIG_IGN:
            loop.add_signal_handler(number, asked.set)
    return asked
