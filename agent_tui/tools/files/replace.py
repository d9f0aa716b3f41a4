"""Giving a file other content, whole or not at all, without losing anything else that it has.

A new file takes its place where that keeps owner, permissions, access lists and attributes. Where it cannot (further
names of the same file, another's file, a folder that may not be written), the file itself is written over: room for
it is reserved first, and what it held is copied, and put back when anything fails.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tempfile
import uuid
from pathlib import Path

from agent_tui.tools.files.beneath import Place

_NO_FOLDER = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_DROPPED = frozenset({"security.capability", "security.ima", "security.evm"})
"""What the system itself takes from a file whose content changes."""


def replace(place: Place, data: bytes, mode: int | None = None) -> os.stat_result:
    """Makes ``data`` the content of a file, which need not be there; its state then. ``mode`` are its permission bits,
    None those it has, and for a new file what the umask says. Raises OSError, and then the file is as it was."""
    try:
        there: os.stat_result | None = place.info()
    except FileNotFoundError:
        there = None
    if there is None:
        return _new_file(place, data, mode, None)
    if not stat.S_ISREG(there.st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    kept = stat.S_IMODE(there.st_mode) if mode is None else mode
    if there.st_nlink == 1:
        with contextlib.suppress(_Loses):
            return _new_file(place, data, kept, there)
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
        if os.fstat(descriptor).st_ino != there.st_ino:
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
