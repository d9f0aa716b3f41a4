"""The means of holding a command: namespaces in which only what is listed exists (our own or bubblewrap's); Landlock,
by which a process gives up rights for itself and its children; each with seccomp; and Seatbelt on macOS."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

from agent_tui.tools.sandbox import filters, places
from agent_tui.tools.sandbox.policy import (
    GIT_HELD,
    NO_HOME,
    NO_WRITING,
    NO_WRITING_BUT_BUILDS,
    PROJECT_WRITING,
    Domain,
    Launch,
    Loopback,
    Network,
    SandboxPolicy,
    Watch,
    look_words,
    network_words,
)
from agent_tui.tools.sandbox.spec import Confinement
from agent_tui.tools.sandbox.start import as_file, confined


class Landlock:
    """``version`` is the kernel's ABI. It adds rights and cannot take away from what it gave: a folder with holes is
    given in parts, and what a writable folder must keep is put back by the starter.

    It knows ports and no addresses, so it cannot open those of this machine alone. ``ports``: commands get a network
    of their own from the kernel, which has nothing but a loopback."""

    subtracts = False
    own_tmp = False

    def __init__(self, version: int, *, ports: bool = False) -> None:
        self.version, self._ports = version, ports

    @property
    def name(self) -> str:
        return "Landlock with a network namespace" if self._ports else "Landlock"

    @property
    def loopback(self) -> frozenset[Loopback]:
        return frozenset({"own", "machine"}) if self._ports else frozenset()

    def wrap(
        self, argv: Sequence[str], domain: Domain, policy: SandboxPolicy, cwd: Path, env: Mapping[str, str]
    ) -> Launch:
        joins = policy.joins(domain) if self._ports else ()
        hidden = [str(place) for place in places.secrets(policy)]

        def kept(path: Path, folder: Path) -> bool:
            # What is secret in the folder is in no part of it; a folder in a secret place is all there.
            return any(places.is_within(str(path), one) and places.is_within(one, str(folder)) for one in hidden)

        return Launch(
            list(argv),
            {**env, "TMPDIR": str(policy.temporary)},
            domain,
            joins,
            confine={**spec(domain, policy, self._ports), "join": joins},
            watch=watches(policy, kept) if domain == "work" else (),
        )

    def enforces(self, domain: Domain, network: Network, loopback: Loopback) -> list[str]:
        if domain == "look":
            words = [NO_WRITING_BUT_BUILDS, NO_HOME, look_words(loopback in self.loopback)]
        else:
            words = [PROJECT_WRITING, NO_HOME]
            words += ["git hooks and configuration are restored"]
            words += [network_words(network, "own" if loopback in self.loopback else "deny")]
            words += ["cannot keep modes and times of other files of yours"]
        words.append("sees other processes")
        if self.version < 6:
            words.append("can signal other processes of yours")
        return words


def spec(domain: Domain, policy: SandboxPolicy, ports: bool = False) -> Confinement:
    """Returns the restrictions that the starter lays on."""
    network = domain == "work" and policy.network == "allow"
    own = ports and not network and policy.loopback != "deny"
    # A unix socket leads to whoever listens: containers, agents, the desktop. Landlock does not see it.
    sockets = filters.INTERNET if network or own else ()
    return {
        "rules": rules(domain, policy),
        "network": network or own,
        "own_network": own,
        "seccomp": filters.program(sockets, metadata=domain == "work", apart=False),
    }


def rules(domain: Domain, policy: SandboxPolicy) -> list[tuple[str, str]]:
    """(path, rights) of everything that may be reached."""
    holes = places.secrets(policy)
    found = [*_parts(tuple(places.readable(policy)), tuple(holes), places.moment())]
    for folder in places.writable(policy):
        right = "w" if domain == "work" else "r"
        parts = list(places.without(folder, holes))
        found += [(part, right) for part in parts]
        if parts != [str(folder)]:
            found.append((str(folder), "l"))
    found += [(path, "r") for path in ("/proc", "/sys")]
    found += [(path, "d") for path in places.DEVICES]
    found += [(str(folder), "w") for folder in policy.private]
    return [*found, *((str(place), "o") for place in policy.outputs if domain == "look")]


@lru_cache(maxsize=16)
def _parts(trees: tuple[Path, ...], holes: tuple[Path, ...], _: int) -> tuple[tuple[str, str], ...]:
    """Returns the parts of ``trees`` that may be read."""
    found: list[tuple[str, str]] = []
    for tree in trees:
        parts = list(places.without(tree, holes))
        found += [(part, "r") for part in parts]
        if parts != [str(tree)]:
            found.append((str(tree), "l"))  # names may be listed, as far as the system lets
    return tuple(found)


def watches(policy: SandboxPolicy, kept: Callable[[Path, Path], bool]) -> tuple[Watch, ...]:
    """The protected places of every writable folder, but for those that are ``kept`` by other means."""
    return tuple(
        Watch(
            str(folder),
            tuple(str(path.relative_to(folder)) for path in places.protected(folder) if not kept(path, folder)),
        )
        for folder in places.writable(policy)
    )


_SCOPED = 6
"""The version of Landlock that knows abstract unix sockets and signals."""

Kind = Literal["read", "write", "link", "dir", "empty", "lock", "proc", "dev"]
Mount = tuple[Kind, str, str]
"""What is to be at a place: ``read`` and ``write`` show a source there, ``link`` points to it. The others have none: an
``empty`` folder of its own, and ``lock`` lets nobody write in such a one any more."""


class Namespaces:
    """Our own, by ``confine``. ``landlock`` is the kernel's version of that, 0 for none: it is a second wall inside.
    With the network open it keeps a command from the unix sockets that have no file, which namespaces then do not."""

    subtracts = True
    own_tmp = True
    loopback: frozenset[Loopback] = frozenset({"own", "machine"})

    def __init__(self, landlock: int = 0) -> None:
        self._landlock = landlock

    @property
    def name(self) -> str:
        return "namespaces and Landlock" if self._landlock else "namespaces"

    def wrap(
        self, argv: Sequence[str], domain: Domain, policy: SandboxPolicy, cwd: Path, env: Mapping[str, str]
    ) -> Launch:
        joins = policy.joins(domain)
        mounts = plan(domain, policy)
        written = [target for kind, _, target in mounts if kind == "write"]
        confine: Confinement = {
            "mounts": mounts,
            "cwd": str(cwd),
            "join": joins,
            "own_network": _closed(domain, policy),
            "seccomp": _filter(domain, policy),
        }
        if self._landlock:
            confine |= {
                "rules": [("/", "r"), *((place, "w") for place in ("/dev", "/proc", *written))],
                # Commands that share a network meet at sockets without a file.
                "scope": 2 if _closed(domain, policy) else 3,
            }
        return _launch(list(argv), domain, policy, env, joins, confine)

    def enforces(self, domain: Domain, network: Network, loopback: Loopback) -> list[str]:
        if domain == "look":
            return [NO_WRITING_BUT_BUILDS, NO_HOME, look_words(loopback != "deny"), "sees no other processes"]
        words = [PROJECT_WRITING, NO_HOME]
        words += [GIT_HELD]
        words += [network_words(network, "own" if loopback == "machine" else loopback)]
        if network == "allow" and self._landlock < _SCOPED:
            words += ["reaches unix sockets without a file"]
        return [*words, "sees no other processes"]


class Bubblewrap(Namespaces):
    """The same by bubblewrap; ``program`` is its path."""

    def __init__(self, program: str, landlock: int = 0) -> None:
        super().__init__(landlock)
        self.program = program

    @property
    def name(self) -> str:
        return "bubblewrap and Landlock" if self._landlock >= _SCOPED else "bubblewrap"

    def wrap(
        self, argv: Sequence[str], domain: Domain, policy: SandboxPolicy, cwd: Path, env: Mapping[str, str]
    ) -> Launch:
        joins = policy.joins(domain)
        fds: list[int] = [*joins]
        options = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
        options += ["--unshare-net"] if _closed(domain, policy) and not joins else []
        options += ["--die-with-parent", "--cap-drop", "ALL"]
        for mount in plan(domain, policy):
            options += _arguments(*mount)
        if program := _filter(domain, policy):
            fds.append(as_file(program))
            options += ["--seccomp", str(fds[-1])]
        options += ["--chdir", str(cwd)]
        fds.append(as_file(b"".join(os.fsencode(option) + b"\0" for option in options)))
        inner = list(argv)
        if not _closed(domain, policy) and self._landlock >= _SCOPED:
            inner = confined({"scope": 3, "capabilities": False}, inner)
        command = [self.program, "--args", str(fds[-1]), "--", *inner]
        join: Confinement | None = {"join": joins, "only_join": True} if joins else None
        return _launch(command, domain, policy, env, tuple(fds), join)


def _launch(
    command: list[str],
    domain: Domain,
    policy: SandboxPolicy,
    env: Mapping[str, str],
    fds: tuple[int, ...],
    confine: Confinement | None,
) -> Launch:
    watch = watches(policy, _mountable) if domain == "work" else ()
    return Launch(command, {**env, "TMPDIR": str(policy.temporary)}, domain, fds, confine, watch, carrier=True)


def _closed(domain: Domain, policy: SandboxPolicy) -> bool:
    return domain == "look" or policy.network != "allow"


def _filter(domain: Domain, policy: SandboxPolicy) -> bytes | None:
    # What listens at a unix socket in the project was started by somebody else; to look nobody needs to reach it.
    families: tuple[int, ...] = (filters.AF_UNIX,) if domain == "work" or policy.sockets else ()
    if not _closed(domain, policy) or policy.loopback != "deny":
        families += filters.INTERNET
    return filters.program(families, metadata=True)


def _arguments(kind: Kind, source: str, target: str) -> list[str]:
    """A mount in the words of bubblewrap."""
    if kind in ("read", "write", "link"):
        return [{"read": "--ro-bind", "write": "--bind", "link": "--symlink"}[kind], source, target]
    words = {"dir": "--dir", "empty": "--tmpfs", "lock": "--remount-ro", "proc": "--proc", "dev": "--dev"}
    return [words[kind], target]


def plan(domain: Domain, policy: SandboxPolicy) -> list[Mount]:
    """All that a command of ``domain`` finds, in the order in which it is mounted. Raises OSError."""
    folders, home = places.writable(policy), places.home()
    secrets = places.secrets(policy)
    masked = {str(path) for path in policy.masks.paths}
    nothing = str(policy.masked_file), str(policy.masked_folder)

    def masks(within: Iterable[str], bound: str) -> list[Mount]:
        return _masks(within, bound, masked, nothing)

    bound: dict[Path, Kind] = {path: "read" for path in places.readable(policy) if _apart(path, folders, home)}
    bound |= dict.fromkeys(folders, "write" if domain == "work" else "read")
    bound |= dict.fromkeys((folder.resolve() for folder in policy.private), "write")
    bound |= dict.fromkeys(policy.outputs if domain == "look" else (), "write")
    hidden, names = set(secrets), [str(path) for path in secrets]
    kept = {folder: _kept(folder, policy, names) for folder in folders} if domain == "work" else {}
    moved = masked - {str(path) for path in policy.masks.fixed}
    for folder, paths in kept.items():
        bound |= dict.fromkeys(_ways(folder, paths, [name for name in names if name not in moved]), "write")
    mounts: list[Mount] = [*_links(), ("read", "/sys", "/sys"), ("write", str(policy.temporary), "/tmp")]
    if not any(path.is_relative_to("/var/tmp") for path in (*bound, home)):
        mounts.append(("link", "/tmp", "/var/tmp"))
    mounts.append(("dir", "", str(home)))
    for path in sorted(bound, key=lambda path: len(path.parts)):
        if path not in hidden and not any(places.is_within(str(path), mask) for mask in masked):
            # What is listed below a secret place is laid over its mask; nothing is over what a rule denies.
            mounts += [(bound[path], str(path), str(path)), *masks(names, str(path))]
    # Root's settings of the kernel are files in /proc, and root needs no capability to write them.
    mounts += [("proc", "", "/proc"), ("lock", "", "/proc"), ("dev", "", "/dev")]
    for folder, paths in kept.items():
        for path in paths:
            # Laid over a mask, it would show what is below that again.
            mounts += [("read", str(path), str(path)), *masks(_inside(folder, names), str(path))]
    locks: list[Mount] = [("lock", "", target) for kind, _, target in mounts if kind == "empty"]
    return [*mounts, *locks, ("lock", "", "/")]


def _apart(path: Path, folders: Sequence[Path], home: Path) -> bool:
    """False for tools that lie in a folder of the project, which are the project's own, unless that is the home."""
    return not any(path.is_relative_to(folder) and folder != home for folder in folders)


