"""Chat completions: OpenAI's API and the many that took it over, their streams, and the chunks that LiteLLM makes of
the others."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

from agent_tui.models.messages import (
    AttachmentPart,
    Metadata,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
)
from agent_tui.models.requests import ModelSpec, SentMessage, Target
from agent_tui.models.usage import TokenUsage
from agent_tui.providers.dialects.claude import mark_fixed, marked_places, marker
from agent_tui.providers.dialects.conversation import (
    AssistantTurn,
    Result,
    Said,
    alternating,
    data_url,
    objects_in,
    said_in,
    say_system,
    text_in,
    thought_signature,
)
from agent_tui.providers.dialects.endings import GRAVE, ending_of
from agent_tui.providers.dialects.outgoing import OutgoingRequest
from agent_tui.providers.dialects.parts import Event, OpenPart, PartBuilder, StreamReader, as_arguments, place_of
from agent_tui.providers.dialects.record import Dialect, Wire
from agent_tui.providers.dialects.repeats import SURE, RunningText
from agent_tui.providers.dialects.search import Annotations
from agent_tui.providers.dialects.shared import HOUR_WRITES, first, integer, mapping, number, usage_of, with_hour
from agent_tui.providers.dialects.thoughts import DETAILS, TagSplitter, Thoughts, is_tagged, with_tags
from agent_tui.text.clean import encodable

AZURE_API_VERSION = "2025-02-01-preview"
"""Version of Azure's deployment addresses where neither ``extra.api_version`` nor ``AZURE_API_VERSION`` says one."""
_AZURE_V1 = re.compile(r"/openai/v1(?:/responses|/chat/completions)?$")
AZURE_PATH = re.compile(r"(?:/openai)?(?:/v1)?(?:/responses|/chat/completions)?$")

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


def _body(made: OutgoingRequest) -> Metadata:
    rest, tools, dialect = made.rest, made.tools, made.dialect
    if dialect.openai and is_openai_reasoning(made.target.model):
        rest = for_reasoning(rest)
    needs_thoughts = dialect.needs_thoughts and (rest.get("thinking") or {}).get("type") == "enabled"
    body: Metadata = {
        "model": made.target.model,
        "messages": [_message(message, dialect, needs_thoughts) for message in chat_messages(made, tools)],
        "stream": True,
    }
    if not dialect.no_usage_option:
        body["stream_options"] = {"include_usage": True}
    if tools and not dialect.no_tools:
        body["tools"] = tools
    return {**body, **rest, **made.extra_body}


Answers = Callable[[AssistantTurn, OutgoingRequest], Iterable[Metadata]]
"""Makes the messages of an answer."""


def chat_messages(made: OutgoingRequest, tools: list[Metadata], answers: Answers | None = None) -> list[Metadata]:
    """The messages of a conversation, the system prompt before them. ``tools`` may get the cache marker of what stands
    before all messages."""
    make = answers or _answers
    turns = _turns(made, made.items, make)
    system: list[Metadata] = [{"type": "text", "text": text} for text in made.system]
    if made.marks is not None and made.whole:
        marks = made.marks
        mark_fixed(system, tools, marks)
        sent = len(_turns(made, made.items[: marks.sent_before], make)) if marks.sent_before else 0
        for place in marked_places([t["role"] for t in turns], marks.starts_with_summary, marks.forgets, sent):
            turn = turns[place]
            if turn["role"] == "tool":
                turn |= marker(marks)
            else:
                turn["content"][-1] = {**turn["content"][-1], **marker(marks)}
    if (beginning := made.beginning(turns[0]["role"] if turns else None)) is not None:
        turns.insert(0, {"role": "user", "content": _blocks(beginning) if made.marked else beginning})
    if system:
        turns.insert(0, {"role": "system", "content": system if made.marked else "\n\n".join(made.system)})
    if made.rule.needs("reasoning everywhere"):
        _add_thoughts(turns)
    if made.rule.needs("system as text"):
        say_system(turns, _joined)
    return turns


