"""The sandbox as the rest of the program sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from agent_tui.tools.sandbox.policy import Domain, Launch, Network, SandboxPolicy, free

Mode = Literal["auto", "required", "off"]


class Backend(Protocol):
    """One means of holding a command."""

    @property
    def name(self) -> str: ...

    def wrap(self, argv: Sequence[str], domain: Domain, policy: SandboxPolicy, env: Mapping[str, str]) -> Launch:
        """The process that runs ``argv`` held to ``domain``; never ``free``."""
        ...

    def enforces(self, domain: Domain, network: Network) -> list[str]: ...


@dataclass(slots=True, frozen=True)
class Sandbox:
    """What holds on this machine. ``name`` says by which means: ``none`` where nothing does."""

    backend: Backend | None
    proven: frozenset[Domain] = frozenset()
    mode: Mode = "auto"
    why: str = ""

    @property
    def name(self) -> str:
        return self.backend.name if self.backend is not None and self.proven else "none"

    def holds(self, domain: Domain) -> bool:
        """Whether commands in ``domain`` were seen to be held to it here. ``free`` promises nothing and so holds."""
        return domain == "free" or (self.backend is not None and domain in self.proven)

    def enforces(self, domain: Domain, network: Network = "ask") -> list[str]:
        """What the domain means here, in words for people; empty where nothing is enforced."""
        if domain == "free" or self.backend is None or not self.holds(domain):
            return []
        return self.backend.enforces(domain, network)

    def wrap(
        self, argv: Sequence[str], domain: Domain, policy: SandboxPolicy, cwd: Path, env: Mapping[str, str]
    ) -> Launch:
        """The process to start in ``cwd`` for ``argv``. Where the domain does not hold it is the plain command, unless
        a sandbox is required: then ToolError with one line."""
        if domain != "free" and self.backend is not None and self.holds(domain):
            return self.backend.wrap(argv, domain, policy, env)
        return free(argv, env)


def probe(mode: Mode = "auto") -> Sandbox:
    """Tries the backends of this machine, the strongest first. Takes a moment: not for the UI's loop."""
    return Sandbox(None, mode=mode, why="" if mode != "off" else "switched off")
