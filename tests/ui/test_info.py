"""What commands have to say opens in one dialog, where it is found, copied and changed by keys."""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path

import pytest
from textual.events import Key

from agent_tui.engine.about import REMEMBERED
from agent_tui.engine.model_control import MissingKey
from agent_tui.ui.screens.info import InfoScreen
from agent_tui.ui.screens.key import KeyScreen
from agent_tui.ui.screens.text import TextScreen
from tests.support.app import running
from tests.support.fake_agent import FakeAgent
from tests.support.real_app import Chat, Home, make_home

PACKAGE = Path(__file__).resolve().parents[2] / "agent_tui"
TITLES = (".border_title", ".border_subtitle")


async def opened(chat: Chat, line: str) -> InfoScreen:
    await chat.say(line)
    await chat.until(lambda: isinstance(chat.app.screen, InfoScreen) and chat.app.screen.query("#rows"))
    assert isinstance(chat.app.screen, InfoScreen)
    return chat.app.screen


@pytest.mark.slow
async def test_rules_and_budgets_are_changed_where_they_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked_worker: None
) -> None:
    home: Home = make_home(tmp_path, monkeypatch)
    home.configure('[permissions]\ndeny = ["bash(rm *)"]\n')
    async with home.chat() as chat:
        agent = chat.app.chat.holder.agent
        assert agent is not None
        await opened(chat, "/permissions")
        await chat.shows("● ask", "bash(rm *)", "a allow")
        await chat.press("down", "down", "enter")
        await chat.shows("Permission mode: plan", "● plan")
        assert agent.mode.now == "plan"
        await chat.press("a", *"bash(npm test*)", "escape")
        await chat.hides("bash(npm")
        assert REMEMBERED not in {where for _, _, where in agent.project.permission_rules()}, "Esc adds nothing"
        await chat.press("a", *"bash([b]npm[/b] test*)", "enter")
        await chat.shows("Allowed in this project", "allow         bash([b]npm[/b] test*)")
        await chat.press("a", *"nonsense((", "enter")
        await chat.hides("Allowed in this project")
        assert [rule for _, rule, where in agent.project.permission_rules() if where == REMEMBERED] == [
            "bash([b]npm[/b] test*)"
        ]
        await chat.press("end", "d")
        await chat.shows("Removed bash([b]npm")
        assert [rule for _, rule, _ in agent.project.permission_rules()] == ["bash(rm *)"], (
            "one of the configuration stays"
        )
        await chat.press("escape")
        await opened(chat, "/budget")
        await chat.press("down", "enter", *"5", "enter")
        await chat.shows("Session: $0 of $5.00")
        assert agent.conversation.info.state.budget == {"session": 5.0}
        await chat.press("d")
        await chat.shows("no limit (budget.session_usd)")
        await chat.press("enter", *"a lot", "enter")
        await chat.shows("Not an amount: use 5")
        assert agent.conversation.info.state.budget == {"session": None}
        await chat.press("escape")
        await chat.until(lambda: not isinstance(chat.app.screen, InfoScreen))


async def test_a_sign_in_opens_on_the_list_of_servers_and_takes_an_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = FakeAgent(tmp_path)
    address = agent.project.sign_in_addresses["github"] = "http://127.0.0.1:1/authorize?state=[b]x"
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    async with running(tmp_path, agent, size=(80, 24)) as run:
        copied: list[str] = []
        monkeypatch.setattr(run.app, "copy_to_clipboard", copied.append)
        run.app.prompt.set_text("/mcp")
        await run.pilot.press("enter")
        await run.screen(InfoScreen)
        await run.pilot.press("s")
        await run.until(lambda: "Sign in to github" in run.shown() and address in run.shown())
        await run.pilot.press("a")
        await run.until(lambda: "Copied the address." in run.shown())
        assert copied == [address]
        await run.pilot.press("p", *"nonsense", "enter")
        await run.until(lambda: "That is not where the browser ended." in run.shown())
        del agent.project.sign_in_addresses["github"]
        await run.pilot.press("p", *"http://127.0.0.1:2/callback?code=1", "enter")
        await run.until(lambda: "Sign in to github" not in run.shown())
        assert agent.called("paste") == ["http://127.0.0.1:2/callback?code=1"]
        assert isinstance(run.app.screen, InfoScreen), "the list is there again"


async def test_a_silent_server_holds_nothing_up_and_esc_cancels_it(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    ended: list[str] = []

    async def silent(name: str) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)
        return ""

    agent.project.mcp_sign_in = agent.project.mcp_reconnect = silent  # type: ignore[method-assign]
    async with running(tmp_path, agent, size=(80, 24)) as run:
        for line, doing in (
            ("/mcp login hang", "Signing in to hang"),
            ("/mcp reconnect hang", "Reconnecting hang"),
        ):
            agent.calls.clear()
            ended.clear()
            run.app.prompt.set_text(line)
            await run.pilot.press("enter")
            await run.until(lambda doing=doing: doing in run.shown() and "Esc to cancel" in run.shown())  # type: ignore[misc]
            assert run.shown().count(doing) == 1, "the line above the prompt says it"
            run.app.prompt.set_text("hello")
            await run.pilot.press("enter")
            await run.until(lambda: run.agent.called("submit"))
            assert not ended
            agent.turns.busy = False
            await run.pilot.press("escape")
            await run.until(lambda doing=doing: ended == ["hang"] and f"{doing}: cancelled" in run.shown())  # type: ignore[misc]
            assert run.app.prompt.is_empty and "Esc to cancel" not in run.shown()