def _turns(made: OutgoingRequest, items: Sequence[SentMessage], answers: Answers) -> list[Metadata]:
    messages: list[Metadata] = []
    for turn in made.turns(items):
        if isinstance(turn, Result):
            messages.append(_result(turn, made))
        elif isinstance(turn, AssistantTurn):
            messages.extend(answers(turn, made))
        else:
            text = "" if made.marked or len(turn) > 1 else turn[0]
            messages.append({"role": "user", "content": text if text and isinstance(text, str) else _as_blocks(turn)})
    return alternating(messages, _joined) if made.family.alternates and not made.dialect.merging else messages


def _add_thoughts(messages: Sequence[Metadata]) -> None:
    """Gives every answer the field that thinking models want with each: its own thoughts where they go back under
    another name, else a blank, which all of them take."""
    for message in messages:
        if message["role"] == "assistant" and not message.get("reasoning_content"):
            thoughts = next((message[name] for name in ("reasoning", "reasoning_text") if message.get(name)), " ")
            message["reasoning_content"] = thoughts


def _joined(first: Metadata, second: Metadata) -> Metadata:
    before, said = first["content"], second["content"]
    both = f"{before}\n\n{said}" if isinstance(before, str) and isinstance(said, str) else None
    return {**first, "content": both or [*_blocks(before), *_blocks(said)]}


def _blocks(content: str | list[Metadata]) -> list[Metadata]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _as_blocks(said: Said) -> list[Metadata]:
    return [{"type": "text", "text": one} if isinstance(one, str) else _attached(one) for one in said]


def _attached(part: AttachmentPart) -> Metadata:
    if part.media_type.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": data_url(part)}}
    return {"type": "file", "file": {"filename": encodable(part.name), "file_data": data_url(part)}}


def _result(result: Result, made: OutgoingRequest) -> Metadata:
    content: str | list[Metadata] = result.text
    if made.marked:
        content = _as_blocks([result.text, *(said_in(result.attachments, made.media) if made.signed else ())])
    named = made.dialect.named_results or made.family.named_results
    name = {"name": result.call.name} if named else {}
    return {"role": "tool", "tool_call_id": result.call.id, "content": content, **name}


def _answers(answer: AssistantTurn, made: OutgoingRequest) -> Iterator[Metadata]:
    message = answer_message(answer, enumerate(answer.message.parts), made)
    # Thoughts alone are no message.
    if message["content"] or "tool_calls" in message:
        yield message


def answer_message(answer: AssistantTurn, parts: Iterable[tuple[int, Part]], made: OutgoingRequest) -> Metadata:
    """Some numbered parts of an answer as one message."""
    plan, message_id = made.plan, answer.message.id
    own = plan.same_origin(message_id)
    message: Metadata = {"role": "assistant", "content": None}
    text = signature = ""
    reasoning: list[ReasoningPart] = []
    calls: list[Metadata] = []
    for n, part in parts:
        signed = thought_signature(part) if own else ""
        if isinstance(part, ToolCallPart):
            call = answer.calls[n]
            function = {"name": call.name, "arguments": call.arguments}
            calls.append({"id": call.id, "type": "function", "function": function, **_signed(signed)})
            continue
        if isinstance(part, TextPart):
            text += encodable(part.text)
        elif isinstance(part, ReasoningPart) and plan.resent(message_id, n):
            reasoning.append(part)
        else:
            continue
        signature = signed or signature
    if text.strip() or (text and not calls):
        message["content"] = text
    if calls:
        message["tool_calls"] = calls
    message.update(_signed(signature))
    _add_reasoning(message, reasoning, text, made.dialect)
    return message


def _signed(signature: str) -> Metadata:
    """A thought signature where Google's OpenAI-compatible endpoint has it."""
    return {_EXTRA: {"google": {"thought_signature": signature}}} if signature else {}


_THOUGHT_FIELDS = ("reasoning_content", "reasoning", "reasoning_text", "content", "tool_plan")
"""The fields that thoughts come in."""


