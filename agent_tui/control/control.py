"""Drives a session for a program: what it can ask for, what it hears, and the questions that it answers.

Events are those of ``models/events.py``; those that ask something become one ``Question``, which is answered
where it stands.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from typing import Literal, TypeAlias, assert_never

from agent_tui.commands.edits import EDITS, edited, ids_of
from agent_tui.commands.report import ContextReport
from agent_tui.commands.report_json import context_json
from agent_tui.config import MODES_ELSEWHERE, PERMISSION_MODES
from agent_tui.engine.agent import Agent
from agent_tui.engine.models import EFFORTS
from agent_tui.engine.stops import STOP
from agent_tui.errors import AgentError, ConfigError, ToolError
from agent_tui.models.events import (
    Event,
    Notice,
    PermissionAnswered,
    PermissionAsked,
    PlanPresented,
    QuestionAsked,
    QuestionClosed,
    ServerAsked,
    StopAsked,
    Way,
)
from agent_tui.models.forms import defaults, form_schema
from agent_tui.models.messages import AttachmentPart, Metadata, first_paragraph
from agent_tui.records import dataclass
from agent_tui.say.answering import Reply, deliver_now
from agent_tui.say.asks import DECLINE, Ask, AskChoice, AskKind, ask_of
from agent_tui.say.rules import whole_sentence
from agent_tui.text.clean import clean_line
from agent_tui.tools.arguments import parse_arguments

OptionKind = Literal["allow_once", "allow_always", "reject", "choice"]


@dataclass(slots=True, frozen=True)
class Option:
    """An answer to choose. ``text``: it takes words, too. ``allow_always`` holds longer than this once. ``asks`` names
    what has to be written with it."""

    id: str
    label: str
    kind: OptionKind
    text: bool = False
    asks: str = ""


@dataclass(slots=True, frozen=True, eq=False)
class Question:
    """Something that waits for the caller: whether a tool may run, a plan to approve, a question of the model's, what
    to do about a budget, a key, a model or a full context at which a turn has stopped (``stop``), what an MCP
    ``server`` wants: a form, whose ``schema`` the values of the answer fit, a ``url`` that whoever says yes opens, or a
    call of the model (``text`` is what that is sent, ``reason`` its price).

    ``display`` holds what would happen: ``{"kind": "diff"|"command"|"text", "text": …, "path": …}``; ``input`` are the
    arguments of the tool call ``call_id``. ``several`` of the options may be chosen. ``QuestionClosed`` says that it
    waits no more, though the caller did not answer.
    """

    id: str
    kind: AskKind
    text: str
    options: tuple[Option, ...]
    several: bool = False
    tool: str = ""
    call_id: str = ""
    input: Metadata = field(default_factory=dict)
    display: Metadata = field(default_factory=dict)
    reason: str = ""
    server: str = ""
    schema: Metadata = field(default_factory=dict)
    url: str = ""
    _settle: Callable[[str, Sequence[str], str], None] = field(repr=False, default=lambda name, chosen, text: None)

    def answer(self, *options: str, text: str = "", values: Metadata | None = None) -> None:
        """Answers with the ids of options, with words, or both; a form with its ``values``. Raises AgentError for an
        option that there is not, for values that do not fit, and for a question that waits no more."""
        self._settle(self.id, options, text if values is None else json.dumps(values))

    def allow(self, **values: object) -> None:
        """Says yes, this once, to a form with its ``values``. Raises AgentError as ``answer`` does, and where nothing
        is to be allowed."""
        self.answer(self._first("allow_once", "allow_always"), values=values or None)

    def decline(self, text: str = "") -> None:
        """Says no, with a word about what to do instead or without one. Raises AgentError as ``answer`` does."""
        self.answer(*([] if self.kind == "choice" else [self._first("reject")]), text=text)

    def _first(self, *kinds: OptionKind) -> str:
        found = next((option.id for option in self.options if option.kind in kinds), None)
        if found is None:
            raise AgentError("This question has no such answer: choose one of its options.")
        return found


@dataclass(slots=True, frozen=True)
class Interrupt:
    """Ends the running turn."""


@dataclass(slots=True, frozen=True)
class Steer:
    """A message that goes in before the next step of the running turn."""

    text: str
    attachments: tuple[AttachmentPart, ...] = ()


@dataclass(slots=True, frozen=True)
class SetModel:
    """Talks to another model from the next message on; without a name, to that of new sessions."""

    model: str


@dataclass(slots=True, frozen=True)
class SetMode:
    """Changes the permission mode, at once."""

    mode: str


@dataclass(slots=True, frozen=True)
class SetThinking:
    """Changes how much the model thinks, from the next message on."""

    level: str


@dataclass(slots=True, frozen=True)
class GetContext:
    """The numbers of ``/context``, as ``agent-tui context --json`` prints them."""


@dataclass(slots=True, frozen=True)
class EditContext:
    """Does one of ``drop``, ``fold``, ``restore``, ``pin``, ``unpin`` and ``undo`` to messages."""

    edit: str
    ids: tuple[str, ...] = ()


@dataclass(slots=True, frozen=True)
class Compact:
    """Compacts the conversation; ``focus`` says what the summary should keep."""

    focus: str = ""


@dataclass(slots=True, frozen=True)
class GetServers:
    """Every MCP server: its name, its state and a line about it."""


@dataclass(slots=True, frozen=True)
class ReconnectServer:
    """Connects an MCP server anew."""

    name: str


@dataclass(slots=True, frozen=True)
class StopTask:
    """Ends a command or a subagent in the background."""

    id: str


@dataclass(slots=True, frozen=True)
class RestoreFiles:
    """Puts the files as they were before one of the user's messages; the conversation stays as it is."""

    message: str


