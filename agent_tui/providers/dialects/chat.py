"""Chat completions: OpenAI's API and the many that took it over, their streams, and the chunks that LiteLLM makes of
the others."""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Mapping
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

from agent_tui.models.messages import Metadata
from agent_tui.models.requests import ModelSpec, Target
from agent_tui.models.usage import TokenUsage
from agent_tui.providers.dialects.endings import GRAVE, ending_of
from agent_tui.providers.dialects.record import Dialect, Fields, Wire
from agent_tui.providers.dialects.search import Annotations
from agent_tui.providers.dialects.shared import (
    HOUR_WRITES,
    Event,
    PartBuilder,
    StreamReader,
    as_arguments,
    first,
    integer,
    mapping,
    number,
    usage_of,
    with_hour,
)

AZURE_API_VERSION = "2025-02-01-preview"
"""Version of Azure's deployment addresses where neither ``extra.api_version`` nor ``AZURE_API_VERSION`` says one."""
_AZURE_V1 = re.compile(r"/openai/v1(?:/responses|/chat/completions)?$")
_AZURE_PATH = re.compile(r"(?:/openai)?(?:/v1)?(?:/responses|/chat/completions)?$")

_REFUSED_BY_REASONING = frozenset(
    {"temperature", "top_p", "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs", "logit_bias"}
)

_OPENAI_REASONING = re.compile(r"(?:^|[/.-])(?:gpt-[5-9](?!\d)|o[134](?:$|[^a-z0-9])|codex)")
_NOT_REASONING = re.compile(r"-chat|gpt-oss")


@cache
def is_openai_reasoning(model: str) -> bool:
    """True for OpenAI's models that reason: the GPT-5 family and the o-series, not the chat-tuned ones."""
    name = model.lower()
    return _OPENAI_REASONING.search(name) is not None and _NOT_REASONING.search(name) is None


def _body(fields: Fields, target: Target, dialect: Dialect) -> Metadata:
    rest = dict(fields.rest)
    if dialect.openai and is_openai_reasoning(target.model):
        rest = for_reasoning(rest)
    needs_thoughts = dialect.needs_thoughts and (rest.get("thinking") or {}).get("type") == "enabled"
    body: Metadata = {
        "model": target.model,
        "messages": [_message(message, dialect, needs_thoughts) for message in fields.messages],
        "stream": True,
    }
    if not dialect.no_usage_option:
        body["stream_options"] = {"include_usage": True}
    if fields.tools and not dialect.no_tools:
        body["tools"] = fields.tools
    return {**body, **rest, **fields.extra_body}


def for_reasoning(rest: Metadata) -> Metadata:
    """Without what OpenAI's reasoning models refuse (platform.openai.com/docs/guides/latest-model), and with their
    name for the most tokens of an answer."""
    kept = {name: value for name, value in rest.items() if name not in _REFUSED_BY_REASONING}
    if "max_tokens" in kept:
        kept["max_completion_tokens"] = kept.pop("max_tokens")
    return kept


def _message(message: Metadata, dialect: Dialect, needs_thoughts: bool) -> Metadata:
    made = {name: value for name, value in message.items() if name not in dialect.drops and value is not None}
    if made["role"] == "assistant" and not made.get("tool_calls"):
        # Thoughts alone are no message (llama.cpp: "must contain either 'content' or 'tool_calls'").
        made.setdefault("content", "")
    marker = made.pop("cache_control", None)
    if marker is not None and isinstance(made.get("content"), list):
        # Where messages take no marker of their own, the last block of one does.
        made["content"] = [*made["content"][:-1], {**made["content"][-1], "cache_control": marker}]
    if needs_thoughts and made["role"] == "assistant" and "reasoning_content" not in made:
        # Refused without: "Missing reasoning_content field in the assistant message".
        made["reasoning_content"] = " "
    return made


_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")
_NO_SIGNATURE = "mistral"
"""What LiteLLM puts where Mistral's blocks have no signature."""

_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")


OPEN, CLOSE = "<think>", "</think>"
FIELD = "think_tags"
"""The ``field`` of such a reasoning part: where it goes when it is sent back."""

_BLANK_LIMIT = 64
"""Blank characters before the tag that are still its own."""


