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
from typing import TYPE_CHECKING, Any

from PIL import Image

from tests.support.screen_model import ScreenModel
from tests.support.waiting import PATIENCE

if TYPE_CHECKING:
    import aiohttp

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def browser_program() -> str | None:
    """The program of a browser that can be driven: the one that ``AGENT_TUI_TEST_BROWSER`` names, or the first there
    is."""
    named = os.environ.get("AGENT_TUI_TEST_BROWSER")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


class Tab:
    """A page. ``screen`` is what its terminal was sent since it was loaded, ``requested`` the addresses it asked for,
    ``wrong`` what its console, the browser and the screen complained of."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._count = 0
        self._loaded: set[str] = set()
        self._news = asyncio.Event()
        self.screen = ScreenModel(80, 24, wraps=True)
        self.requested: list[str] = []
        self.wrong: list[str] = []
        self.sockets = 0
        self.closed = 0

    async def begin(self) -> None:
        for domain in ("Page", "Network", "Runtime", "Log"):
            await self.call(f"{domain}.enable")
        await self.call("Page.setLifecycleEventsEnabled", enabled=True)

    async def listen(self) -> None:
        async for message in self._socket:
            said = message.json()
            if (waiting := self._answers.pop(said.get("id"), None)) is not None:
                waiting.set_result(said)
            else:
                try:
                    self._heard(said["method"], said["params"])
                except AssertionError as error:
                    self.wrong.append(f"what no terminal was expected to get: {error}")
            self._news.set()

    def _heard(self, method: str, facts: dict[str, Any]) -> None:
        match method:
            case "Network.webSocketCreated":
                self.screen = ScreenModel(80, 24, wraps=True)
                self.sockets += 1
            case "Network.webSocketFrameReceived" if facts["response"]["opcode"] == 2:
                self.screen.feed(base64.b64decode(facts["response"]["payloadData"]).decode("utf-8", "replace"))
            case "Network.webSocketFrameSent" if (sent := json.loads(facts["response"]["payloadData"]))[0] == "resize":
                self.screen.resize(sent[1]["width"], sent[1]["height"])
            case "Page.lifecycleEvent" if facts["name"] == "load":
                self._loaded.add(facts["loaderId"])
            case "Network.webSocketClosed":
                self.closed += 1
            case "Network.requestWillBeSent":
                self.requested.append(facts["request"]["url"])
            case "Log.entryAdded" if facts["entry"]["level"] == "error":
                self.wrong.append(facts["entry"]["text"])
            case "Runtime.exceptionThrown":
                self.wrong.append(str(facts["exceptionDetails"]))

    @property
    def text(self) -> str:
        """What its terminal shows."""
        return "\n".join(row.rstrip() for row in self.screen.text())

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
            raise AssertionError(f"{self.text}\n{self.wrong}") from None

    async def open(self, address: str) -> None:
        """Goes to another page, and waits until that, and not the one before, is loaded."""
        loader = (await self.call("Page.navigate", url=address))["loaderId"]
        await self.until(lambda: loader in self._loaded)

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

    async def shows(self, points: int, box: tuple[int, int, int, int] | None = None) -> None:
        """Waits until more than so many points of the page, or of a box in it, are neither its background nor next to
        it: what has arrived is drawn later, and nothing tells when."""
        drawn = 0
        try:
            async with asyncio.timeout(PATIENCE):
                while drawn <= points:
                    drawn = sum((await self.picture()).crop(box).convert("L").histogram()[100:])
        except TimeoutError:
            raise AssertionError(f"{drawn} points are drawn\n{self.text}\n{self.wrong}") from None

    async def becomes(self, script: str, value: Any) -> None:
        """Waits until a script in the page comes to a value: the page hears of what happens after the browser does."""
        now = None
        try:
            async with asyncio.timeout(PATIENCE):
                while (now := await self.value(script)) != value:
                    pass
        except TimeoutError:
            raise AssertionError(f"{script} is {now!r}\n{self.wrong}") from None


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
        import aiohttp

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
