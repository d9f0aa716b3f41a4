"""What a user sees and waits for, in a real terminal: the program as it is started, in a pseudo terminal with its real
driver, its model a server of this machine that streams; an empty Textual app with one input beside it, by turns.

Usage: python tests/benchmarks/pty.py [--json] [--sizes 80x24,200x50] [--seconds 12] [--runs 1]
       [--phases idle,paced,burst] [--command "python -m agent_tui"]

* idle: nothing happens; frames a second that are drawn, wake-ups a second of the process, share of a core; then keys;
* paced: 100 chunks a second of Markdown stream in; keys are typed meanwhile;
* burst: 5 000 chunks at once; from Enter until the last line is on the terminal; keys meanwhile.

A key is one that stands nowhere else on the screen; its time runs from writing it to the terminal until its character
comes out of it. CPU is that of the program's own process (all threads), ``worker`` that of its children. A frame is
what stands between two marks of synchronized output, which the terminal here says it knows.

Figures of ``--seconds 8``, two cores that much else was running on (load 7 to 9), so that only what stands beside each
other can be compared; "before" had Textual's own partial update, in the same minutes:

=======================  ==================  ==================  ===================  ==================
200x50, 100 chunks/s     key p50 / p95       frames a second     bytes a frame        CPU a frame; share
before                   22 to 29 / 104 to   16, slowed down     7 500 to 9 200       7.8 to 9.4 ms;
                         176 ms              by the load                              12 to 15 %
now                      7 to 11 / 25 to     41 to 45            1 260 to 1 340       3.6 to 4.3 ms;
                         36 ms                                                        16 to 18 %
80x24 now                13 / 45 ms          31                  1 000                4.1 ms; 13 %
idle now, empty app      7 / 24 ms, 14 / 24  0, 2 (its cursor)   0, 1 821             0.1 %, 0.6 %
=======================  ==================  ==================  ===================  ==================

On the same machine with nothing else running (load below 1, ``--sizes 200x50 --seconds 8 --phases paced``): while 100
chunks a second stream a key takes 3.5 ms at the median and 12.0 ms at the 95th percentile; 42.7 frames a second of
1 455 bytes, 14.9 % of a core; two later runs, right after much else: 6.1 and 6.3, 26 and 57 ms, 17 % (the version of
the table: 3.9 and 7.3 ms, 46.8 frames a second, 20.9 %). Since then frames
need no messages of Textual and what else changes is drawn with them; by turns with that version, load 7 to 18, CPU from
``/proc``: 18.3 → 14.9 % of a core with nine keys a second, 15.8 and 14.9 → 11.0 and 11.3 % without.

Of a key's time the program itself uses 2 to 3 ms of processor, and waits at most for the frame that is being made.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:1] = [str(ROOT)]  # not this folder: its modules have names of the standard library
from tests.benchmarks.watched import Spent, Watched, descendants, spent, watched  # noqa: E402

EMPTY_APP = """
from textual.app import App
from textual.widgets import Input
class Empty(App):
    def compose(self):
        yield Input()
Empty().run()
"""
CHUNKS_A_SECOND = 100
BURST = 5_000
PACED_END, BURST_END = "Ωpaced", "Ωburst"
SECTION = """## Section {n}: what happens to a request

