"""Writing the prompt, or a plan, in the user's editor."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
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
        import shlex

        editor = self._configured or os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        with tempfile.TemporaryDirectory(prefix="agent-tui-") as folder:
            path = Path(folder, name)
            path.write_text(text, encoding="utf-8")
            try:
                with self._lends.suspend():
                    # On the loop on purpose: nothing may draw while the terminal is the editor's.
                    done = subprocess.run([*shlex.split(editor), str(path)], check=False)  # noqa: ASYNC221
                self._lends.refresh(layout=True)
                changed = path.read_text(encoding="utf-8", errors="replace").rstrip("\n")
            except SuspendNotSupported:
                self._tells.say("warning", "This terminal cannot be lent to an editor.")
                return None
            except (OSError, ValueError) as error:
                self._tells.say("warning", f"Editor {editor}: {getattr(error, 'strerror', None) or error}")
                return None
        return changed if done.returncode == 0 and changed != text else None
