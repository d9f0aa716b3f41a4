"""Writing the prompt in the user's editor."""

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
        """The screen comes back when the editor ends."""
        import shlex

        editor = self._configured or os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        text = self._prompt.whole_text
        with tempfile.TemporaryDirectory(prefix="agent-tui-") as folder:
            path = Path(folder, "message.md")
            path.write_text(text, encoding="utf-8")
            try:
                with self._lends.suspend():
                    # On the loop on purpose: nothing may draw while the terminal is the editor's.
                    done = subprocess.run([*shlex.split(editor), str(path)], check=False)  # noqa: ASYNC221
                self._lends.refresh(layout=True)
                changed = path.read_text(encoding="utf-8", errors="replace").rstrip("\n")
            except SuspendNotSupported:
                self._tells.say("warning", "This terminal cannot be lent to an editor.")
                return
            except (OSError, ValueError) as error:
                self._tells.say("warning", f"Editor {editor}: {getattr(error, 'strerror', None) or error}")
                return
        if done.returncode == 0 and changed != text:
            self._prompt.set_text(changed)
