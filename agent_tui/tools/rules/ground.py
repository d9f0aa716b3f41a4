"""What the judge of commands asks the permissions of a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

from agent_tui.config import PermissionMode
from agent_tui.tools.rules.decision import Decision
from agent_tui.tools.rules.rule import Rule
from agent_tui.tools.sandbox.policy import Domain, Network


class Ground(Protocol):
    """The standing of a command: where it runs, what holds it there, and what the user said of paths and programs."""

    @property
    def mode(self) -> PermissionMode: ...

    @property
    def root(self) -> Path: ...

    @property
    def cwd(self) -> Path: ...

    @property
    def folders(self) -> Sequence[Path]: ...

    @property
    def variables(self) -> Mapping[str, str]:
        """What a shell is certain to be started with."""
        ...

    @property
    def network(self) -> Network: ...

    @property
    def trusted(self) -> bool: ...

    @property
    def has_denied_files(self) -> bool: ...

    def unheld(self, mode: PermissionMode) -> Ground:
        """The same in another mode where no sandbox holds."""
        ...

    def holds(self, domain: Domain, /) -> bool:
        """Whether commands are held to a domain of the sandbox here."""
        ...

    def has_ports(self) -> bool:
        """Whether a command that a sandbox holds may use ports on 127.0.0.1 and ::1."""
        ...

    def sees(self, path: Path, kind: Literal["read", "edit"], /) -> bool:
        """Whether a path outside the project can be read or changed by a command that a sandbox holds."""
        ...

    def guards(self, tool: str) -> bool:
        """Whether rules deny, or ask about, anything that a command could do: it has to be understood then."""
        ...

    def path(self, tool: str, kind: Literal["read", "edit"], path: Path) -> Decision: ...

    def protected(self, path: Path) -> bool: ...

    def denies_reading(self, path: Path) -> bool: ...

    def command_rule(
        self, tool: str, which: Literal["deny", "ask", "allow"], matches: Callable[[Rule], bool]
    ) -> Rule | None:
        """The first rule of a kind that names ``tool`` and satisfies ``matches``."""
        ...

    def changed_since(self, rule: Rule, of_git: bool) -> str:
        """The name of a file of the project's configuration that is another since ``rule`` was given, or the session
        began, whichever is later; empty where there is none. ``of_git``: of those that git reads."""
        ...
