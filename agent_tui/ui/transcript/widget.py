"""The transcript widget: the document view, what fills it, and what the user does with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any, ClassVar

from rich.cells import cell_len
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Offset
from textual.selection import Selection

from agent_tui.models.messages import Message, TextPart
from agent_tui.models.requests import Delta
from agent_tui.models.steps import CompactionRecord, Step
from agent_tui.ui.transcript import messages as posted
from agent_tui.ui.transcript.content import Content
from agent_tui.ui.transcript.document import Cursor, Document, Slot
from agent_tui.ui.transcript.entry import Folding
from agent_tui.ui.transcript.find import Finder, FindState
from agent_tui.ui.transcript.lines import Action
from agent_tui.ui.transcript.paint import key
from agent_tui.ui.transcript.selection import selected_text, word_at
from agent_tui.ui.transcript.view import DocumentView

FIND_SLICE = 0.03
"""Seconds of searching before keys are looked at again."""
NO_FIND = FindState("", 0, 0, True)


class Transcript(DocumentView):
    """A conversation: what was said, thought and done, as one scrollable text."""

    LinkClicked = posted.LinkClicked
    CopyRequested = posted.CopyRequested
    FindChanged = posted.FindChanged
    FollowChanged = posted.FollowChanged

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "scroll_up", "Up", show=False),
        Binding("j", "scroll_down", "Down", show=False),
        Binding("g", "scroll_home", "Top", show=False),
        Binding("G", "scroll_end", "End", show=False),
        Binding("left_square_bracket", "jump(-1)", "Previous user message", show=False),
        Binding("right_square_bracket", "jump(1)", "Next user message", show=False),
        Binding("shift+up", "select_rows(-1)", "Select up", show=False),
        Binding("shift+down", "select_rows(1)", "Select down", show=False),
        Binding("y", "copy_selection", "Copy", show=False),
        Binding("c", "copy_code", "Copy code", show=False),
        Binding("n", "find_step(1)", "Next match", show=False),
        Binding("N", "find_step(-1)", "Previous match", show=False),
        Binding("enter,space", "fold_here", "Open or close", show=False),
    ]

    def __init__(self, *, show_reasoning: bool = False, reduced_motion: bool = False, **names: Any) -> None:
        super().__init__(reduced_motion=reduced_motion, folding=Folding(show_reasoning), **names)
        self.content = Content(self.document, self.entry_changed)
        self._select_from: int | None = None

    # Content

    def load(
        self,
        messages: Sequence[Message],
        records: Sequence[CompactionRecord] = (),
        summaries: Mapping[str, Message] | None = None,
    ) -> None:
        """Shows a conversation instead of what was there, from its end."""
        self.clear()
        self.content.load(messages, records, summaries or {})
        self.changed()

    def clear(self) -> None:
        """Empties it."""
        self.clear_find()
        self.clear_selection()
        width, palette = self.document.width, self.document.palette
        self.document = Document(self.folding)
        self.document.width = width
        self.document.palette = palette
        self.content = Content(self.document, self.entry_changed)
        self._waiting.clear()
        self._set_follow(True)
        self.changed()

    def add_banner(self, lines: Sequence[str]) -> None:
        """The head of a session: the first line bold, the others muted."""
        self.content.banner(lines)

    def add_message(self, message: Message) -> None:
        """A complete message: the user's, a tool's result, an answer."""
        self.content.add_message(message)

    def begin_answer(self, message: Message) -> None:
        """An answer begins to stream."""
        self.content.begin(message)

    def apply_delta(self, message_id: str, delta: Delta) -> None:
        """A change to a streaming answer; drawn at most 30 times a second."""
        entry = self.content.delta(message_id, delta)
        if entry is not None:
            self.grown(entry)

    def end_answer(self, message: Message, step: Step | None = None) -> None:
        """The answer ended; ``message`` is what counts."""
        entry = self.content.end(message, step)
        if entry is not None:
            self._waiting.discard(entry)

    def tool_started(self, call_id: str, summary: str) -> None:
        self.content.started(call_id, summary)

    def tool_output(self, call_id: str, text: str) -> None:
        """Live output of a running tool, shown while the call is open."""
        self.content.output(call_id, text)

    def tool_finished(self, message: Message) -> None:
        """The result of a call; the same as ``add_message``."""
        self.content.add_message(message)

    def tool_waiting(self, call_id: str, waiting: bool) -> None:
        """The call waits for the user's word, or no longer does."""
        self.content.waiting(call_id, waiting)

    def add_notice(self, level: str, text: str) -> None:
        """One line for the user: ``info``, ``warning`` or ``error``."""
        self.content.notice(level, text)

    def add_summary(self, record: CompactionRecord, message: Message | None = None) -> None:
        """A compaction, opening into its summary."""
        self.content.summary(record, message)

    def add_block(self, title: str, body: str = "", *, markdown: bool = False, open: bool = True) -> None:
        """A titled text that opens and closes, such as a command's output."""
        self.content.block(title, body, markdown, open)

    def set_replay_status(self, message_id: str, text: str) -> None:
        """Says on a message's reasoning line whether it is resent."""
        self.content.replay_status(message_id, text)

    # Folding

    @property
    def show_reasoning(self) -> bool:
        """Whether reasoning is open by default."""
        return self.folding.reasoning

    def toggle_reasoning(self) -> bool:
        """Opens or closes all reasoning. The new state."""
        self.folding.reasoning = not self.folding.reasoning
        self._refold()
        return self.folding.reasoning

    def toggle_tools(self) -> bool:
        """Opens or closes all tool calls. The new state."""
        self.folding.tools = not self.folding.tools
        self._refold()
        return self.folding.tools

    def _refold(self) -> None:
        for entry in self.document.entries:
            entry.opened = None
        self.clear_selection()
        self._keep_place()
        self.document.refold()
        self.changed()

    def _fold(self, slot: Slot, name: str) -> None:
        entry = self.document.entries[slot.cursor.entry]
        block = next((b for b in entry.blocks or () if b.key == name), None)
        if block is None:
            return
        if entry.opened is None:
            entry.opened = {}
        entry.opened[name] = not entry.is_open(block, self.folding)
        self.clear_selection()
        self._keep_place()
        self.document.touch(entry)
        # Opening something must not push its head out of view.
        if entry.opened[name] and self._follow:
            self._set_follow(False)
        self.changed()

    def _keep_place(self) -> None:
        """Holds on to the head of a block: the lines in it may be about to vanish."""
        if self._follow or not self._slots:
            return
        entry = self.document.entries[self._top.entry]
        place = entry.place(self._top.piece) if entry.pieces is not None else None
        if place is not None:
            self._top = Cursor(self._top.entry, self._top.piece - place[1], 0)

    # Finding

    def find(self, query: str) -> FindState:
        """Searches everything, without regard to case, and goes to the newest match. When there is much to search it
        goes on in the background and posts ``FindChanged``."""
        self.clear_find()
        if not query:
            return NO_FIND
        self.finder = Finder(self.document, query)
        self._search(self.finder, False)
        self.refresh()
        return self.finder.state

    def find_next(self) -> FindState:
        """Goes to the next match, from the last one to the first."""
        return self._find_step(1)

    def find_prev(self) -> FindState:
        """Goes to the match before."""
        return self._find_step(-1)

    def clear_find(self) -> None:
        """Ends the search; the view stays."""
        if self.finder is not None:
            self.finder = None
            self.refresh()

    def _search(self, finder: Finder, later: bool) -> None:
        if finder is not self.finder:
            return
        had = bool(finder.matches)
        end = perf_counter() + FIND_SLICE
        while not finder.complete:
            finder.step()
            if perf_counter() >= end:
                break
        if finder.matches and not had:
            finder.position = len(finder.matches) - 1
            self._show_match(finder)
        if not finder.complete:
            self.set_timer(0.001, lambda: self._search(finder, True))
        if later:
            self.post_message(self.FindChanged(finder.state))
            self.refresh()

    def _find_step(self, direction: int) -> FindState:
        finder = self.finder
        if finder is None:
            return NO_FIND
        if finder.matches:
            finder.position = (finder.position + direction) % len(finder.matches)
            self._show_match(finder)
        return finder.state

    def _show_match(self, finder: Finder) -> None:
        match = finder.current
        if match is None:
            return
        entry = self.document.entries[match.entry]
        self.document.pieces(match.entry)
        blocks = entry.blocks or []
        if match.block >= len(blocks):
            return
        block = blocks[match.block]
        if block.foldable and match.piece and not entry.is_open(block, self.folding):
            entry.opened = {**(entry.opened or {}), block.key: True}
            self.document.touch(entry)
            self.document.pieces(match.entry)
            self.changed()
        number = min(entry.starts[match.block] + match.piece, len(entry.pieces or ()) - 1)
        line = 0
        for k, candidate in enumerate(self.document.lay(match.entry, number)):
            if candidate.row > match.row:
                break
            begin = next((start for start in candidate.starts if start >= 0), 0)
            if candidate.row == match.row and begin <= match.start:
                line = k
        cursor = Cursor(match.entry, number, line)
        if not any(slot.cursor == cursor for slot in self.slots):
            self.go_to(cursor, margin=self.size.height // 3)
        self.refresh()

    # Selection and copying

    def selected_text(self) -> str:
        """The selected text as it is meant, not as it is drawn; empty when nothing is selected."""
        selection = self.text_selection if self.is_attached else None
        return "" if selection is None else selected_text(self.document, selection)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selected_text(self.document, selection), "\n"

    def clear_selection(self) -> None:
        """Nothing is selected any more."""
        self._select_from = None
        if self.is_attached and self.text_selection is not None:
            self.screen.selections = {w: s for w, s in self.screen.selections.items() if w is not self}

    def last_answer(self, n: int = 1) -> str | None:
        """The Markdown of the ``n``-th newest answer that has text."""
        for entry in reversed(self.document.entries):
            if entry.message is not None and entry.message.role == "assistant":
                text = self._text(entry.message.id)
                if text:
                    n -= 1
                    if n <= 0:
                        return text
        return None

    def message_text(self, message_id: str) -> str | None:
        """A message's own text, whole; None when there is no such message."""
        return self._text(message_id)

    def reasoning_text(self, message_id: str) -> str | None:
        """What the model thought before it said a message."""
        entry = self.content.entry_of(message_id)
        return None if entry is None or entry.message is None else entry.message.reasoning

    def last_code(self, n: int = 1) -> str | None:
        """The ``n``-th newest code block of the answers."""
        from agent_tui.ui.transcript.markdown import parser

        for entry in reversed(self.document.entries):
            message = entry.message
            if message is not None and message.role == "assistant" and "```" in (text := self._text(message.id) or ""):
                for token in reversed(parser(True).parse(text)):
                    if token.type == "fence":
                        n -= 1
                        if n <= 0:
                            return token.content.removesuffix("\n")
        return None

    def _text(self, message_id: str) -> str | None:
        entry = self.content.entry_of(message_id)
        if entry is None or entry.message is None:
            return None
        if entry.live and entry.blocks is not None:
            from agent_tui.ui.transcript.parts import TextBlock

            return "".join(block.body.text for block in entry.blocks if isinstance(block, TextBlock))
        return "".join(part.text for part in entry.message.parts if isinstance(part, TextPart))

    # Moving

    def jump_user(self, direction: int) -> bool:
        """Goes to the user message before (-1) or after (+1) the top of the view. False when there is none."""
        if not self.slots:
            return False
        top = self._slots[0].cursor
        here = top.entry if top.piece == 0 and top.line <= 1 else top.entry + (1 if direction < 0 else 0)
        index = here + direction
        while 0 <= index < len(self.document.entries):
            message = self.document.entries[index].message
            if message is not None and message.role == "user":
                self.document.pieces(index)
                self.go_to(Cursor(index, 0, 0))
                return True
            index += direction
        if direction > 0:
            self.follow_end()
        return False

    # Keys and mouse

    def action_jump(self, direction: int) -> None:
        self.jump_user(direction)

    def action_find_step(self, direction: int) -> None:
        self.post_message(self.FindChanged(self._find_step(direction)))

    def action_copy_selection(self) -> None:
        text = self.selected_text()
        if text:
            self.post_message(self.CopyRequested(text, "selection"))
        elif (answer := self.last_answer()) is not None:
            self.post_message(self.CopyRequested(answer, "message"))

    def action_copy_code(self) -> None:
        code = self.last_code()
        if code is not None:
            self.post_message(self.CopyRequested(code, "code"))

    def action_select_rows(self, direction: int) -> None:
        """Grows or shrinks the selection by a line of the screen's logical rows."""
        slots = self.slots
        if not slots:
            return
        rows = [(key(s.cursor.entry, s.cursor.piece, s.line.row), len(s.line.text)) for s in slots]
        selection = self.text_selection
        if selection is None or self._select_from is None:
            start = rows[-1] if direction < 0 else rows[0]
            self._select_from = moving = start[0]
        else:
            low = selection.start.y if selection.start is not None else rows[0][0]
            high = selection.end.y if selection.end is not None else rows[-1][0]
            at = low if high == self._select_from else high
            later = [y for y, _ in rows if y > at]
            earlier = [y for y, _ in rows if y < at]
            if direction < 0 and not earlier:
                self.scroll_up(animate=False)
            elif direction > 0 and not later:
                self.scroll_down(animate=False)
            moving = earlier[-1] if direction < 0 and earlier else later[0] if direction > 0 and later else at
        low, high = sorted((self._select_from, moving))
        anchor = self._select_from
        self.screen.selections = {self: Selection(Offset(0, low), Offset(1 << 30, high))}
        self._select_from = anchor

    def action_fold_here(self) -> None:
        """Opens or closes the last block whose head is visible."""
        for slot in reversed(self.slots):
            for _, _, action in slot.line.actions:
                if action[0] == "fold":
                    self._do(slot, action)
                    return

    def on_click(self, event: events.Click) -> None:
        event.prevent_default()
        slots = self.slots
        chip = not self._follow and self._new_entries and event.y == self.size.height - 1
        if chip and event.x > self.size.width - 14:
            self.follow_end()
            return
        if not 0 <= event.y < len(slots):
            return
        slot = slots[event.y]
        if event.chain == 1:
            if self.text_selection is None:
                self._act(slot, event.x)
        elif not slot.line.actions:
            self._select_at(slot, event.x, whole=event.chain > 2)

    def _act(self, slot: Slot, x: int) -> None:
        for start, end, action in slot.line.actions:
            if start <= x < end:
                self._do(slot, action)
                return
        at = 0
        for text, style in slot.line.segments:
            at += cell_len(text)
            if x < at:
                if style.link:
                    self.post_message(self.LinkClicked(style.link))
                return

    def _do(self, slot: Slot, action: Action) -> None:
        name, value = action
        if isinstance(value, list):
            self.post_message(self.CopyRequested("\n".join(value), "code"))
        elif name == "fold":
            self._fold(slot, value)

    def _select_at(self, slot: Slot, x: int, whole: bool) -> None:
        line = slot.line
        y = key(slot.cursor.entry, slot.cursor.piece, line.row)
        start, end = 0, len(line.text)
        if not whole:
            at, cells = 0, 0
            for (text, _), begin in zip(line.segments, line.starts, strict=True):
                if begin >= 0 and cells <= x < cells + cell_len(text):
                    at = begin + min(len(text) - 1, x - cells)
                cells += cell_len(text)
            start, end = word_at(line.text, at)
        self.screen.selections = {self: Selection(Offset(start, y), Offset(end, y))}
