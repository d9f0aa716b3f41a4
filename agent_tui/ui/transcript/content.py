"""Fills the transcript: messages and events as entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_tui.models.failure import BEGINS_AGAIN
from agent_tui.models.messages import (
    Message,
    Metadata,
    Part,
    ReasoningPart,
    SearchPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    own_output,
    summary_text,
)
from agent_tui.models.requests import Delta
from agent_tui.models.search import search_call, search_id, search_result
from agent_tui.models.steps import CompactionRecord, Step
from agent_tui.text.numbers import plural
from agent_tui.ui.transcript.blocks import Block, GrowingBlock
from agent_tui.ui.transcript.entry import ENDING, Entry, add_images, blocks_of, ending, shown_call, tool_block
from agent_tui.ui.transcript.parts import FoldBlock, NoticeBlock, ReasoningBlock, TextBlock
from agent_tui.ui.transcript.reader import Pointer
from agent_tui.ui.transcript.tools import ToolBlock

NEWEST = 400
"""Messages that are looked at before the first of a session is drawn."""


class TranscriptContent(Pointer):
    """Fills the document that it shows."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._by_id: dict[str, Entry] = {}
        self._kept: Mapping[str, list[Entry]] = {}
        self._older: tuple[Sequence[Message], Sequence[CompactionRecord], Mapping[str, Message]] | None = None

    def add_messages(
        self,
        messages: Sequence[Message],
        records: Sequence[CompactionRecord],
        summaries: Mapping[str, Message],
        kept: Mapping[str, list[Entry]] | None = None,
        endings: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        """A session, of which about the ``NEWEST`` messages at first; ``add_older`` adds the others. Only sizes are
        looked at; blocks are made when they are seen. ``kept`` is what ``said_beside`` gave; ``endings`` are notices
        that follow messages, level and text."""
        self._kept = dict(kept or {})
        for name, (level, text) in (endings or {}).items():
            self._kept[name] = [Entry(None, [NoticeBlock(ENDING, level, text)]), *self._kept.get(name, ())]
        tools = self.document.tools
        begin = _cut(messages, NEWEST)
        shown = sorted(filter(_shown, records), key=lambda record: record.created)
        older = [r for r in shown if begin and shown[0].created and r.created < messages[begin].created]
        self._by_id = {}
        self._older = (messages[:begin], older, summaries) if begin else None
        entries = self._entries(messages[begin:], shown[len(older) :], summaries)
        self.document.extend([*(self._kept.get("", ()) if not begin else ()), *entries])
        for entry in entries[-20:]:
            if entry.message is not None and entry.message.role == "assistant":
                self._adopt(entry)
                if entry.message.status == "streaming":
                    entry.live = True
                    entry.blocks = blocks_of(entry.message, tools)

    def add_older(self) -> int:
        """Puts what is older before what was loaded; returns how many entries that are."""
        if self._older is None:
            return 0
        older, self._older = self._older, None
        entries = [*self._kept.get("", ()), *self._entries(*older)]
        self.document.prepend(entries)
        return len(entries)

    def said_beside(
        self, messages: Sequence[Message], records: Sequence[CompactionRecord]
    ) -> Mapping[str, list[Entry]]:
        """What stands beside the conversation, for when that is shown anew with these, each by the id of what it
        follows then: what commands answered, and lines, but those that follow a message that is gone."""
        there = {message.id for message in messages} | {record.id for record in filter(_shown, records)}
        kept: dict[str, list[Entry]] = {}
        place = last = ""
        for entry in self.document.entries:
            block = entry.blocks[0] if entry.message is None and entry.blocks else None
            name = entry.message.id if entry.message is not None else ""
            if isinstance(block, FoldBlock) and block.record:
                name = block.record
            if name:
                last = name if name in there or entry.message is not None else last
                place = name if name in there else place
            elif isinstance(block, NoticeBlock) and block.key != ENDING and last == place:
                kept.setdefault(place, []).append(Entry(None, entry.blocks, chars=entry.chars, rows=entry.rows))
        return kept

    def _entries(
        self, messages: Sequence[Message], shown: Sequence[CompactionRecord], summaries: Mapping[str, Message]
    ) -> list[Entry]:
        tools, by_id = self.document.tools, self._by_id
        entries: list[Entry] = []
        calls: set[str] = set()
        at = 0
        for message in messages:
            while at < len(shown) and shown[at].created and shown[at].created < message.created:
                entries += [_record(shown[at], summaries), *self._kept.get(shown[at].id, ())]
                at += 1
            role = message.role
            if role == "tool":
                result = message.tool_result
                if result is None:
                    continue
                tools.answered(message, result)
                if result.call_id in calls:
                    continue
            elif role == "assistant":
                for part in message.parts:
                    if type(part) is ToolCallPart:
                        calls.add(part.call_id)
                    elif isinstance(part, SearchPart) and (found := search_result(part)) is not None:
                        tools.answered(message, found)
            entry = by_id[message.id] = Entry(message)
            entries += [entry, *self._kept.get(message.id, ())]
        for record in shown[at:]:
            entries += [_record(record, summaries), *self._kept.get(record.id, ())]
        return entries

    def entry_of(self, message_id: str) -> Entry | None:
        return self._by_id.get(message_id)

    def add_message(self, message: Message) -> None:
        """A complete message: the user's, a tool's result, an answer. One that is there already is shown anew."""
        result = message.tool_result if message.role == "tool" else None
        if result is not None and self._result(message, result):
            return
        if own_output(message) is not None:
            self._close_shell()
        known = self._by_id.get(message.id)
        if known is not None:
            known.message, known.blocks, known.live = message, None, False
            known.measure()
            self._touch(known)
            return
        self._new(Entry(message), message.id)

    def withdraw(self, ids: Sequence[str]) -> None:
        """Messages are no longer in the conversation."""
        for message_id in ids:
            entry = self._by_id.pop(message_id, None)
            if entry is not None:
                entry.message, entry.blocks, entry.live = None, [], False
                entry.chars = entry.rows = 0
                self._touch(entry)

    def begin_answer(self, message: Message) -> None:
        """An answer begins to stream."""
        known = self._by_id.get(message.id)
        entry = known or Entry(message)
        entry.live = True
        if entry.blocks is None:
            entry.blocks = blocks_of(message, self.document.tools)
        if known is None:
            self._new(entry, message.id)

    def apply_delta(self, message_id: str, delta: Delta) -> None:
        """A change to a streaming answer; drawn at most 30 times a second."""
        entry = self._by_id.get(message_id)
        if entry is None or not entry.live or entry.blocks is None:
            return
        if entry.interrupted:
            self._begin_anew(entry)
        key = str(delta.index)
        if delta.kind == "search" and delta.metadata is not None and not self._searched(entry, key, delta.metadata):
            return
        block = next((b for b in reversed(entry.blocks) if b.key == key), None)
        if block is None:
            for finished in entry.blocks:
                _finish(finished)
            block = self._part(key, delta)
            entry.blocks.append(block)
            if isinstance(block, ToolBlock):
                self.document.tools.shows(block, entry)
        if delta.text:
            if not isinstance(block, GrowingBlock):
                raise TypeError(f"{type(block).__name__} does not grow")
            block.append(delta.text)
            if isinstance(block, TextBlock):
                entry.chars += len(delta.text)
                entry.rows += delta.text.count("\n")
        if delta.closed:
            _finish(block)
        self.grown(entry)

    def interrupt_answer(self, message_id: str) -> None:
        """A streaming answer broke off and is asked for again: what came of it stands until something comes anew."""
        entry = self._by_id.get(message_id)
        if entry is None or not entry.live or entry.blocks is None or entry.interrupted:
            return
        entry.interrupted = True
        for block in entry.blocks:
            _finish(block)
        entry.blocks.append(NoticeBlock(ENDING, "warning", BEGINS_AGAIN))
        self._touch(entry)

    def _begin_anew(self, entry: Entry) -> None:
        entry.interrupted, entry.blocks = False, []
        entry.chars = entry.rows = 0
        self._touch(entry)

    def _searched(self, entry: Entry, key: str, metadata: Metadata) -> bool:
        """Takes in what is known of a search by now; False where it is what another part's search found."""
        part, tools = SearchPart(metadata), self.document.tools
        call, found = search_call(part), search_result(part)
        block = tools.live.get(search_id(part))
        if found is not None:
            tools.answered(Message("", "assistant"), found)
        if block is None and call is not None:
            block = tool_block(key, call, tools)
            for finished in entry.blocks or ():
                _finish(finished)
            entry.blocks = [*(entry.blocks or ()), block]
            tools.shows(block, entry)
        if block is not None:
            if call is not None:
                block.replace(call.arguments)
            block.result, block.running = found or block.result, found is None and block.result is None
            self.grown(tools.owner[block.call_id])
        return call is not None

    def end_answer(self, message: Message, step: Step | None = None) -> None:
        """The answer ended; ``message`` is what counts. What already shows it is kept."""
        from agent_tui.commands.turn_words import told_by_what_follows

        entry = self._by_id.get(message.id)
        if entry is None:
            if step is None or not told_by_what_follows(message, step):
                self.add_message(message)
            return
        old = {block.key: block for block in entry.blocks or ()}
        entry.message, entry.live, entry.interrupted = message, False, False
        blocks: list[Block] = []
        for index, part in enumerate(message.parts):
            if (block := self._ended(str(index), part, old.get(str(index)))) is not None:
                blocks.append(block)
        notices = list(ending(message))
        if step is not None and told_by_what_follows(message, step):
            notices = []
        elif notices and step is not None and step.failure is not None and not message.note:
            notices = [NoticeBlock(ENDING, "error", step.failure.message)]
        entry.blocks = [*blocks, *notices]
        entry.measure()
        self._adopt(entry)
        self._touch(entry)
        self._waiting.discard(entry)

    def _ended(self, key: str, part: Part, block: Block | None) -> Block | None:
        """Returns the block of a part of a message that is complete: the one that shows it already, if there is one."""
        match part:
            case TextPart(text):
                if isinstance(block, TextBlock) and block.body.text == text:
                    block.finish()
                    return block
                return TextBlock(key, text)
            case ReasoningPart():
                if not isinstance(block, ReasoningBlock) or block.body.text != part.text:
                    block = ReasoningBlock(key, part.text)
                block.finish()
                block.seconds = part.seconds
                return block
            case SearchPart() if (found := search_result(part)) is not None:
                self.document.tools.answered(Message("", "assistant"), found)
        call = part if isinstance(part, ToolCallPart) else shown_call(part)
        if call is None:
            return None
        if not isinstance(block, ToolBlock) or block.call_id != call.call_id:
            return tool_block(key, call, self.document.tools)
        if block.arguments != call.arguments:
            block.replace(call.arguments)
        block.name, block.running = call.name, block.running and isinstance(part, ToolCallPart)
        return block

    def tool_started(self, call_id: str, summary: str) -> None:
        block = self._call(call_id, summary)
        block.summary, block.running, block.waiting = summary, True, False
        self._touch(self.document.tools.owner[call_id])

    def tool_output(self, call_id: str, text: str) -> None:
        """Live output of a running tool; drawn at most 30 times a second: the last of it, or all where it is open."""
        self._call(call_id, "").output(text)
        self.grown(self.document.tools.owner[call_id])

    def tool_waiting(self, call_id: str, waiting: bool) -> None:
        """The call waits for the user's word, or no longer does."""
        block = self.document.tools.live.get(call_id)
        if block is not None:
            block.waiting = waiting
            self._touch(self.document.tools.owner[call_id])

    def add_notice(self, level: str, text: str) -> None:
        """One line for the user: ``info``, ``warning`` or ``error``."""
        self._new(Entry(None, [NoticeBlock("notice", level, text)], chars=len(text), rows=2 + text.count("\n")))

    def add_record(self, record: CompactionRecord, message: Message | None = None, told: str = "") -> None:
        """A compaction, opening into its summary, or an edit; ``told`` is what there is to say of it now."""
        self._new(_record(record, {} if message is None else {message.id: message}, told))

    def show_block(self, block: Block, instead: Entry | None = None) -> Entry:
        """A block that can be taken away again, in the place of one that was."""
        entry = instead or Entry(None, [block])
        if instead is None:
            self._new(entry)
        else:
            entry.blocks = [block]
            self._touch(entry)
        return entry

    def take_away(self, entry: Entry) -> None:
        """What ``show_block`` gave."""
        entry.blocks = []
        self._touch(entry)

    def _result(self, message: Message, result: ToolResultPart) -> bool:
        tools = self.document.tools
        tools.answered(message, result)
        entry = tools.owner.get(result.call_id)
        block = tools.live.get(result.call_id)
        if entry is None or block is None:
            return False
        block.result, block.running, block.waiting = result, False, False
        add_images(block, tools)
        self._touch(entry)
        return True

    def _close_shell(self) -> None:
        """The user's command is over: its message shows what its live line showed."""
        tools = self.document.tools
        for call_id, block in list(tools.live.items()):
            owner = tools.owner[call_id]
            if owner.message is None and block.result is None and block.summary.startswith("! "):
                owner.blocks = []
                del tools.live[call_id], tools.owner[call_id]
                self._touch(owner)

    def _call(self, call_id: str, summary: str) -> ToolBlock:
        block = self.document.tools.live.get(call_id)
        if block is None:
            block = ToolBlock("call", call_id, summary.split(" ", 1)[0])
            entry = Entry(None, [block])
            self.document.tools.shows(block, entry)
            self._new(entry)
        return block

    def _adopt(self, entry: Entry) -> None:
        """Makes the calls of an answer known, so that starts and results find them."""
        tools = self.document.tools
        message = entry.message
        if message is None or not any(type(part) in (ToolCallPart, SearchPart) for part in message.parts):
            return
        if entry.blocks is None:
            entry.blocks = blocks_of(message, tools)
        for block in entry.blocks:
            if isinstance(block, ToolBlock):
                tools.shows(block, entry)
                block.complete = True

    def _part(self, key: str, delta: Delta) -> Block:
        if delta.kind == "text":
            return TextBlock(key, "", False)
        if delta.kind == "reasoning":
            return ReasoningBlock(key, "", False)
        return ToolBlock(key, delta.call_id or key, delta.name or "")

    def _new(self, entry: Entry, message_id: str = "") -> None:
        if message_id:
            self._by_id[message_id] = entry
        self.document.append(entry)
        self.entry_changed(entry, True)

    def _touch(self, entry: Entry) -> None:
        self.document.touch(entry)
        self.entry_changed(entry, False)


def _finish(block: Block) -> None:
    if isinstance(block, (TextBlock, ReasoningBlock)):
        block.finish()


def _cut(messages: Sequence[Message], newest: int) -> int:
    """Returns the index at which the newest messages begin, with one of the user's; 0 for all of them."""
    begin = len(messages) - newest
    while begin > 0 and not (messages[begin].role == "user" and messages[begin].created):
        begin -= 1
    return max(0, begin)


def _shown(record: CompactionRecord) -> bool:
    """Returns whether a record has a line: what was undone has none, but for messages that were dropped or restored."""
    return record.active or not record.compacts


def _record(record: CompactionRecord, summaries: Mapping[str, Message], told: str = "") -> Entry:
    from agent_tui.context.compaction.summary import sizes_text
    from agent_tui.context.cuts import edited_words, let_go_words

    size = f"{sizes_text(record, full=True)} tokens" if record.after_tokens is not None else ""
    if record.kind == "prune" and not record.compacts:
        title, _, what = let_go_words(record).partition(" · ")
        body, size = "", ""
    elif not record.compacts:
        title, body = "Dropped" if record.kind == "drop" else "Restored", ""
        what = edited_words(record)
    elif record.kind == "prune":
        whats = [(record.cleared, "old tool result", "Cleared"), (record.clipped, "large tool result", "Clipped")]
        found = [(plural(n, noun), verb) for n, noun, verb in whats if n]
        title, body = found[0][1] if found else "Cleared", ""
        what = ", ".join(w if i == 0 else f"clipped {w}" for i, (w, _) in enumerate(found))
    else:
        title = "Folded" if record.reason == "edit" else "Compacted"
        if record.by == "agent":
            title = f"The agent {title.lower()}"
            told = told.removeprefix(title).strip(" ·")
        what = f"{plural(len(record.message_ids), 'message')} summarised"
        if record.left_out:
            title, what = "Left out", f"{plural(record.left_out, 'old message')}, no summary"
        message = summaries.get(record.summary_id or "")
        body = "" if message is None else summary_text(message)
    undone = "" if record.active else "undone"
    detail = told or " · ".join(filter(None, [what, undone, size]))
    block = FoldBlock("record", title, body, markdown=True, is_open=False, detail=detail, record=record.id)
    return Entry(None, [block])
