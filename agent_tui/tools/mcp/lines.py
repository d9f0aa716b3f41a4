"""What passes between the UI process and the tool host: one JSON object a line, both ways.

To the host: ``{"op": "servers", "servers": {name: …}}`` (all that should run), ``{"op": "reconnect", "server": …}``,
``{"op": "call"|"read"|"prompt", "id": N, "server": …, …}`` and ``{"op": "cancel", "id": N}``.
From it: ``{"e": "server", "server": …, "state": …, …}`` with each change of a server,
``{"e": "children", "pids": […]}``, ``{"e": "progress", "id": N, "text": …}``, and for each request one
``{"e": "done"|"error", "id": N, …}``.
"""

from __future__ import annotations

import json
from typing import Any, Literal

LOG_VARIABLE = "AGENT_TUI_HOST_LOG"
"""Environment variable naming the file that takes whatever libraries print; without it that is thrown away."""

TEXT_LIMIT = 5_000_000
"""Characters of one result's text that cross the pipe; what is longer is cut, visibly."""

DATA_LIMIT = 14_000_000
"""Characters of base64 of one image that cross the pipe, about 10 MB of image."""

ServerState = Literal["starting", "connected", "failed", "disabled", "untrusted"]


def line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
