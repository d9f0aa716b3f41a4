"""The event streams of Anthropic's Messages API and of Bedrock's Converse API."""

from __future__ import annotations

from typing import Any

from agent_tui.models.requests import FinishReason
from agent_tui.providers.streams.decode import Event
from agent_tui.providers.streams.parts import PartBuilder, as_arguments

_STOP: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
    "guardrail_intervened": "refused",
    "content_filtered": "refused",
}
_TYPES = frozenset(
    {
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "ping",
    }
)
_CONVERSE = frozenset(
    {"messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"}
)


class AnthropicStream:
    """Blocks by index. A thinking block keeps its type and signature, a redacted one its data, both untouched."""

    def __init__(self, out: PartBuilder) -> None:
        self.out = out
        self._inputs: dict[int, Any] = {}

    @staticmethod
    def knows(event: Event) -> bool:
        return event.get("type") in _TYPES

    def event(self, event: Event) -> None:
        kind = event.get("type")
        if kind == "message_start":
            message = event.get("message") or {}
            self.out.report(message.get("usage"))
            self._transformed(event, message)
        elif kind == "content_block_start":
            self._start(int(event.get("index", 0)), event.get("content_block") or {})
        elif kind == "content_block_delta":
            self._delta(int(event.get("index", 0)), event.get("delta") or {})
        elif kind == "content_block_stop":
            self._stop(int(event.get("index", 0)))
        elif kind == "message_delta":
            delta = event.get("delta") or {}
            if reason := delta.get("stop_reason"):
                self.out.finish = _STOP.get(str(reason), "unknown")
            self._usage(event.get("usage"))
            self._transformed(event, delta)
        elif kind == "message_stop" and self.out.finish is None:
            # Some servers that only speak this language give no reason.
            self.out.finish = "stop"

    def _transformed(self, *places: dict[str, Any]) -> None:
        """What the API changed in the request before the model read it; the last report holds all of it."""
        for place in places:
            listed = place.get("input_transformations")
            if isinstance(listed, list):
                self.out.dropped = [
                    str(entry.get("path") or "")
                    for entry in listed
                    if isinstance(entry, dict) and entry.get("type") == "thinking_dropped"
                ]

    def _usage(self, usage: Any) -> None:
        """The last report is the final one, but servers that repeat the input as 0 there mean what they said first."""
        for name, value in usage.items() if isinstance(usage, dict) else ():
            if value is not None and not (value == 0 and name != "output_tokens" and self.out.usage.get(name)):
                self.out.usage[name] = value

    def _start(self, index: int, block: dict[str, Any]) -> None:
        kind = block.get("type")
        if kind == "text":
            self.out.add(index, "text", block.get("text") or "")
        elif kind == "thinking":
            signature = block.get("signature")
            metadata = {"type": "thinking", "signature": signature} if signature else None
            self.out.add(index, "reasoning", block.get("thinking") or "", metadata)
        elif kind == "redacted_thinking":
            self.out.add(index, "reasoning", "", {"type": "redacted_thinking", "data": block.get("data") or ""})
        elif kind == "tool_use":
            self.out.call(index, block.get("id"), str(block.get("name") or ""))
            self._inputs[index] = block.get("input")
        else:
            # Tools that run at the provider: their rounds are added up in the usage.
            self.out.hidden_calls = True

    def _delta(self, index: int, delta: dict[str, Any]) -> None:
        kind = delta.get("type")
        if kind == "text_delta":
            self.out.add(index, "text", delta.get("text") or "")
        elif kind == "thinking_delta":
            self.out.add(index, "reasoning", delta.get("thinking") or "")
        elif kind == "signature_delta":
            known = self.out.metadata_of(index) or {}
            signature = str(known.get("signature") or "") + str(delta.get("signature") or "")
            self.out.add(index, "reasoning", "", {"type": "thinking", "signature": signature})
        elif kind == "input_json_delta" and self.out.has(index):
            self.out.add(index, "tool_call", delta.get("partial_json") or "")

    def _stop(self, index: int) -> None:
        given = self._inputs.pop(index, None)
        if self.out.has(index) and given and not self.out.text_of(index):
            self.out.add(index, "tool_call", as_arguments(given))
        self.out.close(index)


class ConverseStream:
    """Bedrock's Converse events, kept in the same form as Anthropic's blocks."""

    def __init__(self, out: PartBuilder) -> None:
        self.out = out

    @staticmethod
    def knows(event: Event) -> bool:
        return len(event) == 1 and next(iter(event)) in _CONVERSE

    def event(self, event: Event) -> None:
        kind, body = next(iter(event.items()))
        index = int(body.get("contentBlockIndex", 0)) if isinstance(body, dict) else 0
        if kind == "contentBlockStart":
            tool = (body.get("start") or {}).get("toolUse")
            if tool:
                self.out.call(index, tool.get("toolUseId"), str(tool.get("name") or ""))
        elif kind == "contentBlockDelta":
            self._delta(index, body.get("delta") or {})
        elif kind == "contentBlockStop":
            self.out.close(index)
        elif kind == "messageStop":
            self.out.finish = _STOP.get(str(body.get("stopReason")), "unknown")
        elif kind == "metadata":
            self.out.report(body.get("usage"))

    def _delta(self, index: int, delta: dict[str, Any]) -> None:
        if "text" in delta:
            self.out.add(index, "text", delta["text"] or "")
        elif "toolUse" in delta:
            self.out.add(index, "tool_call", as_arguments(delta["toolUse"].get("input")))
        elif "reasoningContent" in delta:
            block = delta["reasoningContent"] or {}
            known = self.out.metadata_of(index) or {}
            if "text" in block:
                self.out.add(index, "reasoning", block["text"] or "")
            if block.get("signature"):
                signature = str(known.get("signature") or "") + block["signature"]
                self.out.add(index, "reasoning", "", {"type": "thinking", "signature": signature})
            if redacted := block.get("redactedContent") or block.get("data"):
                data = str(known.get("data") or "") + redacted
                self.out.add(index, "reasoning", "", {"type": "redacted_thinking", "data": data})