def _links() -> list[Mount]:
    """Links at the root, as most systems have from /bin to /usr/bin."""
    entries = (Path(entry.path) for entry in os.scandir("/") if entry.is_symlink())
    return [("link", str(path.readlink()), str(path)) for path in entries]


def _masks(
    secrets: Iterable[str], bound: str, denied: Collection[str] = (), nothing: tuple[str, str] = ("", "")
) -> list[Mount]:
    """Nothing in the place of every secret that ``bound`` would show: a file or folder of ``nothing`` in the place of
    those that are ``denied``."""
    mounts: list[Mount] = []
    masked = "\0"
    for path in sorted((path for path in secrets if places.is_within(path, bound)), key=lambda path: path.split("/")):
        if places.is_within(path, masked):
            continue
        try:
            mode = os.lstat(path).st_mode
        except OSError:
            continue
        if path in denied and not stat.S_ISLNK(mode):
            mounts.append(("read", nothing[stat.S_ISDIR(mode)], path))
            masked = path
        elif stat.S_ISDIR(mode):
            mounts.append(("empty", "", path))
            masked = path
        elif not stat.S_ISLNK(mode):
            mounts.append(("read", "/dev/null", path))
    return mounts


def _inside(folder: Path, secrets: Sequence[str]) -> list[str]:
    """The secrets that have a mask in ``folder``. A folder inside a secret place has none."""
    return [secret for secret in secrets if places.is_within(secret, str(folder))]


