"""One simple command with all that is asked about it: by rules, and by the files it names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from agent_tui.tools.files.beneath import is_within
from agent_tui.tools.judge.always import prefix
from agent_tui.tools.judge.line.syntax import Word
from agent_tui.tools.judge.paths import named_paths
from agent_tui.tools.judge.programs.git import messages, without_globals
from agent_tui.tools.judge.programs.kinds import INTERPRETERS, WRAPPERS
from agent_tui.tools.judge.wrappers import Started
from agent_tui.tools.rules.decision import ALLOWED, Decision
from agent_tui.tools.rules.ground import Ground
from agent_tui.tools.rules.rule import Rule, command_matches, exact
from agent_tui.tools.sandbox.outputs import names_output
from agent_tui.tools.sandbox.policy import Domain

COMMAND_TOOL = "bash"
"""The name in rules for commands, and ``OUTSIDE_TOOL`` for those that leave the sandbox for that alone."""

OUTSIDE_TOOL = "outside"


class Subject:
    """``folders`` are all the working directories it may run in; ``cd`` adds to them. ``tool`` is the name that rules
    are asked about."""

    def __init__(self, ground: Ground, tool: str, started: Started, folders: set[Path]) -> None:
        self.ground, self.tool, self.folders = ground, tool, folders
        self.started, self.command = started, started.command
        self.words = [word.text for word in self.command.words]
        self.name = self.words[0].rpartition("/")[2] if self.words else ""

    def on_paths(self, kind: Literal["read", "edit"], word: Word) -> list[Decision]:
        """The decisions on every path that a word may mean."""
        return [self._on_path(kind, path) for path in self.paths(kind, word)]

    def paths(self, kind: Literal["read", "edit"], word: Word) -> list[Path]:
        """Every path that a word may mean. After ``cd`` the same word is looked at from several folders: where the
        sandbox holds the command, one that is a path of the project from any of them counts as that, for from the
        others it leads to nothing. What a rule denies stays."""
        ground = self.ground
        held = runs_unseen(ground) or (kind == "read" and ground.holds("look") and not ground.guards(COMMAND_TOOL))
        by_folder = [list(named_paths(word, [folder])) for folder in self.folders]
        found = [path for paths in by_folder for path in paths]
        if not held or not any(all(is_within(path, ground.folders) for path in paths) for paths in by_folder):
            return found
        kinds: list[Literal["read", "edit"]] = ["read"] if ground.mode == "plan" else ["read", "edit"]
        return [
            path
            for path in found
            if is_within(path, ground.folders) or any(ground.path(k, k, path).action == "deny" for k in kinds)
        ]

    def _on_path(self, kind: Literal["read", "edit"], path: Path) -> Decision:
        # To look is enough for reading inside the project; the rest needs as much as the question is about.
        domain: Domain = "work" if kind == "edit" else "look"
        decision = self.ground.path(kind, kind, path)
        if (outside(decision) or self.ground.mode == "plan") and (self.seen(path, kind) or self.absent(path, kind)):
            return ALLOWED
        if decision.reason == "changes a file" and self._may_be_output(path):
            return replace(ALLOWED, if_stopped=replace(decision, domain=domain))
        return replace(decision, domain="free" if outside(decision) else domain)

    def _may_be_output(self, path: Path) -> bool:
        """Whether a file is named like the output of a build, which a command that looks may write: it is tried."""
        root, ground = self.ground.root, self.ground
        named = path.is_relative_to(root) and names_output(path.relative_to(root))
        return named and ground.mode == "ask" and ground.holds("look")

    def seen(self, path: Path, kind: Literal["read", "edit"]) -> bool:
        """Whether a path outside the project is there for a command that is held to looking."""
        ground = self.ground
        return ground.holds("look") and not is_within(path, ground.folders) and ground.sees(path, kind)

    def absent(self, path: Path, kind: Literal["read", "edit"]) -> bool:
        """Whether there is nothing outside the project that a held command could come to by this path: a pattern, a
        part of an address."""
        ground = self.ground
        if not ground.holds("look") or is_within(path, ground.folders):
            return False
        return not os.path.lexists(path) and (kind == "read" or not os.path.lexists(path.parent))

    def rule(
        self, which: Literal["deny", "ask", "allow"], fits: Callable[[Rule], bool] = lambda rule: True
    ) -> Rule | None:
        """The first rule that names this command and ``fits``. To refuse or to ask also with a path before the
        program's name, without assignments, and behind programs that run others."""
        # What gets operands that are not seen here is allowed by a rule for the whole of it.
        whole = self.started.outer[0] if self.started.given else self.command
        texts = {whole.text, whole.written}
        if which != "allow":
            for command in (self.command, *self.started.outer):
                parts = [word.text for word in command.words]
                name = parts[0].rpartition("/")[2] if parts else ""
                texts |= {command.text, command.written, " ".join([name, *parts[1:]])}
                if name in WRAPPERS:
                    texts |= {" ".join(parts[start:]) for start in range(1, len(parts))}
                texts |= {" ".join([name, *rest]) for rest in _behind_options(name, command.words[1:])}

        def matches(rule: Rule) -> bool:
            return any(command_matches(rule.pattern, text) for text in texts) and fits(rule)

        tools = [self.tool] if which == "allow" else dict.fromkeys((self.tool, COMMAND_TOOL))
        found = (self.ground.command_rule(tool, which, matches) for tool in tools)
        return next((rule for rule in found if rule is not None), None)

    def patterns(self) -> list[str]:
        """What "always" may allow, the wider first: the program with its subcommand, and exactly this."""
        if not self.words or self.started.given or self._takes_code():
            return []
        told = messages(self.command.words[1:]) if self.name == "git" else []
        unknown = [word for word in (*self.command.assignments, *self.command.words) if word.dynamic]
        if any(not any(word is text for text in told) for word in unknown) or (unknown and not prefix(self.words)):
            return []
        if self.name in ("pushd", "popd"):
            return []  # where they lead is not in their words
        start = [] if self.command.assignments else prefix(self.words)
        wide = [f"{' '.join(exact(word) for word in start)} *"] if start else []
        return wide if unknown else [*wide, exact(self.command.text)]

    def _takes_code(self) -> bool:
        """Whether it runs what it reads: a rule for its words would be one for any code."""
        arguments = self.words[1:]
        if self.name.rstrip("0123456789.") not in INTERPRETERS:
            return False
        return not arguments or "-" in arguments or arguments[-1:] == ["-s"] or "/dev/stdin" in arguments


def _behind_options(name: str, arguments: Sequence[Word]) -> Iterator[list[str]]:
    """What follows the options in front of a subcommand, each of which may have a value: ``git -C src push`` and ``npm
    --prefix src publish`` are what rules for ``git push`` and ``npm publish`` are about."""
    if name == "git":
        yield [word.text for word in without_globals(arguments)]
        return
    at = 0
    while at < len(arguments) and arguments[at].text.startswith("-"):
        at += 1
        yield [word.text for word in arguments[at:]]
        if at < len(arguments) and not arguments[at].text.startswith("-"):
            yield [word.text for word in arguments[at + 1 :]]
            at += "=" not in arguments[at - 1].text


def runs_unseen(ground: Ground) -> bool:
    """Whether a command may run of which not all is understood: where the sandbox holds what it may do, and no rule
    wants to know more."""
    return ground.mode in ("accept-edits", "auto") and ground.holds("work") and not ground.guards(COMMAND_TOOL)


def outside(decision: Decision) -> bool:
    return decision.action == "ask" and ("outside" in decision.reason or "decides what may run" in decision.reason)
