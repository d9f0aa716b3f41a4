"""Which providers hold a model to a JSON Schema, for which of their models, and what they read of JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

Beside = Literal["always", "at the end", "without tools"]

_NOTES = frozenset({"$schema", "$id", "$comment", "default", "examples", "deprecated", "readOnly", "writeOnly"})
"""Keywords that no value has to heed."""
_BOUNDS = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern"}
    | {"minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains"}
    | {"minProperties", "maxProperties", "propertyNames", "format", "contentEncoding", "contentMediaType"}
)
"""Keywords that only narrow what a type says: without them a schema still lets every value pass that fits it."""
_SHAPE = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs"}
    | {"definitions", "description", "title"}
)


@dataclass(slots=True, frozen=True)
class Subset:
    """What a provider reads of JSON Schema. ``kept`` are keywords it takes, ``dropped`` those that are left out (what
    they ask for is checked here afterwards); a schema with any other does not fit. ``renamed``: taken under another
    name. ``closed``: every object has to name its properties and forbid others; ``closes``: one that says nothing of
    others is closed for it. ``complete``: every property has to be required. ``deepest``: levels of nesting."""

    kept: frozenset[str]
    dropped: frozenset[str] = _NOTES
    renamed: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    closed: bool = True
    closes: bool = False
    complete: bool = False
    deepest: int = 10


STRICT = Subset(
    _SHAPE | (_BOUNDS & {"pattern", "format", "minimum", "maximum", "multipleOf", "minItems", "maxItems"}),
    complete=True,
)
"""OpenAI's strict mode (platform.openai.com/docs/guides/structured-outputs, supported schemas); others took it over."""
CLOSED = Subset(_SHAPE, _NOTES | _BOUNDS, MappingProxyType({"oneOf": "anyOf"}), closes=True)
"""Claude's (docs.claude.com/en/docs/build-with-claude/structured-outputs, JSON Schema limitations)."""
OPEN = Subset(
    (_SHAPE | {"minItems", "maxItems", "minimum", "maximum", "format", "prefixItems"}) - {"const"},
    _NOTES | _BOUNDS,
    MappingProxyType({"oneOf": "anyOf"}),
    closed=False,
)
"""Gemini's (ai.google.dev/gemini-api/docs/structured-output, JSON Schema support)."""


@dataclass(slots=True, frozen=True)
class Schemas:
    """How one provider holds an answer to a schema.

    ``when``: ``always``, in every request, as it holds for the answer alone and tools are called as ever; ``at the
    end``, because no tool is called beside it, only in a request that is for the answer and nothing else, or declares
    no tools; ``without tools``, as it is refused beside them. ``models``: those that can, by name (None: all);
    ``otherwise``: when the rest of them can. ``subset``: what is taken of JSON Schema. ``loose``: a schema that does
    not fit it is taken as well, then as advice (``strict`` false)."""

    when: Beside
    subset: Subset | None = None
    models: re.Pattern[str] | None = None
    otherwise: Beside | None = None
    loose: bool = False


# platform.openai.com/docs/guides/structured-outputs: from gpt-4o-2024-08-06 on.
_OPENAI = (
    r"(?:^|[/.])(?:gpt-4o(?!-2024-05-13|-audio|-realtime|-search)|gpt-4\.1|gpt-(?:[5-9]|\d\d)|o1(?!-mini|-preview)|o[34])"
    r"(?!\d)"
)
# docs.claude.com, structured outputs: Claude 4.5 and newer.
_CLAUDE = r"claude-(?:[a-z]+-(?:4[-.](?:[5-9]|1\d)(?!\d)|[5-9](?!\d)|[1-9]\d(?!\d)))"
# ai.google.dev, structured output with tools: "Gemini 3 series"; older: "Function calling with a response mime type:
# 'application/json' is unsupported".
_GEMINI = r"gemini-(?:[3-9]|\d\d)(?!\d)"
# docs.x.ai/docs/guides/structured-outputs, with tools: "only for the Grok 4 family".
_GROK = r"grok-(?:[4-9]|\d\d)(?!\d)"

OPENAI = Schemas("always", STRICT, re.compile(_OPENAI), loose=True)
CLAUDE = Schemas("always", CLOSED, re.compile(_CLAUDE))
GEMINI = Schemas("always", OPEN, re.compile(_GEMINI), otherwise="without tools")
GROK = Schemas("always", STRICT, re.compile(_GROK))
ROUTER = Schemas("always", STRICT, re.compile(rf"{_OPENAI}|{_CLAUDE}|{_GEMINI}|{_GROK}"))
"""OpenRouter passes a schema on where the model's maker has them (openrouter.ai/docs/features/structured-outputs)."""
GROQ = Schemas("without tools", STRICT, loose=True)
"""console.groq.com/docs/structured-outputs: not with tool use."""
MISTRAL = Schemas("without tools", STRICT)
"""docs.mistral.ai/capabilities/structured_output; nothing is said of tools."""
SEARCH = Schemas("without tools", OPEN)
"""docs.perplexity.ai/guides/structured-outputs."""
GRAMMAR = Schemas("at the end")
"""vLLM, llama.cpp, LM Studio and Ollama make a grammar of the schema, which the first token has to keep to already: no
tool would ever be called (vllm-project/vllm 39929, ollama/ollama 8095)."""
