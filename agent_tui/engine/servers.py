"""What MCP servers ask of the user: input, and addresses to open, each only after the user's yes."""

from __future__ import annotations

import asyncio
from collections import Counter

from agent_tui.engine.questions import ANSWERED
from agent_tui.engine.state import AgentState, RunState
from agent_tui.errors import AgentError
from agent_tui.models.events import (
    Event,
    Notice,
    QuestionClosed,
    ServerAction,
    ServerAnswer,
    ServerAsked,
    SessionChanged,
    TurnEnded,
    TurnStarted,
)
from agent_tui.models.forms import FormField, problem_of
from agent_tui.models.messages import Metadata, new_id
from agent_tui.text.clean import asked_words
from agent_tui.tools.mcp.forms import BadForm, fields_of
from agent_tui.tools.mcp.protocol import Elicit, Elicited
from agent_tui.urls import AddressError, parse_url

MOST_ASKED = 20
"""Questions that one server may put in a turn."""

_TEXT = 20_000


class ServerDesk:
    """Puts what servers ask to the user, as events, and waits. What is still open when a turn is interrupted, or the
    session is left, is cancelled."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._open: dict[str, tuple[ServerAsked, asyncio.Future[ServerAnswer]]] = {}
        self._asked: Counter[str] = Counter()
        self._told: set[str] = set()
        state.events.subscribe(self._heard)

    def answer(self, request_id: str, action: ServerAction, values: Metadata | None = None) -> None:
        """The user's word. One that is waited for no more is left as it is, and the user told so. Raises AgentError for
        values that the form does not take."""
        asked, future = self._open.get(request_id, (None, None))
        if asked is None or future is None or future.done():
            self._say("info", ANSWERED, "answered")
            return
        given = {name: value for name, value in (values or {}).items() if value is not None}
        if action == "accept" and (problem := problem_of(asked.fields, given)):
            raise AgentError(problem)
        future.set_result(ServerAnswer(action, given if action == "accept" else {}))

    def _heard(self, event: Event) -> None:
        match event:
            case TurnStarted():
                self._asked.clear()
            case TurnEnded("interrupted") | SessionChanged(_, True):
                for _, future in self._open.values():
                    if not future.done():
                        future.set_result(ServerAnswer("cancel"))

    def _say(self, level: str, text: str, code: str = "mcp") -> None:
        self._state.events.publish(Notice("warning" if level == "warning" else "info", text, code))

    def _say_once(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._say("warning", text)

    async def reply(self, question: Elicit) -> Elicited:
        """The user's answer to what a server asks."""
        server, text = question.server, asked_words(question.text, _TEXT)
        fields: tuple[FormField, ...] = ()
        url = where = ""
        try:
            if question.url:
                address = parse_url(question.url)
                url, where = address.text, address.host
            else:
                fields = fields_of(question.schema)
        except (BadForm, AddressError) as error:
            what = "an address" if question.url else "a form"
            self._say_once(f"MCP server {server} asked with {what} that cannot be shown: {error}. It was declined.")
            return Elicited("decline")
        asked = ServerAsked(new_id("srv"), server, "url" if where else "form", text, fields, url, where)
        answer = await self._ask(asked)
        return Elicited(answer.action, answer.values)

    async def _ask(self, asked: ServerAsked) -> ServerAnswer:
        """The user's word; a no without a question where nobody can be asked, or too much is."""
        server, events = asked.server, self._state.events
        if not self._state.parts.permissions.can_ask:
            self._say_once(f"MCP server {server} asked for input; nobody can answer here, so it was declined.")
            return ServerAnswer("decline")
        self._asked[server] += 1
        if self._asked[server] > MOST_ASKED:
            if self._asked[server] == MOST_ASKED + 1:
                text = f"MCP server {server} asked {MOST_ASKED} times in this turn: what else it asks is declined."
                self._say("warning", text)
            return ServerAnswer("decline")
        future: asyncio.Future[ServerAnswer] = asyncio.get_running_loop().create_future()
        self._open[asked.request_id] = asked, future
        events.publish(asked)
        try:
            return await future
        except asyncio.CancelledError:
            if self._state.run.now not in (RunState.CLOSING, RunState.INTERRUPTED):
                self._say("warning", f"MCP server {server} no longer waits for an answer.")
            raise
        finally:
            del self._open[asked.request_id]
            events.publish(QuestionClosed(asked.request_id))
