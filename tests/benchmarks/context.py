"""How long an answer of the calculator takes: 10 000 messages against 100, cold and after each new message.

    python tests/benchmarks/context.py [--messages N] [--runs N] [--json]

``warm`` is what a session pays: the view has grown by one step since the last call. ``open`` is a call with nothing
new, as when the screen opens. ``cold`` is the first call after a restart. Medians of the runs, in milliseconds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


from agent_tui.context.accounting.inputs import ContextInputs
from agent_tui.context.accounting.usage import Calculator
from agent_tui.context.tokens import family_of
from agent_tui.context.view import ViewBuilder
from agent_tui.models.calibration import Calibration, text_content
from agent_tui.models.messages import ReasoningPart
from agent_tui.models.requests import SentMessage
from agent_tui.models.usage import Limits, TokenUsage
from tests.support.contexts import TARGET, Conversation, fixed_part, model

RESULTS_A_TURN = 3
LIMITS = Limits(1_000_000_000, None, 64_000, "config")


def grow(conversation: FastConversation, messages: int, size: list[int]) -> None:
    """Turns of one user message and four steps, three of which call a tool, until there are enough messages."""
    while len(conversation.path) < messages:
        conversation.say(f"question {len(conversation.path)}", raw=12)
        for number in range(RESULTS_A_TURN + 1):
            one_step(conversation, size, last=number == RESULTS_A_TURN)


def one_step(conversation: FastConversation, size: list[int], last: bool) -> None:
    call = f"c{len(conversation.path)}"
    usage = TokenUsage(size[0], 90, 40, cache_read=max(0, size[0] - 100))
    thought = ReasoningPart("thinking about it", {"signature": "s"}, "now" if len(conversation.path) < 400 else None)
    # Building the fingerprints of a growing list afresh for each step would take longer than what is measured.
    before = conversation.steps[-1].id if conversation.steps else None
    step = conversation.answer(usage, calls=() if last else (call,), reasoning=thought, raw=40)
    off = len(conversation.path) % 21 - 10
    step.anchor_step, step.estimated_input, step.estimated_spread = before, size[0] + off, 9
    step.actual_input, step.growth = size[0], text_content(None, 210)
    conversation.calibration = conversation.calibration.learned(step.growth, 210 - off)
    size[0] += 90
    if not last:
        conversation.result(call, raw=200)
        size[0] += 210


def build(messages: int) -> tuple[FastConversation, list[int]]:
    conversation = FastConversation(fixed=[fixed_part(raw=2_000), fixed_part("tools", 4_000, "read", "builtin")])
    size = [6_100]
    grow(conversation, messages, size)
    return conversation, size


class FastConversation(Conversation):
    """Keeps the view instead of building it afresh for each step; each step's report was expected and teaches, as in a
    session."""

    calibration: Calibration = family_of(TARGET).beginning

    def view(self) -> list[SentMessage]:
        self.__dict__.setdefault("builder", ViewBuilder())
        return self.__dict__["builder"].build(self.path, self.records, self.summaries)  # type: ignore[no-any-return]


def timed(conversation: FastConversation, accounts: Calculator, builder: ViewBuilder) -> tuple[float, float]:
    """Milliseconds of the view and of the calculation."""
    start = time.process_time()
    view = builder.build(conversation.path, conversation.records, conversation.summaries)
    middle = time.process_time()
    info = model(conversation.target, LIMITS)
    inputs = ContextInputs(
        info,
        view,
        conversation.steps,
        conversation.records,
        conversation.fixed,
        calibration=conversation.calibration,
        fixed_fingerprint=conversation.fixed_fingerprint,
        effort="medium",
    )
    usage = accounts.usage(inputs)
    end = time.process_time()
    assert sum(r.tokens for r in usage.rows) == usage.total
    assert usage.anchor_step is not None
    return 1_000 * (middle - start), 1_000 * (end - middle)


def measure(messages: int, runs: int) -> dict[str, float]:
    conversation, size = build(messages)
    cold = [timed(conversation, Calculator(), ViewBuilder()) for _ in range(max(1, runs // 3))]
    accounts, builder = Calculator(), ViewBuilder()
    timed(conversation, accounts, builder)
    opened, warm = [], []
    for number in range(runs):
        opened.append(timed(conversation, accounts, builder))
        one_step(conversation, size, last=number % 4 == 3)
        if number % 4 == 3:
            conversation.say("next question", raw=12)
        warm.append(timed(conversation, accounts, builder))
    return {
        "view_ms": median(v for v, _ in warm),
        "warm_ms": median(c for _, c in warm),
        "warm_max_ms": max(c for _, c in warm),
        "open_ms": median(c for _, c in opened),
        "cold_ms": median(c for _, c in cold),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    many, few = measure(options.messages, options.runs), measure(100, options.runs)
    ratios = {name.replace("_ms", "_ratio"): many[name] / few[name] for name in many}
    result = {"messages": options.messages, "many": many, "few": few, "ratio": ratios}
    if options.json:
        print(json.dumps(result))
        return
    print(f"{'':14}{options.messages:>10,}{100:>10}{'ratio':>10}")
    for name, value in many.items():
        print(f"{name:14}{value:>10.2f}{few[name]:>10.2f}{value / few[name]:>10.1f}")


if __name__ == "__main__":
    main()
