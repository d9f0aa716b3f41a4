"""What servers refuse a request for, read from the words of a refusal: what of the history, the tools or the options of
a request that was fine to build they do not take."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Literal

from agent_tui.models.failure import Adaptation, Failure
from agent_tui.models.requests import ToolSchema
from agent_tui.providers.failure_lines import MISSING_PACKAGE
from agent_tui.records import dataclass

_SAID = r"(?:must be|missing|required|passed back|not (?:found|provided|present)|expected)"
_REFUSED = r"(?:unsupported|not (?:supported|permitted|allowed)|unknown|unrecogni[sz]ed|unexpected|extra|forbidden)"
_FIELDS = r"reasoning_content|reasoning_details|reasoning_text|reasoning_opaque|thinking_blocks"


@dataclass(slots=True, frozen=True)
class Hint:
    """What may make a refused request one that is taken, in the order in which it is tried. ``always``: the server
    takes such a thing never (True), or only the single ones in this request are wrong (False); None where the words do
    not say."""

    adaptations: tuple[Adaptation, ...]
    always: bool | None = None


def _hint(*adaptations: Adaptation, always: bool | None, words: Sequence[str]) -> tuple[re.Pattern[str], Hint]:
    return re.compile("|".join(words), re.IGNORECASE | re.DOTALL), Hint(adaptations, always)


_NAMES = (
    # A field of thoughts that it does not know: Mistral, Groq, OpenAI, xAI.
    _hint(
        "no reasoning",
        "calls as text",
        always=True,
        words=(
            rf"(?:{_REFUSED}|property).{{0,80}}(?:{_FIELDS})",
            rf"(?:{_FIELDS})[^.]{{0,80}}{_REFUSED}",
            r"encrypted content is not supported",
            r"reasoning\.encrypted_content.{0,60}not supported",
        ),
    ),
    _hint(
        "no thinking",
        "no reasoning",
        always=True,
        words=(
            r"(?:does not|doesn't|not) support (?:thinking|reasoning)\b",
            r"(?:reasoning|thinking)(?:[ _]effort|_budget|\.\w+)?['\"`]? (?:mode )?(?:is|are) not (?:supported|permit)",
            rf"{_REFUSED}.{{0,40}}['\"`: ](?:think|thinking|reasoning_effort|reasoning\.effort|enable_thinking)\b",
            rf"^\W*(?:thinking|reasoning_effort|think): .{{0,30}}{_REFUSED}",
        ),
    ),
    # Thinking models that want their thoughts with every answer: DeepSeek, Moonshot, and who passes them on.
    _hint(
        "reasoning everywhere",
        "calls as text",
        "no thinking",
        always=None,
        words=(rf"reasoning_content.{{0,80}}{_SAID}", rf"{_SAID}.{{0,40}}reasoning_content"),
    ),
    # OpenAI's Responses: what it gave an id.
    _hint(
        "no item ids",
        "no reasoning",
        "calls as text",
        always=None,
        words=(
            r"item.{0,60}['\"` ](?:rs|msg|fc|ws|item|ctc)_\w+.{0,40}(?:not found|no longer)",
            r"items? (?:is|are) not persisted",
            r"duplicate item",
            r"begins? with ['\"`](?:rs|msg|fc)",
            r"input\[\d+\]\.(?:id|status)\b",
            r"without its required",
            r"required following item",
            r"(?:reasoning|function_call)['\"`]? (?:item )?(?:was |were )?provided without",
        ),
    ),
    # What a maker signed or encrypted: Anthropic, OpenAI, Google.
    _hint(
        "no reasoning",
        "no thinking",
        "calls as text",
        always=False,
        words=(r"expected [`'\"]?(?:thinking|redacted_thinking)\b", r"must start with a thinking block"),
    ),
    _hint(
        "no reasoning",
        "calls as text",
        always=None,
        words=(
            r"encrypted[_ ]content",
            r"(?:could not|cannot) be (?:verified|decrypted)",
            r"thought[_ ]?signature",
            r"redacted_thinking",
            r"thinking['\"`]? (?:or .{0,20})?blocks?",
            r"invalid.{0,20}signature|signature.{0,40}invalid",
            r"bound to a different conversation",
            r"reasoning(?:[_ ](?:item|part|content|block|detail|encrypted)|['\"`])",
        ),
    ),
    # Calls and results that do not belong together, and ids, names or arguments in a form that is not taken.
    _hint(
        "short call ids",
        "calls as text",
        always=False,
        words=(
            r"tool_?calls?\[\d+\]",
            r"tool_?use",
            r"tool_?result",
            r"input\[\d+\]\.call_id",
            r"(?:tool_)?call_id.{0,60}(?:invalid|length|pattern|string|match|long)",
            r"(?:invalid|malformed).{0,30}tool[_ ](?:call|use)[_ ]?id",
            r"no tool (?:output|call|result) found",
            r"tool messages? responding",
            r"role ['\"`]?tool['\"`]? must|messages? with role ['\"`]tool",
            r"function call turn|function response (?:turn|parts?)|number of function (?:calls|response)",
            r"function_?call(?:ing)?.{0,40}(?:immediately|followed|history|thought)",
            r"(?:invalid|parse|unmarshal).{0,40}tool[_ ]call",
            r"tool_calls.{0,40}(?:undefined|not (?:supported|allowed|permitted)|must be followed)",
        ),
    ),
    # A template, or an API, that knows no tools and few roles.
    _hint(
        "system as text",
        "calls as text",
        always=True,
        words=(
            r"system role|role ['\"`]?system",
            r"system (?:message|prompt)s?.{0,40}(?:not (?:supported|allowed)|unsupported)",
            r"developer instruction is not enabled",
            r"only user and assistant roles|only user, assistant",
        ),
    ),
    _hint(
        "no tools",
        "calls as text",
        always=True,
        words=(
            r"(?:does not|doesn't|not) support (?:tools|tool|function)",
            r"tools? (?:use|choice|calling|calls?|param)? ?(?:is|are) not supported",
            r"tools param requires|--jinja\b",
            r"no endpoints found that support tool",
            rf"{_REFUSED}.{{0,30}}['\"`](?:tools|tool_choice)['\"`]",
        ),
    ),
    _hint(
        "calls as text",
        "system as text",
        "no tools",
        always=True,
        words=(
            r"roles.{0,30}alternat|alternat\w* (?:between )?(?:roles|user)",
            r"consecutive (?:messages|roles|user|assistant)",
            r"(?:unexpected|unknown|invalid|unsupported) (?:message )?role",
            r"role.{0,30}(?:not supported|unsupported|not allowed)|tool role",
            r"jinja|chat template|raise_exception|at row \d+, column \d+",
            r"\btemplate\b.{0,60}(?:error|exception|failed|raise)|\btemplate: ?[\w.]*:\d+",
            r"after the optional system|(?:last|first) message must|messages? must (?:start|end)",
        ),
    ),
)
"""What the words of a refusal name, and what is tried then, in this order. The first that fits."""

UNNAMED = Hint(("no item ids", "no reasoning", "short call ids", "media", "calls as text"))
"""What is tried where a refusal names nothing."""

_ELSEWHERE = re.compile(
    r"reasoning[._]effort|budget_tokens|thinking_?budget|tool_choice|temperature|top_?[pk]\b|max_(?:completion_|output_|new_)?tokens|max_?output|\bstop\b|\bseed\b|penalty|log_?probs|"
    r"logit|api[-_ ]?version|service_tier|stream_options|parallel_tool_calls|\bregion\b|deployment|organi[sz]ation|"
    r"\bproject\b|quota|\bcredits?\b|billing|safety_identifier|prompt_cache|\bverbosity\b|cache_control|num_ctx|"
    r"\bmodel\b.{0,60}(?:not|unknown|invalid|unsupported|deprecat)|(?:invalid|unknown|unsupported|valid) model|"
    r"web_search|json_schema|response_format|api[-_ ]?key|\bheader\b|anthropic-(?:beta|version)",
    re.IGNORECASE,
)
"""What a refusal is about that is neither in the history nor goes with it."""

_BYTES = re.compile(
    r"request_too_large|(?:entity|payload|request(?: body)?|body|content)(?: size)? (?:is )?too large|"
    r"exceeds? (?:the )?(?:maximum|max|allowed)?\s*(?:allowed )?(?:number of bytes|request size|body size|payload size|"
    r"size limit|content length)|request exceeds the maximum size|payload size exceeds|"
    r"(?:request|body|payload|content)[^.]{0,40}(?:exceeds?|larger than|over)[^.]{0,40}\b(?:bytes|[kmg]i?b)\b|"
    r"maximum (?:request|body|payload) (?:body )?size|total (?:image|payload) size",
    re.IGNORECASE,
)


def speaks_of_bytes(text: str) -> bool:
    """Returns whether a refusal says that the request has too many bytes."""
    return _BYTES.search(text) is not None


def names_history(text: str) -> bool:
    """Returns whether a refusal names something that an earlier answer left in the request, or an option of it that can
    be left out, whatever the status says."""
    return any(pattern.search(text) for pattern, _ in _NAMES)


def named_hint(failure: Failure) -> Hint | None:
    """Returns what the words of a refusal name; None where they name nothing of the history or the options."""
    if failure.kind not in ("invalid_request", "not_found", "overloaded"):
        return None
    text = f"{failure.detail}\n{failure.message}"
    return next((hint for pattern, hint in _NAMES if pattern.search(text)), None)


def may_be_history(failure: Failure) -> bool:
    """Returns whether a refusal that names nothing may be for the history: it does not plainly speak of another
    thing."""
    if failure.kind != "invalid_request" or not (failure.status or failure.detail):
        return False
    return _ELSEWHERE.search(failure.detail or failure.message) is None and not MISSING_PACKAGE.search(failure.detail)


def speaks_of_blocks(failure: Failure) -> bool:
    """Returns whether single thoughts are wrong, and not that thoughts come back at all."""
    return _BLOCKS.search(f"{failure.detail}\n{failure.message}") is not None


_BLOCKS = re.compile(
    r"signature|cannot be modified|expected [`'\"]?(?:thinking|redacted)|decrypted|bound to a different|"
    r"start with a thinking",
    re.IGNORECASE,
)
_FIELD = re.compile(r"block_binding|prefix_mismatch_behavior|thinking-binding-controls", re.IGNORECASE)


def refuses_drop_field(failure: Failure) -> bool:
    """Returns whether a server does not know the field that asks it to drop reasoning by itself."""
    return _FIELD.search(f"{failure.detail}\n{failure.message}") is not None


_SCHEMA = re.compile(
    r"response[_ ]?(?:format|mime[_ ]?type|json[_ ]?schema|schema)|output[_ ]config|output[_ ]format|text\.format|"
    r"json[_ ]?schema|structured[_ ]output|\bgrammar|guided|unmarshal\b.{0,80}\bformat\b|\bformat\b.{0,40}\bjson\b|"
    r"schema.{0,40}(?:complex|too large|compil)",
    re.I | re.S,
)
_TOOL = re.compile(r"\btools?[.\[]|for function|input_schema|function_declarations", re.I)


_UNSEEING = re.compile(
    # In this order: llama.cpp, Ollama, OpenRouter and others; OpenAI; DeepSeek; vLLM; Groq; Google.
    r"(?:images?|vision|pictures?|multi-?modal|image_url|files?|pdfs?)[\w \[\]'\"`-]{0,40}(?:not|n't|only) "
    r"(?:be )?support|"
    r"(?:not|n't|endpoints found that) support[\w \[\]'\"`-]{0,30}(?:image|vision|multi-?modal|file|pdf)|mmproj|"
    r"missing data required for image|image_url is only|unknown[^.\n]{0,40}(?:image_url|input_image|input_file)|"
    r"(?:unknown|unsupported|invalid)[^.\n]{0,40}(?:content\[?\]?\.type|['\"`](?:image|file|image_url|input_image|"
    r"input_file)['\"`])|"
    r"not a multi-?modal|requires multi-?modal|at most 0 (?:image|file)|content['\"`]? must be a string|"
    r"input should be ['\"`]text|modality is not (?:enabled|supported)",
    re.I,
)
_PICTURES = re.compile(r"image|vision|picture|multi-?modal|mmproj|content['\"`]? must be a string", re.I)
_ITS_KIND = re.compile(
    r"format|mime|extension|media.?type|\b(?:web[mp]|gif|bmp|tiff?|svg|heic|avif)\b|larger|bigger|more than|resolution|"
    r"dimension|pixels|animated|\burls?\b|\bsizes?\b|\btools?\b|\bfunctions?\b|assistant|response_format|schema",
    re.I,
)
"""In a sentence about what is not supported of pictures these say that others are, or that it is not about them."""
_BAD_MEDIA = re.compile(
    r"(?:process|decode|load|read|invalid|unsupported|corrupt|exceed|too (?:large|big|small|many))[^.\n]{0,60}"
    r"(?:image|picture|pdf|document|base64|media)|(?:image|picture|pdf|document|media)[^.\n]{0,60}"
    r"(?:invalid|unsupported|corrupt|exceed|too (?:large|big|small|many)|could not|cannot|failed)|"
    # vLLM by its limit for a prompt, Anthropic by that for a request.
    r"(?:at most|maximum of) \d+ (?:image|pdf|document|media)|invalid[^.\n]{0,60}image_url",
    re.I,
)
_MALFORMED = re.compile(
    r"tool_use_failed|failed_generation|error parsing tool call|tool call parsing failed|failed to parse tool call|"
    r"failed to parse input at",
    re.I,
)
"""Of a call that the model wrote: Groq (console.groq.com/docs/tool-use), Ollama (github.com/ollama/ollama/issues/12884)
and llama.cpp (github.com/ggml-org/llama.cpp/issues/22072), read 2026-11-22."""


def refuses_media(failure: Failure) -> Literal["", "any", "these"]:
    """Returns whether a request, which has pictures or files in it, was refused for them: ``any`` where the model takes
    none at that server, ``these`` where it is they that are wrong."""
    if failure.kind not in ("invalid_request", "not_found", "overloaded"):
        return ""
    text = f"{failure.detail}\n{failure.message}"
    unseeing = [sentence for sentence in re.split(r"(?<=[.;!?])\s|\n", text) if _UNSEEING.search(sentence)]
    if not all(map(_ITS_KIND.search, unseeing)):
        return "any"
    return "these" if failure.kind == "invalid_request" and (unseeing or _BAD_MEDIA.search(text)) else ""


def only_files(failure: Failure) -> bool:
    """Returns whether a refusal of what was shown names files, and no pictures."""
    text = f"{failure.detail}\n{failure.message}"
    return re.search(r"\b(?:input_)?files?\b|\bpdfs?\b", text, re.I) is not None and _PICTURES.search(text) is None


def malformed_call(failure: Failure) -> bool:
    """Returns whether it was a tool call of the model's own that its server could not read."""
    if failure.kind not in ("invalid_request", "overloaded", "interrupted_stream"):
        return False
    return _MALFORMED.search(f"{failure.detail}\n{failure.message}") is not None


