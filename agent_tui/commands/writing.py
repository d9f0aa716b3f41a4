"""Files that the user asks for: into the folder of exports, or where they say."""

from __future__ import annotations

import asyncio
from pathlib import Path

from agent_tui.errors import AgentError
from agent_tui.paths import private_dir, write_new


async def write_export(text: str, folder: Path, name: str, suffix: str) -> Path:
    """Writes a new file into the folder of exports; a name that is taken gets a number. Raises AgentError."""
    try:
        return await asyncio.to_thread(lambda: write_new(private_dir(folder), name, suffix, text))
    except OSError as error:
        raise AgentError(f"Cannot write into {folder}: {error.strerror or error}.") from None


async def write_told(text: str, path: Path) -> Path:
    """Writes a new file where the user said. Raises AgentError, also where there is one already."""

    def write() -> None:
        with path.open("x", encoding="utf-8", errors="replace") as file:
            file.write(text)

    try:
        await asyncio.to_thread(write)
    except FileExistsError:
        raise AgentError(f"{path} is there already. Name another file, or remove it first.") from None
    except OSError as error:
        raise AgentError(f"Cannot write {path}: {error.strerror or error}.") from None
    return path
