"""Amazon Bedrock, which LiteLLM calls: its record, and the events of its Converse API as they come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_tui.models.usage import TokenUsage
from agent_tui.providers.dialects.anthropic import STOP
from agent_tui.providers.dialects.decoding import (
    Event,
    StreamReader,
    as_arguments,
    integer,
    mapping,
    number,
    usage_of,
    with_hour,
)
from agent_tui.providers.dialects.record import Dialect, ImageLimits, Source

RECORDS = (
    Dialect(
        "bedrock",
        credentials_elsewhere=True,
        call_ids="plain",
        cache="markers",
        merging=True,
        thinking_blocks=True,
        guessed_reasoning=True,
        # 3.75 MB before base64.
        images=ImageLimits(
            5_000_000,
            8_000,
            count=20,
            source=Source("docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html", "2026-11-21"),
        ),
    ),
)


_CONVERSE = frozenset(
    {"messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"}
)


class ConverseStream(StreamReader):
    """Bedrock's Converse events, kept in the same form as Anthropic's blocks."""

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
            self.out.finish = STOP.get(str(body.get("stopReason")), "unknown")
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


def read_usage(raw: Mapping[str, Any]) -> TokenUsage:
    """Bedrock: as Anthropic, other names. Totals tell whether the cache is already in the input."""
    read, write = integer(raw.get("cacheReadInputTokens")), integer(raw.get("cacheWriteInputTokens"))
    fresh, output, total = (
        number(raw.get("inputTokens")),
        number(raw.get("outputTokens")),
        integer(raw.get("totalTokens")),
    )
    cached = (read or 0) + (write or 0)
    included = cached > 0 and total == fresh + output and fresh >= cached
    usage = usage_of(fresh if included else fresh + cached, output, None, read, write)
    details = raw.get("cacheDetails")
    rows = [mapping(row) for row in details] if isinstance(details, list) else []
    hour = sum(number(row.get("inputTokens")) for row in rows if row.get("ttl") == "1h")
    return with_hour(usage, hour if rows else None)
