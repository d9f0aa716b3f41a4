"""The standing of a session: where it works, what holds commands there, and its rules: those of the configuration,
those remembered for the project, and those that hold until the program ends."""

from __future__ import annotations

import difflib
import fnmatch
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Literal, Self

from agent_tui.config import PermissionMode, PermissionsConfig
from agent_tui.records import dataclass
from agent_tui.tools.base import ServerTool
from agent_tui.tools.files.beneath import has_other_names, is_within
from agent_tui.tools.mcp_names import split_tool_name
from agent_tui.tools.rules.decision import (
    ALLOWED,
    CHANGES_FILE,
    CREATES_FILE,
    PLAN_MESSAGE,
    PLAN_REASON,
    RULE_ASKS,
    Decision,
    denied_by,
)
from agent_tui.tools.rules.denied import DeniedFiles
from agent_tui.tools.rules.rule import (
    Configuration,
    Rule,
    changed,
    checked_rules,
    checked_servers_tools,
    configuration,
    covers,
    host_pattern,
    parse_rule,
    path_matches,
)
from agent_tui.tools.sandbox.places import HOME_PROTECTED, home
from agent_tui.tools.sandbox.policy import Domain, Masks, Network
from agent_tui.tools.sandbox.protected import is_protected, led_to

Which = Literal["deny", "ask", "allow"]


CONTROLS = "controls what runs, or belongs to git"
"""Said of a protected path."""


@dataclass(slots=True, frozen=True)
class GivenRules:
    """The rules of ``config``, of which ``brought`` came with the project; ``remembered`` are the project's, and
    ``save`` stores a new one."""

    config: PermissionsConfig
    remembered: Iterable[tuple[Which, str]] = ()
    brought: Collection[str] = ()
    save: Callable[[str, Which], None] = lambda rule, which: None


