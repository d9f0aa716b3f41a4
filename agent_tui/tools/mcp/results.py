"""What MCP servers answer, as plain JSON for the UI process. Runs in the tool host."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import mcp_types as types

from agent_tui.tools.mcp.lines import DATA_LIMIT, TEXT_LIMIT

LISTED = 1_000
"""Tools, resources or prompts of one server that are looked at."""


def tool_result(result: types.CallToolResult) -> dict[str, Any]:
    """``{"text", "is_error", "images": [{"type", "data"}]}``. Structured content is shown where no text repeats it."""
    texts, images = _content(result.content)
    if result.structured_content is not None and not any(texts):
        texts.append(json.dumps(result.structured_content, ensure_ascii=False, indent=1))
    return {"text": _joined(texts), "is_error": bool(result.is_error), "images": images}


def prompt_result(result: types.GetPromptResult) -> dict[str, Any]:
    """``{"text", "images"}``: the prompt's messages one after the other."""
    texts: list[str] = []
    images: list[dict[str, str]] = []
    for message in result.messages:
        found, pictures = _content([message.content])
        if message.role == "assistant":
            found = [f"(assistant) {text}" for text in found]
        texts += found
        images += pictures
    return {"text": _joined(texts), "images": images}


def resource_result(result: types.ReadResourceResult) -> dict[str, Any]:
    """``{"contents": [{"uri", "type", "text" or "data"}]}``."""
    return {"contents": [_resource(entry) for entry in result.contents[:LISTED]]}


def tool_entry(tool: types.Tool) -> dict[str, Any]:
    hint = tool.annotations.read_only_hint if tool.annotations is not None else None
    return {
        "name": tool.name,
        "description": tool.description or tool.title or "",
        "schema": tool.input_schema,
        "read_only": bool(hint),
    }


def resource_entry(resource: types.Resource) -> dict[str, Any]:
    return {
        "uri": resource.uri,
        "name": resource.title or resource.name,
        "description": resource.description or "",
        "type": resource.mime_type or "",
    }


def prompt_entry(prompt: types.Prompt) -> dict[str, Any]:
    arguments = [{"name": a.name, "required": bool(a.required)} for a in prompt.arguments or []]
    return {"name": prompt.name, "description": prompt.description or prompt.title or "", "arguments": arguments}


def _content(blocks: Iterable[types.ContentBlock]) -> tuple[list[str], list[dict[str, str]]]:
    texts: list[str] = []
    images: list[dict[str, str]] = []
    for block in blocks:
        if isinstance(block, types.TextContent):
            texts.append(block.text)
        elif isinstance(block, types.ImageContent):
            if len(block.data) > DATA_LIMIT:
                texts.append(f"[an image of {len(block.data) * 3 // 4:,} bytes, too large to show]")
            else:
                images.append({"type": block.mime_type, "data": block.data})
        elif isinstance(block, types.AudioContent):
            texts.append(f"[audio, {block.mime_type}, {len(block.data) * 3 // 4:,} bytes, not shown]")
        elif isinstance(block, types.ResourceLink):
            about = f": {block.description}" if block.description else ""
            texts.append(f"[resource {block.title or block.name} {block.uri}{about}]")
        else:
            entry = _resource(block.resource)
            if "text" in entry:
                texts.append(f"[resource {entry['uri']}]\n{entry['text']}")
            elif entry["type"].startswith("image/"):
                images.append({"type": entry["type"], "data": entry["data"]})
            else:
                texts.append(f"[resource {entry['uri']}, {entry['type']}, binary, not shown]")
    return texts, images


def _resource(entry: types.TextResourceContents | types.BlobResourceContents) -> dict[str, str]:
    if isinstance(entry, types.TextResourceContents):
        return {"uri": entry.uri, "type": entry.mime_type or "text/plain", "text": _cut(entry.text)}
    if len(entry.blob) > DATA_LIMIT:
        text = f"[{len(entry.blob) * 3 // 4:,} bytes, too large to show]"
        return {"uri": entry.uri, "type": "text/plain", "text": text}
    return {"uri": entry.uri, "type": entry.mime_type or "application/octet-stream", "data": entry.blob}


def _joined(texts: list[str]) -> str:
    return _cut("\n".join(texts))


def _cut(text: str) -> str:
    if len(text) <= TEXT_LIMIT:
        return text
    return f"{text[:TEXT_LIMIT]}\n[… {len(text) - TEXT_LIMIT:,} characters left out …]"
