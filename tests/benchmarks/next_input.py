"""Scores the product's own next-input estimate on recorded pairs of model calls.

    python tests/benchmarks/next_input.py FILE.jsonl [--json] [--worst N]
    python tests/benchmarks/next_input.py --whole DIR [--json]

Each record becomes a conversation with its steps, and the calculator answers as it would in a session: same anchor,
same replay rule, same estimator with o200k_base counts. Nothing of a record's truth is seen before it is compared.
``--whole`` scores estimates of whole requests, without any anchor, on recorded requests and their usage.
Percentiles are by nearest rank of |estimate - actual|. Lines that cannot be used are left out; stderr says how many.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agent_tui.context.accounting.inputs import ContextInputs
from agent_tui.context.accounting.reports import before_step
from agent_tui.context.accounting.usage import Calculator, calculate_context_usage
from agent_tui.context.anchor import runs_of
from agent_tui.context.tokens import message_text_for_count
from agent_tui.models.calibration import raw_total
from agent_tui.models.context import ContextUsage
from agent_tui.models.messages import (
    AttachmentPart,
    Message,
    Origin,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from agent_tui.models.requests import ModelInfo, ModelSpec, SentMessage, Target
from agent_tui.models.steps import Step
from agent_tui.models.usage import Limits, Prices, TokenUsage
from agent_tui.providers.catalog import model_family
from agent_tui.providers.counting import by_kind
from agent_tui.providers.reasoning import plan_replay

PROVIDERS = {"google": "gemini", "vertex": "vertex_ai"}
LARGE = 3_000
SIGNED = {"signature": "recorded", "encrypted_content": "recorded"}
IMAGE_CHARS = 1_000


@dataclass
class Score:
    """One record's outcome, in tokens."""

    record: dict[str, Any]
    actual: int
    ours: int
    plain: int


class Unusable(ValueError):
    """A record lacks what is needed to score it."""


def number(value: object, name: str) -> int:
    """A number of tokens. Raises Unusable for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        raise Unusable(f"{name} is {value!r}")
    return round(value)


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def target_of(provider: object, wire: object, model: object) -> Target:
    """The recorded call's target in the product's terms."""
    provider, wire, name = text(provider), text(wire), text(model)
    api = "responses" if wire == "openai-responses" else "chat"
    return Target(PROVIDERS.get(provider, provider), api, name, model_family(name))


def usage_of(data: dict[str, Any]) -> TokenUsage:
    """Recorded usage as the product normalises it: output includes reasoning even where the provider's does not."""
    reported = data.get("reasoning_tokens")
    reasoning = None if reported is None else number(reported, "reasoning_tokens")
    output = number(data.get("output_tokens"), "output_tokens")
    if reasoning is not None and reasoning > output:
        output += reasoning
    return TokenUsage(number(data.get("input_tokens"), "input_tokens"), output, reasoning)


def parts_of(entry: object) -> list[dict[str, Any]]:
    """The typed parts of a recorded message; what is no part is left out."""
    parts = entry.get("parts") if isinstance(entry, dict) else None
    return [p for p in parts if isinstance(p, dict)] if isinstance(parts, list) else []


def entries_of(record: dict[str, Any]) -> list[object]:
    entries = record.get("new_messages")
    if not isinstance(entries, list):
        raise Unusable("new_messages is not a list")
    return entries


def new_messages(record: dict[str, Any]) -> list[Message]:
    """The record's new messages as the product stores them: one message a tool result, one a user text."""
    messages: list[Message] = []
    for entry in entries_of(record):
        texts: list[Part] = []
        for part in parts_of(entry):
            index = len(messages)
            if part.get("type") == "tool-result":
                result = ToolResultPart(f"call{index}", text(part.get("tool")), text(part.get("text")))
                messages.append(Message(f"new{index}", "tool", [result]))
            elif part.get("type") == "media":
                texts.append(AttachmentPart("media", "image/png", data="A" * IMAGE_CHARS))
            else:
                texts.append(TextPart(text(part.get("text"))))
        if texts:
            messages.append(Message(f"new{len(messages)}", "user", texts))
    return [m for m in messages if message_text_for_count(m) or m.role == "tool"]


def estimate(record: dict[str, Any]) -> int:
    """The next input that the calculator expects for the record's second call."""
    return calculation(record).total


