"""One simple command with all that is asked about it: the command it starts behind wrappers, the paths its words may
mean, and the rules that name it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import Literal

from agent_tui.errors import ToolError
from agent_tui.records import dataclass
from agent_tui.tools.files.beneath import is_within, resolve_from
from agent_tui.tools.judge.known import INTERPRETERS, WRAPPERS, prefix
from agent_tui.tools.judge.programs import messages, without_globals
from agent_tui.tools.judge.words import NotUnderstoodError, SimpleCommand, Word
from agent_tui.tools.rules.decision import ALLOWED, CHANGES_FILE, CREATES_FILE, Decision
from agent_tui.tools.rules.rule import Rule, command_matches, exact
from agent_tui.tools.rules.standing import CONTROLS, Standing
from agent_tui.tools.sandbox.outputs import names_output
from agent_tui.tools.sandbox.policy import Domain

_MAX_EXPANDED = 2_000
_HARMLESS = frozenset(["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/fd/1", "/dev/fd/2"])


def named_paths(word: Word, folders: Iterable[Path]) -> Iterator[Path]:
    """Every path ``word`` may mean in any of ``folders``. A word that is no path gives a harmless one below the
    folder. Raises NotUnderstoodError for a value known only when it runs."""
    if word.pipe or word.text in _HARMLESS:
        return
    if word.dynamic:
        raise NotUnderstoodError(f"the value of {word.text[:60]!r} is only known at run time")
    if word.tilde and word.text[:2] not in ("~", "~/"):
        raise NotUnderstoodError("it names another user's home")
    for folder in folders:
        if word.glob:
            yield from _expanded(word, folder)
        for candidate in _candidates(word):
            try:
                yield resolve_from(candidate, folder)
            except ToolError:
                raise NotUnderstoodError("a path cannot be resolved") from None


def _candidates(word: Word) -> Iterator[str]:
    text = word.text
    if not text:
        return
    # `~` inside quotes is a plain character; only expand where the shell does.
    yield text if word.tilde or not text.startswith("~") else f"./{text}"
    if "=" in text:
        yield text.partition("=")[2] or "."
    if text.startswith("@") and len(text) > 1:
        yield text[1:]
    if text.startswith("-"):
        if len(text) > 2:
            yield text[2:]
        for start in (text.find("/"), text.find("../")):
            if start > 0:
                yield text[start:]


def _expanded(word: Word, folder: Path) -> Iterator[Path]:
    """At least every name it may become. ``[…]`` counts as anything up to the next slash: shells differ from Python."""
    if word.quoted:
        raise NotUnderstoodError("quotes and a file pattern are mixed in one word")
    text = re.sub(r"\[[^/]*", "*", word.text)
    first = min(position for position in (text.find(char) for char in "*?") if position >= 0)
    if "/.." in text[first:]:
        raise NotUnderstoodError("a file pattern contains ..")
    start = text[:first].rpartition("/")
    prefix = start[0] + start[1]
    if prefix:
        yield resolve_from(prefix, folder)
    if prefix.startswith(("/", "~")) or ".." in prefix:
        return  # what the prefix leads to is judged as a whole, by the path just given
    for name in _names(text, folder):
        yield resolve_from(name, folder)


def _names(text: str, folder: Path) -> Iterator[str]:
    from glob import iglob

    for count, name in enumerate(iglob(text, root_dir=folder)):  # noqa: PTH207 - as the shell: hidden files left out
        if count >= _MAX_EXPANDED:
            raise NotUnderstoodError("a file pattern matches very many files")
        yield name


def option_like(words: Iterable[Word], folders: Iterable[Path]) -> bool:
    """Returns whether a file pattern among ``words`` may become a word that begins with a dash."""
    patterns = [re.sub(r"\[[^/]*", "*", word.text) for word in words if word.glob and word.text[:1] in "*?["]
    return any(name.startswith("-") for text in patterns for folder in folders for name in _names(text, folder))


@dataclass(slots=True, frozen=True)
class _Wrapper:
    """``flags`` and ``values`` are patterns of options without and with a value as the next word; ``operands`` words
    come before the command."""

    flags: str = "(?!)"
    values: str = "(?!)"
    operands: int = 0


_WRAPPERS = {
    "timeout": _Wrapper(
        r"--preserve-status|--foreground|-v|--verbose|-[sk].+|--(signal|kill-after)=.+",
        r"-[sk]|--signal|--kill-after",
        1,
    ),
    "nice": _Wrapper(r"-\d+|-n-?\d+|--adjustment=-?\d+", r"-n|--adjustment"),
    "nohup": _Wrapper(),
    "stdbuf": _Wrapper(r"-[ioe](L|\d+\w?)|--(input|output|error)=\w+", r"-[ioe]"),
    "setsid": _Wrapper(r"-w|--wait|-c|--ctty"),
    "ionice": _Wrapper(r"-t|-[cn]\d|--(class|classdata)=\w+", r"-[cn]|--class|--classdata"),
    "time": _Wrapper(r"-p|-v"),
    "command": _Wrapper(),
    "exec": _Wrapper(),
    "xargs": _Wrapper(
        r"-[0rtx]+|-[nLPs]\d+|-I\S+|-d.+|--(null|no-run-if-empty|verbose|exit)|--(max-args|max-lines|max-procs|delimiter"
        r"|replace)=.+",
        r"-[nLPsId]",
    ),
}


@dataclass(slots=True)
class StartedProgram:
    """``command`` is what runs in the end. ``outer`` are the command lines it was found in, for rules that deny or
    ask. ``given``: it gets more operands than are seen here."""

    command: SimpleCommand
    outer: list[SimpleCommand] = field(default_factory=list)
    given: bool = False


def started_by(command: SimpleCommand) -> StartedProgram:
    """``command`` itself where it starts no other, or is not understood to."""
    found = StartedProgram(command)
    while (inner := _inner(found.command)) is not None:
        found.outer.append(found.command)
        found.given = found.given or found.command.words[0].text == "xargs"
        found.command = inner
    return found


def _inner(command: SimpleCommand) -> SimpleCommand | None:
    words = command.words
    if not words or words[0].dynamic:
        return None
    name = words[0].text
    if name == "env":
        return _env(command, words[1:])
    wrapper = _WRAPPERS.get(name)
    if wrapper is None:
        return None
    rest = _operands_behind(wrapper, words[1:])
    if rest is None or any(word.dynamic or word.glob for word in rest[: wrapper.operands]):
        return None
    rest = rest[wrapper.operands :]
    if not rest or rest[0].text.startswith("-") or (name == "command" and words[1].text in ("-v", "-V")):
        return None
    if rest[0].text in ("cd", "pushd", "popd", "builtin", "eval", "source", ".", "set", "export"):
        return None  # not programs: what they do depends on where they stand
    return SimpleCommand(command.assignments, rest, command.redirects)


def _operands_behind(wrapper: _Wrapper, words: Sequence[Word]) -> list[Word] | None:
    at = 0
    while at < len(words) and words[at].text.startswith("-") and not words[at].dynamic and not words[at].glob:
        text = words[at].text
        if text == "--":
            return list(words[at + 1 :])
        if re.fullmatch(wrapper.flags, text):
            at += 1
        elif re.fullmatch(wrapper.values, text) and at + 1 < len(words) and not words[at + 1].dynamic:
            at += 2
        else:
            return None
    return list(words[at:])


def _env(command: SimpleCommand, words: Sequence[Word]) -> SimpleCommand | None:
    behind = list(dropwhile(lambda word: word.text in ("-i", "-", "--ignore-environment"), words))
    assigned = list(takewhile(lambda word: re.match(r"[A-Za-z_]\w*=", word.text), behind))
    rest = behind[len(assigned) :]
    if not rest or rest[0].text.startswith("-") or rest[0].text in ("cd", "source", ".", "eval", "command", "exec"):
        return None
    return SimpleCommand([*command.assignments, *assigned], rest, command.redirects)


COMMAND_TOOL = "bash"
"""The name in rules for commands, and ``OUTSIDE_TOOL`` for those that leave the sandbox for that alone."""

OUTSIDE_TOOL = "outside"


class Subject:
    """``folders`` are all the working directories it may run in; ``cd`` adds to them. ``tool`` is the name that rules
    are asked about."""

    def __init__(self, standing: Standing, tool: str, started: StartedProgram, folders: set[Path]) -> None:
        self.standing, self.tool, self.folders = standing, tool, folders
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
        standing = self.standing
        held = runs_unseen(standing) or (
            kind == "read" and standing.holds("look") and not standing.guards(COMMAND_TOOL)
        )
        by_folder = [list(named_paths(word, [folder])) for folder in self.folders]
        found = [path for paths in by_folder for path in paths]
        if not held or not any(all(is_within(path, standing.folders) for path in paths) for paths in by_folder):
            return found
        kinds: list[Literal["read", "edit"]] = ["read"] if standing.mode == "plan" else ["read", "edit"]
        return [
            path
            for path in found
            if is_within(path, standing.folders) or any(standing.path(k, k, path).action == "deny" for k in kinds)
        ]

    def _on_path(self, kind: Literal["read", "edit"], path: Path) -> Decision:
        # To look is enough for reading inside the project; the rest needs as much as the question is about.
        domain: Domain = "work" if kind == "edit" else "look"
        decision = self.standing.path(kind, kind, path)
        if (outside(decision) or self.standing.mode == "plan") and self.harmless_outside(path, kind):
            return ALLOWED
        if decision.reason in (CHANGES_FILE, CREATES_FILE) and self._may_be_output(path):
            return replace(ALLOWED, if_stopped=replace(decision, domain=domain))
        return replace(decision, domain="free" if outside(decision) else domain)

    def _may_be_output(self, path: Path) -> bool:
        """Returns whether a command that looks may write a file, by its name the output of a build: it is tried."""
        root, standing = self.standing.root, self.standing
        named = path.is_relative_to(root) and names_output(path.relative_to(root))
        return named and standing.mode == "ask" and standing.holds("look")

    def seen(self, path: Path, kind: Literal["read", "edit"]) -> bool:
        """Returns whether a path outside the project is there for a command that is held to looking."""
        standing = self.standing
        return standing.holds("look") and not is_within(path, standing.folders) and standing.sees(path, kind)

    def harmless_outside(self, path: Path, kind: Literal["read", "edit"]) -> bool:
        """Returns whether a held command may come to a path outside the project: it is there for it, or there is
        nothing: a pattern, a part of an address."""
        if not self.standing.holds("look") or is_within(path, self.standing.folders):
            return False
        absent = not os.path.lexists(path) and (kind == "read" or not os.path.lexists(path.parent))
        return absent or self.standing.sees(path, kind)

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
        found = (self.standing.rules.for_tool(which, tool, matches) for tool in tools)
        return next((rule for rule in found if rule is not None), None)

    def patterns(self) -> list[str]:
        """Returns the patterns that "always" may allow: the program and its subcommand first, then exactly this."""
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
        """Returns whether the program runs what it reads: a rule for its words would be one for any code."""
        arguments = self.words[1:]
        if self.name.rstrip("0123456789.") not in INTERPRETERS:
            return False
        return not arguments or "-" in arguments or arguments[-1:] == ["-s"] or "/dev/stdin" in arguments


def _behind_options(name: str, arguments: Sequence[Word]) -> Iterator[list[str]]:
    """Yields the words that follow the options in front of a subcommand, each of which may have a value: ``git -C src
    push`` and ``npm --prefix src publish`` are what rules for ``git push`` and ``npm publish`` are about."""
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


def runs_unseen(standing: Standing) -> bool:
    """Returns whether a command may run that is not understood: it is held, and no rule wants to know more."""
    return standing.mode in ("accept-edits", "auto") and standing.holds("work") and not standing.guards(COMMAND_TOOL)


def outside(decision: Decision) -> bool:
    return decision.action == "ask" and ("outside" in decision.reason or CONTROLS in decision.reason)
