"""Programs that may do more than look: in which domain they run, and what is asked before."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

from agent_tui.tools.files.paths import is_within
from agent_tui.tools.judge.always import prefix
from agent_tui.tools.judge.folders import holds_denied
from agent_tui.tools.judge.line.syntax import NotUnderstoodError, Word
from agent_tui.tools.judge.nested import given_text
from agent_tui.tools.judge.paths import named_paths
from agent_tui.tools.judge.programs.git import git_asks, messages
from agent_tui.tools.judge.programs.kinds import (
    CHANGERS,
    COPIERS,
    INTERPRETERS,
    OPAQUE,
    PRIVILEGED,
    REMOVERS,
    SHELL_FREE,
    setting_within,
)
from agent_tui.tools.judge.programs.loopback import stays_here
from agent_tui.tools.judge.programs.network import reaches_out, transfer_asks
from agent_tui.tools.judge.programs.publishing import publishes
from agent_tui.tools.judge.programs.readers import known_reader, sed_in_place
from agent_tui.tools.judge.subject import Subject, outside, runs_unseen
from agent_tui.tools.rules.decision import ALLOWED, Decision, worst
from agent_tui.tools.sandbox.policy import Domain
from agent_tui.tools.word_sets import word_set

_TAKERS = CHANGERS | COPIERS | word_set("mkdir mktemp")


def runs(subject: Subject) -> Decision:
    """A program that may do more than look."""
    try:
        paths = named_files(subject)
    except NotUnderstoodError as problem:
        seen = runs_unseen(subject.ground) and subject.name not in REMOVERS
        paths = ALLOWED if seen else Decision("ask", f"not fully understood: {problem}")
    if paths.action == "deny":
        return paths
    ground, domain = subject.ground, _domain(subject)
    network = domain == "work" and ground.network == "ask" and _reaches_out(subject)
    if domain == "free" and subject.name == "git" and not ground.trusted:
        return untrusted_git()
    if paths.action != "allow":
        return replace(paths, domain="free" if "free" in (domain, paths.domain) else domain, network=network)
    return replace(_by_rules_and_mode(subject, domain, network), domain=domain, network=network)


def untrusted_git() -> Decision:
    line = "Refused: git reaches out only in a trusted folder; the user can trust it with /trust."
    return Decision("deny", "git outside the sandbox needs a trusted folder", line)


def _by_rules_and_mode(subject: Subject, domain: Domain, network: bool) -> Decision:
    ground = subject.ground
    if subject.named_by("ask", broadly=True):
        return Decision("ask", f"a rule says to ask about {subject.name}")
    if subject.named_by("allow"):
        return ALLOWED
    if why := publishes(subject.words):
        return Decision("ask", why, patterns=subject.patterns())
    if ground.holds("work"):
        # Out of the sandbox, and into the network, only by a question that says so.
        if domain == "work" and not network and ground.mode in ("accept-edits", "auto"):
            return ALLOWED
    elif ground.mode == "auto":
        return _auto(subject)
    return Decision("ask", f"runs {subject.name or 'an assignment'}", patterns=subject.patterns())


def _domain(subject: Subject) -> Domain:
    """The domain it has to run in to do what it is for."""
    if _stays_here(subject):
        return "work"
    if (
        (subject.name in PRIVILEGED and not _ends_its_own(subject))
        or publishes(subject.words)
        or (_reaches_out(subject) and subject.name in ("git", "gh", "glab", "hub"))
    ):
        return "free"  # what is beyond the project, or wants the user's own keys
    return "work"


def _ends_its_own(subject: Subject) -> bool:
    """``kill`` of what the line itself started in the background: a job by its number, or ``$!``."""
    words = subject.command.words[1:]
    if subject.name != "kill" or subject.started.given:
        return False
    if words and re.fullmatch(r"-[A-Z0-9]+", words[0].text):
        words = words[1:]
    elif words and words[0].text == "-s":
        words = words[2:]
    return bool(words) and all(word.made == "job" or re.fullmatch(r"%(\d+|[%+])", word.text) for word in words)


def _reaches_out(subject: Subject) -> bool:
    words = subject.command.words
    return bool(words) and reaches_out(words, subject.folders) and not _stays_here(subject)


def _stays_here(subject: Subject) -> bool:
    """Whether it talks to ports of this machine alone, which it may do where it is held."""
    plain = not subject.command.assignments and not subject.started.given
    return plain and subject.ground.has_ports() and stays_here(subject.command.words)


def named_files(subject: Subject) -> Decision:
    """The decision on all files that a program is given, which may do anything with them."""
    ground = subject.ground
    decisions: list[Decision] = []
    texts = messages(subject.command.words[1:]) if subject.name == "git" else []
    for word in [*subject.command.assignments, *subject.command.words[1:]]:
        if any(word is text for text in texts):
            continue
        if subject.name in REMOVERS and word.text.removeprefix("./") in ("*", "**"):
            decisions.append(Decision("ask", f"{subject.name} would take the whole folder", domain="work"))
        if word.made == "temporary" and runs_unseen(ground):
            continue
        # What a program does with a file is not known: as much as it could.
        for path in subject.paths("edit", word):
            decision = ground.path("read", "read", path)
            if outside(decision) and subject.seen(path, "edit" if subject.name in _TAKERS else "read"):
                continue
            decisions.append(_changed(subject, path) if decision.action == "allow" else decision)
    program = subject.words[0] if subject.words else ""
    if "/" in program:
        decisions += _own_program(subject, program)
    found = worst(decisions)
    leaves = any(outside(decision) for decision in decisions if decision.action == "ask")
    return replace(found, domain="free") if leaves else found


def _own_program(subject: Subject, program: str) -> list[Decision]:
    """A program named by its path: the project's own may be a link to an interpreter elsewhere."""
    ground = subject.ground
    by_folder = [_own_program_from(subject, folder, program) for folder in subject.folders]
    if runs_unseen(ground) and not all(by_folder):
        return []  # after `cd` it is the project's own from one of them, and from the others it is not there
    return [decision for decisions in by_folder for decision in decisions]