class TagSplitter:
    """Takes the text of an answer piece by piece and gives it on as parts. ``active`` False: everything is text."""

    def __init__(self, out: PartBuilder, active: bool) -> None:
        self._out = out
        self._state = "start" if active else "text"
        self._held = ""
        self._open = ""
        out.at_end(self.interrupt)

    def feed(self, text: str) -> None:
        """The next piece of text. Nothing is held back longer than a tag may still be coming."""
        if self._state == "start":
            text, self._held = self._held + text, ""
            bare = text.lstrip()
            if len(text) - len(bare) <= _BLANK_LIMIT and len(bare) < len(OPEN) and OPEN.startswith(bare):
                self._held = text
                return
            if bare.startswith(OPEN) and len(text) - len(bare) <= _BLANK_LIMIT:
                self._state = "thinking"
                self._open, text = text[: len(text) - len(bare)] + OPEN, bare[len(OPEN) :]
                self._out.add(self._out.run("reasoning"), "reasoning", "", {"field": FIELD, "open": self._open})
            else:
                self._state = "text"
        if self._state == "thinking":
            text = self._thought(self._held + text)
        if text and self._state == "text":
            self._out.add(self._out.run("text"), "text", text)

    def interrupt(self) -> None:
        """Something else than text comes, or nothing any more: what was held back is as it is."""
        held, self._held = self._held, ""
        if self._state == "thinking" and held:
            self._out.add(self._out.run("reasoning"), "reasoning", held)
        elif held:
            self._out.add(self._out.run("text"), "text", held)
        self._state = "text"

    def _thought(self, text: str) -> str:
        """Gives on what is thought; the rest, behind the closing tag, is given back."""
        self._held = ""
        thought, tag, rest = text.partition(CLOSE)
        if not tag:
            keep = next((n for n in range(min(len(CLOSE) - 1, len(text)), 0, -1) if CLOSE.startswith(text[-n:])), 0)
            thought, self._held = text[: len(text) - keep], text[len(text) - keep :]
        key = self._out.run("reasoning")
        self._out.add(key, "reasoning", thought)
        if tag:
            self._out.add(key, "reasoning", "", {"field": FIELD, "open": self._open, "close": CLOSE})
            self._out.close(key)
            self._state = "text"
        return rest


def with_tags(text: str, metadata: Mapping[str, object]) -> str:
    """Thoughts as they stood in the text they came from."""
    return f"{metadata.get('open') or ''}{text}{metadata.get('close') or ''}"


def is_tagged(metadata: Metadata | None) -> bool:
    return (metadata or {}).get("field") == FIELD


