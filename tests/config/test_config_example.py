"""config.example.toml: documents every key with its default, and what it shows as examples is valid."""

from __future__ import annotations

import re
import tomllib
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, get_args

import pytest

from agent_tui.config import KEY_ACTIONS, McpServer, ModelConfig, Settings
from agent_tui.config.files import Layer, build_settings
from agent_tui.config.schema import McpSchema, ModelSchema, SettingsSchema, check, example_text, show_settings

pytestmark = pytest.mark.quick

EXAMPLE = Path(__file__).resolve().parents[2] / "config.example.toml"
_COMMENTED = re.compile(r"^# ((?:\[[\w.]+\]|\w+ = ).*)$")


def text() -> str:
    return EXAMPLE.read_text("utf-8")


def uncommented() -> dict[str, Any]:
    """The file with every commented key and table in force."""
    lines = [match[1] if (match := _COMMENTED.match(line)) else line for line in text().splitlines()]
    return tomllib.loads("\n".join(lines))


def tables() -> dict[str, type[Any]]:
    """The schema of each table with fixed keys, by its name."""
    found = {}
    for name, field in SettingsSchema.model_fields.items():
        for candidate in get_args(field.annotation):
            if hasattr(candidate, "model_fields"):
                found[name] = candidate
    return found


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
    missing = [key for key in SettingsSchema.model_fields if key not in values]
    for name, schema in tables().items():
        missing += [f"{name}.{key}" for key in schema.model_fields if key not in values[name]]
    missing += [f"models.{key}" for key in ModelSchema.model_fields if key not in values["models"]["sonnet"]]
    servers = [key for server in values["mcp"].values() for key in server]
    missing += [f"mcp.{key}" for key in McpSchema.model_fields if key not in servers]
    assert missing == []


def test_schema_and_settings_have_the_same_keys() -> None:
    assert set(SettingsSchema.model_fields) == {f.name for f in fields(Settings)}
    for name, schema in tables().items():
        if name not in ("models", "mcp", "keys"):
            assert set(schema.model_fields) == set(asdict(getattr(Settings(), name))), name
    assert set(ModelSchema.model_fields) == {f.name for f in fields(ModelConfig)}
    assert set(McpSchema.model_fields) == {f.name for f in fields(McpServer)}


def test_every_default_is_set_or_said_to_be_unset() -> None:
    values = tomllib.loads(text())
    for name in tables():
        if name in ("models", "mcp"):
            continue
        for key, default in asdict(getattr(Settings(), name)).items():
            assert values[name].get(key) == default, f"{name}.{key}"


def test_every_action_is_named() -> None:
    named = text().partition("# Rebound keys")[2]
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
