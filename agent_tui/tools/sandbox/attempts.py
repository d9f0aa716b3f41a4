"""Records what a command that is held to looking would have changed: told by the kernel, not read off what it says.

Programs swallow errors, say them in other words or languages, and end well all the same. So the command runs under a
filter of system calls that refuses nothing and tells of each that would change a file by its name; the sandbox then
refuses it as ever. Where the kernel has no such filter nothing is noticed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import shutil
import socket
import stat
import struct
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent_tui.tools.sandbox import filters
from agent_tui.tools.sandbox.outputs import Lent
from agent_tui.tools.sandbox.start import confined

log = logging.getLogger(__name__)

_RECEIVE, _ANSWER, _GO_ON = 0xC0502100, 0xC0182101, 1
_NOTICE = struct.Struct("<QIIiIQ6Q")
_REPLY = struct.Struct("<QqiI")
_HERE = -100
"""AT_FDCWD."""

_REMOVE_FOLDER = 0x200
"""AT_REMOVEDIR."""

_OF_WHAT_IS_THERE = (
    *("truncate", "chmod", "fchmod", "chown", "lchown", "fchown", "utime", "futimes"),
    *("setxattr", "lsetxattr", "removexattr", "lremovexattr"),
)
"""How the names of calls begin that change a file and make none."""

_ON_WHAT_IS_THERE = ("open", "creat", *_OF_WHAT_IS_THERE)

MOST = 200
"""Paths that are kept of one command."""


class Attempts:
    """Listens to one command. ``folders`` are those that it might write in if it were let, but for ``kept``.
    ``temporary`` is where its temporary files are; ``own_tmp``: it finds them in ``/tmp``, too. ``lent`` is what it may
    write all the same."""

    def __init__(
        self,
        folders: Sequence[Path],
        kept: Sequence[Path] = (),
        temporary: Path | None = None,
        own_tmp: bool = False,
        lent: Lent | None = None,
    ) -> None:
        self._folders, self._kept = list(folders), list(kept)
        self._temporary, self._own_tmp = temporary, own_tmp
        self.lent = lent or Lent()
        self._made: dict[str, None] = {}
        self._found: dict[Path, bool] = {}
        self._calls = filters.numbers(filters.CHANGES)
        self._ours, self._theirs = socket.socketpair()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="attempts", daemon=True)

    def wrapped(self, argv: Sequence[str]) -> list[str]:
        """``argv`` so that it is listened to."""
        program, same = filters.noticing(), [(str(path), *known) for path, known in self.lent.places.items()]
        if program is None and not same:
            return list(argv)
        noticed = (self._theirs.fileno(), program) if program is not None else None
        return confined({"capabilities": False, "same": same, "noticed": noticed}, argv)

    def begin(self) -> int:
        """Starts to listen; the descriptor that the command is started with, which the caller closes."""
        self._thread.start()
        return self._theirs.detach()

    def end(self) -> Mapping[Path, bool]:
        """The paths that the command tried to change and might have, once it has ended; True for a folder."""
        if self._over.is_set():
            return dict(self._found)
        self._over.set()
        with contextlib.suppress(OSError):
            self._ours.shutdown(socket.SHUT_RDWR)
        if self._thread.ident is None:
            self._ours.close()
        else:
            self._thread.join(2.0)
        self._theirs.close()
        self.lent.give_back()
        return dict(self._found)

    def undo(self) -> None:
        """Takes away what the command made in its folder for temporary files, so that it finds it as it was when it
        runs once more. What lies in folders that were there before stays."""
        if self._temporary is None:
            return
        for name in self._made:
            path = self._temporary / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)

    def _listen(self) -> None:
        with self._ours:
            try:
                _, fds, _, _ = socket.recv_fds(self._ours, 1, 1)
            except OSError:
                return
        for fd in fds:
            try:
                self._follow(fd)
            finally:
                os.close(fd)

    def _follow(self, fd: int) -> None:
        import fcntl

        poll = select.poll()
        poll.register(fd, select.POLLIN)
        while True:
            events = poll.poll(200)
            if events and events[0][1] & select.POLLIN:
                try:
                    notice = fcntl.ioctl(fd, _RECEIVE, bytes(_NOTICE.size))
                except OSError:
                    continue  # who called is gone
                id_, pid, _, number, _, _, *arguments = _NOTICE.unpack(notice)
                # A command waits for the answer, and what it names may be anything: whatever goes wrong, it gets one.
                said: int | None = None
                try:
                    said = self._note(pid, self._calls.get(number, ""), arguments)
                except Exception as error:
                    log.debug("A call was not understood: %s", error)
                with contextlib.suppress(OSError):
                    fcntl.ioctl(fd, _ANSWER, _REPLY.pack(id_, 0, said or 0, _GO_ON if said is None else 0))
            elif events or self._over.is_set():
                return

    def _note(self, pid: int, call: str, arguments: Sequence[int]) -> int | None:
        """Notes a call and returns its answer; None: none, the call goes on."""
        named = filters.CHANGES.get(call, ())
        paths = [_path(pid, None if at is None else arguments[at], arguments[name]) for at, name in named]
        removes = call == "rmdir" or (call == "unlinkat" and bool(arguments[2] & _REMOVE_FOLDER))
        if removes or call.startswith("mkdir"):
            said = self.lent.pretend(not removes, paths[0])
            if said is not None:
                return said
        self._note_temporary(paths)
        self.lent.written |= {place for path in paths if (place := self.lent.around(path)) is not None}
        if len(self._found) < MOST and all(os.path.lexists(path) for path in paths[:-1]):
            tried = [path for path in paths if self.lent.around(path) is None and self._changes(call, path)]
            self._found |= {path: call.startswith("mkdir") or path.is_dir() for path in tried}
        return None

    def _note_temporary(self, paths: Sequence[Path]) -> None:
        """Keeps the names of what is new in the temporary folder. They are names in that folder itself, which no
        command can exchange: what is taken away later is nowhere else."""
        temporary = self._temporary
        if temporary is None or len(self._made) >= MOST:
            return
        for path in paths:
            for place in (temporary, *((Path("/tmp"),) if self._own_tmp else ())):
                if path != place and path.is_relative_to(place) and not self._within(path):
                    name = path.relative_to(place).parts[0]
                    if not os.path.lexists(temporary / name):
                        self._made[name] = None

    def _within(self, path: Path) -> bool:
        return any(map(path.is_relative_to, self._folders))

    def _changes(self, call: str, path: Path) -> bool:
        """Returns whether the call might have changed something here, had it not been for the sandbox."""
        meant = path.with_name(path.name.removesuffix(".lock") or path.name)
        if not self._within(path) or any(map(meant.is_relative_to, self._kept)):
            return False
        try:
            mode: int | None = path.lstat().st_mode
        except OSError:
            mode = None
        if mode is None and (call.startswith(("unlink", "rmdir", *_OF_WHAT_IS_THERE)) or not path.parent.is_dir()):
            return False
        if mode is not None and (call.startswith(("mkdir", "mknod", "link", "symlink")) or not _takes(call, mode)):
            return False
        return os.access(path if mode is not None and call.startswith(_ON_WHAT_IS_THERE) else path.parent, os.W_OK)


def _takes(call: str, mode: int) -> bool:
    """Returns whether a call that writes can be about a file of this ``mode``: folders and devices are not opened to be
    changed."""
    return not call.startswith(("open", "creat", "truncate")) or stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def _path(pid: int, folder: int | None, address: int) -> Path:
    """The path that a call names, its folder's links resolved. Raises OSError."""
    memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        # What follows the name may lie in a page that is not there.
        text = os.pread(memory, 4096 - address % 4096, address)
        if b"\0" not in text:
            text += os.pread(memory, 4096, address + len(text))
    finally:
        os.close(memory)
    name = os.fsdecode(text.partition(b"\0")[0])
    if not name:
        raise ValueError("no name")
    at = _HERE if folder is None else struct.unpack("<i", struct.pack("<I", folder & 0xFFFFFFFF))[0]
    base = Path(f"/proc/{pid}/cwd" if at == _HERE else f"/proc/{pid}/fd/{at}").readlink()
    path = Path(os.path.normpath(base / name))
    return path.parent.resolve() / path.name
