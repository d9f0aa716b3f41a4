"""config.example.toml: documents every key with its default, and what it shows as examples is valid."""

from __future__ import annotations

import re
import tomllib
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from agent_tui.config import KEY_ACTIONS, McpServer, ModelConfig, Settings
from agent_tui.config.files import Layer, build_settings
from agent_tui.config.schema import BOUNDS, check, example_text, show_settings

pytestmark = [pytest.mark.quick, pytest.mark.versions]

EXAMPLE = Path(__file__).resolve().parents[2] / "config.example.toml"
_COMMENTED = re.compile(r"^# ((?:\[[\w.]+\]|\w+ = ).*)$")


def text() -> str:
    return EXAMPLE.read_text("utf-8")


def uncommented() -> dict[str, Any]:
    """The file with every commented key and table in force."""
    lines = [match[1] if (match := _COMMENTED.match(line)) else line for line in text().splitlines()]
    return tomllib.loads("\n".join(lines))


def tables() -> list[str]:
    """The tables with fixed keys."""
    return [field.name for field in fields(Settings) if is_dataclass(getattr(Settings(), field.name))]


def test_it_is_what_config_init_writes() -> None:
    assert example_text() == text()


def test_as_it_is_it_sets_the_defaults_and_nothing_else() -> None:
    values = tomllib.loads(text())
    check([Layer("example", values, {})])
    assert build_settings(values) == Settings()


def test_with_its_examples_in_force_it_is_valid() -> None:
    values = uncommented()
    check([Layer("example", values, {})])
    assert build_settings(values).models["sonnet"].model == "anthropic/claude-sonnet-4-6"


def test_every_key_is_documented() -> None:
    values = uncommented()
    missing = [field.name for field in fields(Settings) if field.name not in values]
    for name in tables():
        missing += [f"{name}.{key}" for key in asdict(getattr(Settings(), name)) if key not in values[name]]
    missing += [f"models.{field.name}" for field in fields(ModelConfig) if field.name not in values["models"]["sonnet"]]
    servers = [key for server in values["mcp"].values() for key in server]
    missing += [f"mcp.{field.name}" for field in fields(McpServer) if field.name not in servers]
    assert missing == []


def test_every_bound_is_that_of_a_setting() -> None:
    holders = [ModelConfig, McpServer, *(type(getattr(Settings(), name)) for name in tables())]
    settings = {field.name for cls in holders for field in fields(cls)}
    assert set(BOUNDS) - settings == {"price"}


def test_every_default_is_set_or_said_to_be_unset() -> None:
    values = tomllib.loads(text())
    for name in tables():
        for key, default in asdict(getattr(Settings(), name)).items():
            assert values[name].get(key) == default, f"{name}.{key}"


def test_every_action_is_named() -> None:
    named = text().partition("# Your own keys")[2]
    assert [action for action in KEY_ACTIONS if not re.search(rf"\b{action}\b", named)] == []


def test_actions_are_those_of_the_screen() -> None:
    sources = (EXAMPLE.parent / "agent_tui" / "ui").rglob("*.py")
    bound = {name for path in sources for name in re.findall(r'Binding\([^\n]*\bid="(\w+)"', path.read_text("utf-8"))}
    assert bound == set(KEY_ACTIONS)


def test_settings_shown_are_a_valid_configuration_again() -> None:
    settings = build_settings(uncommented())
    shown = tomllib.loads(show_settings(settings))
    check([Layer("shown", shown, {})])
    assert build_settings(shown) == settings
