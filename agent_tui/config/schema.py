"""The strict side of configuration: what is allowed, beside the types of ``Settings``, and errors that name the place.
Here too are the documented example and the settings in force as TOML."""

from __future__ import annotations

import json
import operator
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from agent_tui.config import ANSWER_ACTIONS, HOOK_EVENTS, KEY_ACTIONS, McpServer, Settings
from agent_tui.config.files import Layer, merge
from agent_tui.errors import AgentError, ConfigError
from agent_tui.records import dataclass
from agent_tui.text.secrets import MASK, names_secret, without_keys

SMALLEST_LIMIT = 1_024
"""Tokens; a smaller ``compact_at`` that is no fraction is a slip (80 for 80 %, 1.5): nothing could be sent below it."""


class Bound(NamedTuple):
    words: str
    holds: Callable[[float, float], bool]
    limit: float


_POSITIVE = [Bound("greater than", operator.gt, 0)]
BOUNDS = {
    **dict.fromkeys(("context_window", "max_output", "max_output_reserve", "step_limit"), _POSITIVE),
    **dict.fromkeys(("timeout", "call_timeout", "bash_timeout", "content_timeout", "answer_timeout"), _POSITIVE),
    **dict.fromkeys(("turn_usd", "session_usd", "day_usd"), _POSITIVE),
    **dict.fromkeys(("subagent_depth", "subagents_at_once"), _POSITIVE),
    "price": [Bound("at least", operator.ge, 0)],
    "output_limit": [Bound("at least", operator.ge, 1_000)],
    "mcp_defer_share": [Bound("at most", operator.le, 1), Bound("at least", operator.ge, 0)],
    "callback_port": [Bound("at most", operator.le, 65_535), Bound("at least", operator.ge, 0)],
    "retries": [Bound("at most", operator.le, 20), Bound("at least", operator.ge, 1)],
}
"""What numbers are held to, by the name of the setting."""
_FINITE = frozenset({"turn_usd", "session_usd", "day_usd", "price"})
_TYPES: dict[Any, tuple[str, Any]] = {
    str: ("a string", str),
    bool: ("true or false", bool),
    int: ("an integer", int),
    float: ("a number", (int, float)),
    list: ("a list", list),
    dict: ("a table", dict),
}
OWN_SETTINGS = {
    "sandbox": None,
    # What lets keys out.
    "tools.env_allow": None,
    "tools.web_search": None,
    "tools.web_search_headers": None,
    "permissions.mode": "bypass",
    "permissions.mcp_read_only": None,
    "ui.status_command": None,
    "ui.editor": None,
}
"""Settings, tables, and values of settings that only the user's own configuration may have: what keeps a project's
commands in their place, and what is run unasked outside of it."""
REMOVED: Mapping[str, str] = {
    "agent.subagent_usd": "subagents draw on the budgets of the session they work for",
    "budget.session_tokens": "budgets are in dollars; a model without a known price takes one in its [models] table",
    "context.compact_when": "it compacts at the limit, and earlier when you run /compact",
    "models.*.cache_diagnostics": "/context cache says why the cache was missed, for every provider",
    "mcp.*.sampling": "no server can ask for calls of your model; give it a model of its own",
    "ui.turn_cost": "every turn ends with a line of its time, tokens, cost and files",
    "ui.scrollback": "agent-tui export prints a session as Markdown, and agent-tui --resume opens it again",
    "context.native": "every model writes a summary that all models can read",
}
"""Settings that are gone, and what serves instead; ``*`` stands for a name of the user's, as in ``models.*.name``."""
_KEY = re.compile(r"(?:(?:ctrl|alt|shift|super|hyper|meta)\+)*(?:[a-z][a-z0-9_]*|\S)")
_SIGNS = frozenset(("slash", "backslash", "at", "minus", "plus", "underscore", "hyphen_minus"))
"""Keys that Textual calls otherwise than Unicode does."""
_ENDPOINT = re.compile(r"https?://[^\s/?#@{}]+[/?][^\s{}]*\{query\}[^\s{}]*")


