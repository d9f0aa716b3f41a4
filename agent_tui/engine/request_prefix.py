"""The request prefix: instructions, files and tools that every request begins with. Files in it stay the bytes that
were sent; what becomes of them goes with the next message. Small windows get fewer tools."""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import field, replace
from pathlib import Path

from agent_tui.context.sent_lists import SentLists
from agent_tui.context.tokens import char_tokens
from agent_tui.engine.conversation import Conversation
from agent_tui.models.messages import CHANGE, AttachmentPart, content_fingerprint, fingerprint
from agent_tui.models.requests import ModelInfo, OfferedTool, SentMessage, SystemBlock, ToolSchema
from agent_tui.models.rows import RowId
from agent_tui.models.steps import FixedPart, Step
from agent_tui.records import dataclass
from agent_tui.tools.mcp_names import CALL, READ, SEARCH

FILE_ROWS: tuple[RowId, ...] = ("memory", "documents")
"""Rows whose parts are files: others may write them while the session runs."""


@dataclass(slots=True)
class RequestPrefix:
    """What the next request begins with, and the fixed parts that it counts as."""

    system: list[SystemBlock] = field(default_factory=list)
    documents: list[SystemBlock] = field(default_factory=list)
    """The pinned files, which are sent after the system blocks."""
    tools: list[ToolSchema] = field(default_factory=list)
    offered: list[OfferedTool] = field(default_factory=list)
    """All tools, deferred ones included."""
    fixed: list[FixedPart] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    """By a part's content fingerprint the text that the worker counts."""
    fingerprint: str = ""
    """Of what signatures may be bound to: system blocks, documents and tools."""
    sent_before: int = 0
    """So many messages went with it in the newest request that the conversation begins with."""

    def counts(self) -> dict[str, tuple[int, ...]]:
        """The o200k_base counts that are known, by content fingerprint; of deferred tools what they would cost."""
        return known_counts(self.fixed)

    def set_counts(self, counts: dict[str, tuple[int, ...]]) -> None:
        """Fills in o200k_base counts by content fingerprint."""
        self.fixed = [part.counted(counts) for part in self.fixed]

    def uncounted(self) -> dict[str, str]:
        """Texts that still need a count, by fingerprint."""
        return {
            p.fingerprint: self.texts[p.fingerprint]
            for p in self.fixed
            if p.fingerprint in self.texts and p.counts is None
        }

    def keep_edited(self, before: Sequence[FixedPart], rows: Sequence[RowId]) -> None:
        """Parts outside ``rows`` that were known to be edited still are."""
        edited = {part.fingerprint for part in before if part.change == "edited" and part.row not in rows}
        self.mark_edited(lambda part: part.fingerprint in edited)

    def add_changes(self, changes: Sequence[AttachmentPart]) -> None:
        """Adds what the next message will tell of files, so that the numbers have it before it is sent."""
        for change in changes:
            row, path = change_row(change), change.path or ""
            known = next((p for p in self.fixed if p.row == row and p.path == path), None)
            label = known.label if known is not None else path.rsplit("/", 1)[-1]
            part = self._part(row, path, f"{label} (change)", change.text or "", path)
            self.fixed.append(replace(part, change="waiting", text=None))

    def _part(self, row: RowId, group: str, label: str, text: str, path: str | None) -> FixedPart:
        digest = content_fingerprint(text)
        self.texts[digest] = text
        ascii_chars = len(text) if text.isascii() else sum(c < "\x80" for c in text)
        kept = text if row in FILE_ROWS else None
        return FixedPart(row, group, label or group, len(text), digest, ascii_chars=ascii_chars, path=path, text=kept)

    def add_block(self, block: SystemBlock) -> None:
        """Adds a block; those of row ``documents`` are sent apart: they are re-read for every request."""
        (self.documents if block.row == "documents" else self.system).append(block)
        self.fixed.append(self._part(block.row, block.group or block.row, block.label, block.text, block.path))

    def add_tool(self, tool: OfferedTool) -> None:
        part = self._part("tools", tool.group, tool.schema.name, tool.schema.text, None)
        if tool.schema.provider is not None:
            part = replace(part, added=tool.schema.tokens)
        if tool.deferred:
            part = replace(part, raw_tokens=0, chars=0, ascii_chars=0, deferred_tokens=0)
        else:
            self.tools.append(tool.schema)
        self.fixed.append(part)

    def mark_edited(self, of: Callable[[FixedPart], bool]) -> None:
        """The files of these parts are others by now, of which the user's messages tell."""
        self.fixed = [replace(part, change="edited") if of(part) else part for part in self.fixed]

    def add_servers_of(self, step: Step) -> None:
        """Adds what of MCP servers went with an earlier step and is not there, for a look at a session whose servers
        are not started and were not seen since their offers are remembered.

        Where nothing else changed since, the next request is the same as far as signatures are concerned.
        """
        unchanged = {p.fingerprint for p in self.fixed} == {p.fingerprint for p in step.fixed if not _of_server(p)}
        there = {(p.row, p.label) for p in self.fixed}
        self.fixed += [p for p in step.fixed if _of_server(p) and (p.row, p.label) not in there]
        if unchanged and step.fixed_fingerprint:
            self.fingerprint = step.fixed_fingerprint


