"""Counts what the demo model is sent, in its own way: not with the estimator's constants, so that it is a witness."""

from __future__ import annotations

import json
from collections.abc import Sequence

from agent_tui.models.messages import (
    AttachmentPart,
    Message,
    ReasoningPart,
    SummaryPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from agent_tui.models.requests import Counter, ModelRequest, SentMessage

CACHE_BLOCK = 64
"""Cache reads come in blocks of this many tokens, as several providers report them."""

BOS_TOKENS = 3
MEDIA_TOKENS = 258


class Witness:
    """Serialises requests in a chat template of its own and counts that. Remembers, per session, what it has seen,
    for cache reads. Texts are counted once."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._counts: dict[str, int] = {}
        self._seen: dict[str, list[str]] = {}

    async def input_tokens(self, request: ModelRequest) -> tuple[int, int]:
        """Tokens of the whole request, and how many of them a cache already held. Raises WorkerError."""
        texts = serialise(request)
        counts = await self._count(texts)
        total = BOS_TOKENS + sum(counts) + media_tokens(request)
        before, self._seen[request.session_id] = self._seen.get(request.session_id, []), texts
        same = 0
        for old, new, tokens in zip(before, texts, counts, strict=False):
            if old != new:
                break
            same += tokens
        return total, same // CACHE_BLOCK * CACHE_BLOCK

    async def tokens(self, texts: Sequence[str]) -> list[int]:
        """Plain counts of what was answered."""
        return await self._count(list(texts))

    async def _count(self, texts: list[str]) -> list[int]:
        missing = list({t: None for t in texts if t and t not in self._counts})
        if missing:
            self._counts.update(zip(missing, await self._counter.count(missing), strict=True))
        return [self._counts[t] if t else 0 for t in texts]


def serialise(request: ModelRequest) -> list[str]:
    """The request as the demo model reads it, one text a message. Reasoning of earlier turns is not read."""
    texts = [f"<|system|>\n{block.text}\n<|end|>" for block in request.system]
    texts += [
        f"{json.dumps([t.name, t.description, t.parameters], ensure_ascii=False, separators=(',', ':'))}\n"
        for t in request.tools
    ]
    texts += [f"<|system|>\n{block.text}\n<|end|>" for block in request.documents]
    turn = max((i for i, sent in enumerate(request.messages) if sent.message.role == "user"), default=0)
    texts += [_message(sent, reasoning=i > turn) for i, sent in enumerate(request.messages)]
    return texts


def media_tokens(request: ModelRequest) -> int:
    """A flat price for every image or binary file."""
    return MEDIA_TOKENS * sum(
        isinstance(part, AttachmentPart) and part.text is None
        for sent in request.messages
        for part in sent.message.parts
    )


def _message(sent: SentMessage, reasoning: bool) -> str:
    message = sent.message
    return f"<|{message.role}|>\n{_parts(message, reasoning)}\n<|end|>"


def _parts(message: Message, reasoning: bool) -> str:
    pieces: list[str] = []
    for part in message.parts:
        match part:
            case TextPart() | SummaryPart():
                pieces.append(part.text)
            case ReasoningPart():
                if reasoning and part.text:
                    pieces.append(f"<think>{part.text}</think>")
            case ToolCallPart():
                pieces.append(f"<call>{part.name}({part.arguments})</call>")
            case ToolResultPart():
                pieces.append(f"<result>{part.text}</result>")
            case AttachmentPart():
                pieces.append(f"[{part.name}]\n{part.text or ''}")
    return "\n".join(pieces)
