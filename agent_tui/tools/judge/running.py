"""Decides what a program may not do without a question, whatever holds it, and in which domain it runs; finds the files
a rule denies that it would come to by the way: below a folder, or out of git.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agent_tui.paths import home_as_tilde, with_home
from agent_tui.records import dataclass
from agent_tui.tools.files.beneath import is_within
from agent_tui.tools.git.repository import find_repository, own_git
from agent_tui.tools.judge.edits import edits_for_session
from agent_tui.tools.judge.known import (
    CHANGERS,
    COPIERS,
    DELETERS,
    HARMLESS_SETTINGS,
    INTERPRETERS,
    OPAQUE,
    PRIVILEGED,
    changes,
    knows,
    prefix,
)
from agent_tui.tools.judge.programs import (
    changes_settings,
    git_changes,
    git_looks,
    git_remote,
    messages,
    publishes,
    reaches_out,
    shown_contents,
    stays_here,
    without_globals,
)
from agent_tui.tools.judge.subject import COMMAND_TOOL, Subject, named_paths, runs_unseen
from agent_tui.tools.judge.words import NotUnderstoodError, Word
from agent_tui.tools.rules.decision import ALLOWED, RULE_ASKS, Decision, RemoteGit, worst
from agent_tui.tools.rules.rule import Rule, exact, has_star, parse_rule, same_repository, uncovered, uncovered_address
from agent_tui.tools.rules.standing import CONTROLS, Standing
from agent_tui.tools.sandbox.outputs import names_output
from agent_tui.tools.sandbox.policy import Domain

_GIT_SECONDS = 2.0
_RECURSIVE = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "diff"), re.compile(r"-\w*[rR]\w*|--(dereference-)?recursive")),
    "find": re.compile(r"-exec(dir)?|-ok(dir)?"),
}


def _takes_all_below(name: str, arguments: Sequence[str]) -> bool:
    """Returns whether a program reads all files below the folders it is given, or below where it runs."""
    pattern = _RECURSIVE.get(name)
    recursive = pattern is not None and any(pattern.fullmatch(word) for word in arguments)
    return recursive or name in COPIERS or name in ("rg", "ag", "ack")


def _holds_denied(standing: Standing, folder: Path) -> Decision | None:
    """The refusal, where reading everything below a resolved folder would read what a rule denies."""
    masks = standing.denied.find(None)
    if found := next((path for path in masks.paths if path.is_relative_to(folder)), None):
        name = os.path.relpath(found, standing.root)
        message = (
            f"Refused: it would read {name}, and a rule of the user denies that. Name the files you need, or use "
            "the grep tool: it skips such files."
        )
        return Decision("deny", f"a rule denies reading {name}", message)
    return Decision("ask", f"a rule denies reading some files: {masks.incomplete}") if masks.incomplete else None


def _git_shows_denied(standing: Standing, arguments: Sequence[Word]) -> Decision | None:
    """The refusal or question, where git would show what a rule denies reading: a file named as it was at some time,
    one that git knows now, or perhaps one it knew."""
    contents = shown_contents(arguments)
    if not contents:
        return None
    texts = [word.text for word in arguments]
    for text in texts:
        name = text.partition(":")[2] if ":" in text and not text.startswith("-") else text
        if name and standing.rules.denies_reading(standing.cwd / name):
            return _refused(name)
    if contents == "history":
        # Single files of single commits, and none of them denied?
        named = [text for text in texts[1:] if not text.startswith("-")]
        plain = bool(named) and all(":" in text.lstrip(":") for text in named)
        return None if plain else Decision("ask", "the history it shows may contain files that a rule denies")
    if (repository := find_repository(standing.root)) is None:
        return None
    with own_git(repository) as git:
        known = git.run(standing.root, "ls-files", "-z", "-c", timeout=_GIT_SECONDS) if git else None
    if known is None:
        return Decision("ask", "it is unclear which files git tracks, and a rule denies some")
    names = (os.fsdecode(name) for name in known.split(b"\0") if name)
    denied = next((name for name in names if standing.rules.denies_reading(standing.root / name)), None)
    return _refused(denied) if denied else None


def _refused(name: str) -> Decision:
    message = f"Refused: it would show {name}, and a rule of the user denies reading it."
    return Decision("deny", f"a rule denies reading {name}", message)


@dataclass(slots=True, frozen=True)
class _Need:
    """What a program needs that is not simply there; ``why`` is what is asked, empty where nothing is."""

    why: str = ""
    domain: Domain = "work"
    network: bool = False
    remotes: tuple[RemoteGit, ...] = ()
    exactly: bool = False
    never: bool = False
    """Only a rule without a star covers it; no rule does but one for every command."""


def runs(subject: Subject) -> Decision:
    """The decision on a program that may do more than look."""
    standing = subject.standing
    try:
        paths = named_files(subject)
    except NotUnderstoodError as problem:
        looks_first = standing.mode == "ask" or subject.name not in DELETERS
        unseen = not standing.guards(subject.tool) and standing.holds("look") and looks_first
        paths = ALLOWED if unseen else Decision("ask", f"not fully understood: {problem}")
    if paths.action == "deny":
        return paths
    need = _need(subject)
    if subject.name == "git" and (need.remotes or need.domain == "free") and not standing.trusted:
        return untrusted_git(need.why)
    asked = Decision("ask", need.why or f"runs {subject.name or 'an assignment'}", domain=need.domain)
    asked = replace(asked, network=need.network, remotes=need.remotes)
    if paths.action == "ask":
        free = "free" in (need.domain, paths.domain)
        return replace(asked, reason=paths.reason, domain="free" if free else "work", remotes=())
    if subject.rule("ask"):
        return replace(asked, reason=f"{RULE_ASKS} about {subject.name}")
    offered = (f"{subject.tool}({pattern})" for pattern in subject.patterns())
    asked = replace(asked, patterns=[text for text in offered if not _not_covered(subject, parse_rule(text), need)][:1])
    if rule := subject.rule("allow"):
        if subject.rule("allow", lambda rule: not _why_not(subject, rule, need)):
            return replace(asked, action="allow", reason="", patterns=[])
        return replace(asked, reason=_why_not(subject, rule, need))
    if need.why:
        # What an answer "always" is bound to, where it would let the command out of the sandbox.
        leaves = standing.holds("work") and bool(asked.patterns and (need.remotes or need.domain == "free"))
        here = f" (always: only in {home_as_tilde(standing.root)}, as long as its configuration stays the same)"
        return replace(asked, reason=need.why + here * leaves)
    if standing.mode in ("accept-edits", "auto") and standing.holds("work"):
        return Decision("allow", domain="work")
    if standing.mode == "auto" and not standing.holds("work") and not need.remotes and not _hidden(subject):
        return Decision("allow", domain="work")
    if edits_for_session(subject):
        return Decision("allow", domain="work")
    if standing.mode == "ask" and standing.holds("look") and not _known_to_change(subject):
        return replace(ALLOWED, if_stopped=asked)
    return asked


def untrusted_git(why: str = "") -> Decision:
    """The refusal of git outside the sandbox in a folder that is not trusted; ``why`` is what it is needed for."""
    runs = f"{why}, and git runs outside the sandbox" if why else "git reaches out"
    line = f"Refused: {runs} only in a trusted folder; the user can trust it with /trust."
    return Decision("deny", "git outside the sandbox needs a trusted folder", line)


def _hidden(subject: Subject) -> bool:
    """Returns whether its words do not say all that a command does: ``auto`` asks then where nothing holds it."""
    name, words, standing = subject.name, subject.words, subject.standing
    if not words or subject.started.given or subject.command.dynamic or name in OPAQUE or knows(name):
        return True
    if any(word.pipe for word in subject.command.words):
        return True
    if any(not HARMLESS_SETTINGS.fullmatch(word.text) for word in subject.command.assignments):
        return True
    if name == "git" and (not standing.trusted or not (git_changes(words) or git_looks(words))):
        return True
    if name in DELETERS or name in ("cp", "mkdir", "touch", "chmod", "ln", "tee"):
        return False  # all that they may change was named
    start = prefix(words) or words[:1]
    if name.rstrip("0123456789.") in INTERPRETERS and len(start) == 1:
        return words[1:2] == [] or words[1].startswith("-")  # code on its command line, or from a pipe
    return uncovered(" ".join([*map(exact, start), "*"]), words) != ""


def _known_to_change(subject: Subject) -> bool:
    if subject.name == "git":
        return git_changes(subject.words)
    if subject.name == "find":
        return bool(_found(subject))
    if subject.name in _MAKERS and _outputs_alone(subject):
        return False  # what is stopped of it is asked about
    return changes(subject.words) or not subject.words


_MAKERS = frozenset(("mkdir", "touch", "rm", "rmdir", "tee"))
"""What they change is all that they name."""


def _outputs_alone(subject: Subject) -> bool:
    """Returns whether a program names nothing but the line's own temporary files and the output of a build."""
    root = subject.standing.root
    for word in subject.command.words[1:]:
        if word.text.startswith("-") and not word.dynamic:
            continue
        paths = [] if word.dynamic else subject.paths("edit", word)
        if not paths or not all(path.is_relative_to(root) and names_output(path.relative_to(root)) for path in paths):
            return False
    return True