def known_counts(fixed: Sequence[FixedPart]) -> dict[str, tuple[int, ...]]:
    """The counts of ``RequestPrefix.counts`` for these parts."""
    return {part.fingerprint: part.counts for part in fixed if part.counts is not None}


def _of_server(part: FixedPart) -> bool:
    if part.row == "tools" and part.label in (SEARCH, CALL, READ):
        return True
    return part.row in ("tools", "servers") and part.group.startswith("mcp:")


def refused(tool: OfferedTool, fingerprints: Collection[str]) -> bool:
    """Returns whether the tool, as it is defined now, is among those that a server has refused."""
    return bool(fingerprints) and content_fingerprint(tool.schema.text) in fingerprints


def build_request_prefix(blocks: Sequence[SystemBlock], tools: Sequence[OfferedTool]) -> RequestPrefix:
    """Assembles the request prefix of these blocks and tools."""
    prefix = RequestPrefix(offered=list(tools))
    for block in blocks:
        prefix.add_block(block)
    for tool in tools:
        prefix.add_tool(tool)
    prefix.fingerprint = _fingerprint([*prefix.system, *prefix.documents], prefix.tools)
    return prefix


def _fingerprint(blocks: Iterable[SystemBlock], tools: Iterable[ToolSchema]) -> str:
    texts = [content_fingerprint(block.text) for block in blocks]
    return fingerprint([*texts, "tools", *(content_fingerprint(tool.text) for tool in tools)])


def with_documents(prefix: RequestPrefix, documents: Sequence[SystemBlock]) -> RequestPrefix:
    """The same with other documents: what else is sent stays as it is, and so does every count that is known."""
    changed = build_request_prefix([*prefix.system, *documents], prefix.offered)
    changed.set_counts(prefix.counts())
    return changed


def without_tools(prefix: RequestPrefix, names: Collection[str]) -> RequestPrefix:
    """The same without these tools, in the middle of a turn: nothing is told of files anew."""
    offered = [tool for tool in prefix.offered if tool.schema.name not in names]
    changed = build_request_prefix([*prefix.system, *prefix.documents], offered)
    changed.set_counts(prefix.counts())
    changed.keep_edited(prefix.fixed, ())
    return changed


COLD_SECONDS = 3_600.0
"""Without a request for so long no provider has the conversation in its cache (an hour is the longest life sold)."""

_FINGERPRINT, _BEGINS = "content", "begins"
_KEPT = 8

Key = tuple[str, str]


@dataclass(slots=True)
class _Sent:
    """A prefix as it was built: its blocks, what else it is made of, and which files were pinned."""

    blocks: list[SystemBlock]
    others: str
    pinned: frozenset[str]


