"""Bodies of Anthropic's Messages API (docs.claude.com/en/api/messages)."""

from __future__ import annotations

import json

from agent_tui.models.messages import Metadata
from agent_tui.providers.direct.body import Fields
from agent_tui.providers.direct.data_urls import split_data_url

_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high"}


def messages_body(fields: Fields, model: str) -> Metadata:
    """A body of ``/v1/messages``: the system prompt apart, results and questions in user messages, roles in turn."""
    rest = dict(fields.rest)
    body: Metadata = {"model": model, "messages": []}
    system: list[Metadata] = []
    for message in fields.messages:
        if message["role"] == "system":
            system.extend(_blocks(message["content"]))
            continue
        role = "assistant" if message["role"] == "assistant" else "user"
        content = _answer(message) if role == "assistant" else _question(message)
        if not content:
            continue
        previous = body["messages"][-1] if body["messages"] else None
        if previous is not None and previous["role"] == role:
            previous["content"].extend(content)
        else:
            body["messages"].append({"role": role, "content": content})
    if system:
        body["system"] = system
    if fields.tools:
        body["tools"] = [_tool(tool) for tool in fields.tools]
    effort = rest.pop("reasoning_effort", None)
    if effort in _EFFORTS:
        body["thinking"] = {"type": "adaptive", "display": "summarized"}
        body["output_config"] = {"effort": _EFFORTS[effort]}
    choice = rest.pop("tool_choice", None)
    if choice is not None:
        body["tool_choice"] = {"type": choice} if isinstance(choice, str) else choice
    for name, value in {**rest, **fields.extra_body}.items():
        # A switch for one part of thinking goes beside what was chosen already.
        body[name] = {**body[name], **value} if name == "thinking" and name in body else value
    body["stream"] = True
    return body


def _tool(tool: Metadata) -> Metadata:
    function = tool["function"]
    made: Metadata = {"name": function["name"], "input_schema": function["parameters"], "type": "custom"}
    if function.get("description"):
        made["description"] = function["description"]
    if "cache_control" in tool:
        made["cache_control"] = tool["cache_control"]
    return made


def _question(message: Metadata) -> list[Metadata]:
    if message["role"] != "tool":
        return _blocks(message["content"])
    block: Metadata = {
        "type": "tool_result",
        "tool_use_id": message["tool_call_id"],
        "content": _blocks(message["content"]),
    }
    if "cache_control" in message:
        block["cache_control"] = message["cache_control"]
    return [block]


def _answer(message: Metadata) -> list[Metadata]:
    blocks: list[Metadata] = list(message.get("thinking_blocks") or ())
    content = message.get("content")
    if isinstance(content, str):
        # An answer may not end in white space (a 400); inside it none is changed.
        blocks.extend([{"type": "text", "text": content}] if content.strip() else [])
    elif content:
        blocks.extend(_blocks(content))
    for call in message.get("tool_calls") or ():
        function = call["function"]
        blocks.append(
            {"type": "tool_use", "id": call["id"], "name": function["name"], "input": json.loads(function["arguments"])}
        )
    return blocks


def _blocks(content: str | list[Metadata]) -> list[Metadata]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content.strip() else []
    return [_block(block) for block in content if block["type"] != "text" or block["text"].strip()]


def _block(block: Metadata) -> Metadata:
    marker = {"cache_control": block["cache_control"]} if "cache_control" in block else {}
    if block["type"] == "image_url":
        media_type, data = split_data_url(block["image_url"]["url"])
        source = {"type": "base64", "media_type": media_type, "data": data}
        return {"type": "image", "source": source, **marker}
    if block["type"] == "file":
        media_type, data = split_data_url(block["file"]["file_data"])
        source = {"type": "base64", "media_type": media_type, "data": data}
        return {"type": "document", "source": source, "title": block["file"]["filename"], **marker}
    return block
