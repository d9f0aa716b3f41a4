"""Tells whether files, and the folders on the way to them, are the same ones from one moment to a later one.

A time of change does not tell: who puts another folder in the place of one, and back, changes neither the file nor its
time, and a folder has a new time whenever anything is made in it.
"""

from __future__ import annotations

import errno
import os
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress

_MODIFY, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x2, 0x40, 0x80, 0x100, 0x200
_OVERFLOW = 0x4000
_EVENT = struct.Struct("iIII")


class FileWatch:
    """From when it is made on. Where the system has no inotify, or none left, it sees nothing: ``sees`` is False.
    ``top`` is the folder above which nobody moves anything."""

    def __init__(self, paths: Iterable[str], top: str) -> None:
        self.touched = False
        self._names: dict[int, set[bytes]] = {}
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
        self._fd = -1 if libc is None else libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if libc is None or self._fd < 0:
            return
        watches: dict[str, int] = {}
        seen = {top, "/"}
        for path in paths:
            while path not in seen:  # else all that is above it is watched
                seen.add(path)
                folder, name = os.path.split(path)
                if folder not in watches:
                    mask = _MODIFY | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
                    watches[folder] = libc.inotify_add_watch(self._fd, os.fsencode(folder), mask)
                    if watches[folder] < 0 and ctypes.get_errno() == errno.ENOSPC:
                        self.close()
                        return
                if watches[folder] >= 0:  # one that is not there yet is seen where it is made
                    self._names.setdefault(watches[folder], set()).add(os.fsencode(name))
                path = folder

    @property
    def sees(self) -> bool:
        return self._fd >= 0

    def fileno(self) -> int:
        return self._fd

    def look(self) -> bool:
        """Whether one was written, moved, made or deleted since."""
        with suppress(BlockingIOError):
            while self.sees:
                data, at = os.read(self._fd, 1 << 16), 0
                while at < len(data):
                    watch, mask, _, length = _EVENT.unpack_from(data, at)
                    at += _EVENT.size + length
                    name = data[at - length : at].rstrip(b"\0")
                    if mask & _OVERFLOW or name in self._names.get(watch, ()):
                        self.touched = True
        return self.touched

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()
