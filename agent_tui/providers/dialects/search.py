"""Web searches that run at the provider: what its blocks and items say of them (``models.search``), and which of them
go back. An item is kept as it came; what else of it is read here is for people, and for what it costs to send it."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from agent_tui.models.messages import Message, Metadata, SearchPart, new_id
from agent_tui.models.requests import SentMessage
from agent_tui.models.search import search_id, search_item, searches_in
from agent_tui.providers.dialects.parts import OpenPart, PartBuilder
from agent_tui.providers.dialects.shared import mapping, number, parse_event
from agent_tui.text.clean import encodable

TOKENS_OF_CONTENT = 0.31
"""Tokens of a character of Anthropic's encrypted pages: 0.28 to 0.33 in recorded calls."""
TOKENS_OF_ITEM = 40
"""Of a call, and of what brings no pages along: Google's answers take no more either, however long the signature."""
NO_ID = "search"
"""The id of a search that goes back and has none."""


def claude_block(block: Mapping[str, Any]) -> Metadata | None:
    """A content block of Anthropic's; None for one that is of no search."""
    kind, content = block.get("type"), block.get("content")
    if kind == "server_tool_use" and block.get("name") == "web_search":
        query = _text(mapping(block.get("input")).get("query"))
        return {"id": _text(block.get("id")), "query": query, "tokens": TOKENS_OF_ITEM, "item": dict(block)}
    if kind != "web_search_tool_result":
        return None
    found: Metadata = {"id": _text(block.get("tool_use_id")), "item": dict(block)}
    if not isinstance(content, list):
        error = _text(mapping(content).get("error_code")) or "unknown error"
        return {**found, "error": error.replace("_", " "), "tokens": TOKENS_OF_ITEM}
    results = [mapping(one) for one in content]
    size = sum(len(_text(one.get("encrypted_content"))) for one in results)
    sources = [[_text(one.get("title")), _text(one.get("url"))] for one in results]
    return {**found, "sources": sources, "tokens": TOKENS_OF_ITEM + round(size * TOKENS_OF_CONTENT)}


class CitedText:
    """Text of Anthropic's that is cut into blocks, each with what it cites: one part of the answer, whose metadata say
    where a block ends. Without a citation every block is a part."""

    def __init__(self, out: PartBuilder) -> None:
        self._out = out
        self._part: OpenPart | None = None
        self._blocks: list[tuple[int, list[Metadata]]] = []
        """Where each begins, and what it cites."""

    def begin(self, place: Hashable, block: Mapping[str, Any]) -> None:
        text, cited = block.get("text") or "", [dict(one) for one in block.get("citations") or ()]
        if self._part is None or self._part.closed or not self._out.hidden_calls:
            self._part, self._blocks = self._out.begin("text", place, text=text), [(0, cited)]
        else:
            self._out.settle(self._part)
            self._blocks.append((self._part.said.length, cited))
            self._out.append(self._part, text)

    def piece(self, place: Hashable, delta: Mapping[str, Any]) -> None:
        if self._part is None or self._part.closed or not self._out.hidden_calls:
            part = self._out.part("text", place)
            if part is not self._part:
                # Nobody said that it begins.
                self._part, self._blocks = part, [(0, [])]
        if delta.get("type") == "text_delta":
            self._out.write(self._part, delta.get("text") or "")
        else:
            self._blocks[-1][1].append(dict(mapping(delta.get("citation"))))

    def interrupt(self) -> None:
        """Something else than text begins."""
        self._part = None

    def stop(self, part: OpenPart | None) -> bool:
        """A block ends, whose part may go on: that of a part, if it is of this text, or the last one of all."""
        if self._part is None or part not in (None, self._part):
            return False
        self._out.settle(self._part)
        if any(cited for _, cited in self._blocks):
            ends = [*(start for start, _ in self._blocks[1:]), self._part.said.length]
            blocks = [[end - start, cited] for end, (start, cited) in zip(ends, self._blocks, strict=True)]
            self._out.note(self._part, {"blocks": blocks})
        if not self._out.hidden_calls:
            self._out.close(self._part)
        return True


def cited_blocks(text: str, metadata: Metadata | None) -> list[Metadata] | None:
    """The blocks of a text, as they came; None for a text of one block that cites nothing."""
    blocks = (metadata or {}).get("blocks")
    if not isinstance(blocks, list) or not all(map(_is_cited_block, blocks)):
        return None
    if sum(length for length, _ in blocks) != len(text):
        return None
    made: list[Metadata] = []
    at = 0
    for length, cited in blocks:
        words = encodable(text[at : at + length])
        made.append({"type": "text", "text": words, **({"citations": cited} if cited else {})})
        at += length
    return made


def _is_cited_block(block: Any) -> bool:
    """Returns whether something is a length and what is cited there."""
    if not isinstance(block, list) or len(block) != 2 or not isinstance(block[0], int) or block[0] < 0:
        return False
    return isinstance(block[1], list) and all(isinstance(one, dict) and one.get("type") for one in block[1])


def is_sendable(item: Mapping[str, Any], google: bool = False) -> bool:
    """Returns whether an item that goes back is a part of Google's, or one that others send."""
    if google:
        return "toolCall" in item or "toolResponse" in item
    return item.get("type") in ("server_tool_use", "web_search_tool_result", "web_search_call")


