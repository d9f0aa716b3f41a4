"""The network that the held commands of one program share: a server that one started is there for the next."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import weakref

from agent_tui.tools.sandbox.start import starter

log = logging.getLogger(__name__)

PATIENCE = 10.0
"""Seconds the making may take; it takes a few hundredths of one."""


class SessionNetwork:
    """Only a loopback, and no way out of it but what is made of ``listener``, a socket inside it. It is there as long
    as this object, this process or a command in it is: the kernel takes it away, however they end."""

    def __init__(self, fds: list[int], listener: socket.socket | None = None) -> None:
        self._fds = fds
        self.listener = listener
        weakref.finalize(self, _close, tuple(fds))

    def joined(self) -> tuple[int, ...]:
        """Descriptors of its namespaces, in the order in which they are entered, for one launch to hand on and
        close. Raises OSError."""
        found: list[int] = []
        try:
            for fd in self._fds:
                found.append(os.dup(fd))
        except OSError:
            _close(tuple(found))
            raise
        return tuple(found)


def session_network() -> SessionNetwork | None:
    """A new one; None where the system gives none. Not for the UI's loop: it starts a process and waits for it."""
    if sys.platform != "linux":
        return None
    ours, theirs = socket.socketpair()
    with ours:
        try:
            with theirs:
                done = subprocess.run(
                    starter("share", {"to": theirs.fileno()}, []),
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=PATIENCE,
                    check=False,
                )
            _, fds, _, _ = socket.recv_fds(ours, 1, 3)
        except (OSError, subprocess.SubprocessError) as error:
            log.info("Commands share no network: %s", error)
            return None
    if not fds:
        log.info("Commands share no network: %s", done.stderr.decode("utf-8", "replace").strip())
        return None
    for fd in fds:
        os.set_inheritable(fd, False)
    return SessionNetwork(fds[1:], socket.socket(fileno=fds[0]))


def _close(fds: tuple[int, ...]) -> None:
    for fd in fds:
        os.close(fd)
