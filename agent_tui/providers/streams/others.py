"""The event streams of Cohere's v2 chat API and of Ollama's chat API."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from agent_tui.models.requests import FinishReason
from agent_tui.providers.streams.decode import Event
from agent_tui.providers.streams.parts import PartBuilder, as_arguments
from agent_tui.providers.streams.think_tags import TagSplitter

_COHERE_STOP: dict[str, FinishReason] = {
    "COMPLETE": "stop",
    "STOP_SEQUENCE": "stop",
    "TOOL_CALL": "tool_calls",
    "MAX_TOKENS": "length",
    "ERROR_TOXIC": "refused",
}
_COHERE = ("message-", "content-", "tool-", "citation-")


class CohereStream:
    """Content blocks and tool calls by index, each numbered on its own. The tool plan is reasoning."""

    def __init__(self, out: PartBuilder) -> None:
        self.out = out

    @staticmethod
    def knows(event: Event) -> bool:
        return str(event.get("type") or "").startswith(_COHERE)

    def event(self, event: Event) -> None:
        kind, index = str(event["type"]), event.get("index", 0)
        delta = event.get("delta") or {}
        message = delta.get("message") or {}
        if kind in ("content-start", "content-delta"):
            content = message.get("content") or {}
            if "thinking" in content:
                self._think(("content", index), content.get("thinking") or "", "content")
            else:
                self.out.add(("content", index), "text", content.get("text") or "")
        elif kind == "content-end":
            self.out.close(("content", index))
        elif kind == "tool-plan-delta":
            self._think("plan", message.get("tool_plan") or "", "tool_plan")
        elif kind in ("tool-call-start", "tool-call-delta"):
            call = message.get("tool_calls") or {}
            function = call.get("function") or {}
            self.out.close("plan")
            if kind == "tool-call-start":
                self.out.call(("call", index), call.get("id"), str(function.get("name") or ""))
            self.out.add(("call", index), "tool_call", as_arguments(function.get("arguments")))
        elif kind == "tool-call-end":
            self.out.close(("call", index))
        elif kind == "message-end":
            self.out.report(delta.get("usage"))
            reason = delta.get("finish_reason")
            if reason:
                self.out.finish = _COHERE_STOP.get(str(reason), "unknown")
            if delta.get("error"):
                self.out.error = {"message": str(delta["error"])}

    def _think(self, key: Hashable, text: str, field: str) -> None:
        self.out.add(key, "reasoning", text, {"field": field} if text and not self.out.has(key) else None)


class OllamaStream:
    """One object a piece; tool calls come whole, without ids."""

    def __init__(self, out: PartBuilder, tags: bool = False) -> None:
        self.out = out
        self._tags = TagSplitter(out, tags)
        self._calls = 0

    @staticmethod
    def knows(event: Event) -> bool:
        return "done" in event and isinstance(event.get("message"), dict)

    def event(self, event: Event) -> None:
        message: dict[str, Any] = event["message"]
        if text := message.get("thinking"):
            self._tags.interrupt()
            self.out.add(self.out.run("reasoning"), "reasoning", text)
        if text := message.get("content"):
            self._tags.feed(str(text))
        for call in message.get("tool_calls") or []:
            self._tags.interrupt()
            function = call.get("function") or {}
            self._calls += 1
            key = ("call", self._calls)
            self.out.call(key, call.get("id"), str(function.get("name") or ""))
            self.out.add(key, "tool_call", as_arguments(function.get("arguments")))
            self.out.close(key)
        if event.get("done"):
            self._tags.interrupt()
            self.out.usage.update({k: v for k, v in event.items() if k.endswith("_count")})
            length = event.get("done_reason") == "length"
            self.out.finish = "length" if length else "tool_calls" if self._calls else "stop"