def _need(subject: Subject) -> _Need:
    standing, name, words = subject.standing, subject.name, subject.words
    if not words or _stays_here(subject) or _ends_its_own(subject):
        return _Need()
    if name == "git" and (found := _git(subject)):
        return found
    if why := publishes(words):
        return _Need(why, "free")
    if acts_beyond(subject):
        return _Need(f"{name} affects more than the project", "free")
    if name in ("gh", "glab", "hub"):
        return _Need(f"{name} needs your keys and the network", "free")
    plain = words[1:] not in (["--version"], ["--help"])
    if plain and reaches_out(words, subject.folders) and standing.network != "deny":
        # Where the network is open, it is so in ``work`` alone.
        closed = standing.network == "ask"
        if closed or standing.mode not in ("accept-edits", "auto") or not standing.holds("work"):
            return _Need(f"{name} {'needs' if closed else 'uses'} the network", network=closed)
    return _Need()


def acts_beyond(subject: Subject) -> bool:
    """Returns whether a program is known to act on more than the project."""
    if subject.words[1:] in (["--version"], ["--help"]):
        return False
    return subject.name in PRIVILEGED and not _stays_here(subject) and not _ends_its_own(subject)


def _git(subject: Subject) -> _Need | None:
    words, standing, command = subject.words, subject.standing, subject.command
    remote = git_remote(words, standing.cwd)
    named = " ".join(["git", *(word.text for word in without_globals(command.words[1:])[:1])])
    if not remote:
        changes = changes_settings(words)
        return _Need(f"{named} {changes}", "free", exactly=True) if changes else None
    known = not subject.started.given and not any(word.dynamic or word.glob or word.tilde for word in command.words)
    plain = remote in ("named", "address") and words[0] == "git" and not command.assignments
    there = subject.folders == {standing.cwd} and words[1] != "-C"
    if not known or remote == "other" or not (standing.holds("work") or (plain and there)):
        how = "for another folder than the project's" if plain else "in a way that may run other programs"
        if not known or remote == "other":
            how = "with arguments only known at run time" if not known else "through another program"
        own = ", and would run as your own git, outside the sandbox" if standing.holds("work") else ""
        return _Need(f"{named} reaches a remote {how}{own}", "free", never=True)
    # After `cd` it may run in any of them: what it reaches is looked up for each.
    remotes = tuple(RemoteGit(tuple(words), folder) for folder in sorted(subject.folders))
    if not plain or not there:
        why = "in an unknown way" if there else "for another folder than the project's"
        return _Need(f"{named} would talk to a remote {why}", remotes=remotes, never=True)
    return _Need(f"{named} talks to a remote, outside the sandbox", remotes=remotes, exactly=remote == "address")


