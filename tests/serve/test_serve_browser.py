"""The whole program in a real browser: typed into, streamed to, resized, reloaded, and refused to other sites."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent_tui.ui.keys import PAUSE
from tests.support.browser import Tab, browser_program, browsing
from tests.support.cli import environment
from tests.support.waiting import PATIENCE, opened

BROWSER = browser_program()

pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="there is no browser here: install Chromium, or name one in AGENT_TUI_TEST_BROWSER"
)

SCRIPT = (
    """
[[step]]
match = "make a file"
text = "I make it."
tool_calls = [{ name = "bash", arguments = { command = "touch made && echo it is there" } }]
[[step]]
match = "^tell much"
text = """
    + json.dumps("\n\n".join(f"line {n} of many" for n in range(60)))
    + """
[[step]]
text = "these are the first words of an answer that does not go on by itself"
chunk = 8
after = 40
hang = true
[[step]]
repeat = 0
text = "and with the last words"
"""
)


@asynccontextmanager
async def serving(home: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """``agent-tui serve`` and the address it printed."""
    script, project = home / "script.toml", home / "project"
    script.write_text(SCRIPT, "utf-8")
    project.mkdir()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agent_tui", "serve", "-m", "demo"),
        cwd=project,
        env=environment({"AGENT_TUI_HOME": str(home / "home"), "AGENT_TUI_DEMO_SCRIPT": str(script)}),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        address = await asyncio.wait_for(process.stdout.readline(), PATIENCE)
        yield process, address.decode().strip()
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


async def test_the_chat_in_a_page(tmp_path: Path) -> None:
    assert BROWSER is not None
    async with serving(tmp_path) as (server, address), browsing(BROWSER, tmp_path) as tab:
        await tab.size(1000, 600)
        await tab.open(address)
        await tab.until(lambda: "DEMO" in tab.text and "Ask anything" in tab.text)
        await types_and_sees_it_stream(tab)
        await runs_a_command(tab)
        await answers_a_question(tab, tmp_path / "project" / "made")
        await pastes(tab, address)
        await scrolls_and_copies(tab)
        await looks_at_the_context(tab)
        await resizes(tab)
        await reloads(tab)
        assert all(one.startswith((address, "data:")) for one in tab.requested)
        assert tab.wrong == []
        await is_refused_elsewhere(tab, address)
        server.send_signal(signal.SIGINT)
        assert await server.wait() == 0


async def types_and_sees_it_stream(tab: Tab) -> None:
    await tab.type("hello page")
    await tab.until(lambda: "hello page" in tab.text)
    await tab.enter()
    # What has come is shown while the answer goes on; then it is interrupted.
    await tab.until(lambda: "the first words" in tab.text and "Esc to interrupt" in tab.text)
    await tab.press("Escape", 27)
    await tab.until(lambda: "Esc to interrupt" not in tab.text)
    await tab.type("once more")
    await tab.enter()
    await tab.until(lambda: "with the last words" in tab.text and "Esc to interrupt" not in tab.text)
    await tab.shows(2_000)


async def runs_a_command(tab: Tab) -> None:
    """What is run there knows nothing of the page."""
    await tab.type("!env | grep -c -E 'AGENT_TUI_SERVED|TEXTUAL_C' | tr 01 YN")
    await tab.enter()
    await tab.until(lambda: "output · 1 line" in tab.text)
    assert tab.text.rpartition("output · 1 line")[2].split()[0] == "Y"


async def answers_a_question(tab: Tab, made: Path) -> None:
    """The keys of a question answer it, and the command runs."""
    await tab.type("make a file")
    await tab.enter()
    await tab.until(lambda: "Run this command?" in tab.text and "touch made" in tab.text)
    # What is pressed before anybody can have seen it is typing; this is as long as the program thinks that takes.
    await tab.value(f"new Promise(seen => setTimeout(seen, {2_000 * PAUSE}))")
    await tab.press("y", 89, "y")
    await tab.until(lambda: "with the last words" in tab.text.rpartition("I make it")[2])
    assert made.exists()


async def pastes(tab: Tab, address: str) -> None:
    """Lines of the browser's clipboard stand in the prompt, and none of them is sent."""
    await tab.may_use_the_clipboard(address)
    await tab.value("navigator.clipboard.writeText('first pasted\\nsecond pasted')")
    await tab.press("v", 86, modifiers=2, command="paste")
    await tab.until(lambda: "▌ first pasted" in tab.text and "▌ second pasted" in tab.text)
    for _ in range(3):
        await tab.press("u", 85, modifiers=2)
    await tab.until(lambda: "Ask anything" in tab.text)