class StablePrefix:
    """Decides for one session and model which bytes its requests begin with: none of a file that a rule ``denies``
    reading, though it was sent before."""

    def __init__(
        self, now: Callable[[], float] = time.time, denies: Callable[[Path], bool] = lambda path: False
    ) -> None:
        self._now, self._denies = now, denies
        self._built: dict[str, _Sent] = {}
        self._lists = SentLists()

    def forget(self) -> None:
        """Another session or model: nothing of it is in a cache yet."""
        self._built.clear()

    def settle(
        self,
        fresh: RequestPrefix,
        pinned: Iterable[str],
        model: ModelInfo,
        conversation: Conversation,
    ) -> tuple[RequestPrefix, list[AttachmentPart]]:
        """Returns what to send for ``fresh``, which is of the files as they are now: itself, or the bytes with which
        the messages were sent to ``model`` before; and what the next message of the user has to tell of the files."""
        now, prefix = _files([*fresh.system, *fresh.documents]), fresh
        chosen = frozenset(pinned)
        found = self._warm(fresh, chosen, model, conversation)
        if found is not None:
            step, sent = found
            prefix = build_request_prefix(sent.blocks, fresh.offered)
            prefix.set_counts({**known_counts(step.fixed), **fresh.counts()})
            prefix.sent_before = step.sent_count if self._begins(step, conversation) else 0
        self._keep(prefix, _others(fresh), chosen)
        held = _files([*prefix.system, *prefix.documents])

        def edited(part: FixedPart) -> bool:
            block = now.get((part.row, part.path or part.label))
            return part.row in FILE_ROWS and (block is None or content_fingerprint(block.text) != part.fingerprint)

        prefix.mark_edited(edited)
        return prefix, _changes(held, now, conversation.view())

    def _warm(
        self, fresh: RequestPrefix, pinned: frozenset[str], model: ModelInfo, conversation: Conversation
    ) -> tuple[Step, _Sent] | None:
        """The beginning of an earlier request, while a provider may have it in its cache and nothing else of it has
        changed. None: it is built anew.

        It is that of the newest one whose messages begin the conversation as it is sent now. So an undo brings the
        beginning back with the messages, and after a summary there is none. Where only the end was taken back, so far
        that none of them is left whole, the newest request of all stands in, unless something was compacted since.
        """
        asked, others = (model.spec.key, model.target.model), _others(fresh)
        newest: tuple[Step, _Sent] | None = None
        known: dict[str, _Sent | None] = {}
        for step in reversed(conversation.steps):
            if step.kind != "turn" or (step.model_key, step.model) != asked:
                continue
            sent_at = step.finished or step.created
            if self._now() - sent_at > COLD_SECONDS:
                break
            if (key := step.fixed_fingerprint) not in known:
                self._restore(step, fresh)
                sent = self._built.get(key)
                holds = sent is not None and (sent.pinned, sent.others) == (pinned, others) and self._may_send(sent)
                known[key] = sent if holds else None
            if (sent := known[key]) is None:
                continue
            if self._begins(step, conversation):
                return step, sent
            made = (record for record in conversation.records if record.reason != "edit")
            moments = (moment for record in made for moment in (record.created, *record.switched))
            if newest is None and not any(moment > sent_at for moment in moments):
                newest = step, sent
        return newest

    def _begins(self, step: Step, conversation: Conversation) -> bool:
        """Returns whether the conversation as it is sent now begins with the messages of a step."""
        return self._lists.begins(step, conversation.steps, [item.key for item in conversation.view()])

    def _may_send(self, sent: _Sent) -> bool:
        return not any(self._denies(Path(block.path)) for block in sent.blocks if block.path)

    def _restore(self, step: Step, fresh: RequestPrefix) -> None:
        """Knows the beginning of a request though another process sent it: where its files' text was stored, and all
        else of it is here again byte for byte."""
        if step.fixed_fingerprint in self._built:
            return
        texts = {content_fingerprint(block.text): block.text for block in (*fresh.system, *fresh.documents)}
        blocks = []
        for part in step.fixed:
            text = texts.get(part.fingerprint) if part.text is None else part.text
            if part.row == "tools" or part.change == "waiting":
                continue
            if text is None:
                return
            blocks.append(SystemBlock(part.row, text, part.group, part.label, part.path))
        then = build_request_prefix(blocks, fresh.offered)
        if then.fingerprint != step.fixed_fingerprint:
            return
        self._keep(then, _others(then), frozenset(block.path for block in then.documents if block.path))

    def _keep(self, prefix: RequestPrefix, others: str, pinned: frozenset[str]) -> None:
        self._built.pop(prefix.fingerprint, None)
        self._built[prefix.fingerprint] = _Sent([*prefix.system, *prefix.documents], others, pinned)
        while len(self._built) > _KEPT:
            del self._built[next(iter(self._built))]


def _changes(
    held: dict[Key, SystemBlock], now: dict[Key, SystemBlock], view: Sequence[SentMessage]
) -> list[AttachmentPart]:
    told = _told(view)
    changes = []
    for key in dict.fromkeys([*held, *now, *told]):
        begins = content_fingerprint(held[key].text) if key in held else ""
        is_now = content_fingerprint(now[key].text) if key in now else ""
        known, against = told.get(key, (begins, begins))
        # What was told as a difference to another beginning says nothing beside this one.
        if known == is_now and (is_now == begins or against in (None, begins)):
            continue
        block = now.get(key) or held.get(key)
        name = (block.label or key[1]) if block is not None else key[1]
        if not is_now:
            text = f"{name} is no longer given with this conversation: what was sent of it no longer holds."
        elif is_now == begins:
            text = f"{name} is as it stands at the beginning of this conversation; what was told since is out of date."
        else:
            text = _difference(name, held[key].text if key in held else None, now[key].text, key in told)
        metadata = {_FINGERPRINT: is_now, "row": key[0]}
        if is_now and now[key].text not in text:
            metadata[_BEGINS] = begins
        changes.append(AttachmentPart(CHANGE, "text/plain", text, path=key[1], provider_metadata=metadata))
    return changes


