"""The session picker with 10 000 stored sessions against 100: open, every letter of a search, moving.

    python tests/benchmarks/sessions.py [--sessions N] [--runs N] [--json]

Sessions are in a real database. Medians in milliseconds, from the act until it is drawn.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agent_tui.models.messages import user_message
from agent_tui.store.store import Store
from agent_tui.ui.screens.sessions import SessionPicker
from tests.benchmarks.ratios import app, medians, milliseconds, report
from tests.support.fake_agent import FakeAgent


def fill(path: Path, count: int) -> None:
    """Sessions of two projects with a title and a message each."""
    store = Store.open(path)
    for number in range(count):
        info = store.sessions.create("/project" if number % 3 else "/other", "demo")
        info.title = f"Session {number} about topic {number % 97}"
        store.messages.add(info.id, user_message(f"Why does part {number} fail?"))
        store.sessions.save(info)
    store.close()


async def measure(database: Path) -> dict[str, float]:
    out: dict[str, float] = {}
    store = Store.open(database)
    try:
        async with app(FakeAgent) as run:
            run.agent.store = store  # type: ignore[assignment]
            run.agent.root = Path("/project")
            out["open"] = await milliseconds(run, lambda: run.app.push_screen(SessionPicker(run.agent)))
            picker = run.app.screen
            assert isinstance(picker, SessionPicker) and picker.shown
            letters = [await milliseconds(run, partial(picker.search, text)) for text in ("t", "to", "topic 42")]
            out["letter"], out["letter_max"] = median(letters), max(letters)
            picker.search("")
            out["down"] = await milliseconds(run, lambda: picker.action_rows("move", 1))
            out["end"] = await milliseconds(run, lambda: picker.action_rows("move", 1_000_000))
    finally:
        store.close()
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = []
    for count in (options.sessions, 100):
        print(f"{count:,} sessions", file=sys.stderr)
        with tempfile.TemporaryDirectory() as folder:
            database = Path(folder, "sessions.db")
            fill(database, count)
            results.append(medians([asyncio.run(measure(database)) for _ in range(options.runs)]))
    report((f"{options.sessions:,}", "100"), results[0], results[1], options.json)


if __name__ == "__main__":
    main()
