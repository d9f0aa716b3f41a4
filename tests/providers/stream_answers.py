"""What becomes of one answer of a loopback server, through LiteLLM and the worker."""

from __future__ import annotations

from typing import Any, NamedTuple

from agent_tui.models.messages import Message, ReasoningPart, SearchPart, TextPart, ToolCallPart
from agent_tui.models.requests import Finished, ModelSpec
from agent_tui.models.search import search_text
from agent_tui.models.usage import TokenUsage
from agent_tui.providers.client import ModelClient
from tests.support import recorded
from tests.support.loopback import Loopback, Reply
from tests.support.model_calls import KEY, collect, make_request


class Got(NamedTuple):
    parts: list[tuple[Any, ...]]
    end: str
    usage: TokenUsage | None


async def ask(worker: ModelClient, server: Loopback, model: str, body: bytes | Reply, api: Any = "chat") -> Got:
    """The answer's parts (kind, text or name and arguments, metadata), how it ended, and its usage."""
    server.serve("*", body)
    spec = ModelSpec("m", model, api_base=server.url, api_key=KEY, api=api)
    answer = await collect(worker.stream(make_request(spec, tools=[recorded.TOOL])))
    message = recorded.assemble(answer.items, Message("m", "assistant"))
    parts: list[tuple[Any, ...]] = []
    for part in message.parts:
        if isinstance(part, ToolCallPart):
            parts.append(("call", part.name, part.arguments, part.provider_metadata))
        elif isinstance(part, SearchPart):
            parts.append((part.type, search_text(part), part.provider_metadata))
        elif isinstance(part, (TextPart, ReasoningPart)):
            parts.append((part.type, part.text, part.provider_metadata))
    last = answer.items[-1]
    assert answer.ends == 1
    end = last.reason if isinstance(last, Finished) else answer.failure.kind
    return Got(parts, end, answer.usage.usage if answer.usage else None)