def response_item(item: Mapping[str, Any]) -> Metadata:
    """A ``web_search_call`` of the Responses API: a search, or a look into a page; xAI has arguments for that."""
    action = mapping(item.get("action")) or (parse_event(_text(item.get("arguments"))) or {})
    page, queries = _text(action.get("url")), action.get("queries")
    told = [*(queries if isinstance(queries, list) else []), action.get("query"), action.get("pattern"), page]
    found: Metadata = {"id": _text(item.get("id")), "query": next((_text(one) for one in told if one), "")}
    listed, over = action.get("sources"), item.get("status") in ("completed", "failed")
    if isinstance(listed, list):
        sources = [mapping(one) for one in listed]
        found["sources"] = [[_text(one.get("name") or one.get("title")), _text(one.get("url"))] for one in sources]
    elif over:
        found["sources"] = [["", page]] if page else None
    if item.get("status") == "failed":
        found["error"] = "the provider gives no reason"
    return {**found, "tokens": TOKENS_OF_ITEM, "item": dict(item)}


def is_search(item: Mapping[str, Any]) -> bool:
    """Returns whether a ``web_search_call`` is a search, which is paid for, and no look into a page
    (developers.openai.com/api/docs/guides/tools-web-search, read 2026-11-27)."""
    return mapping(item.get("action")).get("type") in (None, "search")


def sent_item(part: SearchPart) -> Metadata:
    """The same as input: the sources were only asked for, and are no part of it."""
    item = dict(search_item(part) or {})
    if isinstance(action := item.get("action"), dict):
        item["action"] = {name: value for name, value in action.items() if name != "sources"}
    return item


def google_part(part: Mapping[str, Any]) -> Metadata | None:
    """A part of Google's with a call that ran there, or its answer; None for any other."""
    kept: Metadata = {"tokens": TOKENS_OF_ITEM, "item": dict(part)}
    if call := mapping(part.get("toolCall")):
        return {"id": _text(call.get("id")) or NO_ID, "query": "; ".join(queries_of(call)), **kept}
    if "toolResponse" in part:
        return {"id": _text(mapping(part["toolResponse"]).get("id")) or NO_ID, "sources": None, **kept}
    return None


def queries_of(call: Mapping[str, Any]) -> list[str]:
    queries = mapping(call.get("args")).get("queries")
    return [_text(query) for query in queries if query] if isinstance(queries, list) else []


class Grounding:
    """What Google says a whole answer is based on. It is added as the answer ends, as what the last search found."""

    def __init__(self, out: PartBuilder) -> None:
        self._out, self._said, self.last = out, dict[str, Any](), ""
        out.at_end(self._add)

    def said(self, metadata: Any) -> None:
        self._said.update(mapping(metadata))

    def _add(self) -> None:
        chunks = self._said.get("groundingChunks")
        webs = [mapping(mapping(chunk).get("web")) for chunk in chunks] if isinstance(chunks, list) else []
        if not webs:
            return
        sources = [[_text(web.get("title")), _text(web.get("uri"))] for web in webs]
        found: Metadata = {"id": self.last or new_id("search"), "sources": sources, "grounding": self._said}
        queries = self._said.get("webSearchQueries")
        if not self.last:
            listed = [_text(query) for query in queries if query] if isinstance(queries, list) else []
            self._out.searches += len(listed)
            found["query"] = "; ".join(listed)
        self._out.note(self._out.begin("search"), found)


class Annotations:
    """What a gateway says an answer in the chat format cites: all that it says of a search."""

    def __init__(self, out: PartBuilder) -> None:
        self._out, self._cited = out, list[Metadata]()

    def said(self, annotations: Any) -> None:
        cited = [mapping(mapping(one).get("url_citation")) for one in annotations or () if isinstance(one, dict)]
        if new := [dict(one) for one in cited if one.get("url")]:
            if not self._cited:
                self._out.at_end(self._add)
            self._cited += new

    def _add(self) -> None:
        sources = [[_text(one.get("title")), _text(one.get("url"))] for one in self._cited]
        found = {"id": new_id("search"), "query": "", "sources": sources, "annotations": self._cited}
        self._out.note(self._out.begin("search"), found)


def searches_reported(raw: Mapping[str, Any]) -> int:
    """How many searches a report of usage has."""
    for name in ("server_tool_use", "server_tool_use_details", "server_side_tool_usage_details"):
        told = mapping(raw.get(name))
        if found := max(number(told.get("web_search_requests")), number(told.get("web_search_calls"))):
            return found
    return 0


def sent_back(items: Sequence[SentMessage], own: Sequence[Message]) -> dict[str, tuple[int, ...]]:
    """The searches that go back to their maker, by the id of their answer, of which ``own`` are its. Anthropic refuses
    a call without what it found, and what no call has asked for; only while nothing but results of tools follow a call
    it may still be running."""
    mine = {message.id for message in own}
    calls: dict[str, int] = {}
    found: dict[str, int] = {}
    last = max((at for at, item in enumerate(items) if item.message.role != "tool"), default=-1)
    placed = [
        (at, n, part)
        for at, item in enumerate(items)
        if item.message.id in mine
        for n, part in enumerate(item.message.parts)
        if isinstance(part, SearchPart) and search_item(part) is not None
    ]
    for at, _, part in placed:
        calls.setdefault(search_id(part), at) if _asks(part) else found.setdefault(search_id(part), at)
    kept: dict[str, tuple[int, ...]] = {}
    for at, n, part in placed:
        metadata, name = part.provider_metadata or {}, search_id(part)
        whole = _asks(part) and ("sources" in metadata or "error" in metadata)
        paired = name in found or at == last if _asks(part) else calls.get(name, at + 1) <= at
        if whole or paired:
            message = items[at].message.id
            kept[message] = (*kept.get(message, ()), n)
    return kept


def declares_search(message: Message) -> bool:
    return any(search_item(part) is not None for part in searches_in(message.parts))


def _asks(part: SearchPart) -> bool:
    return "query" in (part.provider_metadata or {})


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, default=str)
