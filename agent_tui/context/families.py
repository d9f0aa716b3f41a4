"""How each model family turns text into tokens: a factor on the o200k_base count and what its chat template adds.

Constants are fitted on recorded provider traffic (``tests/benchmarks/next_input.py`` scores them); families without
enough recordings use the row ``unknown``.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent_tui.models.requests import Target


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


UNKNOWN = Family("unknown", 1.00, 10, 10, 4)

FAMILIES: dict[str, Family] = {
    "gpt": Family("gpt", 1.00, 6, 7, 7),
    "claude": Family("claude", 1.22, 13, 53, 0, tools=490),
    "gemini": Family("gemini", 0.95, 10, 8, 3),
    "glm": Family("glm", 1.00, 4, 2, 1),
    "kimi": Family("kimi", 1.00, 16, 12, 0),
    "deepseek": Family("deepseek", 1.00, 13, 5, 4),
    "mistral": Family("mistral", 1.05, 4, 14, 2),
    "llama": Family("llama", 1.00, 10, 10, 4, char_factor=1.1),
}


def family_of(target: Target) -> Family:
    """The constants for a target, by its tokenizer family."""
    return FAMILIES.get(target.family, UNKNOWN)
