"""Judges a shell command: each simple command in it must be allowed on its own, and each file it writes.

What is said here is what to *ask*, and in which domain of the sandbox a command runs; what it can do there is the
sandbox's to say. Where none holds, what is known to read runs unasked, and nothing else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from agent_tui.tools.files.beneath import resolve_from
from agent_tui.tools.git.repository import names_programs
from agent_tui.tools.judge.edits import is_session_edit
from agent_tui.tools.judge.known import DELETERS, HARMLESS_SETTINGS, PRIVILEGED, WRAPPERS, read_by
from agent_tui.tools.judge.running import acts_beyond, by_the_way, named_files, runs, untrusted_git
from agent_tui.tools.judge.shell import parse_command
from agent_tui.tools.judge.subject import COMMAND_TOOL, OUTSIDE_TOOL, Subject, option_like, runs_unseen, started_by
from agent_tui.tools.judge.values import own_variable
from agent_tui.tools.judge.words import NotUnderstoodError, SimpleCommand, Word
from agent_tui.tools.rules.decision import ALLOWED, PLAN_MESSAGE, PLAN_REASON, RULE_ASKS, Decision, worst
from agent_tui.tools.rules.rule import command_matches
from agent_tui.tools.rules.standing import Standing
from agent_tui.tools.word_sets import word_set

_SHELLS = word_set("bash sh dash zsh ksh ash")
_WITH_TEXT = re.compile(r"-[a-zA-Z]*c[a-zA-Z]*")
_OPTION = re.compile(r"[-+].*")


def given_text(command: SimpleCommand) -> str | None:
    """The command line that a shell is given, where it is written out; None where there is none."""
    if not command.words:
        return None
    name, rest = command.words[0].text.rpartition("/")[2], command.words[1:]
    if name == "eval":
        return None if any(_unclear(word) for word in rest) else " ".join(word.text for word in rest)
    if name not in _SHELLS or not any(_WITH_TEXT.fullmatch(word.text) for word in rest):
        return None
    # Whatever comes behind the options: `-o` takes a value, which is no command line worth a rule.
    texts = [word for word in rest if not _OPTION.fullmatch(word.text)]
    text = next((word for word in texts if any(map(str.isspace, word.text))), texts[0] if texts else None)
    return None if text is None or _unclear(text) else text.text


def is_that_text(command: SimpleCommand) -> bool:
    """Returns whether bash runs the text it is given and nothing else: no settings, no other options, no arguments.
    Other shells read some of it otherwise."""
    words = [word.text for word in command.words]
    return words[:1] == ["bash"] and len(words) == 3 and words[1] in ("-c", "-lc") and not command.assignments


def _unclear(word: Word) -> bool:
    return word.dynamic or word.glob or word.tilde or word.pipe


_NAMED = "|".join(map(re.escape, sorted(PRIVILEGED | DELETERS)))
_LEAVING = re.compile(rf"(?:^|[;|&(\n{{`!]|\b(?:then|do|else|if|while|until|time|xargs|env))\s*(?:{_NAMED})(?![\w.-])")
"""What is asked about by its name wherever it stands in something that is not understood."""

_MOVING = re.compile(r"\b(?:pushd|popd|eval|source|builtin|alias|chdir|CDPATH)\b|(?:^|[;|&(\n{])\s*\.\s")
"""With these in it, nobody knows which folder the rest of a line runs in."""


def judge_command(standing: Standing, source: str, outside: bool = False) -> Decision:
    """The decision on a whole command line. ``outside``: it asks to leave the sandbox."""
    found = _judged(standing, source, outside)
    return _mind_denied(standing, source, found) if standing.rules.denied_patterns() else found


def _mind_denied(standing: Standing, source: str, found: Decision) -> Decision:
    """``found``, but a question where a program could read what a rule denies, as nothing keeps it from that where it
    runs: only what is known to read nothing but what it names, and what a rule allows, needs none then."""
    if found.action == "allow" and (why := standing.reads_denied(found.domain)):
        rest = _whole(standing.unheld("ask"), source, COMMAND_TOOL)
        if rest.action == "deny":
            return rest
        if rest.action == "ask":
            kept = rest.patterns if not found.remotes else []
            return replace(found, action="ask", reason=why, patterns=kept, if_stopped=None)
    if found.if_stopped is not None and (why := standing.reads_denied(found.if_stopped.domain)):
        return replace(found, if_stopped=replace(found.if_stopped, shows=why))
    if found.action == "ask" and (why := standing.reads_denied(found.domain)):
        return replace(found, reason=f"{found.reason}; {why}")
    return found


def _judged(standing: Standing, source: str, outside: bool) -> Decision:
    if standing.mode == "bypass":
        return replace(_whole(standing, source, COMMAND_TOOL), domain="free")
    if standing.mode == "accept-edits" and not standing.holds("work"):
        standing = standing.unheld("ask")  # what holds nothing makes no difference to commands
    found = _whole(standing, source, COMMAND_TOOL)
    if outside and standing.holds("work") and not found.remotes:
        return _outside(standing, source)
    if found.action != "allow" or not standing.holds("work") or not (found.domain == "free" or found.network):
        return found
    # A rule lets one of them out; the others come along, and were let pass because the sandbox holds them.
    rest = _whole(standing.unheld("ask"), source, COMMAND_TOOL)
    if rest.action == "allow":
        return found
    where = "outside the sandbox" if found.domain == "free" else "with the network open"
    return replace(found, action="ask", reason=f"{rest.reason}, and would run {where} with the rest of the line")


def _outside(standing: Standing, source: str) -> Decision:
    """Only a question, or a rule made for it, lets a command out that could run inside."""
    if standing.mode == "plan":
        return Decision("deny", PLAN_REASON, f"{PLAN_MESSAGE} (Nothing leaves the sandbox.)")
    found = _whole(standing.unheld("ask"), source, OUTSIDE_TOOL)
    if found.action == "deny":
        return found
    if not standing.trusted and re.search(r"\bgit\b", source):
        return untrusted_git()
    return replace(found, domain="free", remotes=())


def _whole(standing: Standing, source: str, tool: str, within: Iterable[Path] = ()) -> Decision:
    """``within`` are the folders it may run in, where that is not the one of the session: the shell is one that the
    line starts then, with variables that the line may have changed."""
    folders = set(within) or {standing.cwd}
    try:
        line = parse_command(source, {} if within else standing.variables)
    except NotUnderstoodError as problem:
        return _unreadable(standing, source, str(problem))
    decisions = [_not_understood(standing, source, line.unclear)] if line.unclear else []
    unclear = bool(line.unclear) or _MOVING.search(source) is not None
    for command in line.commands:
        subject = Subject(standing, tool, started_by(command), folders)
        try:
            decisions.append(_decision(subject))
        except NotUnderstoodError as problem:
            named = not any(word.dynamic for word in subject.command.words[:1])
            decisions.append(_not_understood(standing, command.text, str(problem), named))
            unclear = True
    found = worst(decisions)
    if line.unclear:
        found = replace(found, patterns=[])
    if unclear and found.remotes and found.action == "allow":
        return replace(found, action="ask", reason="it is unclear in which folder git would reach a remote")
    return found


def _unreadable(standing: Standing, source: str, problem: str) -> Decision:
    """The decision on a line whose commands are not known at all: it is asked about, or refused."""
    found = _not_understood(standing, source, problem)
    if found.action == "deny" or standing.mode == "bypass":
        return found
    if standing.mode == "plan":
        return _not_read_only(problem)
    return Decision("ask", f"not fully understood: {problem}", domain="work")


def _not_understood(standing: Standing, source: str, problem: str, named: bool = True) -> Decision:
    """The decision on what may do more than is seen in it; ``named``: its program is known."""
    if standing.rules.for_tool("deny", COMMAND_TOOL, lambda rule: command_matches(rule.pattern, source)):
        return _denied("it")
    asked = Decision("ask", f"not fully understood: {problem}", domain="work")
    if standing.mode == "plan":
        return _in_plan(standing, problem)
    if standing.guards(COMMAND_TOOL):
        return replace(asked, reason=f"not fully understood, and your rules may apply to it: {problem}")
    if standing.mode == "bypass":
        return ALLOWED
    if _LEAVING.search(source):
        return asked
    if runs_unseen(standing):
        return replace(ALLOWED, domain="work") if named else asked
    return replace(ALLOWED, if_stopped=asked) if standing.holds("look") else asked


def _decision(subject: Subject) -> Decision:
    if subject.words and (not subject.words[0] or any(char.isspace() for char in subject.words[0])):
        # Rules are matched on words joined by spaces: "git status" as one word is another program.
        raise NotUnderstoodError("the name of the program contains a space")
    first = subject.command.words[0] if subject.command.words else None
    if first is not None and (first.dynamic or first.tilde or (first.glob and first.text != "[")):
        raise NotUnderstoodError("the program is only known at run time")
    if subject.name in WRAPPERS and "cd" in subject.words:
        raise NotUnderstoodError("it is unclear where cd leads")
    if subject.rule("deny"):
        return _denied(subject.name)
    return worst([*_redirects(subject), _given(subject) or _program(subject)])


def _denied(name: str) -> Decision:
    text = "Refused: a rule of the user denies this command. Do not retry it."
    return Decision("deny", f"a rule denies {name}", text)


def _given(subject: Subject) -> Decision | None:
    """The decision on the command line that a shell is given as a word, where that says it all: rules deny and ask
    about what is in it as if it stood alone, and bash does no more than it."""
    text = given_text(subject.command)
    if text is None or subject.started.given:
        return None
    inner = _whole(subject.standing, text, subject.tool, subject.folders)
    if inner.action == "deny":
        return inner
    if is_that_text(subject.command) and (inner.action == "allow" or not subject.rule("allow")):
        asks = subject.rule("ask")
        return replace(inner, action="ask", reason=f"{RULE_ASKS} about {subject.name}") if asks else inner
    return worst([inner, _program(subject)]) if RULE_ASKS in inner.reason else None


def _redirects(subject: Subject) -> list[Decision]:
    decisions: list[Decision] = []
    for redirect in subject.command.redirects:
        if redirect.target.pipe and not redirect.target.text:
            continue  # a here-string whose value is known later: it is only read
        if redirect.kind == "write":
            edits = [is_session_edit(subject.standing, path) for path in subject.paths("edit", redirect.target)]
            if edits and all(edits):
                decisions.append(replace(ALLOWED, domain="work"))
                continue
        decisions += subject.on_paths("edit" if redirect.kind == "write" else "read", redirect.target)
    return decisions


def _program(subject: Subject) -> Decision:
    standing = subject.standing
    own = (own_variable(word.text.partition("=")[0].removesuffix("+")) for word in subject.command.assignments)
    if not subject.words and all(own):
        return ALLOWED  # a variable that only the line itself gets to see
    if standing.mode == "bypass":
        asks = [Decision("ask", f"{RULE_ASKS} about {subject.name}")] if subject.rule("ask") else []
        bound = standing.guards(COMMAND_TOOL) or standing.rules.denied_patterns()
        return worst([*asks, named_files(subject)] if bound else asks)
    if subject.words[:1] == ["cd"]:
        if subject.command.assignments:
            raise NotUnderstoodError("it is unclear where cd leads")
        return _looks(subject, [word for word in subject.command.words[1:] if word.text != "-"])
    words = _read(subject)
    if words is not None:
        return _looks(subject, words)
    if standing.mode == "plan":
        return _plan(subject)
    return runs(subject)


def _read(subject: Subject) -> list[Word] | None:
    """The words that may be files, of a program that is known to read them and to do no more."""
    command, standing = subject.command, subject.standing
    if not subject.words or "/" in subject.words[0] or subject.started.given:
        return None
    for setting in command.assignments:
        usual = HARMLESS_SETTINGS.fullmatch(setting.text) or (
            subject.name == "read" and setting.text.startswith("IFS=")
        )
        if setting.dynamic or not usual:
            return None
    found = read_by(command.words)
    if standing.holds("look") or found is None:
        return found
    if subject.name == "git":
        # It reads the configuration of the folder it is in, which can name programs to run.
        return None if subject.folders != {standing.cwd} or names_programs(standing.cwd) else found
    # In folders diff follows the links.
    follows = subject.name == "diff" and any(path.is_dir() for word in found for path in subject.paths("read", word))
    return None if follows else found


def _looks(subject: Subject, words: list[Word]) -> Decision:
    """The decision on a program that only reads."""
    if option_like(subject.command.words[1:], subject.folders):
        raise NotUnderstoodError("a file pattern matches a name that is an option")
    decisions = [decision for word in words for decision in subject.on_paths("read", word)]
    decisions += by_the_way(subject)
    if subject.words[:1] == ["cd"]:
        _change_folder(subject)
    if subject.rule("ask"):
        decisions.append(Decision("ask", f"{RULE_ASKS} about {subject.name}"))
    return worst(decisions)


def _plan(subject: Subject) -> Decision:
    try:
        found = named_files(subject)
    except NotUnderstoodError:
        found = ALLOWED
    if found.action == "deny":
        return found
    if acts_beyond(subject):
        return Decision("deny", PLAN_REASON, f"{PLAN_MESSAGE} ({subject.name} affects more than the project.)")
    return _in_plan(subject.standing, subject.name or "an assignment")


def _in_plan(standing: Standing, problem: str) -> Decision:
    """Not known to only look: it may run where the system holds it to looking."""
    return ALLOWED if standing.holds("look") else _not_read_only(problem)


def _not_read_only(problem: str) -> Decision:
    return Decision("deny", PLAN_REASON, f"{PLAN_MESSAGE} (Not known to be read only: {problem}.)")


def _change_folder(subject: Subject) -> None:
    targets = [word for word in subject.command.words[1:] if not word.text.startswith("-")]
    if len(targets) != 1 or len(subject.words) > 2 or targets[0].glob or targets[0].tilde or subject.words[1] == "-":
        raise NotUnderstoodError("it is unclear where cd leads")
    if targets[0].dynamic:
        raise NotUnderstoodError("where cd leads is only known at run time")
    for folder in list(subject.folders):
        path = resolve_from(targets[0].text, folder)
        if os.path.normpath(folder / targets[0].text) != str(path):
            # The shell remembers the way it came: `..` would lead back there, not to the real parent.
            raise NotUnderstoodError("cd goes through a link")
        subject.folders.add(path)
