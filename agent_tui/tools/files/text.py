"""Reading whole text files to change them, and writing them back without losing anything."""

from __future__ import annotations

import contextlib
import os
import stat
import uuid
from dataclasses import dataclass
from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.tools.base import ToolContext
from agent_tui.tools.files import seen
from agent_tui.tools.files.opening import open_regular

EDIT_BYTES = 20_000_000

SHOWN_BYTES = 2_000_000
"""Up to this size a file is read on the event loop, to show what an edit would change: a few milliseconds."""


BOM = "\ufeff"


@dataclass(slots=True, frozen=True)
class Style:
    """How a text file is written beside its text: Windows line ends throughout, a mark of its encoding in front."""

    windows: bool = False
    mark: bool = False

    def __str__(self) -> str:
        return " and ".join(["CRLF line ends"] * self.windows + ["byte order mark"] * self.mark)

    def applied(self, text: str) -> str:
        """``text``, whose lines end with a newline, written so. Line ends and a mark that are there stay."""
        if self.windows and "\r\n" not in text:
            text = text.replace("\n", "\r\n")
        return BOM + text if self.mark and not text.startswith(BOM) else text


def style_of(text: str) -> Style:
    return Style("\r\n" in text and text.count("\r\n") == text.count("\n"), text.startswith(BOM))


def load(path: Path, name: str) -> tuple[str, os.stat_result]:
    """A text file's content, bytes that are not UTF-8 kept as surrogates, and its state. Raises ToolError for what
    is not a text file, or too large to edit."""
    with open_regular(path, name) as file:
        info = os.fstat(file.fileno())
        try:
            data = file.read(EDIT_BYTES + 1)
        except OSError as error:
            raise ToolError(f"{name} cannot be read: {error.strerror}.") from None
    if len(data) > EDIT_BYTES:
        raise ToolError(f"{name} is larger than {EDIT_BYTES:,} bytes; change it with bash.")
    if b"\0" in data:
        raise ToolError(f"{name} is a binary file; it cannot be edited as text.")
    return data.decode("utf-8", "surrogateescape"), info


def is_large(path: Path) -> bool:
    """Whether a file is too large to be read on the event loop."""
    try:
        return path.stat().st_size > SHOWN_BYTES
    except OSError:
        return False


def save(
    context: ToolContext, path: Path, text: str, name: str, info: os.stat_result | None, mode: int | None = None
) -> None:
    """Writes ``text``, after telling ``before_change``; whole or not at all wherever the file system allows that.
    ``info`` is the state of the file that ``text`` was made from, None where there was none; its permission bits are
    kept, and a new file gets those of ``mode``. Folders are created. Raises ToolError, also when the file is no longer
    in that state."""
    data = text.encode("utf-8", "surrogateescape")
    mode = stat.S_IMODE(info.st_mode) if info is not None else mode
    _require_state(path, name, info)
    context.before_change(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if _replaceable(path):
            _replace(path, data, mode)
        else:
            _overwrite(path, data)
        seen.remember(context, path, path.stat())
    except OSError as error:
        raise ToolError(f"{name} cannot be written: {error.strerror or error}.") from None
    context.after_change(path)


def remove(context: ToolContext, path: Path, name: str, info: os.stat_result) -> None:
    """Removes the file whose state is ``info``, after telling ``before_change``. Raises ToolError, also when the file
    is no longer in that state."""
    _require_state(path, name, info)
    context.before_change(path)
    try:
        path.unlink()
    except OSError as error:
        raise ToolError(f"{name} cannot be removed: {error.strerror or error}.") from None
    context.memory.files.pop(str(path), None)
    context.after_change(path)


def _require_state(path: Path, name: str, info: os.stat_result | None) -> None:
    try:
        now: os.stat_result | None = path.lstat()
    except OSError:
        now = None
    if (now and seen.version(now)) != (info and seen.version(info)):
        raise ToolError(f"{name} has changed just now. Read it again, then change it.")


def _replaceable(path: Path) -> bool:
    """False where a new file would lose something: hard links, another owner, a folder we may not write."""
    try:
        info = path.lstat()
    except FileNotFoundError:
        return True
    return info.st_nlink == 1 and info.st_uid == os.geteuid() and os.access(path.parent, os.W_OK)


def _replace(path: Path, data: bytes, mode: int | None) -> None:
    temporary = path.with_name(f".{path.name[:50]}.{uuid.uuid4().hex[:12]}")
    # Private until its mode is known; a new file gets what the user's umask says.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def _overwrite(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
