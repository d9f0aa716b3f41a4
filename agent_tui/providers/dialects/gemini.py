"""Google's ``generateContent`` (ai.google.dev/api/generate-content), at the Gemini API and at Vertex AI, and the Gemini
and Gemma models."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from agent_tui.models.messages import (
    AttachmentPart,
    Metadata,
    Part,
    ReasoningPart,
    SearchPart,
    TextPart,
    ToolCallPart,
)
from agent_tui.models.requests import Effort, ModelRequest, ModelSpec, Target
from agent_tui.models.search import search_item
from agent_tui.models.usage import Limits, TokenUsage
from agent_tui.providers.dialects.conversation import (
    AssistantTurn,
    Result,
    Said,
    runs,
    thought_signature,
)
from agent_tui.providers.dialects.outgoing import OutgoingRequest
from agent_tui.providers.dialects.parts import Event, Kind, PartBuilder, StreamReader, as_arguments
from agent_tui.providers.dialects.record import (
    BUT_BOUNDS,
    ONE_OF,
    SHAPE,
    Caching,
    Dialect,
    ExactCount,
    ImageLimits,
    ModelFamily,
    RetentionRule,
    Schemas,
    Source,
    Subset,
    WebSearch,
    Wire,
)
from agent_tui.providers.dialects.repeats import RunningText
from agent_tui.providers.dialects.search import Grounding, google_part, is_sendable, queries_of
from agent_tui.providers.dialects.shared import (
    Thinking,
    budget_below,
    integer,
    mapping,
    number,
    usage_of,
    with_budget,
)
from agent_tui.text.clean import encodable

OPEN = Subset(
    (SHAPE | {"minItems", "maxItems", "minimum", "maximum", "format", "prefixItems"}) - {"const"},
    BUT_BOUNDS,
    ONE_OF,
    closed=False,
)
"""JSON Schema support of the page on structured output."""
HAS_SCHEMAS = r"gemini-(?:[3-9]|\d\d)(?!\d)"
"""Structured output with tools: "Gemini 3 series"; older: "Function calling with a response mime type:
'application/json' is unsupported"."""


@cache
def gemini_major(model: str) -> int | None:
    """Returns the first digit of a Gemini model's version, None for other models."""
    match = re.search(r"gemini-(\d+)", model.lower())
    return int(match[1]) if match else None


GEMINI = ModelFamily(
    "gemini",
    re.compile(r"gemini|gemma"),
    maker="vertex_ai",
    thinking="budget or level",
    thought_signatures=True,
    think_tags=False,
    # Gemma's templates.
    alternates=True,
    named_results=True,
    assumed=MappingProxyType({"gemini": Limits(1_048_576, None, 65_536, "assumed")}),
    images="tiles of 768",
    pdf_page=258,
    source=Source("ai.google.dev/gemini-api/docs/models", "2026-11-21"),
)
RETENTION = (
    RetentionRule("gemini 2.5", (0.0, 0.0), "gemini", re.compile(r"^(?!.*2\.0).*gemini-2(?!\d)", re.DOTALL)),
    RetentionRule("gemini", (1.0, 0.0), "gemini"),
)


def thinking(request: ModelRequest, effort: Effort, model: str, known: bool) -> Thinking:
    """Asks a model for thinking. ``known``: it is known to think."""
    major = gemini_major(model) or 0
    if major < 2 or not (known or major >= 3 or "2.5" in model):
        return Thinking(off=effort == "off")
    if major >= 3:
        # Pro models know no ``minimal`` (ai.google.dev/gemini-api/docs/thinking).
        least = "low" if "pro" in model else "minimal"
        return Thinking({"reasoning_effort": least if effort == "off" else effort}, effort == "off")
    if effort == "off":
        # 2.5 Pro cannot be switched off; 128 is the least it takes (ai.google.dev/gemini-api/docs/thinking).
        smallest = 128 if "pro" in model else 0
        return Thinking({"thinking": {"type": "enabled", "budget_tokens": smallest}}, True)
    return with_budget(budget_below(effort, request.max_output))


NO_SIGNATURE = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
"""Stands in for the signature of a call that another model made: Gemini 3 refuses the first call of an answer without
one (ai.google.dev/gemini-api/docs/thought-signatures). It is base64 of ``skip_thought_signature_validator``."""

