"""Prints the output of a run without a screen: events become text, one JSON object, or a line of JSON each.

Standard output is data, standard error is narration.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TextIO, assert_never

from agent_tui import __version__, terminal_output
from agent_tui.commands.report_json import by_kind_json, compaction_json
from agent_tui.commands.tool_words import call_label, facts_in_words
from agent_tui.commands.turn_words import turn_line
from agent_tui.context.accounting.spending import session_totals
from agent_tui.context.compaction.notices import done_text
from agent_tui.control.control import Answer, Question, Request
from agent_tui.engine.agent import Agent
from agent_tui.errors import OPEN_ELSEWHERE
from agent_tui.headless.incoming import answer_of, question_line
from agent_tui.models.codec import to_dict
from agent_tui.models.events import (
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
from agent_tui.models.failure import BEGINS_AGAIN, Failure, in_a_shell
from agent_tui.models.messages import Message, Metadata
from agent_tui.models.search import search_calls
from agent_tui.models.steps import CompactionRecord, Step
from agent_tui.models.usage import cost_fields, counts_json, usage_json
from agent_tui.options import STREAMS, Options
from agent_tui.text.clean import spelled
from agent_tui.text.numbers import duration, interval
from agent_tui.text.strict_json import json_or

BUSY = f"This session is {OPEN_ELSEWHERE}: close it there, or copy it there with /fork, then run this again."

STREAM_VERSION = 1
"""``v`` of every line of stream-json."""


class Printer:
    """Turns events into output: data to ``out``, narration to ``err``. Warnings and errors are always told, the rest
    where the run is to be verbose."""

    answers_once = False
    """Whoever drives the run gives no second answer where the first one cannot be used: that is a no then."""

    def __init__(self, agent: Agent, options: Options, out: TextIO, err: TextIO) -> None:
        self._agent = agent
        self._output = options.output_format
        self._final = options.final
        self._verbose = options.verbose
        self._schema = options.output_schema is not None
        self._asks = options.can_ask
        self._two_way = options.input_format == "stream-json"
        self._out = out
        self._err = err
        self._first_step = 0
        self._turn_texts: list[str] = []
        self._reasoning: list[str] = []
        self._tool_calls: list[Metadata] = []
        self._results: dict[str, Metadata] = {}
        self._calls: dict[str, str] = {}
        self._notices: list[Metadata] = []
        self._compactions: list[CompactionRecord] = []
        self._turn_notices = 0
        self._problem: Notice | None = None
        self._plan = ""
        self._begun_text = False
        self._value: Any = None
        self.stop_reason: StopReason = "error"
        self.failure: Failure | None = None
        self.denied = 0
        self.schema_problem: str | None = None

    @property
    def answer(self) -> str:
        """The text of the turn's last step."""
        return self._turn_texts[-1] if self._turn_texts else ""

    def begin(self) -> None:
        """The session is open: the steps from here on are those of the run."""
        self._first_step = len(self._agent.conversation.steps)

    def begin_turn(self) -> None:
        """A message is about to be sent."""
        self._turn_texts, self.schema_problem, self._value = [], None, None
        self._turn_notices = len(self._notices)

    def end_turn(self) -> None:
        """Its turn is over."""
        self._tell_problem()
        if self.stop_reason == "refused":
            self._notice("warning", "The model refused to answer.", "refused")
        if self._output == "text" and self._final and self.answer:
            self._print(self.answer, end="\n")
        entry: Metadata = {"stop_reason": self.stop_reason, "text": self.answer}
        self._line({"type": "turn_end", **entry, **({"output": self._value} if self._schema else {})})

    def fits(self, value: Any) -> None:
        """The answer is what the schema asks for."""
        self._value, self.schema_problem = value, None

    def fits_not(self, problem: str) -> None:
        """The answer is not, and is not asked for again."""
        self.schema_problem = problem
        self._notice("error", f"{problem}.", "schema")

    def handle(self, event: Event) -> None:
        """One event of the turn."""
        match event:
            case SessionChanged(info, True):
                self._line({"type": "session", "session_id": info.id, "model": self._agent.models.spec.key})
            case StepStarted(step, _):
                self._begun_text = False
                said = {"step_id": step.id, "model": step.model_key, **_estimate(step)}
                self._line({"type": "step_start", **said})
            case PartDelta(_, delta):
                if delta.kind in ("text", "reasoning") and delta.text:
                    self._line({"type": delta.kind, "text": delta.text})
                if delta.kind == "text" and self._output == "text" and not self._final:
                    self._print(delta.text)
                    self._begun_text = True
            case AnswerInterrupted():
                self._line({"type": "interrupted"})
                if self._output == "text" and not self._final and self._begun_text:
                    self._print(f"\n[{BEGINS_AGAIN}]\n\n")
                    self._tell(f"{BEGINS_AGAIN} What was printed of it before does not count.")
                    self._begun_text = False
            case StepEnded(step, message):
                self._step_ended(step, message)
            case ToolStarted(call_id, name, summary):
                self._calls[call_id] = call_label(name, summary)
                self._narrate(summary)
                if self._two_way:
                    self._line({"type": "tool_start", "call_id": call_id, "name": name, "summary": summary})
            case ToolOutput(call_id, text):
                if self._two_way:
                    self._line({"type": "tool_output", "call_id": call_id, "text": text})
            case ContextEdited(record):
                if record.by == "agent":
                    self._narrate(text := done_text(record))
                    self._notices.append({"level": "info", "text": text, "code": "agent_edit"})
                if self._two_way or record.by == "agent":
                    by = {"by": record.by} if record.by else {}
                    self._line({"type": "context_edit", "edit": record.kind, "messages": record.message_ids, **by})
            case MessageAdded(message):
                if (result := message.tool_result) is not None:
                    entry = {"call_id": result.call_id, "name": result.name, "is_error": result.is_error}
                    self._results[result.call_id] = {**entry, "text": result.text}
                    if result.is_error:
                        label = spelled(self._calls.get(result.call_id, result.name), line=True)
                        self._narrate(f"Tool {label}: {', '.join(facts_in_words(result))}")
                    self._line({"type": "tool_result", **entry, "text": result.text, "seconds": result.seconds})
            case PlanPresented("", plan):
                self._plan = plan
            case PlanPresented() | QuestionAsked() if not self._asks:
                # A run without a screen has nobody to ask; whoever says otherwise is told what waits.
                self._notice("warning", "The model asked a question that nobody can answer here.", "question")
            case Notice(_, _, "model_problem"):
                self._problem = event
            case Notice(level, text, code):
                self.denied += code == "permission_denied"
                text = BUSY if code == "read_only" else in_a_shell(text, event.way)
                self._notice("warning" if code in ("empty_answer", "session_new") else level, text, code)
            case RetryWaiting(seconds, attempt, attempts, failure):
                line = in_a_shell(failure.message, failure.way)
                text = f"{line} Trying again in {duration(seconds)} ({attempt} of {attempts - 1})."
                self._notice("warning", text, "retry")
            case CompactionStarted(before, reason, estimated, spread):
                self._narrate(f"Compacting {interval(before, spread, estimated)} tokens ({reason})…")
                self._line({"type": "compaction", "phase": "start", "before_tokens": before, "reason": reason})
            case CompactionEnded(outcome, text, records, quiet):
                if not quiet:
                    self._narrate(text)
                    self._notices.append({"level": "info", "text": text, "code": f"compaction_{outcome}"})
                self._compactions += [record for record in records if outcome == "done"]
                made = {"compactions": self._made(records), "records": to_dict(records)}
                self._line({"type": "compaction", "phase": "end", "outcome": outcome, "text": text, **made})
            case TurnEnded(reason, failure, spent):
                self.stop_reason, self.failure = reason, failure
                if line := turn_line(spent, None):
                    self._narrate(line)
                self._end_with_plan()
                self._tell_problem()
                if failure is not None:
                    line = in_a_shell(failure.message, failure.way)
                    if not any(told["text"] in (line, failure.message) for told in self._notices[self._turn_notices :]):
                        self._notices.append({"level": "error", "text": line, "code": failure.kind})
                        self._tell(line)
                    self._line({"type": "error", "kind": failure.kind, "message": line})
            case (
                SessionChanged()
                | TurnStarted()
                | PlanPresented()
                | QuestionAsked()
                | ServerAsked()
                | PermissionAsked()
                | PermissionAnswered()
                | StopAsked()
                | QuestionClosed()
                | ContextChanged()
                | DraftChanged()
                | QueueChanged()
                | MessagesWithdrawn()
                | BackendChanged()
                | JobsChanged()
            ):
                pass  # for who sits at a screen
            case _:
                assert_never(event)

    def _end_with_plan(self) -> None:
        """Nobody is here to approve a plan: it is what the turn was for."""
        plan, self._plan = self._plan, ""
        if plan:
            self._turn_texts.append(plan)
            self._line({"type": "text", "text": plan})
            if self._output == "text" and not self._final:
                self._print(plan, end="\n")

    def _step_ended(self, step: Step, message: Message) -> None:
        self._turn_texts.append(message.text)
        self._reasoning.append(message.reasoning)
        for call, found in search_calls(message.parts):
            told = {"arguments": _arguments(call.arguments), "text": found.text if found is not None else ""}
            self._line({"type": "web_search", "id": call.call_id, **told, "is_error": bool(found and found.is_error)})
        for call in message.tool_calls:
            entry = {"id": call.call_id, "name": call.name, "arguments": _arguments(call.arguments)}
            self._tool_calls.append(entry)
            self._line({"type": "tool_call", **entry})
        if step.usage is not None:
            self._line(
                {
                    "type": "usage",
                    "usage": usage_json(step.usage),
                    "believed": usage_json(step.believed),
                    **_estimate(step),
                    "actual_input_tokens": step.actual_input,
                    **cost_fields(step.cost),
                }
            )
        if self._output == "text" and message.text:
            if self._final and message.tool_calls:
                self._narrate(message.text)
            elif not self._final and not message.text.endswith("\n"):
                self._print("\n")

    def _notice(self, level: str, text: str, code: str) -> None:
        notice = {"level": level, "text": text, "code": code}
        self._notices.append(notice)
        (self._narrate if level == "info" else self._tell)(text)
        self._line({"type": "notice", **notice})

    def problem(self, text: str, code: str) -> None:
        """A notice of the run itself."""
        self._notice("warning", text, code)

    def _tell_problem(self) -> None:
        """Tells what is wrong with the model, unless the turn failed of it and says the same."""
        problem, self._problem = self._problem, None
        if problem is not None and (self.failure is None or problem.text not in self.failure.message):
            self._notice(problem.level, problem.text, problem.code)

    def wrong_line(self, text: str, is_message: bool) -> None:
        """A line came in that cannot be used, a message of the user's or another; the run goes on."""
        self._tell(text)
        self._line({"type": "error", "kind": "input", "message": text})

    def introduction(self) -> Metadata:
        """The answer to ``initialize``."""
        agent = self._agent
        return {
            "version": __version__,
            "session_id": agent.conversation.info.id,
            "model": agent.models.spec.key,
            "models": [spec.key for spec in agent.models.all()],
            "mode": agent.mode.now,
            "commands": [{"name": own.name, "description": own.description} for own in agent.project.user_commands()],
        }

    def done(self, request: Request, result: Metadata) -> Metadata:
        """What is answered to a request that was done."""
        return result

    def control(self, entry: Metadata) -> None:
        """An answer to what whoever drives the run asked for, or that a question of ours is closed."""
        self._line(entry)

    def ask(self, question: Question) -> None:
        """A question to whoever drives the run."""
        self._line(question_line(question))

    def answer_to(self, question: Question, said: Metadata) -> Answer:
        """What was answered. Raises ValueError for what is no answer."""
        return answer_of(question, said)

    def fail(self, text: str) -> None:
        """The run ends for what came in, which standard error says as well. Other formats have no place for it."""
        if self._output in STREAMS:
            self.stop_reason = "error"
            self._line({"type": "error", "kind": "input", "message": text})
            self.finish()

    def finish(self, code: int = 0) -> None:
        """Prints what comes at the end of a run with this exit code."""
        self._tell_problem()
        if self._output == "json":
            terminal_output.write(self._out, json.dumps(self._summary(), ensure_ascii=True) + "\n")
        elif self._output in STREAMS:
            self._line({"type": "end", **self._summary()})
        self._out.flush()

    def _summary(self) -> Metadata:
        usage = self._agent.context.usage()
        steps = self._agent.conversation.steps[self._first_step :]
        summary = {
            "session_id": self._agent.conversation.info.id,
            "model": self._agent.models.spec.key,
            "text": self.answer,
            "reasoning": "".join(self._reasoning),
            "stop_reason": self.stop_reason,
            **bill(steps),
            "context": {
                "total": usage.total,
                "low": usage.low,
                "high": usage.high,
                "limit": usage.limit,
                "window": usage.window,
            },
            "tool_calls": [{**call, "result": self._results.get(call["id"])} for call in self._tool_calls],
            "compactions": self._made(self._compactions),
            "denied_calls": self.denied,
            "notices": self._notices,
        }
        return {**summary, "output": self._value} if self._schema else summary

    def _made(self, records: Sequence[CompactionRecord]) -> list[Metadata]:
        """Compactions as scripts are told of them, with what came back since."""
        return [compaction_json(record) for record in records]

    def _line(self, entry: Metadata) -> None:
        if self._output in STREAMS:
            terminal_output.write(self._out, json.dumps({"v": STREAM_VERSION, **entry}, ensure_ascii=True) + "\n")
            self._out.flush()

    def _print(self, text: str, end: str = "") -> None:
        """Writes an answer, so that it ends with ``end``."""
        terminal_output.write(self._out, text if text.endswith(end) else text + end)
        self._out.flush()

    def _tell(self, text: str) -> None:
        terminal_output.write(self._err, f"{text}\n")
        self._err.flush()

    def _narrate(self, text: str) -> None:
        if self._verbose:
            self._tell(text)


def bill(steps: Sequence[Step]) -> Metadata:
    """Returns the use and cost of model calls, of whatever kind, together and by kind; what nobody reported is null."""
    totals = session_totals(steps)
    return {
        "steps": totals.steps,
        "usage": None if totals.usage is None else {**counts_json(totals.usage), "source": totals.usage.source},
        "doubted_reports": totals.doubted,
        **cost_fields(totals.cost),
        "usage_by_kind": by_kind_json(totals),
    }


def _arguments(raw: str) -> Any:
    return json_or(raw, raw) if raw.strip() else {}


def _estimate(step: Step) -> Metadata:
    return {"estimated_input_tokens": step.estimated_input, "estimated_spread_tokens": step.estimated_spread}
