"""Prints what happens: the one place where events, and messages of the past, become lines."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, assert_never

from agent_tui.commands.tool_words import (
    call_label,
    change_lines,
    excerpt,
    facts_in_words,
    items_of,
    shown,
)
from agent_tui.commands.turn_words import ASKED, LONG_TURN, TurnTexts, endings_without_words
from agent_tui.context.accounting.spending import turn_figure, without_ways
from agent_tui.context.cuts import let_go_words
from agent_tui.models.events import (
    LOADING,
    OWN_COMMAND,
    AnswerInterrupted,
    BackendChanged,
    CompactionEnded,
    CompactionStarted,
    ContextChanged,
    ContextEdited,
    DraftChanged,
    Event,
    JobsChanged,
    MessageAdded,
    MessagesWithdrawn,
    Notice,
    PartDelta,
    PermissionAnswered,
    PermissionAsked,
    PlanPresented,
    QuestionAsked,
    QuestionClosed,
    QueueChanged,
    RetryWaiting,
    ServerAsked,
    SessionChanged,
    StepEnded,
    StepStarted,
    StopAsked,
    StopReason,
    ToolOutput,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from agent_tui.models.failure import BEGINS_AGAIN
from agent_tui.models.messages import (
    CONTEXT_NOTE,
    INTERRUPTED_RESULT,
    OWN_OUTPUT,
    TOLD_MODE,
    AttachmentPart,
    Message,
    ToolResultPart,
    own_output,
)
from agent_tui.models.search import search_calls
from agent_tui.plain.forms import ServerQuestion
from agent_tui.plain.line_writer import LEVELS, ProgressTicker, spoken
from agent_tui.records import dataclass
from agent_tui.text.clean import drawable_output, one_line, program_output, spelled
from agent_tui.text.numbers import age, duration, interval, money, plural, tokens
from agent_tui.tools.arguments import call_summary

if TYPE_CHECKING:
    from agent_tui.config import OutputForm
    from agent_tui.engine.agent import Agent
    from agent_tui.models.context import ContextUsage
    from agent_tui.models.steps import Step
    from agent_tui.plain.line_writer import LineWriter, Mark
    from agent_tui.plain.questions import Asking
    from agent_tui.plain.sending import QueueView


_STATES = {"completed": "done", "in_progress": "in progress", "pending": "to do"}
LONGEST_LABEL = 300
"""Characters of a call that are told."""


CHANGED_LINES = 20
"""Lines of a change that are said after it was made."""


def tell_result(writer: LineWriter, label: str, result: ToolResultPart, how: OutputForm) -> None:
    """Says ``Tool read app.py: 40 lines``; of a list of things to do, each thing as a line below it; of a change its
    first lines and of a command's output the last ones, or all, as is wished for."""
    facts = spoken(", ".join(facts_in_words(result, how != "line"))) or "done"
    writer.quote(f"Tool {spelled(label, line=True)[:LONGEST_LABEL]}: {facts}")
    for text, status in items_of(result):
        writer.quote(f"{_STATES[status]}: {drawable_output(text)}".replace("\n", " "), indent="  ")
    if how != "line" and (said := list(_some(result) if how == "short" else _all(result))):
        writer.quote("\n".join(said), indent="  ")


def _all(result: ToolResultPart) -> Iterator[str]:
    if not items_of(result):
        yield from drawable_output(shown(result)[1]).rstrip("\n").split("\n")


def _some(result: ToolResultPart) -> Iterator[str]:
    """Yields what is said of a result without being asked for."""
    kind, text = shown(result)
    if kind == "diff" and not result.is_error:
        lines = change_lines(drawable_output(text))
        yield from lines[:CHANGED_LINES]
        if len(lines) > CHANGED_LINES:
            yield f"{plural(len(lines) - CHANGED_LINES, 'more line')}: /output shows all"
    elif (seen := excerpt(result)) is not None:
        more = f"{plural(seen.hidden, 'more line')}: /output shows all" if seen.hidden else ""
        yield from filter(None, [more if seen.last else "", *seen.lines, "" if seen.last else more])


def result_text(label: str, result: ToolResultPart) -> str:
    """All of a result."""
    _, text = shown(result)
    return f"{spelled(label, line=True)}\n{drawable_output(text)}"