def _own_program_from(subject: Subject, folder: Path, program: str) -> list[Decision]:
    ground = subject.ground
    found: list[Decision] = []
    named = Path(os.path.normpath(folder / Path(program).expanduser()))
    if is_within(named.parent.resolve(), ground.folders) and re.fullmatch(
        r"(python|pypy|node|ruby|perl)[\d.]*", named.name
    ):
        return []
    for path in named_paths(Word(program, quoted=True), [folder]):
        if runs_unseen(ground) and subject.seen(path, "edit"):
            continue  # made there by commands before, in temporary folders that are theirs
        if not is_within(path, ground.folders) and not str(path).startswith(("/usr/", "/bin/", "/opt/")):
            found.append(Decision("ask", f"{path} is outside the project", domain="free"))
    return found


def _changed(subject: Subject, path: Path) -> Decision:
    """A path given to a program that may do anything with it."""
    ground = subject.ground
    if subject.name in COPIERS and (denied := holds_denied(ground, path)):
        return denied
    if ground.protected(path):
        return Decision("ask", f"{path} decides what may run, or belongs to git itself", domain="free")
    if subject.name in REMOVERS and subject.name != "find" and any(f.is_relative_to(path) for f in ground.folders):
        return Decision("ask", f"{subject.name} would take the whole project", domain="work")
    if not is_within(path, ground.folders):
        return Decision("ask", f"{path} is outside the project", domain="free")
    if subject.name in CHANGERS:
        decision = ground.path("edit", "edit", path)
        if decision.action == "deny":
            return decision
    return ALLOWED


def _auto(subject: Subject) -> Decision:
    """A command that nothing holds but this."""
    if problem := _problem(subject):
        return Decision("ask", problem, patterns=subject.patterns())
    if subject.name in ("curl", "wget"):
        problem, written = transfer_asks(subject.command.words)
        if problem:
            return Decision("ask", problem, patterns=subject.patterns())
        return worst([decision for word in written for decision in subject.on_paths("edit", word)])
    return ALLOWED


def _problem(subject: Subject) -> str:
    name, arguments = subject.name, subject.command.words[1:]
    if name in PRIVILEGED and not (name in ("docker", "podman", "kubectl") and prefix(subject.words)):
        return f"{name} acts on more than the project"
    if name in ("source", ".") and _activates(subject):
        return ""
    if not subject.words or (name in OPAQUE and name not in SHELL_FREE) or subject.started.given:
        return f"what {name or 'an assignment'} does is not visible here"
    if subject.command.assignments and not all(setting_within(word.text) for word in subject.command.assignments):
        return "settings in front of it may change what runs"
    if name.rstrip("0123456789.") in INTERPRETERS and not _runs_a_file(subject):
        return f"runs code given to {name} directly"
    if any(word in _CODE_WORDS.get(name, ()) for word in subject.words[1:]) or _times(subject.words):
        return f"runs code given to {name} directly"
    if name == "git":
        return git_asks(arguments) if subject.ground.trusted else "git may start what an untrusted folder names"
    if name == "sed":
        return "" if sed_in_place(list(arguments)) else "what the script does is not visible here"
    if _fetches_what_runs(subject):
        return "" if prefix(subject.words) else f"{name} may fetch and run what it names"
    if subject.starts_others() or (known_reader(name) and name not in SHELL_FREE):
        return f"what an option of {name} does is not visible here"
    return ""


def _fetches_what_runs(subject: Subject) -> bool:
    """``npx``, ``pnpm dlx`` and their like: what they run need not be there yet."""
    first = subject.words[1:2]
    if subject.name in ("npx", "bunx", "uvx", "pipx"):
        return first != ["--version"]
    return bool(first) and (subject.name, first[0]) in _FETCHING_RUNNERS


_FETCHING_RUNNERS = frozenset(
    {("npm", "exec"), ("npm", "x"), ("npm", "explore"), ("yarn", "dlx"), ("pnpm", "dlx"), ("bun", "x"), ("uv", "tool")}
)
_CODE_WORDS = {"deno": word_set("eval repl"), "cmake": word_set("-P -E"), "php": word_set("-R -B -E -F")}


def _activates(subject: Subject) -> bool:
    """``source .venv/bin/activate``: the project's own, which is run as its tests are."""
    words = subject.words[1:]
    return len(words) == 1 and not words[0].startswith(("/", "~")) and words[0].endswith("/bin/activate")


def _times(words: list[str]) -> bool:
    """``python -m timeit CODE``."""
    return any(words[at : at + 2] == ["-m", "timeit"] for at in range(1, len(words)))


def _runs_a_file(subject: Subject) -> bool:
    """An interpreter with a script or module to run, not with code on its command line or from a pipe."""
    if given_text(subject.command) is not None or any(word.pipe for word in subject.command.words):
        return False
    for word in subject.words[1:]:
        if word == "-m":
            return subject.words[-1] != "-m"
        if not word.startswith("-"):
            return True
        if word.startswith(("--e", "--p", "--i", "--r")) or (word[1:2] != "-" and set(word) & set("cerpEnI")):
            return False
        if word == "-":
            return False
    return False
