"""A session for Python programs: ``from agent_tui import Session``."""

from __future__ import annotations

import asyncio
import inspect
import logging
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import field, replace
from pathlib import Path
from types import AsyncGeneratorType, TracebackType

from agent_tui.bootstrap import make_agent
from agent_tui.control.control import (
    Compact,
    Control,
    ControlEvent,
    EditContext,
    GetContext,
    Interrupt,
    Question,
    SetMode,
    SetModel,
    SetThinking,
    Steer,
)
from agent_tui.engine.agent import Agent
from agent_tui.errors import AgentError, ConfigError
from agent_tui.headless.run import PreparedMessage, need_model, prepared
from agent_tui.models.events import Notice, QuestionClosed, TurnEnded
from agent_tui.models.messages import AttachmentPart, Metadata
from agent_tui.options import Options
from agent_tui.paths import with_home
from agent_tui.records import dataclass

log = logging.getLogger(__name__)
_MOST_BETWEEN = 100
"""Notices that come while nothing is sent, such as at the start: the next ``send`` yields them first."""
OnQuestion = Callable[[Question], Awaitable[object] | object]


@dataclass(slots=True, frozen=True)
class _Sending:
    """A message whose turn is not over: the task that reads its events, and those."""

    task: asyncio.Task[object] | None
    events: weakref.ref[AsyncGenerator[ControlEvent, None]]
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_read_elsewhere(self) -> bool:
        """True while another task than the one that asks reads the events, or may go on with that."""
        events, task = self.events(), self.task
        if events is None or task is None or task is asyncio.current_task():
            return False
        return not task.done() or (isinstance(events, AsyncGeneratorType) and events.ag_running)