class ChatStream(StreamReader):
    """Has no blocks: a change of kind ends a part. Reasoning comes as ``reasoning_content``, ``reasoning``, content
    blocks of type ``thinking`` (Mistral), ``reasoning_details`` (OpenRouter), ``thinking_blocks`` and
    ``reasoning_items`` (LiteLLM's own)."""

    def __init__(self, out: PartBuilder, tags: bool = False) -> None:
        super().__init__(out, tags)
        self._tags = TagSplitter(out, tags)
        self._calls: dict[int, Hashable] = {}
        self._ids: dict[int, str] = {}
        self._names: dict[int, str] = {}
        self._made = 0
        self._details: list[Metadata] = []
        self._reasoning: Hashable | None = None
        self._annotations = Annotations(out)

    @staticmethod
    def knows(event: Event) -> bool:
        return "choices" in event or event.get("object") == "chat.completion.chunk" or "x_groq" in event

    def event(self, event: Event) -> None:
        self._usage(event.get("usage"))
        self._usage(groq.get("usage") if isinstance(groq := event.get("x_groq"), dict) else None)
        for choice in (event.get("choices") or [])[:1]:
            self._usage(choice.get("usage"))
            self._delta(choice.get("delta") or choice.get("message") or {})
            self._ends(choice)

    def _ends(self, choice: dict[str, Any]) -> None:
        """A gateway's reason is the nearest one that OpenAI has; the provider's own may say more."""
        if (error := choice.get("error")) and self.out.error is None:
            self.out.error = error if isinstance(error, dict) else {"message": str(error)}
        reason, own = choice.get("finish_reason"), choice.get("native_finish_reason")
        if ending_of(reason) is None:
            return
        self._tags.interrupt()
        if ending_of(own) in GRAVE:
            self.out.ends(own)
        self.out.ends(reason)

    def _usage(self, usage: Any) -> None:
        if isinstance(usage, dict) and any(usage.get(name) for name in _COUNTS):
            self.out.usage.clear()
            self.out.usage.update(usage)

    def _delta(self, delta: dict[str, Any]) -> None:
        self._think(delta)
        self._annotations.said(delta.get("annotations"))
        content = delta.get("content")
        if isinstance(content, str):
            self._text(content, delta)
        elif isinstance(content, list):
            for block in content:
                self._block(block)
        if refusal := delta.get("refusal"):
            self._text(str(refusal), {})
            self.out.ends("refusal")
        for call in delta.get("tool_calls") or []:
            if isinstance(call, dict):
                self._call(call)
        if isinstance(function := delta.get("function_call"), dict) and not delta.get("tool_calls"):
            # The form before tool calls; it knows one call and no ids.
            self._call({"index": 0, "function": function})

    def _text(self, text: str, delta: dict[str, Any]) -> None:
        signatures = (delta.get("provider_specific_fields") or {}).get("thought_signatures")
        signature = signatures[0] if signatures and not delta.get("tool_calls") else _extra_signature(delta)
        if signature:
            self._tags.interrupt()
            self.out.add(self.out.run("text"), "text", text, {"thought_signature": signature})
        elif text:
            self._tags.feed(text)

    def _block(self, block: Any) -> None:
        if isinstance(block, str):
            self._text(block, {})
        elif isinstance(block, dict) and block.get("type") == "thinking":
            inner = block.get("thinking")
            pieces = inner if isinstance(inner, list) else [{"text": inner}]
            for piece in pieces:
                self._reason(str(piece.get("text") or "") if isinstance(piece, dict) else str(piece), "content")
            if signature := block.get("signature"):
                self.out.add(self.out.run("reasoning"), "reasoning", "", {"type": "thinking", "signature": signature})
        elif isinstance(block, dict) and isinstance(block.get("text"), str):
            self._text(block["text"], {})

    def _think(self, delta: dict[str, Any]) -> None:
        items = delta.get("reasoning_items") or ()
        for item in items:
            self._item(item)
        if blocks := delta.get("thinking_blocks"):
            for block in blocks:
                self._thinking_block(block)
            return
        others = delta.get("provider_specific_fields") or {}
        details = delta.get("reasoning_details") or others.get("reasoning_details")
        field = next((f for f in _FIELDS if isinstance(delta.get(f), str)), None)
        text = delta[field] if field else ""
        if details and not text:
            text = "".join(str(d.get("text") or d.get("summary") or "") for d in details if isinstance(d, dict))
        if text and not items:
            self._reason(text, field)
        if details:
            self._merge(details)
        if opaque := delta.get("reasoning_opaque"):
            key = self._reasoning if self._reasoning is not None else self.out.run("reasoning")
            self.out.add(key, "reasoning", "", {**(self.out.metadata_of(key) or {}), "reasoning_opaque": opaque})

    def _reason(self, text: str, field: str | None) -> None:
        self._tags.interrupt()
        key = self.out.run("reasoning")
        if not text:
            return
        first = not self.out.has(key) and field not in (None, "reasoning_content")
        # The field it came in is the field it goes back in.
        self.out.add(key, "reasoning", text, {"field": field} if first else None)
        if key != self._reasoning:
            self._details = []
        self._reasoning = key

    def _merge(self, details: list[Any]) -> None:
        """Streamed pieces of one detail have one index and type: texts are joined, other fields replaced. Encrypted
        data come whole, and text after a signature begins the next one."""
        if self._reasoning is None or not self.out.has(self._reasoning):
            self._reasoning = self.out.run("reasoning")
        key = self._reasoning
        for detail in filter(lambda detail: isinstance(detail, dict), details):
            known = next((d for d in reversed(self._details) if _same_detail(d, detail)), None)
            if known is not None and detail.get("data") and detail["data"] == known.get("data"):
                continue
            if known is None or detail.get("data") or (known.get("signature") and detail.get("text")):
                self._details.append({k: v for k, v in detail.items() if v is not None})
                continue
            for name, value in detail.items():
                if name in ("text", "summary") and isinstance(value, str) and isinstance(known.get(name), str):
                    known[name] += value
                elif value is not None:
                    known[name] = value
        old = self.out.metadata_of(key) or {}
        self.out.add(key, "reasoning", "", {**old, "reasoning_details": [dict(d) for d in self._details]})

    def _thinking_block(self, block: dict[str, Any]) -> None:
        """LiteLLM's form of Anthropic's blocks: text in pieces, the signature last, sometimes with all text again."""
        if block.get("type") == "redacted_thinking":
            key = self.out.new_run()
            self.out.add(key, "reasoning", "", {"type": "redacted_thinking", "data": block.get("data") or ""})
            self.out.close(key)
            return
        key = self.out.run("reasoning")
        text, signature = str(block.get("thinking") or ""), block.get("signature")
        signature = None if signature == _NO_SIGNATURE else signature
        if text and not (signature and text == self.out.text_of(key)):
            self.out.add(key, "reasoning", text)
        if signature:
            self.out.add(key, "reasoning", "", {"type": "thinking", "signature": signature})
            self.out.close(key)

    def _item(self, item: dict[str, Any]) -> None:
        kept = {k: v for k, v in item.items() if v is not None and k != "status"}
        key = self._reasoning if self._reasoning is not None else self.out.new_run()
        self.out.add(key, "reasoning", "", {"type": "reasoning", **kept})
        self._reasoning = None

    def _call(self, call: dict[str, Any]) -> None:
        function = call.get("function") or {}
        index = call.get("index")
        call_id = call.get("id") or None
        if not (call_id or function.get("name") or function.get("arguments") or index in self._calls):
            # The field without a word in it is no call.
            return
        self._tags.interrupt()
        if index is None:
            index = self._made if call_id and call_id not in self._ids.values() else max(self._made - 1, 0)
        fields = {**(function.get("provider_specific_fields") or {}), **(call.get("provider_specific_fields") or {})}
        signature = fields.get("thought_signature") or _extra_signature(call)
        metadata: Metadata | None = {"thought_signature": signature} if signature else None
        name = str(function.get("name") or "")
        new = index not in self._calls or bool(call_id and self._ids.get(index) not in (None, call_id))
        if new:
            # Some servers number every call 0; a new id is a new call.
            key = self._calls[index] = ("call", self._made)
            self._made += 1
            self.out.run("tool_call")
            self.out.call(key, call_id, name, metadata)
            self._ids.pop(index, None)
            self._names[index] = name
        else:
            later_id = call_id if index not in self._ids else None
            later_name = name if not self._names[index] else None
            if later_id or later_name:
                self.out.amend(self._calls[index], later_id, later_name)
                self._names[index] = later_name or self._names[index]
            if metadata:
                self.out.add(self._calls[index], "tool_call", "", metadata)
        if call_id:
            self._ids[index] = call_id
        self.out.add(self._calls[index], "tool_call", as_arguments(function.get("arguments")))


