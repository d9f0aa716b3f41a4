"""The event stream of OpenAI's Responses API (OpenAI, Azure, xAI and compatible servers)."""

from __future__ import annotations

from typing import Any

from agent_tui.models.messages import Metadata
from agent_tui.models.requests import FinishReason
from agent_tui.providers.streams.decode import Event
from agent_tui.providers.streams.parts import PartBuilder

_INCOMPLETE: dict[str, FinishReason] = {"max_output_tokens": "length", "content_filter": "refused"}
_HIDDEN = ("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call")


class ResponsesStream:
    """Output items by index. The finished item is kept whole (without its text), so that it can go back with its id,
    phase and encrypted content exactly as it came."""

    def __init__(self, out: PartBuilder) -> None:
        self.out = out

    @staticmethod
    def knows(event: Event) -> bool:
        return str(event.get("type") or "").startswith("response.")

    def event(self, event: Event) -> None:
        kind = str(event["type"]).removeprefix("response.")
        index = int(event.get("output_index") or 0)
        if kind == "output_item.added":
            self._added(index, event.get("item") or {})
        elif kind == "output_item.done":
            self._done(index, event.get("item") or {})
        elif kind in ("output_text.delta", "refusal.delta"):
            self.out.add(index, "text", event.get("delta") or "")
            if kind == "refusal.delta":
                self.out.finish = "refused"
        elif kind in ("reasoning_summary_text.delta", "reasoning_text.delta"):
            self.out.add(index, "reasoning", event.get("delta") or "")
        elif kind == "function_call_arguments.delta":
            self.out.add(index, "tool_call", event.get("delta") or "")
        elif kind in ("completed", "incomplete", "failed"):
            self._end(kind, event.get("response") or {})

    def _added(self, index: int, item: dict[str, Any]) -> None:
        kind = item.get("type")
        if kind == "function_call":
            self.out.call(index, item.get("call_id"), str(item.get("name") or ""), _identity(item))
            self.out.add(index, "tool_call", item.get("arguments") or "")
        elif kind in _HIDDEN:
            self.out.hidden_calls = True

    def _done(self, index: int, item: dict[str, Any]) -> None:
        kind = item.get("type")
        if kind == "reasoning":
            text = "".join(_texts(item.get("summary")) or _texts(item.get("content")))
            kept = {k: v for k, v in item.items() if v is not None and k not in ("status", "content")}
            if item.get("content"):
                kept["content"] = item["content"]
            self.out.add(index, "reasoning", "" if self.out.text_of(index) else text, kept)
        elif kind == "message":
            text = "".join(_texts(item.get("content")))
            self.out.add(index, "text", "" if self.out.text_of(index) else text, _identity(item))
        elif kind == "function_call":
            if not self.out.has(index):
                self._added(index, item)
            missing = "" if self.out.text_of(index) else item.get("arguments") or ""
            self.out.add(index, "tool_call", missing, _identity(item))
        self.out.close(index)

    def _end(self, kind: str, response: dict[str, Any]) -> None:
        self.out.report(response.get("usage"))
        # Encrypted content differs between the item's event and the final response; the latter has the last word.
        for index, item in enumerate(response.get("output") or []):
            if not self.out.has(index):
                self._added(index, item)
            if not self.out.has(index) or item.get("type") == "reasoning":
                self._done(index, item)
        if kind == "failed":
            self.out.error = dict(response.get("error") or {"message": "the response failed"})
        elif kind == "incomplete":
            reason = (response.get("incomplete_details") or {}).get("reason")
            self.out.finish = _INCOMPLETE.get(str(reason), "length")
        elif self.out.finish is None:
            self.out.finish = "tool_calls" if self.out.has_tool_calls else "stop"


def _identity(item: dict[str, Any]) -> Metadata:
    return {k: item[k] for k in ("type", "id", "phase", "status", "namespace") if item.get(k) is not None}


def _texts(blocks: Any) -> list[str]:
    if not isinstance(blocks, list):
        return []
    return [str(b.get("text") or b.get("refusal") or "") for b in blocks if isinstance(b, dict)]
