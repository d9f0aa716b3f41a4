"""The context screen with 10 000 messages against 100: open, refresh while a step streams, open all rows, scroll.

    python tests/benchmarks/context_screen.py [--messages N] [--runs N] [--json]

The agent answers with the product's own calculator, with what a running session has cached (see ``context.py`` for the
calculator alone). Medians in milliseconds, from the act until it is drawn. ``frame`` is an empty refresh.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agent_tui.context.accounting.inputs import ContextInputs
from agent_tui.context.incremental import Incremental
from agent_tui.context.view import ViewBuilder
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import ContextChanged
from agent_tui.ui.screens.context_screen import ContextScreen
from tests.benchmarks.context import LIMITS, build
from tests.support.bench import app, milliseconds, repeat, report
from tests.support.contexts import model
from tests.support.fake_agent import FakeAgent


def agent_of(conversation: Any) -> type[FakeAgent]:
    accounts, builder = Incremental(), ViewBuilder()

    class Counting(FakeAgent):
        def context_usage(self) -> ContextUsage:
            view = builder.build(conversation.path, conversation.records, conversation.summaries)
            info = model(conversation.target, LIMITS)
            inputs = ContextInputs(
                info,
                view,
                conversation.steps,
                conversation.records,
                conversation.fixed,
                fixed_fingerprint=conversation.fixed_fingerprint,
                effort="medium",
            )
            return accounts.usage(inputs)

        def trigger_total(self) -> int:
            return self.context_usage().total

    return Counting


async def measure(conversation: Any) -> dict[str, float]:
    out: dict[str, float] = {}
    async with app(agent_of(conversation)) as run:
        run.agent.context.usage()
        out["open"] = await milliseconds(run, lambda: run.app.push_screen(ContextScreen(run.agent)))
        screen = run.app.screen
        assert isinstance(screen, ContextScreen)
        out["frame"] = await milliseconds(run, screen.refresh)
        event = ContextChanged(run.agent.context.usage(), 100)
        out["refresh"] = await milliseconds(run, lambda: run.agent.publish(event))
        keys = {s.key for s in screen.view.rows.shown}
        screen.view.opened |= keys
        screen.view.rebuild()
        screen.view.opened |= {s.key for s in screen.view.rows.shown}
        out["open_all_rows"] = await milliseconds(run, screen.view.rebuild)
        out["refresh_all_open"] = await milliseconds(run, lambda: run.agent.publish(event))
        out["rows"] = float(len(screen.view.rows.shown))
        out["scroll_to_end"] = await milliseconds(run, screen.view.rows.action_last)
        out["page_up"] = await milliseconds(run, lambda: screen.view.rows.action_page(-1))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = []
    for messages in (options.messages, 100):
        print(f"{messages:,} messages", file=sys.stderr)
        conversation, _ = build(messages)
        results.append(repeat(partial(measure, conversation), options.runs))
    report((f"{options.messages:,}", "100"), results[0], results[1], options.json)


if __name__ == "__main__":
    main()
