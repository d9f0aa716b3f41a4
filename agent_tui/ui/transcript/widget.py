"""The transcript widget: what fills it and what can be copied from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_tui.models.messages import AttachmentPart, Message, TextPart, ToolCallPart, ToolResultPart, images_in
from agent_tui.models.requests import Delta
from agent_tui.models.steps import CompactionRecord, Step
from agent_tui.ui.transcript import messages as posted
from agent_tui.ui.transcript.content import Content
from agent_tui.ui.transcript.document import Document
from agent_tui.ui.transcript.entry import Folding
from agent_tui.ui.transcript.find import FindState
from agent_tui.ui.transcript.parts import TextBlock
from agent_tui.ui.transcript.reader import Pointer

if TYPE_CHECKING:
    from agent_tui.ui.transcript.album import Album

NEWEST = 400
"""Messages that are looked at before the first of a session is drawn."""


class Transcript(Pointer):
    """A conversation: what was said, thought and done, as one scrollable text."""

    LinkClicked = posted.LinkClicked
    CopyRequested = posted.CopyRequested
    FindChanged = posted.FindChanged
    FollowChanged = posted.FollowChanged
    PictureAsked = posted.PictureAsked

    def __init__(self, *, show_reasoning: bool = False, reduced_motion: bool = False, **names: Any) -> None:
        super().__init__(reduced_motion=reduced_motion, folding=Folding(show_reasoning), **names)
        self.content = Content(self.document, self.entry_changed)

    def load(
        self,
        messages: Sequence[Message],
        records: Sequence[CompactionRecord] = (),
        summaries: Mapping[str, Message] | None = None,
        root: Path | None = None,
    ) -> None:
        """Shows a conversation instead of what was there, from its end; paths relative to the project's ``root``."""
        self.clear(root)
        self.content.load(messages, records, summaries or {}, NEWEST)
        if self.is_mounted:
            self.call_after_refresh(self.complete)
        else:
            self.complete()
        self.changed()

    def complete(self) -> None:
        """Adds what is older than what was shown first; nothing moves."""
        count = self.content.complete()
        if count:
            self.clear_selection()
            self._top = self._top._replace(entry=self._top.entry + count)
            self._slots = []
            self.changed()

    def find(self, query: str, words: Sequence[str] = (), begin: int | None = None) -> FindState:
        self.complete()
        return super().find(query, words, begin)

    def find_in(self, message_id: str | None, query: str, words: Sequence[str]) -> FindState:
        """Searches for each of the words and goes to that message, or where it is not here to the newest match."""
        self.complete()
        entry = self.content.entry_of(message_id) if message_id is not None else None
        return self.find(query, words, entry.index if entry is not None else None)

    def _scrolled(self, rows: int, target: int) -> None:
        self.complete()
        super()._scrolled(rows, target)

    def clear(self, root: Path | None = None) -> None:
        """Empties it."""
        self.clear_find()
        self.clear_selection()
        width, palette, album = self.document.width, self.document.palette, self.document.tools.album
        opening = self.document.tools.opening
        if album is not None:
            album.close()
        self.document = Document(self.folding, root)
        self.document.tools.album, self.document.tools.opening = album, opening
        self.document.width = width
        self.document.palette = palette
        self.content = Content(self.document, self.entry_changed)
        self._waiting.clear()
        self._set_follow(True)
        self.changed()

    def use_pictures(self, album: Album) -> None:
        """Shows images as pictures from now on."""
        self.document.tools.album = album
        self.document.refold()
        self.changed()

    def open_pictures(self, opening: str) -> None:
        """Images are lines that open from now on; ``opening`` says how."""
        self.document.tools.opening = opening
        self.document.refold()
        self.changed()

    def images(self) -> list[AttachmentPart]:
        """All images of the conversation, the oldest first."""
        self.complete()
        found: list[AttachmentPart] = []
        of_calls = self.document.tools.images
        for entry in self.document.entries:
            message = entry.message
            if message is None:
                continue
            if message.role == "user":
                found += images_in(message.parts)
            for part in message.parts:
                if isinstance(part, ToolCallPart | ToolResultPart):
                    found += images_in(of_calls.get(part.call_id, ()))
        return found

    @property
    def root(self) -> Path:
        """The project, to which paths are shown relative."""
        return self.document.tools.root

    def forget_pictures(self) -> None:
        """The terminal was someone else's: it may have none of them any more."""
        if self.document.tools.album is not None:
            self.document.tools.album.forget()

    def drop_pictures(self) -> None:
        """Takes all pictures out of the terminal."""
        if self.document.tools.album is not None:
            self.document.tools.album.close()
            self.document.tools.album = None

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
        """Live output of a running tool; drawn at most 30 times a second."""
        self.grown(self.content.output(call_id, text))

    def withdraw(self, ids: Sequence[str]) -> None:
        """Messages are no longer in the conversation."""
        self.content.withdraw(ids)

    def tool_waiting(self, call_id: str, waiting: bool) -> None:
        """The call waits for the user's word, or no longer does."""
        self.content.waiting(call_id, waiting)

    def add_notice(self, level: str, text: str) -> None:
        """One line for the user: ``info``, ``warning`` or ``error``."""
        self.content.notice(level, text)

    def add_summary(self, record: CompactionRecord, message: Message | None = None, told: str = "") -> None:
        """A compaction, opening into its summary; ``told`` is what there is to say of it now."""
        self.content.summary(record, message, told)

    def add_block(self, title: str, body: str = "", *, markdown: bool = False, open: bool = True) -> None:
        """A titled text that opens and closes, such as a command's output."""
        self.content.block(title, body, markdown, open)

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

    def last_code(self, n: int = 1) -> str | None:
        """The ``n``-th newest code block of the answers."""
        from agent_tui.ui.markdown.flows import parser

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
            return "".join(block.body.text for block in entry.blocks if isinstance(block, TextBlock))
        return "".join(part.text for part in entry.message.parts if isinstance(part, TextPart))

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
