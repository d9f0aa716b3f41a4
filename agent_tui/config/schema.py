"""The documented example configuration, and the settings in force as TOML."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from agent_tui.config import Settings
from agent_tui.errors import AgentError

NAME = "config.example.toml"


def example_text() -> str:
    """``config.example.toml``, from the package or the checkout. Raises AgentError when the installation lacks it."""
    for candidate in (Path(str(files("agent_tui") / NAME)), Path(__file__).parent.parent.parent / NAME):
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
            lines.append(f"{_key(name)} = {_literal(value)}")
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


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(str(k))} = {_literal(v)}" for k, v in value.items() if v is not None) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_literal(v) for v in value) + "]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)
