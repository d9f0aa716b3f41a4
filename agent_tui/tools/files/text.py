"""Text files that tools read to change them: read whole, written back without losing anything else that they have, and
remembered as the model has read them.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import os
import re
import shutil
import stat
import tempfile
import uuid
from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.models.messages import AttachmentPart, Message, Metadata
from agent_tui.records import dataclass
from agent_tui.tools.base import FileVersion, ToolContext, ToolMemory
from agent_tui.tools.files.beneath import Place, at, info_of, open_regular, shown
from agent_tui.tools.files.encodings import Encoding, decoded

_NO_FOLDER = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_DROPPED = frozenset({"security.capability", "security.ima", "security.evm"})
"""What the system itself takes from a file whose content changes."""


def create(place: Place, data: bytes, mode: int | None = None) -> None:
    """Makes a new file with these permission bits, as far as the umask lets it. Raises OSError, also where one is."""
    descriptor = place.open(os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else mode)
    try:
        with os.fdopen(descriptor, "wb", buffering=0):
            _write_here(descriptor, data)
    except BaseException:
        place.unlink()
        raise


def replace(place: Place, data: bytes, mode: int | None = None, *, alone: bool = False) -> os.stat_result:
    """Makes ``data`` the content of a file, which need not be there; its state then. ``mode`` are its permission bits,
    None those it has, and for a new file what the umask says. Other names of the same file (hard links) change with it,
    or ``alone``: keep what they have. Raises OSError, and then the file is as it was."""
    try:
        there: os.stat_result | None = place.info()
    except FileNotFoundError:
        there = None
    if there is None:
        return _new_file(place, data, mode, None)
    if not stat.S_ISREG(there.st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    kept = stat.S_IMODE(there.st_mode) if mode is None else mode
    if there.st_nlink == 1 or alone:
        try:
            return _new_file(place, data, kept, there)
        except _Loses:
            if there.st_nlink > 1:
                why = "a new file would lose its owner, and its other names (hard links) would change with it"
                raise OSError(errno.EPERM, why) from None
    return _over(place, data, kept, there)


class _Loses(Exception):
    """A new file in its place would not have all that the old one has."""


def _new_file(place: Place, data: bytes, mode: int | None, there: os.stat_result | None) -> os.stat_result:
    temporary = place.beside(f".{place.name[:50]}.{uuid.uuid4().hex[:12]}")
    try:
        # Private until its mode is known; a new file gets what the user's umask says.
        descriptor = temporary.open(os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600)
    except OSError as error:
        if there is not None and error.errno in _NO_FOLDER:
            raise _Loses from None
        raise
    try:
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            _write(descriptor, data)
            if there is not None:
                _inherit(place, descriptor, there)
            if mode is not None:
                os.fchmod(descriptor, mode)
            os.fsync(descriptor)
            info = os.fstat(file.fileno())
        temporary.rename(place)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    return info


def _inherit(place: Place, descriptor: int, there: os.stat_result) -> None:
    new = os.fstat(descriptor)
    try:
        if (new.st_uid, new.st_gid) != (there.st_uid, there.st_gid):
            os.fchown(descriptor, there.st_uid, there.st_gid)
        old = place.open(os.O_RDONLY)
    except PermissionError:
        raise _Loses from None
    try:
        _attributes(old, descriptor)
    finally:
        os.close(old)


def _attributes(old: int, new: int) -> None:
    if not hasattr(os, "listxattr"):
        return
    try:
        wanted = {name: os.getxattr(old, name) for name in os.listxattr(old) if name not in _DROPPED}
        for name in os.listxattr(new):  # an access list of the folder's
            if name not in wanted and not name.startswith("security."):
                os.removexattr(new, name)
        for name, value in wanted.items():
            if name not in os.listxattr(new) or os.getxattr(new, name) != value:
                os.setxattr(new, name, value)
    except OSError as error:
        if error.errno == errno.ENOTSUP:  # a file system without any
            return
        if error.errno in _NO_FOLDER:
            raise _Loses from None
        raise


def _over(place: Place, data: bytes, mode: int, there: os.stat_result) -> os.stat_result:
    descriptor = place.open(os.O_RDWR)
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        now = os.fstat(descriptor)
        if (now.st_ino, now.st_nlink) != (there.st_ino, there.st_nlink):
            raise OSError(errno.EAGAIN, "it has changed just now")
        backup = _backup(place, descriptor)
        try:
            # Nothing of the old file is given up before there is room for the new one.
            if len(data) > there.st_size and hasattr(os, "posix_fallocate"):
                _reserve(descriptor, len(data))
            _write(descriptor, data)
            os.ftruncate(descriptor, len(data))
            if mode != stat.S_IMODE(there.st_mode):
                os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        except BaseException as error:
            _put_back(descriptor, backup, error)
            raise
        with contextlib.suppress(OSError):
            backup.unlink()
        return os.fstat(file.fileno())


def _reserve(descriptor: int, size: int) -> None:
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
            raise


def _backup(place: Place, descriptor: int) -> Path:
    """A copy beside the file, else among the temporary files."""
    copy = place.beside(f".{place.name[:50]}.{uuid.uuid4().hex[:12]}.backup")
    try:
        target, path = copy.open(os.O_WRONLY | os.O_CREAT | os.O_EXCL), copy.path
    except OSError as error:
        if error.errno not in _NO_FOLDER:
            raise
        target, name = tempfile.mkstemp(prefix="agent-tui-", suffix=".backup")
        path = Path(name)
    try:
        with os.fdopen(target, "wb") as to, os.fdopen(os.dup(descriptor), "rb") as old:
            shutil.copyfileobj(old, to, 1 << 20)
            to.flush()
            os.fsync(to.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


def _put_back(descriptor: int, backup: Path, error: BaseException) -> None:
    try:
        with backup.open("rb") as old:
            size = os.fstat(old.fileno()).st_size
            os.lseek(descriptor, 0, os.SEEK_SET)
            while piece := old.read(1 << 20):
                _write_here(descriptor, piece)
            os.ftruncate(descriptor, size)
    except OSError:
        raise OSError(errno.EIO, f"and could not be put back ({error}); what it held is in {backup}") from error
    backup.unlink(missing_ok=True)


def _write(descriptor: int, data: bytes) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    _write_here(descriptor, data)


def _write_here(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


EDIT_BYTES = 20_000_000

SHOWN_BYTES = 2_000_000
"""Up to this size a file is read on the event loop, to show what an edit would change: a few milliseconds."""


BOM = "\ufeff"
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_MATCHED_LINES = 5_000
"""Up to this many lines of a file with ends of several kinds are compared, to keep them where a line stays."""


@dataclass(slots=True, frozen=True)
class TextFile:
    """A text file as it was read: its text without a mark of its encoding, that encoding, and its state."""

    text: str
    encoding: Encoding
    info: os.stat_result

    @property
    def windows(self) -> bool:
        """True when every line ends as on Windows."""
        return "\r\n" in self.text and self.text.count("\r\n") == self.text.count("\n")

    @property
    def mixed(self) -> bool:
        """True when some lines end as on Windows, and some do not."""
        return "\r\n" in self.text and not self.windows

    @property
    def seen(self) -> str:
        """The text with the line ends that the model sees, where all are of one kind."""
        return self.text.replace("\r\n", "\n") if self.windows else self.text

    def styled(self, text: str) -> str:
        """``text``, whose lines end with a newline, with the line ends of the file. Those that are there stay."""
        if "\r\n" in text or not (self.windows or self.mixed):
            return text
        return text.replace("\n", "\r\n") if self.windows else _as_before(self.text, text)

    def style(self) -> str:
        """What the model does not see of the file, and a text for it keeps; empty where there is nothing."""
        ends = ["CRLF line ends"] * self.windows + ["mix of LF and CRLF line ends"] * self.mixed
        marks = ["byte order mark"] * bool(self.encoding.mark)
        return " and ".join([*([f"{self.encoding.name} encoding"] * self.encoding.legacy), *ends, *marks])

    def encode(self, text: str, name: str) -> bytes:
        """The bytes of the file with another text. Raises ToolError where its encoding does not have a character, or
        ``text`` has a sign for bytes that could not be read in the place of these."""
        if self.encoding.damaged and text.count("\ufffd") > self.text.count("\ufffd"):
            raise ToolError(
                f"{name} holds bytes that are not UTF-8 and are shown as \ufffd: what they are would be lost. Nothing "
                "was changed. Use edit on the lines around them, or replace them with bash."
            )
        return self.encoding.encode(text.removeprefix(BOM) if self.encoding.mark else text, name)


def _as_before(old: str, new: str) -> str:
    """``new`` with the line ends that its lines have in ``old``, or those in whose place they come; what is added ends
    as the line before it."""
    before, after = _LINES.findall(old), _LINES.findall(new)
    plain = [line.replace("\r\n", "\n") for line in before]
    if len(before) + len(after) > _MATCHED_LINES:
        windows = old.count("\r\n") * 2 >= old.count("\n")
        return new.replace("\n", "\r\n") if windows else new
    windows = before[0].endswith("\r\n")
    lines: list[str] = []
    for _, was, was_end, now, now_end in difflib.SequenceMatcher(None, plain, after, autojunk=False).get_opcodes():
        for number in range(now, now_end):
            if was + number - now < was_end:
                windows = before[was + number - now].endswith("\r\n")
            line = after[number]
            lines.append(f"{line[:-1]}\r\n" if windows and line.endswith("\n") else line)
    return "".join(lines)


def load(path: Path, name: str) -> TextFile:
    """A text file. Raises ToolError for what is not a text file, or too large to edit."""
    with open_regular(path, name) as file:
        info = os.fstat(file.fileno())
        try:
            data = file.read(EDIT_BYTES + 1)
        except OSError as error:
            raise ToolError(f"{name} cannot be read: {error.strerror}.") from None
    if len(data) > EDIT_BYTES:
        raise ToolError(f"{name} is larger than {EDIT_BYTES:,} bytes; change it with bash.")
    found = decoded(data)
    if found is None:
        raise ToolError(f"{name} is a binary file; it cannot be edited as text.")
    return TextFile(*found, info)


def is_large(path: Path) -> bool:
    """Returns whether a file is too large to be read on the event loop."""
    info = info_of(path)
    return info is not None and info.st_size > SHOWN_BYTES


def save(
    context: ToolContext, path: Path, data: bytes, name: str, info: os.stat_result | None, mode: int | None = None
) -> None:
    """Writes ``data``, after telling ``before_change``; whole or not at all. ``info`` is the state of the file that
    it was made from, None where there was none; its permission bits are kept, and a new file gets those of ``mode``.
    Folders are created. Raises ToolError, also when the file is no longer in that state."""
    try:
        with at(path, make=True, change=True) as place:
            _require_state(place, name, info)
            context.before_change(path)
            remember(context, path, replace(place, data, mode if info is None else None))
    except OSError as error:
        raise ToolError(f"{name} cannot be written: {error.strerror or error}.") from None
    context.after_change(path)


def remove(context: ToolContext, path: Path, name: str, info: os.stat_result) -> None:
    """Removes the file whose state is ``info``, after telling ``before_change``. Raises ToolError, also when the file
    is no longer in that state."""
    try:
        with at(path, change=True) as place:
            _require_state(place, name, info)
            context.before_change(path)
            place.unlink()
    except OSError as error:
        raise ToolError(f"{name} cannot be removed: {error.strerror or error}.") from None
    context.memory.files.pop(str(path), None)
    context.after_change(path)


def _require_state(place: Place, name: str, info: os.stat_result | None) -> None:
    try:
        now: os.stat_result | None = place.info()
    except FileNotFoundError:
        now = None
    if (now and version(now)) != (info and version(info)):
        raise ToolError(f"{name} has changed just now. Read it again, then change it.")


_VERSION = "file_version"


def version(info: os.stat_result) -> FileVersion:
    return (info.st_mtime_ns, info.st_size, info.st_ino)


def remember(context: ToolContext, path: Path, info: os.stat_result) -> None:
    """Notes that the model knows the file as it is in ``info``."""
    context.memory.files[str(path)] = version(info)


def as_read(info: os.stat_result) -> Metadata:
    """For the metadata of an attached file: the model has read it as it is in ``info``."""
    return {_VERSION: list(version(info))}


def remember_attached(memory: ToolMemory, message: Message) -> None:
    """Notes that the model knows the files attached to a message, as they were when they were read."""
    for part in message.parts:
        if isinstance(part, AttachmentPart) and part.path and (known := attached_version(part)) is not None:
            memory.files[part.path] = known


def attached_version(part: AttachmentPart) -> FileVersion | None:
    """The file's version when its text was attached; None where that is not known."""
    match (part.provider_metadata or {}).get(_VERSION) if part.text is not None else None:
        case [int(modified), int(size), int(inode)]:
            return modified, size, inode
    return None


def require_unchanged(context: ToolContext, path: Path, info: os.stat_result) -> None:
    """Raises ToolError when the file was read in this session and has changed since."""
    known = context.memory.files.get(str(path))
    if known is not None and known != version(info):
        raise ToolError(f"{shown(path, context)} has changed since it was read. Read it again, then change it.")
