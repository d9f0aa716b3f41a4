"""The README says what the program does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from agent_tui.cli.arguments import SUBCOMMANDS, build_parser
from agent_tui.commands.registry import load
from agent_tui.models.events import StopReason
from agent_tui.providers.catalog import DIALECTS
from agent_tui.tools.registry import builtin_tools
from agent_tui.ui.screens.help import KEY_HELP

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def command_table() -> str:
    lines = ["| command | |", "|---|---|"]
    for command in load().values():
        also = "".join(f", `/{alias}`" for alias in command.aliases)
        lines.append(f"| {_code(command.usage)}{also} | {command.summary} |")
    return "\n".join(lines) + "\n"


def key_table() -> str:
    lines = ["| key | |", "|---|---|"]
    return "\n".join([*lines, *(f"| {key.keys} | {key.what} |" for key in KEY_HELP)]) + "\n"


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


def test_commands_are_those_of_the_registry() -> None:
    assert command_table() in README


def test_keys_are_those_of_help() -> None:
    assert key_table() in README


def test_flags_and_subcommands_are_all_there() -> None:
    usage = README.partition("## Command line")[2].partition("### For scripts")[0]
    flags = [flag for action in build_parser()._actions for flag in action.option_strings]
    unknown = {"-h", "--help", "--version", "--print"}
    assert [flag for flag in flags if flag not in unknown and flag not in usage] == []
    assert [name for name in SUBCOMMANDS if f"agent-tui {name}" not in usage] == []


def test_stop_reasons_are_all_there() -> None:
    line = re.search(r"Stop reasons: `([a-z_ ]+)`", README)
    assert line is not None
    assert set(line[1].split()) == set(get_args(StopReason))


def test_tools_are_all_there() -> None:
    line = re.search(r"The model has ([a-z_, ]+);", README)
    assert line is not None
    assert "`apply_patch` in the place of `edit`" in README
    named = {*re.split(r", | and ", line[1]), "apply_patch"}
    assert named == {tool.schema.name for tool in builtin_tools()}


def test_providers_that_are_called_directly_are_all_there() -> None:
    line = re.search(r"Called directly, without LiteLLM: ([a-z_`,\s]+)\.", README)
    assert line is not None
    assert set(re.findall(r"`(\w+)`", line[1])) == {
        name for name, record in DIALECTS.items() if record.wire is not None
    }


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_benchmarks_named_exist() -> None:
    named = re.findall(r"tests/benchmarks/\w+\.py", README)
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_top_level_holds_what_it_should() -> None:
    here = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}
    wanted = {
        "pyproject.toml",
        "README.md",
        "agent_tui",
        "tests",
        "themes",
        "config.example.toml",
        "CHANGELOG.md",
        "LICENSE",
    }
    assert wanted <= here
