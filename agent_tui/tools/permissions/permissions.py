"""May this call run? Allowed, asked or denied, by mode and rules, with the reason.

Order: deny rules; what always asks (paths outside the project, git internals, permission files); plan mode; ask rules;
allow rules; the mode. Nothing a model says takes part: only what the call would do.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Literal

from agent_tui.config import PermissionMode
from agent_tui.models.events import RuleOffer
from agent_tui.models.messages import SEARCH_TOOL
from agent_tui.text.clean import pictured_line
from agent_tui.tools.base import Intent, ServerTool
from agent_tui.tools.files.access import FileAccess
from agent_tui.tools.files.beneath import has_other_names, is_read_only, is_within
from agent_tui.tools.git.remotes import Remotes
from agent_tui.tools.git.repository import starts_when_fetched
from agent_tui.tools.permissions.reach import SessionReach
from agent_tui.tools.rules.decision import ALLOWED, PLAN_MESSAGE, PLAN_REASON, RULE_ASKS, Decision, denied_by, worst
from agent_tui.tools.rules.rule import Rule, parse_rule, plain_start, url_matches
from agent_tui.tools.rules.standing import GivenRules, Holding, Standing, Which, WorkFolders
from agent_tui.tools.sandbox.network import hosts_named, is_registry
from agent_tui.tools.sandbox.places import secret_places
from agent_tui.tools.sandbox.policy import Network
from agent_tui.tools.sandbox.protected import is_protected

NOTHING_HOLDS = Holding()

_REACH: tuple[PermissionMode, ...] = ("plan", "ask", "accept-edits", "auto")
"""The modes, by how much runs unasked in them."""


_HELD_BY_RULES = frozenset(("edit", "read", "network", "bash", "outside"))
"""Tools whose rules for a session hold whatever is read meanwhile."""


class Permissions(Standing):
    """The judge of a session. ``remotes`` are those of its repositories, and ``reach`` is what may leave the machine.
    With ``can_ask`` False what would be asked is refused, and the refusal says how to allow it. Raises ConfigError for
    a rule that cannot be read.
    """

    def __init__(
        self,
        place: WorkFolders,
        given: GivenRules,
        holding: Holding = NOTHING_HOLDS,
        *,
        can_ask: bool = True,
        remotes: Remotes | None = None,
        reach: SessionReach | None = None,
    ) -> None:
        super().__init__(place, given, holding)
        self.tells_hosts_apart, self._remotes = holding.tells_hosts_apart, remotes
        self.can_ask, self.reach = can_ask, reach or SessionReach()
        self.files = FileAccess(
            self.folders, self.denies_sending, self.rules.denied_patterns, lambda path: self.attached([path])
        )
        self._when_changed: list[Callable[[], None]] = []

    def change_mode(self, mode: PermissionMode) -> None:
        """Judges by another mode from now on, and tells those who wait for that."""
        self.mode = mode
        for tell in self._when_changed:
            tell()

    def when_mode_changes(self, changed: Callable[[], None]) -> None:
        self._when_changed.append(changed)

    def accept(self, offer: RuleOffer) -> None:
        """Puts the rules of an offer in force: remembered for the project, or until the program ends."""
        if offer.lasts == "project":
            self.rules.remember(offer.rules)
            return
        for text in offer.rules:
            if parse_rule(text).tool in _HELD_BY_RULES:
                self.rules.allow_for_session(text)
            else:  # a host or a server: what is read from outside later calls such a yes into question
                self.reach.grant(text)

    @property
    def for_session(self) -> list[str]:
        """The rules that hold until the program, or the session, ends."""
        return [*self.rules.for_session, *self.reach.grants]

    def forget_for_session(self, text: str) -> bool:
        """Takes such a rule out of force; False when there is none like it."""
        return self.reach.revoke(text) or self.rules.forget_for_session(text)

    def after(self, offer: RuleOffer) -> Permissions:
        """A copy that judges as if an offer had been accepted; nothing is stored."""
        other = copy(self)
        other.rules, other.reach = self.rules.scratch(), self.reach.scratch()
        other.accept(offer)
        return other

    def session_folders(self) -> list[Path]:
        """The folders of the project, each named by a rule of its own, in which all may be changed until the program
        ends."""
        starts = [pattern.removesuffix("/**") for pattern in self.rules.session_edits() if pattern.endswith("/**")]
        return [self.root / start[2:] for start in starts if start[:2] == "./" and start == f"./{plain_start(start)}"]

    def decide(self, tool: str, intent: Intent) -> Decision:
        """Decides on a call of ``tool`` that would do ``intent``."""
        self.rules.begin()
        self.denied.look_again()
        return self.put(tool, intent, _with_hook(intent, self._decide(tool, intent)))

    def put(self, tool: str, intent: Intent, decision: Decision) -> Decision:
        """``decision`` on a call as it holds here: where nobody can be asked, a question is a refusal that says how
        to allow it."""
        if self.can_ask or decision.action == "allow":
            return decision
        if decision.action == "ask" or decision.reason == PLAN_REASON:
            rules = self.network_rules(intent.command or "") if decision.network else ()
            told = _refusal(decision, self._mode_for(tool, intent), map(_flag_for, rules), self._names_for(intent))
            return Decision("deny", decision.reason, told, decision.patterns)
        return decision

    def network_rules(self, command: str, hosts: Sequence[str] = ()) -> list[str]:
        """The rules that would let a command reach what it names, or the ``hosts`` it was kept from; one for the
        registries where it names none."""
        named = hosts_named(command) or hosts
        wanted = [f"network({host})" for host in named if not is_registry(host)]
        if wanted and not self.tells_hosts_apart():
            return []
        return wanted + ["network(registries)"] * (len(wanted) < len(named) or not named)

    def _names_for(self, intent: Intent) -> list[str]:
        """The rules that name all that a call of our own tools would change, where all of it is protected."""
        rules: list[str] = []
        for path in intent.paths if intent.kind == "edit" else ():
            if not self.protected(path) or is_within(path, self._protected) or not self._path_patterns(path):
                return []
            rules += self._path_patterns(path)
        return rules

    def _mode_for(self, tool: str, intent: Intent) -> PermissionMode | None:
        """The first mode beyond this one in which the call would need no question."""
        mode = self.mode
        if mode not in _REACH:
            return None
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
            return self._with_remotes(self._command(intent))
        if intent.kind in ("read", "edit"):
            return worst([self._file(tool, intent.kind, path) for path in intent.paths])
        if intent.kind == "network":
            return self._network(tool, intent.url or "")
        if rule := self.rules.for_every_call("deny", tool):
            return denied_by(rule)
        if intent.kind in ("internal", "question"):
            return self._own_context(tool, intent)
        return self._server(tool, intent.server or ServerTool(tool, tool))

    def _own_context(self, tool: str, intent: Intent) -> Decision:
        """What a model does to its own context is asked about by the user's setting; all else changes nothing."""
        asked = intent.asks == "always" or (bool(intent.asks) and self.mode in ("ask", "plan"))
        if not asked or self.mode == "bypass" or self.rules.for_every_call("allow", tool):
            return ALLOWED
        return Decision("ask", "it changes what the model is sent of the conversation", patterns=[tool])

    def _server(self, tool: str, called: ServerTool) -> Decision:
        rules = self.rules
        if rule := rules.for_server("deny", called):
            return denied_by(rule)
        asks = rules.for_every_call("ask", tool) or rules.for_server("ask", called)
        if self.mode == "bypass":
            return Decision("ask", RULE_ASKS) if asks else ALLOWED
        declared = called.only_looks and rules.only_looks(tool)
        if self.mode == "plan" and not declared:
            return Decision("deny", PLAN_REASON, _not_known_to_look(tool))
        if asks:
            return Decision("ask", RULE_ASKS, patterns=[])
        if declared or rules.for_every_call("allow", tool) or rules.for_server("allow", called):
            return ALLOWED
        return self.reach.call(tool, called)

    def passed(self, tool: str, intent: Intent, decision: Decision) -> None:
        """A call may run now, the user's yes included."""
        outside = [path for path in intent.paths if self._is_outside(path)] if intent.kind == "read" else []
        left = intent.kind == "command" and decision.domain == "free" and self.holds("work")
        self.reach.passed(intent, outside, left)

    def attached(self, paths: Iterable[Path]) -> None:
        """Files went with a message."""
        for path in paths:
            if path.is_absolute() and self._is_outside(path):
                self.reach.read(pictured_line(str(path)))

    def _is_outside(self, path: Path) -> bool:
        """Returns whether a file is neither the project's, ours, nor there for every command that is held."""
        return not is_within(path, [*self.folders, *self._readable]) and not self.sees(path, "read")

    def _command(self, intent: Intent) -> Decision:
        from agent_tui.tools.judge.commands import judge_command

        source = intent.command or ""
        if self.network not in ("ask", "registries") or not self.opens(hosts_named(source)):
            return judge_command(
                self._reaching("ask") if self.network == "registries" else self, source, intent.outside
            )
        if self.tells_hosts_apart():
            return judge_command(self._reaching("registries"), source, intent.outside)
        # No host can be told from another here: what was granted is open to a command that needs it, and to no other.
        found = judge_command(self._reaching("ask"), source, intent.outside)
        question = found.if_stopped or found
        if question.action != "ask" or not question.network:
            return found
        opened = judge_command(self._reaching("allow"), source, intent.outside)
        wider = replace(opened.if_stopped, network=True) if opened.if_stopped is not None else None
        return replace(opened, network=opened.domain == "work", if_stopped=wider)

    def _reaching(self, network: Network) -> Permissions:
        """A copy that judges as where the network is this."""
        other = copy(self)
        other.network = network
        return other

    def opens(self, hosts: Sequence[str]) -> bool:
        """Returns whether hosts that a command names were granted; of one that names none, whether the registries
        were."""
        return all(self.grants(host, is_registry(host)) for host in hosts) if hosts else self._registries

    def grants(self, host: str, registry: bool) -> bool:
        """Returns whether commands may reach a host; ``registry``: packages come from there."""
        said = self.rules.for_host(host)
        return said if said is not None else registry and self._registries

    @property
    def granted_network(self) -> Network | None:
        """The network that a command in ``work`` reaches by what was granted; None for what the configuration says."""
        granted = self.network == "registries" or self.rules.grant_network
        return "registries" if granted and self.network in ("ask", "registries") else None

    @property
    def _registries(self) -> bool:
        said = self.rules.for_registries()
        return said if said is not None else self.network == "registries"

    def _with_remotes(self, decision: Decision) -> Decision:
        """With what its git commands may reach: a rule was given for the remotes of the session's beginning. Others are
        asked about, and where no sandbox holds so is a repository whose configuration or hooks would be run."""
        if self._remotes is None or not decision.remotes:
            return decision
        reaches = [self._remotes.reach(remote.argv, remote.folder) for remote in decision.remotes]
        remotes = tuple(replace(r, reach=reach) for r, reach in zip(decision.remotes, reaches, strict=True))
        decision = replace(decision, remotes=remotes)
        why: list[str] = []
        if decision.action == "ask" and self.holds("work") and all(reach.problem for reach in reaches):
            why.append(f"git stays in the sandbox and cannot reach remotes: {reaches[0].problem}")
        for reach in reaches:
            all_of_it = [address.text for address in reach.addresses]
            new = self._remotes.unfamiliar(reach) if self.trusted else all_of_it
            if new:
                why.append(f"git would use {', '.join(new[:3])}, not seen before")
            elif decision.action == "ask" and reach.folder != self.cwd and all_of_it:
                why.append(f"git would use {', '.join(all_of_it[:3])}")
            if not self.holds("work") and starts_when_fetched(reach.folder):
                why.append("the repository's hooks or configuration name programs that would run")
        if not why or decision.action == "deny":
            return decision
        patterns = decision.patterns if decision.action == "ask" else []
        reason = "; ".join(dict.fromkeys([*([decision.reason] if decision.reason else []), *why]))
        return replace(decision, action="ask", reason=reason, patterns=patterns)

    def seen_remotes(self, decision: Decision) -> None:
        """The user was asked about a command and said yes: what it reaches is known from now on."""
        for remote in decision.remotes:
            if self._remotes is not None and remote.reach is not None:
                self._remotes.learn(remote.reach)

    def _file(self, tool: str, kind: Literal["read", "edit"], path: Path) -> Decision:
        """The decision on a file that one of our own tools reads or changes: it goes by what was said for the session,
        too. Commands do not: what they name is not all that they reach."""
        decision = self.path(tool, kind, path)
        if kind == "edit" and decision.action == "allow" and self.mode != "bypass":
            if is_read_only(path):
                return Decision("ask", f"{path} is read-only")
            if has_other_names(path):
                return Decision("ask", f"{path} has other names (hard links) that would change, too")
        asks = self.rules.for_path("ask", tool, kind, path)
        if decision.action == "ask" and kind == "read" and not asks and self._commands_read(path):
            return ALLOWED
        if decision.action != "ask":
            return decision
        if self.protected(path):
            return ALLOWED if kind == "edit" and not asks and self._is_named(tool, path) else decision
        if self.rules.for_session_path(kind, path) and not asks:
            return ALLOWED
        return replace(decision, session=self._for_session(kind, path))

    def _is_named(self, tool: str, path: Path) -> bool:
        """Returns whether the user's own rules, not remembered ones or the project's, say by its name that a protected
        place of the project may be changed."""
        if not path.is_relative_to(self.root) or is_within(path, self._protected):
            return False
        return any(is_protected(PurePath(plain_start(pattern))) for pattern in self.rules.users_own(tool, path))

    def _commands_read(self, path: Path) -> bool:
        """Returns whether a path outside the project is there for every command that is held: asking about it would be
        no protection. Their ``/tmp`` is another one than that of file tools."""
        return not is_within(path, [*self.folders, Path("/tmp")]) and self.holds("look") and self.sees(path, "read")

    def _for_session(self, kind: Literal["read", "edit"], path: Path) -> list[str]:
        """Returns the rules that the user may give for a file for the whole session: all edits of the project, and all
        in this folder."""
        folder = path.parent
        if set(str(folder)) & set("*?[]{}\\()\n") or folder in (Path("/"), Path.home(), Path("/tmp"), Path("/etc")):
            return []
        if not is_within(path, self.folders):
            return [f"{kind}({folder}/**)"]
        if kind == "read" or not path.is_relative_to(self.root):
            return []
        inside = folder.relative_to(self.root).as_posix()
        return ["edit(./**)"] if inside == "." else ["edit(./**)", f"edit(./{inside}/**)"]

    def inside(self, paths: Iterable[Path]) -> bool:
        """Returns whether all of these resolved paths lie in the project, an added folder or what may be read
        besides."""
        return all(is_within(path, [*self.folders, *self._readable]) for path in paths)

    def _network(self, tool: str, url: str) -> Decision:
        from agent_tui.urls import parse_url

        def matching(which: Which) -> Rule | None:
            return self.rules.for_tool(which, tool, lambda rule: url_matches(rule.pattern, url))

        if rule := matching("deny"):
            return denied_by(rule)
        if self.mode == "bypass":
            return Decision("ask", RULE_ASKS) if matching("ask") else ALLOWED
        parsed = parse_url(url)
        if tool == SEARCH_TOOL:
            # The user's own address, wherever it is: what they have not seen is the query.
            allowed = matching("allow") and not matching("ask")
            return ALLOWED if allowed else Decision("ask", RULE_ASKS) if matching("ask") else self.reach.search(parsed)
        if not parsed.public:
            return Decision("ask", f"{parsed.host} is on this machine or a private network")
        if matching("ask"):
            return Decision("ask", RULE_ASKS)
        return ALLOWED if matching("allow") else self.reach.fetch(parsed)