_TOOL_PLACES = (
    # Gemini's stand below an entry of tools of their own; Anthropic and OpenAI; FastAPI's servers (vLLM).
    re.compile(r"function_?declarations[.\[](\d+)", re.I),
    re.compile(r"\btools[.\[](\d+)(?!\S*cache_control)|['\"]tools['\"], (\d+)\b", re.I),
)
_OF_TOOLS = re.compile(
    r"grammar|schema|function_?declaration|\btools?\b.{0,60}\b(?:parameters|properties|function\b.{0,20}\bname)|"
    r"invalid (?:function|tool) (?:name|definition)",
    re.I,
)
_QUOTED_SCHEMA = re.compile(r"schema:?\s*(?=\{)", re.I)


def refused_tools(failure: Failure, tools: Sequence[ToolSchema], brought: Sequence[str]) -> list[str]:
    """Returns the names of the tools that a request was refused for: those that the refusal names by place or name, or
    whose schema it quotes. ``brought`` are the tools of others: where it only says that a schema, or the grammar made
    of one, is wrong, it means one of theirs."""
    if failure.kind != "invalid_request" or malformed_call(failure):
        return []
    text = f"{failure.detail}\n{failure.message}"
    for pattern in _TOOL_PLACES:
        places = {int(next(filter(None, found.groups()))) for found in pattern.finditer(text)}
        if named := [tool.name for place, tool in enumerate(tools) if place in places]:
            return named
    if _OF_TOOLS.search(text) is None:
        return []
    for words in (r"(?:function|tool)s?\W{1,4}%s(?![\w-])|[\"'`]%s\\?[\"'`] (?:function|tool)", r"[\"'`]%s\\?[\"'`]"):
        if named := [tool.name for tool in tools if re.search(words.replace("%s", re.escape(tool.name)), text, re.I)]:
            return named
    named = []
    for found in _QUOTED_SCHEMA.finditer(text):
        with suppress(ValueError, RecursionError):
            quoted = json.JSONDecoder().raw_decode(text, found.end())[0]
            named += [tool.name for tool in tools if tool.name not in named and _holds(tool.parameters, quoted)]
    return named or list(brought)


def _holds(schema: Any, quoted: Any) -> bool:
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    return schema == quoted or any(_holds(one, quoted) for one in inner)


def refuses_schema(failure: Failure) -> bool:
    """Returns whether a request was refused for the schema that its answer was to be held to."""
    if failure.kind != "invalid_request" or failure.status not in (400, 422, 500, 501, None):
        return False
    text = f"{failure.detail}\n{failure.message}"
    return _SCHEMA.search(text) is not None and _TOOL.search(text) is None
