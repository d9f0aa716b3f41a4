"""Scripts for the demo model: a TOML file of answers, for tests, screenshots and trying out failures."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from agent_tui.errors import ConfigError
from agent_tui.models.failure import Failure, FailureKind
from agent_tui.models.requests import FinishReason, ModelRequest

KINDS = get_args(FailureKind)
FINISHES = get_args(FinishReason)


@dataclass(slots=True)
class ScriptedStep:
    """One scripted answer. ``delay`` is seconds between chunks of ``chunk`` characters; ``repeat`` how often it is
    used (0: for ever); ``after`` how many characters of it are streamed before ``failure``. ``usage``: numbers that
    replace the counted ones, or False for none."""

    kind: str = "turn"
    match: str = ""
    reasoning: str = ""
    text: str = ""
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    delay: float = 0.0
    chunk: int = 24
    repeat: int = 1
    finish: FinishReason | None = None
    failure: Failure | None = None
    after: int = 0
    hang: bool = False
    usage: dict[str, int] | bool = True

    def fits(self, request: ModelRequest, newest: str) -> bool:
        return self.kind == request.kind and (not self.match or re.search(self.match, newest, re.I | re.S) is not None)


class Script:
    """The steps of a script; each request takes the first one that fits and is not used up."""

    def __init__(self, steps: list[ScriptedStep], window: int | None = None, max_output: int | None = None) -> None:
        self._steps = steps
        self._used = [0] * len(steps)
        self.window = window
        self.max_output = max_output

    def take(self, request: ModelRequest, newest: str) -> ScriptedStep | None:
        """The step for this request; None: the demo answers as it does without a script."""
        for number, step in enumerate(self._steps):
            if (step.repeat == 0 or self._used[number] < step.repeat) and step.fits(request, newest):
                self._used[number] += 1
                return step
        return None


def load_script(path: Path) -> Script:
    """Reads a script: ``[[step]]`` tables and, optionally, ``window`` and ``max_output`` in tokens.

    Raises ConfigError naming the file and what is wrong with it.
    """
    try:
        data = tomllib.loads(path.read_text("utf-8"))
        steps = [_step(entry) for entry in data.pop("step", [])]
        script = Script(steps, data.pop("window", None), data.pop("max_output", None))
    except OSError as error:
        raise ConfigError(f"Demo script {path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(f"Demo script {path} is not valid: {error}.") from error
    if data:
        raise ConfigError(f"Demo script {path}: unknown key {next(iter(data))!r}; allowed: window, max_output, step.")
    return script


def _step(entry: dict[str, Any]) -> ScriptedStep:
    values = dict(entry)
    error = values.pop("error", None)
    if error is not None:
        if error["kind"] not in KINDS:
            raise ValueError(f"error kind {error['kind']!r}; allowed: {', '.join(KINDS)}")
        values["failure"] = Failure(
            error["kind"],
            error.get("message", f"The demo script says: {error['kind']}."),
            status=error.get("status"),
            retry_after=error.get("retry_after"),
        )
    if values.get("finish") not in (None, *FINISHES):
        raise ValueError(f"finish {values['finish']!r}; allowed: {', '.join(FINISHES)}")
    for call in values.get("tool_calls", []):
        if not isinstance(call.get("arguments", {}), str):
            call["arguments"] = json.dumps(call.get("arguments", {}))
    return ScriptedStep(**values)
