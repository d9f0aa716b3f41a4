"""Programs that start another one: what they start is what is judged."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from agent_tui.tools.judge.line.syntax import SimpleCommand, Word


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
class Started:
    """``command`` is what runs in the end. ``outer`` are the command lines it was found in, for rules that deny or
    ask. ``given``: it gets more operands than are seen here."""

    command: SimpleCommand
    outer: list[SimpleCommand] = field(default_factory=list)
    given: bool = False


def started_by(command: SimpleCommand) -> Started:
    """``command`` itself where it starts no other, or is not understood to."""
    found = Started(command)
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
    rest = _behind_options(wrapper, words[1:])
    if rest is None or any(word.dynamic or word.glob for word in rest[: wrapper.operands]):
        return None
    rest = rest[wrapper.operands :]
    if not rest or rest[0].text.startswith("-") or (name == "command" and words[1].text in ("-v", "-V")):
        return None
    if rest[0].text in ("cd", "pushd", "popd", "builtin", "eval", "source", ".", "set", "export"):
        return None  # not programs: what they do depends on where they stand
    return SimpleCommand(command.assignments, rest, command.redirects)


def _behind_options(wrapper: _Wrapper, words: Sequence[Word]) -> list[Word] | None:
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
    at = 0
    while at < len(words) and words[at].text in ("-i", "-", "--ignore-environment"):
        at += 1
    assigned: list[Word] = []
    while at < len(words) and re.match(r"[A-Za-z_]\w*=", words[at].text):
        assigned.append(words[at])
        at += 1
    rest = list(words[at:])
    if not rest or rest[0].text.startswith("-") or rest[0].text in ("cd", "source", ".", "eval", "command", "exec"):
        return None
    return SimpleCommand([*command.assignments, *assigned], rest, command.redirects)
