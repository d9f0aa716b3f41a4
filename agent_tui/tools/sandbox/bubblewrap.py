"""bubblewrap with seccomp: namespaces in which only what is listed exists."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from agent_tui.tools.sandbox import filters, places
from agent_tui.tools.sandbox.files import as_file
from agent_tui.tools.sandbox.landlock import watches
from agent_tui.tools.sandbox.policy import Domain, Launch, Loopback, Network, SandboxPolicy
from agent_tui.tools.sandbox.start import confined
from agent_tui.tools.sandbox.words import GIT_HELD, NO_HOME, NO_SOCKETS, NO_WRITING, PROJECT_WRITING, network_words

_SCOPED = 6
"""The version of Landlock that knows abstract unix sockets."""


class Bubblewrap:
    """``program`` is its path. ``landlock`` is the kernel's version of that, 0 for none: with the network open it
    keeps a command from the unix sockets that have no file, which namespaces then do not."""

    subtracts = True
    own_tmp = True
    loopback: frozenset[Loopback] = frozenset({"own", "machine"})

    def __init__(self, program: str, landlock: int = 0) -> None:
        self.program = program
        self._landlock = landlock

    @property
    def name(self) -> str:
        return "bubblewrap and Landlock" if self._landlock >= _SCOPED else "bubblewrap"

    def wrap(
        self, argv: Sequence[str], domain: Domain, policy: SandboxPolicy, cwd: Path, env: Mapping[str, str]
    ) -> Launch:
        network = domain == "work" and policy.network == "allow"
        joins = policy.joins(domain)
        options = _options(domain, policy, own_network=not network and not joins)
        fds: list[int] = [*joins]
        # A command of its own namespace may listen and connect in it; to look nobody needs to.
        families: tuple[int, ...] = (filters.AF_UNIX,)
        if network or policy.loopback != "deny":
            families += filters.INTERNET
        program = filters.program(families if domain == "work" else (), metadata=True)
        if program is not None:
            fds.append(as_file(program))
            options += ["--seccomp", str(fds[-1])]
        options += ["--chdir", str(cwd)]
        fds.append(as_file(b"".join(os.fsencode(option) + b"\0" for option in options)))
        inner = list(argv)
        if network and self._landlock >= _SCOPED:
            inner = confined({"scope": True, "capabilities": False}, inner)
        return Launch(
            [self.program, "--args", str(fds[-1]), "--", *inner],
            {**env, "TMPDIR": str(policy.temporary)},
            domain,
            tuple(fds),
            confine={"join": joins, "only_join": True} if joins else None,
            watch=watches(policy, _mountable) if domain == "work" else (),
            carrier=True,
        )

    def enforces(self, domain: Domain, network: Network, loopback: Loopback) -> list[str]:
        if domain == "look":
            words = [NO_WRITING, NO_HOME]
            return [*words, NO_SOCKETS, "sees no other processes"]
        words = [PROJECT_WRITING, NO_HOME]
        words += [GIT_HELD]
        words += [network_words(network, "own" if loopback == "machine" else loopback)]
        if network == "allow" and self._landlock < _SCOPED:
            words += ["reaches unix sockets that have no file"]
        return [*words, "sees no other processes"]


def _options(domain: Domain, policy: SandboxPolicy, own_network: bool) -> list[str]:
    options = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    options += ["--unshare-net"] if own_network else []
    options += ["--die-with-parent", "--cap-drop", "ALL"]
    folders, home = places.writable(policy), places.home()
    secrets = places.secrets(policy)
    bound = {path: "--ro-bind" for path in places.readable(policy) if _apart(path, folders, home)}
    bound |= dict.fromkeys(folders, "--bind" if domain == "work" else "--ro-bind")
    bound |= dict.fromkeys((folder.resolve() for folder in policy.private), "--bind")
    options += _links()
    options += ["--ro-bind-try", "/sys", "/sys", "--bind", str(policy.temporary), "/tmp"]
    if not any(path.is_relative_to("/var/tmp") for path in (*bound, home)):
        options += ["--symlink", "/tmp", "/var/tmp"]
    options += ["--dir", str(home)]
    hidden, names = set(secrets), [str(path) for path in secrets]
    for path in sorted(bound, key=lambda path: len(path.parts)):
        if path not in hidden:
            # What is listed below a secret place is laid over its mask.
            options += [bound[path], str(path), str(path), *_masks(names, str(path))]
    # Root's settings of the kernel are files in /proc, and root needs no capability to write them.
    options += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"]
    if domain == "work":
        for folder in folders:
            options += _kept(folder, policy, names)
    return [*options, "--remount-ro", "/"]


def _apart(path: Path, folders: Sequence[Path], home: Path) -> bool:
    """False for tools that lie in a folder of the project, which are the project's own, unless that is the home."""
    return not any(path.is_relative_to(folder) and folder != home for folder in folders)


def _links() -> list[str]:
    """Links at the root, as most systems have from /bin to /usr/bin."""
    options: list[str] = []
    for entry in os.scandir("/"):
        if entry.is_symlink():
            options += ["--symlink", str(Path(entry.path).readlink()), entry.path]
    return options


def _masks(secrets: Iterable[str], bound: str) -> list[str]:
    """Nothing in the place of every secret that ``bound`` would show."""
    options: list[str] = []
    for path in secrets:
        if not places.is_within(path, bound):
            continue
        try:
            mode = os.lstat(path).st_mode
        except OSError:
            continue
        if stat.S_ISDIR(mode):
            options += ["--tmpfs", path, "--remount-ro", path]
        elif not stat.S_ISLNK(mode):
            options += ["--ro-bind", "/dev/null", path]
    return options


def _kept(folder: Path, policy: SandboxPolicy, secrets: Sequence[str]) -> list[str]:
    """What stays read-only. A mount cannot be moved away, so ``.git`` is made one: its hooks stay below it."""
    options: list[str] = []
    for git in places.git_folders(folder):
        if git.is_dir() and not git.is_symlink():
            options += ["--bind", str(git), str(git)]
    # Laid over a mask, it would show what is below that again. A folder inside a secret place has no mask.
    masks = [secret for secret in secrets if places.is_within(secret, str(folder))]
    for path in places.protected(folder, policy):
        masked = any(places.is_within(str(path), secret) for secret in masks)
        if not masked and _mountable(path, folder):
            options += ["--ro-bind", str(path), str(path), *_masks(masks, str(path))]
    return options


def _mountable(path: Path, folder: Path) -> bool:
    """Whether a place can be mounted over: it exists, and no link leads to it from ``folder``."""
    while path != folder:
        if path.is_symlink() or not path.exists():
            return False
        path = path.parent
    return True
