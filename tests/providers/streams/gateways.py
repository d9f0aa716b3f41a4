"""Answers as gateways stream them: one logical answer, in the form of an API and a style of numbering, naming,
repeating and leaving out. ``pick`` chooses among the ways of a style."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias

Event: TypeAlias = dict[str, Any]
Pick: TypeAlias = Callable[..., str]


@dataclass(frozen=True)
class Thought:
    paragraphs: tuple[tuple[str, ...], ...]
    signature: str | None = None

    @property
    def pieces(self) -> list[str]:
        return [word for paragraph in self.paragraphs for word in paragraph]


@dataclass(frozen=True)
class Said:
    pieces: tuple[str, ...]


@dataclass(frozen=True)
class Called:
    call_id: str
    name: str
    arguments: str


Part: TypeAlias = Thought | Said | Called


def _halves(text: str) -> list[str]:
    return [text[: len(text) // 2], text[len(text) // 2 :]]


def _cumulative(pieces: Sequence[str]) -> list[str]:
    return ["".join(pieces[: n + 1]) for n in range(len(pieces))]


def _told(pieces: Sequence[str], way: str) -> list[str]:
    return _cumulative(pieces) if way == "all each time" else list(pieces)


# Chat completions


def chat(parts: Sequence[Part], pick: Pick) -> list[Any]:
    deltas: list[Event] = [{"role": "assistant", "content": ""}]
    text = "".join("".join(part.pieces) for part in parts if isinstance(part, Said))
    thoughts = "".join("".join(part.pieces) for part in parts if isinstance(part, Thought))
    calls = [part for part in parts if isinstance(part, Called)]
    way = pick("text", "pieces", "pieces", "all each time")
    for part in parts:
        if isinstance(part, Thought):
            deltas += _chat_thought(part, pick, way)
        elif isinstance(part, Said):
            deltas += [{"content": piece} for piece in _told(part.pieces, way)]
    deltas += _chat_calls(calls, pick)
    events: list[Any] = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    end: Event = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}
    whole: Event = {"role": "assistant", "content": text}
    whole |= {"reasoning_content": thoughts} if thoughts else {}
    whole |= {"tool_calls": [_whole_call(call, n) for n, call in enumerate(calls)]} if calls else {}
    match pick("end", "nothing more", "all in the delta", "all as a message", "all as a message afterwards"):
        case "all in the delta":
            end["delta"] = whole
        case "all as a message":
            end["message"] = whole
        case "all as a message afterwards":
            events.append({"choices": [dict(end)]})
            end["message"] = whole
    return [*events, {"choices": [end]}, "[DONE]"]


def _whole_call(call: Called, n: int) -> Event:
    # As a server writes it that has parsed it.
    arguments = json.dumps(json.loads(call.arguments), indent=1)
    return {"index": n, "id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _chat_thought(part: Thought, pick: Pick, way: str) -> list[Event]:
    fields = pick("thoughts", "reasoning_content", "reasoning", "both", "one empty", "details", "tags", "tags too")
    deltas: list[Event] = []
    for piece in _told(part.pieces, way):
        match fields:
            case "both":
                deltas.append({"reasoning": piece, "reasoning_content": piece})
            case "one empty":
                deltas.append({"reasoning_content": "", "reasoning": piece})
            case "details":
                deltas.append({"reasoning": piece, "reasoning_details": [{"type": "reasoning.text", "text": piece}]})
            case "tags":
                pass
            case "tags too":
                deltas.append({"reasoning_content": piece})
            case _:
                deltas.append({fields: piece})
    if fields.startswith("tags"):
        # In the content, before the text: it is one field, which is told in one way.
        before = f"<think>\n{''.join(part.pieces)}\n</think>\n"
        deltas += [{"content": piece} for piece in _halves(before)] if way == "pieces" else []
        if way != "pieces" and fields == "tags":
            deltas += [{"reasoning_content": piece} for piece in _told(part.pieces, way)]
    return deltas


def _chat_calls(calls: Sequence[Called], pick: Pick) -> list[Event]:
    number = pick("index", "right", "all 0", "none", "null", "text", "from 1")
    ids = pick("ids", "once", "each time", "in the second", "none", "another each time")
    names = pick("names", "once", "once", "in pieces", "each time")
    form = pick("arguments", "pieces", "whole", "object", "all each time")
    if ids == "another each time" or (ids == "none" and number in ("all 0", "none", "null")):
        # Names that come again would be other calls.
        names = "once"
    made = count()
    deltas: list[list[Event]] = []
    for n, call in enumerate(calls):
        pieces: list[Any] = ["", *_halves(call.arguments)]
        if form == "whole":
            pieces = [call.arguments]
        elif form == "object":
            pieces = [json.loads(call.arguments)]
        elif form == "all each time":
            pieces = ["", *_cumulative(_halves(call.arguments))]
        if len(pieces) == 1 and (ids == "in the second" or names == "in pieces"):
            pieces = ["", *pieces]
        chunks: list[Event] = [{"type": "function", "function": {"arguments": piece}} for piece in pieces]
        for at, chunk in enumerate(chunks):
            place: Any = {"right": n, "all 0": 0, "null": None, "text": str(n), "from 1": n + 1}.get(number, "none")
            chunk |= {"index": place} if number != "none" else {}
            if ids == "each time" or (ids == "once" and not at) or (ids == "in the second" and at == 1):
                chunk["id"] = call.call_id
            elif ids == "another each time":
                chunk["id"] = f"made_{next(made)}"
            if names == "each time" or not at:
                chunk["function"]["name"] = call.name
        if names == "in pieces":
            first, second = _halves(call.name)
            chunks[0]["function"]["name"], chunks[1]["function"]["name"] = first, second
        deltas.append(chunks)
    apart = number in ("right", "text", "from 1") or (ids == "each time" and number != "all 0")
    if apart and pick("calls", "one by one", "mixed") == "mixed":
        longest = max(map(len, deltas), default=0)
        ordered = [chunks[at] for at in range(longest) for chunks in deltas if at < len(chunks)]
    else:
        ordered = [chunk for chunks in deltas for chunk in chunks]
    return [{"tool_calls": [chunk]} for chunk in ordered]


# Anthropic


def anthropic(parts: Sequence[Part], pick: Pick) -> list[Any]:
    number = pick("index", "right", "all 0", "from 1", "with gaps", "none", "text")
    announced, stops = pick("starts", "all", "calls alone"), pick("stops", "all", "none")
    events: list[Any] = [{"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 0}}}]
    for n, part in enumerate(parts):
        index: Any = {"right": n, "all 0": 0, "from 1": n + 1, "with gaps": 3 * n, "text": str(n)}.get(number)
        place = {"index": index} if number != "none" else {}
        opening, deltas = _block(part, pick)
        if announced == "all" or isinstance(part, Called):
            events.append({"type": "content_block_start", **place, "content_block": opening})
        else:
            # Else what stands in the start alone would be missing.
            deltas = _block(part, lambda *_: "")[1]
        events += [{"type": "content_block_delta", **place, "delta": delta} for delta in deltas]
        if stops == "all":
            events.append({"type": "content_block_stop", **place})
    stop = "tool_use" if any(isinstance(part, Called) for part in parts) else "end_turn"
    usage = {"input_tokens": 10, "output_tokens": 5}
    events.append({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": usage})
    whole = {"type": "message", "id": "m", "content": [_whole_block(part) for part in parts]}
    match pick("end", "nothing more", "all in the end", "all before it"):
        case "all in the end":
            events.append({"type": "message_stop", "message": whole})
        case "all before it":
            events += [whole, {"type": "message_stop"}]
        case _:
            events.append({"type": "message_stop"})
    return events


def _block(part: Part, pick: Pick) -> tuple[Event, list[Event]]:
    """The start of a block and its deltas."""
    if isinstance(part, Called):
        start: Event = {"type": "tool_use", "id": part.call_id, "name": part.name, "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *_halves(part.arguments)]]
        where = pick("input", "pieces", "start", "both")
        if where in ("start", "both"):
            start["input"] = json.loads(part.arguments)
        return start, [] if where == "start" else deltas
    kind = "thinking" if isinstance(part, Thought) else "text"
    start, pieces = {"type": kind, kind: ""}, list(part.pieces)
    match pick("opening", "empty", "first again", "first", "all again", "all"):
        case "first again":
            start[kind] = pieces[0]
        case "first":
            start[kind] = pieces.pop(0)
        case "all again":
            start[kind] = "".join(pieces)
        case "all":
            start[kind], pieces = "".join(pieces), []
    deltas = [{"type": f"{kind}_delta", kind: piece} for piece in pieces]
    if isinstance(part, Thought) and part.signature:
        start["signature"] = ""
        deltas.append({"type": "signature_delta", "signature": part.signature})
    return start, deltas


def _whole_block(part: Part) -> Event:
    if isinstance(part, Called):
        return {"type": "tool_use", "id": part.call_id, "name": part.name, "input": json.loads(part.arguments)}
    if isinstance(part, Thought):
        return {"type": "thinking", "thinking": "".join(part.pieces), "signature": part.signature or ""}
    return {"type": "text", "text": "".join(part.pieces)}


# Responses


def responses(parts: Sequence[Part], pick: Pick) -> list[Any]:
    number = pick("index", "right", "all 0", "from 1", "none")
    ids = pick("ids", "right", "none", "another each time")
    deltas, done = pick("deltas", "all", "none"), pick("done", "all", "none", "twice", "texts too")
    output = pick("output", "whole", "empty", "other ids", "another order")
    if deltas == "none" and done == "none":
        output = "whole"
    made = count()
    events: list[Any] = [{"type": "response.created", "response": {"id": "r"}}]
    items = [_item(part, n) for n, part in enumerate(parts)]

    def place(n: int, item_id: str | None = None) -> Event:
        index = {"right": n, "all 0": 0, "from 1": n + 1}.get(number)
        named = f"id_{next(made)}" if ids == "another each time" else item_id
        return ({"output_index": index} if number != "none" else {}) | (
            {"item_id": named} if ids != "none" and item_id else {}
        )

    def seen(item: Event) -> Event:
        if ids == "none":
            return {name: value for name, value in item.items() if name != "id"}
        return item | {"id": f"id_{next(made)}"} if ids == "another each time" else item

    for n, (part, item) in enumerate(zip(parts, items, strict=True)):
        empty: Event = (
            {"summary": []} if isinstance(part, Thought) else {"content": []} if isinstance(part, Said) else {}
        )
        empty |= {"arguments": ""} if isinstance(part, Called) else {}
        begun = {name: value for name, value in item.items() if name != "encrypted_content"} | empty
        if deltas == "all" or done != "none":
            events.append({"type": "response.output_item.added", **place(n), "item": seen(begun)})
        for kind, text, more in _pieces(part):
            if deltas == "all":
                where = place(n, item["id"])
                events.append({"type": f"response.{kind}.delta", **where, **more, "delta": text})
        for kind, text, more in _wholes(part):
            if done == "texts too":
                name = "arguments" if isinstance(part, Called) else "text"
                events.append({"type": f"response.{kind}.done", **place(n, item["id"]), **more, name: text})
        for _ in range({"none": 0, "twice": 2}.get(done, 1)):
            events.append({"type": "response.output_item.done", **place(n), "item": seen(item)})
    final = [] if output == "empty" and done != "none" else items
    if output == "other ids":
        final = [item | {"id": f"last_{n}"} for n, item in enumerate(items)]
    elif output == "another order":
        final = items[::-1]
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    response = {"id": "r", "status": "completed", "output": final, "usage": usage}
    return [*events, {"type": "response.completed", "response": response}]


def _item(part: Part, n: int) -> Event:
    if isinstance(part, Called):
        known = {"call_id": part.call_id, "name": part.name, "arguments": part.arguments}
        return {"type": "function_call", "id": f"fc_{n}", **known}
    if isinstance(part, Said):
        return {"type": "message", "id": f"m_{n}", "content": [{"type": "output_text", "text": "".join(part.pieces)}]}
    summary = [{"type": "summary_text", "text": "".join(paragraph)} for paragraph in part.paragraphs]
    signed = {"encrypted_content": part.signature} if part.signature else {}
    return {"type": "reasoning", "id": f"rs_{n}", "summary": summary, **signed}


def _pieces(part: Part) -> Iterator[tuple[str, str, Event]]:
    if isinstance(part, Called):
        for piece in _halves(part.arguments):
            yield "function_call_arguments", piece, {}
    elif isinstance(part, Said):
        for piece in part.pieces:
            yield "output_text", piece, {"content_index": 0}
    else:
        for n, paragraph in enumerate(part.paragraphs):
            for piece in paragraph:
                yield "reasoning_summary_text", piece, {"summary_index": n}


def _wholes(part: Part) -> Iterator[tuple[str, str, Event]]:
    if isinstance(part, Called):
        yield "function_call_arguments", part.arguments, {}
    elif isinstance(part, Said):
        yield "output_text", "".join(part.pieces), {"content_index": 0}


# The others


def gemini(parts: Sequence[Part], pick: Pick) -> list[Any]:
    way, ids = pick("text", "pieces", "all each time"), pick("ids", "all", "none")
    chunks: list[list[Event]] = []
    for part in parts:
        if isinstance(part, Called):
            call: Event = {"name": part.name, "args": json.loads(part.arguments)}
            chunks.append([{"functionCall": call | ({"id": part.call_id} if ids == "all" else {})}])
            continue
        thought = {"thought": True} if isinstance(part, Thought) else {}
        chunks += [[{"text": piece, **thought}] for piece in _told(part.pieces, way)]
        if isinstance(part, Thought) and part.signature:
            if pick("signature", "with the last piece", "alone") == "alone":
                chunks.append([{"text": "", **thought, "thoughtSignature": part.signature}])
            else:
                chunks[-1][0]["thoughtSignature"] = part.signature
    calls = [piece for chunk in chunks for piece in chunk if "functionCall" in piece]
    last = calls if pick("end", "nothing more", "the calls again") == "the calls again" else []
    events: list[Any] = [{"candidates": [{"content": {"parts": chunk}}]} for chunk in chunks]
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    return [*events, {"candidates": [{"content": {"parts": last}, "finishReason": "STOP"}], "usageMetadata": usage}]


def ollama(parts: Sequence[Part], pick: Pick) -> list[Any]:
    way, lines, calls = pick("text", "pieces", "all each time"), list[Event](), list[Event]()
    for part in parts:
        if isinstance(part, Called):
            calls.append({"function": {"name": part.name, "arguments": json.loads(part.arguments)}})
        else:
            field = "thinking" if isinstance(part, Thought) else "content"
            lines += [{"content": "", field: piece} for piece in _told(part.pieces, way)]
    when = pick("calls", "before the end", "at the end", "both")
    lines += [{"content": "", "tool_calls": [call]} for call in calls if when != "at the end"]
    last: Event = {"content": "", "tool_calls": calls if when != "before the end" else []}
    counts = {"prompt_eval_count": 10, "eval_count": 5}
    return [*({"message": line, "done": False} for line in lines), {"message": last, "done": True, **counts}]


def cohere(parts: Sequence[Part], pick: Pick) -> list[Any]:
    number = pick("index", "right", "all 0", "none", "from 1")
    starts = pick("starts", "all", "calls alone")

    def event(kind: str, n: int, **message: Any) -> Event:
        index = {"right": n, "all 0": 0, "from 1": n + 1}.get(number)
        return {"type": kind, "delta": {"message": message}} | ({"index": index} if index is not None else {})

    events: list[Any] = [{"type": "message-start", "delta": {"message": {"role": "assistant"}}}]
    for n, part in enumerate(parts):
        if isinstance(part, Called):
            start = {"id": part.call_id, "function": {"name": part.name, "arguments": ""}}
            events.append(event("tool-call-start", n, tool_calls=start))
            pieces = _halves(part.arguments)
            events += [event("tool-call-delta", n, tool_calls={"function": {"arguments": piece}}) for piece in pieces]
            continue
        kind = "thinking" if isinstance(part, Thought) else "text"
        if starts == "all":
            events.append(event("content-start", n, content={"type": kind, kind: ""}))
        events += [event("content-delta", n, content={kind: piece}) for piece in part.pieces]
        events.append(event("content-end", n))
    usage = {"tokens": {"input_tokens": 10, "output_tokens": 5}}
    return [*events, {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": usage}}]
