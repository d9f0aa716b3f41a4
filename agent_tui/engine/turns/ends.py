"""Why a turn ends, and what the user is told of that."""

from __future__ import annotations

from collections.abc import Iterator

from agent_tui.context.accounting.spending import cut_text
from agent_tui.engine.turns.repetition import SAME_CALLS
from agent_tui.engine.turns.step import MOST_CALLS, StepResult
from agent_tui.models.events import Notice, StopReason
from agent_tui.models.failure import ARRIVED_KEPT, GO_ON, Failure, make_failure
from agent_tui.records import dataclass
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import plural

NOT_RUN = "It was not run; with `[tools] text_calls = true` such calls are."


@dataclass(slots=True, frozen=True)
class TurnEnd:
    """The end of a turn; ``notice`` is its line for the user where a failure does not say it."""

    stop: StopReason
    failure: Failure | None = None
    notice: Notice | None = None


def end_of(result: StepResult) -> TurnEnd | None:
    """Returns the end that an answer is for its turn; None where the turn goes on, or the model is done."""
    if result.failure is not None:
        return TurnEnd("refused" if result.failure.kind == "content_refused" else "error", result.failure)
    if result.finish == "refused":
        return TurnEnd("refused")
    if result.repeats is not None:
        text = f"The answer went on repeating “{one_line(result.repeats, 60)}” and was ended."
        return _to_go_on("length", text, "repeated_answer")
    if result.message.tool_calls:
        return None
    if result.finish == "length" and result.budget is not None:
        text = cut_text(result.budget, result.step.max_output or 0)
        return TurnEnd("budget", notice=Notice("warning", text, "budget"))
    if result.finish == "length":
        return _to_go_on("length", "The answer was cut off at the output limit.", "length")
    return TurnEnd("error", _unknown_end(result)) if result.finish == "unknown" else None


def step_limit(limit: int) -> TurnEnd:
    """The end of a turn that has made as many steps as the settings allow."""
    return _to_go_on("step_limit", f"Stopped after {plural(limit, 'step')}.", "step_limit")


def same_calls(call: str) -> TurnEnd:
    """The end of a turn that makes one call again and again."""
    text = f"The model made the same call {SAME_CALLS} times in a row and got the same result: {call}."
    return _to_go_on("step_limit", text, "repeated_call")


def notices_of(result: StepResult) -> Iterator[Notice]:
    """What the user is told of the calls of an answer."""
    if result.written_calls:
        names = " and ".join(dict.fromkeys(result.written_calls))
        yield Notice("warning", f"The model wrote a call of {names} as text. {NOT_RUN}", "written_call")
    if result.more_calls:
        text = f"The answer was ended at its {MOST_CALLS}th tool call: no more are run in one step."
        yield Notice("warning", text, "many_calls")


def _to_go_on(stop: StopReason, text: str, code: str) -> TurnEnd:
    return TurnEnd(stop, notice=Notice("warning", f"{text} {GO_ON}", code, GO_ON))


def _unknown_end(result: StepResult) -> Failure:
    """The failure of an answer that ended for a reason that nobody knows."""
    words = (
        f" with “{result.finish_words}”, which is no end that agent-tui knows"
        if result.finish_words
        else " without saying why"
    )
    text = f"The answer ended{words}: it may not be complete."
    return make_failure("interrupted_stream", text, GO_ON, kept=ARRIVED_KEPT)