def _difference(name: str, begins: str | None, text: str, told: bool) -> str:
    """The shorter of the new content and what is different in it from how it stands at the beginning. Every process
    knows that; what was ``told`` of it since is known only to the one that told it."""
    out_of_date = " What was told of it since is out of date." if told else ""
    if begins is None:
        return f"{name} is to be followed and known from now on.{out_of_date}\n{text}"
    lines = difflib.unified_diff(begins.splitlines(), text.splitlines(), "before", "now", lineterm="", n=2)
    difference = "\n".join(lines)
    if difference and len(difference) < len(text):
        return f"{name} has changed since it was sent at the beginning.{out_of_date}\n{difference}"
    return f"{name} has changed since it was sent at the beginning.{out_of_date} It now reads:\n{text}"


def change_row(change: AttachmentPart) -> RowId:
    """The row of the file that a change is of."""
    return "memory" if (change.provider_metadata or {}).get("row") == "memory" else "documents"


def _told(view: Sequence[SentMessage]) -> dict[Key, tuple[str, str | None]]:
    """By file, which content the messages that are sent have told of last (empty where it is gone), and how the file
    stood at the beginning where that was told as a difference to it."""
    told: dict[Key, tuple[str, str | None]] = {}
    for sent in view:
        for part in sent.message.parts:
            if isinstance(part, AttachmentPart) and part.name == CHANGE and part.path and part.provider_metadata:
                metadata = part.provider_metadata
                begins = metadata.get(_BEGINS)
                content = str(metadata.get(_FINGERPRINT) or "")
                told[str(metadata.get("row")), part.path] = content, None if begins is None else str(begins)
    return told


def _files(blocks: Iterable[SystemBlock]) -> dict[Key, SystemBlock]:
    return {(block.row, block.path or block.label): block for block in blocks if block.row in FILE_ROWS}


def _others(prefix: RequestPrefix) -> str:
    """Returns the fingerprint of what else the beginning is made of: prompt, environment, skills and tools."""
    return _fingerprint((block for block in prefix.system if block.row not in FILE_ROWS), prefix.tools)


SMALL_WINDOW = 16_384
"""Up to this many tokens a window counts as small."""

FIXED_SHARE = 0.5
"""Of a small window: what system prompt and tools may take together, so that a conversation has room."""

LEAST_SHARE = 0.125
"""Of a small window: what tools may take whatever the system prompt leaves."""

SHOWN = 8

PRIORITY = (
    "read",
    "bash",
    "edit",
    "apply_patch",
    "write",
    "recall",
    "context",
    "grep",
    "glob",
    "list",
    "jobs",
    "todo",
    "fetch",
    "web_search",
    "subagent",
    "skill",
)
"""The core first: without reading, running and editing there is no work. MCP tools come last."""


def fitting_tools(blocks: Sequence[SystemBlock], tools: Sequence[OfferedTool], window: int | None) -> list[OfferedTool]:
    """The tools to offer, in the order given: all of them, but where they and the system blocks would take more than
    half of a small window only the most needed ones.

    By the character rule, so that the answer does not change when counts come in: the tools are part of the prefix
    that the provider caches.
    """
    if not window or window > SMALL_WINDOW:
        return list(tools)
    room = max(window * FIXED_SHARE - sum(char_tokens(b.text) for b in blocks), window * LEAST_SHARE)
    chosen: set[int] = set()
    for index in sorted(range(len(tools)), key=lambda i: (_rank(tools[i]), i)):
        if not tools[index].deferred:
            room -= char_tokens(tools[index].schema.text)
            if room < 0:
                break
        chosen.add(index)
    return [tool for i, tool in enumerate(tools) if i in chosen]


def fewer_tools_text(window: int, left_out: Sequence[str]) -> str:
    """Told once when a window has no room for every tool."""
    names = ", ".join(left_out[:SHOWN]) + (f" and {len(left_out) - SHOWN} more" if len(left_out) > SHOWN else "")
    return f"The window of {window:,} tokens is small: {names} left out to make room. /tools lists them."


def _rank(tool: OfferedTool) -> int:
    name = tool.schema.name
    return PRIORITY.index(name) if name in PRIORITY and tool.group == "builtin" else len(PRIORITY)