class SessionRules:
    """Raises ConfigError for a rule that cannot be read."""

    def __init__(self, root: Path, given: GivenRules) -> None:
        config = given.config
        self._root, self._save = root, given.save
        self.brought = given.brought
        self._deny = checked_rules(config.deny, "permissions.deny")
        self._ask = checked_rules(config.ask, "permissions.ask")
        self._allow = checked_rules(config.allow, "permissions.allow")
        for which, text in given.remembered:
            self._list(which).append(parse_rule(text))
        self._own = [parse_rule(rule) for rule in config.allow if rule not in given.brought]
        self._given = [*self._deny, *self._ask, *self._allow]
        self._looking_tools = checked_servers_tools(config.mcp_read_only, "permissions.mcp_read_only")
        self._session: list[Rule] = []
        self._begun: Configuration | None = None
        self._bound: dict[Rule, Configuration] = {}

    def scratch(self) -> SessionRules:
        """A copy, of which nothing is stored."""
        other = copy(self)
        other._save = lambda rule, which: None
        other._deny, other._ask, other._allow = [*self._deny], [*self._ask], [*self._allow]
        other._session, other._bound = [*self._session], dict(self._bound)
        return other

    # What is added and taken away

    def remember(self, texts: Iterable[str], which: Which = "allow") -> None:
        """Allows, asks about or denies what rules say from now on, and stores them for the project."""
        for text in texts:
            rule = parse_rule(text)
            if which == "allow":
                self._bound[rule] = configuration(self._root)
            if rule not in self._list(which):
                self._list(which).append(rule)
                self._save(text, which)

    def bring(self, rules: Iterable[tuple[Which, str]]) -> None:
        """Puts rules in force that deny or ask, which the project has brought along since. Raises ConfigError."""
        for which, text in rules:
            if which != "allow" and (rule := parse_rule(text)) not in self._list(which):
                self._list(which).append(rule)

    def forget(self, text: str, which: Which = "allow") -> bool:
        """Takes a remembered rule out of force; False when there is none like it."""
        return _removed(self._list(which), text)

    def allow_for_session(self, text: str) -> None:
        """Allows what a rule says until the program ends."""
        rule = parse_rule(text)
        self._bound[rule] = configuration(self._root)
        if rule not in self._session:
            self._session.append(rule)

    def forget_for_session(self, text: str) -> bool:
        """Takes such a rule out of force; False when there is none like it."""
        return _removed(self._session, text)

    @property
    def for_session(self) -> list[str]:
        """The rules that hold until the program ends."""
        return [rule.written for rule in self._session]

    def session_edits(self) -> list[str]:
        """The patterns of those that let files be changed."""
        return [rule.pattern for rule in self._session if rule.tool == "edit" and rule.pattern is not None]

    def begin(self) -> None:
        """A tool is about to run: what rules are bound to is the project as it is when the first one does."""
        if self._begun is None:
            self._begun = configuration(self._root)

    def changed_since(self, rule: Rule, of_git: bool) -> str:
        """The name of a file of the project's configuration that is another since ``rule`` was given, or the session
        began, whichever is later; empty where there is none. ``of_git``: of those that git reads."""
        bound = self._bound.get(rule)
        return changed(bound if bound is not None else self._begun or {}, configuration(self._root), of_git)

    # What they are about

    def of(self, which: Which) -> Sequence[Rule]:
        """All of a kind, without those of the session."""
        return self._list(which)

    def _list(self, which: Which) -> list[Rule]:
        return {"deny": self._deny, "ask": self._ask, "allow": self._allow}[which]

    def for_tool(self, which: Which, tool: str, matches: Callable[[Rule], bool]) -> Rule | None:
        """The first that names ``tool`` and satisfies ``matches``; what allows may be a rule of the session's."""
        rules = self._granted if which == "allow" else self.of(which)
        return next((rule for rule in rules if rule.names(tool) and matches(rule)), None)

    def for_every_call(self, which: Which, tool: str) -> Rule | None:
        """The first that names ``tool`` and nothing in particular."""
        return self.for_tool(which, tool, lambda rule: rule.pattern is None)

    def for_path(self, which: Which, tool: str, kind: str, path: Path) -> Rule | None:
        """The first about reading or changing a path; ``kind`` is ``read`` or ``edit``. What denies or asks about a
        folder does so about all in it."""
        matches = path_matches if which == "allow" else covers
        rules = (rule for rule in self.of(which) if _is_about(rule, tool, kind))
        return next((rule for rule in rules if matches(rule.pattern, path, self._root)), None)

    def for_session_path(self, kind: str, path: Path) -> bool:
        """Returns whether a rule that holds until the program ends lets a path be read or changed."""
        return any(rule.tool == kind and path_matches(rule.pattern, path, self._root) for rule in self._session)

    def users_own(self, tool: str, path: Path) -> list[str]:
        """The patterns by which the user, not the project or an earlier answer, lets a path be changed."""
        found = [rule for rule in self._own if _is_about(rule, tool, "edit")]
        patterns = [rule.pattern for rule in found if rule.pattern is not None]
        return [pattern for pattern in patterns if path_matches(pattern, path, self._root)]

    def denies_reading(self, path: Path) -> bool:
        """Returns whether a rule denies reading this path; rules that deny all paths do not count."""
        return any(covers(pattern, path, self._root) for pattern in self.denied_patterns())

    def denied_patterns(self) -> list[str]:
        """The patterns of the paths that rules deny reading."""
        read = (rule for rule in self._deny if _is_about(rule, "grep", "read") or rule.names("read"))
        return [rule.pattern for rule in read if rule.pattern is not None]

    def for_server(self, which: Which, called: ServerTool) -> Rule | None:
        """The first about a tool of an MCP server."""
        rules = self._granted if which == "allow" else self.of(which)
        return next((rule for rule in rules if rule.names_call(called.server, called.tool)), None)

    def idle(self, servers: Mapping[str, Collection[str] | None]) -> list[str]:
        """A line for each rule on MCP servers that the user gave and that is about none of these, or none of their
        tools. A server's tools are None as long as nobody knows them."""
        lines: list[str] = []
        for rule in [rule for rule in self._given if rule.of_servers and rule.tool.strip("*_") and rule.pattern != "*"]:
            named = [name for name in servers if rule.names_server(name)]
            tools = [(name, tool) for name in named for tool in servers[name] or ()]
            unknown = [name for name in named if servers[name] is None]
            if not named and (rule.tool != "mcp" or rule.pattern is not None):
                near = difflib.get_close_matches(_server_of(rule), list(servers), n=1, cutoff=0.6)
                known = f"did you mean {near[0]}?" if near else f"there is {', '.join(servers) or 'none'}"
                lines.append(f"the rule {rule.written} names no MCP server: {known}")
            elif not unknown and not any(rule.names_call(*tool) for tool in tools):
                of = [tool for _, tool in tools]
                near = difflib.get_close_matches(rule.written.rpartition(".")[2].strip("()"), of, n=1, cutoff=0.6)
                lines.append(
                    f"the rule {rule.written} names no tool of {', '.join(named)}"
                    + (f": did you mean {near[0]}?" if near else "")
                )
        return lines

    def waiting(self, servers: Collection[str]) -> list[str]:
        """A line for each such rule about these servers, which are not connected."""
        found = [(rule, name) for rule in self._given if rule.of_servers for name in servers if rule.names_server(name)]
        return [f"the rule {rule.written} waits for {name}, which is not connected" for rule, name in found]

    def only_looks(self, tool: str) -> bool:
        """Returns whether the user declares that a tool of an MCP server only looks."""
        return any(rule.names(tool) for rule in self._looking_tools)

    def for_host(self, host: str) -> bool | None:
        """Returns whether commands may reach a host; None where no rule names it."""
        return self._of_network(lambda pattern: bool(pattern) and fnmatch.fnmatchcase(host, host_pattern(pattern)[0]))

    def for_registries(self) -> bool | None:
        """The same of where packages come from."""
        return self._of_network(lambda pattern: pattern in ("", "registries"))

    def _of_network(self, named: Callable[[str], bool]) -> bool | None:
        for rules, reached in ((self._deny, False), (self._granted, True)):
            if any(rule.tool == "network" and named(rule.pattern or "") for rule in rules):
                return reached
        return None

    @property
    def grant_network(self) -> bool:
        """True when any granted rule lets commands reach something."""
        return any(rule.tool == "network" for rule in self._granted)

    @property
    def _granted(self) -> list[Rule]:
        return [*self._allow, *self._session]


