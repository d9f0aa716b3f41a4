"""What MCP servers ask: input from the user, and answers of the model, each only after the user's yes."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from agent_tui.context.accounting.spending import priced_call
from agent_tui.context.tokens import char_tokens, estimate_message, family_of
from agent_tui.engine.compaction.summary_call import PaidCalls, SummaryCall
from agent_tui.engine.questions import ANSWERED
from agent_tui.engine.state import AgentState, RunState
from agent_tui.errors import AgentError, ToolError
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
from agent_tui.models.messages import Message, Metadata, Part, TextPart, new_id
from agent_tui.models.requests import ModelInfo, ModelRequest, SentMessage, SystemBlock
from agent_tui.providers.catalog import sees
from agent_tui.text.clean import asked_words
from agent_tui.text.numbers import money, tokens
from agent_tui.tools.files.pictures import fit_attachments
from agent_tui.tools.mcp.forms import BadForm, fields_of
from agent_tui.tools.mcp.protocol import Elicit, Elicited, Question, Said, Sample, Sampled
from agent_tui.tools.mcp.tool import images
from agent_tui.urls import AddressError, parse_url

MOST_ASKED = 20
"""Questions that one server may put in a turn."""

_TEXT = 20_000


class ServerDesk:
    """Puts what servers ask to the user, as events, and waits. What is still open when a turn is interrupted, or the
    session is left, is cancelled. ``counted`` is called when a call has ended and its cost is known."""

    def __init__(self, state: AgentState, counted: Callable[[], None]) -> None:
        self._state = state
        self._counted = counted
        self._open: dict[str, tuple[ServerAsked, asyncio.Future[ServerAnswer]]] = {}
        self._asked: Counter[str] = Counter()
        self._told: set[str] = set()
        state.events.subscribe(self._heard)

    async def reply(self, question: Question) -> Elicited | Sampled:
        """The answer to what a server asks. Raises ToolError where it gets none."""
        return await (self._elicit(question) if isinstance(question, Elicit) else self._sample(question))

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

    async def _elicit(self, question: Elicit) -> Elicited:
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
            what = "a model call" if asked.kind == "sampling" else "input"
            self._say_once(f"MCP server {server} asked for {what}; nobody can answer here, so it was declined.")
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

    async def _sample(self, question: Sample) -> Sampled:
        state, server = self._state, question.server
        if not state.opened or state.conversation.read_only:
            raise ToolError("no session is open here")
        runtime, info = state.runtime, state.runtime.info
        request, size = await self._request(question, info)
        most = request.max_output or 0
        expected = priced_call(info.prices, size, 0, most, info.spec.cache_ttl == "1h")
        dollars = expected.most_usd(most)
        price = "its price is unknown" if dollars is None else f"at most {money(dollars)}"
        about = f"{info.spec.key}: {tokens(size, True)} tokens in, at most {tokens(most, False)} out, {price}"
        answer = await self._ask(ServerAsked(new_id("srv"), server, "sampling", _prompt_of(question), about=about))
        if answer.action != "accept":
            raise ToolError("the user declined")
        paid = PaidCalls(runtime, state.events.publish, f"the model call for MCP server {server}")
        call = SummaryCall(paid.stream, time.time, paid.payer)
        try:
            said = await call.call(request, info, expected)
        finally:
            self._counted()
        if said.failure is not None:
            self._say("warning", f"The model call for MCP server {server} failed: {said.failure.message}")
            raise ToolError("the model call failed")
        step = call.steps[-1]
        self._say("info", f"MCP server {server} got an answer of {info.spec.key}: {money(step.cost)}.")
        text = state.parts.secrets.mask(said.text)
        return Sampled(text, step.model, cut_off=said.finish == "length")

    async def _request(self, question: Sample, info: ModelInfo) -> tuple[ModelRequest, int]:
        """The request apart from the conversation, and the tokens of its input. Raises ToolError where the model does
        not take it."""
        messages = [await self._message(said, info) for said in question.messages]
        family, system = family_of(info.target), [SystemBlock("system", question.system)] if question.system else []
        size = sum(estimate_message(sent.message, family).tokens for sent in messages)
        size += math.ceil(char_tokens(question.system))
        limits, agent = info.limits, self._state.runtime.settings.agent
        most = min(question.most, limits.max_output or question.most)
        if limits.window:
            most = min(most, limits.window - size)
        if most < 1 or (limits.max_input and size > limits.max_input):
            raise ToolError("the request is too long for the model")
        name = f"{self._state.conversation.info.id}-sampling"
        request = ModelRequest(new_id("req"), info.spec, name, system, messages, [], most, "off", kind="sampling")
        return replace(request, timeout=agent.timeout, content_timeout=agent.content_timeout), size

    async def _message(self, said: Said, info: ModelInfo) -> SentMessage:
        parts: list[Part] = [TextPart(said.text)] if said.text else []
        if said.images:
            if not sees(info).images:
                raise ToolError("the model takes no images")
            found, notes = images(said.images, "image")
            found, _, left_out = await asyncio.to_thread(fit_attachments, found, self._state.image_limits)
            if notes or left_out:
                raise ToolError("an image cannot be read")
            parts += found
        message = Message(new_id("msg"), said.role, parts or [TextPart("")], created=time.time())
        return SentMessage(message, message.id)


def _prompt_of(question: Sample) -> str:
    """What the model is sent, as the user is shown it."""
    said = [("system", question.system, 0), *((m.role, m.text, len(m.images)) for m in question.messages)]
    shown = [f"{role}: {text}{f' [images: {count}]' if count else ''}" for role, text, count in said if text or count]
    return asked_words("\n\n".join(shown), _TEXT * 20)
