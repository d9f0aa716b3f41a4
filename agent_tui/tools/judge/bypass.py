"""Commands where the user said that nothing is to be asked: their own rules count, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

from agent_tui.tools.judge.line.shell import parse_command
from agent_tui.tools.judge.line.syntax import NotUnderstoodError, SimpleCommand
from agent_tui.tools.judge.line.values import NOTHING
from agent_tui.tools.judge.nested import given_text
from agent_tui.tools.judge.paths import named_paths
from agent_tui.tools.judge.subject import COMMAND_TOOL, Subject, denied_command
from agent_tui.tools.judge.wrappers import started_by
from agent_tui.tools.rules.decision import ALLOWED, Decision, worst
from agent_tui.tools.rules.ground import Ground
from agent_tui.tools.rules.rule import command_matches

_KINDS: tuple[Literal["read", "edit"], ...] = ("read", "edit")


def bypassed(ground: Ground, source: str) -> Decision:
    """Denied and asked by rules alone; where they cannot be held against a command it is asked about."""
    if ground.command_rule(COMMAND_TOOL, "deny", lambda rule: command_matches(rule.pattern, source)):
        return denied_command("it")
    return replace(_whole(ground, source, {ground.cwd}, ground.variables), domain="free")


def _whole(ground: Ground, source: str, folders: set[Path], given: Mapping[str, str] = NOTHING) -> Decision:
    try:
        commands = parse_command(source, given)
    except (NotUnderstoodError, RecursionError) as problem:
        return _unclear(ground, problem)
    return worst([_one(ground, command, folders) for command in commands])


def _one(ground: Ground, command: SimpleCommand, folders: set[Path]) -> Decision:
    try:
        return _ruled(Subject(ground, COMMAND_TOOL, started_by(command), folders))
    except NotUnderstoodError as problem:
        return _unclear(ground, problem)


def _unclear(ground: Ground, problem: Exception) -> Decision:
    asked = Decision("ask", f"not fully understood, and there are rules to be held against it: {problem}")
    return asked if ground.guards(COMMAND_TOOL) else ALLOWED


def _ruled(subject: Subject) -> Decision:
    if subject.named_by("deny", broadly=True):
        return denied_command(subject.name)
    found: list[Decision] = []
    if subject.named_by("ask", broadly=True):
        found.append(Decision("ask", f"a rule says to ask about {subject.name}"))
    ground, command = subject.ground, subject.command
    if (text := given_text(command)) is not None:
        found.append(_whole(ground, text, set(subject.folders)))
    if ground.guards(COMMAND_TOOL) or ground.has_denied_files:
        for word in (*command.words[1:], *(redirect.target for redirect in command.redirects)):
            for path in named_paths(word, subject.folders):
                found += [ground.path(kind, kind, path) for kind in _KINDS]
    return worst(found)
