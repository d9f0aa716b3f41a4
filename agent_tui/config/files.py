"""Reading configuration: TOML files and environment variables as layers, merged without validating them.

Also what must be known before the first frame (theme, keys, whether there is to be one), and which themes there are.

Precedence, lowest first: defaults, user file, project file, ``--config`` file, environment, command line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from agent_tui.config import AUTO_THEME, VARIABLES, HookConfig, McpServer, ModelConfig, Settings
from agent_tui.errors import ConfigError
from agent_tui.paths import Paths

T = TypeVar("T")

ENV_PREFIX = "AGENT_TUI_"
ENV_OTHER = VARIABLES | {
    "AGENT_TUI_HOME",
    "AGENT_TUI_RECORDINGS",
    "AGENT_TUI_DEMO_SCRIPT",
    "AGENT_TUI_LOG_LEVEL",
    "AGENT_TUI_STRICT_PIPES",
}
"""Variables with the prefix that are not settings."""
ENV_OF_TESTS = ("AGENT_TUI_TEST_", "AGENT_TUI_LONG_")
"""What variables begin with that are for the tests alone: the program started beside them must not refuse them."""

SECRET_BESIDE_ADDRESS = {"mcp": ("headers", "env", "args", "client_secret"), "models": ("api_key_env", "extra")}
"""Tables of tables that say where something is sent or what is started, and the fields in which they hold secrets."""


class Layer(NamedTuple):
    """Settings from one place. ``where`` names it in error lines: a file's path, or "environment", "command line".

    ``names`` maps a dotted key to how the user wrote it (an environment variable, a flag). ``text`` is that of a file.
    ``brought``: it came with the project, the user did not write it.
    """

    where: str
    values: dict[str, Any]
    names: Mapping[str, str]
    text: str = ""
    brought: bool = False

    def place(self, key: str, entry: str = "") -> str:
        """Returns the place of a dotted key, or an entry of the list under it, as error lines name it: with the line of
        a file where that is certain: its own or that of a table it is in."""

        parts = key.split(".")
        for length in range(len(parts), 0, -1):
            if number := line_number(self.text, ".".join(parts[:length]), entry):
                return f"{self.where}, line {number}"
        return self.where

    def name(self, key: str) -> str:
        """Returns a dotted key as the user wrote it: where a whole table came in one variable, that variable and the
        rest."""
        parts = key.split(".")
        for length in range(len(parts), 0, -1):
            written = self.names.get(".".join(parts[:length]))
            if written is not None:
                rest = ".".join(parts[length:])
                return f"{written} ({rest})" if rest else written
        return key


def file_layer(path: Path, required: bool = False) -> Layer | None:
    """A TOML file; None when it does not exist and is not ``required``. Raises ConfigError with file and line."""
    if not required and path.exists() and not path.is_file():
        raise ConfigError(f"{path}: cannot be read: it is not a regular file.")
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        if required:
            raise ConfigError(f"{path}: no such file.") from None
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}.") from error
    return layer_of_text(path, text)


def layer_of_text(path: Path, text: str) -> Layer:
    """The layer that the text of a TOML file is. Raises ConfigError with file and line."""
    import tomllib  # many starts read no file

    try:
        return Layer(str(path), tomllib.loads(text), {}, text)
    except ValueError as error:  # a number of thousands of digits raises no TOMLDecodeError
        raise ConfigError(f"{path}: not valid TOML: {error}.") from error


def env_layer(environ: Mapping[str, str] | None = None) -> Layer:
    """``AGENT_TUI_*`` variables; ``__`` separates nested keys. Values are JSON (true, 3, 0.8, ["a"]) or plain text.

    Raises ConfigError for variables that contradict each other.
    """
    values: dict[str, Any] = {}
    names: dict[str, str] = {}
    for variable, text in sorted((os.environ if environ is None else environ).items()):
        if not variable.startswith(ENV_PREFIX) or variable in ENV_OTHER or variable.startswith(ENV_OF_TESTS):
            continue
        keys = variable[len(ENV_PREFIX) :].lower().split("__")
        names[".".join(keys)] = variable
        target = values
        for key in keys[:-1]:
            inner = target.setdefault(key, {})
            if not isinstance(inner, dict):
                raise ConfigError(f"environment: {variable} conflicts with another {ENV_PREFIX}* variable.")
            target = inner
        target[keys[-1]] = text if _is_text(keys) else _value(text)
    return Layer("environment", values, names)


def _is_text(keys: Sequence[str]) -> bool:
    """Returns whether a setting takes text and nothing else, so that a model called 5 stays text."""
    hint: Any = Settings
    for key in keys:
        if get_origin(hint) is dict:
            hint = get_args(hint)[1]
        else:
            hint = get_type_hints(hint).get(key) if is_dataclass(hint) else None
    return hint is str or (get_origin(hint) in (Union, UnionType) and set(get_args(hint)) <= {str, NoneType})


def _value(text: str) -> Any:
    import json  # most starts have no such variable

    try:
        return json.loads(text)
    except ValueError:
        return {"true": True, "false": False}.get(text.strip().lower(), text)


def merge(layers: Sequence[Layer]) -> dict[str, Any]:
    """One dict of all layers; later ones win, tables are merged key by key, lists are replaced, but for hooks, which
    are joined. A server or model that a project names is the project's alone, and what the user names with a secret is
    the user's alone: no secret goes to an address that somebody else wrote."""
    merged: dict[str, Any] = {}
    hooks: dict[str, list[Any]] = {}
    theirs: set[tuple[str, str]] = set()
    for layer in layers:
        for table, secrets in SECRET_BESIDE_ADDRESS.items():
            entries, there = layer.values.get(table), merged.get(table)
            for name, entry in _items(entries):
                secret = isinstance(entry, dict) and any(field in entry for field in secrets)
                if isinstance(there, dict) and (layer.brought or (secret and (table, name) in theirs)):
                    there.pop(name, None)
                    theirs.discard((table, name))
                if layer.brought:
                    theirs.add((table, name))
        _merge_into(merged, layer.values)
        for event, entries in _items(layer.values.get("hooks")):
            hooks.setdefault(event, []).extend(entries if isinstance(entries, list) else [])
    return {**merged, "hooks": hooks} if hooks else merged