def calculation(record: dict[str, Any]) -> ContextUsage:
    """The calculator's answer before the record's second call."""
    target = target_of(record.get("provider"), record.get("wire"), record.get("model"))
    origin = Origin(target.provider, target.api, target.model)
    said = record.get("reasoning_resent")
    resent: dict[str, Any] = said if isinstance(said, dict) else {}
    before = record.get("earlier_reasoning_tokens_this_turn")
    history = [Message("first", "user", [TextPart("recorded")])]
    steps: list[Step] = []
    calculator = Calculator()

    def settle(step: Step, message: Message) -> None:
        """The step's report has come, and its answer."""
        inputs = inputs_of(target, history, steps)
        before_step(step, calculator.usage(inputs))
        calculator.record(step, inputs)
        plan = plan_replay(inputs.view, target)
        step.sent_reasoning = runs_of(inputs.view, plan, target.family)
        steps.append(step)
        history.append(message)
        calculator.settle(step, message, inputs_of(target, history, steps))

    for index, reported in enumerate(before if isinstance(before, list) else []):
        tokens = number(reported or 0, "earlier reasoning")
        earlier = Step(f"e{index}", "turn", "", target.provider, target.api, target.model, f"a{index}", "complete")
        earlier.usage, earlier.finished = TokenUsage(0, tokens, tokens), float(index)
        settle(earlier, answer(f"a{index}", origin, resent, bool(tokens)))
        history.append(Message(f"r{index}", "tool", [ToolResultPart("c", "t", "recorded")]))
    usage = usage_of(previous_usage(record))
    step = Step("previous", "turn", "", target.provider, target.api, target.model, "answer", "complete")
    step.usage, step.finished = usage, float(len(steps))
    step.sent_count = len(history)
    settle(step, answer("answer", origin, resent, bool(usage.reasoning)))
    history.extend(new_messages(record))
    return calculate_context_usage(inputs_of(target, history, steps))


def previous_usage(record: dict[str, Any]) -> dict[str, Any]:
    usage = record.get("previous_usage")
    if not isinstance(usage, dict):
        raise Unusable("previous_usage is not an object")
    return usage


def inputs_of(target: Target, history: list[Message], steps: list[Step]) -> ContextInputs:
    for message in history:
        message.counts = by_kind(message_text_for_count(message))
        message.raw_tokens = raw_total(message.counts)
    info = ModelInfo(ModelSpec("recorded", target.model), target, Limits(), Prices())
    view = [SentMessage(m, m.id) for m in history]
    return ContextInputs(info, view, steps, effort="medium")


def answer(message_id: str, origin: Origin, resent: dict[str, bool | None], reasoned: bool) -> Message:
    """The recorded answer, with its reasoning as the client of the recording resent it."""
    call = ToolCallPart("c", "t", "{}")
    parts: list[Part] = []
    if resent.get("opaque") and reasoned:
        call.provider_metadata = {"thought_signature": "recorded"}
        parts.append(ReasoningPart("recorded", SIGNED))
    elif resent.get("text") and reasoned:
        parts.append(ReasoningPart("recorded", SIGNED if reads_plain_items(origin) else None))
    return Message(message_id, "assistant", [*parts, TextPart("recorded"), call], origin=origin)


def reads_plain_items(origin: Origin) -> bool:
    """Whether reasoning for which the record shows only text was nevertheless taken in: Claude refuses unsigned
    blocks, so it was signed; the Responses API knows items by their id. Grok 4.3 takes the encrypted form only."""
    return "claude" in origin.model or (origin.api == "responses" and "grok-4.3" not in origin.model)


def plain_estimate(record: dict[str, Any]) -> int:
    """Last input + last output + length/4 of what is new."""
    usage = previous_usage(record)
    chars = sum(len(text(p.get("text"))) for m in entries_of(record) for p in parts_of(m))
    last = number(usage.get("input_tokens"), "input_tokens") + number(usage.get("output_tokens"), "output_tokens")
    return last + math.ceil(chars / 4)


