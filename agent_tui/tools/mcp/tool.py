"""A tool of an MCP server as the model, the permissions and the transcript see it."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from agent_tui.models.messages import AttachmentPart, Metadata
from agent_tui.models.requests import ToolSchema
from agent_tui.text.clean import pictured, plain, plain_line, program_output
from agent_tui.text.numbers import plural
from agent_tui.tools.base import Intent, ServerTool, ToolContext, ToolOutcome
from agent_tui.tools.mcp.lines import Image, ToolAnswer, ToolEntry
from agent_tui.tools.mcp.names import DESCRIPTION_LIMIT, safe_schema, server_group, tool_name
from agent_tui.tools.output import cap

IMAGES = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}
_SHOWN = 4_000


class Caller(Protocol):
    def __call__(
        self, server: str, tool: str, arguments: Metadata, progress: Callable[[str], None]
    ) -> Awaitable[ToolAnswer]:
        """Calls a tool on its server. Raises ToolError."""
        ...


class McpTool:
    """What the server claims of the tool is shown, and alone never a reason not to ask."""

    def __init__(self, server: str, entry: ToolEntry, call: Caller) -> None:
        self.server = server
        self.tool = entry.name
        self._called = ServerTool(server, entry.name, only_looks=entry.read_only, open_world=entry.open_world)
        self._claims = _claims(entry)
        self._call = call
        self._schema = ToolSchema(
            tool_name(server, self.tool), plain(entry.description, DESCRIPTION_LIMIT), safe_schema(entry.schema)
        )
        self._group = server_group(server)

    @property
    def schema(self) -> ToolSchema:
        return self._schema

    @property
    def group(self) -> str:
        return self._group

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        line = json.dumps(arguments, ensure_ascii=False) if arguments else ""
        name = f"{plain_line(self.server, 60)}: {plain_line(self.tool, 80)}"
        summary = f"{name} {pictured(line)}".strip()
        text = json.dumps(arguments, ensure_ascii=False, indent=2)
        shown = pictured(text[:_SHOWN]) + ("\n…" if len(text) > _SHOWN else "")
        display = {"kind": "text", "text": f"{name}\n{shown}\n{self._claims}"}
        return Intent(
            "mcp", summary if len(summary) <= 120 else summary[:119] + "…", display=display, server=self._called
        )

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        answer = await self._call(
            self.server, self.tool, arguments, lambda text: context.emit(program_output(text) + "\n")
        )
        return outcome(answer, plain_line(self.tool, 40), context)


def _claims(entry: ToolEntry) -> str:
    """What a server says of its tool, as its claim."""
    does = "only reads" if entry.read_only else "may destroy" if entry.destructive else "adds and destroys nothing"
    reaches = "may reach beyond the server" if entry.open_world else "stays within the server"
    return f"(the server claims: it {does}, and {reaches})"


def outcome(answer: ToolAnswer, name: str, context: ToolContext) -> ToolOutcome:
    """A server's answer as the tool's: text capped and made harmless, images as attachments."""
    text = program_output(answer.text)
    attachments, notes = images(answer.images, name)
    text = "\n".join(t for t in (text, *notes) if t)
    capped = cap(context.secrets.mask(text), context.config.output_limit, context.spill_dir, "mcp")
    parts = [plural(capped.lines, "line")] if capped.lines else []
    if attachments:
        parts.append(plural(len(attachments), "image"))
    is_error = answer.is_error
    summary = "error" if is_error else ", ".join(parts) or "done"
    display: Metadata = {"kind": "text", "summary": summary} | capped.counted()
    return ToolOutcome(capped.text or ("[no text]" if attachments else "[no output]"), is_error, display, attachments)


def images(found: Sequence[Image], name: str) -> tuple[list[AttachmentPart], list[str]]:
    """Images as attachments, and a line for each that cannot be one."""
    attachments: list[AttachmentPart] = []
    notes: list[str] = []
    for image in found:
        kind = image.media_type.lower()
        if kind not in IMAGES:
            notes.append(f"[an image of type {plain_line(kind, 40)!r}, which cannot be shown]")
            continue
        try:
            raw = base64.b64decode(image.data, validate=True)
        except (binascii.Error, ValueError):
            notes.append("[an image that is not valid base64]")
            continue
        attachments.append(
            AttachmentPart(f"{name}-{len(attachments) + 1}.{IMAGES[kind]}", kind, data=base64.b64encode(raw).decode())
        )
    return attachments, notes
