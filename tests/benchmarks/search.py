"""Searching 10 000 sessions: what one waits for while typing.

    python tests/benchmarks/search.py [--sessions N] [--folder FOLDER] [--json]

Each session has eight questions and answers (3.6 kB of words as frequent as in prose) and four outputs of tools. With
``--folder`` the database is kept there and used again. ``first`` is the time to the first hit and ``all`` to the last
of at most 500, for words of which few, some and most sessions have one, in CPU once the names are known (``names``,
with the first search of a picker). ``echo`` is from a key to the letter in the search line while searches run, beside
the same in a picker that filters titles in memory; ``shown`` from the last key to the hits, by the clock and in CPU.

10 000 sessions (80 000 questions and answers, 38 MB, in a database of 278 MB), two cores shared with seven others: the
first hit of a word of 103 sessions or of all takes 10 ms, of one session 0.35 s, of words that stand apart (a project's
and one that was said) 0.5 s, 500 hits 0.1 to 0.6 s. In the picker the hits are drawn 31 ms of CPU after the last key.
``echo`` 95 %: 152 ms, over titles in memory 117 ms, under a load of 12.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from textual import events

from agent_tui.models.messages import Message, TextPart, ToolResultPart, new_id
from agent_tui.models.session import SessionHit
from agent_tui.store.search import SearchReader
from agent_tui.store.store import Store
from agent_tui.ui.screens.picker import Picker
from agent_tui.ui.screens.sessions import SessionPicker
from tests.benchmarks.ratios import app
from tests.support.fake_agent import FakeAgent

QUERIES = {
    "few": "qu417x",
    "some": "parser42",
    "most": "the",
    "two words": "parser42 lexer7",
    "one letter": "t",
    "a project": "project",
    "a project and a word": "project7 lexer7",
}


def vocabulary(rng: random.Random) -> list[str]:
    letters = "etaoinshrdlucmfwypvbgkqjxz"
    made = ["".join(rng.choices(letters, range(26, 0, -1), k=rng.randint(2, 11))) for _ in range(20_000)]
    return ["the", "parser", "of", "lexer", *made]


def prose(rng: random.Random, words: list[str], count: int) -> str:
    """Words by Zipf's law."""
    return " ".join(words[int(len(words) ** rng.random()) - 1] for _ in range(count))


def fill(path: Path, count: int) -> None:
    rng = random.Random(1)
    words = vocabulary(rng)
    with Store.open(path) as store:
        for number in range(count):
            with store.transaction():
                info = store.sessions.create(f"/project{number % 20}", "demo")
                parent = None
                for k in range(12):
                    message = Message(new_id("msg"), "user", parent_id=parent, created=time.time())
                    if k % 3 == 2:
                        message.role = "tool"
                        message.parts = [ToolResultPart(f"c{k}", "read", "line of output\n" * 60)]
                    else:
                        message.role = "assistant" if k % 3 else "user"
                        extra = f" parser{number % 97} lexer{k}" + (f" qu{number}x" if k == 4 else "")
                        message.parts = [TextPart(prose(rng, words, 100 if k % 3 else 30) + extra)]
                    store.messages.add(info.id, message)
                    parent = message.id
                info = store.sessions.get(info.id)
                info.title = f"Session {number} about topic {number % 97}"
                store.sessions.save(info)
            if number % 1_000 == 999:
                print(f"{number + 1:,} sessions", file=sys.stderr)


def searched(reader: SearchReader, query: str) -> tuple[float, float, int]:
    """Milliseconds of CPU to the first and to the last of at most 500 hits, and how many there were."""
    begun = time.process_time()
    first, count = 0.0, 0
    for _ in reader.hits(query):
        count += 1
        first = first or time.process_time() - begun
        if count == 500:
            break
    return first * 1e3, (time.process_time() - begun) * 1e3, count


class TitlePicker(SessionPicker):
    """What it is compared with: titles that are in memory, filtered at each key."""

    def search(self, text: str, *, first: bool = False) -> None:
        Picker.search(self, text, first=first)

    def entries(self, search: str) -> Sequence[SessionHit]:
        words = search.lower().split()
        return [hit for hit in super().entries("") if all(word in hit.session.title.lower() for word in words)]


def shows(picker: SessionPicker, text: str) -> bool:
    return picker.search_text == text


async def until(what: Callable[[], object], every: float = 0.001) -> None:
    """Looks ``every`` so many seconds: a loop that never sleeps would keep the search's thread from the interpreter."""
    async with asyncio.timeout(20):
        while not what():  # noqa: ASYNC110
            await asyncio.sleep(every)


async def typing(store: Store, lists: bool, text: str) -> tuple[list[float], float, float]:
    """Milliseconds from each key to its letter on the screen, and from the last to what it finds; those also in CPU,
    all threads and what waits for them included."""
    times: list[float] = []
    async with app(FakeAgent) as run:
        run.agent.store = store  # type: ignore[assignment]
        run.agent.root = Path("/project0")
        picker = (TitlePicker if lists else SessionPicker)(run.agent)
        picker.everywhere = True
        run.app.push_screen(picker)
        await run.pilot.pause()
        box, begun, used, typed = picker.query_one("#search"), 0.0, 0.0, ""
        for letter in text:
            typed += letter
            begun, used = time.perf_counter(), time.process_time()
            box.post_message(events.Key("space" if letter == " " else letter, letter))
            await until(partial(shows, picker, typed))
            times.append((time.perf_counter() - begun) * 1e3)
            if typed != text:
                await asyncio.sleep(0.08)
        await until(lambda: lists or (not picker._waits and picker.shown), 0.005)
        return times, (time.perf_counter() - begun) * 1e3, (time.process_time() - used) * 1e3


def p95(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.95)]


def measure(path: Path) -> dict[str, float]:
    out: dict[str, float] = {}
    with Store.open(path) as store:
        out["database MB"] = path.stat().st_size / 1e6
        rows = store.database.all('SELECT data FROM part WHERE instr(data, \'"type":"text"\')')
        out["text MB"] = sum(len(json.loads(data)["text"]) for (data,) in rows) / 1e6
        del rows
        reader = store.search()
        out["names ms"] = searched(reader, "nothing-like-it")[1]
        for name, query in QUERIES.items():
            runs = [searched(reader, query) for _ in range(5)]
            out[f"{name}: first ms"], out[f"{name}: all ms"] = (median(run[k] for run in runs) for k in (0, 1))
            out[f"{name}: hits"] = runs[0][2]
        reader.close()
        print("typing", file=sys.stderr)
        plain = [t for _ in range(5) for t in asyncio.run(typing(store, True, "parser42 lexer"))[0]]
        found = [asyncio.run(typing(store, False, "parser42 lexer")) for _ in range(5)]
        ours = [t for times, *_ in found for t in times]
        out["echo titles p50 ms"], out["echo titles p95 ms"] = median(plain), p95(plain)
        out["echo search p50 ms"], out["echo search p95 ms"] = median(ours), p95(ours)
        out["shown ms"] = median(shown for _, shown, _ in found)
        out["shown: CPU ms"] = median(used for *_, used in found)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        path = (options.folder or Path(temporary)) / f"sessions-{options.sessions}.db"
        if not path.exists():
            fill(path, options.sessions)
        out = measure(path)
    if options.json:
        print(json.dumps(out))
        return
    for name, value in out.items():
        print(f"{name:28}{value:>12,.1f}")


if __name__ == "__main__":
    main()
