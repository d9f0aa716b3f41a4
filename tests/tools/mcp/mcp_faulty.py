"""An MCP server that breaks the protocol: by stdio, or with ``--http`` on a port that it prints first.

Of the tools it lists one has no name, one a schema that is none, one is no object; two take no arguments and say so by
an empty schema and by none. ``good`` answers; ``refuse`` answers with an error whose code is text; ``nonsense`` with a
result that is no object; those of ``RESULTS`` with results that are not all they should be.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

TOOLS: list[Any] = [
    {"name": "good", "inputSchema": {"type": "object"}},
    {"inputSchema": {"type": "object"}},
    {"name": "bad_schema", "inputSchema": "none"},
    "no object",
    {"name": "research", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}},
    {"name": "refuse", "inputSchema": {"type": "object"}},
    {"name": "nonsense", "inputSchema": {"type": "object"}},
    {"name": "empty_schema", "inputSchema": {}},
    {"name": "no_schema", "outputSchema": 7},
]
COUNT = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
RESULTS: dict[str, Any] = {
    "empty_schema": {"content": [{"type": "text", "text": "ran"}]},
    "no_schema": {"content": [{"type": "text", "text": "ran"}]},
    "beside": {"content": [{"type": "text", "text": "Two."}], "structuredContent": {"count": 2}},
    "twice": {"content": [{"type": "text", "text": '{"count": 2}'}], "structuredContent": {"count": 2}},
    "alone": {"content": [], "structuredContent": {"count": 2}},
    "no_content": {"structuredContent": {"count": 2}},
    "misfit": {"content": [{"type": "text", "text": "Some."}], "structuredContent": {"count": "some"}},
    "unstructured": {"content": [{"type": "text", "text": "Plain."}]},
    "no_object": {"content": [], "structuredContent": [1, 2]},
    "unknown_part": {"content": [{"type": "video", "url": "v"}, {"type": "text", "text": "Seen."}]},
    "as_text": {"content": "Just text."},
    "broken_part": {"content": [{"type": "text"}, None, {"type": "text", "text": "Rest."}]},
}
TOOLS += [
    {
        "name": name,
        "inputSchema": {"type": "object"},
        **({"outputSchema": COUNT} if name in ("misfit", "unstructured") else {}),
    }
    for name in RESULTS
    if not name.endswith("_schema")
]


def answer(request: dict[str, Any]) -> dict[str, Any] | None:
    number = request.get("id")
    if number is None:
        return None
    return {"jsonrpc": "2.0", "id": number, **said(request)}


def said(request: dict[str, Any]) -> dict[str, Any]:
    match request["method"]:
        case "initialize":
            server = {"name": "faulty", "version": "1"}
            return {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": server}}
        case "tools/list":
            return {"result": {"tools": TOOLS}}
        case "tools/call" if request["params"]["name"] == "good":
            return {"result": {"content": [{"type": "text", "text": "fine"}]}}
        case "tools/call" if request["params"]["name"] == "refuse":
            return {"error": {"code": "E_LIMIT", "message": "too many today"}}
        case "tools/call" if request["params"]["name"] in RESULTS:
            return {"result": RESULTS[request["params"]["name"]]}
        case "tools/call":
            return {"result": 7}
        case _:
            return {"error": {"code": -32601, "message": "Method not found"}}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        found = answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        body = json.dumps(found).encode() if found else b""
        self.send_response(200 if found else 202)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.send_error(405)

    def log_message(self, format: str, *args: object) -> None:
        return None


if __name__ == "__main__":
    if "--http" in sys.argv:
        with HTTPServer(("127.0.0.1", 0), Handler) as server:
            print(server.server_port, flush=True)
            server.serve_forever()
    for line in sys.stdin:
        if found := answer(json.loads(line)):
            print(json.dumps(found), flush=True)