@dataclass(slots=True)
class PriceKeys:
    """The keys of a model's ``prices``."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    cache_write_1h: float


class Problem(NamedTuple):
    """``path`` leads to a value that is not what is ``allowed``; where that is empty, nothing has its name."""

    path: tuple[str, ...]
    value: object
    allowed: str


def check(layers: Sequence[Layer]) -> None:
    """Validates each layer, then what only the whole can show. Raises ConfigError: place, key, what is allowed."""
    for layer in layers:
        for problem in _problems((), layer.values, Settings):
            raise ConfigError(_line(layer, problem))
    _check_models(layers)
    _check_keys(layers)
    _check_hooks(layers)
    _check_search(layers)


def refusal(keys: Sequence[str | int], value: Any) -> str:
    """Why a project's configuration, trusted or not, cannot have a value below ``keys``, with a number for each list;
    empty where it can."""
    path, values = [key for key in keys if isinstance(key, str)], value
    for own, only in OWN_SETTINGS.items():
        names = own.split(".")
        if path[: len(names)] == names and only in (None, value):
            return f"only your own configuration may set {'this' if only is None else f'it to {json.dumps(only)}'}"
    for key in reversed(keys):
        values = {key: values} if isinstance(key, str) else [values]
    unknown = next((".".join(found) for found, _, allowed in _problems((), values, Settings) if not allowed), "")
    return f"there is no setting {unknown}" if unknown else ""


@cache
def _types(table: type) -> Mapping[str, Any]:
    """The keys of a table, in order, and what each may be."""
    return {name: PriceKeys if name == "prices" else hint for name, hint in get_type_hints(table).items()}


def _problems(path: tuple[str, ...], value: Any, hint: Any) -> Iterator[Problem]:
    """Yields what is wrong with a value, in the order of the settings, unknown keys last. Null is what is not set."""
    if get_origin(hint) in (Union, UnionType):
        hint = get_args(hint)[0]
    if hint is Any:
        return
    origin, inner = get_origin(hint) or hint, get_args(hint)
    table: Any = hint if is_dataclass(hint) else None
    if origin is Literal:
        if value not in inner:
            *others, last = map(repr, inner)
            yield Problem(path, value, f"must be {', '.join(others)} or {last}")
        return
    word, kinds = _TYPES[dict if table else origin]
    too_large = origin is float and type(value) is int and abs(value) > sys.float_info.max
    if not isinstance(value, kinds) or (isinstance(value, bool) and origin is not bool) or too_large:
        yield Problem(path, value, SEARCHES if tuple(path) == ("tools", "web_search") else f"must be {word}")
    elif origin is list:
        for at, entry in enumerate(value):
            yield from _problems((*path, str(at)), entry, inner[0])
    elif origin is dict:
        for key, entry in value.items():
            yield from _problems((*path, key), entry, inner[1])
    elif table:
        for key, own in _types(table).items():
            if value.get(key) is not None:
                yield from _problems((*path, key), value[key], own)
        yield from (Problem((*path, key), value[key], "") for key in value if key not in _types(table))
        if allowed := _of_a_table(table, value):
            yield Problem(path, value, allowed)
    elif origin in (int, float) and (allowed := _of_a_number(path, value, origin)):
        yield Problem(path, value, allowed)


def _of_a_table(table: type, values: Mapping[str, Any]) -> str:
    if table is PriceKeys and values and None in (values.get("input"), values.get("output")):
        return "needs both input and output, in dollars per million tokens"
    if table is McpServer and values.get("command") and values.get("url"):
        return "has both command and url; use one of them"
    return ""


def _of_a_number(path: tuple[str, ...], value: Any, kind: type) -> str:
    name = "price" if path[::2] == ("models", "prices") else path[-1]
    if name == "compact_at" and not (0 < value <= 1 or SMALLEST_LIMIT <= value < float("inf")):
        return f"must be a fraction of the window up to 1 (0.8 is 80 %), or at least {SMALLEST_LIMIT:,} tokens"
    if name in _FINITE and not abs(value) < float("inf"):
        return "must be a finite number"
    for bound in BOUNDS.get(name, ()):
        if not bound.holds(value, bound.limit):
            return f"must be {bound.words} {kind(bound.limit)}"
    return ""


def _check_models(layers: Sequence[Layer]) -> None:
    """Every model says which it is."""
    models = merge(layers).get("models") or {}
    complete = {key for key, model in models.items() if isinstance(model, dict) and model.get("model")}
    for key in sorted(models.keys() - complete):
        named = [layer for layer in layers if key in (layer.values.get("models") or {})]
        alone = (
            " A project's model is not merged with yours of the same name." if any(one.brought for one in named) else ""
        )
        raise ConfigError(
            f'{named[-1].place(f"models.{key}")}: models.{key}: needs a model, e.g. model = "openai/gpt-5".{alone}'
        )


def _check_keys(layers: Sequence[Layer]) -> None:
    for layer in layers:
        for action, key in (layer.values.get("keys") or {}).items():
            written, place = layer.name(f"keys.{action}"), layer.place(f"keys.{action}")
            if action not in KEY_ACTIONS:
                raise ConfigError(f"{place}: unknown key {written}; allowed here: {', '.join(KEY_ACTIONS)}.")
            if not all(_KEY.fullmatch(one.strip()) for one in key.split(",")):
                raise ConfigError(f'{place}: {written}: must be a key such as "ctrl+f" or "f3,alt+x" (not {key!r}).')
            typed = [one.strip() for one in key.split(",") if _types_text(one.strip())]
            if typed and action not in ANSWER_ACTIONS:
                raise ConfigError(
                    f"{place}: {written}: {typed[0]!r} types text; use a key with Ctrl or Alt, or one such as f3."
                )


def _check_hooks(layers: Sequence[Layer]) -> None:
    """Hooks are at events there are, have a command, and a matcher that can be read."""
    for layer in layers:
        for event, entries in (layer.values.get("hooks") or {}).items():
            written, place = layer.name(f"hooks.{event}"), layer.place(f"hooks.{event}")
            if event not in HOOK_EVENTS:
                import difflib

                near = difflib.get_close_matches(event, HOOK_EVENTS, n=1)
                hint = f"did you mean {near[0]}?" if near else f"allowed here: {', '.join(HOOK_EVENTS)}."
                raise ConfigError(f"{place}: unknown key {written}; {hint}")
            for entry in entries:
                if not (entry.get("command") or "").strip():
                    raise ConfigError(f"{place}: {written}: needs a command.")
                if (problem := matcher_problem(entry.get("matcher") or "")) is not None:
                    raise ConfigError(f"{place}: {written}.matcher: {problem}.")


SEARCHES = 'must be "off", "provider", or an http(s) address with {query} after the host'


def _check_search(layers: Sequence[Layer]) -> None:
    for layer in layers:
        where = (layer.values.get("tools") or {}).get("web_search", "off")
        if where not in ("off", "provider") and not _ENDPOINT.fullmatch(where):
            name, place = layer.name("tools.web_search"), layer.place("tools.web_search")
            raise ConfigError(f"{place}: {name}: {SEARCHES}.")


def matcher_problem(matcher: str) -> str | None:
    """Returns why a hook's matcher cannot be used; None where it can."""
    try:
        re.compile("" if matcher == "*" else matcher)
    except (re.error, RecursionError, OverflowError) as error:
        return f"not a regular expression ({error})"
    return None


