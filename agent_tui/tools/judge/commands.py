"""Judges a shell command: each simple command in it must be allowed on its own, and each file it writes.

What is said here is what to *ask*, and in which domain of the sandbox a command runs; what it can do there is the
sandbox's to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from agent_tui.tools.judge.bypass import bypassed
from agent_tui.tools.judge.line.shell import parse_command
from agent_tui.tools.judge.line.syntax import NotUnderstoodError, Word
from agent_tui.tools.judge.line.values import NOTHING, own_variable
from agent_tui.tools.judge.looking import looked_at, looks
from agent_tui.tools.judge.nested import given_text, is_that_text
from agent_tui.tools.judge.programs.kinds import PRIVILEGED, REMOVERS, WRAPPERS
from agent_tui.tools.judge.running import named_files, runs, untrusted_git
from agent_tui.tools.judge.subject import COMMAND_TOOL, OUTSIDE_TOOL, Subject, denied_command, in_plan, runs_unseen
from agent_tui.tools.judge.wrappers import started_by
from agent_tui.tools.rules.decision import ALLOWED, PLAN_MESSAGE, PLAN_REASON, Decision, worst
from agent_tui.tools.rules.ground import Ground
from agent_tui.tools.rules.rule import command_matches

_NAMED = "|".join(map(re.escape, sorted(PRIVILEGED | (REMOVERS - {"find", "cp", "ln"}))))
_LEAVING = re.compile(rf"(?:^|[;|&(\n{{`!]|\b(?:then|do|else|if|while|until|time|xargs|env))\s*(?:{_NAMED})(?![\w.-])")
"""What is asked about by its name wherever it stands in something that is not understood."""


def judge(ground: Ground, source: str, outside: bool = False) -> Decision:
    """The decision on a whole command line. ``outside``: it asks to leave the sandbox."""
    if ground.mode == "bypass":
        return bypassed(ground, source)
    if outside and ground.holds("work"):
        return _outside(ground, source)
    found = _whole(ground, source, COMMAND_TOOL)
    if found.action != "allow" or not ground.holds("work") or not (found.domain == "free" or found.network):
        return found
    # A rule lets one of them out; the others come along, and were let pass because the sandbox holds them.
    edits = ground.mode in ("accept-edits", "auto")
    rest = _whole(ground.unheld("accept-edits" if edits else "ask"), source, COMMAND_TOOL)
    if rest.action == "allow":
        return found
    where = "outside the sandbox" if found.domain == "free" else "with the network open"
    return replace(found, action="ask", reason=f"{rest.reason}, and would run {where} with the rest of the line")


def _outside(ground: Ground, source: str) -> Decision:
    """Only a question, or a rule made for it, lets a command out that could run inside."""
    if ground.mode == "plan":
        return Decision("deny", PLAN_REASON, f"{PLAN_MESSAGE} (Nothing leaves the sandbox.)")
    found = _whole(ground.unheld("ask"), source, OUTSIDE_TOOL)
    if found.action == "deny":
        return found
    if not ground.trusted and re.search(r"\bgit\b", source):
        return untrusted_git()
    return replace(found, domain="free")


def _whole(ground: Ground, source: str, tool: str, within: Iterable[Path] = ()) -> Decision:
    """``within`` are the folders it may run in, where that is not the one of the session: the shell is one that the
    line starts then, with variables that the line may have changed."""
    folders = set(within) or {ground.cwd}
    try:
        commands = parse_command(source, NOTHING if within else ground.variables)
    except (NotUnderstoodError, RecursionError) as problem:
        return _not_understood(ground, source, tool, str(problem))
    if not commands:
        return ALLOWED
    decisions: list[Decision] = []
    for command in commands:
        try:
            decisions.append(_decision(Subject(ground, tool, started_by(command), folders)))
        except NotUnderstoodError as problem:
            decisions.append(_not_understood(ground, command.text, tool, str(problem)))
    return worst(decisions)


def _not_understood(ground: Ground, source: str, tool: str, problem: str) -> Decision:
    if ground.command_rule(COMMAND_TOOL, "deny", lambda rule: command_matches(rule.pattern, source)):
        return denied_command("it")
    if ground.mode == "plan":
        return in_plan(ground, problem)
    if runs_unseen(ground) and not _LEAVING.search(source):
        return replace(ALLOWED, domain="work")
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
        return denied_command(subject.name)
    return worst([*_redirects(subject), _given(subject) or _program(subject)])


def _given(subject: Subject) -> Decision | None:
    """The decision on the command line that a shell is given as a word, where that says it all: rules deny and ask
    about what is in it as if it stood alone, and bash does no more than it."""
    text = given_text(subject.command)
    if text is None or subject.started.given:
        return None
    inner = _whole(subject.ground, text, subject.tool, subject.folders)
    if inner.action == "deny":
        return inner
    if is_that_text(subject.command) and (inner.action == "allow" or not subject.named_by("allow")):
        asks = subject.named_by("ask", broadly=True)
        return replace(inner, action="ask", reason=f"a rule says to ask about {subject.name}") if asks else inner
    return worst([inner, _program(subject)]) if "a rule says to ask" in inner.reason else None


def _redirects(subject: Subject) -> list[Decision]:
    decisions: list[Decision] = []
    for redirect in subject.command.redirects:
        if redirect.target.pipe and not redirect.target.text:
            continue  # a here-string whose value is known later: it is only read
        kind: Literal["read", "edit"] = "edit" if redirect.kind == "write" else "read"
        decisions += subject.on_paths(kind, redirect.target)
    return decisions


def _program(subject: Subject) -> Decision:
    if not subject.words and all(_own(word) for word in subject.command.assignments):
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


def _own(assignment: Word) -> bool:
    """Whether an assignment that stands alone sets a variable that only the line itself gets to see."""
    return own_variable(assignment.text.partition("=")[0].removesuffix("+"))


def _refused_or(subject: Subject, decision: Decision) -> Decision:
    """``decision``, unless a rule denies what is named."""
    try:
        found = named_files(subject)
    except NotUnderstoodError:
        return decision
    return found if found.action == "deny" else decision
