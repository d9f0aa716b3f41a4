"""What MCP servers answer, as messages for the UI process. Runs in the tool host."""

from __future__ import annotations

import json
from collections.abc import Iterable

import mcp_types as types

from agent_tui.tools.mcp.lines import (
    DATA_LIMIT,
    TEXT_LIMIT,
    Content,
    Contents,
    Image,
    PromptAnswer,
    PromptArgument,
    PromptEntry,
    ResourceEntry,
    ToolAnswer,
    ToolEntry,
)

LISTED = 1_000
"""Tools, resources or prompts of one server that are looked at."""


def tool_result(result: types.CallToolResult) -> ToolAnswer:
    """Structured content is shown where no text repeats it."""
    texts, images = _content(result.content)
    if result.structured_content is not None and not any(texts):
        texts.append(json.dumps(result.structured_content, ensure_ascii=False, indent=1))
    return ToolAnswer(_joined(texts), bool(result.is_error), images)


def prompt_result(result: types.GetPromptResult) -> PromptAnswer:
    """The prompt's messages one after the other."""
    texts: list[str] = []
    for message in result.messages:
        found, _ = _content([message.content])
        if message.role == "assistant":
            found = [f"(assistant) {text}" for text in found]
        texts += found
    return PromptAnswer(_joined(texts))


def resource_result(result: types.ReadResourceResult) -> Contents:
    return Contents([_resource(entry) for entry in result.contents[:LISTED]])


def tool_entry(tool: types.Tool) -> ToolEntry:
    claims = tool.annotations or types.ToolAnnotations()
    return ToolEntry(
        tool.name,
        tool.description or tool.title or "",
        tool.input_schema,
        read_only=claims.read_only_hint is True,
        destructive=claims.destructive_hint is not False,
        open_world=claims.open_world_hint is not False,
    )


def resource_entry(resource: types.Resource) -> ResourceEntry:
    name = resource.title or resource.name
    return ResourceEntry(resource.uri, name, resource.description or "", resource.mime_type or "")


def prompt_entry(prompt: types.Prompt) -> PromptEntry:
    arguments = [PromptArgument(a.name, bool(a.required)) for a in prompt.arguments or []]
    return PromptEntry(prompt.name, prompt.description or prompt.title or "", arguments)


def _content(blocks: Iterable[types.ContentBlock]) -> tuple[list[str], list[Image]]:
    texts: list[str] = []
    images: list[Image] = []
    for block in blocks:
        if isinstance(block, types.TextContent):
            texts.append(block.text)
        elif isinstance(block, types.ImageContent):
            if len(block.data) > DATA_LIMIT:
                texts.append(f"[an image of {len(block.data) * 3 // 4:,} bytes, too large to show]")
            else:
                images.append(Image(block.mime_type, block.data))
        elif isinstance(block, types.AudioContent):
            texts.append(f"[audio, {block.mime_type}, {len(block.data) * 3 // 4:,} bytes, not shown]")
        elif isinstance(block, types.ResourceLink):
            about = f": {block.description}" if block.description else ""
            texts.append(f"[resource {block.title or block.name} {block.uri}{about}]")
        else:
            entry = _resource(block.resource)
            if entry.data is None:
                texts.append(f"[resource {entry.uri}]\n{entry.text}")
            elif entry.media_type.startswith("image/"):
                images.append(Image(entry.media_type, entry.data))
            else:
                texts.append(f"[resource {entry.uri}, {entry.media_type}, binary, not shown]")
    return texts, images


def _resource(entry: types.TextResourceContents | types.BlobResourceContents) -> Content:
    if isinstance(entry, types.TextResourceContents):
        return Content(entry.uri, entry.mime_type or "text/plain", text=_cut(entry.text))
    if len(entry.blob) > DATA_LIMIT:
        text = f"[{len(entry.blob) * 3 // 4:,} bytes, too large to show]"
        return Content(entry.uri, "text/plain", text=text)
    return Content(entry.uri, entry.mime_type or "application/octet-stream", data=entry.blob)


def _joined(texts: list[str]) -> str:
    return _cut("\n".join(texts))


def _cut(text: str) -> str:
    if len(text) <= TEXT_LIMIT:
        return text
    return f"{text[:TEXT_LIMIT]}\n[… {len(text) - TEXT_LIMIT:,} characters left out …]"