def ago(then: float) -> str:
    """``just now``, ``5 min ago``."""
    said = age(then)
    return "just now" if said == "now" else f"{said} ago"


def earlier(messages: Sequence[Message], exchanges: int | None) -> int:
    """Returns how many messages come before the user's newest ``exchanges`` messages; 0 where that is None."""
    if exchanges is None:
        return 0
    mine = [at for at, message in enumerate(messages) if message.role == "user"]
    return mine[-exchanges] if len(mine) >= exchanges else 0


def tell_attached(writer: LineWriter, message: Message) -> None:
    """Says a line for each attachment that the user knows of."""
    known = (TOLD_MODE, CONTEXT_NOTE, *(() if own_output(message) is None else (OWN_OUTPUT,)))
    for part in message.parts:
        if isinstance(part, AttachmentPart) and part.name not in known:
            writer.quote(f"attached: {spelled(part.name, line=True)}", "Note")


def printed(message: Message) -> str | None:
    """Returns the output of the user's own command, to be said; None where the message is none."""
    output = own_output(message)
    return None if output is None else program_output(output).strip("\n")


def labels(message: Message) -> dict[str, str]:
    """Returns what the tool calls of an answer are about, by their ids."""
    return {c.call_id: call_label(c.name, call_summary(c.name, c.arguments)) for c in message.tool_calls}


def tell_searches(writer: LineWriter, message: Message, how: OutputForm) -> None:
    """Says what was searched at the provider for an answer."""
    for call, found in search_calls(message.parts):
        result = found or ToolResultPart(call.call_id, call.name, INTERRUPTED_RESULT)
        tell_result(writer, call_label(call.name, call_summary(call.name, call.arguments)), result, how)


def tell_messages(writer: LineWriter, messages: Sequence[Message], steps: Sequence[Step], how: OutputForm) -> None:
    """Says messages as they were said when they came, and how those of their requests ended that failed."""
    endings = endings_without_words(messages, steps)
    calls: dict[str, str] = {}
    for message in messages:
        if message.role == "user":
            if message.text:
                writer.quote(message.text, "You")
            if output := printed(message):
                writer.quote(output, indent="  ")
            tell_attached(writer, message)
        elif message.role == "assistant":
            if message.text.strip():
                writer.answer(message.text)
                writer.end_answer()
            tell_searches(writer, message, how)
            calls |= labels(message)
        elif message.tool_result is not None:
            result = message.tool_result
            tell_result(writer, calls.get(result.call_id, result.name), result, how)
        if (ending := endings.get(message.id)) is not None:
            writer.quote(ending[1], LEVELS[ending[0]])


log = logging.getLogger(__name__)

_COMPACTION: dict[str, Mark] = {"done": "Compacted", "failed": "Error", "not_worth_it": "Warning"}