def _types_text(key: str) -> bool:
    """Whether a key, as Textual names it, puts a character into the prompt."""
    name = key.removeprefix("shift+")
    if len(name) == 1 or name in _SIGNS:
        return True
    try:
        return unicodedata.lookup(name.replace("_", " ").upper()).isprintable()
    except KeyError:
        return False


def _line(layer: Layer, problem: Problem) -> str:
    path, value, allowed = problem
    key = ".".join(path)
    name, place = layer.name(key), layer.place(key)
    if not allowed:
        for gone, instead in REMOVED.items():
            if fnmatchcase(key, gone):
                return f"{place}: {name} is gone: {instead}. Delete this setting."
        *_, table = Settings, *_hints_to(path[:-1])
        return f"{place}: unknown key {name}; allowed here: {', '.join(sorted(_types(table)))}."
    shown = "" if isinstance(value, int) and value.bit_length() > 200 else repr(value)  # Python refuses very large ones
    if not 0 < len(shown) <= 60 or any(map(names_secret, path)) or any(map(_is_users_own, _hints_to(path))):
        shown = "this value"
    return f"{place}: {name}: {allowed} (not {shown})."


def _hints_to(path: Sequence[str]) -> Iterator[Any]:
    """The types of what lies on the way to a value, that of its own last."""
    found: Any = Settings
    for part in path:
        if get_origin(found) in (dict, list):
            found = get_args(found)[-1]
        elif is_dataclass(found):
            found = _types(found)[part]  # type: ignore[arg-type]
        yield found


