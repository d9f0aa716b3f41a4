"""A program that drives a run by stream-json: it writes lines and reads them."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.cli import Cli


class Driver:
    """The program at the other end: it writes lines and reads them."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.seen: list[dict[str, Any]] = []

    def say(self, entry: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write((entry if isinstance(entry, str) else json.dumps(entry)) + "\n")
        self.process.stdin.flush()

    def ask(self, subtype: str, name: str = "r1", **more: object) -> dict[str, Any]:
        """A control request, and what is answered."""
        self.say({"type": "control_request", "request_id": name, "request": {"subtype": subtype, **more}})
        response: dict[str, Any] = self.until("control_response")["response"]
        assert response["request_id"] == name
        return response

    def reply(self, question: dict[str, Any], **said: object) -> None:
        response = {"subtype": "success", "request_id": question["request_id"], "response": said}
        self.say({"type": "control_response", "response": response})

    def until(self, kind: str) -> dict[str, Any]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.seen.append(json.loads(line))
            if self.seen[-1]["type"] == kind:
                return self.seen[-1]
        raise AssertionError(f"no {kind} came: {self.seen[-3:]}")

    def end(self) -> int:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.seen += [json.loads(line) for line in self.process.stdout]
        return self.process.wait(timeout=60)


@contextmanager
def driven(cli: Cli, *flags: str) -> Iterator[Driver]:
    process = cli.fork(*flags, stdin=subprocess.PIPE)
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    try:
        yield Driver(process)
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            stream.close()
