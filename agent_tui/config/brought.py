"""What a project's configuration cannot set, trusted or not: what keeps its commands in their place, what is run
unasked outside of it, and what is no setting at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_tui.config.files import Layer
from agent_tui.errors import ConfigError

OWN = (
    "sandbox",
    # What lets keys out.
    "tools.env_allow",
    "tools.web_search",
    "tools.web_search_headers",
    'permissions.mode "bypass"',
    "permissions.mcp_read_only",
    "ui.status_command",
    "ui.editor",
)
"""Settings, tables, and values of settings that only the user's own configuration may have."""


def check_brought(layer: Layer) -> None:
    """Raises ConfigError where a project's configuration sets what only its user's own may."""
    for key in OWN:
        path, _, only = key.partition(" ")
        if _is_set(layer.values, path.split("."), only.strip('"')):
            raise ConfigError(f"{layer.place(path)}: only your own configuration may set {key}; remove it here.")


def _is_set(values: Mapping[str, Any], path: Sequence[str], only: str) -> bool:
    found: Any = values
    for name in path:
        if not isinstance(found, Mapping) or name not in found:
            return False
        found = found[name]
    return not only or found == only


def refusal(keys: Sequence[str | int], value: Any) -> str:
    """Why a value below ``keys``, with a number for each list, cannot be from a project; empty where it can."""
    values: Any = value
    for key in reversed(keys):
        values = {key: values} if isinstance(key, str) else [values]
    for own in OWN:
        path, _, only = own.partition(" ")
        if _is_set(values, path.split("."), only.strip('"')):
            return f"only your own configuration may set {'this' if not only else f'it to {only}'}"
    from agent_tui.config.schema import unknown_key

    unknown = unknown_key(values)
    return f"there is no setting {unknown}" if unknown else ""
