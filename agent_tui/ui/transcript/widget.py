"""The transcript widget: what fills it and what can be copied from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_tui.models.messages import AttachmentPart, Message, TextPart, ToolCallPart, ToolResultPart, images_in
from agent_tui.models.steps import CompactionRecord
from agent_tui.ui.flow.paint import key
from agent_tui.ui.transcript import messages as posted
from agent_tui.ui.transcript.content import TranscriptContent
from agent_tui.ui.transcript.document import Document
from agent_tui.ui.transcript.entry import Folding
from agent_tui.ui.transcript.find import FindState
from agent_tui.ui.transcript.parts import TextBlock

if TYPE_CHECKING:
    from agent_tui.config import OutputForm
    from agent_tui.ui.transcript.album import Album


class Transcript(TranscriptContent):
    """A conversation: what was said, thought and done, as one scrollable text."""

    LinkClicked = posted.LinkClicked
    CopyRequested = posted.CopyRequested
    PinAsked = posted.PinAsked
    FindChanged = posted.FindChanged
    FollowChanged = posted.FollowChanged
    ScreenAsked = posted.ScreenAsked

    def __init__(
        self,
        *,
        show_reasoning: bool = False,
        tool_output: OutputForm = "short",
        reduced_motion: bool = False,
        **names: Any,
    ) -> None:
        folding = Folding(show_reasoning, tool_output == "full", tool_output != "line")
        super().__init__(reduced_motion=reduced_motion, folding=folding, **names)

    def load(
        self,
        messages: Sequence[Message],
        records: Sequence[CompactionRecord] = (),
        summaries: Mapping[str, Message] | None = None,
        root: Path | None = None,
        *,
        same: bool = False,
        endings: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        """Shows a conversation instead of what was there, from its end; paths relative to the project's ``root``. What
        was said beside the conversation stays where it is the ``same`` session's. ``endings``: see ``add_messages``."""
        self.complete()
        kept = self.said_beside(messages, records) if same else {}
        self.clear(root)
        self.add_messages(messages, records, summaries or {}, kept, endings)
        if self.is_mounted:
            self.call_after_refresh(self.complete)
        else:
            self.complete()
        self.changed()

    def complete(self) -> None:
        """Adds what is older than what was shown first; nothing moves."""
        count = self.add_older()
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
        entry = self.entry_of(message_id) if message_id is not None else None
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
        self.add_messages((), (), {})
        self.document.tools.album, self.document.tools.opening = album, opening
        self.document.width = width
        self.document.palette = palette
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

    def last_answer(self) -> str | None:
        """The Markdown of the newest answer that has text."""
        return next(filter(None, self._answers()), None)

    def last_code(self) -> str | None:
        """The newest code block of the answers."""
        from agent_tui.ui.markdown.flows import parser

        for text in self._answers():
            for token in reversed(parser(True).parse(text) if "```" in text else []):
                if token.type == "fence":
                    return token.content.removesuffix("\n")
        return None

    def _answers(self) -> Iterator[str]:
        """Yields the Markdown of the answers, the newest first."""
        for entry in reversed(self.document.entries):
            if entry.message is None or entry.message.role != "assistant":
                continue
            if entry.live and entry.blocks is not None:
                yield "".join(block.body.text for block in entry.blocks if isinstance(block, TextBlock))
            else:
                yield "".join(part.text for part in entry.message.parts if isinstance(part, TextPart))

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

    def action_pin(self) -> None:
        message = self._marked()
        self.post_message(self.PinAsked(message.id if message is not None else ""))

    def _marked(self) -> Message | None:
        """The message in which the selection begins, else the newest one of the user's in view; None without words."""
        chosen = self.text_selection
        first = chosen.start.y if chosen is not None and chosen.start is not None else None
        for slot in self.slots if first is not None else reversed(self.slots):
            message = self.document.entries[slot.cursor.entry].message
            if first is not None:
                if key(slot.cursor.entry, slot.cursor.piece, slot.line.row) >= first:
                    return message
            elif message is not None and message.role == "user" and message.text.strip():
                return message
        return None