def _items(table: Any) -> list[tuple[str, Any]]:
    return list(table.items()) if isinstance(table, dict) else []


def _merge_into(target: dict[str, Any], values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        if isinstance(value, dict) and isinstance(target.get(key), dict):
            _merge_into(target[key], value)
        elif isinstance(value, dict):
            target[key] = {}
            _merge_into(target[key], value)
        else:
            target[key] = value


def build_settings(values: Mapping[str, Any]) -> Settings:
    """Settings from merged values, leniently: what is unknown or of the wrong shape is left at its default.

    Good enough for the first frame; ``config.schema.check`` then says what is wrong.
    """
    settings = _fill(Settings, values)
    models, servers = values.get("models"), values.get("mcp")
    settings.models = _table(ModelConfig, models, "model")
    settings.mcp = _table(McpServer, servers, None)
    settings.hooks = {
        event: list(_table(HookConfig, dict(enumerate(entries)), "command").values())
        for event, entries in _items(values.get("hooks"))
        if isinstance(entries, list)
    }
    return settings


def _table(cls: type[T], values: Any, needs: str | None) -> dict[Any, T]:
    return {
        key: _fill(cls, entry)
        for key, entry in _items(values)
        if isinstance(entry, dict) and (needs is None or isinstance(entry.get(needs), str))
    }


def _fill(cls: type[T], values: Mapping[str, Any]) -> T:
    hints = get_type_hints(cls) if values else {}
    arguments: dict[str, Any] = {}
    for field in fields(cls):  # type: ignore[arg-type]
        if field.name not in values:
            continue
        value, hint = values[field.name], hints[field.name]
        if isinstance(hint, type) and is_dataclass(hint):
            if isinstance(value, dict):
                arguments[field.name] = _fill(hint, value)
        elif _fits(value, str(hint)):
            arguments[field.name] = value
    return cls(**arguments)


def _fits(value: Any, hint: str) -> bool:
    """A coarse check by the hint's text, so that a string never lands where a number or a list is expected."""
    if isinstance(value, bool):
        return "bool" in hint
    if isinstance(value, (int, float)):
        return "int" in hint or "float" in hint
    if isinstance(value, str):
        return "str" in hint or "Literal" in hint
    if isinstance(value, list):
        return "list" in hint
    return isinstance(value, dict) and "dict" in hint


_HEADER = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(?:#.*)?")
_KEY = re.compile(r"\s*([\w\"'. -]+?)\s*=")


def line_number(text: str, key: str, entry: str = "") -> int:
    """The line of a TOML text, from 1, on which a dotted key, or its table, is set; with ``entry`` the one that holds
    that text below it. 0 where it is not certain."""
    table, keys, entries = "", [], []
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.fullmatch(line):
            table, inside = _dotted(header[1]), False
            keys += [number] if table == key else []
            continue
        if written := _KEY.match(line):
            inside = _dotted(f"{table}.{written[1]}" if table else written[1]) == key
            keys += [number] if inside else []
        if inside and entry and any(quote + entry + quote in line for quote in "\"'"):
            entries.append(number)
    found = entries if entry and entries else keys
    return found[0] if len(found) == 1 else 0


def _dotted(written: str) -> str:
    return ".".join(part.strip(" \"'") for part in written.split("."))


SCREEN_READERS = ("ACCESSIBLE", "SCREEN_READER", "ACCESSIBILITY_ENABLED")
"""Variables that people who use a screen reader set for programs in the terminal. ``ACCESSIBLE`` is what forms and
prompts of many command-line tools go by, ``ACCESSIBILITY_ENABLED`` what is set for desktop programs beside Orca. No
screen reader sets one by itself: the terminal cannot know of it."""

_NO = frozenset({"", "0", "false", "no", "off"})


def early_settings(file: Path | None, paths: Paths) -> Settings:
    """Theme and keys for the first frame, ``file`` being the one named on the command line: read without validation, a
    broken file counts as absent until it is checked."""
    layers: list[Layer] = []
    for path in (paths.config_file, file):
        try:
            layer = file_layer(path) if path is not None else None
        except ConfigError:
            continue
        if layer is not None:
            layers.append(layer)
    with suppress(ConfigError):
        layers.append(env_layer())
    return build_settings(merge(layers))


def why_plain(flag: bool | None, setting: bool | None, environ: Mapping[str, str]) -> str:
    """Returns why the chat is to be plain, empty where it is not: the flag wins over the setting, the setting over what
    the environment suggests."""
    if flag is not None:
        return "by --plain" if flag else ""
    if setting is not None:
        return "by [ui] plain" if setting else ""
    if environ.get("TERM", "").lower() == "dumb":
        return "because TERM is dumb"
    for name in SCREEN_READERS:
        if environ.get(name, "").strip().lower() not in _NO:
            return f"because {name} is set"
    return ""


def theme_names(*folders: Path) -> list[str]:
    """The names of the themes in ``folders``, sorted. A file that cannot be read as one goes by its own name: what is
    wrong with it is said where it is worn."""
    return sorted({_name(path) for folder in folders if folder.is_dir() for path in folder.glob("*.toml")})


def check_theme(layers: Sequence[Layer], *folders: Path) -> None:
    """Raises ConfigError, with its place, for a theme that no file in ``folders`` is."""
    for layer in layers:
        name = (layer.values.get("ui") or {}).get("theme")
        if name in (None, AUTO_THEME):
            continue
        names = theme_names(*folders)
        if name not in names:
            raise ConfigError(
                f"{layer.place('ui.theme')}: {layer.name('ui.theme')}: no such theme: {name!r}; "
                f"allowed: {AUTO_THEME}, {', '.join(names)}, or the name of a theme file in {folders[-1]}."
            )


def _name(path: Path) -> str:
    import tomllib

    try:
        name = tomllib.loads(path.read_text("utf-8")).get("name", path.stem)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return path.stem
    return name if isinstance(name, str) and name.strip() else path.stem
