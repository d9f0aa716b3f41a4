"""OpenAI's Responses API (platform.openai.com/docs/api-reference/responses), at OpenAI, Azure, xAI and compatible
servers, used without state on the server."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

from agent_tui.models.messages import (
    AttachmentPart,
    Message,
    Metadata,
    ReasoningPart,
    SearchPart,
    SummaryPart,
    TextPart,
    ToolCallPart,
)
from agent_tui.models.requests import Effort, Media, ModelInfo
from agent_tui.models.usage import TokenUsage
from agent_tui.providers.dialects.chat import for_reasoning, is_openai_reasoning, openai_usage, url
from agent_tui.providers.dialects.conversation import (
    EMPTY_USER,
    ID_FORMS,
    AssistantTurn,
    Result,
    attachment_text,
    data_url,
    entries,
    objects_in,
    text_in,
)
from agent_tui.providers.dialects.openai import effort_word
from agent_tui.providers.dialects.outgoing import OutgoingRequest
from agent_tui.providers.dialects.parts import (
    Event,
    Kind,
    OpenPart,
    PartBuilder,
    StreamReader,
    as_arguments,
    place_of,
)
from agent_tui.providers.dialects.record import CallIds, ExactCount, Source, Wire
from agent_tui.providers.dialects.search import is_search, response_item, sent_item
from agent_tui.providers.dialects.shared import (
    ReplayPlan,
    Thinking,
    integer,
    is_spoken,
    mapping,
    number,
)
from agent_tui.providers.dialects.thoughts import paragraph_between
from agent_tui.text.clean import encodable


def thinking(info: ModelInfo, effort: Effort, model: str) -> Thinking:
    if is_openai_reasoning(model):
        return Thinking({"reasoning": {"effort": effort_word(model, effort), "summary": "auto"}}, effort == "off")
    if "grok-3-mini" in model:
        return Thinking({"reasoning": {"effort": "low" if effort in ("off", "low") else "high"}})
    if info.reasoning is True and "grok" not in model:
        return Thinking({"reasoning": {"effort": "low" if effort == "off" else effort, "summary": "auto"}})
    return Thinking(off=effort == "off")


def _body(made: OutgoingRequest) -> Metadata:
    body: Metadata = {"model": made.target.model, "stream": True}
    if tools := made.tools:
        body["tools"] = tools
    rest = for_reasoning(made.rest) if made.dialect.openai and is_openai_reasoning(made.target.model) else made.rest
    return {**body, "input": _input(made), **rest, **made.extra_body}


_PHASES = ("commentary", "final_answer")
_STATUSES = ("in_progress", "completed", "incomplete")
_ANNOTATIONS = frozenset({"url_citation", "file_citation", "container_file_citation", "file_path"})


def _input(made: OutgoingRequest) -> list[Metadata]:
    """All input items. A reasoning item goes back as it came; ids of the items it belongs to only together with it,
    because the API refuses either without the other."""
    found: list[Metadata] = []
    used: set[str] = set()
    ids: CallIds = "short" if made.rule.needs("short call ids") else "plain"
    for entry in entries(made.items, made.names, ids=ids):
        if isinstance(entry, Result):
            found.append(_output(entry, made.media))
        elif isinstance(entry, AssistantTurn):
            found.extend(_answer(entry, made.plan, used))
        else:
            found.append({"role": "user", "content": _user_content(entry, made.media)})
    if made.rule.needs("no item ids"):
        # What is no item of output any more has neither a state nor blocks of output.
        found = [_without_id(item) for item in found]
    first = found[0].get("role") or "tool" if found else None
    if (beginning := made.beginning(first)) is not None:
        found.insert(0, {"role": "user", "content": [{"type": "input_text", "text": beginning}]})
    return found


def _without_id(item: Metadata) -> Metadata:
    if "id" not in item:
        return item
    bare = {name: value for name, value in item.items() if name not in ("id", "status")}
    if item.get("type") == "message" and item.get("role") == "assistant":
        bare["content"] = "".join(_texts(item["content"]))
    return bare


def _answer(answer: AssistantTurn, plan: ReplayPlan, used: set[str]) -> list[Metadata]:
    """The items of an answer. ``used``: the ids of those before it ("duplicate item")."""
    message = answer.message
    thoughts = [n for n, part in enumerate(message.parts) if isinstance(part, ReasoningPart)]
    whole = plan.same_origin(message.id) and all(plan.resent(message.id, n) for n in thoughts)
    items: list[Metadata] = []
    for n, part in enumerate(message.parts):
        metadata = (part.provider_metadata or {}) if whole else {}
        if isinstance(part, ReasoningPart):
            item = _reasoning(part) if plan.resent(message.id, n) else None
            if item is not None and _claim(item["id"], used):
                items.append(item)
            else:
                whole = False
        elif not is_spoken(part):
            continue
        elif isinstance(part, TextPart):
            items.append(_text(part, metadata, used))
        elif isinstance(part, SearchPart):
            search = sent_item(part) if whole and plan.resent(message.id, n) else {}
            if search.get("type") == _SEARCH and _claim(search.get("id"), used):
                items.append(search)
        elif isinstance(part, ToolCallPart):
            made = answer.calls[n]
            call: Metadata = {
                "type": "function_call",
                "call_id": made.id,
                "name": made.name,
                "arguments": made.arguments,
            }
            if _claim(own := metadata.get("id"), used):
                call["id"] = own
            items.append(call)
    while items and items[-1].get("type") == "reasoning":
        # "provided without its required following item"
        items.pop()
    return items


def _claim(item_id: Any, used: set[str]) -> bool:
    """Returns whether an item may have an id: one that the API takes, and no other item has."""
    if not isinstance(item_id, str) or ID_FORMS["plain"].fullmatch(item_id) is None or item_id in used:
        return False
    used.add(item_id)
    return True


def _reasoning(part: ReasoningPart) -> Metadata:
    """A reasoning item as it came, as far as it is one."""
    stored = part.provider_metadata or {}
    item: Metadata = {"type": "reasoning", "id": text_in(stored, "id")}
    item["summary"] = [one for one in objects_in(stored, "summary") if text_in(one, "type") == "summary_text"]
    if encrypted := text_in(stored, "encrypted_content"):
        item["encrypted_content"] = encrypted
    if shown := [one for one in objects_in(stored, "content") if text_in(one, "type") == "reasoning_text"]:
        item["content"] = shown
    return item


def _text(part: TextPart, metadata: Metadata, used: set[str]) -> Metadata:
    # An item of output has an id; without one it is a message like the user's, and its text is plain.
    item: Metadata = {"type": "message", "role": "assistant", "content": encodable(part.text)}
    if _claim(own := metadata.get("id"), used):
        cited = [one for one in objects_in(metadata, "annotations") if one.get("type") in _ANNOTATIONS]
        item["content"] = [{"type": "output_text", "text": item["content"], "annotations": cited}]
        item["id"] = own
        status = metadata.get("status")
        item["status"] = status if status in _STATUSES else "completed"
    if (phase := metadata.get("phase")) in _PHASES:
        item["phase"] = phase
    return item


def _output(result: Result, media: Media) -> Metadata:
    output: str | list[Metadata] = result.text
    if result.attachments:
        blocks = [_block(part, media) for part in result.attachments]
        output = [{"type": "input_text", "text": result.text}, *blocks]
    return {"type": "function_call_output", "call_id": result.call.id, "output": output}


def _user_content(message: Message, media: Media) -> list[Metadata]:
    blocks: list[Metadata] = []
    for part in message.parts:
        if isinstance(part, AttachmentPart):
            blocks.append(_block(part, media))
        elif isinstance(part, (TextPart, SummaryPart)) and part.text:
            blocks.append({"type": "input_text", "text": encodable(part.text)})
    return blocks or [{"type": "input_text", "text": EMPTY_USER}]


def _block(part: AttachmentPart, media: Media) -> Metadata:
    if (text := attachment_text(part, media)) is not None:
        return {"type": "input_text", "text": text}
    if part.media_type.startswith("image/"):
        return {"type": "input_image", "detail": "auto", "image_url": data_url(part)}
    return {"type": "input_file", "filename": encodable(part.name), "file_data": data_url(part)}


class _Piece(NamedTuple):
    """What an event is a piece of."""

    kind: Kind
    section: str = "content_index"
    shown: bool = False
    refused: bool = False


_PIECES = {
    "output_text": _Piece("text"),
    "refusal": _Piece("text", refused=True),
    "reasoning_summary_text": _Piece("reasoning", "summary_index"),
    "reasoning_text": _Piece("reasoning", shown=True),
    "function_call_arguments": _Piece("tool_call"),
}
_DELTAS = {f"{name}.delta": piece for name, piece in _PIECES.items()}
_WHOLE = {f"{name}.done": piece for name, piece in _PIECES.items()}
_SEARCH = "web_search_call"
_HIDDEN = (_SEARCH, "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call")


class ResponsesStream(StreamReader):
    """Output items. The finished item is kept whole (without its text), so that it can go back with its id, phase and
    encrypted content exactly as it came."""

    def __init__(self, out: PartBuilder, tags: bool = False) -> None:
        super().__init__(out, tags)
        self._shown: set[OpenPart] = set()
        """Items whose thoughts are shown whole."""
        self._sections: dict[OpenPart, Hashable] = {}
        """The part of its summary that an item of thoughts is at."""
        self._ended: set[OpenPart] = set()
        """Items whose part of a summary is over, whatever number the next has."""
        self._told: set[OpenPart] = set()
        """Items that were told as a whole."""
        self._searched: set[OpenPart] = set()

    @staticmethod
    def knows(event: Event) -> bool:
        return str(event.get("type") or "").startswith("response.") or event.get("object") == "response"

    def event(self, event: Event) -> None:
        if event.get("object") == "response":
            # Whole, of a server that does not stream.
            self._end(str(event.get("status") or "completed"), event)
            return
        kind = str(event["type"]).removeprefix("response.")
        place, item = place_of(event.get("output_index")), event.get("item") or {}
        if kind == "output_item.added":
            self._added(place, item)
        elif kind == "output_item.done":
            self._done(place, item, self._told)
        elif kind in ("completed", "incomplete", "failed", "cancelled"):
            self._end(kind, event.get("response") or {})
        elif (piece := _DELTAS.get(kind)) is not None:
            self._delta(piece, event, place)
        elif (piece := _WHOLE.get(kind)) is not None:
            self._whole(piece, event, place)
        elif kind == "reasoning_summary_part.added":
            part = self.out.part("reasoning", place, _text_id(event.get("item_id")))
            if part.said.length:
                self._ended.add(part)

    def _delta(self, piece: _Piece, event: Event, place: int | None) -> None:
        item_id, text = _text_id(event.get("item_id")), event.get("delta") or ""
        if piece.kind == "tool_call":
            self.out.call(as_arguments(text), place=place, item_id=item_id)
            return
        part = self.out.part(piece.kind, place, item_id)
        if piece.kind == "reasoning" and text:
            section = (piece.section, event.get(piece.section, 0))
            if part in self._ended or self._sections.get(part, section) != section:
                self.out.append(part, paragraph_between(part.said.text, text))
                self._ended.discard(part)
            self._sections[part] = section
        self.out.write(part, text)
        if piece.shown:
            self._shown.add(part)
        if piece.refused:
            self.out.ends("refusal")

    def _whole(self, piece: _Piece, event: Event, place: int | None) -> None:
        """A text that is told as a whole behind its pieces, or without any."""
        item_id = _text_id(event.get("item_id"))
        told = event.get("text") or event.get("refusal") or event.get("arguments") or ""
        if piece.kind == "tool_call":
            if told and (call := self.out.known_call(place, item_id)) is not None:
                self.out.complete(call, as_arguments(told))
            return
        part = self.out.part(piece.kind, place, item_id)
        section = (piece.section, event.get(piece.section, 0))
        if not part.said.length or (piece.kind == "reasoning" and self._sections.get(part) != section):
            self._delta(piece, {**event, "delta": told}, place)
        self._ended.add(part)

    def _added(self, place: int | None, item: dict[str, Any]) -> None:
        kind, item_id = item.get("type"), _text_id(item.get("id"))
        if kind == "function_call":
            self._call(place, item)
        elif kind == "message":
            self.out.begin("text", place, item_id, "".join(_texts(item.get("content"))))
        elif kind == "reasoning":
            self.out.begin("reasoning", place, item_id, _thoughts(item))
        elif kind in _HIDDEN:
            self.out.hidden_calls = True
            if kind == _SEARCH:
                self.out.note(self.out.begin("search", place, item_id), response_item(item))
            else:
                self.out.begin_other(place)

    def _call(self, place: int | None, item: dict[str, Any]) -> None:
        self.out.call(
            as_arguments(item.get("arguments")),
            place=place,
            call_id=_text_id(item.get("call_id")),
            item_id=_text_id(item.get("id")),
            name=str(item.get("name") or ""),
            metadata=_identity(item),
            begins=True,
        )

    def _done(self, place: int | None, item: dict[str, Any], told: set[OpenPart]) -> None:
        kind, item_id, final = item.get("type"), _text_id(item.get("id")), told is not self._told
        if kind == "reasoning":
            part = self.out.restate("reasoning", _thoughts(item), told, place=place, item_id=item_id)
            kept = {k: v for k, v in item.items() if v is not None and k not in ("status", "content")}
            if item.get("content"):
                kept["content"] = item["content"]
            elif part in self._shown:
                kept["content"] = [{"type": "reasoning_text", "text": part.said.text}]
            if not (part.metadata or {}).get("encrypted_content") or kept.get("encrypted_content"):
                self.out.note(part, kept)
        elif kind == "message":
            text = "".join(_texts(item.get("content")))
            part = self.out.restate("text", text, told, place=place, item_id=item_id)
            cited = _cited(item.get("content"))
            if not final or part.metadata is None:
                self.out.note(part, _identity(item) | ({"annotations": cited} if cited else {}))
        elif kind == _SEARCH:
            self.out.hidden_calls = True
            part = self.out.restate("search", "", told, place=place, item_id=item_id)
            if part not in self._searched:
                self._searched.add(part)
                self.out.searches += is_search(item)
            if not final or part.metadata is None:
                self.out.note(part, response_item(item))
        elif kind == "function_call":
            part = self.out.restate(
                "tool_call",
                as_arguments(item.get("arguments")),
                told,
                place=place,
                call_id=_text_id(item.get("call_id")),
                item_id=item_id,
                name=str(item.get("name") or ""),
            )
            if not final or part.metadata is None:
                self.out.note(part, _identity(item))
        else:
            return
        if not final:
            self.out.close(part)

    def _end(self, kind: str, response: dict[str, Any]) -> None:
        self.out.report(response.get("usage"))
        # Encrypted content differs between the item's event and the final response; the latter has the last word.
        told: set[OpenPart] = set()
        for place, item in enumerate(response.get("output") or []):
            if item.get("type") in _HIDDEN:
                self.out.hidden_calls = True
            self._done(place, item, told)
        if kind == "failed":
            self.out.error = dict(response.get("error") or {"message": "the response failed"})
        elif kind == "incomplete":
            reason = mapping(response.get("incomplete_details")).get("reason")
            self.out.ends(reason or "max_output_tokens")
        elif kind == "cancelled":
            self.out.ends(kind)
        elif kind == "completed":
            self.out.finish = self.out.finish or ("tool_calls" if self.out.has_tool_calls else "stop")


def _thoughts(item: Mapping[str, Any]) -> str:
    """The parts of a summary are paragraphs."""
    text = ""
    for paragraph in _texts(item.get("summary")):
        text += paragraph_between(text, paragraph) + paragraph
    return text or "".join(_texts(item.get("content")))


def _text_id(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _identity(item: dict[str, Any]) -> Metadata:
    return {k: item[k] for k in ("type", "id", "phase", "status", "namespace") if item.get(k) is not None}


def _cited(blocks: Any) -> list[Any]:
    """What a text cites, by places in it: of one that is a single block."""
    only = blocks[0] if isinstance(blocks, list) and len(blocks) == 1 else None
    cited = only.get("annotations") if isinstance(only, dict) else None
    return cited if isinstance(cited, list) else []


def _texts(blocks: Any) -> list[str]:
    if not isinstance(blocks, list):
        return []
    return [str(b.get("text") or b.get("refusal") or "") for b in blocks if isinstance(b, dict)]


def read_usage(raw: Mapping[str, Any]) -> TokenUsage:
    inputs, outputs = mapping(raw.get("input_tokens_details")), mapping(raw.get("output_tokens_details"))
    return openai_usage(
        number(raw.get("input_tokens")),
        number(raw.get("output_tokens")),
        integer(raw.get("total_tokens")),
        integer(outputs.get("reasoning_tokens")),
        integer(inputs.get("cached_tokens")),
        integer(inputs.get("cache_write_tokens")),
    )


WIRE = Wire(
    _body,
    url,
    ResponsesStream,
    chooses_none=True,
    count=ExactCount(
        ("model", "input", "instructions", "tools", "tool_choice", "reasoning", "text"),
        lambda path: f"{path}/input_tokens",
        source=Source("platform.openai.com/docs/api-reference/responses/input-tokens", "2026-11-21"),
    ),
)