class Session:
    """A session in a folder, new or resumed, open inside ``async with``.

    ``on_question`` answers what is asked, after the loop over ``send`` has seen it, and is cancelled where the question
    closes first; without it a question is declined that the loop passes over unanswered. ``options`` is what the
    command line can say besides. AgentError is raised for what the caller has to mend; what a model or a tool does
    wrong comes as events.
    """

    def __init__(
        self,
        folder: str | Path = ".",
        model: str | None = None,
        *,
        resume: str | None = None,
        on_question: OnQuestion | None = None,
        options: Options | None = None,
    ) -> None:
        given = options or Options()
        self._folder = with_home(folder).resolve()
        self._options = replace(
            given, headless=True, can_ask=True, model=model or given.model, resume=resume or given.resume
        )
        self._on_question = on_question
        self._agent: Agent | None = None
        self._control: Control | None = None
        self._told: asyncio.Queue[ControlEvent | BaseException] | None = None
        self._sending: _Sending | None = None
        self._preparing: asyncio.Future[PreparedMessage] | None = None
        self._between: deque[Notice] = deque(maxlen=_MOST_BETWEEN)
        self._answering: dict[str, asyncio.Task[None]] = {}
        self._failed: Exception | None = None

    async def __aenter__(self) -> Session:
        if not self._folder.is_dir():
            raise ConfigError(f"{self._folder}: no such folder.")
        agent = await make_agent(self._options, folder=self._folder)
        self._control = Control(agent, self._heard)
        try:
            await agent.start()
            if not (
                self._options.editor and (self._options.resume or self._options.session)
            ):  # there the session's own model shows
                await need_model(agent, self._options)
        except BaseException:
            await agent.close()
            raise
        self._agent = agent
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        agent, self._agent = self.agent, None
        for task in self._answering.values():
            task.cancel()
        await agent.close()
        if self._failed is not None:
            log.error("on_question raised, and no message followed", exc_info=self._failed)

    @property
    def agent(self) -> Agent:
        """The agent below, for what is not here. Raises AgentError outside of ``async with``."""
        if self._agent is None:
            raise AgentError("The session is not open: use `async with Session(…) as session`.")
        return self._agent

    @property
    def id(self) -> str:
        """What it is resumed by."""
        return self.agent.conversation.info.id

    @property
    def text(self) -> str:
        """The newest answer of the model."""
        texts = [message.text for message in self.agent.conversation.path if message.role == "assistant"]
        return texts[-1] if texts else ""

    def send(self, text: str, attachments: Sequence[AttachmentPart] = ()) -> AsyncGenerator[ControlEvent, None]:
        """Sends a message and yields all that happens until its turn is over. Leaving the loop ends the turn, at the
        latest with the next message, be it of this task or of another once this one is over. Raises AgentError while
        another task's message has no answer yet, for an unknown command, where the session is open elsewhere, and what
        ``on_question`` raised; where nothing was being sent then, before this message is."""
        own: list[weakref.ref[AsyncGenerator[ControlEvent, None]]] = []
        events = self._events(text, attachments, own)
        own.append(weakref.ref(events))  # who leaves the loop lets go of it, which ends the turn: nothing else holds it
        return events

    async def _events(
        self,
        text: str,
        attachments: Sequence[AttachmentPart],
        own: Sequence[weakref.ref[AsyncGenerator[ControlEvent, None]]],
    ) -> AsyncGenerator[ControlEvent, None]:
        agent = self.agent
        agent.conversation.require_writable()
        if self._sending is not None:
            await self._end_left(self._sending)
        if self._failed is not None:
            failed, self._failed = self._failed, None
            raise failed
        told: asyncio.Queue[ControlEvent | BaseException] = asyncio.Queue()
        self._told, self._sending = told, (sending := _Sending(asyncio.current_task(), own[0]))
        while self._between:
            told.put_nowait(self._between.popleft())
        try:
            self._preparing = asyncio.ensure_future(prepared(agent, text, given=attachments))
            await asyncio.wait({self._preparing})
            if self._preparing.cancelled():
                yield TurnEnded("interrupted")
                return
            message = self._preparing.result()
            agent.turns.submit(message.text, message.attachments, typed=message.typed)
            ended = asyncio.create_task(self.control.over(), name="turn")
            while not (ended.done() and told.empty()):
                coming = asyncio.create_task(told.get())
                await asyncio.wait({coming, ended}, return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    coming.cancel()
                    continue
                event = coming.result()
                if isinstance(event, BaseException):
                    raise event
                yield event
                if isinstance(event, Question):
                    self._let_answer(event)
        finally:
            self._told = None
            while not told.empty():
                if isinstance(left := told.get_nowait(), Exception):
                    self._failed = self._failed or left
            try:
                if self._preparing is not None:
                    self._preparing.cancel()
                if self._agent is not None:
                    await self.interrupt()
                    await self.control.over()
            finally:
                self._sending = None
                sending.over.set()

    async def _end_left(self, sending: _Sending) -> None:
        """Ends the turn of a loop that this task has left, or that no other reads any more. Raises AgentError for
        one that another task reads."""
        if self._told is not None and sending.is_read_elsewhere:
            raise AgentError("A turn is already running: wait until it ends, or use steer().")
        if (events := sending.events()) is not None and self._told is not None:
            await events.aclose()
        await sending.over.wait()

    async def interrupt(self) -> bool:
        """Ends the running turn; False when none runs."""
        if self._preparing is not None and self._preparing.cancel():
            return True
        return bool((await self.control.do(Interrupt()))["interrupted"])

    async def steer(self, text: str, attachments: Sequence[AttachmentPart] = ()) -> None:
        """Adds a message before the next step of the running turn."""
        await self.control.do(Steer(text, tuple(attachments)))

    async def set_model(self, model: str) -> None:
        """Talks to another model from the next message on."""
        await self.control.do(SetModel(model))

    async def set_mode(self, mode: str) -> None:
        """Changes the permission mode, at once."""
        await self.control.do(SetMode(mode))

    async def set_thinking(self, level: str) -> None:
        """Changes how much the model thinks: ``off``, ``low``, ``medium`` or ``high``."""
        await self.control.do(SetThinking(level))

    async def context(self) -> Metadata:
        """Returns the numbers of ``/context``, as ``agent-tui context --json`` prints them."""
        return await self.control.do(GetContext())

    async def edit_context(self, edit: str, *ids: str) -> str:
        """Does one of ``drop``, ``fold``, ``restore``, ``pin``, ``unpin``, ``undo``; returns the line that tells it."""
        return str((await self.control.do(EditContext(edit, ids)))["text"])

    async def compact(self, focus: str = "") -> None:
        """Compacts the conversation now."""
        await self.control.do(Compact(focus))

    @property
    def control(self) -> Control:
        """Does requests of any kind. Raises AgentError outside of ``async with``."""
        if self._control is None or self._agent is None:
            raise AgentError("The session is not open: use `async with Session(…) as session`.")
        return self._control

    def _heard(self, event: ControlEvent) -> None:
        if self._told is not None:
            self._told.put_nowait(event)
        if isinstance(event, Question) and self._told is None:
            self._let_answer(event)
        elif isinstance(event, Notice) and self._told is None:
            self._between.append(event)
        elif isinstance(event, QuestionClosed):
            waiting = self._answering.get(event.request_id)
            if waiting is not None and waiting is not asyncio.current_task():
                waiting.cancel()

    def _let_answer(self, question: Question) -> None:
        if self._on_question is None:
            self._pass_over(question)
        elif question in self.control.questions:
            task = asyncio.create_task(self._answer(question, self._on_question), name="question")
            self._answering[question.id] = task
            task.add_done_callback(lambda _: self._answering.pop(question.id, None))

    async def _answer(self, question: Question, answer: OnQuestion) -> None:
        try:
            given = answer(question)
            if inspect.isawaitable(given):
                await given
        except Exception as error:
            if self._told is not None:
                self._told.put_nowait(error)
            else:
                self._failed = self._failed or error
        self._pass_over(question)

    def _pass_over(self, question: Question) -> None:
        """Declines it where it still waits."""
        if self._control is not None and question in self._control.questions:
            question.decline()
