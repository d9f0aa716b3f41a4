"""Anthropic's Messages API (docs.claude.com/en/api/messages) and the Claude models, wherever they are served."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from types import MappingProxyType
from typing import Any

from agent_tui.models.messages import AttachmentPart, Metadata, ReasoningPart, SearchPart, TextPart, ToolCallPart
from agent_tui.models.requests import Effort, ModelInfo, ModelRequest, ModelSpec, SentMessage, Target
from agent_tui.models.search import search_item
from agent_tui.models.usage import Limits, TokenUsage
from agent_tui.providers.dialects.claude import (
    CACHING,
    IMAGES,
    SCHEMAS,
    mark_fixed,
    marked_places,
    marker,
    thinking_block,
)
from agent_tui.providers.dialects.conversation import AssistantTurn, Result, Said, said_in
from agent_tui.providers.dialects.outgoing import CacheMarks, OutgoingRequest
from agent_tui.providers.dialects.parts import Event, OpenPart, PartBuilder, StreamReader, as_arguments, place_of
from agent_tui.providers.dialects.record import (
    Dialect,
    ExactCount,
    ModelFamily,
    RetentionRule,
    Source,
    Version,
    WebSearch,
    Wire,
)
from agent_tui.providers.dialects.search import CitedText, cited_blocks, claude_block, is_sendable
from agent_tui.providers.dialects.shared import (
    HOUR_WRITES,
    WRITES,
    Thinking,
    budget_below,
    integer,
    mapping,
    number,
    parse_event,
    usage_of,
    with_budget,
    with_hour,
)
from agent_tui.text.clean import encodable

BINDING_BETA = "thinking-binding-controls-2026-08-01"
"""Without this header Anthropic's API refuses ``block_binding``."""

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


_OUTPUT = 8_192
CLAUDE = ModelFamily(
    "claude",
    re.compile(r"claude"),
    maker="anthropic",
    version=claude_version,
    thinking="budget or effort",
    # Older ones refuse to be asked, 4.6 and newer adapt.
    thinks_from=(3, 7),
    adapts_from=(4, 6),
    # The same page, "prefix binding"; 4.x and 5.0 do not bind. Each case was tried live in pydantic-ai's issue 7984.
    # Later models are announced to follow.
    binds_from=(5, 1),
    loops_whole=True,
    signed_blocks=True,
    call_ids="plain",
    # "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'".
    properties=re.compile(r"[a-zA-Z0-9_.-]{1,64}"),
    think_tags=False,
    cache="markers",
    caching=CACHING,
    output=_OUTPUT,
    assumed=MappingProxyType({"claude": Limits(200_000, None, 32_000, "assumed")}),
    images="area",
    image_limits=IMAGES,
    source=Source("docs.claude.com/en/docs/build-with-claude/extended-thinking", "2026-11-21"),
)
RETENTION = (
    RetentionRule("new claude", (1.0, 1.0), "claude", since={"opus": (4, 5), "": (4, 6)}),
    RetentionRule("claude", (1.0, 0.0), "claude"),
)


_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high"}


def thinking(request: ModelRequest, info: ModelInfo, effort: Effort, *, adapts: bool, drop: bool) -> Thinking:
    """Asks a model for thinking. ``adapts``: it decides itself how long. ``drop``: the API is to leave out the blocks
    itself that do not fit their prefix."""
    if drop:
        wanted: Metadata = {
            "type": "adaptive",
            "display": "summarized",
            "block_binding": {"prefix_mismatch_behavior": "drop_block"},
        }
        headers = {"anthropic-beta": BINDING_BETA}
        return Thinking({"thinking": wanted, "output_config": {"effort": effort}, "extra_headers": headers})
    if adapts:
        return Thinking({"reasoning_effort": effort})
    return with_budget(budget_below(effort, request.max_output, info.limits.window))


def _body(made: OutgoingRequest) -> Metadata:
    """A body of ``/v1/messages``: the system prompt apart, results and questions in user messages, roles in turn."""
    system = made.system if made.marked else ["\n\n".join(made.system)] if made.system else []
    blocks = [_text(text) for text in system]
    tools = [_tool(tool) if "function" in tool else tool for tool in made.tools]
    turns = _turns(made, made.items)
    if made.marks is not None and made.whole:
        mark_fixed(blocks, tools, made.marks)
        _mark(turns, made, made.marks)
    if (beginning := made.beginning(turns[0][0] if turns else None)) is not None:
        turns.insert(0, ("user", [_text(beginning)]))
    body: Metadata = {"model": made.target.model, "messages": _in_turn(turns)}
    if blocks:
        body["system"] = blocks
    if tools:
        body["tools"] = tools
    rest = made.rest
    effort = rest.pop("reasoning_effort", None)
    if effort in _EFFORTS:
        body["thinking"] = {"type": "adaptive", "display": "summarized"}
        body["output_config"] = {"effort": _EFFORTS[effort]}
    choice = rest.pop("tool_choice", None)
    if choice is not None:
        body["tool_choice"] = {"type": choice} if isinstance(choice, str) else choice
    for name, value in {**rest, **made.extra_body}.items():
        # A switch for one part of thinking goes beside what was chosen already.
        body[name] = {**body[name], **value} if name == "thinking" and name in body else value
    body["stream"] = True
    return body