@pytest.mark.slow
async def test_a_silent_server_is_named_in_the_list_and_esc_cancels_it(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    agent.project.sign_in_addresses["github"] = "https://never.example"
    ended: list[str] = []

    async def silent(name: str) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)
        return ""

    agent.project.mcp_sign_in = silent  # type: ignore[method-assign]
    async with running(tmp_path, agent, size=(80, 24)) as run:
        run.app.prompt.set_text("/mcp")
        await run.pilot.press("enter")
        await run.screen(InfoScreen)
        await run.pilot.press("s")
        await run.until(lambda: "Signing in to github…" in run.shown())
        await run.pilot.press("escape")
        await run.until(lambda: ended == ["github"])


async def test_it_is_found_in_and_copied_and_longer_answers_open_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = FakeAgent(tmp_path)
    async with running(tmp_path, agent, size=(60, 20)) as run:
        copied: list[str] = []
        monkeypatch.setattr(run.app, "copy_to_clipboard", copied.append)
        run.app.prompt.set_text("/status")
        await run.pilot.press("enter")
        await run.screen(InfoScreen)
        assert "Title" in run.shown() and "Thinking" in run.shown()
        await run.pilot.press("slash", *"thinking", "enter")
        await run.until(lambda: "Title" not in run.shown())
        assert "Thinking" in run.shown()
        await run.pilot.press("slash", *"zebra")
        await run.until(lambda: "Nothing matches." in run.shown())
        await run.pilot.press("escape")
        await run.until(lambda: "Title" in run.shown())
        await run.pilot.press("c")
        (text,) = copied
        assert text.startswith("Session\n  Title") and "Sandbox" in text and "│" not in text
        await run.pilot.press("escape")
        await run.until(lambda: not isinstance(run.app.screen, TextScreen))
        run.app.prompt.set_text("/trust show")
        await run.pilot.press("enter")
        await run.screen(InfoScreen)
        await run.pilot.press("y")
        await run.until(lambda: not isinstance(run.app.screen, InfoScreen) and "Trusted." in run.shown())
        run.app.prompt.set_text("/context why")
        await run.pilot.press("enter")
        await run.screen(TextScreen)
        assert "/context why" in run.shown() and "c copy" in run.shown()
        for screen in (
            TextScreen("[/red] of [b]all[/b]", "text"),
            KeyScreen(run.app.chat.holder.agent, "[/b]", MissingKey("[/red] of [b]all[/b]", "KEY")),  # type: ignore[arg-type]
        ):
            await run.app.push_screen(screen)
            await run.until(lambda: "[/red] of [b]all[/b]" in run.shown())


@pytest.mark.quick
async def test_what_was_not_on_the_screen_needs_another_key(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    agent.project.brings = tuple(f"step {number}" for number in range(60))
    async with running(tmp_path, agent, size=(80, 24)) as run:

        async def opened() -> None:
            agent.project.trust_state = "never"
            run.app.prompt.set_text("/trust")
            await run.pilot.press("enter")
            await run.screen(InfoScreen)
            await run.until(lambda: "step 5" in run.shown())

        async def trusted() -> None:
            await run.until(
                lambda: not isinstance(run.app.screen, InfoScreen) and agent.project.trust_state == "trusted"
            )

        await opened()
        await run.until(lambda: "lines further down were not shown." in run.shown())
        assert "t trust it unseen" in run.shown() and "y trust all of it" not in run.shown()
        await run.pilot.press("y", "y", "y")
        assert agent.project.trust_state == "never"
        await run.pilot.press("end")
        await run.until(lambda: "step 59" in run.shown() and "lines further up were not shown." in run.shown())
        await run.pilot.press("y")
        assert agent.project.trust_state == "never", "what lies between was jumped over"
        before = run.shown()
        await run.pilot.press("u")
        await run.until(lambda: "step 59" not in run.shown() and "not shown" in run.shown() and run.shown() != before)
        await run.pilot.press("t")
        await trusted()
        await opened()
        while "step 59" not in run.shown():
            await run.pilot.press("pagedown")
            await run.pilot.pause()
        await run.until(lambda: "step 59" in run.shown() and "y trust all of it" in run.shown())
        assert "not shown" not in run.shown() and "unseen" not in run.shown()
        await run.pilot.press("y")
        await trusted()


@pytest.mark.slow
async def test_pages_in_quick_succession_are_all_seen(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    agent.project.brings = tuple(f"step {number}" for number in range(150))
    agent.project.trust_state = "never"
    async with running(tmp_path, agent, size=(200, 50)) as run:
        run.app.prompt.set_text("/trust")
        await run.pilot.press("enter")
        await run.screen(InfoScreen)
        await run.until(lambda: "lines further down were not shown." in run.shown())
        for _ in range(4):
            run.app.post_message(Key("pagedown", None))
        await run.until(lambda: "step 149" in run.shown() and "y trust all of it" in run.shown())
        assert "not shown" not in run.shown()


@pytest.mark.quick
def test_the_title_of_a_frame_is_never_markup() -> None:
    for path in sorted((PACKAGE / "ui").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).endswith(TITLES):
                made = isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "Content"
                assert made or isinstance(node.value, ast.Constant | ast.IfExp), f"{path.name}:{node.lineno}"
