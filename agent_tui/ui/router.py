"""The one place where events become something to see."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from agent_tui.commands.format import one_line, tokens
from agent_tui.models.events import (
    CompactionEnded,
    CompactionStarted,
    ContextChanged,
    Event,
    MessageAdded,
    Notice,
    PartDelta,
    PermissionAnswered,
    PermissionAsked,
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

if TYPE_CHECKING:
    from agent_tui.ui.app import AgentApp

log = logging.getLogger(__name__)

STOP_TEXT = {
    "step_limit": "Stopped at the step limit. Send a message to go on.",
    "interrupted": "Interrupted.",
    "refused": "The model refused to answer.",
    "length": "The answer was cut off at its maximum length.",
}


class Router:
    """Shows events; ``dispatch`` is the agent's subscriber and never raises."""

    def __init__(self, app: AgentApp) -> None:
        self.app = app

    def dispatch(self, event: Event) -> None:
        try:
            self._show(event)
        except Exception as error:
            log.exception("Showing %s failed", type(event).__name__)
            self.app.transcript.add_notice("error", f"Cannot show {type(event).__name__}: {one_line(str(error))}")

    def _says_so(self) -> bool:
        """Whether the interrupted answer says itself that it was interrupted."""
        agent = self.app.agent
        newest = agent.messages[-1] if agent is not None and agent.messages else None
        return newest is not None and newest.role == "assistant" and newest.status == "stopped"

    def _show(self, event: Event) -> None:
        app, transcript = self.app, self.app.transcript
        match event:
            case SessionChanged(_, reload):
                app.session_changed(reload)
            case TurnStarted():
                app.turn_started()
            case MessageAdded(message):
                transcript.add_message(message)
                if app.activity.phase:
                    app.activity_phase("Working")
            case StepStarted(_, message):
                transcript.begin_answer(message)
                app.activity_phase("Working")
            case PartDelta(message_id, delta):
                transcript.apply_delta(message_id, delta)
                app.activity_phase("Thinking" if delta.kind == "reasoning" else "Answering")
            case StepEnded(step, message):
                transcript.end_answer(message, step)
            case ToolStarted(call_id, _, summary):
                transcript.tool_started(call_id, summary)
                app.activity_phase(f"Running {one_line(summary, 60)}")
            case ToolOutput(call_id, text):
                transcript.tool_output(call_id, text)
            case PermissionAsked():
                transcript.tool_waiting(event.call_id, True)
                app.permissions.ask(event)
            case PermissionAnswered(request_id, _):
                app.permissions.answered(request_id)
            case ContextChanged(usage, in_flight):
                app.context_changed(usage, in_flight)
            case RetryWaiting(seconds, attempt, attempts, failure):
                app.activity.begin(
                    f"{one_line(failure.message, 100)} · retry {attempt} of {attempts}",
                    "Esc to give up",
                    seconds=seconds,
                )
            case CompactionStarted(before, _):
                app.activity.begin(f"Compacting {tokens(before)}…", "Esc to cancel")
            case CompactionEnded(outcome, text, records):
                app.compaction_ended(outcome, text, records)
            case Notice(level, text, _):
                transcript.add_notice(level, text)
            case QueueChanged(queued, steer):
                app.queue_view.show(queued, steer)
            case TurnEnded(reason, failure):
                if reason == "interrupted" and self._says_so():
                    pass
                elif reason in STOP_TEXT:
                    transcript.add_notice("info" if reason == "interrupted" else "warning", STOP_TEXT[reason])
                elif reason == "error" and failure is None:
                    transcript.add_notice("error", "The turn ended with an error.")
                app.turn_ended(reason)
            case _:
                transcript.add_notice("warning", f"Unknown event {one_line(repr(event), 300)}")