_THOUGHTS = ("thinking", "redacted_thinking")
_Turn = tuple[str, list[Metadata]]
"""Whose it is (a result is a tool's), and its content blocks."""


def _turns(made: OutgoingRequest, items: Sequence[SentMessage]) -> list[_Turn]:
    """Some messages, of which anything is sent."""
    turns: list[_Turn] = []
    for turn in made.turns(items):
        if isinstance(turn, Result):
            turns.append(("tool", [_result(turn, made)]))
        elif isinstance(turn, AssistantTurn):
            turns.append(("assistant", _answer(turn, made)))
        else:
            turns.append(("user", _blocks(turn)))
    return [turn for turn in turns if turn[1]]


def _mark(turns: list[_Turn], made: OutgoingRequest, marks: CacheMarks) -> None:
    sent = len(_turns(made, made.items[: marks.sent_before])) if marks.sent_before else 0
    for place in marked_places([role for role, _ in turns], marks.starts_with_summary, marks.forgets, sent):
        content = turns[place][1]
        content[-1] = {**content[-1], **marker(marks)}


def _in_turn(turns: Sequence[_Turn]) -> list[Metadata]:
    """Messages of the user and the model in turn."""
    messages: list[Metadata] = []
    for answered, together in groupby(turns, lambda turn: turn[0] == "assistant"):
        content = [block for _, blocks in together for block in blocks]
        while answered and content and content[-1]["type"] in _THOUGHTS:
            # "The final block in an assistant message cannot be `thinking`": nothing came after it.
            content.pop()
        role = "assistant" if answered else "user"
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"].extend(content)
        elif content:
            messages.append({"role": role, "content": content})
    last = messages[-1] if messages else {}
    if last.get("role") == "assistant" and last["content"][-1]["type"] == "text":
        # "final assistant content cannot end with trailing whitespace"
        last["content"][-1] = {**last["content"][-1], "text": last["content"][-1]["text"].rstrip()}
    return messages


def _tool(tool: Metadata) -> Metadata:
    function = tool["function"]
    made: Metadata = {"name": function["name"], "input_schema": function["parameters"], "type": "custom"}
    if function.get("description"):
        made["description"] = function["description"]
    return made


def _result(result: Result, made: OutgoingRequest) -> Metadata:
    content: Said = [result.text, *(said_in(result.attachments, made.media) if made.signed else ())]
    return {"type": "tool_result", "tool_use_id": result.call.id, "content": _blocks(content)}


def _answer(answer: AssistantTurn, made: OutgoingRequest) -> list[Metadata]:
    """The blocks of an answer in their order: text without a word is left out, as one may not end in white space, and
    so are thoughts that nobody signed."""
    message, plan = answer.message, made.plan
    # Where what was found goes back, so does what a text cites of it.
    cites = bool(plan.searches) and plan.same_origin(message.id)
    blocks: list[Metadata] = []
    for n, part in enumerate(message.parts):
        if isinstance(part, ToolCallPart):
            call = answer.calls[n]
            blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)})
        elif isinstance(part, TextPart):
            cited = cited_blocks(part.text, part.provider_metadata) if cites else None
            blocks += [one for one in cited or [_text(encodable(part.text))] if one["text"].strip()]
        elif not plan.resent(message.id, n):
            continue
        elif isinstance(part, ReasoningPart) and made.signed:
            blocks += [block] if (block := thinking_block(part)) is not None else []
        elif isinstance(part, SearchPart):
            item = search_item(part)
            blocks += [item] if item is not None and is_sendable(item) else []
    return blocks


def _text(text: str) -> Metadata:
    return {"type": "text", "text": text}


def _blocks(said: Said) -> list[Metadata]:
    worth_saying = (one for one in said if not isinstance(one, str) or one.strip())
    return [_text(one) if isinstance(one, str) else _attached(one) for one in worth_saying]


def _attached(part: AttachmentPart) -> Metadata:
    source = {"type": "base64", "media_type": part.media_type, "data": part.data}
    if part.media_type.startswith("image/"):
        return {"type": "image", "source": source}
    return {"type": "document", "source": source, "title": encodable(part.name)}


_TYPES = frozenset(
    {"message_start", "content_block_start", "content_block_delta", "content_block_stop"}
    | {"message_delta", "message_stop", "ping"}
)


