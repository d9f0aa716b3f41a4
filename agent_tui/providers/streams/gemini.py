"""The event stream of Google's generateContent API (Gemini API and Vertex AI)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from agent_tui.models.messages import Metadata
from agent_tui.models.requests import FinishReason
from agent_tui.providers.streams.decode import Event
from agent_tui.providers.streams.parts import Kind, PartBuilder, as_arguments

_STOP: dict[str, FinishReason] = {"STOP": "stop", "MAX_TOKENS": "length"}
_BROKEN = frozenset({"MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL"})
"""The model's output could not be read, and part of it or all is missing: no end of an answer."""
_REFUSED = frozenset(
    {"SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "MODEL_ARMOR"}
)


class GeminiStream:
    """Parts without numbers: neighbours of one kind are one part, which has at most one signature. A signature stays
    on the part that carried it: thought, text (possibly empty) or function call."""

    def __init__(self, out: PartBuilder) -> None:
        self.out = out
        self._calls = 0

    @staticmethod
    def knows(event: Event) -> bool:
        body = event.get("response") if isinstance(event.get("response"), dict) else event
        return isinstance(body, dict) and any(k in body for k in ("candidates", "usageMetadata", "promptFeedback"))

    def event(self, event: Event) -> None:
        body: dict[str, Any] = event["response"] if isinstance(event.get("response"), dict) else event
        self.out.report(body.get("usageMetadata"))
        if (body.get("promptFeedback") or {}).get("blockReason"):
            self.out.finish = "refused"
        for candidate in (body.get("candidates") or [])[:1]:
            for part in (candidate.get("content") or {}).get("parts") or []:
                self._part(part)
            if (reason := candidate.get("finishReason")) and reason not in _BROKEN:
                self.out.finish = "refused" if reason in _REFUSED else _STOP.get(reason, "unknown")

    def _part(self, part: dict[str, Any]) -> None:
        signature = part.get("thoughtSignature")
        metadata: Metadata | None = {"thought_signature": signature} if signature else None
        if call := part.get("functionCall"):
            self._calls += 1
            key: Hashable = ("call", self._calls)
            given = call.get("id")
            if given:
                metadata = {**(metadata or {}), "id": given}
            self.out.call(key, given, str(call.get("name") or ""), metadata)
            self.out.add(key, "tool_call", as_arguments(call.get("args") or {}))
            self.out.close(key)
        elif "text" in part or signature:
            kind: Kind = "reasoning" if part.get("thought") else "text"
            key = self.out.run(kind)
            if signature and self.out.metadata_of(key):
                self.out.close(key)
                key = self.out.new_run()
            self.out.add(key, kind, part.get("text") or "", metadata)
        elif "executableCode" in part or "codeExecutionResult" in part or "toolCall" in part:
            self.out.hidden_calls = True
