"""A context for running tools in a temporary project."""

from __future__ import annotations

from pathlib import Path

from agent_tui.config import ToolsConfig
from agent_tui.tools.base import ToolContext


def make_context(root: Path, *, output_limit: int = 30_000, bash_timeout: float = 120.0) -> ToolContext:
    """A context whose project is ``root``; spilled output goes beside it."""
    root.mkdir(parents=True, exist_ok=True)
    config = ToolsConfig(output_limit=output_limit, bash_timeout=bash_timeout)
    return ToolContext(root, root, "ses_test", config, root.parent / "spill")
