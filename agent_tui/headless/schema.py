"""``--output-schema``: what the model is told of it, and whether its answer fits."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_tui.errors import ConfigError

REPAIRS = 2
"""How often an answer that does not fit is asked for again."""

MAX_FILE = 256 * 1024
"""Bytes of a schema file: all of it goes with every request."""

_FENCE = re.compile(r"\s*```[A-Za-z]*\n(.*?)\n?```\s*", re.DOTALL)


@dataclass(slots=True, frozen=True)
class OutputSchema:
    """A JSON Schema that was checked to be one."""

    schema: dict[str, Any]

    @property
    def instructions(self) -> str:
        """What the system prompt says of it."""
        text = json.dumps(self.schema, ensure_ascii=False, separators=(",", ":"))
        return (
            "Your last answer, after all tool calls, is read by a program: it must be one JSON value that fits this "
            f"JSON Schema, and nothing else (no code fence, no words around it):\n{text}"
        )

    def value(self, answer: str) -> Any:
        """The value in an answer. Raises ``ValueError`` with one line that says what does not fit and where."""
        from jsonschema.exceptions import best_match
        from referencing.exceptions import Unresolvable

        match = _FENCE.fullmatch(answer)
        try:
            value = json.loads(match[1] if match else answer)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        except ValueError as error:
            raise ValueError(f"it is not JSON ({error})" if answer.strip() else "it is empty") from None
        try:
            worst = best_match(_validator(self.schema).iter_errors(value))
        except (Unresolvable, re.error, RecursionError) as error:
            raise ValueError(f"the schema cannot be applied: {error}") from None
        if worst is not None:
            where = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in worst.absolute_path)
            raise ValueError(f"at ${where}: {' '.join(worst.message.split())[:300]}")
        return value


def _validator(schema: dict[str, Any]) -> Any:
    """References to other documents are not followed: a schema must not reach for the network."""
    from jsonschema.validators import validator_for
    from referencing import Registry

    cls = validator_for(schema)
    return cls(schema, registry=Registry(), format_checker=cls.FORMAT_CHECKER)


def read_schema(path: Path) -> OutputSchema:
    """The schema in a file. Raises ConfigError for what is none."""
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    flag = f"--output-schema {path}"
    try:
        data = path.expanduser().read_bytes()
    except OSError as error:
        raise ConfigError(f"{flag}: {error.strerror or error}.") from None
    if len(data) > MAX_FILE:
        raise ConfigError(f"{flag}: larger than {MAX_FILE // 1024} kB; all of it goes with every request.")
    try:
        schema = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{flag}: not JSON: {error}.") from None
    if not isinstance(schema, dict):
        raise ConfigError(f"{flag}: no JSON Schema: it must be an object.")
    try:
        validator_for(schema).check_schema(schema)
    except SchemaError as error:
        where = ".".join(str(part) for part in error.absolute_path)
        raise ConfigError(f"{flag}: no JSON Schema: {where + ': ' if where else ''}{error.message[:300]}.") from None
    return OutputSchema(schema)


def repair_request(problem: str) -> str:
    """The message that asks for the answer again."""
    return f"Your answer does not fit the JSON Schema: {problem}. Give the whole answer again, as the JSON value alone."
