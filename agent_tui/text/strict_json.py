"""JSON that no reader refuses. What models, tools and servers write often passes for JSON in Python alone: NaN, 1e999,
half a pair of surrogates, lists a thousand levels deep. Read here it raises one error; written here it is mended."""

from __future__ import annotations

import json
import math
from typing import Any

from agent_tui.text.clean import encodable

DEEPEST, DEEPEST_WHOLE = 60, 90
"""Levels of nesting, of a value within a message and of a whole message: readers of JSON take 100 (protobuf) or 128
(serde_json) of them."""

TOO_DEEP = "[nested too deeply]"
_WIDEST = 1_023
"""Bits of an integer that is still a number for readers that know 64-bit floats alone."""


class NotStrictError(ValueError):
    """A text or a value that is no strict JSON."""


def read_json(text: str | bytes) -> Any:
    """The value of a text that is strict JSON, but for halves of surrogate pairs in its texts and names that stand
    twice. Raises ValueError for any other text, whatever is wrong with it: ``json.JSONDecodeError`` for its form, else
    NotStrictError."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise NotStrictError(_DEEP) from None
    except UnicodeDecodeError:
        raise NotStrictError("it is not UTF-8") from None
    except ValueError as error:
        # Python's own limit: integers of more than 4,300 digits.
        raise error if isinstance(error, NotStrictError) else NotStrictError("a number is too long") from None
    if (flaw := _flaw(value, DEEPEST)) not in (None, _SURROGATES):
        raise NotStrictError(flaw)
    return value


def json_or(text: str, otherwise: Any) -> Any:
    """The value of such a text; ``otherwise`` for any other."""
    try:
        return read_json(text)
    except ValueError:
        return otherwise


def names_twice(text: str) -> bool:
    """Returns whether an object in a text of JSON has a name twice: readers differ in what they make of that."""
    found = False

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found
        made = dict(pairs)
        found = found or len(made) < len(pairs)
        return made

    json.loads(text, object_pairs_hook=note)
    return found


def write_json(value: Any) -> str:
    """The compact text of a whole message: strict JSON, whatever it holds."""
    return json.dumps(strict(value, DEEPEST_WHOLE), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def strict(value: Any, deepest: int = DEEPEST) -> Any:
    """A value that strict JSON can say: the same one where it is, else a copy with null for a number that is none, and
    text for what else cannot be said."""
    return value if _flaw(value, deepest) is None else _mended(value, deepest)


def is_strict(value: Any, deepest: int = DEEPEST) -> bool:
    """Returns whether strict JSON can say a value as it is."""
    return _flaw(value, deepest) is None


def _refuse(constant: str) -> None:
    raise NotStrictError(f"{constant} is no JSON")


_DEEP = "it is nested too deeply"
_SURROGATES = "a text has half of a surrogate pair"


def _flaw(value: Any, deepest: int) -> str | None:
    """Why strict JSON cannot say a value. Level by level: nothing recurses, however deep it is."""
    found: str | None = None
    level = [value]
    for depth in range(deepest + 1):
        below: list[Any] = []
        for one in level:
            if isinstance(one, str):
                if not one.isascii() and encodable(one) is not one:
                    found = _SURROGATES
            elif isinstance(one, (dict, list)) and depth == deepest:
                return _DEEP
            elif isinstance(one, dict):
                for name in one:
                    if not isinstance(name, str):
                        return "a name is no text"
                    if not name.isascii() and encodable(name) is not name:
                        found = _SURROGATES
                below += one.values()
            elif isinstance(one, list):
                below += one
            elif (flaw := _of_scalar(one)) is not None:
                return flaw
        if not below:
            return found
        level = below
    return found


def _of_scalar(value: Any) -> str | None:
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else "a number is not finite"
    if isinstance(value, int):
        return None if value.bit_length() <= _WIDEST else "a number is too long"
    return f"{type(value).__name__} is no JSON"


def _mended(value: Any, deepest: int) -> Any:
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, (dict, list, tuple)) and not deepest:
        return TOO_DEEP
    if isinstance(value, dict):
        return {encodable(str(name)): _mended(one, deepest - 1) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_mended(one, deepest - 1) for one in value]
    if isinstance(value, (int, float)):
        return value if _of_scalar(value) is None else None
    return value if value is None else encodable(str(value))
