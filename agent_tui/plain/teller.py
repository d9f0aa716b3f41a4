"""The one place where events become lines."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, assert_never

from agent_tui.commands.tool_words import call_label, call_summary
from agent_tui.commands.turn_words import LONG_TURN, Told, says_itself
from agent_tui.context.accounting.totals import turn_figure
from agent_tui.models.events import (
    LOADING,
    OWN_COMMAND,
    BackendChanged,
    CompactionEnded,
    CompactionStarted,
    ContextChanged,
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
    SessionChanged,
    StepEnded,
    StepStarted,
    StopReason,
    ToolOutput,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from agent_tui.models.messages import Message, ToolResultPart
from agent_tui.plain.past import ago, attached, earlier, printed, tell_messages, tell_result
from agent_tui.plain.silence import Silence
from agent_tui.text.clean import one_line, program_output, spelled
from agent_tui.text.numbers import duration, plural, tokens

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.models.context import ContextUsage
    from agent_tui.plain.asking import Asking
    from agent_tui.plain.queue import Queue
    from agent_tui.plain.voice import Mark, Voice

log = logging.getLogger(__name__)

_COMPACTION: dict[str, Mark] = {"done": "Compacted", "failed": "Error", "not_worth_it": "Warning"}
LEVELS: dict[str, Mark] = {"info": "Note", "warning": "Warning", "error": "Error"}


class Teller:
    """Tells events; ``dispatch`` is the agent's subscriber and never raises. ``changed`` is called after each."""

    def __init__(
        self,
        agent: Agent,
        voice: Voice,
        asking: Asking,
        queue: Queue,
        changed: Callable[[], None],
        calls_user: Callable[[], None],
    ) -> None:
        self._agent = agent
        self._voice = voice
        self._asking = asking
        self._queue = queue
        self._changed = changed
        self._calls_user = calls_user
        self._told = Told()
        self._calls: dict[str, str] = {}
        self._own_calls: set[str] = set()
        self._shown = ""
        self._silence = Silence(voice, lambda: agent.turns.busy, lambda: asking.front is not None)
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
            self._voice.quote(f"cannot tell {type(event).__name__}: {one_line(str(error))}", "Error")
        self._silence.look()
        self._changed()

    def _tell(self, event: Event) -> None:
        voice, agent = self._voice, self._agent
        match event:
            case SessionChanged(_, True):
                self._session()
            case SessionChanged():
                pass
            case TurnStarted():
                self._silence.begin("Working")
            case MessageAdded(message):
                self._message(message)
            case StepStarted():
                self._thinking = False
                self._silence.phase = "Waiting for the model"
            case PartDelta(_, delta):
                self._delta(delta.kind, delta.text)
            case BackendChanged(state):
                if state in LOADING and not self._loading and self._silence.phase and agent.models.spec.model != "demo":
                    self._loading = True
                    voice.say("Starting the provider…")
            case StepEnded(step, message):
                voice.end_answer()
                for call in message.tool_calls:
                    self._calls.setdefault(call.call_id, call_label(call.name, call_summary(call.name, call.arguments)))
                if (failure := self._told.step_ended(step, message)) is not None:
                    voice.quote(failure, "Error")
            case ToolStarted(call_id, name, summary):
                self._calls[call_id] = call_label(name, summary)
                if name == OWN_COMMAND:
                    self._own_calls.add(call_id)
                    self._shown = ""
                    self._silence.begin("Running your command")
                else:
                    self._silence.phase, self._silence.last = f"Running {one_line(summary, 80)}", ""
            case ToolOutput(call_id, text):
                if call_id not in self._own_calls:
                    lines = [line for line in program_output(text).split("\n") if line.strip()]
                    self._silence.last = lines[-1] if lines else self._silence.last
                else:
                    self._silence.spoke()
                    self._shown += text
                    voice.quote(program_output(text), indent="  ")
            case PermissionAsked():
                self._asking.permission(agent, event)
            case PermissionAnswered(request_id, _) | QuestionClosed(request_id):
                self._asking.closed(request_id)
            case PlanPresented("", plan):
                voice.quote(f"the plan, which nobody can approve here:\n{spelled(plan)}", "Note")
            case PlanPresented():
                self._asking.plan(agent, event)
            case QuestionAsked():
                self._asking.question(agent, event)
            case ContextChanged(usage, in_flight):
                if not in_flight:
                    self._foretell(usage)
            case RetryWaiting(seconds, attempt, attempts, failure):
                voice.quote(failure.message, "Warning")
                voice.say(f"trying again in {duration(seconds)}, {attempt} of {attempts - 1}.", "Note")
            case CompactionStarted(before, _, estimated):
                voice.say(f"compacting {tokens(before, estimated, full=True)} tokens…", "Note")
                self._silence.begin("Compacting")
            case CompactionEnded(outcome, text, _, quiet):
                self._told.add(text)
                if text and not quiet:
                    voice.say(text, _COMPACTION.get(outcome, "Note"))
            case Notice(level, text, code):
                self._told.add(text)
                voice.remark(self._queue.waiting_words(text) if code == "waiting" else text, LEVELS[level])
            case QueueChanged():
                told = self._queue.paused_words()
                self._queue.changed(event)
                if (paused := self._queue.paused_words()) and not told:
                    voice.remark(paused, "Note")
            case JobsChanged() | MessagesWithdrawn():
                pass  # their notices and the queue tell it
            case TurnEnded():
                self._turn_ended(event)
            case _:
                assert_never(event)

    # The session

    def _session(self) -> None:
        agent, voice = self._agent, self._voice
        self._asking.turn_over()
        self._calls.clear()
        before, self._opened = self._opened, agent.conversation.info.id
        if before == agent.conversation.info.id:
            return
        if agent.conversation.path:
            title = one_line(agent.conversation.info.title, 80) or "untitled"
            count = plural(len(agent.conversation.path), "message")
            rest = " The last of it, /history says more:" if earlier(agent.conversation.path, 1) else ""
            voice.say(f"session {title}, {count}, {ago(agent.conversation.path[-1].created)}.{rest}", "Note")
            self.tell_past(1)
        elif before:
            voice.say("a new session.", "Note")

    def tell_past(self, exchanges: int | None) -> int:
        """Says the newest messages of the user's and what followed each, all of them where that is None; returns how
        many messages are earlier."""
        messages = self._agent.conversation.path
        begin = earlier(messages, exchanges)
        tell_messages(self._voice, messages[begin:])
        return begin

    # A turn

    def _message(self, message: Message) -> None:
        result = message.tool_result
        if result is not None:
            self._result(result)
        elif message.role == "user" and self._own_calls:
            self._own_calls.clear()
            self._end_own(message)
        elif message.role == "user":
            if not self._queue.was_just_typed(message.text):
                self._voice.quote(message.text, "You, from the queue")
            for line in attached(message):
                self._voice.quote(line, "Note")

    def _end_own(self, message: Message) -> None:
        """The user's command is over: what of its output was not said while it ran is said now."""
        text, shown = printed(message) or "", program_output(self._shown).strip("\n")
        rest = text.removeprefix(shown).strip("\n")
        if shown and rest == text:
            last = text.rpartition("\n")[2]
            rest = last if last.startswith("[") else ""
        self._silence.end()
        if rest:
            self._voice.quote(rest, indent="  ")
        self._voice.quote("the command has ended.", "Note")

    def _result(self, result: ToolResultPart) -> None:
        label = self._calls.get(result.call_id, result.name)
        self.results.append((label, result))
        del self.results[:-100]
        self._silence.spoke()
        self._silence.phase = "Working"
        tell_result(self._voice, label, result)

    def _delta(self, kind: str, text: str) -> None:
        self._silence.spoke()
        if kind == "text":
            self._silence.phase = "Answering"
            self._voice.answer(text)
        elif kind == "reasoning":
            self._silence.phase = "Thinking"
            if not self._thinking:
                self._thinking = True
                self._voice.say("Thinking…")

    def _turn_ended(self, event: TurnEnded) -> None:
        agent, voice = self._agent, self._voice
        lasted = self._silence.seconds
        self._silence.end()
        self.stop_reason = event.stop_reason
        self.failure_retryable = event.failure is not None and event.failure.retryable
        self._asking.turn_over()
        voice.end_answer()
        if self.show_reasoning and agent.conversation.path and agent.conversation.path[-1].reasoning:
            voice.quote(agent.conversation.path[-1].reasoning, "Thought")
        if event.stop_reason == "interrupted":
            voice.say("Interrupted.")
        for level, text in self._told.ending(event, says_itself(agent.conversation.path), False):
            if event.stop_reason != "interrupted":
                voice.say(text, LEVELS[level])
        said = [f"context {self._context(agent.context.usage())}"]
        if agent.settings.ui.turn_cost and (figure := turn_figure(event.bill)) is not None:
            said.insert(0, figure)
        voice.say(", ".join(said) + ".", "Done" if event.stop_reason == "end" else "Stopped")
        if lasted >= LONG_TURN and event.stop_reason != "interrupted":
            self._calls_user()

    @staticmethod
    def _context(usage: ContextUsage) -> str:
        used = tokens(usage.total, usage.approximate)
        return f"{used} of {tokens(usage.window, False)} tokens" if usage.window else f"{used} tokens"

    def _foretell(self, usage: ContextUsage) -> None:
        """Says, once for each reason, what the next request pays anew."""
        cold = usage.outlook.cold if usage.outlook is not None else None
        reason = "" if cold is None else cold.what if cold.cause == "ours" else cold.cause
        if cold is not None and reason != self._foretold:
            from agent_tui.context.cache.words import cold_words

            self._voice.say(f"{one_line(cold_words(cold))}.", "Note")
        self._foretold = reason

    def close(self) -> None:
        """Nothing is said any more by itself."""
        self._silence.end()
