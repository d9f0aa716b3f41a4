"""What dialogs list, each as a scene: branches, hits of a search, nothing at all, and very much."""

from __future__ import annotations

from typing import Any

from textual.pilot import Pilot

from agent_tui.models.messages import Message, TextPart, user_message
from agent_tui.models.session import Branch, FilesMoved, SessionInfo
from agent_tui.ui.app import AgentApp
from tests.support import showcase
from tests.support.fake_agent import FakeAgent


async def rewind_tree(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """Branches of branches."""

    def said(text: str, minutes: int) -> list[Message]:
        pair = [user_message(text), Message(f"answer {text}", "assistant", [TextPart("yes")])]
        for message in pair:
            message.created = showcase.NOW - 60 * minutes
        return pair

    path = [
        *said("write a parser 日本語", 3_000),
        *said("use a dataclass " + "and more words " * 9, 9),
        *said("now the tests", 1),
    ]
    one, two, inner = [*said("use a tuple", 20), *said("with a name", 18)], said("use a dict", 25), said("typed", 22)
    agent.conversation.path = path
    agent.branches.others = [
        Branch(one[-1].id, path[1].id, one, 2, 3_100),
        Branch(two[-1].id, path[1].id, two, 2, 420),
        Branch(inner[-1].id, two[0].id, inner, 3, 80, under=two[-1].id, depth=1),
    ]
    agent.moving = FilesMoved([agent.root / "src" / "a.py"], [f"{agent.root}/b.py: changed since by something else"])
    app.open_screen("rewind")
    await pilot.pause()
    await pilot.press("tab")


async def found(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    """Hits of a search over all that was said."""
    said = "Where does the parser keep its states? " * 4 + "In the 日本語 table."
    agent.store.said = {info.id: said for info in agent.store.listed}
    app.open_screen("sessions", "parser states")


async def nothing_found(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    app.open_screen("sessions", "no such words anywhere")


async def no_sessions(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    agent.store.listed = []
    app.open_screen("sessions")


async def many_sessions(app: AgentApp, pilot: Pilot[Any], agent: FakeAgent) -> None:
    agent.store.listed = [
        SessionInfo(
            f"ses_{n}",
            "/project" if n % 3 else "/elsewhere/a-very-long-name-of-a-project",
            title=f"Session {n} 日本 " + "word " * (n % 30),
            model="openrouter/anthropic/claude-sonnet-4.6-thinking",
            messages=n * 17,
            updated=showcase.NOW - n * 40_000,
        )
        for n in range(300)
    ]
    app.open_screen("sessions")
    await pilot.pause()
    await pilot.press("ctrl+a", "down", "down")


LISTS = {
    "rewind-tree": rewind_tree,
    "found": found,
    "nothing-found": nothing_found,
    "no-sessions": no_sessions,
    "many-sessions": many_sessions,
}