def _not_covered(subject: Subject, rule: Rule, need: _Need) -> str:
    """Returns why a rule that names the command does not let it run all the same; empty where it does. A rule for every
    command says that nothing is to be asked."""
    standing, of_git = subject.standing, subject.name == "git"
    if rule.pattern is None:
        return ""
    if need.never:
        return need.why
    text = f"{rule.tool}({rule.pattern})"
    if _held(subject, need):
        word = uncovered_address(rule.pattern, subject.words) if need.network else ""
        return f"the rule {text} does not cover {word}" if word else ""
    there = standing.cwd == standing.root or (of_git and same_repository(standing.cwd, standing.root))
    if subject.folders != {standing.cwd} or not there:
        return f"the rule {text} applies only in {home_as_tilde(standing.root)}"
    if need.exactly and has_star(rule.pattern):
        return f"{need.why}, and the rule {text} has a wildcard"
    word = "" if need.remotes else uncovered(rule.pattern, subject.words)
    return f"the rule {text} does not cover {word} without a sandbox" if word else ""


def _why_not(subject: Subject, rule: Rule, need: _Need) -> str:
    """The same, and why a rule holds no more: what the command would start may be another thing by now."""
    why = _not_covered(subject, rule, need)
    if why or rule.pattern is None or _held(subject, need):
        return why
    name = subject.standing.rules.changed_since(rule, subject.name == "git")
    return f"{name} has changed since {rule.tool}({rule.pattern}) was allowed or the session began" if name else ""