@dataclass(slots=True, frozen=True)
class Answer:
    """Answers the open question of that id; ``text`` is words, or a form's values as JSON."""

    question: str
    options: tuple[str, ...] = ()
    text: str = ""


Request: TypeAlias = (
    Interrupt | Steer | SetModel | SetMode | SetThinking | GetContext | EditContext | Compact | Answer
    | GetServers | ReconnectServer | StopTask | RestoreFiles
)  # fmt: skip
ControlEvent: TypeAlias = Event | Question
"""What a caller hears. ``PermissionAsked``, ``PlanPresented``, ``QuestionAsked``, ``ServerAsked`` and ``StopAsked`` do
not come."""


class Control:
    """Does what a program asks of an agent, and tells it what happens. The mode ``bypass`` has to be said at the start:
    no request switches all questions off."""

    def __init__(self, agent: Agent, hear: Callable[[ControlEvent], None], *, numbers: bool = True) -> None:
        self._agent = agent
        self._hear = hear
        self._open: dict[str, tuple[Question, Callable[[Sequence[str], str], None]]] = {}
        self._gone = False
        self.end = agent.subscribe(self._heard, numbers=numbers)
        """Stops listening."""

    @property
    def questions(self) -> list[Question]:
        """Those that wait."""
        return [question for question, _ in self._open.values()]

    def nobody_answers(self) -> None:
        """The caller is gone: what waits is declined, and so is what is asked from now on."""
        self._gone = True
        for question in self.questions:
            question.decline()

    def pass_over_stop(self) -> bool:
        """Leaves the turn as it stopped, where a question about that is open; False where none is."""
        found = [question for question in self.questions if question.kind == "stop"]
        for question in found:
            question.decline()
        return bool(found)

    async def over(self) -> None:
        """Waits until the turn is over, and with it the one that goes on after the answer to a stop."""
        agent = self._agent
        await agent.turns.join()
        await agent.stops.settled()
        while agent.turns.busy:
            await agent.turns.join()
            await agent.stops.settled()

    async def do(self, request: Request) -> Metadata:
        """Does it, and returns plain data. Raises AgentError, in one line, for what cannot be done."""
        agent = self._agent
        match request:
            case Interrupt():
                return {"interrupted": agent.turns.interrupt() or self.pass_over_stop()}
            case Steer(text, attachments):
                if not text.strip() and not attachments:
                    raise ConfigError("The message is empty.")
                fitted = await agent.project.fitted(attachments)
                if not agent.turns.busy:
                    raise ConfigError("No turn is running; send a message instead.")
                agent.turns.steer(text, fitted, typed=first_paragraph(text))
                return {}
            case SetModel(model):
                info, _ = await agent.models.switch(
                    model or agent.parts.model_key or agent.parts.catalogue.default().key
                )
                return {"model": info.spec.key}
            case SetMode(mode):
                known = next((each for each in PERMISSION_MODES if MODES_ELSEWHERE.get(mode, mode) == each), None)
                if known is None:
                    raise ConfigError(f"Unknown mode {clean_line(mode)[:60]!r}; use {', '.join(PERMISSION_MODES)}.")
                if known == "bypass" and agent.mode.now != "bypass":
                    raise ConfigError("bypass can only be set at the start: --permission-mode bypass.")
                agent.mode.set(known)
                return {"mode": known}
            case SetThinking(level):
                wanted = next((effort for effort in EFFORTS if effort == level), None)
                if wanted is None:
                    raise ConfigError(f"Unknown level {clean_line(level)[:60]!r}; use {', '.join(EFFORTS)}.")
                agent.models.set_effort(wanted)
                return {"thinking": wanted}
            case GetContext():
                report = replace(ContextReport.of(agent), trigger=None)
                return context_json(report, {message.id for message in agent.conversation.path})
            case EditContext(edit, ids):
                if edit not in EDITS:
                    raise ConfigError(f"Unknown edit {clean_line(edit)[:60]!r}; use {', '.join(EDITS)}.")
                return {"text": await edited(agent, edit, ids_of(edit, ids))}
            case Compact(focus):
                await agent.compaction.now(focus)
                return {"total": agent.context.usage().total}
            case GetServers():
                told = agent.project.mcp_servers()
                return {"servers": [{"name": name, "state": state, "detail": detail} for name, state, detail in told]}
            case ReconnectServer(name):
                return {"text": await agent.project.mcp_reconnect(name)}
            case StopTask(task):
                await agent.background.jobs.stop(task, "the user")
                return {}
            case RestoreFiles(message):
                moved = await agent.branches.restore_files(message)
                return {"restored": [str(path) for path in moved.put], "left": [*moved.left]}
            case Answer(question, options, text):
                self._settle(question, options, text)
                return {}
            case _:
                assert_never(request)

    def _heard(self, event: Event) -> None:
        match event:
            case PermissionAsked() | QuestionAsked() | ServerAsked() | StopAsked():
                self._put(ask_of(event))
            case PlanPresented(request_id) if request_id:
                self._put(ask_of(event))
            case PermissionAnswered(request_id):
                self._close(request_id)
                self._hear(event)
            case QuestionClosed(request_id):
                self._close(request_id)
            case _:
                self._hear(event)

    def _close(self, name: str) -> None:
        """A question waits no more; one that the caller answered is open no more already."""
        if self._open.pop(name, None) is not None:
            self._hear(QuestionClosed(name))

    def _ask(self, question: Question, answer: Callable[[Sequence[str], str], None]) -> None:
        self._open[question.id] = (question, answer)
        if self._gone:
            question.decline()
        else:
            self._hear(question)

    def _settle(self, name: str, chosen: Sequence[str], text: str) -> None:
        question, answer = self._open.get(name, (None, None))
        if question is None or answer is None:
            raise AgentError("This question is closed: it was answered, or its turn has ended.")
        known = {option.id for option in question.options}
        if strange := next((one for one in chosen if one not in known), None):
            raise AgentError(f"No option {clean_line(strange)[:60]!r}; this question has {', '.join(sorted(known))}.")
        if len(chosen) > 1 and not question.several:
            raise AgentError("Choose only one option.")
        del self._open[name]
        try:
            answer(chosen, text)
        except AgentError:  # it waits for another answer
            self._open[name] = question, answer
            raise

    def _put(self, ask: Ask) -> None:
        """Puts a question to the caller, in the form that programs answer."""
        by_id = dict(_options(ask))
        question = replace(_question(ask, tuple(option for option, _ in by_id.values())), _settle=self._settle)
        if ask.call_id:
            question = replace(question, input=self._input_of(ask.call_id))
        self._ask(question, lambda chosen, text: self._deliver(ask, [by_id[one][1] for one in chosen], text))

    def _deliver(self, ask: Ask, chosen: Sequence[AskChoice], text: str) -> None:
        """Hands what a caller chose to the agent, as one reply; who chose nothing said no."""
        no = next((choice for choice in ask.choices if choice.role == "no"), None)
        choice = chosen[0] if chosen else no
        if ask.kind == "stop":
            self._agent.events.spawn(self._go_on(ask, chosen[0].way if chosen else None, text), "answer to a stop")
            return
        values: Metadata = {}
        if ask.kind == "server":
            choice = next((one for one in _TO_SERVERS if one in chosen), DECLINE)
            written = parse_arguments(text) if choice.action == "accept" and ask.fields and text else {}
            values = {**defaults(ask.fields), **written}
        elif ask.kind == "plan" and choice is not None and choice.mode:
            text = ""
        marked = tuple(one.value for one in chosen if one.role == "mark")
        deliver_now(self._agent, ask, Reply(choice, text, marked, ask.body, values, choice.offer if choice else None))

    def _input_of(self, call_id: str) -> Metadata:
        """The arguments of a call as the model wrote them; empty where it is not of this session."""
        for message in reversed(self._agent.conversation.path):
            for call in message.tool_calls:
                if call.call_id == call_id:
                    try:
                        return parse_arguments(call.arguments)
                    except ToolError:
                        return {}
        return {}

    async def _go_on(self, ask: Ask, way: Way | None, text: str) -> None:
        """Takes a way, once: where that leads nowhere, the turn stays as it stopped."""
        agent = self._agent
        try:
            if way is not None and way.models:
                before = agent.models.spec.key
                info, _ = await agent.models.switch(text)
                if info.spec.key != before:
                    return  # the turn goes on by itself
                raise ConfigError(f"{before} is the model that the turn stopped with.")
            if way is not None:
                await agent.stops.answer(ask.id, way.key, text)
        except AgentError as error:
            agent.events.publish(Notice("error", str(error), "stop"))
        await agent.stops.answer(ask.id, "")


