"""The user's own programs: their editor, and the platform's clipboard. Everything here blocks: call it in a thread."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from agent_tui.pipes.programs import find_program, why_not_found
from agent_tui.pipes.start import run, spawn
from agent_tui.urls import is_loopback, page_address

IMAGE_LIMIT = 40_000_000
"""Bytes of an image on the clipboard; what a model does not take is scaled down when it is sent."""
_TIMEOUT = 5.0


def _run(command: Sequence[str], data: bytes | None = None) -> bytes | None:
    try:
        told = {"stdout": subprocess.PIPE} if data is None else {"input": data, "stdout": subprocess.DEVNULL}
        done = run(command, stderr=subprocess.DEVNULL, timeout=_TIMEOUT, **told)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (done.stdout or b"") if done.returncode == 0 else None


def _first(commands: Sequence[Sequence[str]], data: bytes | None = None) -> bytes | None:
    for command in commands:
        if program := find_program(command[0]):
            found = _run([program, *command[1:]], data)
            if found is not None and (found or data is not None):
                return found
    return None


def copy_text(text: str) -> bool:
    """Puts text into the platform's clipboard; False where there is no tool for it."""
    own = {"darwin": [["pbcopy"]]}
    others = [["wl-copy"], ["xclip", "-selection", "clipboard"], ["xsel", "-ib"]]
    return _first(own.get(sys.platform, others), text.encode("utf-8", "replace")) is not None


def read_image() -> bytes | None:
    """A PNG from the platform's clipboard, or None."""
    others = [["wl-paste", "--type", "image/png"], ["xclip", "-selection", "clipboard", "-t", "image/png", "-o"]]
    found = _first({"darwin": [["pngpaste", "-"]]}.get(sys.platform, others))
    return found if found and found.startswith(b"\x89PNG") and len(found) <= IMAGE_LIMIT else None


def read_text() -> str | None:
    """Text from the platform's clipboard, or None."""
    own = {"darwin": [["pbpaste"]]}
    others = [["wl-paste", "--no-newline"], ["xclip", "-selection", "clipboard", "-o"], ["xsel", "-ob"]]
    found = _first(own.get(sys.platform, others))
    return found.decode("utf-8", "replace") if found else None


def open_address(address: str, clicked: bool = False) -> bool:
    """Has the user's browser open an address; False where there is none, or none that shows a page: over ssh, on a
    machine without a screen. Opens nothing but https, and http on this machine; of what was ``clicked``, any page
    and mail."""
    page = page_address(address)
    if page is None or not (clicked or page.startswith("https:") or is_loopback(page)):
        return False
    own = [shlex.split(os.environ["BROWSER"].split(os.pathsep)[0])] if os.environ.get("BROWSER") else []
    return _open([*own, *_openers()], page)


def open_picture(path: Path) -> bool:
    """Has the user's viewer show an image file; False where there is none, as over ssh."""
    return _open(_openers(), str(path))


def _openers() -> list[list[str]]:
    """What opens a page or a file as the user's desktop does; none where nobody sits before this machine."""
    if sys.platform == "darwin":
        return [] if os.environ.get("SSH_CONNECTION") else [["open"]]
    screen = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return [["wslview"], ["xdg-open"]] if screen else [["wslview"]]


def _open(commands: Sequence[Sequence[str]], what: str) -> bool:
    for command in commands:
        if command and (program := find_program(command[0])):
            silent = subprocess.DEVNULL
            try:
                spawn([program, *command[1:], what], stdout=silent, stderr=silent, start_new_session=True)
            except OSError:
                continue
            return True
    return False


class Edited(NamedTuple):
    """``text`` is None where it stays as it is, ``problem`` says why the editor could not be used."""

    text: str | None
    problem: str = ""


def edit_text(text: str, name: str, configured: str | None) -> Edited:
    """Lets the user edit ``text`` in the editor, in a file called ``name``, and returns what became of it.
    ``configured`` is its command; without it the environment names one. Blocks until the editor ends; the terminal is
    the editor's meanwhile."""
    editor = configured or os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        words = shlex.split(editor)
    except ValueError as error:
        return Edited(None, f"Editor {editor}: {error}")
    program = find_program(words[0]) if words else None
    if program is None:
        return Edited(None, f"Editor {editor}: {why_not_found(words[0] if words else editor)}")
    with tempfile.TemporaryDirectory(prefix="agent-tui-") as folder:
        path = Path(folder, name)
        path.write_text(text, encoding="utf-8")
        try:
            # Not in the project: editors take settings, which are programs, from the folder they start in.
            done = run([program, *words[1:], str(path)], stdin=None, cwd=folder)
            changed = path.read_text(encoding="utf-8", errors="replace").rstrip("\n")
        except OSError as error:
            return Edited(None, f"Editor {editor}: {getattr(error, 'strerror', None) or error}")
    return Edited(changed if done.returncode == 0 and changed != text else None)
