"""Logs the output of a command that is kept, after whoever read it has ended.

Standard library only, loaded by the supervisor when it is needed.
"""

import os

_CHUNK = 1 << 16
FULL = b"\n[the log is full: what followed is not kept]\n"


class Log:
    """Appends what comes out of ``source`` to the file ``path`` as it is, until that has ``limit`` bytes; what is
    beyond is thrown away, so that the command never waits for a reader."""

    def __init__(self, source: int, path: str, limit: int) -> None:
        self.source, self._limit = source, limit
        os.set_blocking(source, False)
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            self._size = os.fstat(self._file).st_size
        except OSError:
            self._file, self._size = -1, limit

    def take(self) -> bool:
        """Takes what is there; False once there will be no more."""
        try:
            data = os.read(self.source, _CHUNK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._write(data)
        return bool(data)

    def rest(self, last: str) -> None:
        """Takes all that is there now, and adds a last line."""
        while True:
            try:
                data = os.read(self.source, _CHUNK)
            except OSError:
                break
            if not data:
                break
            self._write(data)
        if self._file >= 0:
            os.write(self._file, f"\n[{last}]\n".encode())

    def _write(self, data: bytes) -> None:
        if self._size >= self._limit or self._file < 0:
            return
        room = self._limit - self._size
        self._size += len(data)
        try:
            os.write(self._file, data[:room] + (FULL if self._size >= self._limit else b""))
        except OSError:
            self._size = self._limit  # a full disk, say: the command goes on
