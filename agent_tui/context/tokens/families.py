"""How each model family turns text into tokens: a factor on the o200k_base count and what its chat template adds.

Constants are medians over recorded provider traffic, every repository of recordings weighted by the square root of
its size, and were checked by leaving one repository out at a time (``tests/benchmarks/next_input.py`` scores them).
The factor is 1 unless long recorded results show otherwise. Where a median rests on one odd repository the value of
the neighbouring family stands (``tests/benchmarks/fit_families.py`` fits). Families without enough recordings use
``unknown``. A factor that follows what a text consists of was tried and did not carry over
(``tests/benchmarks/fit_texture.py``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache

from agent_tui.models.requests import Target
from agent_tui.providers.catalog import dialect_of


@dataclass(slots=True, frozen=True)
class Family:
    """Tokens a model counts = ``kappa`` × o200k_base tokens + the overheads (tokens) of each message.

    ``first_result`` and ``further_result`` belong to the first and each further tool result after one answer, ``user``
    to a user message, ``assistant`` to an answer that is not measured, ``call`` to each tool call in such an answer,
    ``tools`` to a request with any tool at all. ``char_factor`` scales the character rule (Llama-like vocabularies
    need about 10 % more tokens, code models about 10 % fewer).
    """

    name: str
    kappa: float
    first_result: float
    further_result: float
    user: float
    assistant: float = 4
    call: float = 10
    tools: float = 0
    char_factor: float = 1.0


UNKNOWN = Family("unknown", 1.00, 10, 8, 4)

FAMILIES: dict[str, Family] = {
    "gpt": Family("gpt", 1.00, 7, 6, 7),
    "gpt-5.2": Family("gpt", 1.00, 11, 7, 7),
    "gpt-oss": Family("gpt", 1.00, 14, 8, 4),
    "claude": Family("claude", 1.22, 12, 47, 1, tools=490),
    "gemini": Family("gemini", 1.00, 9, 7, 2),
    "gemini-vertex": Family("gemini", 1.00, 0, 0, 0),
    "glm": Family("glm", 1.00, 5, 3, 1, tools=110),
    "kimi": Family("kimi", 0.90, 18, 15, 1),
    "deepseek": Family("deepseek", 1.00, 13, 6, 4, tools=240),
    "mistral": Family("mistral", 1.00, 4, 4, 2),
    "grok": Family("grok", 1.00, 10, 4, 11, tools=320),
    "qwen": Family("qwen", 1.00, 13, 3, 7),
    "llama": Family("llama", 1.00, 8, 8, 4, char_factor=1.1),
    "nova": Family("nova", 1.00, 25, 10, 3),
    "cohere": Family("cohere", 1.00, 40, 20, 5, tools=1_450),
    "unknown": UNKNOWN,
}

_BY_NAME = tuple(
    (key, re.compile(pattern))
    for key, pattern in (
        ("gpt-oss", r"gpt-oss"),
        ("gpt-5.2", r"gpt-(5\.[2-9]|5\.\d\d|[6-9])"),
        ("grok", r"grok"),
        ("qwen", r"qwen|qwq"),
        ("llama", r"llama"),
        ("nova", r"nova-"),
        ("cohere", r"command-"),
    )
)
_CODE = re.compile(r"code|coder")
CODE_FACTOR = 0.9


@cache
def family_of(target: Target) -> Family:
    """The constants for a target: by model name where the template is finer than the tokenizer's family, else by the
    family, and by who serves it where that one counts otherwise."""
    name = target.model.lower()
    family = next((FAMILIES[key] for key, pattern in _BY_NAME if pattern.search(name)), None)
    if family is None:
        framed = dialect_of(target.provider).framing.get(target.family, target.family)
        family = FAMILIES.get(framed, UNKNOWN)
    return replace(family, char_factor=CODE_FACTOR) if _CODE.search(name) else family
