"""What a folder that is not trusted holds and is not read."""

from __future__ import annotations

from pathlib import Path

from agent_tui.context.skills import PROJECT_FOLDER as SKILLS
from agent_tui.context.user_commands import PROJECT_FOLDER as COMMANDS

_PLACES = (
    (Path(".agent-tui") / "config.toml", "configuration"),
    (Path(".mcp.json"), "MCP servers"),
    (SKILLS, "skills"),
    (COMMANDS, "commands"),
)


def ignored_by_trust(root: Path) -> list[str]:
    """The things of this folder that only a trusted one may bring along, by their paths below ``root``."""
    return [f"{place} ({what})" for place, what in _PLACES if _present(root / place)]


def trust_line(root: Path) -> str:
    """One line for the user; empty when there is nothing that is ignored."""
    ignored = ignored_by_trust(root)
    if not ignored:
        return ""
    return f"This folder is not trusted, so {', '.join(ignored)} are ignored; /trust (or --trust) reads them."


def _present(path: Path) -> bool:
    try:
        return any(path.iterdir()) if path.is_dir() else path.exists()
    except OSError:
        return False