_PLAIN_SCHEMA = frozenset(
    {"type", "description", "properties", "required", "enum", "items", "title", "nullable", "format", "default"}
    | {"minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "pattern", "propertyOrdering"}
)
_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object"})
_CONFIG = {
    "max_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "stop": "stopSequences",
    "seed": "seed",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
}


def _body(made: OutgoingRequest) -> Metadata:
    """A body of ``models/NAME:streamGenerateContent``."""
    body: Metadata = {"contents": _contents(made)}
    if made.system:
        body["systemInstruction"] = {"parts": [{"text": "\n\n".join(made.system)}]}
    if tools := made.tools:
        declared = [_tool(tool["function"]) for tool in tools if "function" in tool]
        own = [tool for tool in tools if "function" not in tool]
        body["tools"] = [*([{"functionDeclarations": declared}] if declared else []), *own]
        if own:
            # Else the calls that run there are not told, and cannot go back (ai.google.dev/gemini-api/docs/
            # tool-combination, read 2026-11-27).
            body["toolConfig"] = {"includeServerSideToolInvocations": True}
    config, rest = _config(made.rest)
    if config:
        body["generationConfig"] = config
    return {**body, **rest, **made.extra_body}


def _contents(made: OutgoingRequest) -> list[Metadata]:
    contents: list[Metadata] = []
    strict = (gemini_major(made.target.model) or 0) >= 3
    for turn in made.turns():
        if isinstance(turn, Result):
            # Results of parallel calls belong in one content; a question after them stands alone.
            _add(contents, "user", [_result(turn, strict)])
        elif isinstance(turn, AssistantTurn):
            answer = [part for run in runs(turn.message.parts) for part in _answer(turn, run, made, strict)]
            _add(contents, "model", answer)
        else:
            _add(contents, "user", _said(turn))
    first = contents[0]["role"] if contents else None
    if (beginning := made.beginning(first)) is not None:
        contents.insert(0, {"role": "user", "parts": [{"text": beginning}]})
    return contents


def _add(contents: list[Metadata], role: str, parts: list[Metadata]) -> None:
    """Adds parts to the last content where that is of the same role and kind: results, or anything else."""
    last = contents[-1] if contents else None
    kinds = {"functionResponse" in part[-1] for part in (parts, last["parts"] if last else parts) if part}
    if last is not None and last["role"] == role and len(kinds) == 1:
        last["parts"].extend(parts)
    elif parts:
        contents.append({"role": role, "parts": parts})


def _said(said: Said) -> list[Metadata]:
    parts = [{"text": one} if isinstance(one, str) else _attached(one) for one in said]
    # Pictures alone are refused by some models.
    return parts if any("text" in part for part in parts) else [*parts, {"text": " "}]


def _attached(part: AttachmentPart) -> Metadata:
    return {"inlineData": {"mimeType": part.media_type, "data": part.data}}


def _answer(
    answer: AssistantTurn, run: Sequence[tuple[int, Part]], made: OutgoingRequest, strict: bool
) -> list[Metadata]:
    """One run of an answer's parts: thoughts, text, calls. A signature of its thoughts goes with its text, or stands on
    an empty one."""
    plan, message_id = made.plan, answer.message.id
    own = plan.same_origin(message_id)
    items: list[Metadata] = []
    calls: list[Metadata] = []
    thoughts = text = signature = ""
    for n, part in run:
        signed = thought_signature(part) if own else ""
        if isinstance(part, ToolCallPart):
            call = answer.calls[n]
            function = {"name": call.name, "args": json.loads(call.arguments)}
            calls.append({"functionCall": {**function, "id": call.id} if strict else function})
            if signed or (strict and len(calls) == 1 and not signature):
                calls[-1]["thoughtSignature"] = signed or NO_SIGNATURE
        elif isinstance(part, TextPart):
            text, signature = encodable(part.text), signed or signature
        elif not plan.resent(message_id, n):
            continue
        elif isinstance(part, ReasoningPart):
            thoughts, signature = thoughts + encodable(part.text), signed or signature
        elif (
            isinstance(part, SearchPart) and (item := search_item(part)) is not None and is_sendable(item, google=True)
        ):
            items.append(item)
    parts = [*items, *([{"thought": True, "text": thoughts}] if thoughts else [])]
    if text.strip() or signature:
        parts.append({"text": text, **({"thoughtSignature": signature} if signature else {})})
    return [*parts, *calls]


def _result(result: Result, strict: bool) -> Metadata:
    response: Metadata = {"name": result.call.name, "response": {"content": result.text}}
    if strict:
        response["id"] = result.call.id
    return {"functionResponse": response}


def _tool(function: Metadata) -> Metadata:
    made: Metadata = {"name": function["name"]}
    if function.get("description"):
        made["description"] = function["description"]
    schema = function["parameters"]
    if not schema.get("properties"):
        # An object without properties is refused; no parameters at all is right for it.
        return made
    made["parameters" if _plain(schema) else "parametersJsonSchema"] = schema
    return made


def _plain(schema: Any) -> bool:
    """Returns whether a schema keeps to Gemini's own subset of OpenAPI. Others go in the field for any JSON Schema,
    which newer models take whole."""
    if not isinstance(schema, dict) or not _PLAIN_SCHEMA.issuperset(schema) or not _is_type(schema.get("type")):
        return False
    properties = schema.get("properties") or {}
    if ("enum" in schema and schema["type"] != "string") or not properties.keys() >= {*schema.get("required", ())}:
        return False
    below = [*properties.values(), *([schema["items"]] if "items" in schema else [])]
    return all(map(_plain, below))


def _is_type(kind: Any) -> bool:
    return isinstance(kind, str) and kind in _TYPES


def _config(rest: Metadata) -> tuple[Metadata, Metadata]:
    """``generationConfig``, and what is no part of it."""
    config: Metadata = {_CONFIG[name]: rest.pop(name) for name in list(rest) if name in _CONFIG}
    if isinstance(config.get("stopSequences"), str):
        config["stopSequences"] = [config["stopSequences"]]
    effort, thinking = rest.pop("reasoning_effort", None), rest.pop("thinking", None)
    if effort is not None:
        config["thinkingConfig"] = {"thinkingLevel": effort, "includeThoughts": True}
    elif isinstance(thinking, dict):
        budget = thinking.get("budget_tokens", 0)
        config["thinkingConfig"] = {"thinkingBudget": budget, **({"includeThoughts": True} if budget else {})}
    wanted = rest.get("response_format")
    if isinstance(wanted, dict) and isinstance(form := wanted.get("json_schema"), dict):
        del rest["response_format"]
        config |= {"responseMimeType": "application/json", "responseJsonSchema": form.get("schema")}
    return config, rest


class GeminiStream(StreamReader):
    """Parts without numbers: neighbours of one kind are one part, which has at most one signature. A signature stays
    on the part that carried it: thought, text (possibly empty) or function call."""

    def __init__(self, out: PartBuilder, tags: bool = False) -> None:
        super().__init__(out, tags)
        self._texts: dict[Kind, RunningText] = {"text": RunningText(), "reasoning": RunningText()}
        self._signed: set[tuple[str, str, str]] = set()
        """Calls that came with a signature."""
        self._grounding = Grounding(out)
        out.at_end(self._settle)

    @staticmethod
    def knows(event: Event) -> bool:
        body = event.get("response") if isinstance(event.get("response"), dict) else event
        return isinstance(body, dict) and any(k in body for k in ("candidates", "usageMetadata", "promptFeedback"))

    def event(self, event: Event) -> None:
        body: dict[str, Any] = event["response"] if isinstance(event.get("response"), dict) else event
        self.out.report(body.get("usageMetadata"))
        if blocked := (feedback := mapping(body.get("promptFeedback"))).get("blockReason"):
            self.out.ends(blocked, "refused", feedback.get("blockReasonMessage"))
        for candidate in (body.get("candidates") or [])[:1]:
            reason = candidate.get("finishReason")
            parts = [part for part in mapping(candidate.get("content")).get("parts") or [] if isinstance(part, dict)]
            calls = [mapping(part["functionCall"]) for part in parts if part.get("functionCall")]
            repeated = bool(reason) and self.out.repeats_calls(
                (None, str(call.get("name") or ""), as_arguments(call.get("args") or {})) for call in calls
            )
            for part in parts:
                if not (repeated and part.get("functionCall")):
                    self._part(part, bool(reason))
            self._grounding.said(candidate.get("groundingMetadata"))
            self.out.ends(candidate.get("finishReason"), told=candidate.get("finishMessage"))

    def _part(self, part: dict[str, Any], last: bool) -> None:
        if (search := google_part(part)) is not None:
            self._settle()
            self.out.hidden_calls = True
            self.out.searches += len(queries_of(mapping(part.get("toolCall"))))
            self._grounding.last = search["id"]
            self.out.note(self.out.begin("search"), search)
            return
        signature = part.get("thoughtSignature")
        metadata: Metadata | None = {"thought_signature": signature} if signature else None
        if call := part.get("functionCall"):
            self._settle()
            self._call(call, metadata)
        elif "text" in part or signature:
            kind: Kind = "reasoning" if part.get("thought") else "text"
            text = self._texts[kind].add(part.get("text") or "", last)
            if not text and metadata is None:
                return
            if (newest := self.out.newest) is not None and newest.kind != kind:
                self._settle()
            run = self.out.run(kind)
            if metadata is not None and run.metadata not in (None, metadata):
                run = self.out.begin(kind)
            self.out.append(run, text, metadata)
        elif "executableCode" in part or "codeExecutionResult" in part:
            self.out.hidden_calls = True

    def _call(self, call: Mapping[str, Any], metadata: Metadata | None) -> None:
        """A call comes whole. With an id that is known, or with the signature too, it is the same once more; without
        either it is another."""
        given, name = call.get("id"), str(call.get("name") or "")
        arguments = as_arguments(call.get("args") or {})
        if metadata is not None:
            signed = name, arguments, str(metadata)
            if signed in self._signed:
                return
            self._signed.add(signed)
        if given:
            metadata = {**(metadata or {}), "id": given}
        part = self.out.call(arguments, call_id=given, name=name, metadata=metadata, begins=True)
        self.out.close(part)

    def _settle(self) -> None:
        for kind, said in self._texts.items():
            if held := said.settle():
                self.out.append(self.out.run(kind), held)


def read_usage(raw: Mapping[str, Any]) -> TokenUsage:
    """The total is prompt, prompts of server-side tools, candidates and thoughts ("The sum of …" in the reference of
    ``GenerateContentResponse``); cached content is inside the prompt. Some Vertex versions count the thoughts among the
    candidates, others do not say them: what the total has beside the prompt is output."""
    prompt = number(raw.get("promptTokenCount")) + number(raw.get("toolUsePromptTokenCount"))
    candidates, thoughts = number(raw.get("candidatesTokenCount")), integer(raw.get("thoughtsTokenCount"))
    output, rest = candidates + (thoughts or 0), number(raw.get("totalTokenCount")) - prompt
    if rest > output or rest == candidates >= (thoughts or 0):
        output = rest
    if thoughts is None and output > candidates > 0:
        thoughts = output - candidates
    return usage_of(prompt, output, thoughts, integer(raw.get("cachedContentTokenCount")), None)


def _url(path: str, spec: ModelSpec, target: Target, dialect: Dialect) -> tuple[str, str | None]:
    path = (path.partition("/models")[0] or dialect.host_path) + f"/models/{quote(target.model)}"
    return f"{path}:streamGenerateContent", "alt=sse"


WIRE = Wire(
    _body,
    _url,
    GeminiStream,
    count=ExactCount(
        ("contents", "systemInstruction", "tools", "toolConfig", "generationConfig"),
        lambda path: f"{path.rpartition(':')[0]}:countTokens",
        lambda body, target: {"generateContentRequest": {"model": f"models/{target.model}", **body}},
        source=Source("ai.google.dev/api/tokens", "2026-11-21"),
    ),
    limits=tuple(
        # Google reads its fields in either spelling.
        f"{config}.{name}"
        for config in ("generationConfig", "generation_config")
        for name in ("maxOutputTokens", "max_output_tokens")
    ),
)
_VERTEX = Dialect(
    "vertex_ai",
    credentials_elsewhere=True,
    needs_package="google-auth; for Claude google-cloud-aiplatform",
    call_ids="plain",
    tool_names="google",
    cache="markers",
    merging=True,
    thinking_blocks=True,
    own_signatures=True,
    # Vertex counts the thoughts of 2.5 in a tool loop, and not what wraps a tool's result.
    retains=MappingProxyType({"gemini 2.5": (1.0, 0.0)}),
    framing=MappingProxyType({"gemini": "gemini-vertex"}),
    # 7 MB an inline file.
    images=ImageLimits(
        7_000_000,
        None,
        count=3_000,
        total=18_000_000,
        source=Source("cloud.google.com/vertex-ai/generative-ai/docs/multimodal/image-understanding", "2026-11-21"),
    ),
)
RECORDS = (
    Dialect(
        "gemini",
        WIRE,
        "https://generativelanguage.googleapis.com/v1beta",
        "/v1beta",
        base_variables=("GEMINI_API_BASE",),
        auth="x-goog-api-key",
        counts=True,
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        key_begins=("AIza",),
        default_model="gemini-2.5-pro",
        tool_names="google",
        cache="markers",
        merging=True,
        thinking_blocks=True,
        own_signatures=True,
        # Older ones refuse it beside tools that are called here. A query has the price, and nothing is known of what is
        # left of the 5,000 a month that are free.
        search=WebSearch(
            MappingProxyType({"googleSearch": {}}),
            price=0.014,
            models=re.compile(HAS_SCHEMAS),
            source=Source("ai.google.dev/gemini-api/docs/tool-combination, .../pricing", "2026-11-27"),
        ),
        schemas=Schemas(
            "always",
            OPEN,
            re.compile(HAS_SCHEMAS),
            otherwise="without tools",
            source=Source("ai.google.dev/gemini-api/docs/structured-output", "2026-11-21"),
        ),
        # 20 MB a request with inline data.
        images=ImageLimits(
            18_000_000,
            None,
            count=3_600,
            total=18_000_000,
            source=Source("ai.google.dev/gemini-api/docs/image-understanding", "2026-11-21"),
        ),
        # By itself, without any promise; how long is not said. A usage without the number of cached tokens has none.
        caching=Caching(
            minimum=4_096,
            minima=((re.compile(r"gemini-2\.5"), 2_048),),
            zero_unsaid=True,
            source=Source("ai.google.dev/gemini-api/docs/caching", "2026-11-22"),
        ),
    ),
    _VERTEX,
    replace(_VERTEX, name="vertex_ai_beta"),
)
