"""``--output-schema``: what the model is told of it, and whether its answer fits."""

from __future__ import annotations

import gc
import json
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from agent_tui.errors import ConfigError
from agent_tui.paths import with_home
from agent_tui.records import dataclass
from agent_tui.text.numbers import duration

REPAIRS = 2
"""How often an answer that does not fit is asked for again."""

MAX_FILE = 256 * 1024
"""Bytes of a schema file: all of it goes with every request."""

CHECK_SECONDS = 10.0
"""How long an answer may take to check: patterns and alternatives can be written that take for ever."""

_AGAIN_SECONDS = 0.5

_FENCE = re.compile(r"\s*```[A-Za-z]*\n(.*?)\n?```\s*", re.DOTALL)


class SchemaFaultError(Exception):
    """Raised when nobody can tell whether an answer fits, whatever it is; the message says why."""


@dataclass(slots=True, frozen=True)
class OutputSchema:
    """A JSON Schema that was checked to be one."""

    schema: dict[str, Any]

    @property
    def instructions(self) -> str:
        """The words of the system prompt about the schema."""
        text = json.dumps(self.schema, ensure_ascii=False, separators=(",", ":"))
        return (
            "Your last answer, after all tool calls, is read by a program: it must be one JSON value that fits this "
            f"JSON Schema, and nothing else (no code fence, no words around it):\n{text}"
        )

    def value(self, answer: str) -> Any:
        """The value in an answer. Raises ``ValueError`` with one line that says what does not fit and where, and
        SchemaFaultError."""
        match = _FENCE.fullmatch(answer)
        try:
            value = json.loads(match[1] if match else answer, parse_constant=_no_number)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        except json.JSONDecodeError as error:
            raise ValueError(f"it is not JSON ({error})" if answer.strip() else "it is empty") from None
        except ValueError as error:
            raise ValueError(f"it is not JSON ({str(error).partition(':')[0]})") from None
        worst = self._worst(value)
        if worst is not None:
            raise ValueError(worst)
        return value

    def _worst(self, value: Any) -> str | None:
        """Returns the worst misfit, in one line; None where all fits."""
        from jsonschema.exceptions import best_match
        from referencing.exceptions import Unresolvable

        try:
            with _bounded():
                worst = best_match(_validator(self.schema).iter_errors(value))
        except _TooLongError:
            raise SchemaFaultError(f"checking it takes longer than {duration(CHECK_SECONDS)}") from None
        except RecursionError:
            raise SchemaFaultError("its references are circular, or it is nested too deeply") from None
        except (Unresolvable, re.error) as error:
            raise SchemaFaultError(" ".join(str(error).split())[:300]) from None
        if worst is None:
            return None
        where = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in worst.absolute_path)
        return f"at ${where}: {' '.join(worst.message.split())[:300]}"

    def try_out(self) -> None:
        """Raises SchemaFaultError for a schema that shows with any value that it cannot be applied."""
        values: tuple[Any, ...] = ({}, [], "", 0, None)
        for value in values:
            self._worst(value)


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


class _TooLongError(BaseException):
    """The time is over. No library takes it for an error of its own."""


@contextmanager
def _bounded() -> Iterator[None]:
    """Ends what runs in it after ``CHECK_SECONDS``, a pattern that backtracks included, by raising _TooLongError."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    checking = True

    def over(number: int, frame: FrameType | None) -> None:
        if checking:
            raise _TooLongError

    # Finalizers swallow what is raised in them, and say so on standard error: the collector, which calls them, rests.
    collecting = gc.isenabled()
    gc.disable()
    before = signal.signal(signal.SIGALRM, over)
    # Again and again: where Python cannot let it out all the same, the first is lost.
    signal.setitimer(signal.ITIMER_REAL, CHECK_SECONDS, _AGAIN_SECONDS)
    try:
        yield
    finally:
        checking = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if collecting:
            gc.enable()


def _validator(schema: dict[str, Any]) -> Any:
    """References to other documents are not followed: a schema must not reach for the network."""
    from jsonschema.validators import validator_for
    from referencing import Registry

    cls = validator_for(schema)
    return cls(schema, registry=Registry(), format_checker=cls.FORMAT_CHECKER)


def read_schema(source: Path | str, flag: str = "--output-schema") -> OutputSchema:
    """The schema in a file, or as it is, which ``flag`` gave. Raises ConfigError for what is none."""
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    flag = f"{flag} {source}"[:200]
    try:
        if isinstance(source, str):
            data = source.encode("utf-8", "replace")
        else:
            with with_home(source).open("rb") as file:
                data = file.read(MAX_FILE + 1)
    except OSError as error:
        raise ConfigError(f"{flag}: {error.strerror or error}.") from None
    if len(data) > MAX_FILE:
        raise ConfigError(f"{flag}: larger than {MAX_FILE // 1024} kB; every request sends the whole file.")
    try:
        schema = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{flag}: not JSON: {' '.join(str(error).split())[:200]}.") from None
    if not isinstance(schema, dict):
        raise ConfigError(f"{flag}: not a JSON Schema: it must be an object.")
    try:
        validator_for(schema).check_schema(schema)
    except SchemaError as error:
        where = ".".join(str(part) for part in error.absolute_path)
        raise ConfigError(f"{flag}: not a JSON Schema: {where + ': ' if where else ''}{error.message[:300]}.") from None
    except RecursionError:
        raise ConfigError(f"{flag}: nested too deeply.") from None
    found = OutputSchema(schema)
    try:
        found.try_out()
    except SchemaFaultError as error:
        raise ConfigError(f"{flag}: cannot be applied: {error}.") from None
    return found


def repair_request(problem: str) -> str:
    """The message that asks for the answer again."""
    return f"Your answer does not fit the JSON Schema: {problem}. Give the whole answer again, as the JSON value alone."
