"""From exec to the first frame, and to a prompt that takes keys, beside an empty Textual app, each in a terminal.

Usage: python tests/benchmarks/startup.py [--json] [--runs 7] [--command "agent-tui"]

Both run from compiled modules, as an installed program does, whatever the environment says of writing them.
A key is put into the terminal before the program starts; the time is taken when it appears on the screen. Both
programs run by turns, so that what else the machine does hits both. Memory is the resident set of the process (and of
its children, for ours) one second after the key was shown.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import select
import shlex
import signal
import statistics
import struct
import sys
import tempfile
import termios
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEY = b"\xe2\x99\xa5"
EMPTY_APP = """
from textual.app import App
from textual.widgets import Input
class Empty(App):
    def compose(self):
        yield Input()
Empty().run()
"""


@dataclass
class Sample:
    """One start: seconds until the first frame and until the key was shown, megabytes of the process and of it with its
    children."""

    first: float
    seconds: float
    own_mb: float
    tree_mb: float


def resident(pid: int) -> float:
    """Megabytes a process holds in memory; 0 where that cannot be read."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def children(pid: int) -> list[int]:
    """All descendants of a process."""
    try:
        direct = [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (OSError, ValueError):
        return []
    return [*direct, *(grand for child in direct for grand in children(child))]


def start_once(command: list[str], settle: float, compiled: str) -> Sample:
    """Starts a program in a fresh terminal and home and waits for the key to be shown. Raises on a timeout.

    ``compiled`` is the folder of the compiled modules; the first start of a program fills it."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "AGENT_TUI_HOME": home, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        environment |= {"PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": compiled}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        begun = time.perf_counter()
        pid, terminal = os.forkpty()
        if pid == 0:
            os.chdir(home)
            os.execvpe(command[0], command, environment)
        try:
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
            first, shown = wait_for_key(terminal, begun)
            drain(terminal, settle)
            own = resident(pid)
            return Sample(first - begun, shown - begun, own, own + sum(resident(child) for child in children(pid)))
        finally:
            for victim in (*children(pid), pid):
                try:
                    os.kill(victim, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            os.waitpid(pid, 0)
            os.close(terminal)


def wait_for_key(terminal: int, begun: float) -> tuple[float, float]:
    """Types the key once the program has the screen; returns when its first row was drawn, and when the key was."""
    seen = b""
    first = 0.0
    typed = False
    while time.perf_counter() - begun < 60:
        ready, _, _ = select.select([terminal], [], [], 0.5)
        if ready:
            try:
                seen += os.read(terminal, 1 << 16)
            except OSError:
                break
        if not first and b"\x1b[1;1H" in seen:
            first = time.perf_counter()
        if not typed and b"\x1b[?1049h" in seen:
            typed = True
            os.write(terminal, KEY)
        if typed and KEY in seen:
            return first, time.perf_counter()
    raise SystemExit(f"the key was never shown; the program wrote {seen[-2000:]!r}")


def drain(terminal: int, seconds: float) -> None:
    """Reads what the program writes for a while."""
    end = time.perf_counter() + seconds
    while (left := end - time.perf_counter()) > 0:
        if select.select([terminal], [], [], left)[0]:
            try:
                os.read(terminal, 1 << 16)
            except OSError:
                return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--settle", type=float, default=1.0, help="seconds before memory is read")
    parser.add_argument("--command", default=f"{sys.executable} -m agent_tui -m demo")
    options = parser.parse_args()
    programs = {"agent_tui": shlex.split(options.command), "empty_textual": [sys.executable, "-c", EMPTY_APP]}
    samples: dict[str, list[Sample]] = {name: [] for name in programs}
    with tempfile.TemporaryDirectory() as compiled:
        for command in programs.values():
            start_once(command, options.settle, compiled)
        for run in range(max(5, options.runs)):
            for name, command in programs.items():
                sample = start_once(command, options.settle, compiled)
                samples[name].append(sample)
                print(
                    f"run {run + 1}: {name} {sample.first:.3f}, {sample.seconds:.3f} s, {sample.own_mb:.0f} MB",
                    file=sys.stderr,
                )
    result: dict[str, object] = {
        name: {
            "first": round(statistics.median(s.first for s in found), 4),
            "seconds": round(statistics.median(s.seconds for s in found), 4),
            "own_mb": round(statistics.median(s.own_mb for s in found), 1),
            "tree_mb": round(statistics.median(s.tree_mb for s in found), 1),
        }
        for name, found in samples.items()
    }
    seconds = {name: statistics.median(s.seconds for s in found) for name, found in samples.items()}
    memory = {name: statistics.median(s.own_mb for s in found) for name, found in samples.items()}
    result["ratio"] = round(seconds["agent_tui"] / seconds["empty_textual"], 3)
    result["memory_ratio"] = round(memory["agent_tui"] / memory["empty_textual"], 2)
    result["target"] = 1.25
    if options.json:
        print(json.dumps(result, indent=2))
        return
    for name in programs:
        first = statistics.median(s.first for s in samples[name])
        print(f"{name:<14} first frame {first:.3f} s   key {seconds[name]:.3f} s   {memory[name]:.0f} MB")
    print(f"ratio {result['ratio']} (target 1.25), memory ratio {result['memory_ratio']} (target 2)")


if __name__ == "__main__":
    main()
