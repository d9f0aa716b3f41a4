"""Recorded requests of every wire as the product's own vocabulary, to score estimates that have no anchor.

Only requests without media are scored; the truth is the input the provider reported.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent_tui.context.accounting.inputs import ContextInputs
from agent_tui.context.accounting.usage import calculate_context_usage
from agent_tui.context.tokens import message_text_for_count
from agent_tui.models.calibration import raw_total
from agent_tui.models.messages import Message, Origin, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from agent_tui.models.requests import ModelInfo, ModelSpec, SentMessage
from agent_tui.models.steps import FixedPart
from agent_tui.models.usage import Limits, Prices
from agent_tui.providers.counting import by_kind
from tests.benchmarks.next_input import SIGNED, Score, target_of


def score_requests(folder: Path) -> list[Score]:
    """Estimate each request of ``replay/*.json`` as a whole."""
    scores: list[Score] = []
    for path in sorted(folder.glob("*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(data, dict) and data.get("request") and (data["expected"].get("usage") or {}).get("input"):
            record = {"provider": data["provider"], "wire": data["family"], "model": data["model"], "id": data["name"]}
            chars = sum(len(text) for text in texts_in(data["request"]))
            actual = data["expected"]["usage"]["input"]
            scores.append(Score(record, actual, estimate_request(data), -(-chars // 4)))
    return scores


def estimate_request(data: dict[str, Any]) -> int:
    """The calculator's answer for a request that nothing was measured before."""
    request = data["request"]
    target = target_of(data["provider"], data["family"], data["model"])
    origin = Origin(target.provider, target.api, target.model)
    fixed = [fixed_part("system", text) for text in system_texts(request)]
    fixed += [fixed_part("tools", text) for text in tool_texts(request)]
    history = list(messages(request, origin))
    for message in history:
        message.counts = by_kind(message_text_for_count(message))
        message.raw_tokens = raw_total(message.counts)
    info = ModelInfo(ModelSpec("recorded", target.model), target, Limits(), Prices())
    view = [SentMessage(m, m.id) for m in history]
    return calculate_context_usage(ContextInputs(info, view, fixed=fixed, effort="medium")).total


def fixed_part(row: str, text: str) -> FixedPart:
    counts = by_kind(text)
    return FixedPart(row, row, row, len(text), text, raw_total(counts), counts=counts)  # type: ignore[arg-type]


def entries(request: dict[str, Any]) -> list[dict[str, Any]]:
    found = request.get("messages") or request.get("contents") or request.get("input") or []
    return [{"role": "user", "content": found}] if isinstance(found, str) else found


def system_texts(request: dict[str, Any]) -> list[str]:
    """The system prompt in whichever place the wire has it."""
    instruction = request.get("systemInstruction") or {}
    places = [request.get("system"), request.get("instructions"), instruction.get("parts")]
    places += [e.get("content") for e in entries(request) if e.get("role") in ("system", "developer")]
    return [text for place in places for text in plain_texts(place)]


def tool_texts(request: dict[str, Any]) -> list[str]:
    """Each tool as the product counts it: compact JSON of name, description and parameters."""
    tools = request.get("tools") or (request.get("toolConfig") or {}).get("tools") or []
    flat = [d for t in tools for d in t.get("functionDeclarations") or [t.get("function") or t.get("toolSpec") or t]]
    return [json.dumps(schema_of(t), ensure_ascii=False, separators=(",", ":")) for t in flat]


def schema_of(tool: dict[str, Any]) -> dict[str, Any]:
    names = ("parameters", "input_schema", "parameters_json_schema", "parametersJsonSchema", "inputSchema")
    parameters: dict[str, Any] = next((tool[n] for n in names if tool.get(n) is not None), {})
    return {"name": tool.get("name"), "description": tool.get("description", ""), "parameters": parameters}


def messages(request: dict[str, Any], origin: Origin) -> Iterator[Message]:
    """The conversation: answers, one message a tool result, and user texts."""
    answer: Message | None = None
    for entry in entries(request):
        role, kind = entry.get("role"), entry.get("type", "message")
        if role in ("system", "developer"):
            continue
        if role in ("assistant", "model") or kind in ("function_call", "reasoning"):
            if answer is None:
                answer = Message(f"a{id(entry)}", "assistant", origin=origin)
            answer.parts.extend(answer_parts(entry))
            continue
        if answer is not None:
            yield answer
            answer = None
        yield from other_messages(entry)
    if answer is not None:
        yield answer


def answer_parts(entry: dict[str, Any]) -> Iterator[Part]:
    if entry.get("type") == "function_call":
        yield ToolCallPart(entry["call_id"], entry["name"], entry.get("arguments") or "{}")
        return
    if entry.get("type") == "reasoning":
        yield ReasoningPart("".join(s.get("text", "") for s in entry.get("summary") or []), SIGNED)
        return
    thought = entry.get("reasoning_content") or entry.get("reasoning")
    if isinstance(thought, str):
        yield ReasoningPart(thought, SIGNED)
    for block in blocks(entry):
        if "thinking" in block:
            yield ReasoningPart(block["thinking"], SIGNED)
        elif block.get("type") == "tool_use":
            yield ToolCallPart(block["id"], block["name"], json.dumps(block.get("input") or {}))
        elif "functionCall" in block:
            call = block["functionCall"]
            yield ToolCallPart(call.get("id", ""), call["name"], json.dumps(call.get("args") or {}))
        elif block.get("text"):
            yield TextPart(block["text"])
    for call in entry.get("tool_calls") or []:
        yield ToolCallPart(call["id"], call["function"]["name"], call["function"].get("arguments") or "{}")


def other_messages(entry: dict[str, Any]) -> Iterator[Message]:
    name = f"m{id(entry)}"
    if entry.get("type") == "function_call_output" or entry.get("role") == "tool":
        content = entry.get("output", entry.get("content"))
        yield Message(name, "tool", [ToolResultPart("", "", "".join(plain_texts(content)))])
        return
    texts: list[Part] = []
    for number, block in enumerate(blocks(entry)):
        if block.get("type") == "tool_result":
            text = "".join(plain_texts(block.get("content")))
            yield Message(f"{name}.{number}", "tool", [ToolResultPart("", "", text)])
        elif "functionResponse" in block:
            answer = block["functionResponse"].get("response") or {}
            text = next((v for v in answer.values() if isinstance(v, str)), json.dumps(answer))
            yield Message(f"{name}.{number}", "tool", [ToolResultPart("", "", text)])
        elif block.get("text"):
            texts.append(TextPart(block["text"]))
    if texts:
        yield Message(name, "user", texts)


def blocks(entry: dict[str, Any]) -> list[dict[str, Any]]:
    content = entry.get("content", entry.get("parts"))
    return [{"text": content}] if isinstance(content, str) else list(content or [])


def plain_texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [b["text"] for b in content or [] if isinstance(b, dict) and b.get("text")]


def texts_in(value: Any) -> Iterator[str]:
    """All text a request sends as prompt, for the plain length/4 formula; signatures and ids are not text."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in ("signature", "encrypted_content", "thoughtSignature", "id", "tool_use_id", "call_id"):
                yield from texts_in(item)
