"""The tables of the README that follow from the code."""

from __future__ import annotations

from agent_tui.commands.registry import load
from agent_tui.ui.screens.help import KEY_HELP


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
