"""May this call run? Allowed, asked or denied, by mode and rules, with the reason.

Order: deny rules; what always asks (paths outside the project, git internals, permission files); plan mode; ask rules;
allow rules; the mode. Nothing a model says takes part: only what the call would do.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Literal

from agent_tui.config import PermissionMode, PermissionsConfig
from agent_tui.tools.base import Intent
from agent_tui.tools.files.paths import is_within
from agent_tui.tools.rules.bound import Configuration, changed, configuration
from agent_tui.tools.rules.decision import ALLOWED, PLAN_MESSAGE, PLAN_REASON, Decision, denied_by, worst
from agent_tui.tools.rules.names import checked_rules, checked_servers_tools
from agent_tui.tools.rules.rule import Rule, parse_rule, path_matches, url_matches
from agent_tui.tools.sandbox.places import secret_places
from agent_tui.tools.sandbox.policy import Domain, Network
from agent_tui.tools.sandbox.protected import is_protected

_REACH: tuple[PermissionMode, ...] = ("plan", "ask", "accept-edits", "auto")
"""The modes, by how much runs unasked in them."""


class Permissions:
    """The judge of a session. ``mode`` may be changed at any time.

    ``root`` and ``added_dirs`` are where work happens; ``readable`` may be read besides (saved tool output);
    ``protected`` always ask before a change (the user's configuration). ``remembered`` are this project's rules and
    ``save`` stores a new one. ``holds`` says of a domain of the sandbox whether commands are held to it here,
    ``sees`` whether a path outside the project is there for a command that is held, ``network`` what ``work`` may
    reach, and ``has_ports`` whether it may use ports on 127.0.0.1 and ::1 while that is closed; in a folder that is
    not ``trusted`` git never runs outside the sandbox. ``temporary`` is where commands that are held keep their
    temporary files. ``looking_tools`` are the tools of MCP servers that the user declares to only look (names, with
    ``*``): they run in every mode without a question, where their server says the same of them. With ``can_ask``
    False what would be asked is refused, and the refusal says how to allow it. Raises ConfigError for a rule that
    cannot be read.
    """

    def __init__(
        self,
        root: Path,
        cwd: Path,
        config: PermissionsConfig,
        *,
        mode: PermissionMode | None = None,
        added_dirs: Sequence[Path] = (),
        readable: Sequence[Path] = (),
        protected: Sequence[Path] = (),
        remembered: Iterable[str] = (),
        save: Callable[[str], None] = lambda rule: None,
        can_ask: bool = True,
        holds: Callable[[Domain], bool] = lambda domain: domain == "free",
        network: Network = "ask",
        has_ports: Callable[[], bool] = lambda: False,
        trusted: Callable[[], bool] = lambda: True,
        sees: Callable[[Path, Literal["read", "edit"]], bool] = lambda path, kind: False,
        looking_tools: Sequence[str] = (),
        temporary: Path | None = None,
    ) -> None:
        self.mode: PermissionMode = mode or config.mode
        self.root, self.cwd = root.resolve(), cwd.resolve()
        self.folders = [self.root, *(folder.resolve() for folder in added_dirs)]
        self._readable = [folder.resolve() for folder in readable]
        self._protected = [folder.resolve() for folder in protected]
        self._deny = checked_rules(config.deny, "permissions.deny")
        self._ask = checked_rules(config.ask, "permissions.ask")
        self._allow = [*checked_rules(config.allow, "permissions.allow"), *(parse_rule(rule) for rule in remembered)]
        self._session: list[Rule] = []
        self._begun: Configuration | None = None
        self._bound: dict[Rule, Configuration] = {}
        self._when_changed: list[Callable[[], None]] = []
        self._save = save
        self.can_ask = can_ask
        self.holds, self.network, self._trusted, self.sees = holds, network, trusted, sees
        self.has_ports, self._temporary = has_ports, temporary
        self._looking_tools = checked_servers_tools(looking_tools, "permissions.mcp_read_only")
        self.has_denied_files = any(
            rule.pattern is not None and any(rule.names(tool) for tool in ("read", "grep")) for rule in self._deny
        )

    def unheld(self, mode: PermissionMode) -> Permissions:
        """A copy that judges by ``mode`` as where no sandbox holds."""
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
        """What a shell is certain to be started with: its folder, the home, and where every command has one of its
        own, the folder for temporary files."""
        found = {"PWD": str(self.cwd), "HOME": str(Path.home())}
        if self._temporary is not None and self.holds("look") and self.holds("work"):
            found["TMPDIR"] = str(self._temporary)
        return found

    def change_mode(self, mode: PermissionMode) -> None:
        """Judges by another mode from now on, and tells those who wait for that."""
        self.mode = mode
        for tell in self._when_changed:
            tell()

    def when_mode_changes(self, changed: Callable[[], None]) -> None:
        self._when_changed.append(changed)

    def remember(self, rules: Iterable[str]) -> None:
        """Allows what ``rules`` say from now on, and stores them for the project."""
        for text in rules:
            rule = parse_rule(text)
            self._bound[rule] = configuration(self.root)
            if rule not in self._allow:
                self._allow.append(rule)
                self._save(text)

    def allow_for_session(self, text: str) -> None:
        """Allows what a rule says until the program ends: edits, or a folder outside the project."""
        self._session.append(parse_rule(text))

    def forget(self, text: str) -> bool:
        """Takes a remembered rule out of force; False when there is none like it."""
        rule = parse_rule(text)
        if rule not in self._allow:
            return False
        self._allow.remove(rule)
        return True

    def decide(self, tool: str, intent: Intent) -> Decision:
        """What is to happen with a call of ``tool`` that would do ``intent``."""
        if self._begun is None:  # no tool has run before
            self._begun = configuration(self.root)
        decision = self._decide(tool, intent)
        if not self.can_ask and decision.if_stopped is not None:
            told = _refusal(decision.if_stopped, self._mode_for(tool, intent))
            refused = replace(decision.if_stopped, action="deny", message=told)
            return replace(decision, if_stopped=refused)
        if self.can_ask or decision.action == "allow":
            return decision
        if decision.action == "ask" or decision.reason == PLAN_REASON:
            told = _refusal(decision, self._mode_for(tool, intent))
            return Decision("deny", decision.reason, told, decision.patterns)
        return decision

    def _mode_for(self, tool: str, intent: Intent) -> PermissionMode | None:
        """The first mode beyond this one in which the call would need no question."""
        mode = self.mode
        try:
            for further in _REACH[_REACH.index(mode) + 1 :]:
                self.mode = further
                decision = self._decide(tool, intent)
                if decision.action == "allow" and decision.if_stopped is None:
                    return further
        finally:
            self.mode = mode
        return None

    def _decide(self, tool: str, intent: Intent) -> Decision:
        if intent.kind == "command":
            from agent_tui.tools.judge.commands import judge

            return judge(self, intent.command or "", intent.outside)
        if intent.kind in ("read", "edit"):
            return worst([self._file(tool, intent.kind, path) for path in intent.paths])
        if intent.kind == "network":
            return self._network(tool, intent.url or "")
        if rule := self._matching(self._deny, tool, None):
            return denied_by(rule)
        if intent.kind in ("internal", "question"):
            return ALLOWED
        if self.mode == "bypass":
            return Decision("ask", "a rule says to ask") if self._matching(self._ask, tool, None) else ALLOWED
        looks = intent.only_looks and any(rule.names(tool) for rule in self._looking_tools)
        if self.mode == "plan" and not looks:
            return Decision("deny", PLAN_REASON, _not_known_to_look(tool))
        if self._matching(self._ask, tool, None):
            return Decision("ask", "a rule says to ask", patterns=[])
        if looks or self._matching(self._allow, tool, None) or self.mode == "auto":
            return ALLOWED
        return Decision("ask", "a tool of an MCP server", patterns=[tool])

    def path(self, tool: str, kind: Literal["read", "edit"], path: Path) -> Decision:
        """The decision on reading or changing one resolved path; ``tool`` is ``edit`` for what a command writes."""

        def matching(rules: Sequence[Rule]) -> Rule | None:
            return next((r for r in rules if self._path_rule(r, tool, kind, path)), None)

        if rule := matching(self._deny):
            return denied_by(rule)
        if kind == "edit" and self.mode == "plan":
            return Decision("deny", PLAN_REASON, PLAN_MESSAGE)
        if self.mode == "bypass":
            return Decision("ask", "a rule says to ask") if matching(self._ask) else ALLOWED
        within = is_within(path, self.folders)
        if kind == "read" and not within and is_within(path, self._readable):
            return ALLOWED
        if not within:
            return Decision("ask", f"{path} is outside the project")
        if kind == "edit" and self.protected(path):
            return Decision("ask", f"{path} decides what may run, or belongs to git itself")
        if matching(self._ask):
            return Decision("ask", "a rule says to ask")
        if kind == "read" or matching(self._allow) or self.mode in ("accept-edits", "auto"):
            return ALLOWED
        return Decision("ask", "changes a file", patterns=self._path_patterns(path))

    def _file(self, tool: str, kind: Literal["read", "edit"], path: Path) -> Decision:
        """The decision on a file that one of our own tools reads or changes: it goes by what was said for the session,
        too. Commands do not: what they name is not all that they reach."""
        decision = self.path(tool, kind, path)
        if decision.action != "ask" or self.protected(path):
            return decision
        if any(rule.tool == kind and path_matches(rule.pattern, path, self.root) for rule in self._session) and not any(
            self._path_rule(rule, tool, kind, path) for rule in self._ask
        ):
            return ALLOWED
        return replace(decision, session=self._for_session(kind, path))

    def _for_session(self, kind: Literal["read", "edit"], path: Path) -> list[str]:
        """What may be said of a file for the whole session: all edits of the project, and all in this folder."""
        folder = path.parent
        if set(str(folder)) & set("*?[]{}\\()\n") or folder in (Path("/"), Path.home(), Path("/tmp"), Path("/etc")):
            return []
        if not is_within(path, self.folders):
            return [f"{kind}({folder}/**)"]
        if kind == "read" or not path.is_relative_to(self.root):
            return []
        inside = folder.relative_to(self.root).as_posix()
        return ["edit(./**)"] if inside == "." else ["edit(./**)", f"edit(./{inside}/**)"]

    def denies_reading(self, path: Path) -> bool:
        """Whether a deny rule covers reading a resolved path: searches leave such files out of what they find."""
        return any(self._path_rule(rule, "grep", "read", path) for rule in self._deny if rule.pattern is not None)

    def protected(self, path: Path) -> bool:
        """True for a resolved path whose change always asks."""
        inside = [path.relative_to(folder) for folder in self.folders if path.is_relative_to(folder)]
        return is_protected(min(inside, key=lambda p: len(p.parts), default=path)) or is_within(path, self._protected)

    def guards(self, tool: str) -> bool:
        """Whether a rule denies, or asks about, anything that a command could do."""
        return any(r.names(tool) or r.names("edit") or r.names("write") for r in (*self._deny, *self._ask))

    def command_rule(
        self, tool: str, which: Literal["deny", "ask", "allow"], matches: Callable[[Rule], bool]
    ) -> Rule | None:
        """The first rule of a kind that names ``tool`` and satisfies ``matches``."""
        rules = {"deny": self._deny, "ask": self._ask, "allow": self._allow}[which]
        return next((rule for rule in rules if rule.names(tool) and matches(rule)), None)

    def changed_since(self, rule: Rule, of_git: bool) -> str:
        """The name of a file of the project's configuration that is another since ``rule`` was given, or the session
        began, whichever is later; empty where there is none. ``of_git``: of those that git reads."""
        return changed(self._bound.get(rule) or self._begun or {}, configuration(self.root), of_git)

    def _network(self, tool: str, url: str) -> Decision:
        from agent_tui.tools.urls import parse_url

        def matching(rules: Sequence[Rule]) -> Rule | None:
            return next((r for r in rules if r.names(tool) and url_matches(r.pattern, url)), None)

        if rule := matching(self._deny):
            return denied_by(rule)
        if self.mode == "bypass":
            return Decision("ask", "a rule says to ask") if matching(self._ask) else ALLOWED
        parsed = parse_url(url)
        if not parsed.public:
            return Decision("ask", f"{parsed.host} is on this machine or a private network")
        if matching(self._ask):
            return Decision("ask", "a rule says to ask")
        if matching(self._allow) or self.mode == "auto":
            return ALLOWED
        return Decision("ask", f"fetches from {parsed.host}", patterns=[f"{tool}({parsed.host})"])

    def _path_rule(self, rule: Rule, tool: str, kind: str, path: Path) -> bool:
        # A patch creates files too: what is said of ``write`` holds for it.
        named = rule.names(tool) or rule.tool == kind or (tool == "apply_patch" and rule.tool == "write")
        return named and path_matches(rule.pattern, path, self.root)

    def _path_patterns(self, path: Path) -> list[str]:
        if not path.is_relative_to(self.root):
            return []
        relative = path.relative_to(self.root).as_posix()
        # A name with pattern characters would match more than itself.
        return [] if set(relative) & set("*?[]{}\\()\n") else [f"edit(./{relative})"]

    @staticmethod
    def _matching(rules: Sequence[Rule], tool: str, pattern: str | None) -> Rule | None:
        return next((rule for rule in rules if rule.names(tool) and rule.pattern is pattern), None)


def _not_known_to_look(tool: str) -> str:
    return (
        f"{PLAN_MESSAGE} ({tool} is a tool of an MCP server: to be used here its server must say that it only reads, "
        "and the user's permissions.mcp_read_only must name it.)"
    )


def _refusal(decision: Decision, mode: PermissionMode | None) -> str:
    """What the model and the log are told where nobody can be asked: what refuses, and the flags that would not."""
    ways = []
    if decision.reason != PLAN_REASON and decision.patterns:
        ways.append(" ".join(f"--allow {shlex.quote(pattern)}" for pattern in decision.patterns))
    elif "outside the project" in decision.reason and not any(
        f"{place} is outside" in decision.reason or f"{place}/" in decision.reason for place in secret_places()
    ):
        ways.append("--add-dir for the folder")
    if mode is not None:
        ways.append(f"--permission-mode {mode}")
    way = "Nothing in the configuration allows this; the user can do it, or run it where questions can be answered."
    if ways:
        way = f"The user can allow it with {', or with '.join(ways)}."
    if decision.reason == PLAN_REASON:
        return f"{PLAN_MESSAGE} {way}" if ways else PLAN_MESSAGE
    return f"Refused: it needs permission and nobody can be asked here ({decision.reason}). {way}"