def _add_reasoning(message: Metadata, parts: Sequence[ReasoningPart], text: str, dialect: Dialect) -> None:
    """Reasoning in the field and form in which this provider sent it. ``text`` is the answer's, blanks included."""
    if tagged := [part for part in parts if is_tagged(part.provider_metadata)]:
        message["content"] = "".join(with_tags(encodable(p.text), p.provider_metadata or {}) for p in tagged) + text
        parts = [part for part in parts if part not in tagged]
    metadata = [part.provider_metadata or {} for part in parts]
    fields: defaultdict[str, str] = defaultdict(str)
    for part, kept in zip(parts, metadata, strict=True):
        came_in = text_in(kept, "field")
        fields[came_in if came_in in _THOUGHT_FIELDS else _THOUGHT_FIELDS[0]] += encodable(part.text)
    if details := [detail for kept in metadata for detail in objects_in(kept, DETAILS)]:
        message[DETAILS] = details
    if thoughts := fields.pop("content", ""):
        inner = thoughts if dialect.bare_thoughts else [{"type": "text", "text": thoughts}]
        spoken = [{"type": "text", "text": message["content"]}] if message["content"] else []
        message["content"] = [{"type": "thinking", "thinking": inner}, *spoken]
    message.update({name: thought for name, thought in fields.items() if thought})
    if opaque := [found for kept in metadata if (found := text_in(kept, "reasoning_opaque"))]:
        message["reasoning_opaque"] = opaque[-1]


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


_EXTRA = "extra_content"
_OTHERS = "provider_specific_fields"
_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")
_THOUGHTS = frozenset({*_FIELDS, DETAILS, "reasoning_items", "thinking_blocks", "reasoning_opaque"}) | {_OTHERS}
_USUAL = frozenset({"role", "content"})
_BLOCKS = "thinking"
"""Thoughts that stand in blocks of the content."""

_NO_SIGNATURE = "mistral"
"""What LiteLLM puts where Mistral's blocks have no signature."""

_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")


