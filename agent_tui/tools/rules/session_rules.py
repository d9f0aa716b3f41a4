"""The rules of a session: those of the configuration, those remembered for the project, and those that hold until the
program ends; what each is about, and what it was given for."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent_tui.config import PermissionsConfig
from agent_tui.tools.base import ServerTool
from agent_tui.tools.rules.rule import (
    Configuration,
    Rule,
    changed,
    checked_rules,
    checked_servers_tools,
    command_matches,
    configuration,
    parse_rule,
    path_matches,
)

Which = Literal["deny", "ask", "allow"]


@dataclass(slots=True, frozen=True)
class GivenRules:
    """The rules of ``config``, of which ``brought`` came with the project; ``remembered`` are the project's, and
    ``save`` stores a new one."""

    config: PermissionsConfig
    remembered: Iterable[str] = ()
    brought: Collection[str] = ()
    save: Callable[[str], None] = lambda rule: None


class SessionRules:
    """Raises ConfigError for a rule that cannot be read."""

    def __init__(self, root: Path, given: GivenRules) -> None:
        config = given.config
        self._root, self._save = root, given.save
        self._deny = checked_rules(config.deny, "permissions.deny")
        self._ask = checked_rules(config.ask, "permissions.ask")
        self._allow = [*checked_rules(config.allow, "permissions.allow"), *map(parse_rule, given.remembered)]
        self._own = [parse_rule(rule) for rule in config.allow if rule not in given.brought]
        self._looking_tools = checked_servers_tools(config.mcp_read_only, "permissions.mcp_read_only")
        self._session: list[Rule] = []
        self._begun: Configuration | None = None
        self._bound: dict[Rule, Configuration] = {}

    # What is added and taken away

    def remember(self, texts: Iterable[str]) -> None:
        """Allows what rules say from now on, and stores them for the project."""
        for text in texts:
            rule = parse_rule(text)
            self._bound[rule] = configuration(self._root)
            if rule not in self._allow:
                self._allow.append(rule)
                self._save(text)

    def forget(self, text: str) -> bool:
        """Takes a remembered rule out of force; False when there is none like it."""
        return _removed(self._allow, text)

    def allow_for_session(self, text: str) -> None:
        """Allows what a rule says until the program ends."""
        rule = parse_rule(text)
        if rule not in self._session:
            self._session.append(rule)

    def forget_for_session(self, text: str) -> bool:
        """Takes such a rule out of force; False when there is none like it."""
        return _removed(self._session, text)

    @property
    def for_session(self) -> list[str]:
        """The rules that hold until the program ends."""
        return [rule.tool if rule.pattern is None else f"{rule.tool}({rule.pattern})" for rule in self._session]

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
        return {"deny": self._deny, "ask": self._ask, "allow": self._allow}[which]

    def for_tool(self, which: Which, tool: str, matches: Callable[[Rule], bool]) -> Rule | None:
        """The first that names ``tool`` and satisfies ``matches``."""
        return next((rule for rule in self.of(which) if rule.names(tool) and matches(rule)), None)

    def for_every_call(self, which: Which, tool: str) -> Rule | None:
        """The first that names ``tool`` and nothing in particular."""
        return self.for_tool(which, tool, lambda rule: rule.pattern is None)

    def for_path(self, which: Which, tool: str, kind: str, path: Path) -> Rule | None:
        """The first about reading or changing a path; ``kind`` is ``read`` or ``edit``."""
        return next((rule for rule in self.of(which) if self._is_about(rule, tool, kind, path)), None)

    def for_session_path(self, kind: str, path: Path) -> bool:
        """Returns whether a rule that holds until the program ends lets a path be read or changed."""
        return any(rule.tool == kind and path_matches(rule.pattern, path, self._root) for rule in self._session)

    def users_own(self, tool: str, path: Path) -> list[str]:
        """The patterns by which the user, not the project or an earlier answer, lets a path be changed."""
        found = [rule for rule in self._own if self._is_about(rule, tool, "edit", path)]
        return [rule.pattern for rule in found if rule.pattern is not None]

    def denies_reading(self, path: Path) -> bool:
        """Returns whether a rule denies reading this path; rules that deny all paths do not count."""
        return any(self._is_about(rule, "grep", "read", path) for rule in self._deny if rule.pattern is not None)

    @property
    def deny_files(self) -> bool:
        """True when there may be paths that a rule denies reading."""
        return any(rule.pattern is not None and (rule.names("read") or rule.names("grep")) for rule in self._deny)

    def for_server(self, which: Which, called: ServerTool, whole: bool = True) -> Rule | None:
        """The first ``mcp(server.tool)`` about a tool; ``whole``: also one that names just its server."""
        name = f"{called.server}.{called.tool}"

        def meant(pattern: str | None) -> bool:
            if pattern is None or pattern == called.server:
                return pattern is None or whole
            return "." in pattern and command_matches(pattern, name)

        return next((rule for rule in self.of(which) if rule.tool == "mcp" and meant(rule.pattern)), None)

    def has_consent(self, server: str) -> bool:
        """Returns whether a rule says that the tools of an MCP server may look."""
        return any(rule.tool == "mcp" and rule.pattern == server for rule in self._allow)

    def only_looks(self, tool: str) -> bool:
        """Returns whether the user declares that a tool of an MCP server only looks."""
        return any(rule.names(tool) for rule in self._looking_tools)

    def for_host(self, host: str) -> bool | None:
        """Returns whether commands may reach a host; None where no rule names it."""

        def named(rules: Sequence[Rule]) -> bool:
            patterns = [rule.pattern for rule in rules if rule.tool == "network" and rule.pattern]
            return any(fnmatch.fnmatchcase(host, pattern.lower()) for pattern in patterns)

        if named(self._deny):
            return False
        return True if named(self._granted) else None

    def for_registries(self) -> bool | None:
        """The same of where packages come from."""

        def named(rules: Sequence[Rule]) -> bool:
            return any(rule.tool == "network" and rule.pattern in (None, "registries") for rule in rules)

        if named(self._deny):
            return False
        return True if named(self._granted) else None

    @property
    def grant_network(self) -> bool:
        """True when any granted rule lets commands reach something."""
        return any(rule.tool == "network" for rule in self._granted)

    @property
    def _granted(self) -> list[Rule]:
        return [*self._allow, *self._session]

    def _is_about(self, rule: Rule, tool: str, kind: str, path: Path) -> bool:
        # A patch creates files too: what is said of ``write`` holds for it.
        named = rule.names(tool) or rule.tool == kind or (tool == "apply_patch" and rule.tool == "write")
        return named and path_matches(rule.pattern, path, self._root)


def _removed(rules: list[Rule], text: str) -> bool:
    rule = parse_rule(text)
    if rule not in rules:
        return False
    rules.remove(rule)
    return True
