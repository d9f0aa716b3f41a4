"""The one place where events become something to see."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, assert_never

from agent_tui.commands.turn_words import ASKED, TurnTexts
from agent_tui.context.accounting.spending import without_ways
from agent_tui.models.events import (
    LOADING,
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
    ToolOutput,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import interval
from agent_tui.ui.chat.face import is_demo
from agent_tui.ui.chat.view import ChatPart

if TYPE_CHECKING:
    from agent_tui.ui.chat.questions import Questions
    from agent_tui.ui.chat.session import SessionView
    from agent_tui.ui.chat.view import MainView

log = logging.getLogger(__name__)

WORKING = "Working"
STARTING = {False: "Starting the provider (first use)", True: "Starting the provider"}


class Router(ChatPart):
    """Shows events; ``dispatch`` is the agent's subscriber and never raises."""

    def __init__(self, view: MainView, session: SessionView, questions: Questions) -> None:
        super().__init__(view)
        self._session = session
        self._questions = questions
        self._told = TurnTexts()
        self._backend = ""
        self._used = False

    def dispatch(self, event: Event) -> None:
        try:
            self._show(event)
        except Exception as error:
            log.exception("Showing %s failed", type(event).__name__)
            self._view.say("error", f"Cannot show {type(event).__name__}: {one_line(str(error))}")

    def _waiting_phase(self) -> str:
        agent = self._agent
        if agent is None or is_demo(agent) or self._backend != LOADING:
            return WORKING
        return STARTING[self._used]

    def _show(self, event: Event) -> None:
        view, session, transcript = self._view, self._session, self._view.transcript
        match event:
            case SessionChanged(_, reload):
                session.session_changed(reload)
            case TurnStarted():
                session.turn_started()
            case MessageAdded(message):
                session.face.leave()
                transcript.add_message(message)
                self._told.add_message(message)
                if view.activity.phase:
                    view.phase("Working")
            case StepStarted(_, message):
                transcript.begin_answer(message)
                view.phase(self._waiting_phase())
            case PartDelta(message_id, delta):
                transcript.apply_delta(message_id, delta)
                view.phase({"reasoning": "Thinking", "search": "Searching"}.get(delta.kind, "Answering"))
            case AnswerInterrupted(message_id):
                transcript.interrupt_answer(message_id)
            case BackendChanged(state):
                self._backend = state
                self._used = self._used or state == "litellm_ready"
                if view.activity.phase in (WORKING, *STARTING.values()):
                    view.phase(self._waiting_phase())
            case StepEnded(step, message):
                self._told.step_ended(step, message)
                transcript.end_answer(message, step)
            case ToolStarted(call_id, name, summary):
                session.face.leave()
                transcript.tool_started(call_id, summary)
                view.phase(f"Running {one_line(summary, 60)}", command=name == "bash", timed=True)
            case ToolOutput(call_id, text):
                transcript.tool_output(call_id, text)
            case PermissionAsked():
                transcript.tool_waiting(event.call_id, True)
                self._questions.ask(event)
            case PermissionAnswered(request_id, _) | QuestionClosed(request_id):
                self._questions.answered(request_id)
            case PlanPresented("", plan):
                view.say("info", f"The plan (nobody can approve it here):\n{plan}")
            case PlanPresented() | QuestionAsked() | ServerAsked() | StopAsked():
                self._questions.ask(event)
            case ContextChanged(usage, in_flight):
                session.context_changed(usage, in_flight)
            case DraftChanged(draft):
                session.draft_changed(draft)
            case RetryWaiting(seconds, attempt, attempts, failure):
                view.activity.begin(
                    f"Retry {attempt} of {attempts - 1}", "Esc gives up", seconds=seconds, detail=failure.message
                )
            case CompactionStarted(before, _, estimated, spread):
                what = f"Compacting {interval(before, spread, estimated)} tokens"
                view.activity.begin(what, "Esc to cancel", timed=True)
            case CompactionEnded(outcome, text, records, quiet):
                self._told.add(text)
                session.compaction_ended(outcome, "" if quiet else text, records)
            case ContextEdited(record):
                transcript.add_record(record)
            case Notice(_, _, "empty_answer"):
                # The answer itself says so, here and when the session is opened again.
                pass
            case Notice(_, text, "model_problem") if session.face.warn(text):
                self._told.add(text)
            case Notice(level, text, code):
                self._told.add(text)
                view.say(level, without_ways(text) if code in ASKED else text)
            case QueueChanged(waiting, paused):
                known = view.queue_view.keys
                view.queue_view.show(waiting, paused)
                if (keys := view.queue_view.keys) and keys != known and view.prompt.is_empty:
                    view.hint(keys)
            case MessagesWithdrawn(ids):
                transcript.withdraw(ids)
            case JobsChanged(running):
                session.jobs_changed(running)
            case TurnEnded(reason):
                said, line = self._told.ending(event, view.activity.seconds)
                for tone, text in [*said, *([("quiet", line)] if line else [])]:
                    view.say(tone, text)
                session.turn_ended(reason)
            case _:
                assert_never(event)