class ChatStream(StreamReader):
    """Has no blocks: a change of kind ends a part. Reasoning comes as ``reasoning_content``, ``reasoning``, content
    blocks of type ``thinking`` (Mistral), ``reasoning_details`` (OpenRouter), ``thinking_blocks`` and
    ``reasoning_items`` (LiteLLM's own), in several of them at once too."""

    def __init__(self, out: PartBuilder, tags: bool = False) -> None:
        super().__init__(out, tags)
        self._thoughts = Thoughts(out)
        self._tags = TagSplitter(out, tags, self._thoughts)
        self._fields: dict[str, RunningText] = {}
        """What the fields of the message said so far, as it came."""
        self._details: list[Metadata] = []
        self._detailed: OpenPart | None = None
        self._opaque: OpenPart | None = None
        self._choice: Any = None
        self._last = False
        self._annotations = Annotations(out)
        out.at_end(self._settle)

    @staticmethod
    def knows(event: Event) -> bool:
        return "choices" in event or event.get("object") == "chat.completion.chunk" or "x_groq" in event

    def event(self, event: Event) -> None:
        self._usage(event.get("usage"))
        if isinstance(groq := event.get("x_groq"), dict):
            self._usage(groq.get("usage"))
        for choice in event.get("choices") or []:
            if not isinstance(choice, dict):
                continue
            if self._choice is None:
                # Others of the same prompt are other answers.
                self._choice = choice.get("index")
            if choice.get("index") in (None, self._choice):
                self._usage(choice.get("usage"))
                self._read(choice)

    def _read(self, choice: dict[str, Any]) -> None:
        delta, message, reason = choice.get("delta"), choice.get("message"), choice.get("finish_reason")
        # From the end on a server may tell the whole message once more.
        self._last = self._last or bool(reason)
        if isinstance(delta, dict) and delta:
            self._delta(delta)
        if isinstance(message, dict):
            self._whole(message)
        self._ends(choice)

    def _ends(self, choice: dict[str, Any]) -> None:
        """A gateway's reason is the nearest one that OpenAI has; the provider's own may say more."""
        if (error := choice.get("error")) and self.out.error is None:
            self.out.error = error if isinstance(error, dict) else {"message": str(error)}
        reason, own = choice.get("finish_reason"), choice.get("native_finish_reason")
        if ending_of(reason) is None:
            return
        self._settle()
        if ending_of(own) in GRAVE:
            self.out.ends(own)
        self.out.ends(reason)

    def _usage(self, usage: Any) -> None:
        """Each report replaces the one before; numbers that a later one leaves out or has as 0 stay."""
        if not isinstance(usage, dict) or not any(number(usage.get(name)) > 0 for name in _COUNTS):
            return
        before = self.out.usage
        kept = {name: before[name] for name in _COUNTS[:2] if number(before.get(name)) and not number(usage.get(name))}
        before.clear()
        before.update({**usage, **kept})

    def _whole(self, message: dict[str, Any]) -> None:
        """The message as a whole: all there is of it where nothing was streamed, else what is missing of it."""
        if self.out.has_content:
            self._last = True
            message = {**message, "content": _plain(message.get("content"))}
            for name in ("content", *_FIELDS):
                said, told = self._fields.get(name), message.get(name)
                if said is not None and isinstance(told, str):
                    self._add_field(name, said.complete(told))
                    message = {**message, name: None}
            matched: set[OpenPart] = set()
            for call in self._calls_of(message):
                self._settle()
                name, arguments = _name_and_arguments(call)
                place = place_of(call.get("index"))
                part = self.out.restate("tool_call", arguments, matched, place=place, call_id=_id(call), name=name)
                self._sign_call(part, call)
            message = {**message, "tool_calls": None, "function_call": None}
        self._delta(message)

    def _delta(self, delta: dict[str, Any]) -> None:
        content = delta.get("content")
        if isinstance(content, str) and _USUAL.issuperset(delta):
            self._feed(content)
            return
        if not _THOUGHTS.isdisjoint(delta):
            self._think(delta)
        self._annotations.said(delta.get("annotations"))
        if isinstance(content, str):
            self._text(content, delta)
        elif isinstance(content, (list, dict)):
            for block in content if isinstance(content, list) else [content]:
                self._block(block)
        if refusal := delta.get("refusal"):
            self._text(str(refusal), {})
            self.out.ends("refusal")
        if delta.get("tool_calls") or delta.get("function_call"):
            calls = self._calls_of(delta)
            if not (self._last and self._are_repeated(calls)):
                for call in calls:
                    self._call(call)

    def _feed(self, text: str) -> None:
        if text and (text := self._new_text(text)):
            self._tags.feed(text)

    def _new_text(self, text: str) -> str:
        """What a piece of text adds to the answer."""
        if len(self._fields) > 1:
            self._settle_thoughts()
        return "" if self._last and self._is_all_text(text) else self._new("content", text)

    def _new(self, field: str, text: str) -> str:
        """What a field's next piece adds to what it said."""
        said = self._fields.get(field)
        if said is None:
            said = self._fields[field] = RunningText()
        return said.add(text, self._last)

    def _is_all_text(self, text: str) -> bool:
        """Returns whether it is the answer once more, without the thoughts that stood before it."""
        return len(text) >= SURE and text.strip() == self.out.said("text").strip()

    def _add_field(self, field: str, text: str) -> None:
        if field == "content":
            self._tags.feed(text)
        else:
            self._reason(text, field)

    def _settle(self) -> None:
        """Gives on what was held back, before something else comes or the answer ends."""
        self._settle_thoughts()
        if (content := self._fields.get("content")) is not None and (held := content.settle()):
            self._tags.feed(held)
        self._tags.interrupt()

    def _settle_thoughts(self) -> None:
        for name, said in self._fields.items():
            if name != "content" and (held := said.settle()):
                self._thoughts.say("content" if name == _BLOCKS else name, held)

    def _text(self, text: str, delta: dict[str, Any]) -> None:
        signatures = mapping(delta.get(_OTHERS)).get("thought_signatures")
        signature = signatures[0] if signatures and not delta.get("tool_calls") else _extra_signature(delta)
        if not signature:
            self._feed(text)
            return
        text = self._new_text(text) if text else ""
        self._settle()
        self.out.append(self.out.run("text"), text, {"thought_signature": signature})

    def _block(self, block: Any) -> None:
        if isinstance(block, str):
            self._text(block, {})
        elif isinstance(block, dict) and block.get("type") == "thinking":
            inner = block.get("thinking")
            pieces = inner if isinstance(inner, list) else [{"text": inner}]
            for piece in pieces:
                text = str(piece.get("text") or "") if isinstance(piece, dict) else str(piece)
                self._reason(self._new(_BLOCKS, text), "content")
            if signature := block.get("signature"):
                self.out.note(self.out.run("reasoning"), {"type": "thinking", "signature": signature})
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
        details = self._details_of(delta)
        if details and _begins_summary(details, self._details):
            self._thoughts.end_paragraph()
        for field in _FIELDS if not items else ():
            if (text := delta.get(field)) and isinstance(text, str):
                self._reason(self._new(field, text), field)
        for detail in details:
            text = detail.get("text") or detail.get("summary")
            if isinstance(text, str) and not items:
                self._reason(self._new(DETAILS, text), DETAILS)
        if details:
            self._merge(details)
        if opaque := delta.get("reasoning_opaque"):
            part = self._thoughts.part or self._opaque or self.out.run("reasoning")
            self._opaque = part
            self.out.note(part, {**(part.metadata or {}), "reasoning_opaque": opaque})

    def _details_of(self, delta: dict[str, Any]) -> list[Metadata]:
        details = delta.get(DETAILS) or mapping(delta.get(_OTHERS)).get(DETAILS)
        return [one for one in details if isinstance(one, dict)] if isinstance(details, list) else []

    def _reason(self, text: str, field: str) -> None:
        if text:
            if (content := self._fields.get("content")) is not None and (held := content.settle()):
                self._tags.feed(held)
            self._thoughts.say(field, text)

    def _merge(self, details: list[Metadata]) -> None:
        """Streamed pieces of one detail have one index and type: texts are joined, other fields replaced. Encrypted
        data come whole, and text after a signature begins the next one."""
        part = self._thoughts.part or self._detailed or self.out.run("reasoning")
        if part is not self._detailed:
            self._details = []
        self._detailed = part
        for detail in details:
            if detail.get("data") and any(d.get("data") == detail["data"] for d in self._details):
                continue
            known = next((d for d in reversed(self._details) if _same_detail(d, detail)), None)
            if known is not None and _is_told_again(known, detail, self._last):
                known.update({k: v for k, v in detail.items() if v is not None})
                continue
            if known is None or detail.get("data") or (known.get("signature") and detail.get("text")):
                self._details.append({k: v for k, v in detail.items() if v is not None})
                continue
            for name, value in detail.items():
                if name in ("text", "summary") and isinstance(value, str) and isinstance(known.get(name), str):
                    known[name] += value
                elif value is not None:
                    known[name] = value
        self.out.note(part, {**(part.metadata or {}), "reasoning_details": [dict(d) for d in self._details]})

    def _thinking_block(self, block: dict[str, Any]) -> None:
        """LiteLLM's form of Anthropic's blocks: text in pieces, the signature last, sometimes with all text again."""
        if block.get("type") == "redacted_thinking":
            part = self.out.begin("reasoning")
            self.out.note(part, {"type": "redacted_thinking", "data": block.get("data") or ""})
            self.out.close(part)
            return
        part = self.out.run("reasoning")
        text, signature = str(block.get("thinking") or ""), block.get("signature")
        signature = None if signature == _NO_SIGNATURE else signature
        if text and not (signature and text == part.said.text):
            self.out.append(part, text)
        if signature:
            self.out.note(part, {"type": "thinking", "signature": signature})
            self.out.close(part)

    def _item(self, item: dict[str, Any]) -> None:
        kept = {k: v for k, v in item.items() if v is not None and k != "status"}
        part = self._thoughts.part or self.out.begin("reasoning")
        self.out.note(part, {"type": "reasoning", **kept})
        self._thoughts.part = None

    def _calls_of(self, delta: dict[str, Any]) -> list[dict[str, Any]]:
        """The calls that are told, those that have a word in them."""
        calls = delta.get("tool_calls")
        if isinstance(function := delta.get("function_call"), dict) and not calls:
            # The form before tool calls; it knows one call and no ids.
            calls = [{"index": 0, "function": function}]
        return [
            call
            for call in (calls if isinstance(calls, list) else [calls])
            if isinstance(call, dict) and (_id(call) or _function(call).get("name") or _function(call).get("arguments"))
        ]

    def _are_repeated(self, calls: list[dict[str, Any]]) -> bool:
        told = [(place_of(call.get("index")), _function(call)) for call in calls]
        return self.out.repeats_calls(
            (place, str(function.get("name") or ""), as_arguments(function.get("arguments")))
            for place, function in told
        )

    def _call(self, call: dict[str, Any]) -> None:
        if self.out.newest is None or self.out.newest.kind != "tool_call":
            self._settle()
        name, arguments = _name_and_arguments(call)
        part = self.out.call(arguments, place=place_of(call.get("index")), call_id=_id(call), name=name)
        self._sign_call(part, call)

    def _sign_call(self, part: OpenPart, call: dict[str, Any]) -> None:
        for fields in (call, _function(call)):
            if _OTHERS not in fields and _EXTRA not in fields:
                continue
            signature = mapping(fields.get(_OTHERS)).get("thought_signature") or _extra_signature(fields)
            if signature:
                self.out.note(part, {"thought_signature": signature})
                return


