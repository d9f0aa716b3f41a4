"""A text in the user's editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple


class Edited(NamedTuple):
    """``text`` is None where it stays as it is, ``problem`` says why the editor could not be used."""

    text: str | None
    problem: str = ""


def edit_text(text: str, name: str, configured: str | None) -> Edited:
    """Lets the user edit ``text`` in the editor, in a file called ``name``, and returns what became of it.
    ``configured`` is its command; without it the environment names one. Blocks until the editor ends; the terminal is
    the editor's meanwhile."""
    editor = configured or os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="agent-tui-") as folder:
        path = Path(folder, name)
        path.write_text(text, encoding="utf-8")
        try:
            done = subprocess.run([*shlex.split(editor), str(path)], check=False)
            changed = path.read_text(encoding="utf-8", errors="replace").rstrip("\n")
        except (OSError, ValueError) as error:
            return Edited(None, f"Editor {editor}: {getattr(error, 'strerror', None) or error}")
    return Edited(changed if done.returncode == 0 and changed != text else None)