def _is_about(rule: Rule, tool: str, kind: str) -> bool:
    # A patch creates files too: what is said of ``write`` holds for it.
    return rule.names(tool) or rule.tool == kind or (tool == "apply_patch" and rule.tool == "write")


def _server_of(rule: Rule) -> str:
    return (rule.pattern or "").partition(".")[0] if rule.tool == "mcp" else split_tool_name(rule.tool)[0]


def _removed(rules: list[Rule], text: str) -> bool:
    rule = parse_rule(text)
    if rule not in rules:
        return False
    rules.remove(rule)
    return True


@dataclass(slots=True, frozen=True)
class WorkFolders:
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
    folder that is not ``trusted`` git never runs outside the sandbox. ``shows`` are the folders that a held command can
    see (None: any), and ``masks`` says whether one of a domain is kept from files in them."""

    holds: Callable[[Domain], bool] = lambda domain: domain == "free"
    sees: Callable[[Path, Literal["read", "edit"]], bool] = lambda path, kind: False
    has_ports: Callable[[], bool] = lambda: False
    tells_hosts_apart: Callable[[], bool] = lambda: False
    network: Network = "ask"
    temporary: Path | None = None
    trusted: Callable[[], bool] = lambda: True
    shows: Callable[[], Sequence[Path] | None] = lambda: None
    masks: Callable[[Domain, Masks], bool] = lambda domain, masks: False


class Standing:
    """``mode`` may be changed at any time. Raises ConfigError for a rule that cannot be read."""

    def __init__(self, place: WorkFolders, given: GivenRules, holding: Holding) -> None:
        self.mode: PermissionMode = given.config.mode
        self.root, self.cwd = place.root.resolve(), place.cwd.resolve()
        self.folders = [self.root, *(folder.resolve() for folder in place.added)]
        self._readable = [folder.resolve() for folder in place.readable]
        self._protected = [folder.resolve() for folder in place.protected]
        self.rules = SessionRules(self.root, given)
        self.holds, self.sees, self.has_ports = holding.holds, holding.sees, holding.has_ports
        self.network, self._temporary, self._trusted = holding.network, holding.temporary, holding.trusted
        self.denied = DeniedFiles(self.root, self.rules.denied_patterns, self.rules.denies_reading)
        self._shows, self._masks = holding.shows, holding.masks

    def unheld(self, mode: PermissionMode) -> Self:
        """The same in another mode where no sandbox holds."""
        other = copy(self)
        other.holds = lambda domain: domain == "free"
        other.has_ports, other._temporary = (lambda: False), None
        other._shows = lambda: None
        other.mode = mode
        return other

    def denied_below(self, trees: Sequence[Path]) -> Masks:
        """The files in folders that a rule denies reading, as it is now."""
        self.denied.look_again()
        return self.denied.find(trees)

    def denies_reading(self, path: Path) -> bool:
        """Returns whether a rule denies reading a file, by this name or, with hard links, by another."""
        return self.rules.denies_reading(path) or self._is_other_name(path)

    def denies_sending(self, path: Path) -> bool:
        """The same for what is read without a call: the other names may be anywhere, and the disk is looked at now."""
        if self.rules.denies_reading(path):
            return True
        if not self.rules.denied_patterns() or not has_other_names(path):
            return False
        self.denied.look_again()
        found = self.denied.find(None)
        return path in found.paths or bool(found.incomplete)

    def _is_other_name(self, path: Path) -> bool:
        if not self.rules.denied_patterns() or not has_other_names(path):
            return False
        return path in self.denied.find([self.root]).paths

    def reads_denied(self, domain: Domain) -> str:
        """Describes what a program in ``domain`` could read though a rule denies it; empty where there is nothing, or
        it is kept from that."""
        held = domain != "free" and self.holds(domain)
        masks = self.denied.find(self._shows() if held else None)
        if masks.incomplete:
            return f"it may read what your rules deny: {masks.incomplete}"
        if not masks.paths or (held and self._masks(domain, masks)):
            return ""
        first, more = masks.paths[0], len(masks.paths) - 1
        name = first.relative_to(self.root).as_posix() if first.is_relative_to(self.root) else str(first)
        others = f" and {more} more" if more else ""
        where = "outside the sandbox" if self.holds("look") and not held else "here"
        return f"it could read {name}{others}, which your rules deny: nothing keeps such a program from it {where}"

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
        if kind == "read" and self._is_other_name(path):
            message = f"Refused: {path.name} is another name of a file, and a rule of the user denies reading that."
            return Decision("deny", "it is another name of a file that a rule denies reading", message)
        asks = self.rules.for_path("ask", tool, kind, path)
        if kind == "edit" and self.mode == "plan":
            return Decision("deny", PLAN_REASON, PLAN_MESSAGE)
        if self.mode == "bypass":
            return Decision("ask", RULE_ASKS) if asks else ALLOWED
        within = is_within(path, self.folders)
        if kind == "read" and not within and is_within(path, self._readable):
            return ALLOWED
        if not within and self._temporary is not None and self.holds("look") and is_within(path, [self._temporary]):
            return ALLOWED  # every command may write there
        if not within:
            return Decision("ask", f"{path} is outside the project")
        if kind == "edit" and self.protected(path):
            return Decision("ask", f"{path} {CONTROLS}")
        if asks:
            return Decision("ask", RULE_ASKS)
        if kind == "read" or self.rules.for_path("allow", tool, kind, path) or self.mode in ("accept-edits", "auto"):
            return ALLOWED
        reason = CHANGES_FILE if os.path.lexists(path) else CREATES_FILE
        return Decision("ask", reason, patterns=self._path_patterns(path))

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
        owned = [home() / name for name in HOME_PROTECTED] if home() in folders else []
        return is_protected(shortest) or is_within(path, [*self._protected, *led, *owned])

    def guards(self, tool: str) -> bool:
        """Returns whether a rule denies, or asks about, anything that a command could do: it has to be understood
        then."""
        return any(
            r.names(tool) or r.names("edit") or r.names("write")
            for r in (*self.rules.of("deny"), *self.rules.of("ask"))
        )
