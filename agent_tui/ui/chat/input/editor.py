"""Writing the prompt, or a plan, in the user's editor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

if TYPE_CHECKING:
    from agent_tui.ui.chat.host import LendsTerminal
    from agent_tui.ui.chat.needs import Tells
    from agent_tui.ui.prompt.widget import Prompt


class Editor:
    """``configured`` is the editor's command; without it the environment names one."""

    def __init__(self, lends: LendsTerminal, prompt: Prompt, tells: Tells, configured: str | None) -> None:
        self._lends = lends
        self._prompt = prompt
        self._tells = tells
        self._configured = configured

    async def edit(self) -> None:
        """The prompt. The screen comes back when the editor ends."""
        changed = await self.changed(self._prompt.whole_text, "message.md")
        if changed is not None:
            self._prompt.set_text(changed)

    async def changed(self, text: str, name: str) -> str | None:
        """What becomes of ``text`` in the editor, in a file called ``name``; None where it stays as it is."""
        from agent_tui.commands.editing import edit_text

        try:
            with self._lends.suspend():
                # On the loop on purpose: nothing may draw while the terminal is the editor's.
                edited = edit_text(text, name, self._configured)
            self._lends.refresh(layout=True)
        except SuspendNotSupported:
            self._tells.say("warning", "This terminal cannot be lent to an editor.")
            return None
        if edited.problem:
            self._tells.say("warning", edited.problem)
        return edited.text
