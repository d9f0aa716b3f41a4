"""The sandbox as the rest of the program sees it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from agent_tui.errors import ToolError
from agent_tui.paths import private_dir
from agent_tui.tools.sandbox.policy import Backend, Domain, Launch, Loopback, Network, SandboxPolicy, free

SandboxMode = Literal["auto", "required", "off"]


@dataclass(slots=True, frozen=True)
class Sandbox:
    """What holds on this machine. ``failed`` says of each domain and backend that does not hold why; ``shares``
    whether commands are held as well in a network that they share."""

    backend: Backend | None = None
    proven: frozenset[Domain] = frozenset()
    mode: SandboxMode = "auto"
    failed: tuple[str, ...] = ()
    shares: bool = False

    @property
    def name(self) -> str:
        """The means: ``none`` where nothing holds."""
        return self.backend.name if self.backend is not None and self.proven else "none"

    def holds(self, domain: Domain) -> bool:
        """Whether commands were seen to be held to ``domain`` here. ``free`` promises nothing, so it holds."""
        return domain == "free" or (self.backend is not None and domain in self.proven)

    def has_ports(self, loopback: Loopback) -> bool:
        """Whether ``work`` may listen and connect on 127.0.0.1 and ::1 while the network is closed."""
        return self.backend is not None and self.holds("work") and loopback in self.backend.loopback

    def enforces(self, domain: Domain, network: Network = "ask", loopback: Loopback = "own") -> list[str]:
        """What the domain means here, in words for people; empty where nothing is enforced."""
        if domain == "free" or self.backend is None or not self.holds(domain):
            return []
        return self.backend.enforces(domain, network, loopback)

    def refusal(self, domain: Domain) -> str:
        """Why nothing may run in ``domain``, in one line; empty where it may."""
        if self.mode != "required" or self.holds(domain):
            return ""
        why = f" ({self.failed[0]})" if self.failed else ""
        return (
            'Refused: [sandbox] mode is "required" and no sandbox holds here'
            f'{why}. Install bubblewrap, or set the mode to "auto".'
        )

    def wrap(
        self, argv: Sequence[str], domain: Domain, policy: SandboxPolicy, cwd: Path, env: Mapping[str, str]
    ) -> Launch:
        """The process to start in ``cwd`` for ``argv``. Where the domain does not hold it is the plain command.

        Raises ToolError, with one line, where a sandbox is required and none holds, and where the private folders
        cannot be made.
        """
        if line := self.refusal(domain):
            raise ToolError(line)
        if domain == "free" or self.backend is None or not self.holds(domain):
            return free(argv, env)
        try:
            policy.prepare()
            return self.backend.wrap(argv, domain, policy, cwd, env)
        except OSError as error:
            raise ToolError(f"The sandbox cannot be prepared: {error}.") from None


def probe(base: Path, mode: SandboxMode = "auto") -> Sandbox:
    """Tries the backends of this machine, the strongest first, and keeps the first that holds ``look`` and ``work``,
    else the one that holds most. ``base`` is a private folder of ours. Takes a few tenths of a second: not for the
    UI's loop."""
    if mode == "off":
        return Sandbox(mode=mode, failed=("switched off",))
    try:
        return _proven(private_dir(base), mode)
    except OSError as error:
        return Sandbox(mode=mode, failed=(f"nothing can be kept in {base}: {error.strerror or error}",))


def _proven(base: Path, mode: SandboxMode) -> Sandbox:
    from agent_tui.tools.sandbox.session_network import session_network
    from agent_tui.tools.sandbox.trials import trial

    shared = session_network()
    best = Sandbox(mode=mode)
    failed: list[str] = []
    for backend in backends():
        proven: set[Domain] = set()
        joins = shared is not None and "own" in backend.loopback
        shares = joins and not trial(backend, "work", base, shared)
        for domain in ("look", "work"):
            if (domain != "work" or not shares) and (why := trial(backend, domain, base)):
                failed.append(f"{backend.name}: {why}")
            else:
                proven.add(domain)
        if len(proven) > len(best.proven):
            best = Sandbox(backend, frozenset(proven), mode, shares=shares)
        if len(proven) == 2:
            break
    if best.backend is None and not failed:
        failed.append("this system has none")
    return replace(best, failed=tuple(failed))


def backends() -> list[Backend]:
    """What could be used here, the strongest first; whether it holds is for a trial to say."""
    from agent_tui.tools.sandbox.trials import find

    if sys.platform == "darwin":
        from agent_tui.tools.sandbox.seatbelt import Seatbelt

        program = find("sandbox-exec")
        return [Seatbelt(program)] if program else []
    if sys.platform != "linux":
        return []
    from agent_tui.tools.sandbox.confine import abi
    from agent_tui.tools.sandbox.landlock import Landlock
    from agent_tui.tools.sandbox.namespaces import Bubblewrap, Namespaces

    version = abi()
    program = find("bwrap")
    found: list[Backend] = [Bubblewrap(program, version)] if program else []
    found.append(Namespaces(version))
    return [*found, Landlock(version, ports=True), Landlock(version)] if version else found