def _same_detail(known: Metadata, new: Metadata) -> bool:
    same = known.get("type") == new.get("type") and known.get("index") == new.get("index")
    return same and not (known.get("id") and new.get("id") and known["id"] != new["id"])


def _extra_signature(value: dict[str, Any]) -> str | None:
    """Returns the thought signature from where Google's OpenAI-compatible endpoint puts it."""
    signature = ((value.get("extra_content") or {}).get("google") or {}).get("thought_signature")
    return signature if isinstance(signature, str) else None


def read_usage(raw: Mapping[str, Any], hidden_thoughts: bool = False) -> TokenUsage:
    """``hidden_thoughts``: of a model that never shows its thoughts whole."""
    prompts, completions = mapping(raw.get("prompt_tokens_details")), mapping(raw.get("completion_tokens_details"))
    read = first(
        prompts.get("cached_tokens"),
        raw.get("cache_read_input_tokens"),
        raw.get("prompt_cache_hit_tokens"),
        raw.get("cached_tokens"),
    )
    write = first(
        prompts.get("cache_write_tokens"),
        prompts.get("cache_creation_tokens"),
        raw.get("cache_creation_input_tokens"),
    )
    usage = openai_usage(
        number(raw.get("prompt_tokens")),
        number(raw.get("completion_tokens")),
        integer(raw.get("total_tokens")),
        first(completions.get("reasoning_tokens"), raw.get("reasoning_tokens")),
        read,
        write,
        hidden_thoughts,
    )
    lives = mapping(prompts.get("cache_creation_token_details")) or mapping(raw.get("cache_creation"))
    return with_hour(usage, lives.get(HOUR_WRITES))