The request is **validated** first, then `dispatch()` hands it to the worker; see [the guide](https://example.org/{n})
for *all* the details that would not fit here, of which there are many more than one paragraph could hold.

- the first point, with some `code` in it
- the second point, which is longer than the others so that it has to be wrapped at the edge of the screen

```python
class Worker{n}:
    def run(self, request: Request) -> Response:
        return self.client.send(request, timeout={n})
```

| Name | Value | Meaning |
|------|-------|---------|
| alpha | {n} | the first |

"""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# The model: a process of its own, so that it takes nothing from the clock of the measurement.


def chunks(number: int, last: str) -> Iterator[str]:
    """Pieces of an answer, 20 characters each, ``last`` behind the last of them."""
    text = "".join(SECTION.format(n=n) for n in range(number // 20 + 1))
    for n in range(number):
        yield text[n * 20 : n * 20 + 20]
    yield f"\n\n{last}"


def paced(seconds: float) -> Iterator[bytes]:
    """An answer of 100 chunks a second."""
    begun = time.perf_counter()
    for n, event in enumerate(events(int(seconds * CHUNKS_A_SECOND), PACED_END)):
        time.sleep(max(0.0, begun + n / CHUNKS_A_SECOND - time.perf_counter()))
        yield event


def events(number: int, last: str) -> Iterator[bytes]:
    from tests.support.loopback import chat_events, sse

    for event in chat_events(chunks(number, last)):
        yield sse([event])


def serve() -> None:
    """Answers each question by what it asks for (``paced-for-12`` seconds or ``in-a-burst``) until stdin ends."""
    from tests.support.loopback import Loopback, Reply

    class Asked(Loopback):
        def next_reply(self, path: str, method: str = "POST") -> Reply:
            question = self.requests[-1].body.decode().lower()
            asked = re.findall(r"paced-for-(\d+)|in-a-burst", question)
            return Reply(paced(float(asked[-1])) if asked and asked[-1] else b"".join(events(BURST, BURST_END)))

    with Asked(posts_only=True) as server:
        print(server.port, flush=True)
        sys.stdin.read()


@contextmanager
def model() -> Iterator[int]:
    """The model's port."""
    own = [sys.executable, str(Path(__file__)), "--serve"]
    with subprocess.Popen(own, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        yield int(process.stdout.readline())
        process.stdin.close()


# What is measured


class Keys:
    """Types keys and takes their times."""

    def __init__(self, program: Watched) -> None:
        self._program = program
        self._random = random.Random(7)
        self._typed = 0
        self.milliseconds: list[float] = []

    def press(self, pause: float | None = None) -> None:
        """One key, after a pause, by default one as between two keys of a typist."""
        self._program.watch(self._random.uniform(0.06, 0.14) if pause is None else pause)
        character = chr(0x100 + self._typed % 0x7F).encode()
        self._typed += 1
        since, at = self._program.written, self._program.type(character)
        self.milliseconds.append(1e3 * (self._program.wait_for(character, since) - at))
        if self._typed % 40 == 0:
            self._program.type(b"\x05\x15")  # the end of the line, and everything before it away
            self._program.watch(0.2)

    def figures(self) -> dict[str, float]:
        if len(self.milliseconds) < 2:
            return {"keys": len(self.milliseconds)}
        return {
            "keys": len(self.milliseconds),
            "key_p50_ms": median(self.milliseconds),
            "key_p95_ms": quantiles(self.milliseconds, n=20)[-1],
        }


class Meter:
    """What a program uses and writes from here on."""

    def __init__(self, program: Watched) -> None:
        self._program = program
        self._children = descendants(program.pid)
        self._begun = time.perf_counter()
        self._own, self._theirs = spent(program.pid), self._all_children()
        self._written, self._frames = program.written, program.frames

    def _all_children(self) -> Spent:
        found = [spent(child) for child in self._children]
        return Spent(sum(one.seconds for one in found), sum(one.woken for one in found))

    def figures(self) -> dict[str, float]:
        wall = time.perf_counter() - self._begun
        own, theirs = spent(self._program.pid) - self._own, self._all_children() - self._theirs
        written, frames = self._program.written - self._written, self._program.frames - self._frames
        return {
            "wall_s": wall,
            "cpu_s": own.seconds,
            "cpu_share": own.seconds / wall,
            "worker_share": theirs.seconds / wall,
            "frames_a_second": frames / wall,
            "bytes_a_frame": written / frames if frames else 0.0,
            "bytes_a_second": written / wall,
            "woken_a_second": own.woken / wall,
        }


def idle(program: Watched, seconds: float) -> dict[str, float]:
    program.settle()
    meter, keys = Meter(program), Keys(program)
    program.watch(seconds)
    figures = meter.figures()
    for _ in range(int(seconds * 5)):
        keys.press()
    return {**figures, **keys.figures()}


def ask(program: Watched, question: str) -> None:
    program.type(b"\x05\x15")
    program.type(question.encode())
    program.watch(0.5)
    program.type(b"\r")


def while_paced(program: Watched, seconds: float) -> dict[str, float]:
    since = program.written
    ask(program, f"paced-for-{round(seconds) + 4}")
    program.wait_for(b"Section ", since)
    program.watch(1.5)  # the screen is full and scrolls from here on
    keys = Keys(program)
    meter, end = Meter(program), time.perf_counter() + seconds
    while time.perf_counter() < end:
        keys.press()
    figures = meter.figures()
    program.wait_for(PACED_END.encode(), since)
    program.watch(1.0)
    return {**figures, **keys.figures()}


def while_burst(program: Watched) -> dict[str, float]:
    program.type(b"\x05\x15in-a-burst")
    program.watch(0.5)
    meter, keys = Meter(program), Keys(program)
    since, begun = program.written, program.type(b"\r")
    seconds = 0.0
    while not seconds:
        keys.press(0.02)
        if program.seen.find(BURST_END.encode(), since) >= 0:
            seconds = time.perf_counter() - begun
    figures = meter.figures()
    program.watch(1.0)
    used = {name: figures[name] for name in ("cpu_s", "frames_a_second", "bytes_a_frame")}
    return {"last_line_s": seconds, **used, **keys.figures()}


def measure(name: str, command: list[str], size: tuple[int, int], phases: list[str], seconds: float) -> dict[str, Any]:
    """All phases of one program in one terminal."""
    with tempfile.TemporaryDirectory() as home, model() as port:
        config = Path(home, "config.toml")
        config.write_text(
            f'default_model = "m"\n[models.m]\nmodel = "openai/local"\napi_base = "http://127.0.0.1:{port}/v1"\n'
            "context_window = 1000000\n"
        )
        project = Path(home, "project")
        project.mkdir()
        environment = {"AGENT_TUI_HOME": home, "PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": str(COMPILED)}
        whole = [*command, "--config", str(config)] if name == "ours" else command
        with watched(whole, project, environment, size) as program:
            program.wait_for(b"\x1b[?1049h", 0)
            program.settle()
            figures: dict[str, Any] = {}
            for phase in phases:
                if phase == "idle":
                    figures[phase] = idle(program, seconds)
                elif name == "ours":
                    figures[phase] = while_paced(program, seconds) if phase == "paced" else while_burst(program)
            return figures


COMPILED = Path(tempfile.gettempdir(), f"agent-tui-compiled-{os.getuid()}")
"""Compiled modules, as an installed program has them; kept between runs."""


def table(results: dict[str, dict[str, list[dict[str, Any]]]]) -> None:
    for size, programs in results.items():
        for program, runs in programs.items():
            for phase in runs[0]:
                print(f"\n{size} {program} {phase}")
                for figure in runs[0][phase]:
                    values = [run[phase][figure] for run in runs]
                    print(f"  {figure:18}{median(values):12.3f}")


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--json", action="store_true")
    options.add_argument("--sizes", default="80x24,200x50")
    options.add_argument("--seconds", type=float, default=12.0)
    options.add_argument("--runs", type=int, default=1)
    options.add_argument("--phases", default="idle,paced,burst")
    options.add_argument("--command", default=f"{sys.executable} -m agent_tui")
    options.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = options.parse_args()
    if args.serve:
        serve()
        return
    programs = {"empty": [sys.executable, "-c", EMPTY_APP], "ours": shlex.split(args.command)}
    results: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for run, size in ((run, size) for run in range(args.runs) for size in args.sizes.split(",")):
        width, height = map(int, size.split("x"))
        for name, command in programs.items():
            say(f"run {run + 1} of {args.runs}: {name} at {size}")
            found = measure(name, command, (width, height), args.phases.split(","), args.seconds)
            results.setdefault(size, {}).setdefault(name, []).append(found)
    if args.json:
        print(json.dumps(results))
    else:
        table(results)


if __name__ == "__main__":
    main()
