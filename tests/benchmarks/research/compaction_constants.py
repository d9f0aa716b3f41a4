"""What the constants of compaction cost on a recorded session of real work: how often it compacts, what is sent, and
what comes back although a compaction had taken it away (regret), at the prices of a common model.

The recording has the results of tools, not what they were asked for, and was made without our compactions. So regret
is counted by content: a later result that shows lines again which a compaction had taken, and which nothing that is
still sent shows, is what a model would have missed. That is an upper bound: some of it would have been shown again
with everything in view.

Usage: AGENT_TUI_RECORDINGS=… python tests/benchmarks/research/compaction_constants.py [--json] [WINDOW …]

Found on 2026-11-23 (tokens that came back cost less than $0.02 more; a line has all variants with the same figures):

     window  constants                                        cost  came back
     64,000  as it is, protect 10k or 20k, free 10k or 40k   $5.29      4,180
     64,000  keep 10k                                        $5.03      4,194
     64,000  goal 40 %, protect 80k                          $5.12      3,963
     64,000  goal 80 %                                       $5.61      4,180
     64,000  keep 40k                                        $6.20      3,609
    100,000  as it is, protect 20k or 80k, goal 40 %,
             free 10k or 40k                                 $6.75      2,607
    100,000  protect 10k                                     $7.29      2,746
    100,000  goal 80 %                                       $7.59      2,682
    100,000  keep 10k                                        $6.26      1,805
    100,000  keep 40k                                        $8.10      1,202
    200,000  as it is (no compaction)                       $11.97          0

Regret is under 0.4 % of the cost: what a constant is worth shows in the rest. To keep less word for word is 5 and 7 %
cheaper, and what a model does worse without it only a real one can show; the others are as they are or dearer, but for
3 % in one window. One session is no ground to change a constant, so none was.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[3]))

from agent_tui.context.accounting.next_input import over_limit
from agent_tui.context.accounting.spending import priced_call
from agent_tui.context.accounting.usage import Calculator
from agent_tui.context.compaction import plan as plans
from agent_tui.context.compaction import planning, situation
from agent_tui.models.messages import Message, TextPart
from agent_tui.models.usage import Prices
from tests.support.compaction_world import FakeModel, World, answer, model_info, sections, words

PRICES = Prices(3e-6, 15e-6, 0.3e-6, 3.75e-6)
"""Of Claude Sonnet 4.6 (platform.claude.com/docs/en/about-claude/pricing), the commonest model of such sessions."""

WINDOWS = (64_000, 100_000, 200_000)
SUMMARY_WORDS = 400
"""Tokens of each section that the scripted model writes."""

LINE = 24
"""Characters from which on a line is told from others by chance."""
SHARED = 3
"""As many lines again, and a result shows again what an earlier one did."""

VARIANTS: Mapping[str, Mapping[str, float]] = {
    "as it is": {},
    "protect 10k, 5 %": {"PROTECT_TOKENS": 10_000, "PROTECT_SHARE": 0.05},
    "protect 20k, 10 %": {"PROTECT_TOKENS": 20_000, "PROTECT_SHARE": 0.10},
    "protect 80k, 40 %": {"PROTECT_TOKENS": 80_000, "PROTECT_SHARE": 0.40},
    "goal 40 %": {"GOAL_SHARE": 0.40},
    "goal 80 %": {"GOAL_SHARE": 0.80},
    "free 10k, 5 %": {"MIN_FREED_TOKENS": 10_000, "MIN_FREED_SHARE": 0.05},
    "free 40k, 20 %": {"MIN_FREED_TOKENS": 40_000, "MIN_FREED_SHARE": 0.20},
    "keep 10k, 12 %": {"KEEP_TOKENS": 10_000, "KEEP_SHARE": 0.125},
    "keep 40k, 50 %": {"KEEP_TOKENS": 40_000, "KEEP_SHARE": 0.50},
}


@contextmanager
def constants(values: Mapping[str, float]) -> Iterator[None]:
    """Puts other constants in the place of ours."""
    with ExitStack() as stack:
        for name, value in values.items():
            for module in (plans, planning, situation):
                if hasattr(module, name):
                    stack.enter_context(mock.patch.object(module, name, value))
        yield


@dataclass
class Figures:
    """What one run came to; tokens and dollars."""

    prunes: int = 0
    summaries: int = 0
    sent: int = 0
    regret: int = 0
    usd: float = 0.0
    regret_usd: float = 0.0
    seen: dict[str, set[str]] = field(default_factory=dict)
    """By line, the messages that show it."""


def recorded() -> list[tuple[int, list[dict[str, Any]]]]:
    """Of each call of the long session, in order, the tokens of the answer before it and the messages that are new."""
    folder = os.environ.get("AGENT_TUI_RECORDINGS")
    if not folder:
        sys.exit("AGENT_TUI_RECORDINGS is not set")
    rows = [json.loads(line) for line in (Path(folder) / "next_input.dev.jsonl").read_text("utf-8").splitlines()]
    long = [row for row in rows if row["source"] == "agent-session"]
    ordered = sorted(long, key=lambda row: int(row["id"].rpartition("-")[2]))
    return [(row["previous_usage"]["output_tokens"], row["new_messages"]) for row in ordered]


def text_of(message: dict[str, Any]) -> str:
    return "\n".join(str(part.get("text") or "") for part in message["parts"])


def lines_of(text: str) -> set[str]:
    return {line.strip() for line in text.splitlines() if len(line.strip()) >= LINE}


async def run(session: list[tuple[int, list[dict[str, Any]]]], window: int, compacts: bool = True) -> Figures:
    """Goes through the session with a window of that size."""
    script = answer(sections(words(SUMMARY_WORDS)))
    world = World(model_info(window, 32_000), model=FakeModel([script]), accounts=Calculator())
    figures, cached = Figures(), 0
    for answered, new in session:
        world.says(words(answered, "going on"))
        for message in new:
            add(world, message, figures)
        usage = world.usage()
        if compacts and over_limit(usage):
            result = await world.compact("auto")
            kinds = {record.kind for record in result.records}
            figures.prunes += "prune" in kinds and "summary" not in kinds
            figures.summaries += "summary" in kinds
            for step in result.steps:
                if step.usage is not None:
                    figures.usd += PRICES.cost(step.usage) or 0.0
            usage, cached = world.usage(), sum(row.tokens for row in usage.rows if row.id != "messages")
        figures.sent += usage.total
        figures.usd += priced_call(PRICES, usage.total, min(cached, usage.total), 0).usd or 0.0
        world.measured([TextPart("On.")])
        cached = usage.total
    return figures


def add(world: World, message: dict[str, Any], figures: Figures) -> None:
    """Adds one recorded message, and counts what it shows again of what is not sent any more."""
    text = text_of(message)
    if message["role"] != "tool":
        world.user(text or "Go on.")
        return
    tool = next((part.get("tool") for part in message["parts"] if part.get("tool")), "bash")
    world.calls("recorded", name=str(tool))
    (made,) = world.results(text)
    sent = in_view(world)
    again = [line for line in lines_of(text) if line in figures.seen and not figures.seen[line] & sent]
    if len(again) >= SHARED:
        whole = max(1, sum(map(len, text.splitlines())))
        tokens = round((made.raw_tokens or 0) * min(1.0, sum(map(len, again)) / whole))
        figures.regret += tokens
        figures.regret_usd += priced_call(PRICES, tokens, 0, 0).usd or 0.0
    for line in lines_of(text):
        figures.seen.setdefault(line, set()).add(made.id)


def in_view(world: World) -> set[str]:
    """The messages that are sent as they are."""
    view = world.view()
    return {sent.message.id for sent in view if is_whole(world.messages.get(sent.message.id), sent.message)}


def is_whole(stored: Message | None, sent: Message) -> bool:
    return stored is not None and (stored is sent or stored.parts == sent.parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("window", nargs="*", type=int, default=list(WINDOWS))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    session, rows = recorded(), []
    for window in options.window:
        for name, values in VARIANTS.items():
            with constants(values):
                found = asyncio.run(run(session, window))
            row = {name: value for name, value in vars(found).items() if name != "seen"}
            rows.append({"window": window, "constants": name, **row, "whole_usd": found.usd + found.regret_usd})
            if not options.json:
                print(table_row(rows[-1]), flush=True)
    if options.json:
        print(json.dumps(rows, indent=2))


def table_row(row: dict[str, Any]) -> str:
    return (
        f"{row['window']:>8,}  {row['constants']:<18} {row['prunes']:>3} cleared {row['summaries']:>3} summarised "
        f"{row['sent'] / 1e6:>7.2f}M sent  ${row['usd']:>6.2f} + regret {row['regret']:>8,} ${row['regret_usd']:>5.2f} "
        f"= ${row['whole_usd']:>6.2f}"
    )


if __name__ == "__main__":
    main()