def _kept(folder: Path, policy: SandboxPolicy, secrets: Sequence[str]) -> list[Path]:
    """Returns the places that stay read-only, as far as they are there."""
    masks = _inside(folder, secrets)
    return [
        path
        for path in places.protected(folder)
        if not any(places.is_within(str(path), mask) for mask in masks) and _mountable(path, folder)
    ]


def _ways(folder: Path, kept: Iterable[Path], secrets: Sequence[str]) -> list[Path]:
    """The folders that lead from ``folder`` to what is kept or masked in it, and git's own. A mount cannot be moved
    away, but a folder around it can, and takes it along: these are made mounts, too."""
    masked = [Path(target) for _, _, target in _masks(_inside(folder, secrets), str(folder))]
    gits = [git for git in places.git_folders(folder) if git.is_dir()]
    found = {*gits, *(way for path in (*kept, *masked, *gits) for way in path.parents)}
    return [way for way in found if way != folder and way.is_relative_to(folder) and _mountable(way, folder)]


def _mountable(path: Path, folder: Path) -> bool:
    """Returns whether a place can be mounted over: it exists, and no link leads to it from ``folder``."""
    while path != folder:
        if path.is_symlink() or not path.exists():
            return False
        path = path.parent
    return True


_BASE = """(version 1)
(deny default)
(allow process-fork process-exec)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow file-read-metadata)
(allow file-read* (literal "/") (subpath "/dev/fd") (literal "/dev/null") (literal "/dev/zero") (literal "/dev/random")
  (literal "/dev/urandom") (subpath "/private/var/db/dyld") (subpath "/private/var/select"))
(allow file-write-data (literal "/dev/null") (literal "/dev/zero"))
(allow ipc-posix-sem)
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo") (global-name "com.apple.logd"))
"""


