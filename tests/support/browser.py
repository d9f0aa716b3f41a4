"""A real browser without a window, driven over its own debugging protocol: nothing to install but the browser."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import json
import os
import re
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from PIL import Image

from tests.support.waiting import PATIENCE

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def browser_program() -> str | None:
    """The program of a browser that can be driven: the one that ``AGENT_TUI_TEST_BROWSER`` names, or the first there
    is."""
    named = os.environ.get("AGENT_TUI_TEST_BROWSER")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


class Screen:
    """What a terminal of ``size`` (columns, lines) shows that was sent what the application sends: text at places, and
    parts of the screen that scroll."""

    def __init__(self) -> None:
        self._cells: dict[tuple[int, int], str] = {}
        self._at = (0, 0)
        self._rest = ""
        self._margins = (0, 1 << 20)
        self.size = (80, 24)

    def feed(self, text: str) -> None:
        self._rest += text
        while match := re.match(
            r"\x1b\[([0-9;?<>=$ ]*)([@-~])|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[^\[\]PX^_]|[^\x1b]", self._rest
        ):
            self._rest = self._rest[match.end() :]
            self._carry_out(match)

    def _carry_out(self, match: re.Match[str]) -> None:
        y, x = self._at
        top, bottom = self._margins
        if (sign := match[0]) == "\n":
            self._at = (y + 1, x) if y != bottom else self._scroll(1)
        elif sign == "\x1bM":
            self._at = (y - 1, x) if y != top else self._scroll(-1)
        elif match[2] == "r":
            first, _, last = match[1].partition(";")
            self._margins = (int(first or 1) - 1, int(last or 1 << 20) - 1)
        elif sign == "\r":
            self._at = (y, 0)
        elif match[2] == "H":
            row, _, column = (match[1] or "1;1").partition(";")
            self._at = (int(row or 1) - 1, int(column or 1) - 1)
        elif match[2] == "J" or (match[2] == "h" and match[1] == "?1049"):
            self._cells.clear()
        elif not sign.startswith("\x1b"):
            self._cells[self._at] = sign
            self._at = (y, x + 1)

    def _scroll(self, by: int) -> tuple[int, int]:
        """Moves the lines between the margins; the place of the cursor, which stays."""
        top, bottom = self._margins
        inside = {(y - by, x): sign for (y, x), sign in self._cells.items() if top <= y <= bottom}
        outside = {place: sign for place, sign in self._cells.items() if not top <= place[0] <= bottom}
        self._cells = {**outside, **{place: sign for place, sign in inside.items() if top <= place[0] <= bottom}}
        return self._at

    @property
    def text(self) -> str:
        wide, high = self.size
        return "\n".join("".join(self._cells.get((y, x), " ") for x in range(wide)).rstrip() for y in range(high))


class Tab:
    """A page. ``screen`` is what its terminal was sent since it was loaded, ``requested`` the addresses it asked for,
    ``wrong`` what its console and the browser complained of."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._count = 0
        self._loaded = 0
        self._news = asyncio.Event()
        self.screen = Screen()
        self.requested: list[str] = []
        self.wrong: list[str] = []
        self.sockets = 0
        self.closed = 0

    async def begin(self) -> None:
        for domain in ("Page", "Network", "Runtime", "Log"):
            await self.call(f"{domain}.enable")

    async def listen(self) -> None:
        async for message in self._socket:
            said = message.json()
            if (waiting := self._answers.pop(said.get("id"), None)) is not None:
                waiting.set_result(said)
            else:
                self._heard(said["method"], said["params"])
            self._news.set()

    def _heard(self, method: str, facts: dict[str, Any]) -> None:
        match method:
            case "Network.webSocketCreated":
                self.screen = Screen()
                self.sockets += 1
            case "Network.webSocketFrameReceived" if facts["response"]["opcode"] == 2:
                self.screen.feed(base64.b64decode(facts["response"]["payloadData"]).decode("utf-8", "replace"))
            case "Network.webSocketFrameSent" if (sent := json.loads(facts["response"]["payloadData"]))[0] == "resize":
                self.screen.size = (sent[1]["width"], sent[1]["height"])
            case "Page.loadEventFired":
                self._loaded += 1
            case "Network.webSocketClosed":
                self.closed += 1
            case "Network.requestWillBeSent":
                self.requested.append(facts["request"]["url"])
            case "Log.entryAdded" if facts["entry"]["level"] == "error":
                self.wrong.append(facts["entry"]["text"])
            case "Runtime.exceptionThrown":
                self.wrong.append(str(facts["exceptionDetails"]))

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The browser's answer. Raises AssertionError for an error."""
        self._count += 1
        waiting = self._answers[self._count] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._count, "method": method, "params": parameters})
        said = await asyncio.wait_for(waiting, PATIENCE)
        assert "error" not in said, said
        result: dict[str, Any] = said["result"]
        return result

    async def until(self, ready: Callable[[], object]) -> None:
        """Waits for what arrives."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not ready():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"{self.screen.text}\n{self.wrong}") from None

    async def open(self, address: str) -> None:
        """Goes to another page, and waits until that is loaded."""
        before = self._loaded
        await self.call("Page.navigate", url=address)
        await self.until(lambda: self._loaded > before)

    async def size(self, width: int, height: int) -> None:
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    async def type(self, text: str) -> None:
        await self.call("Input.insertText", text=text)

    async def press(self, key: str, code: int, text: str = "", modifiers: int = 0, command: str = "") -> None:
        """A key by its name and number; ``command`` is what the browser does with it unless the page forbids it."""
        facts = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        more: dict[str, Any] = {**({"text": text} if text else {}), **({"commands": [command]} if command else {})}
        await self.call("Input.dispatchKeyEvent", type="keyDown", **facts, **more)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **facts)

    async def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """The mouse at a point of the page: ``Pressed``, ``Moved``, ``Released`` or ``Wheel``."""
        await self.call("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, **more)

    async def may_use_the_clipboard(self, address: str) -> None:
        origin = "/".join(address.split("/")[:3])
        wanted = ["clipboardReadWrite", "clipboardSanitizedWrite"]
        await self.call("Browser.grantPermissions", permissions=wanted, origin=origin)

    async def enter(self) -> None:
        await self.press("Enter", 13, "\r")

    async def value(self, script: str) -> Any:
        """What a script in the page comes to."""
        said = await self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in said, said
        return said["result"].get("value")

    async def picture(self) -> Image.Image:
        said = await self.call("Page.captureScreenshot", format="png")
        return Image.open(io.BytesIO(base64.b64decode(said["data"]))).convert("RGB")


@asynccontextmanager
async def browsing(program: str, folder: Path) -> AsyncIterator[Tab]:
    """A page of a browser with a profile of its own in ``folder``."""
    process = await asyncio.create_subprocess_exec(
        program,
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions"),
        *("--disable-dev-shm-usage", "--remote-debugging-port=0", f"--user-data-dir={folder / 'profile'}"),
        "about:blank",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    listening: asyncio.Task[None] | None = None
    try:
        async with asyncio.timeout(PATIENCE):
            while not (found := re.search(rb"ws://([^/]+)/", await process.stderr.readline())):
                assert process.returncode is None
        swallowing = asyncio.create_task(process.stderr.read())
        base = f"http://{found[1].decode()}"
        async with aiohttp.ClientSession() as session:
            async with session.get(f"{base}/json/list") as answer:
                pages = [one for one in await answer.json() if one["type"] == "page"]
            async with session.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                tab = Tab(socket)
                listening = asyncio.create_task(tab.listen())
                await tab.begin()
                yield tab
        swallowing.cancel()
    finally:
        if listening is not None:
            listening.cancel()
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
