"""Questions of MCP servers in a session: asked, answered, declined where nobody is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_tui.config import PermissionsConfig, Settings
from agent_tui.engine.agent import Agent
from agent_tui.engine.extensions import Extensions
from agent_tui.engine.servers import MOST_ASKED
from agent_tui.errors import AgentError
from agent_tui.models.events import Event, Notice, QuestionClosed, ServerAction, ServerAsked, TurnStarted
from agent_tui.models.messages import INTERRUPTED_RESULT
from agent_tui.tools.mcp.protocol import Elicit, Elicited
from tests.support.agents import Recorder, parts_for, results, running, say
from tests.support.mcp_servers import ASKING, stdio

FORM = Elicit("trips", "Where \x1b[31mto?", {"properties": {"city": {"type": "string"}}, "required": ["city"]})
PAGE = Elicit("trips", "Log in.", url="https://example.com/login?x=1")


@asynccontextmanager
async def open_agent(
    tmp_path: Path, script: str = "", can_ask: bool = True, settings: Settings | None = None
) -> AsyncIterator[tuple[Agent, Recorder]]:
    parts = parts_for(tmp_path / "home", tmp_path / "p", script=script, can_ask=can_ask, settings=settings)
    async with running(parts) as (agent, recorder):
        yield agent, recorder


def answering(agent: Agent, action: ServerAction, values: dict[str, Any] | None = None) -> list[ServerAsked]:
    """Answers whatever servers ask."""
    asked: list[ServerAsked] = []

    def handle(event: Event) -> None:
        if isinstance(event, ServerAsked):
            asked.append(event)
            agent.servers.answer(event.request_id, action, values)

    agent.subscribe(handle)
    return asked


def notices(recorder: Recorder, code: str = "mcp") -> list[str]:
    return [event.text for event in recorder.of(Notice) if event.code == code]


async def test_a_form_and_a_page_are_asked_and_answered(tmp_path: Path) -> None:
    async with open_agent(tmp_path) as (agent, recorder):
        asked = answering(agent, "accept", {"city": "Rome"})
        assert await agent.servers.reply(FORM) == Elicited("accept", {"city": "Rome"})
        assert (asked[0].kind, asked[0].text, asked[0].server) == ("form", "Where ␛[31mto?", "trips")
        assert [(field.name, field.required) for field in asked[0].fields] == [("city", True)]
        assert [event.request_id for event in recorder.of(QuestionClosed)] == [asked[0].request_id]
    async with open_agent(tmp_path) as (agent, _):
        asked = answering(agent, "decline")
        assert await agent.servers.reply(PAGE) == Elicited("decline")
        assert (asked[0].kind, asked[0].url, asked[0].about) == ("url", PAGE.url, "example.com")


async def test_values_that_do_not_fit_leave_the_question_open(tmp_path: Path) -> None:
    async with open_agent(tmp_path) as (agent, recorder):
        task = asyncio.create_task(agent.servers.reply(FORM))
        await recorder.until(lambda: recorder.of(ServerAsked))
        name = recorder.of(ServerAsked)[0].request_id
        with pytest.raises(AgentError, match=r"city is required\."):
            agent.servers.answer(name, "accept")
        with pytest.raises(AgentError, match="no field town"):
            agent.servers.answer(name, "accept", {"city": "Rome", "town": "x"})
        agent.servers.answer(name, "accept", {"city": "Rome"})
        agent.servers.answer(name, "decline")
        assert await task == Elicited("accept", {"city": "Rome"})
        assert notices(recorder, "answered") == ["Already answered."]


async def test_without_anybody_to_answer_all_is_declined_and_said_once(tmp_path: Path) -> None:
    async with open_agent(tmp_path, can_ask=False) as (agent, recorder):
        for _ in range(3):
            assert await agent.servers.reply(FORM) == Elicited("decline")
        assert not recorder.of(ServerAsked) and len(notices(recorder)) == 1


@pytest.mark.parametrize(
    "question",
    [
        Elicit("trips", "x", {"properties": {"a": {"type": "object"}}}),
        Elicit("trips", "x", url="javascript:alert(1)"),
        Elicit("trips", "x", url="file:///etc/passwd"),
        Elicit("trips", "x", url="https://bank.example@evil.example/"),
        Elicit("trips", "x", url="https://"),
        Elicit("trips", "x", url="https://[::1"),
    ],
)
async def test_what_cannot_be_shown_is_declined_in_one_line(tmp_path: Path, question: Elicit) -> None:
    async with open_agent(tmp_path) as (agent, recorder):
        assert await agent.servers.reply(question) == Elicited("decline")
        assert await agent.servers.reply(question) == Elicited("decline")
        assert not recorder.of(ServerAsked)
        (line,) = notices(recorder)
        assert line.startswith("MCP server trips asked with a") and line.isprintable()


async def test_a_foreign_letter_in_an_address_is_seen(tmp_path: Path) -> None:
    async with open_agent(tmp_path) as (agent, _):
        asked = answering(agent, "cancel")
        await agent.servers.reply(Elicit("trips", "x", url="https://p\u0430ypal.com/"))
        assert asked[0].about == "xn--pypal-4ve.com"


async def test_what_hides_in_an_address_is_written_out_where_it_is_shown_and_opened(tmp_path: Path) -> None:
    async with open_agent(tmp_path) as (agent, _):
        asked = answering(agent, "cancel")
        await agent.servers.reply(Elicit("trips", "x", url="https://evil.example/\u202etxt.exe"))
        assert asked[0].url == "https://evil.example/%E2%80%AEtxt.exe"


async def test_a_server_asks_so_many_times_in_a_turn(tmp_path: Path) -> None:
    async with open_agent(tmp_path) as (agent, recorder):
        asked = answering(agent, "cancel")
        replies = [await agent.servers.reply(FORM) for _ in range(MOST_ASKED + 5)]
        assert len(asked) == MOST_ASKED and replies[-1] == Elicited("decline")
        assert len(notices(recorder)) == 1
        agent.events.publish(TurnStarted())
        assert await agent.servers.reply(FORM) == Elicited("cancel")


async def test_a_question_that_a_server_withdraws_is_closed_with_a_line(tmp_path: Path) -> None:
    async with open_agent(tmp_path) as (agent, recorder):
        task = asyncio.create_task(agent.servers.reply(FORM))
        await recorder.until(lambda: recorder.of(ServerAsked))
        task.cancel()
        await asyncio.wait([task])
        assert [e.request_id for e in recorder.of(QuestionClosed)] == [recorder.of(ServerAsked)[0].request_id]
        assert notices(recorder) == ["MCP server trips no longer waits for an answer."]


async def test_a_question_outlives_another_turn_but_not_its_session(tmp_path: Path) -> None:
    async with open_agent(tmp_path, '[[step]]\ntext = "Hi."\n') as (agent, recorder):
        asking = asyncio.create_task(agent.servers.reply(FORM))
        await recorder.until(lambda: recorder.of(ServerAsked))
        await say(agent, "go")
        assert not asking.done() and not recorder.of(QuestionClosed)
        await agent.sessions.clear()
        assert await asking == Elicited("cancel")


ASK = """
[[step]]
tool_calls = [{ name = "mcp__asks__plan_again", arguments = {} }]
[[step]]
text = "Done."
"""


@pytest.mark.forms(1)
@pytest.mark.usefixtures("forked_host", "forked_servers")
@pytest.mark.parametrize("ends", ["answered", "interrupted"])
async def test_a_tool_call_asks_in_the_midst_of_a_turn(tmp_path: Path, ends: str) -> None:
    settings = Settings(permissions=PermissionsConfig(mode="auto", allow=["mcp(asks.*)"]))
    settings.mcp = {"asks": stdio(script=ASKING)}
    parts = parts_for(tmp_path / "home", tmp_path / "p", script=ASK, settings=settings)
    extensions = Extensions(
        settings, parts.paths, parts.permissions.files, parts.cwd, parts.trust, home=tmp_path / "home"
    )
    parts.extensions, parts.extra_tools = extensions, extensions.tools
    async with asyncio.timeout(60), running(parts) as (agent, recorder):
        await extensions.mcp.settled()
        agent.turns.submit("go")
        await recorder.until(lambda: recorder.of(ServerAsked))
        asked = recorder.of(ServerAsked)[0]
        if ends == "answered":
            agent.servers.answer(asked.request_id, "accept", {"city": "Rome", "days": 2})
        else:
            assert agent.turns.interrupt()
        await agent.turns.join()
        text = results(agent)[0].text
        assert (
            text.startswith("accept {'city': 'Rome', 'days': 2") if ends == "answered" else text == INTERRUPTED_RESULT
        )
        await recorder.until(lambda: any(e.request_id == asked.request_id for e in recorder.of(QuestionClosed)))
        assert notices(recorder) == []
