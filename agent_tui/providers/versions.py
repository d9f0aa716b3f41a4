"""Versions read from the names of models, in any spelling. Pure."""

from __future__ import annotations

import re
from functools import cache

Version = tuple[int, int]

_OPENAI_REASONING = re.compile(r"(?:^|[/.-])(?:gpt-[5-9](?!\d)|o[134](?:$|[^a-z0-9])|codex)")
_NOT_REASONING = re.compile(r"-chat|gpt-oss")
_CLAUDE_NEW = re.compile(r"claude-([a-z]+)-(\d+)(?:[-.](\d{1,2}))?(?!\d)")
_CLAUDE_OLD = re.compile(r"claude-(\d)(?:[-.](\d))?(?:-([a-z]+))?")


@cache
def claude_version(model: str) -> tuple[str, Version] | None:
    """``("opus", (4, 7))`` of any spelling of a Claude model's name, None for other models."""
    name = model.lower()
    if match := _CLAUDE_NEW.search(name):
        return match[1], (int(match[2]), int(match[3] or 0))
    if match := _CLAUDE_OLD.search(name):
        return match[3] or "", (int(match[1]), int(match[2] or 0))
    return None


@cache
def gemini_major(model: str) -> int | None:
    """The first digit of a Gemini model's version, None for other models."""
    match = re.search(r"gemini-(\d+)", model.lower())
    return int(match[1]) if match else None


@cache
def is_openai_reasoning(model: str) -> bool:
    """True for OpenAI's models that reason: the GPT-5 family and the o-series, not the chat-tuned ones."""
    name = model.lower()
    return _OPENAI_REASONING.search(name) is not None and _NOT_REASONING.search(name) is None
