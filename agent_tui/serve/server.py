"""The server: one page, the few files it needs, and its connection to the chat, for whoever knows the address;
everything else is refused.
"""

from __future__ import annotations

import asyncio
import hmac
import html
import ipaddress
import json
import secrets
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

from agent_tui.errors import AgentError
from agent_tui.serve.chat import ServedChat
from agent_tui.urls import AddressError, Url, parse_place, parse_url

TOKEN_BYTES = 32

HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self'; "
        "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Server": "agent-tui",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Of every answer: nothing is loaded from elsewhere, framed, kept, or told to others, the address above all."""


class Gate:
    """``host`` is what the server listens on."""

    def __init__(self, host: str, token: str | None = None) -> None:
        self.token = token or secrets.token_urlsafe(TOKEN_BYTES)
        listens = listening_host(host)
        self._names = {"localhost", listens.host}
        if not is_loopback(host):
            self._names.add(socket.gethostname().lower())

    def refusal(self, token: str, host: str, origin: str | None, *, needs_origin: bool = False) -> str | None:
        """Why a request is refused; None where it is not. ``host`` and ``origin`` are its headers."""
        if not self._knows(host):
            return "This host name is not allowed here."
        if not hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode()):
            return "This address is incomplete or out of date. Open the one that agent-tui serve printed."
        if origin is None:
            return "Only pages of this server may connect." if needs_origin else None
        return None if _is_page_of(host, origin) else "Only pages of this server may connect."

    def _knows(self, host: str) -> bool:
        """Returns whether a Host header names this server. Its port may be that of a tunnel; an address of numbers
        cannot have been made to point here by anybody's name server."""
        try:
            name = parse_place(host).host
        except AddressError:
            return False
        return name in self._names or _is_number(name)


def listening_host(host: str) -> Url:
    """The address of what listens at ``host``. Raises AgentError for what is no host, such as one with a user in it."""
    try:
        found = parse_place(f"[{host}]" if host.count(":") > 1 and not host.startswith("[") else host)
    except AddressError as error:
        raise AgentError(f"--host takes the name or address of this machine alone. {error}") from None
    if found.written_port is not None:
        raise AgentError("--host takes no port: give it with --port.")
    return found


def is_loopback(host: str) -> bool:
    """Returns whether nobody but this machine reaches a server that listens at ``host``."""
    found = listening_host(host)
    return found.loopback and found.host not in ("0.0.0.0", "::")


def _is_page_of(host: str, origin: str) -> bool:
    scheme, _, place = origin.lower().partition("://")
    try:
        parse_place(place)  # nothing but a host and its port
        return parse_url(f"{scheme}://{place}").origin == parse_url(f"{scheme}://{host}").origin
    except AddressError:
        return False


def _is_number(name: str) -> bool:
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return False


ASSETS = {
    "xterm.css": "css/xterm.css",
    "textual.js": "js/textual.js",
    "mono.ttf": "fonts/RobotoMono-VariableFont_wght.ttf",
    "mono-italic.ttf": "fonts/RobotoMono-Italic-VariableFont_wght.ttf",
}
"""By the name in the page: where it lies among the files of textual-serve."""

TYPES = {".css": "text/css", ".js": "text/javascript", ".ttf": "font/ttf"}

FONT_SIZE = 16

_BEGIN = """\
// The terminal measures its letters once, so they are there before it is; keys go to it once it is connected, for it
// tells its chat of that, and again whenever the window is come back to.
const connected = () => document.body.classList.contains("-loaded");
const focus = () => connected() && document.querySelector(".xterm-helper-textarea")?.focus();
const open_terminal = window.onload;
window.onload = async (event) => {
  const letters = ["", "bold ", "italic "].map((kind) => document.fonts.load(kind + "16px 'Roboto Mono'"));
  await Promise.allSettled(letters);
  const watching = { attributes: true, attributeFilter: ["class"] };
  new MutationObserver((_, seen) => connected() && (seen.disconnect(), focus())).observe(document.body, watching);
  open_terminal(event);
};
addEventListener("focus", focus);
// Pasting is the browser's: its clipboard is that of the machine the page is looked at on. The terminal would send the
// key, and what lies in the clipboard of the server's machine would be pasted.
addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "v") {
    event.stopImmediatePropagation();
  }
}, true);
"""

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="static/xterm.css">
<script src="static/textual.js"></script>
<script src="static/begin.js"></script>
<style>
@font-face {{ font-family: "Roboto Mono"; src: url("static/mono.ttf"); font-weight: 100 700; }}
@font-face {{ font-family: "Roboto Mono"; src: url("static/mono-italic.ttf"); font-weight: 100 700;
  font-style: italic; }}
html, body {{ height: 100%; margin: 0; background: #0f1318; overflow: hidden; }}
#terminal {{ height: 100%; }}
.xterm-viewport {{ scrollbar-width: none; }}
#lost {{ display: none; position: fixed; inset: auto 0 0 0; padding: .75rem 1rem; background: #1f2630; color: #d5dae1;
  font: 15px/1.4 system-ui, sans-serif; z-index: 10; }}
#lost a {{ color: #74b3ff; }}
body.-closed #lost {{ display: block; }}
</style>
</head>
<body>
<div id="terminal" class="textual-terminal" data-session-websocket-url="{socket}" data-font-size="{size}"></div>
<div id="lost" role="status">The chat ended, was opened in another page, or the server
stopped. Nothing is lost. <a href="">Reload</a></div>
<noscript>This page needs JavaScript.</noscript>
</body>
</html>
"""


def page(title: str, socket: str) -> str:
    """The page as HTML; ``socket`` is the address of its connection."""
    return _PAGE.format(title=html.escape(title), socket=html.escape(socket), size=FONT_SIZE)


def asset(name: str) -> tuple[bytes, str] | None:
    """A file of the page by its name, with its type; None for every other name."""
    if name == "begin.js":
        return _BEGIN.encode(), TYPES[".js"]
    place = ASSETS.get(name)
    if place is None:
        return None
    return files("textual_serve").joinpath("static", *place.split("/")).read_bytes(), TYPES[Path(name).suffix]


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


class ChatServer:
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
            " ".join(request.headers.getall("Host", [])),
            request.headers.get("Origin"),
            needs_origin=request.path.endswith("/ws"),
        )
        if why is not None:
            return web.Response(status=403, text=f"{why}\n", headers=HEADERS)
        response: web.StreamResponse = await handler(request)
        return response

    async def _nothing(self, request: web.Request) -> web.Response:
        return web.Response(status=404, text="Not found.\n", headers=HEADERS)

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
    host = listening_host(host).host
    gate, chat = Gate(host), ServedChat(command)
    runner = web.AppRunner(ChatServer(gate, chat, title).application(), access_log=None, shutdown_timeout=1.0)
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