def _id(call: Mapping[str, Any]) -> str | None:
    value = call.get("id")
    return str(value) if isinstance(value, int) else value or None


def _function(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Raises TypeError for what is none."""
    function = call.get("function", call)
    if function is not None and not isinstance(function, Mapping):
        raise TypeError(f"{type(function).__name__} where a function belongs")
    return function or {}


def _name_and_arguments(call: Mapping[str, Any]) -> tuple[str, str]:
    function = _function(call)
    return str(function.get("name") or ""), as_arguments(function.get("arguments"))


def _plain(content: Any) -> Any:
    """Blocks of text as one text; anything else as it is."""
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") in (None, "text")]
    plain = bool(texts) and len(texts) == len(blocks) and all(isinstance(text, str) for text in texts)
    return "".join(map(str, texts)) if plain else content


def _same_detail(known: Metadata, new: Metadata) -> bool:
    same = known.get("type") == new.get("type") and known.get("index") == new.get("index")
    return same and not (known.get("id") and new.get("id") and known["id"] != new["id"])


def _begins_summary(details: list[Metadata], known: list[Metadata]) -> bool:
    """Returns whether details go on with another part of a summary than the last one known."""
    last = known[-1] if known else {}
    return any(
        detail.get("type") == last.get("type") == "reasoning.summary" and detail.get("index") != last.get("index")
        for detail in details
    )


def _is_told_again(known: Metadata, detail: Metadata, last: bool) -> bool:
    """Returns whether a detail holds all that is known of it, as a text does that is told as a whole at the end."""
    for name in ("text", "summary"):
        said, told = known.get(name), detail.get(name)
        if isinstance(said, str) and isinstance(told, str) and said and told.startswith(said):
            return last or (len(said) >= SURE and len(told) > len(said))
    return False


def _extra_signature(value: Mapping[str, Any]) -> str | None:
    """Returns the thought signature from where Google's OpenAI-compatible endpoint puts it."""
    signature = mapping(mapping(value.get(_EXTRA)).get("google")).get("thought_signature")
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
    bare, preview = AZURE_PATH.sub("", path), "api-version=preview" if version == "preview" else ""
    if target.api == "responses":
        return f"{bare}/openai/v1/responses", preview
    if version in ("v1", "latest", "preview") or _AZURE_V1.search(path):
        return f"{bare}/openai/v1/chat/completions", preview
    query = urlencode({"api-version": version or AZURE_API_VERSION})
    return f"{bare}/openai/deployments/{quote(target.model)}/chat/completions", query


WIRE = Wire(
    _body,
    url,
    ChatStream,
    chooses_none=True,
    # llama.cpp and TGI take their own names, too, Ollama its options, SGLang its own group.
    limits=("n_predict", "max_new_tokens", "num_predict", "options.num_predict", "sampling_params.max_new_tokens"),
)