def _held(subject: Subject, need: _Need) -> bool:
    return subject.standing.holds("work") and need.domain == "work" and not need.remotes


def _ends_its_own(subject: Subject) -> bool:
    """``kill`` of what the line itself started in the background: a job by its number, or ``$!``."""
    words = subject.command.words[1:]
    if subject.name != "kill" or subject.started.given:
        return False
    if words and re.fullmatch(r"-[A-Z0-9]+", words[0].text):
        words = words[1:]
    elif words and words[0].text == "-s":
        words = words[2:]
    return bool(words) and all(re.fullmatch(r"%(\d+|[%+])|\$!", word.text) for word in words)


def _stays_here(subject: Subject) -> bool:
    """Returns whether a program talks to ports of this machine alone, which it may do where it is held."""
    return subject.standing.holds("work") and subject.standing.has_ports() and stays_here(subject.words)


def named_files(subject: Subject) -> Decision:
    """The decision on all files that a program is given, which may do anything with them. Raises NotUnderstoodError."""
    words = subject.command.words
    texts = messages(words[1:]) if subject.name == "git" else []
    decisions = list(by_the_way(subject))
    if subject.name in DELETERS and subject.started.given:
        decisions.append(Decision("ask", f"what {subject.name} removes is only known at run time", domain="work"))
    if _found(subject) == "all":
        decisions.append(Decision("ask", "find would delete everything it finds", domain="work"))
    for word in [*subject.command.assignments, *words[1:]]:
        if any(word is text for text in texts):
            continue
        if subject.name in CHANGERS and word.text.removeprefix("./") in ("*", "**"):
            decisions.append(Decision("ask", f"{subject.name} would act on the whole folder", domain="work"))
        decisions += [_named(subject, path) for path in subject.paths("edit", word)]
    if "/" in (program := subject.words[0] if subject.words else ""):
        decisions += _own_program(subject, program)
    return worst([decision for decision in decisions if decision.action != "allow"])