class AnthropicStream(StreamReader):
    """Blocks, which have a place. A thinking block keeps its type and signature, a redacted one its data, both
    untouched."""

    def __init__(self, out: PartBuilder, tags: bool = False) -> None:
        super().__init__(out, tags)
        self._inputs: dict[OpenPart, Any] = {}
        """What calls had as their input from the start: it counts where no piece of it comes."""
        self._searches: dict[OpenPart, list[Any]] = {}
        self._signed: OpenPart | None = None
        self._text = CitedText(out)
        self._message: str | None = None
        self._begun = self._over = False
        out.at_end(self._end)

    @staticmethod
    def knows(event: Event) -> bool:
        return event.get("type") in _TYPES or (event.get("type") == "message" and "content" in event)

    def event(self, event: Event) -> None:
        if self._over:
            return
        place, delta = place_of(event.get("index")), event.get("delta") or {}
        match event.get("type"):
            case "message":
                if not self._restated(event):
                    for one in _streamed(event):
                        self.event(one)
            case "message_start":
                self._starts(event, event.get("message") or {})
            case "content_block_start":
                self._begun = True
                self._start(place, event.get("content_block") or {})
            case "content_block_delta":
                self._begun = True
                self._delta(place, delta)
            case "content_block_stop":
                self._stop(place)
            case "message_delta":
                self.out.ends(delta.get("stop_reason"))
                self._restated(delta)
                self._usage(event.get("usage"))
                self._transformed(event, delta)
            case "message_stop":
                self._restated(mapping(event.get("message")))
                # Some servers that only speak this language give no reason.
                self.out.finish = self.out.finish or "stop"

    def _starts(self, event: Event, message: dict[str, Any]) -> None:
        """Gateways say the start of one message twice. Some that lost their connection in the middle of a message send
        another one after it, whose thoughts do not go with the first's: what came is cut off there."""
        told = message.get("id")
        if self._begun and told and self._message and told != self._message:
            self._over = True
            if self.out.finish is None:
                self.out.error = {"message": "another answer began in the middle of this one"}
            return
        if self._message is None:
            self.out.report(message.get("usage"))
        else:
            self._usage(message.get("usage"))
        self._message = told or self._message or ""
        self._transformed(event, message)

    def _transformed(self, *places: dict[str, Any]) -> None:
        """Reads what the API changed in the request before the model read it; the last report holds all of it."""
        for place in places:
            listed = place.get("input_transformations")
            if isinstance(listed, list):
                self.out.dropped = [
                    str(entry.get("path") or "")
                    for entry in listed
                    if isinstance(entry, dict) and entry.get("type") == "thinking_dropped"
                ]

    def _usage(self, usage: Any) -> None:
        """The last report is the final one, but servers that repeat the input as 0 there mean what they said first."""
        for name, value in usage.items() if isinstance(usage, dict) else ():
            if value is not None and not (value == 0 and name != "output_tokens" and self.out.usage.get(name)):
                self.out.usage[name] = value

    def _restated(self, message: Mapping[str, Any]) -> bool:
        """Holds the content of a whole message against the blocks that came; says whether any had."""
        content, matched = message.get("content"), set[OpenPart]()
        if not self._begun:
            return False
        for block in content if isinstance(content, list) else []:
            kind, text, input_ = block.get("type"), block.get("text"), block.get("input")
            if kind == "text":
                self.out.restate("text", text or "", matched)
            elif kind == "thinking":
                part = self.out.restate("reasoning", block.get("thinking") or "", matched)
                if block.get("signature"):
                    self.out.note(part, {"type": "thinking", "signature": block["signature"]})
            elif kind == "tool_use":
                self._give_inputs()
                name = str(block.get("name") or "")
                self.out.restate("tool_call", as_arguments(input_), matched, call_id=block.get("id"), name=name)
        return True

    def _start(self, place: Hashable, block: dict[str, Any]) -> None:
        kind = block.get("type")
        if kind == "text":
            self._text.begin(place, block)
            return
        self._text.interrupt()
        if (search := claude_block(block)) is not None:
            self.out.hidden_calls = True
            part = self.out.begin("search", place)
            self.out.note(part, search)
            self._searches[part] = [block, ""]
        elif kind == "thinking":
            part = self.out.begin("reasoning", place, text=block.get("thinking") or "")
            if signature := block.get("signature"):
                self.out.note(part, {"type": "thinking", "signature": signature})
        elif kind == "redacted_thinking":
            part = self.out.begin("reasoning", place)
            self.out.note(part, {"type": "redacted_thinking", "data": block.get("data") or ""})
        elif kind == "tool_use":
            part = self.out.call(place=place, call_id=block.get("id"), name=str(block.get("name") or ""), begins=True)
            self._inputs[part] = block.get("input")
        else:
            # Tools that run at the provider: their rounds are added up in the usage.
            self.out.hidden_calls = True
            self.out.begin_other(place)

    def _delta(self, place: Hashable, delta: dict[str, Any]) -> None:
        kind = delta.get("type")
        if kind in ("text_delta", "citations_delta"):
            self._text.piece(place, delta)
        elif kind == "thinking_delta":
            part = self.out.part("reasoning", place)
            if part is self._signed and delta.get("thinking"):
                # A signature ends its thought.
                self.out.close(part)
                part = self.out.part("reasoning", place)
            self.out.write(part, delta.get("thinking") or "")
        elif kind == "signature_delta":
            part, more = self.out.part("reasoning", place), str(delta.get("signature") or "")
            known = str((part.metadata or {}).get("signature") or "")
            self._signed = part
            signature = more if more.startswith(known) else known + more
            self.out.note(part, {"type": "thinking", "signature": signature})
        elif kind == "input_json_delta":
            call = self.out.open_at(place, "tool_call", "search")
            if call is not None and call in self._searches:
                self._searches[call][1] += delta.get("partial_json") or ""
            elif call is not None and call.kind == "tool_call":
                self.out.write(call, as_arguments(delta.get("partial_json")))

    def _stop(self, place: Hashable) -> None:
        part = self.out.open_at(place)
        if part is None:
            return
        if part.kind == "text" and self._text.stop(part):
            return
        if search := self._searches.pop(part, None):
            block, written = search
            whole = block | {"input": parse_event(written)} if written else block
            self.out.note(part, claude_block(whole) or {})
        self._give_input(part)
        self.out.close(part)

    def _give_inputs(self) -> None:
        for part in list(self._inputs):
            self._give_input(part)

    def _give_input(self, part: OpenPart) -> None:
        given = self._inputs.pop(part, None)
        if given and not part.said.length:
            self.out.write(part, as_arguments(given))

    def _end(self) -> None:
        """Not every gateway says where blocks end."""
        self._text.stop(None)
        self._give_inputs()