_CACHE_UNIT = 64
"""Tokens that caches are read by, or a multiple of them."""


def openai_usage(
    prompt: int,
    completion: int,
    total: int | None,
    reasoning: int | None,
    read: int | None,
    write: int | None,
    hidden_thoughts: bool = False,
) -> TokenUsage:
    """OpenAI's form. The total is input plus output: what it has beyond prompt and completion was left out of one of
    them, and where it has no more, both are whole, whatever their parts add up to (a read and a write may be of the
    same tokens). Only a part that is larger than its whole shows that it stands beside it.

    What was left out is the reasoning or the cached tokens where it is as many (xAI, gateways). Any other rest is
    input where tokens were cached, or where it could be whole units of a cache that is not told of, else thoughts that
    are not told of (Gemini at Google's OpenAI-compatible endpoint); of a model that hides them always.
    """
    thought, cached = reasoning or 0, (read or 0) + (write or 0)
    if (rest := total - prompt - completion if total else 0) > 0:
        if rest == thought:
            completion += thought
        elif rest == thought + cached:
            completion, prompt = completion + thought, prompt + cached
        elif rest == cached or (not hidden_thoughts and (cached or rest % _CACHE_UNIT == 0)):
            prompt += rest
        else:
            reasoning = (thought if thought <= completion else 0) + rest
            completion += rest
    else:
        if thought > completion:
            completion += thought
        if prompt > 0 and (max(read or 0, write or 0) > prompt or (not total and cached > prompt)):
            prompt += cached
    return usage_of(prompt, completion, reasoning, read, write)


def url(path: str, spec: ModelSpec, target: Target, dialect: Dialect) -> tuple[str, str | None]:
    """Path and query of a call to one of OpenAI's two APIs."""
    if dialect.deployments:
        return _azure(path, spec, target)
    path = path.removesuffix("/chat/completions").removesuffix("/responses") or dialect.host_path
    return path + ("/responses" if target.api == "responses" else "/chat/completions"), None


def _azure(path: str, spec: ModelSpec, target: Target) -> tuple[str, str]:
    """Azure's v1 API where it is asked for, else the address of a deployment, whose name is the model's."""
    configured = spec.extra.get("api_version") or os.environ.get("AZURE_API_VERSION")
    version = str(configured) if configured else ""
    bare, preview = _AZURE_PATH.sub("", path), "api-version=preview" if version == "preview" else ""
    if target.api == "responses":
        return f"{bare}/openai/v1/responses", preview
    if version in ("v1", "latest", "preview") or _AZURE_V1.search(path):
        return f"{bare}/openai/v1/chat/completions", preview
    query = urlencode({"api-version": version or AZURE_API_VERSION})
    return f"{bare}/openai/deployments/{quote(target.model)}/chat/completions", query


def litellm_path(path: str, target: Target, dialect: Dialect) -> str:
    """LiteLLM appends ``/chat/completions`` or ``/responses``, ``/openai/…`` to Azure's."""
    if dialect.deployments:
        return _AZURE_PATH.sub("", path)
    return path.removesuffix("/responses" if target.api == "responses" else "/chat/completions") or dialect.host_path


WIRE = Wire(
    _body,
    url,
    litellm_path,
    ChatStream,
    chooses_none=True,
    # llama.cpp and TGI take their own names, too, Ollama its options, SGLang its own group.
    limits=("n_predict", "max_new_tokens", "num_predict", "options.num_predict", "sampling_params.max_new_tokens"),
)