def _named(subject: Subject, path: Path) -> Decision:
    """A path given to a program that may do anything with it: as much as it could."""
    standing = subject.standing
    changer = subject.name in CHANGERS and (subject.name not in ("sed", "perl") or changes(subject.words))
    decision = standing.path("read", "read", path)
    if decision.action == "deny":
        return decision
    if not is_within(path, standing.folders):
        if subject.harmless_outside(path, "edit" if changer else "read"):
            return ALLOWED
        return replace(decision, domain="free") if decision.action == "ask" else decision
    if (changer or not standing.holds("work")) and standing.protected(path):
        return Decision("ask", f"{path} {CONTROLS}", domain="free")
    if changer and any(folder.is_relative_to(path) for folder in standing.folders) and subject.name not in _INTO:
        return Decision("ask", f"{subject.name} would act on the whole project", domain="work")
    if changer and standing.mode != "bypass":
        changed = standing.path("edit", "edit", path)
        if changed.action == "deny" or "a rule says" in changed.reason:
            return replace(changed, domain="work")
    return ALLOWED if "a rule says" not in decision.reason else decision


_INTO = frozenset(("sed", "tee", "touch", "patch", "perl", "mkdir", "mktemp", "install", "cp", "ln"))
"""What they do with a folder is to put something into it."""


def by_the_way(subject: Subject) -> Sequence[Decision]:
    """Returns the decisions about denied files that a program would read without being given their names."""
    standing, words = subject.standing, subject.command.words
    if not standing.rules.denied_patterns():
        return ()
    found = [_git_shows_denied(standing, words[1:])] if subject.name == "git" else []
    if standing.holds("look") and not standing.reads_denied("look"):
        return [decision for decision in found if decision is not None]  # the files themselves are kept from it
    if _takes_all_below(subject.name, subject.words[1:]) or subject.words[:2] == ["git", "grep"]:
        named = [word for word in words[1:] if not word.dynamic and not word.text.startswith("-")]
        folders = [path for word in named for path in subject.paths("read", word) if path.is_dir()]
        if not folders and subject.name not in COPIERS and subject.name != "git":
            folders = list(subject.folders)
        found += [_holds_denied(standing, folder) for folder in folders]
    return [decision for decision in found if decision is not None]


_NARROW = re.compile(r"-(i?name|i?path|i?wholename|i?regex|newer\w*|empty|inum|samefile)")


def _found(subject: Subject) -> str:
    """Returns which files ``find`` removes: ``all`` that it finds, ``some`` by their names, or none (empty)."""
    if subject.name != "find":
        return ""
    words = subject.words
    started = [words[at + 1].rpartition("/")[2] for at, word in enumerate(words[:-1]) if re.match(r"-(exec|ok)", word)]
    if "-delete" not in words and not any(name in CHANGERS | {"sh", "bash", "xargs"} for name in started):
        return ""
    removes = "-delete" in words or any(name in DELETERS for name in started)
    narrow = any(_NARROW.fullmatch(word) and words[at + 1 : at + 2] != ["*"] for at, word in enumerate(words))
    return "some" if narrow or not removes else "all"


def _own_program(subject: Subject, program: str) -> list[Decision]:
    """A program named by its path: the project's own may be a link to an interpreter elsewhere."""
    standing = subject.standing
    by_folder = [_own_program_from(subject, folder, program) for folder in subject.folders]
    held = runs_unseen(standing) or (standing.holds("look") and not standing.guards(COMMAND_TOOL))
    if held and not all(by_folder):
        return []  # after `cd` it is the project's own from one of them, and from the others it is not there
    return [decision for decisions in by_folder for decision in decisions]


def _own_program_from(subject: Subject, folder: Path, program: str) -> list[Decision]:
    standing = subject.standing
    named = Path(os.path.normpath(folder / with_home(program)))
    if is_within(named.parent.resolve(), standing.folders) and re.fullmatch(
        r"(python|pypy|node|ruby|perl)[\d.]*", named.name
    ):
        return []
    return [
        Decision("ask", f"{path} is outside the project", domain="free")
        for path in named_paths(Word(program, quoted=True), [folder])
        if not (standing.holds("look") and subject.seen(path, "edit"))
        and not is_within(path, standing.folders)
        and not str(path).startswith(("/usr/", "/bin/", "/opt/"))
    ]
