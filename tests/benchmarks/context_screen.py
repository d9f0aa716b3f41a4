"""The context screen with 10 000 steps against 100: open with its timeline, refresh while a step streams, open all
rows, scroll.

    python tests/benchmarks/context_screen.py [--steps N] [--runs N] [--json]

The agent answers with the product's own calculator, with what a running session has cached (see ``context.py`` for the
calculator alone). Medians in milliseconds, from the act until it is drawn. ``frame`` is an empty refresh, ``mark`` what
moving the marked column costs without the step itself, which is made again beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agent_tui.context.accounting.inputs import ContextInputs
from agent_tui.context.accounting.usage import Calculator
from agent_tui.context.past import SessionPast, StoredSession
from agent_tui.context.view import ViewBuilder
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import ContextChanged
from agent_tui.ui.screens.context_screen import ContextScreen
from tests.benchmarks.context import LIMITS, build
from tests.benchmarks.ratios import app, medians, milliseconds, report
from tests.support.contexts import model
from tests.support.fake_agent import FakeAgent


def agent_of(conversation: Any) -> type[FakeAgent]:
    accounts, builder = Calculator(), ViewBuilder()

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
        run.agent.conversation.path = conversation.path
        run.agent.conversation.messages = {message.id: message for message in conversation.path}
        run.agent.conversation.steps = conversation.steps
        session = StoredSession({}, conversation.steps, conversation.records, {})
        run.agent.context.history = partial(SessionPast, session)  # type: ignore[method-assign]
        run.agent.context.usage()
        out["open"] = await milliseconds(run, lambda: run.app.push_screen(ContextScreen(run.agent)))
        screen = run.app.screen
        assert isinstance(screen, ContextScreen)
        out["frame"] = await milliseconds(run, screen.refresh)
        event = ContextChanged(run.agent.context.usage(), 100)
        out["refresh"] = await milliseconds(run, lambda: run.agent.publish(event))
        course = screen.travel.course(screen.view.moment)
        out["mark"] = await milliseconds(run, lambda: screen.view.show(screen.view.moment, replace(course, marked=50)))
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
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    conversations = [lived(steps) for steps in (options.steps, 100)]
    # In turn, so that what else the machine does falls on both alike.
    runs = [[asyncio.run(measure(one)) for one in conversations] for _ in range(options.runs)]
    many, few = (medians([run[place] for run in runs]) for place in (0, 1))
    report((f"{options.steps:,} steps", "100 steps"), many, few, options.json)


def lived(steps: int) -> Any:
    """A conversation of so many steps, each with what its estimate was made of."""
    conversation, _ = build(2 * steps)  # a turn is four steps and eight messages
    for number, step in enumerate(conversation.steps):
        step.estimated_rows = {"system": 2_000, "tools": 4_000, "messages": (step.estimated_input or 6_000) - 6_000}
        step.created = float(number + 1)
    return conversation


if __name__ == "__main__":
    main()