def _with_hook(intent: Intent, decision: Decision) -> Decision:
    """A decision with what hooks said of the call: they answer a question, but for one that a rule of the user's asks,
    or ask one. What is denied stays so."""
    question = decision.if_stopped or decision
    if intent.hook == "allow" and question.action == "ask" and RULE_ASKS not in question.reason:
        return replace(question, action="allow", if_stopped=None)
    if intent.hook == "ask" and decision.action == "allow":
        why = f"a hook asks{f': {intent.hook_reason}' if intent.hook_reason else ''}"
        return replace(question, action="ask", reason=why, patterns=[], session=[], if_stopped=None)
    return decision


def _not_known_to_look(tool: str) -> str:
    return (
        f"{PLAN_MESSAGE} ({tool} is a tool of an MCP server: plan mode uses only tools that their server declares "
        "read-only and the user's permissions.mcp_read_only names.)"
    )


def _flag_for(rule: str) -> str:
    return "--network registries" if rule == "network(registries)" else f"--allow {shlex.quote(rule)}"


def _refusal(decision: Decision, mode: PermissionMode | None, network: Iterable[str], names: Sequence[str]) -> str:
    """Returns the words for the model and the log where nobody can be asked: what refuses, and the flags that would
    not. ``network`` are those for that, ``names`` rules for what is protected."""
    ways = []
    if decision.reason != PLAN_REASON and (patterns := decision.patterns or names):
        ways.append(" ".join(f"--allow {shlex.quote(pattern)}" for pattern in patterns))
    elif "outside the project" in decision.reason and not any(
        f"{place} is outside" in decision.reason or f"{place}/" in decision.reason for place in secret_places()
    ):
        ways.append("--add-dir for the folder")
    ways += network
    if mode is not None:
        ways.append(f"--permission-mode {mode}")
    way = "Nothing in the configuration allows this; the user can do it, or run it where questions can be answered."
    if ways:
        way = f"The user can allow it with {', or with '.join(ways)}."
    if decision.reason == PLAN_REASON:
        return f"{PLAN_MESSAGE} {way}" if ways else PLAN_MESSAGE
    return f"Refused: it needs permission and nobody can be asked here ({decision.reason}). {way}"
