"""What the program tells its starters: records that go to them as plain values, one field a fact.

They are not loaded by the starters, which run on the standard library alone and read the same names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict


class Confinement(TypedDict, total=False):
    """The restrictions that ``confine`` lays on a command."""

    join: tuple[int, ...]
    """Descriptors of a network that is shared."""
    only_join: bool
    """Nothing but that: the command restricts itself."""
    own_network: bool
    mounts: Sequence[tuple[str, str, str]]
    """What is where in its file system; with ``cwd``, all other namespaces are its own, too."""
    cwd: str
    rules: list[tuple[str, str]]
    """Paths and their rights, for Landlock."""
    network: bool
    scope: int
    """What Landlock keeps from it: 1 abstract unix sockets, 2 signals."""
    seccomp: bytes | None
    capabilities: bool
    same: Sequence[tuple[str, int, int]]
    """Places (path, device, inode) that must be what they were."""
    noticed: tuple[int, bytes] | None
    """A socket, and the program by whose calls whoever has its other end is told."""


class LeftRunning(TypedDict):
    """The output of a command that may be left running: the file that takes it then, up to so many bytes."""

    output: int
    log: str
    limit: int


class Supervision(TypedDict, total=False):
    """What a supervisor is told of its command; ``fds`` are those that are the command's alone."""

    status: int
    control: int
    carrier: bool
    confine: Confinement
    watch: Sequence[tuple[str, tuple[str, ...]]]
    held: str
    fds: tuple[int, ...]
    keep: LeftRunning
    quiet: bool


class Sharing(TypedDict):
    """The socket by which ``share`` hands over the network that it made."""

    to: int
