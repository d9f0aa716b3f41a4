"""The request made of a sandbox: a domain, the places it is about, and the process that comes of it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Literal, Protocol

from agent_tui.paths import private_dir
from agent_tui.records import dataclass
from agent_tui.tools.sandbox.network import SessionNetwork
from agent_tui.tools.sandbox.spec import Confinement

Domain = Literal["look", "work", "free"]
"""``look`` reads project and system; ``work`` also writes in the project; ``free`` is the user's own reach."""

DOMAINS: tuple[Domain, ...] = ("look", "work", "free")

Network = Literal["ask", "allow", "deny", "registries"]

Loopback = Literal["own", "machine", "deny"]
"""Ports on 127.0.0.1 and ::1 while the network is closed: ``own`` ones that nobody else reaches, those of the
``machine`` where a system can tell them from the rest of the network, or none."""


@dataclass(slots=True, frozen=True)
class Masks:
    """The files and folders that rules deny reading: to a command nothing of them is there to be read. What is
    ``fixed`` is meant for the folders around it, which must not be moved. ``incomplete``: why there may be more."""

    paths: tuple[Path, ...] = ()
    fixed: frozenset[Path] = frozenset()
    incomplete: str = ""


NO_MASKS = Masks()


@dataclass(slots=True, frozen=True)
class SandboxPolicy:
    """The places of one project.

    ``root`` is the project, ``writable`` are further folders that ``work`` may write in, ``readable`` may be read
    besides. ``network`` is that of ``work``: only ``allow`` opens it, ``ask`` means that a question comes first;
    ``loopback`` is what it has of this machine's while that is closed. ``hidden`` paths cannot be read at all.
    ``scratch`` is a private folder: temporary files and caches live below it; it is made when it is missing. Commands
    write in the folders of ``private``, not in itself: a link in the place of one of them would lead the next command
    out. ``shared`` is the network whose ports ``work`` has while the other one is closed; without it every command has
    one of its own. ``outputs`` are places in the project that ``look`` may write, too; ``sockets``: it may use unix
    sockets. ``masks`` are files in all of these that cannot be read either, and are not changed.
    """

    root: Path
    scratch: Path
    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    network: Network = "ask"
    loopback: Loopback = "own"
    hidden: tuple[Path, ...] = ()
    shared: SessionNetwork | None = None
    outputs: tuple[Path, ...] = ()
    sockets: bool = False
    masks: Masks = NO_MASKS

    def joins(self, domain: Domain) -> tuple[int, ...]:
        """Descriptors for a launch in ``domain`` that joins the shared network; none where it has another one. Raises
        OSError."""
        closed = domain == "work" and self.network != "allow" and self.loopback != "deny"
        return self.shared.joined() if closed and self.shared is not None else ()

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders that ``work`` may write in, links resolved, the project first. One that lies in another may
        have become a link to anywhere since it was named: it is left out."""
        named = [folder.resolve() if folder == self.root else folder for folder in (self.root, *self.writable)]
        return tuple(dict.fromkeys(folder for folder in named if folder.resolve() == folder))

    def prepare(self) -> None:
        """Makes the private folders. Raises OSError."""
        private_dir(self.scratch)
        for folder in self.private:
            if folder.is_symlink():
                folder.unlink()
            private_dir(folder)
        if self.masks.paths:
            self._make_masks()
        # pnpm's store has no variable that npm would not warn of.
        with contextlib.suppress(OSError):
            _write_beneath(self.scratch, ("config", "pnpm", "rc"), f"store-dir={self.cache / 'pnpm'}\n")
        # pytest makes its cache with a mode of its own, which not every sandbox lets it set.
        with contextlib.suppress(OSError):
            _write_beneath(self.scratch, ("cache", "pytest", ".gitignore"), "*\n")

    def _make_masks(self) -> None:
        """Makes what lies in the place of masked files and folders. It cannot be read or entered: something empty
        would be taken for what is there, and git would commit it as deleted."""
        self.masked_folder.mkdir(exist_ok=True)
        self.masked_file.touch()
        for place in (self.masked_folder, self.masked_file):
            place.chmod(0)

    @property
    def masked_folder(self) -> Path:
        return self.scratch / "masked-folder"

    @property
    def masked_file(self) -> Path:
        return self.scratch / "masked-file"

    @property
    def private(self) -> tuple[Path, ...]:
        """The folders below ``scratch`` that every command may write in."""
        return (self.temporary, self.cache, self.config, self.state)

    @property
    def temporary(self) -> Path:
        """The folder that ``TMPDIR`` points to: each process has its own."""
        return self.scratch / f"tmp-{os.getpid()}"

    @property
    def cache(self) -> Path:
        """The folder where package managers keep what they fetched."""
        return self.scratch / "cache"

    @property
    def config(self) -> Path:
        """The folder where programs look for their configuration, and keep what they like."""
        return self.scratch / "config"

    @property
    def state(self) -> Path:
        return self.scratch / "state"


def _write_beneath(folder: Path, names: tuple[str, ...], text: str) -> None:
    """Writes a file that is not there yet, through no link: commands write in these folders. Raises OSError."""
    at = os.open(folder, os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in names[:-1]:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=at)
            inner = os.open(name, os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            os.close(at)
            at = inner
        fd = os.open(names[-1], os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=at)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
    finally:
        os.close(at)


@dataclass(slots=True, frozen=True)
class Watch:
    """Paths below ``folder`` that are put back as they were when a command has ended, as far as it changed them."""

    folder: str
    names: tuple[str, ...]


@dataclass(slots=True)
class Launch:
    """A process to be started: ``argv`` with ``env`` and ``pass_fds``, in the folder that was asked for.

    ``close`` gives back what was opened for it and is called once the process runs or could not be started; a
    ``with`` block does that. ``command`` and ``confine`` are the same thing in two parts, for a starter that lays the
    restrictions on itself; ``confine`` is None where the backend has them in the command. ``watch`` are places that
    the starter guards because the backend cannot. ``carrier``: the first process is the backend's own, and whoever
    ends it ends the command without a word. ``masks`` are files that rules keep from it.
    """

    command: list[str]
    env: dict[str, str]
    domain: Domain
    pass_fds: tuple[int, ...] = ()
    confine: Confinement | None = None
    watch: tuple[Watch, ...] = field(default=())
    carrier: bool = False
    masks: tuple[Path, ...] = ()

    @property
    def argv(self) -> list[str]:
        if self.confine is None:
            return self.command
        from agent_tui.tools.sandbox.start import confined

        return confined(self.confine, self.command)

    def close(self) -> None:
        fds, self.pass_fds = self.pass_fds, ()
        for fd in fds:
            with contextlib.suppress(OSError):
                os.close(fd)

    def __enter__(self) -> Launch:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()


class SandboxBackend(Protocol):
    """One means of holding a command. ``subtracts``: it can keep parts of a writable folder read-only, or unread.
    ``own_tmp``: inside, ``/tmp`` is a private folder. ``loopback``: the settings under which commands have ports of
    this machine while the network is closed."""

    @property
    def name(self) -> str: ...

    @property
    def subtracts(self) -> bool: ...

    @property
    def own_tmp(self) -> bool: ...

    @property
    def loopback(self) -> frozenset[Loopback]: ...

    def wrap(
        self, argv: Sequence[str], domain: Domain, policy: SandboxPolicy, cwd: Path, env: Mapping[str, str]
    ) -> Launch:
        """The process that runs ``argv`` held to ``domain``; never asked for ``free``."""
        ...

    def enforces(self, domain: Domain, network: Network, loopback: Loopback) -> list[str]: ...


@dataclass(slots=True, frozen=True)
class Secrecy:
    """``secrets`` answers the configured keys by value, ``names`` are the variables they are configured to come from;
    ``allow`` are names and patterns that stay whatever they are."""

    secrets: Callable[[], Collection[str]] = tuple
    names: Collection[str] = ()
    allow: Collection[str] = ()


NO_SECRETS = Secrecy()


def free(argv: Sequence[str], env: Mapping[str, str]) -> Launch:
    """A process without any restriction."""
    return Launch(list(argv), dict(env), "free")


def domain_for(mode: str) -> Domain:
    """The domain of a command that runs without a question in permission mode ``mode``."""
    if mode in ("accept-edits", "auto"):
        return "work"
    return "free" if mode == "bypass" else "look"


NO_WRITING = "writes only private temporary files"
NO_WRITING_BUT_BUILDS = f"{NO_WRITING}, and in `ask` build folders that git ignores"
PROJECT_WRITING = "writes only in the project and added folders"
NO_HOME = "reads the project and the system, not your home"
GIT_HELD = "git hooks and configuration read-only"
"""What a backend enforces, in the words that /status lists."""


def look_words(ports: bool) -> str:
    """Describes what ``look`` reaches, in the words that /status lists."""
    return (
        "no network except ports on 127.0.0.1 that the command itself opens"
        if ports
        else "no network, not even on this machine"
    )


def network_words(network: Network, loopback: Loopback) -> str:
    """Describes what ``work`` reaches, in the words that /status lists."""
    if network == "allow":
        return "network open"
    if network == "registries":
        return "no network except package registries and hosts you allowed"
    ports = {"own": "ports of its own on 127.0.0.1 and ::1", "machine": "this machine's own ports"}
    return f"no network except {ports[loopback]}" if loopback in ports else "no network, not even on this machine"