class Seatbelt:
    """``program`` is the path of sandbox-exec."""

    name = "Seatbelt"
    subtracts = True
    own_tmp = False
    # It goes by address, so this machine can be told from the others; but its ports are everybody's here.
    loopback: frozenset[Loopback] = frozenset({"machine"})

    def __init__(self, program: str) -> None:
        self.program = program

    def wrap(
        self, argv: Sequence[str], domain: Domain, policy: SandboxPolicy, cwd: Path, env: Mapping[str, str]
    ) -> Launch:
        command = [self.program, "-p", profile(domain, policy), *argv]
        return Launch(command, {**env, "TMPDIR": str(policy.temporary)}, domain)

    def enforces(self, domain: Domain, network: Network, loopback: Loopback) -> list[str]:
        words = [NO_HOME]
        if domain == "look":
            return [NO_WRITING, *words, look_words(False)]
        words = [PROJECT_WRITING, *words, GIT_HELD]
        return [*words, network_words(network, loopback if loopback == "machine" else "deny")]


def profile(domain: Domain, policy: SandboxPolicy) -> str:
    """The profile: what comes later wins."""
    folders = places.writable(policy)
    lines = [_BASE, _rule("allow file-read*", [*places.readable(policy), *folders])]
    lines.append(_rule("allow file-read* file-write*", [folder.resolve() for folder in policy.private]))
    if domain == "work":
        lines.append(_rule("allow file-write*", folders))
        for folder in folders:
            lines.append(_rule("deny file-write*", places.protected(folder)))
            lines.append(f"(deny file-write-unlink (literal {_quoted(folder / '.git')}))")
    lines.append(_rule("deny file-read* file-write*", places.secrets(policy)))
    lines.append(_rule("allow file-read* file-write*", [folder.resolve() for folder in policy.private]))
    if domain == "work" and policy.network == "allow":
        lines.append("(allow network-outbound (remote ip)) (allow network-bind network-inbound (local ip))")
        lines.append('(allow mach-lookup (global-name "com.apple.SystemConfiguration.configd"))')
        lines.append('(allow network-outbound (literal "/private/var/run/mDNSResponder"))')
    elif domain == "work" and policy.loopback == "machine":
        lines.append('(allow network-outbound (remote ip "localhost:*"))')
        lines.append('(allow network-bind network-inbound (local ip "localhost:*"))')
    return "\n".join(lines)


def _rule(what: str, paths: Iterable[Path]) -> str:
    return f"({what} {' '.join(f'(subpath {_quoted(path)})' for path in paths)})"


def _quoted(path: Path) -> str:
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'
