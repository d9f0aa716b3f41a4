"""An agent in a real terminal (tmux), driven by its keys, and the server beside it. Every wait is bounded."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
COLUMNS, LINES = 160, 60


class Hung(Exception):
    """What was waited for did not come in its time."""


class Server:
    """The counting server, in a process of its own."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    def seen(self) -> list[dict[str, Any]]:
        """Every request so far."""
        return self._league(None)

    def tell(self, **state: Any) -> None:
        self._league(json.dumps(state).encode())

    def _league(self, body: bytes | None) -> list[dict[str, Any]]:
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(urllib.request.Request(f"{self.url}/league", body), timeout=30) as answer:
            found: list[dict[str, Any]] = json.load(answer)
            return found

    def wait(self, wanted: Callable[[dict[str, Any]], bool], since: int, seconds: float, what: str) -> dict[str, Any]:
        """The first request from number ``since`` on that is wanted. Raises Hung."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = next((one for one in self.seen()[since:] if wanted(one)), None)
            if found is not None:
                return found
            time.sleep(0.1)
        raise Hung(f"{what} did not come within {seconds:.0f} s")


@contextmanager
def serving(python: Path, vocabulary: str, project: Path, keep: Path | None) -> Iterator[Server]:
    command = [str(python), "-m", "tests.benchmarks.league.server", "--vocabulary", vocabulary]
    command += ["--files", str(tokenizers()), "--project", str(project)]
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        command += ["--keep", str(keep)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            yield Server(int(process.stdout.readline()))
        finally:
            process.stdin.close()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()


def tokenizers() -> Path:
    """LiteLLM's folder of tokenizers, without loading LiteLLM."""
    import importlib.util

    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        raise SystemExit("run this with the project's own environment: LiteLLM is not installed")
    return Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"


class Pane:
    """A terminal of tmux with one program in it."""

    def __init__(self, name: str) -> None:
        self._name, self._socket, self._starts = f"league-{os.getpid()}-{name}", "", 0

    def start(self, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        self._starts += 1
        self._socket = f"{self._name}-{self._starts}"  # the one before may still be ending
        own = " ".join(f"{key}={shlex.quote(value)}" for key, value in environment.items())
        # The shell outlives the Ctrl+C by which an agent is left; the agent itself is not shielded from it.
        after = "printf '\\n[ended with %s]' $?; while :; do sleep 60; done"
        line = f"trap : INT; env -i {own} {shlex.join(command)}; {after}"
        size = ["-x", str(COLUMNS), "-y", str(LINES)]
        self._tmux("new-session", "-d", "-s", "league", *size, "-c", str(folder), line)
        self._tmux("set-option", "-g", "history-limit", "50000")

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-t", "league", "-l", text)

    def paste(self, text: str) -> None:
        """As a terminal pastes: what stands in lines is no Enter."""
        self._tmux("set-buffer", "--", text)
        self._tmux("paste-buffer", "-p", "-t", "league")

    def press(self, *keys: str) -> None:
        for key in keys:
            self._tmux("send-keys", "-t", "league", key)
            time.sleep(0.15)

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p", "-t", "league")

    def wait(self, wanted: str, seconds: float, what: str = "") -> str:
        """The screen, as soon as the pattern stands on it. Raises Hung."""
        end, screen = time.monotonic() + seconds, ""
        while time.monotonic() < end:
            screen = self.screen()
            if re.search(wanted, screen):
                return screen
            time.sleep(0.1)
        shown = "\n".join(line.rstrip() for line in screen.splitlines() if line.strip())[-900:]
        raise Hung(f"{what or wanted} did not come within {seconds:.0f} s; the screen:\n{shown}")

    def settle(self, calm: float = 1.0, longest: float = 8.0) -> str:
        """The screen, once it stays as it is."""
        end, screen, since = time.monotonic() + longest, self.screen(), time.monotonic()
        while time.monotonic() < end and time.monotonic() - since < calm:
            time.sleep(0.15)
            if (now := self.screen()) != screen:
                screen, since = now, time.monotonic()
        return screen

    def close(self) -> None:
        subprocess.run(["tmux", "-L", self._socket, "kill-server"], capture_output=True, check=False, timeout=20)

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-L", self._socket, "-f", "/dev/null", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
