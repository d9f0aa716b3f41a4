"""The one place where events become something to see."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from agent_tui.commands.turn_words import Told, says_itself
from agent_tui.models.events import (
    LOADING,
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
    ToolOutput,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import tokens
from agent_tui.ui.chat.session_view import is_demo

if TYPE_CHECKING:
    from agent_tui.ui.chat.needs import FollowsSession, HasAgent, ShowsQuestions
    from agent_tui.ui.chat.stage import Stage

log = logging.getLogger(__name__)

WORKING = "Working"
STARTING = {False: "Starting the provider (first use)", True: "Starting the provider"}


class Router:
    """Shows events; ``dispatch`` is the agent's subscriber and never raises."""

    def __init__(self, seat: HasAgent, stage: Stage, session: FollowsSession, questions: ShowsQuestions) -> None:
        self._seat = seat
        self._stage = stage
        self._session = session
        self._questions = questions
        self._told = Told()
        self._backend = ""
        self._used = False

    def dispatch(self, event: Event) -> None:
        try:
            self._show(event)
        except Exception as error:
            log.exception("Showing %s failed", type(event).__name__)
            self._stage.say("error", f"Cannot show {type(event).__name__}: {one_line(str(error))}")

    def _waiting_phase(self) -> str:
        """What goes on between a request and the first word of its answer."""
        agent = self._seat.agent
        if agent is None or is_demo(agent) or self._backend not in LOADING:
            return WORKING
        return STARTING[self._used]

    def _says_so(self) -> bool:
        """Whether the interrupted answer says itself that it was interrupted."""
        agent = self._seat.agent
        return agent is not None and says_itself(agent.conversation.path)

    def _show(self, event: Event) -> None:
        stage, session, transcript = self._stage, self._session, self._stage.transcript
        match event:
            case SessionChanged(_, reload):
                session.session_changed(reload)
            case TurnStarted():
                session.turn_started()
            case MessageAdded(message):
                transcript.add_message(message)
                if stage.activity.phase:
                    stage.phase("Working")
            case StepStarted(_, message):
                transcript.begin_answer(message)
                stage.phase(self._waiting_phase())
            case PartDelta(message_id, delta):
                transcript.apply_delta(message_id, delta)
                stage.phase("Thinking" if delta.kind == "reasoning" else "Answering")
            case BackendChanged(state):
                self._backend = state
                self._used = self._used or state == "litellm_ready"
                if stage.activity.phase in (WORKING, *STARTING.values()):
                    stage.phase(self._waiting_phase())
            case StepEnded(step, message):
                self._told.step_ended(step, message)
                transcript.end_answer(message, step)
            case ToolStarted(call_id, _, summary):
                transcript.tool_started(call_id, summary)
                stage.phase(f"Running {one_line(summary, 60)}")
            case ToolOutput(call_id, text):
                transcript.tool_output(call_id, text)
            case PermissionAsked():
                transcript.tool_waiting(event.call_id, True)
                self._questions.ask(event)
            case PermissionAnswered(request_id, _) | QuestionClosed(request_id):
                self._questions.answered(request_id)
            case PlanPresented("", plan):
                stage.say("info", f"The plan, which nobody can approve here:\n{plan}")
            case PlanPresented():
                self._questions.ask_plan(event)
            case QuestionAsked():
                self._questions.ask_question(event)
            case ContextChanged(usage, in_flight):
                session.context_changed(usage, in_flight)
            case RetryWaiting(seconds, attempt, attempts, failure):
                stage.activity.begin(
                    f"Retry {attempt} of {attempts - 1}", "Esc gives up", seconds=seconds, detail=failure.message
                )
            case CompactionStarted(before, _, estimated):
                stage.activity.begin(f"Compacting {tokens(before, estimated)}…", "Esc to cancel")
            case CompactionEnded(outcome, text, records, quiet):
                self._told.add(text)
                session.compaction_ended(outcome, "" if quiet else text, records)
            case Notice(_, _, "empty_answer"):
                # The answer itself says so, here and when the session is opened again.
                pass
            case Notice(level, text, _):
                self._told.add(text)
                stage.say(level, text)
            case QueueChanged(waiting, paused):
                known = stage.queue_view.keys
                stage.queue_view.show(waiting, paused)
                if (keys := stage.queue_view.keys) and keys != known and stage.prompt.is_empty:
                    stage.hint(keys)
            case MessagesWithdrawn(ids):
                transcript.withdraw(ids)
            case JobsChanged(running):
                session.jobs_changed(running)
            case TurnEnded(reason):
                for tone, line in self._told.ending(event, self._says_so(), stage.turn_cost):
                    stage.say(tone, line)
                session.turn_ended(reason)
            case _:
                stage.say("warning", f"Unknown event {one_line(repr(event), 300)}")