def nearest_rank(values: list[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


def summary(scores: Iterable[Score], value: Callable[[Score], int]) -> dict[str, float | int | None]:
    pairs = [(value(s), s.actual) for s in scores if s.actual > 0]
    if not pairs:
        return {"n": 0, **dict.fromkeys(KEYS, None)}
    tokens = [float(abs(e - a)) for e, a in pairs]
    percents = [100 * abs(e - a) / a for e, a in pairs]
    return {
        "n": len(pairs),
        "median_percent": nearest_rank(percents, 50),
        "p90_percent": nearest_rank(percents, 90),
        "p95_percent": nearest_rank(percents, 95),
        "median_tokens": nearest_rank(tokens, 50),
        "p95_tokens": nearest_rank(tokens, 95),
        "bias_percent": 100 * sum(e - a for e, a in pairs) / sum(a for _, a in pairs),
    }


KEYS = ("median_percent", "p90_percent", "p95_percent", "median_tokens", "p95_tokens", "bias_percent")


def report(scores: list[Score]) -> dict[str, Any]:
    groups: dict[str, list[Score]] = defaultdict(list)
    for score in scores:
        record = score.record
        groups[f"{text(record.get('provider')) or '?'}/{text(record.get('wire')) or '?'}"].append(score)
    large = [s for s in scores if s.actual >= LARGE]

    def side(value: Callable[[Score], int]) -> dict[str, Any]:
        return {
            "steady": summary(scores, value),
            "steady_3000": summary(large, value),
            "by_provider": {name: summary(group, value) for name, group in sorted(groups.items())},
        }

    return {"ours": side(lambda s: s.ours), "length_4": side(lambda s: s.plain)}


def score_pairs(path: Path) -> list[Score]:
    """The steady records of a file, scored. What cannot be used is left out and told on stderr."""
    scores: list[Score] = []
    unusable: list[str] = []
    with path.open(encoding="utf-8", errors="replace") as lines:
        for position, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
                if not isinstance(record, dict):
                    raise Unusable("it is not an object")
                if record.get("steady", True):
                    actual = number(record.get("actual_input_tokens"), "actual_input_tokens")
                    scores.append(Score(record, actual, estimate(record), plain_estimate(record)))
            except Exception as error:
                # One odd record must not cost the figures of all others; it is counted and shown.
                unusable.append(f"line {position}: {type(error).__name__}: {str(error)[:200]}")
    if unusable:
        print(f"{len(unusable)} unusable records left out; the first: {unusable[0]}", file=sys.stderr)
    return scores


def print_table(result: dict[str, Any]) -> None:
    head = f"{'':38}{'n':>6}{'median %':>10}{'p90 %':>9}{'p95 %':>9}{'median tok':>12}{'p95 tok':>9}{'bias %':>8}"
    for side, data in result.items():
        print(side, head[len(side) :], sep="")
        rows = {k: v for k, v in data.items() if k != "by_provider"}
        for name, row in {**rows, **data.get("by_provider", {})}.items():
            if row["n"]:
                numbers = (f"{row[k]:>{w}.{d}f}" for k, w, d in COLUMNS)
                print(f"  {name[:36]:36}{row['n']:>6}{''.join(numbers)}")


COLUMNS = (
    ("median_percent", 10, 2),
    ("p90_percent", 9, 2),
    ("p95_percent", 9, 2),
    ("median_tokens", 12, 0),
    ("p95_tokens", 9, 0),
    ("bias_percent", 8, 2),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?", help="recorded pairs, one JSON object a line")
    parser.add_argument("--whole", type=Path, metavar="DIR", help="recorded requests: estimate them without an anchor")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--worst", type=int, default=0, metavar="N", help="also list the N worst records")
    options = parser.parse_args()
    if (options.file is None) == (options.whole is None):
        parser.error("give either FILE.jsonl or --whole DIR")
    if options.whole is not None:
        from tests.benchmarks.whole_requests import score_requests

        scores = score_requests(options.whole)
    else:
        scores = score_pairs(options.file)
    result = report(scores)
    if options.json:
        print(json.dumps(result))
    else:
        print_table(result)
    for score in sorted(scores, key=lambda s: -abs(s.ours - s.actual))[: options.worst]:
        record = score.record
        name = f"{record.get('provider')}/{record.get('wire')} {record.get('model')}"
        print(f"{record.get('id')}: {name}: {score.ours:,} against {score.actual:,}", file=sys.stderr)


if __name__ == "__main__":
    main()
