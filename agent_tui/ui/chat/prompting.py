"""What the prompt asks of the application: completion, history search, the editor, pasting images."""

from __future__ import annotations

import asyncio
import base64
import os
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from agent_tui.ui.prompt.completion import Query, propose
from agent_tui.ui.terminal import control as terminal

if TYPE_CHECKING:
    from textual.worker import Worker

    from agent_tui.models.messages import AttachmentPart
    from agent_tui.ui.app import AgentApp

DRAFT_DELAY = 1.0
READ_ONLY_HINT = "Read-only: this session is open elsewhere. /fork continues a copy."


class Prompting:
    """Answers the prompt's messages."""

    def __init__(self, app: AgentApp) -> None:
        self.app = app
        self._saving = False
        app.prompt.host = self

    async def asked(self, what: str) -> None:
        app = self.app
        match what:
            case "escape":
                app.action_escape()
            case "quit":
                app.leave()
            case "keys":
                app.open_screen("help", "keys")
            case "history":
                app.open_screen("history", app.prompt.text)
            case "panel":
                app.permissions.go_there()
            case "editor":
                await self.edit()
            case "paste":
                await self.paste()

    def typed(self) -> None:
        self.app.permissions.guard.typed()

    def sent(self, text: str, attachments: list[AttachmentPart], steer: bool) -> None:
        """A message, a command or a shell line goes out."""
        self.app.permissions.guard.sent()
        self.app.history_file.save_draft("")
        self.app.sender.send(text, attachments, steer)

    def take_back(self) -> None:
        """↑ on an empty prompt: the newest queued message, else the newest of the history."""
        taken = self.app.sender.take_back()
        if taken is None:
            self.app.prompt.recall_older()
        else:
            self.app.prompt.give_back(*taken)

    def send_waiting(self) -> None:
        """Enter on an empty prompt, while nothing runs: what waits goes out."""
        agent = self.app.agent
        if agent is not None and not agent.busy and agent.send_waiting():
            self.app.transcript.follow_end()

    def refused(self, text: str) -> bool:
        """A session that is open elsewhere takes commands only; the text stays where it is."""
        agent = self.app.agent
        if agent is None or not agent.read_only:
            return False
        from agent_tui.commands.registry import is_command

        if is_command(text, agent):
            return False
        self.app.hint(READ_ONLY_HINT)
        return True

    # Completion

    def complete(self, query: Query | None) -> None:
        if not self.app.furnished:
            return
        if query is None:
            self.app.completions.show_proposals(())
            return
        if query.kind == "file" and not query.text:
            self.app.files.stale()
        # A function, not a coroutine: one that is replaced before it began leaves nothing unawaited.
        self._proposing: Worker[None] = self.app.run_worker(
            partial(self._propose, query), group="complete", exclusive=True, exit_on_error=False
        )

    async def _propose(self, query: Query) -> None:
        shell: list[str] = []
        if query.kind == "shell":
            shell = [e[1:] for e in self.app.history_file.search("!") if e.startswith("!") and "\n" not in e]
        found = await propose(query, self.app.agent, self.app.files, shell)
        if self.app.prompt.query_now == query:
            self.app.completions.show_proposals(found, query)

    # Draft

    def changed(self) -> None:
        """Something was typed: hints go, the draft is kept a moment later."""
        # Emptied is not typed: a hint about what was just sent or cleared stays.
        # Nor does one that says where the question is, as long as it is open.
        if self.app.activity.hint_text and not self.app.prompt.is_empty and self.app.permissions.panel is None:
            self.app.activity.hint("")
        if not self._saving:
            self._saving = True
            self.app.set_timer(DRAFT_DELAY, self._save_draft)

    def _save_draft(self) -> None:
        self._saving = False
        prompt = self.app.prompt
        if not prompt.history_file.browsing:
            self.app.history_file.save_draft(prompt.placeholders.expand(prompt.text)[0])

    # Paste

    def pasted(self, text: str) -> None:
        """Text from the terminal's paste: an image's path becomes the image, long text a placeholder."""
        prompt = self.app.prompt
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        image = self._image_file(text)
        prompt.insert_text(prompt.placeholders.image(image) if image else prompt.placeholders.collapse(text))
        prompt.focus()

    @staticmethod
    def _image_file(text: str) -> AttachmentPart | None:
        from agent_tui.commands.mentions import IMAGE_TYPES, attachment

        name = text.strip().strip("'\"").removeprefix("file://").replace("\\ ", " ")
        if "\n" in name or len(name) > 4096 or Path(name).suffix.lower() not in IMAGE_TYPES:
            return None
        path = Path(name).expanduser()
        try:
            return attachment(path, path.parent) if path.is_absolute() and path.is_file() else None
        except (OSError, ValueError):
            return None

    async def paste(self) -> None:
        """Ctrl+V: an image from the platform's clipboard, else its text, else what was copied here."""
        app = self.app
        if not app.is_headless:
            image = await asyncio.to_thread(terminal.clipboard_image)
            if image is not None:
                from agent_tui.models.messages import AttachmentPart

                part = AttachmentPart("clipboard.png", "image/png", data=base64.b64encode(image).decode())
                app.prompt.insert_text(app.prompt.placeholders.image(part))
                return
            text = await asyncio.to_thread(terminal.clipboard_text)
            if text:
                self.pasted(text)
                return
        if app.clipboard:
            self.pasted(app.clipboard)

    # Editor

    async def edit(self) -> None:
        """Writes the prompt in the user's editor; the screen comes back when it ends."""
        import shlex

        app = self.app
        editor = app.settings.ui.editor or os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        text = app.prompt.placeholders.expand(app.prompt.text)[0]
        with tempfile.TemporaryDirectory(prefix="agent-tui-") as folder:
            path = Path(folder, "message.md")
            path.write_text(text, encoding="utf-8")
            try:
                with app.suspend():
                    # On the loop on purpose: nothing may draw while the terminal is the editor's.
                    done = subprocess.run([*shlex.split(editor), str(path)], check=False)  # noqa: ASYNC221
                app.refresh(layout=True)
                changed = path.read_text(encoding="utf-8", errors="replace").rstrip("\n")
            except SuspendNotSupported:
                app.say("warning", "This terminal cannot be lent to an editor.")
                return
            except (OSError, ValueError) as error:
                app.say("warning", f"Editor {editor}: {getattr(error, 'strerror', None) or error}")
                return
        if done.returncode == 0 and changed != text:
            app.prompt.set_text(changed)
