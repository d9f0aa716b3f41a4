"""An MCP server of 2025 without the SDK: initialize handshake, notifications, and a reader that knows nothing newer."""

from __future__ import annotations

import json
import sys
from typing import Any

SILENT = "--silent" in sys.argv
tools = ["old"]


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def listed() -> list[dict[str, Any]]:
    return [{"name": name, "inputSchema": {"type": "object"}} for name in tools]


sys.stdout.write("this line is no message\n")
for line in sys.stdin:
    request = json.loads(line)
    method, number = request.get("method"), request.get("id")
    if method == "initialize":
        capabilities = {"tools": {"listChanged": True}}
        server = {"name": "legacy", "version": "1"}
        version = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": server}
        send({"id": number, "result": version})
    elif method == "tools/list":
        # Two pages: the cursor has to be followed.
        first = not (request.get("params") or {}).get("cursor")
        page = listed()[:1] if first else listed()[1:]
        send({"id": number, "result": {"tools": page, **({"nextCursor": "2"} if first else {})}})
    elif method == "tools/call":
        tools.append(f"new{len(tools)}")
        send({"method": "notifications/tools/list_changed"})
        send({"id": number, "result": {"content": [{"type": "text", "text": "called"}]}})
    elif number is not None and not SILENT:
        send({"id": number, "error": {"code": -32601, "message": "Method not found"}})
