"""The options of the Claude Agent SDK that no flag says; a start without it needs none of them."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

from agent_tui.records import dataclass


@dataclass(slots=True)
class DriverOptions:
    """What options of the Claude Agent SDK say and no flag does. ``tools`` are the only built-in ones (None: all),
    ``ask`` are rules, ``mcp_servers`` entries as in ``.mcp.json`` and ``strict_mcp`` the only ones, beside those that
    are ``inside`` the driver.
    ``fork``: the session is continued in a copy. ``replays``: user
    messages are repeated in the output with their ids."""

    tools: list[str] | None = None
    ask: list[str] = field(default_factory=list)
    mcp_servers: dict[str, Any] = field(default_factory=dict)
    inside: list[str] = field(default_factory=list)
    strict_mcp: bool = False
    sandbox: Literal["", "auto", "off"] = ""
    effort: Literal["", "off", "low", "medium", "high"] = ""
    fork: bool = False
    replays: bool = False