@dataclass(eq=False)
class EventPrinter:
    """Tells events; ``dispatch`` is the agent's subscriber and never raises."""

    _agent: Agent
    _writer: LineWriter
    _asking: Asking
    _queue: QueueView
    _changed: Callable[[], None]
    """Called after each event."""
    _calls_user: Callable[[], None]

    def __post_init__(self) -> None:
        agent, asking = self._agent, self._asking
        self._told = TurnTexts()
        self._calls: dict[str, str] = {}
        self._own_calls: set[str] = set()
        self._asked: set[str] = set()
        self._shown = ""
        self._ticker = ProgressTicker(self._writer, lambda: agent.turns.busy, lambda: asking.front is not None)
        self._foretold = ""
        self._thinking = False
        self._opened = ""
        self._loading = False
        self.show_reasoning = agent.settings.ui.show_reasoning
        self.stop_reason: StopReason | None = None
        self.failure_retryable = False
        self.results: list[tuple[str, ToolResultPart]] = []

    def dispatch(self, event: Event) -> None:
        try:
            self._tell(event)
        except Exception as error:
            log.exception("Telling %s failed", type(event).__name__)
            self._writer.quote(f"cannot show {type(event).__name__}: {one_line(str(error))}", "Error")
        self._ticker.look()
        self._changed()

    def _tell(self, event: Event) -> None:
        writer, agent = self._writer, self._agent
        match event:
            case SessionChanged(_, True):
                self._session()
            case TurnStarted():
                self._ticker.begin("Working")
            case MessageAdded(message):
                self._message(message)
            case StepStarted():
                self._thinking = False
                self._ticker.phase = "Waiting for the model"
            case PartDelta(_, delta):
                self._delta(delta.kind, delta.text)
            case AnswerInterrupted():
                writer.end_answer()
                writer.say(BEGINS_AGAIN, "Note")
                self._thinking = False
            case BackendChanged(state):
                if state == LOADING and not self._loading and self._ticker.phase and agent.models.spec.model != "demo":
                    self._loading = True
                    writer.say("Starting the provider…")
            case StepEnded(step, message):
                writer.end_answer()
                tell_searches(writer, message, agent.settings.ui.tool_output)
                self._calls = {**labels(message), **self._calls}
                if (failure := self._told.step_ended(step, message)) is not None:
                    writer.quote(failure, "Error")
            case ToolStarted(call_id, name, summary):
                self._calls[call_id] = call_label(name, summary)
                if name == OWN_COMMAND:
                    self._own_calls.add(call_id)
                    self._shown = ""
                    self._ticker.begin("Running your command")
                else:
                    self._ticker.phase, self._ticker.last = f"Running {one_line(summary, 80)}", ""
            case ToolOutput(call_id, text):
                if call_id not in self._own_calls:
                    lines = [line for line in program_output(text).split("\n") if line.strip()]
                    self._ticker.last = lines[-1] if lines else self._ticker.last
                else:
                    self._ticker.spoke()
                    self._shown += text
                    writer.quote(program_output(text), indent="  ")
            case PermissionAsked():
                self._asked.add(event.call_id)
                self._asking.permission(agent, event)
            case PermissionAnswered(request_id, _) | QuestionClosed(request_id):
                self._asking.closed(request_id)
            case PlanPresented("", plan):
                writer.quote(f"the plan (nobody can approve it here):\n{spelled(plan)}", "Note")
            case PlanPresented():
                self._asking.plan(agent, event)
            case QuestionAsked():
                self._asking.question(agent, event)
            case ServerAsked():
                answer = partial(agent.servers.answer, event.request_id)
                self._asking.put_back(ServerQuestion(event, writer, answer))
            case StopAsked():
                self._asking.stop(event)
            case ContextChanged(usage, in_flight):
                if not in_flight:
                    self._foretell(usage)
            case DraftChanged():
                pass
            case RetryWaiting(seconds, attempt, attempts, failure):
                again = f"Retrying in {duration(seconds)}, {attempt} of {attempts - 1}."
                writer.quote(f"{failure.message} {again}", "Warning")
            case CompactionStarted(before, _, estimated):
                writer.say(f"compacting {tokens(before, estimated, full=True)} tokens…", "Note")
                self._ticker.begin("Compacting")
            case CompactionEnded(outcome, text, records, quiet):
                self._told.add(text)
                if text and not quiet:
                    shown = outcome == "done" and any(record.summary_id for record in records)
                    more = ". /compact show has its messages and summary." if shown else ""
                    writer.say(f"{text}{more}", _COMPACTION.get(outcome, "Note"))
            case Notice(level, text, code):
                self._told.add(text)
                if code in ASKED and self._asking.asks_stops:
                    text = without_ways(text)
                writer.remark(self._queue.waiting_words(text) if code == "waiting" else text, LEVELS[level])
            case QueueChanged():
                told = self._queue.paused_words()
                self._queue.changed(event)
                if (paused := self._queue.paused_words()) and not told:
                    writer.remark(paused, "Note")
            case ContextEdited(record) if record.by == "agent":
                writer.say(f"{let_go_words(record)}.", "Note")
            case SessionChanged() | JobsChanged() | MessagesWithdrawn() | ContextEdited():
                pass  # their notices and the queue tell it
            case TurnEnded():
                self._turn_ended(event)
            case _:
                assert_never(event)

    # The session

    def _session(self) -> None:
        agent, writer = self._agent, self._writer
        self._calls.clear()
        self._asked.clear()
        before, self._opened = self._opened, agent.conversation.info.id
        if before == agent.conversation.info.id:
            return
        if agent.conversation.path:
            title = one_line(agent.conversation.info.title, 80) or "untitled"
            count = plural(len(agent.conversation.path), "message")
            rest = " The last exchange; /history shows more:" if earlier(agent.conversation.path, 1) else ""
            writer.say(f"session {title}, {count}, {ago(agent.conversation.path[-1].created)}.{rest}", "Note")
            self.tell_past(1)
        elif before:
            writer.say("a new session.", "Note")

    def tell_past(self, exchanges: int | None) -> int:
        """Says the newest messages of the user's and what followed each, all of them where that is None; returns how
        many messages are earlier."""
        messages = self._agent.conversation.path
        begin = earlier(messages, exchanges)
        agent = self._agent
        tell_messages(self._writer, messages[begin:], agent.conversation.steps, agent.settings.ui.tool_output)
        return begin

    # A turn

    def _message(self, message: Message) -> None:
        if (result := message.tool_result) is not None:
            label = self._calls.get(result.call_id, result.name)
            self.results.append((label, result))
            del self.results[:-100]
            self._ticker.spoke()
            self._ticker.phase = "Working"
            # The change that was asked about was said then.
            asked = result.call_id in self._asked and shown(result)[0] == "diff"
            tell_result(self._writer, label, result, "line" if asked else self._agent.settings.ui.tool_output)
        elif message.role == "user" and self._own_calls:
            self._own_calls.clear()
            self._end_own(message)
        elif message.role == "user":
            if not self._queue.was_just_typed(message.text):
                self._writer.quote(message.text, "You, from the queue")
            tell_attached(self._writer, message)

    def _end_own(self, message: Message) -> None:
        """The user's command is over: what of its output was not said while it ran is said now."""
        text, shown = printed(message) or "", program_output(self._shown).strip("\n")
        rest = text.removeprefix(shown).strip("\n")
        if shown and rest == text:
            last = text.rpartition("\n")[2]
            rest = last if last.startswith("[") else ""
        self._ticker.end()
        if rest:
            self._writer.quote(rest, indent="  ")
        self._writer.quote("command finished.", "Note")

    def _delta(self, kind: str, text: str) -> None:
        self._ticker.spoke()
        if kind == "text":
            self._ticker.phase = "Answering"
            self._writer.answer(text)
        elif kind == "search":
            self._ticker.phase = "Searching"
        elif kind == "reasoning":
            self._ticker.phase = "Thinking"
            if not self._thinking:
                self._thinking = True
                self._writer.say("Thinking…")

    def _turn_ended(self, event: TurnEnded) -> None:
        agent, writer = self._agent, self._writer
        lasted = self._ticker.seconds
        self._ticker.end()
        self.stop_reason = event.stop_reason
        self.failure_retryable = event.failure is not None and event.failure.retryable
        writer.end_answer()
        if self.show_reasoning and agent.conversation.path and agent.conversation.path[-1].reasoning:
            writer.quote(agent.conversation.path[-1].reasoning, "Thought")
        if event.stop_reason == "interrupted":
            writer.say("Interrupted.")
        for level, text in self._told.ending(event, cost=False):
            if event.stop_reason != "interrupted":
                writer.say(text, LEVELS[level])
        usage = agent.context.usage()
        used = interval(usage.total, usage.spread, usage.approximate)
        said = [f"context {used} of {tokens(usage.window, False)} tokens" if usage.window else f"context {used} tokens"]
        if agent.settings.ui.turn_cost and (figure := turn_figure(event.bill)) is not None:
            said.insert(0, figure)
        elif usage.session.cost.known:
            said.append(f"{money(usage.session.cost)} so far")
        writer.say(", ".join(said) + ".", "Done" if event.stop_reason == "end" else "Stopped")
        if lasted >= LONG_TURN and event.stop_reason != "interrupted":
            self._calls_user()

    def _foretell(self, usage: ContextUsage) -> None:
        """Says, once for each reason, what the next request pays anew."""
        cold = usage.forecast.cold if usage.forecast is not None else None
        reason = "" if cold is None else cold.what if cold.cause == "ours" else cold.cause
        if cold is not None and reason != self._foretold:
            from agent_tui.context.cache_forecast import cold_words

            self._writer.say(f"{one_line(cold_words(cold))}.", "Note")
        self._foretold = reason

    def close(self) -> None:
        """Nothing is said any more by itself."""
        self._ticker.end()
