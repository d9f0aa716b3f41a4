"""One simple command with all that is asked about it: by rules, and by the files it names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from agent_tui.tools.files.paths import is_within
from agent_tui.tools.judge.always import prefix, tool_and_arguments
from agent_tui.tools.judge.line.syntax import Word
from agent_tui.tools.judge.paths import named_paths
from agent_tui.tools.judge.programs.git import messages, names_a_place, starting, without_globals
from agent_tui.tools.judge.programs.kinds import INTERPRETERS, STARTING, WRAPPERS
from agent_tui.tools.judge.wrappers import Started
from agent_tui.tools.rules.decision import ALLOWED, PLAN_MESSAGE, PLAN_REASON, Decision
from agent_tui.tools.rules.ground import Ground
from agent_tui.tools.rules.rule import Rule, command_matches, exact
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
        if not outside(decision):
            return replace(decision, domain=domain)
        return ALLOWED if self.seen(path, kind) else replace(decision, domain="free")

    def seen(self, path: Path, kind: Literal["read", "edit"]) -> bool:
        """Whether a path outside the project is there for a command that is held to looking."""
        ground = self.ground
        return ground.holds("look") and not is_within(path, ground.folders) and ground.sees(path, kind)

    def named_by(self, which: Literal["deny", "ask", "allow"], broadly: bool = False) -> bool:
        """Whether a rule names this command. ``broadly`` (to refuse or ask): also with a path before the program's
        name, without assignments, and behind programs that run others."""
        # What gets operands that are not seen here is allowed by a rule for the whole of it.
        whole = self.started.outer[0] if self.started.given else self.command
        texts = {whole.text, whole.written}
        if broadly:
            for command in (self.command, *self.started.outer):
                parts = [word.text for word in command.words]
                name = parts[0].rpartition("/")[2] if parts else ""
                texts |= {command.text, command.written, " ".join([name, *parts[1:]])}
                if name in WRAPPERS:
                    texts |= {" ".join(parts[start:]) for start in range(1, len(parts))}
                texts |= {" ".join([name, *rest]) for rest in _behind_options(name, command.words[1:])}
        starts = which == "allow" and self.starts_others()

        def matches(rule: Rule) -> bool:
            if starts and rule.pattern is not None and rule.pattern != exact(self.command.text):
                return False
            return any(command_matches(rule.pattern, text) for text in texts)

        tools = {self.tool} if which == "allow" else {self.tool, COMMAND_TOOL}
        return any(self.ground.command_rule(tool, which, matches) for tool in tools)

    def starts_others(self) -> bool:
        """Whether an option makes it start what it is given: more than a rule with a star was meant for."""
        if self.name == "git":
            return starting(self.words[1:]) or names_a_place(self.command.words[1:])
        if not self.words:
            return False
        name, arguments = tool_and_arguments(self.words)
        if name == "coverage":
            # What it is to run is part of what the rule names, or it is anything.
            return arguments[:1] == ["run"] and not prefix(self.words)
        pattern = STARTING.get(name)
        return pattern is not None and any(pattern.fullmatch(word) for word in arguments)

    def _takes_code(self) -> bool:
        """Whether it runs what it reads: a rule for its words would be one for any code."""
        arguments = self.words[1:]
        if self.name.rstrip("0123456789.") not in INTERPRETERS:
            return False
        return not arguments or "-" in arguments or arguments[-1:] == ["-s"] or "/dev/stdin" in arguments

    def patterns(self) -> list[str]:
        """What "always" would allow: the program with its subcommand, or exactly this where that would be a blank
        cheque."""
        if not self.words or self.started.given or self._takes_code():
            return []
        told = messages(self.command.words[1:]) if self.name == "git" else []
        unknown = [word for word in (*self.command.assignments, *self.command.words) if word.dynamic]
        if any(not any(word is text for text in told) for word in unknown) or (unknown and not prefix(self.words)):
            return []
        if self.name in ("pushd", "popd"):
            return []  # where they lead is not in their words
        start = [] if self.command.assignments or self.starts_others() else prefix(self.words)
        pattern = f"{' '.join(exact(word) for word in start)} *" if start else exact(self.command.text)
        return [f"{self.tool}({pattern})"]


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


def denied_command(name: str) -> Decision:
    """The refusal of a command that a rule denies."""
    text = "Refused: a rule of the user denies this command. Do not retry it."
    return Decision("deny", f"a rule denies {name}", text)


def outside(decision: Decision) -> bool:
    return decision.action == "ask" and ("outside" in decision.reason or "decides what may run" in decision.reason)


def in_plan(ground: Ground, problem: str) -> Decision:
    """Not known to only look: it may run where the system holds it to looking."""
    if ground.holds("look"):
        return ALLOWED
    return Decision("deny", PLAN_REASON, f"{PLAN_MESSAGE} (Not known to be read only: {problem}.)")
