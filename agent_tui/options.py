"""What was asked for on the command line, as one value."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from agent_tui.config import PermissionMode

OutputFormat = Literal["text", "json", "stream-json"]


@dataclass(slots=True)
class Options:
    """Flags common to the screen and to headless mode. ``resume`` is a session id, "" to choose one."""

    prompt: str = ""
    headless: bool = False
    output_format: OutputFormat = "text"
    model: str | None = None
    continue_newest: bool = False
    resume: str | None = None
    config: Path | None = None
    add_dirs: list[Path] = field(default_factory=list)
    permission_mode: PermissionMode | None = None
    trust: bool = False
    can_ask: bool = True
