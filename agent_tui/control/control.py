"""Drives a session for a program: what it can ask for, what it hears, and the questions that it answers.

Events are those of ``models/events.py``; those that ask something become one ``Question``, which is answered
where it stands.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Literal, TypeAlias, assert_never

from agent_tui.commands.edits import EDITS, edited, ids_of
from agent_tui.commands.questions import PLAN_CHOICES, permission_choices, question_text
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
    ServerAction,
    ServerAsked,
    StopAsked,
    Way,
)
from agent_tui.models.forms import defaults, form_schema
from agent_tui.models.messages import AttachmentPart, Metadata, first_paragraph
from agent_tui.records import dataclass
from agent_tui.text.clean import clean_line
from agent_tui.tools.arguments import parse_arguments

WHOLE = 1_000_000
"""Cells of a rule that an option names: who answers by an option sees no other step."""

QuestionKind = Literal["permission", "plan", "choice", "stop", "server"]
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
    kind: QuestionKind
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


_TO_SERVERS: tuple[tuple[str, str, OptionKind], ...] = (
    ("accept", "Yes", "allow_once"),
    ("decline", "No", "reject"),
    ("cancel", "Neither", "reject"),
)


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
            case PermissionAsked():
                self._ask(*self._permission(event))
            case PlanPresented(request_id) if request_id:
                self._ask(*self._plan(event))
            case QuestionAsked():
                self._ask(*self._choice(event))
            case ServerAsked():
                self._ask(*self._server(event))
            case StopAsked():
                self._ask(*self._stop(event))
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

    def _permission(self, asked: PermissionAsked) -> tuple[Question, Callable[[Sequence[str], str], None]]:
        found = permission_choices(asked, most=WHOLE)
        choices = {choice.key: choice for choice in found if not choice.feedback}

        def answer(chosen: Sequence[str], text: str) -> None:
            choice = choices[chosen[0] if chosen else "n"]
            self._agent.permissions.answer(asked.request_id, choice.allow, choice.offer, text)

        options = tuple(
            Option(
                choice.key,
                choice.label,
                ("allow_always" if choice.offer is not None else "allow_once") if choice.allow else "reject",
                text=not choice.allow and bool(asked.call_id),
            )
            for choice in choices.values()
        )
        question = Question(
            asked.request_id,
            "permission",
            asked.summary,
            options,
            tool=asked.tool,
            call_id=asked.call_id,
            input=self._input_of(asked.call_id),
            display=asked.display,
            reason=asked.reason,
            _settle=self._settle,
        )
        return question, answer

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

    def _plan(self, asked: PlanPresented) -> tuple[Question, Callable[[Sequence[str], str], None]]:
        modes = {choice.key: choice.mode for choice in PLAN_CHOICES if not (choice.feedback or choice.edit)}

        def answer(chosen: Sequence[str], text: str) -> None:
            mode = modes[chosen[0] if chosen else "n"]
            self._agent.questions.answer_plan(asked.request_id, mode, asked.plan, "" if mode else text)

        options = tuple(
            Option(choice.key, choice.label, "allow_once" if choice.mode else "reject", text=choice.mode is None)
            for choice in PLAN_CHOICES
            if choice.key in modes
        )
        return Question(asked.request_id, "plan", asked.plan, options, _settle=self._settle), answer

    def _choice(self, asked: QuestionAsked) -> tuple[Question, Callable[[Sequence[str], str], None]]:
        names = {str(number): choice for number, choice in enumerate(asked.choices, 1)}

        def answer(chosen: Sequence[str], text: str) -> None:
            self._agent.questions.answer_question(asked.request_id, [names[one] for one in chosen], text)

        options = tuple(Option(name, choice, "choice") for name, choice in names.items())
        found = Question(asked.request_id, "choice", question_text(asked), options, asked.several, _settle=self._settle)
        return found, answer

    def _server(self, asked: ServerAsked) -> tuple[Question, Callable[[Sequence[str], str], None]]:
        def answer(chosen: Sequence[str], text: str) -> None:
            action: ServerAction = "accept" if "accept" in chosen else "cancel" if "cancel" in chosen else "decline"
            values = parse_arguments(text) if action == "accept" and asked.fields and text else {}
            self._agent.servers.answer(asked.request_id, action, {**defaults(asked.fields), **values})

        options = tuple(
            Option(name, label, kind, text=name == "accept" and bool(asked.fields)) for name, label, kind in _TO_SERVERS
        )
        found = Question(
            asked.request_id,
            "server",
            asked.text,
            options,
            reason=asked.about,
            server=asked.server,
            schema=form_schema(asked.fields) if asked.kind == "form" else {},
            url=asked.url,
            _settle=self._settle,
        )
        return found, answer

    def _stop(self, asked: StopAsked) -> tuple[Question, Callable[[Sequence[str], str], None]]:
        ways = {way.key: way for way in asked.ways}

        def answer(chosen: Sequence[str], text: str) -> None:
            self._agent.events.spawn(self._go_on(asked, ways[chosen[0]] if chosen else None, text), "answer to a stop")

        options = tuple(
            Option(way.key, way.label, "reject" if way == STOP else "choice", bool(_asks(way)), _asks(way))
            for way in asked.ways
        )
        return Question(asked.request_id, "stop", asked.question, options, _settle=self._settle), answer

    async def _go_on(self, asked: StopAsked, way: Way | None, text: str) -> None:
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
                await agent.stops.answer(asked.request_id, way.key, text)
        except AgentError as error:
            agent.events.publish(Notice("error", str(error), "stop"))
        await agent.stops.answer(asked.request_id, "")


def _asks(way: Way) -> str:
    return "The name of a model" if way.models else way.asks