def _streamed(message: dict[str, Any]) -> Iterator[Event]:
    """A whole message, of a server that does not stream, as the events of one that does."""
    yield {"type": "message_start", "message": message}
    for index, block in enumerate(message["content"]):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": message}
    yield {"type": "message_stop"}


def read_usage(raw: Mapping[str, Any]) -> TokenUsage:
    """``input_tokens`` are only those after the last cache breakpoint: reads and writes come on top."""
    read, write = integer(raw.get("cache_read_input_tokens")), integer(raw.get("cache_creation_input_tokens"))
    details, lives = mapping(raw.get("output_tokens_details")), mapping(raw.get("cache_creation"))
    if write is None and lives:
        write = sum(number(lives.get(name)) for name in WRITES)
    usage = usage_of(
        number(raw.get("input_tokens")) + (read or 0) + (write or 0),
        number(raw.get("output_tokens")),
        integer(details.get("thinking_tokens")),
        read,
        write,
    )
    return with_hour(usage, lives.get(HOUR_WRITES))


def _url(path: str, spec: ModelSpec, target: Target, dialect: Dialect) -> tuple[str, str | None]:
    return path.removesuffix("/v1/messages").removesuffix("/v1") + "/v1/messages", None


WIRE = Wire(
    _body,
    _url,
    AnthropicStream,
    output=_OUTPUT,
    chooses_none=True,
    output_config=True,
    count=ExactCount(
        ("model", "messages", "system", "tools", "tool_choice", "thinking", "output_config"),
        lambda path: f"{path}/count_tokens",
        source=Source("docs.claude.com/en/api/messages-count-tokens", "2026-11-21"),
    ),
)
RECORDS = (
    Dialect(
        "anthropic",
        WIRE,
        "https://api.anthropic.com",
        base_variables=("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"),
        auth="x-api-key",
        headers={"anthropic-version": "2023-06-01"},
        counts=True,
        keys=("ANTHROPIC_API_KEY",),
        key_begins=("sk-ant-",),
        default_model="claude-sonnet-4-6",
        call_ids="plain",
        cache="markers",
        merging=True,
        thinking_blocks=True,
        drops_unfit=True,
        search=WebSearch(
            MappingProxyType({"type": "web_search_20250305", "name": "web_search", "max_uses": 8}),
            price=0.01,
            tokens=1_800,
            # A 400 ("Input tag … does not match"): github.com/pydantic/pydantic-ai, models/anthropic.py (2026-11-27).
            uncounted=True,
            source=Source("platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool", "2026-11-27"),
        ),
        guessed_reasoning=True,
        schemas=SCHEMAS,
        images=IMAGES,
        caching=CACHING,
    ),
)
