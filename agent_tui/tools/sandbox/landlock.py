"""Landlock with seccomp: rights to files and connections that a process gives up for itself and its children."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from agent_tui.tools.sandbox import filters, places
from agent_tui.tools.sandbox.policy import (
    NO_HOME,
    NO_WRITING,
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
            words = [NO_WRITING, NO_HOME, look_words(loopback in self.loopback)]
        else:
            words = [PROJECT_WRITING, NO_HOME]
            words += ["git hooks and configuration are put back as they were"]
            words += [network_words(network, "own" if loopback in self.loopback else "deny")]
            words += ["cannot keep modes and times of other files of yours"]
        words.append("sees which processes run")
        if self.version < 6:
            words.append("can signal other processes of yours")
        return words


def spec(domain: Domain, policy: SandboxPolicy, ports: bool = False) -> dict[str, object]:
    """What the starter lays on."""
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
    """What may be read of ``trees``."""
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
            tuple(str(path.relative_to(folder)) for path in places.protected(folder, policy) if not kept(path, folder)),
        )
        for folder in places.writable(policy)
    )