def _is_users_own(hint: Any) -> bool:
    """Whether it is a table of texts with names of the user's: headers, variables and the like may be secret."""
    return get_origin(hint) is dict and get_args(hint)[-1] in (str, Any)


NAME = "config.example.toml"


def example_text() -> str:
    """``config.example.toml``, from the package or the checkout. Raises AgentError when the installation lacks it."""
    package = Path(__file__).parent.parent
    for candidate in (package / NAME, package.parent / NAME):
        if candidate.is_file():
            return candidate.read_text("utf-8")
    raise AgentError(f"{NAME} is missing from this installation; reinstall agent-tui.")


def show_settings(settings: Settings) -> str:
    """Every setting with its value in force, as TOML; what is not set stands as a comment."""
    lines: list[str] = []
    _table(lines, "", settings)
    return "\n".join(lines)


def _table(lines: list[str], prefix: str, table: Any) -> None:
    inner: list[tuple[str, Any]] = []
    for name, value in _items(table):
        if is_dataclass(value) or (isinstance(value, dict) and any(is_dataclass(v) for v in value.values())):
            inner.append((name, value))
        elif value is None:
            lines.append(f"# {name} is not set")
        else:
            lines.append(f"{_key(name)} = {_literal(_without_secret(name, value))}")
    for name, value in inner:
        path = f"{prefix}{_key(name)}"
        if is_dataclass(value):
            lines += ["", f"[{path}]"]
            _table(lines, f"{path}.", value)
        else:
            for key, entry in value.items():
                lines += ["", f"[{path}.{_key(key)}]"]
                _table(lines, f"{path}.{_key(key)}.", entry)


def _items(table: Any) -> list[tuple[str, Any]]:
    return [(f.name, getattr(table, f.name)) for f in fields(table)]


def _key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() else json.dumps(name)


def _without_secret(name: str, value: Any) -> Any:
    """A value as it is shown: masked where it is a secret itself, and not the name of the variable that has it."""
    if not isinstance(value, str) or not value:
        return value
    names_variable = "$" in value or name.endswith("_env")
    return MASK if names_secret(name) and not names_variable else without_keys(value, fields=not names_variable)


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        shown = ((str(k), _without_secret(str(k), v)) for k, v in value.items() if v is not None)
        return "{ " + ", ".join(f"{_key(name)} = {_literal(v)}" for name, v in shown) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_literal(_without_secret("", v)) for v in value) + "]"
    if is_dataclass(value):
        return _literal(dict(_items(value)))
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)
