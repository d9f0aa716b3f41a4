"""Around what is being typed: proposals, the clipboard both ways, the draft that is kept, the user's editor."""

from __future__ import annotations

import asyncio
import base64
from functools import partial
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from agent_tui.completion import CompletionQuery, FileIndex, propose, shell_lines
from agent_tui.terminal_input import pasted_text
from agent_tui.ui.chat.view import ChatPart
from agent_tui.ui.keys import TypingGuard

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.models.messages import AttachmentPart
    from agent_tui.ui.chat.view import MainView


class CompletionLookup(ChatPart):
    """Looks for proposals in a task; only the newest question is answered."""

    def __init__(self, view: MainView, files: FileIndex) -> None:
        super().__init__(view)
        self.files = files

    def complete(self, query: CompletionQuery | None) -> None:
        """Proposes something for ``query``; nothing for None."""
        if not self._view.furnished:
            return
        if query is None:
            self._view.completions.show_proposals(())
            return
        if query.kind == "file" and not query.text:
            self.files.stale()
        self._view.begin(partial(self._propose, query), group="complete", exclusive=True)

    async def _propose(self, query: CompletionQuery) -> None:
        shell = shell_lines(self._view.history) if query.kind == "shell" else []
        found = await propose(query, self._agent, self.files, shell)
        completer = self._view.prompt.completer
        if completer is not None and completer.query == query:
            self._view.completions.show_proposals(found, query)


class Copying(ChatPart):
    """Into the clipboard: through the terminal, and the platform's own where there is one."""

    def copy(self, text: str, what: str) -> None:
        self.app.copy_to_clipboard(text)
        self._view.hint(f"Copied {what}")
        if not self.app.is_headless:
            self._view.begin(partial(self._natively, text))

    @staticmethod
    async def _natively(text: str) -> None:
        from agent_tui.commands.desktop import copy_text

        await asyncio.to_thread(copy_text, text)


class Pasting(ChatPart):
    """Into the prompt: an image as itself, long text behind a placeholder."""

    def pasted(self, text: str) -> None:
        """Text from the terminal's paste or the clipboard: images' paths become the images, long text a placeholder."""
        prompt = self._view.prompt
        text = pasted_text(text)
        parts = _images_and_names(text, self._agent)
        names = [part if isinstance(part, str) else prompt.placeholders.image(part) for part in parts]
        prompt.insert_text(" ".join(names) or prompt.placeholders.collapse(text))
        prompt.focus()

    async def paste(self) -> None:
        """Ctrl+V: an image from the platform's clipboard, else its text, else what was copied here."""
        if not self.app.is_headless:
            from agent_tui.commands.desktop import read_image, read_text

            image = await asyncio.to_thread(read_image)
            if image is not None:
                from agent_tui.models.messages import AttachmentPart

                part = AttachmentPart("clipboard.png", "image/png", data=base64.b64encode(image).decode())
                prompt = self._view.prompt
                prompt.insert_text(prompt.placeholders.image(part))
                return
            text = await asyncio.to_thread(read_text)
            if text:
                self.pasted(text)
                return
        if self.app.clipboard:
            self.pasted(self.app.clipboard)


def _images_and_names(text: str, agent: Agent | None) -> list[AttachmentPart | str]:
    """What stands for files that were dropped, where an image is among them: images as such, others as they are named
    in a message. Nothing where the text is anything else, one of them cannot be had, or no rules are known yet."""
    from agent_tui.commands.dropped import dropped_files
    from agent_tui.commands.mentions import IMAGE_TYPES, attachment, quote_path

    files = dropped_files(text)
    if agent is None or not any(path.suffix.lower() in IMAGE_TYPES for path in files):
        return []
    try:
        return [
            attachment(path, path.parent, agent.project.files)
            if path.suffix.lower() in IMAGE_TYPES
            else quote_path(str(path))
            for path in files
        ]
    except (OSError, ValueError):
        return []


DELAY = 1.0
"""Seconds from the first change to the writing."""
YIELDED = "You typed before your draft was loaded: ↑ brings the draft back."


class Drafts(ChatPart):
    """Writes the draft a moment after a change, not with every key."""

    def __init__(self, view: MainView) -> None:
        super().__init__(view)
        self._history = view.history
        self._prompt = view.prompt
        self._guard: TypingGuard | None = None  # while a draft stands there that no key has touched
        self._saving = False

    def changed(self) -> None:
        if not self._saving:
            self._saving = True
            self.app.set_timer(DELAY, self._save_later)

    def _save_later(self) -> None:
        self._saving = False
        if not self._history.recall.browsing:
            self.save()

    def save(self) -> None:
        """Keeps it now, with every paste in place."""
        self._history.save_draft(self._prompt.whole_text)

    def forget(self) -> None:
        self._history.save_draft("")

    def bring_back(self) -> None:
        """Puts the kept draft into the prompt; where something was typed already, into the history."""
        draft = self._history.load_draft()
        if not draft:
            return
        if self._prompt.is_empty:
            self._prompt.set_text(draft)
            self._guard = TypingGuard(self._view.clock)
            self._guard.appeared()
        else:
            self._yield(draft)

    def key_comes(self) -> None:
        """A key is about to change the prompt."""
        guard, self._guard = self._guard, None
        if guard is not None and guard.accidental():
            self._yield(self._prompt.whole_text)
            self._prompt.set_text("")

    def _yield(self, draft: str) -> None:
        self._history.set_aside(draft)
        self._view.say("info", YIELDED)


class ExternalEditor(ChatPart):
    """Lends the terminal to the user's editor: the configured one, else the one the environment names."""

    async def edit(self) -> None:
        """The prompt. The screen comes back when the editor ends."""
        changed = await self.changed(self._view.prompt.whole_text, "message.md")
        if changed is not None:
            self._view.prompt.set_text(changed)

    async def changed(self, text: str, name: str) -> str | None:
        """Lets the user edit a text in a file called ``name``; None where it stays as it is."""
        from agent_tui.commands.desktop import edit_text

        try:
            with self.app.suspend():
                # On the loop on purpose: nothing may draw while the terminal is the editor's.
                edited = edit_text(text, name, self._view.settings.editor)
            self.app.refresh(layout=True)
        except SuspendNotSupported:
            self._view.say("warning", "This terminal cannot open an editor.")
            return None
        if edited.problem:
            self._view.say("warning", edited.problem)
        return edited.text
