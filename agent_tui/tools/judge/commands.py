"""Judges a shell command: each simple command in it must be allowed on its own, and each file it writes.

What is said here is what to *ask*, and in which domain of the sandbox a command runs; what it can do there is the
sandbox's to say.
"""

from __future__ import annotations

from typing import Literal

from agent_tui.tools.judge.kinds import PRIVILEGED, WRAPPERS
from agent_tui.tools.judge.looking import looked_at, looks
from agent_tui.tools.judge.running import named_files, runs
from agent_tui.tools.judge.shell import parse_command
from agent_tui.tools.judge.subject import Subject, in_plan
from agent_tui.tools.judge.syntax import NotUnderstoodError
from agent_tui.tools.judge.wrappers import started_by
from agent_tui.tools.rules.decision import ALLOWED, PLAN_MESSAGE, PLAN_REASON, Decision, worst
from agent_tui.tools.rules.ground import Ground
from agent_tui.tools.rules.rule import command_matches


def judge(ground: Ground, source: str, tool: str) -> Decision:
    """The decision on a whole command line."""
    try:
        commands = parse_command(source)
    except (NotUnderstoodError, RecursionError) as problem:
        return _not_understood(ground, source, tool, str(problem))
    if not commands:
        return ALLOWED
    folders = {ground.cwd}
    decisions: list[Decision] = []
    for command in commands:
        try:
            decisions.append(_decision(Subject(ground, tool, started_by(command), folders)))
        except NotUnderstoodError as problem:
            decisions.append(_not_understood(ground, command.text, tool, str(problem)))
    return worst(decisions)


def _not_understood(ground: Ground, source: str, tool: str, problem: str) -> Decision:
    if ground.command_rule(tool, "deny", lambda rule: command_matches(rule.pattern, source)):
        return Decision("deny", "a rule denies it", "Refused: a rule of the user denies this command. Do not retry it.")
    if ground.mode == "plan":
        return in_plan(ground, problem)
    return Decision("ask", f"not fully understood: {problem}", domain="work")


def _decision(subject: Subject) -> Decision:
    if subject.words and (not subject.words[0] or any(char.isspace() for char in subject.words[0])):
        # Rules are matched on words joined by spaces: "git status" as one word is another program.
        raise NotUnderstoodError("the name of the program contains a space")
    first = subject.command.words[0] if subject.command.words else None
    if first is not None and (first.dynamic or first.tilde or (first.glob and first.text != "[")):
        raise NotUnderstoodError("which program it is is only known when it runs")
    if subject.name in WRAPPERS and "cd" in subject.words:
        raise NotUnderstoodError("where cd leads is not clear")
    if subject.named_by("deny", broadly=True):
        text = "Refused: a rule of the user denies this command. Do not retry it."
        return Decision("deny", f"a rule denies {subject.name}", text)
    return worst([*_redirects(subject), _program(subject)])


def _redirects(subject: Subject) -> list[Decision]:
    decisions: list[Decision] = []
    for redirect in subject.command.redirects:
        if redirect.target.pipe and not redirect.target.text:
            continue  # a here-string whose value is known later: it is only read
        kind: Literal["read", "edit"] = "edit" if redirect.kind == "write" else "read"
        decisions += subject.on_paths(kind, redirect.target)
    return decisions


def _program(subject: Subject) -> Decision:
    if not subject.words and not subject.command.assignments:
        return ALLOWED
    look = looked_at(subject)
    plan = subject.ground.mode == "plan"
    if plan and (look is None or look.written):
        if subject.name in PRIVILEGED:
            return Decision("deny", PLAN_REASON, f"{PLAN_MESSAGE} ({subject.name} acts on more than the project.)")
        return _refused_or(subject, in_plan(subject.ground, subject.name or "an assignment"))
    if look is not None:
        return looks(subject, look)
    return runs(subject)


def _refused_or(subject: Subject, decision: Decision) -> Decision:
    """``decision``, unless a rule denies what is named."""
    try:
        found = named_files(subject)
    except NotUnderstoodError:
        return decision
    return found if found.action == "deny" else decision