_TO_SERVERS = (
    AskChoice("accept", "Yes", "yes", action="accept"),
    AskChoice("cancel", "Neither", "no", action="cancel"),
    AskChoice("decline", "No", "no", action="decline"),
)


def _options(ask: Ask) -> Iterator[tuple[str, tuple[Option, AskChoice]]]:
    """Yields the answers that a program can choose, by id: whoever answers by one sees no other step."""
    for choice in (_TO_SERVERS[0], *_TO_SERVERS[:0:-1]) if ask.kind == "server" else ask.choices:
        kind: OptionKind = "allow_once" if choice.role == "yes" else "reject"
        label, takes_text, asks = choice.label, False, ""
        match choice.role:
            case "rule" if choice.offer is not None:
                kind, label = "allow_always", whole_sentence(choice.offer)
                yield choice.key, (Option(choice.key, label, kind), replace(choice, role="yes"))
                continue
            case "yes" | "no":
                takes_text = choice.role == "no" and (ask.kind == "plan" or bool(ask.call_id))
                takes_text = bool(choice.action == "accept" and ask.fields) if ask.kind == "server" else takes_text
            case "mark":
                kind, label = "choice", choice.value
            case _ if choice.way is not None:
                asks = "The name of a model" if choice.way.models else choice.way.asks
                kind, takes_text = "reject" if choice.way == STOP else "choice", bool(asks)
            case _:
                continue
        yield choice.key, (Option(choice.key, label, kind, takes_text, asks), choice)


def _question(ask: Ask, options: tuple[Option, ...]) -> Question:
    match ask.asked:
        case PermissionAsked(summary=text, display=display):
            more: Metadata = {"tool": ask.tool, "call_id": ask.call_id, "display": display, "reason": ask.why}
        case ServerAsked(text=text, about=about, server=server, kind=kind, url=url):
            schema = form_schema(ask.fields) if kind == "form" else {}
            more = {"reason": about, "server": server, "schema": schema, "url": url}
        case StopAsked(question=text):
            more = {}
        case _:
            text, more = ask.body, {}
    return Question(ask.id, ask.kind, text, options, ask.several, **more)
