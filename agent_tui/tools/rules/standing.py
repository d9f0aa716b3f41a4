"""The standing of a session: where it works, what the user said of paths there, and what holds commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from agent_tui.config import PermissionMode
from agent_tui.tools.files.beneath import is_within
from agent_tui.tools.rules.decision import ALLOWED, PLAN_MESSAGE, PLAN_REASON, Decision, denied_by
from agent_tui.tools.rules.session_rules import GivenRules, SessionRules
from agent_tui.tools.sandbox.policy import Domain, Network
from agent_tui.tools.sandbox.protected import is_protected, led_to


@dataclass(slots=True, frozen=True)
class Place:
    """Work happens in ``root`` and the ``added`` folders; ``readable`` may be read besides (saved tool output), and
    ``protected`` always ask before a change (the user's configuration)."""

    root: Path
    cwd: Path
    added: Sequence[Path] = ()
    readable: Sequence[Path] = ()
    protected: Sequence[Path] = ()


@dataclass(slots=True, frozen=True)
class Holding:
    """What holds commands: whether they are held to a domain of the sandbox here, whether one that is held ``sees`` a
    path outside the project, may use ports on 127.0.0.1 and ::1 while the network is closed, and can be let to some
    hosts alone. ``network`` is what ``work`` may reach, ``temporary`` where held commands keep temporary files. In a
    folder that is not ``trusted`` git never runs outside the sandbox."""

    holds: Callable[[Domain], bool] = lambda domain: domain == "free"
    sees: Callable[[Path, Literal["read", "edit"]], bool] = lambda path, kind: False
    has_ports: Callable[[], bool] = lambda: False
    tells_hosts_apart: Callable[[], bool] = lambda: False
    network: Network = "ask"
    temporary: Path | None = None
    trusted: Callable[[], bool] = lambda: True


class Standing:
    """``mode`` may be changed at any time. Raises ConfigError for a rule that cannot be read."""

    def __init__(self, place: Place, given: GivenRules, holding: Holding) -> None:
        self.mode: PermissionMode = given.config.mode
        self.root, self.cwd = place.root.resolve(), place.cwd.resolve()
        self.folders = [self.root, *(folder.resolve() for folder in place.added)]
        self._readable = [folder.resolve() for folder in place.readable]
        self._protected = [folder.resolve() for folder in place.protected]
        self.rules = SessionRules(self.root, given)
        self.holds, self.sees, self.has_ports = holding.holds, holding.sees, holding.has_ports
        self.network, self._temporary, self._trusted = holding.network, holding.temporary, holding.trusted

    def unheld(self, mode: PermissionMode) -> Self:
        """The same in another mode where no sandbox holds."""
        other = copy(self)
        other.holds = lambda domain: domain == "free"
        other.has_ports, other._temporary = (lambda: False), None
        other.mode = mode
        return other

    @property
    def trusted(self) -> bool:
        return self._trusted()

    @property
    def variables(self) -> dict[str, str]:
        """The variables that a shell is certain to be started with: its folder, the home, and where every command has
        one of its own, the folder for temporary files."""
        found = {"PWD": str(self.cwd), "HOME": str(Path.home())}
        if self._temporary is not None and self.holds("look") and self.holds("work"):
            found["TMPDIR"] = str(self._temporary)
        return found

    def path(self, tool: str, kind: Literal["read", "edit"], path: Path) -> Decision:
        """The decision on reading or changing one resolved path; ``tool`` is ``edit`` for what a command writes."""
        if rule := self.rules.for_path("deny", tool, kind, path):
            return denied_by(rule)
        asks = self.rules.for_path("ask", tool, kind, path)
        if kind == "edit" and self.mode == "plan":
            return Decision("deny", PLAN_REASON, PLAN_MESSAGE)
        if self.mode == "bypass":
            return Decision("ask", "a rule says to ask") if asks else ALLOWED
        within = is_within(path, self.folders)
        if kind == "read" and not within and is_within(path, self._readable):
            return ALLOWED
        if not within:
            return Decision("ask", f"{path} is outside the project")
        if kind == "edit" and self.protected(path):
            return Decision("ask", f"{path} decides what may run, or belongs to git itself")
        if asks:
            return Decision("ask", "a rule says to ask")
        if kind == "read" or self.rules.for_path("allow", tool, kind, path) or self.mode in ("accept-edits", "auto"):
            return ALLOWED
        return Decision("ask", "changes a file", patterns=self._path_patterns(path))

    def _path_patterns(self, path: Path) -> list[str]:
        if not path.is_relative_to(self.root):
            return []
        relative = path.relative_to(self.root).as_posix()
        # A name with pattern characters would match more than itself.
        return [] if set(relative) & set("*?[]{}\\()\n") else [f"edit(./{relative})"]

    def protected(self, path: Path) -> bool:
        """True for a resolved path whose change always asks."""
        folders = [folder for folder in self.folders if path.is_relative_to(folder)]
        shortest = min((path.relative_to(folder) for folder in folders), key=lambda p: len(p.parts), default=path)
        led = [place for folder in folders for place in led_to(folder)]
        return is_protected(shortest) or is_within(path, [*self._protected, *led])

    def guards(self, tool: str) -> bool:
        """Returns whether a rule denies, or asks about, anything that a command could do: it has to be understood
        then."""
        return any(
            r.names(tool) or r.names("edit") or r.names("write")
            for r in (*self.rules.of("deny"), *self.rules.of("ask"))
        )