async def scrolls_and_copies(tab: Tab) -> None:
    """The wheel scrolls; what the mouse selects goes into the browser's clipboard."""
    await tab.type("tell much")
    await tab.enter()
    await tab.until(lambda: "line 59 of many" in tab.text and "Esc to interrupt" not in tab.text)
    await tab.mouse("Wheel", 400, 200, deltaX=0, deltaY=-400)
    await tab.until(lambda: "line 59 of many" not in tab.text)
    # To the top, where nothing moves any more while something is selected.
    await tab.press("Home", 36, modifiers=2)
    await tab.until(lambda: "/help lists" in tab.text)
    y = next(n for n, line in enumerate(tab.text.splitlines()) if "/help lists" in line)
    wide, high = tab.screen.width, tab.screen.height
    across, down = (await tab.value("innerWidth")) / wide, (y + 0.5) * (await tab.value("innerHeight")) / high
    await tab.mouse("Pressed", 4.4 * across, down, button="left", clickCount=1)
    await tab.mouse("Moved", 6.4 * across, down, button="left", buttons=1)
    await tab.mouse("Moved", 11.4 * across, down, button="left", buttons=1)
    await tab.mouse("Released", 11.4 * across, down, button="left", clickCount=1)
    await tab.press("c", 67, modifiers=2)
    await tab.until(lambda: "Copied" in tab.text)
    reads = "(async () => { let t; do t = await navigator.clipboard.readText(); while (t[0] != '/'); return t })()"
    assert await tab.value(reads) == "/context"
    # A click into the prompt: what is typed goes there again.
    for kind in ("Pressed", "Released"):
        await tab.mouse(kind, 400, 600 - 3 * 600 / high, button="left", clickCount=1)
    await tab.type("x")
    await tab.until(lambda: "▌ x" in tab.text)
    await tab.press("u", 85, modifiers=2)
    await tab.until(lambda: "Ask anything" in tab.text)
    await tab.press("End", 35, modifiers=2)
    await tab.until(lambda: "line 59 of many" in tab.text)


async def looks_at_the_context(tab: Tab) -> None:
    await tab.type("/context")
    await tab.until(lambda: "/context" in tab.text)
    await tab.enter()
    await tab.until(lambda: "adds up to" in tab.text)
    await tab.press("Escape", 27)
    await tab.until(lambda: "Ask anything" in tab.text)


async def resizes(tab: Tab) -> None:
    wide, high = tab.screen.width, tab.screen.height
    await tab.size(700, 400)
    await tab.until(lambda: tab.screen.width < wide and tab.screen.height < high)
    await tab.until(lambda: "16k" in tab.text.splitlines()[-1] and "line 59 of many" in tab.text)
    # The last line is on the page, not below it.
    await tab.shows(50, (0, 375, 700, 400))


async def reloads(tab: Tab) -> None:
    await tab.type("a draft")
    await tab.until(lambda: "a draft" in tab.text)
    await tab.call("Page.reload")
    await tab.until(lambda: tab.sockets == 2)
    # The same chat: its conversation, and even what was not sent.
    await tab.until(lambda: "line 59 of many" in tab.text and "a draft" in tab.text)
    await tab.press("u", 85, modifiers=2)
    await tab.until(lambda: "Ask anything" in tab.text)
    # One that has ended goes on with its session.
    before = tab.closed
    await tab.press("d", 68, modifiers=2)
    await tab.until(lambda: tab.closed > before)
    await tab.until(lambda: "agent-tui --resume ses_" in tab.text)
    await tab.becomes("getComputedStyle(document.querySelector('#lost')).display", "block")
    await tab.call("Page.reload")
    await tab.until(lambda: tab.sockets == 3)
    await tab.until(lambda: "line 59 of many" in tab.text and "Ask anything" in tab.text)


async def is_refused_elsewhere(tab: Tab, address: str) -> None:
    """A page of another site cannot connect, and without the token there is no page."""
    socket = address.replace("http:", "ws:") + "ws"
    connects = f"new Promise(done => {{ const s = new WebSocket('{socket}');" + (
        " s.onopen = () => done(true); s.onerror = () => done(false) })"
    )
    await tab.open("data:text/html,<title>another site</title>")
    assert await tab.value(connects) is False
    await tab.open(address.rpartition("/")[0][:-1] + "/")
    assert "not complete" in await tab.value("document.documentElement.innerText")


@pytest.mark.skipif(sys.platform != "linux", reason="looks for children as Linux lists them")
async def test_it_ends_with_the_server_however_that_ends(tmp_path: Path) -> None:
    assert BROWSER is not None
    async with serving(tmp_path) as (server, address), browsing(BROWSER, tmp_path) as tab:
        await tab.open(address)
        await tab.until(lambda: "DEMO" in tab.text)
        children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
        gone = opened([int(child) for child in children])
        assert gone
        server.kill()
        for one in gone:
            ended = await asyncio.to_thread(waited, one)
            os.close(one)
            assert ended


def waited(descriptor: int) -> bool:
    """Whether it can be read in the end."""
    return bool(select.select([descriptor], [], [], PATIENCE)[0])
