"""Commands that only look: run without asking in every mode. What is not in this list is not harmless.

Options are refused by any spelling GNU programs accept: in a cluster (``-uo``) and abbreviated (``--outp``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent_tui.tools.words import words

_Check = Callable[[Sequence[str]], bool]


@dataclass(slots=True, frozen=True)
class _Look:
    """``short``: option letters that do more than look; ``long``: such options; ``check`` decides the rest."""

    short: str = ""
    long: tuple[str, ...] = ()
    check: _Check | None = None


def _no_words(arguments: Sequence[str]) -> bool:
    return all(word.startswith("-") for word in arguments)


def _one_word(arguments: Sequence[str]) -> bool:
    return sum(not word.startswith("-") for word in arguments) <= 1


def _date(arguments: Sequence[str]) -> bool:
    return all(word.startswith("+") or word in ("-u", "-R", "-I", "--utc") for word in arguments)


_FIND_ACTIONS = re.compile(r"-(exec|execdir|ok|okdir|delete|fprint.*|fprintf|fls|L|H|follow|files0-from)(=.*)?")


def _find(arguments: Sequence[str]) -> bool:
    return not any(_FIND_ACTIONS.fullmatch(word) for word in arguments)


def _sed(arguments: Sequence[str]) -> bool:
    """Only printing lines by number: ``sed -n 1,20p FILE``."""
    if len(arguments) < 2 or arguments[0] != "-n":
        return False
    if not re.fullmatch(r"(\d+|\$)(,(\d+|\$))?p", arguments[1]):
        return False
    return not any(word.startswith("-") for word in arguments[2:])


def _test(arguments: Sequence[str]) -> bool:
    # -v evaluates a subscript, and with it a command.
    allowed = {"-e", "-f", "-d", "-r", "-w", "-x", "-s", "-z", "-n", "-L", "-h", "=", "!=", "==", "]", "!"}
    return all(word in allowed or not word.startswith("-") for word in arguments)


_GIT_LISTS: dict[str, frozenset[str]] = {
    "branch": frozenset(["-a", "-r", "-v", "-vv", "--all", "--remotes", "--show-current", "--list", "--no-color"]),
    "tag": frozenset(["-l", "--list", "-n"]),
    "remote": frozenset(["-v", "--verbose"]),
    "stash": frozenset(["list"]),
    "worktree": frozenset(["list", "--porcelain"]),
    "reflog": frozenset(["show", "HEAD"]),
}
_GIT_LOOKS = words(
    "status log diff show rev-parse ls-files ls-tree blame describe shortlog rev-list merge-base name-rev for-each-ref "
    "count-objects check-ignore grep whatchanged"
)


def _git(arguments: Sequence[str]) -> bool:
    """No option before the subcommand: -c, -C, --git-dir and --exec-path can all make git run something."""
    if not arguments:
        return True
    subcommand, rest = arguments[0], arguments[1:]
    if subcommand in _GIT_LISTS:
        needs_word = subcommand in ("stash", "worktree")
        return all(word in _GIT_LISTS[subcommand] for word in rest) and (bool(rest) or not needs_word)
    if subcommand not in _GIT_LOOKS:
        return subcommand in ("--version", "version")
    dangerous = ("--output", "--ext-diff", "--textconv", "--open-files-in-pager", "--no-index", "--exec", "--paginate")
    if subcommand == "blame" and any(_means(word, "--contents") for word in rest):
        return False
    if subcommand == "grep" and any(re.fullmatch(r"-\w*[Of].*", word) for word in rest):
        return False
    return not any(_means(word, option) for word in rest for option in dangerous)


_PLAIN = _Look()
_FILES = _Look(long=("--files0-from",))

_LOOKS: dict[str, _Look] = {
    **dict.fromkeys(
        words(
            "cat head tail ls pwd echo true false : basename dirname realpath readlink stat df whoami id uname cut tr "
            "nl tac rev paste comm join fold expand cmp seq which type cd nproc arch"
        ),
        _PLAIN,
    ),
    **dict.fromkeys(["wc", "du"], _FILES),
    **dict.fromkeys(["md5sum", "sha1sum", "sha256sum", "sha512sum", "cksum"], _Look("c", ("--check",))),
    "printf": _Look("v"),
    "date": _Look(check=_date),
    "diff": _Look("l", ("--paginate",)),
    "egrep": _Look("R", ("--dereference-recursive",)),
    "fgrep": _Look("R", ("--dereference-recursive",)),
    "file": _Look("Cfm", ("--compile", "--files-from", "--magic-file")),
    "find": _Look(check=_find),
    "git": _Look(check=_git),
    "grep": _Look("R", ("--dereference-recursive",)),
    "rg": _Look("Lz", ("--pre", "--follow", "--search-zip", "--hostname-bin", "--ignore-file", "--file")),
    "sed": _Look(check=_sed),
    "sort": _Look("oT", ("--output", "--compress-program", "--files0-from", "--temporary-directory")),
    "test": _Look(check=_test),
    "[": _Look(check=_test),
    "tree": _Look("olR", ("--output", "--fromfile", "--fromtabfile")),
    "uniq": _Look(check=_one_word),
    "hostname": _Look("bF", ("--file", "--boot"), _no_words),
}


def only_looks(line: Sequence[str]) -> bool:
    """True when the program on this command line reads and prints, and nothing else. Paths are judged elsewhere."""
    if not line:
        return False
    look = _LOOKS.get(line[0])
    if look is None:
        return False
    arguments = line[1:]
    for word in arguments:
        if word.startswith("--"):
            if any(_means(word, option) for option in look.long):
                return False
        elif word.startswith("-") and any(letter in word for letter in look.short):
            return False
    return look.check is None or look.check(arguments)


def _means(word: str, option: str) -> bool:
    """True when ``word`` is ``option``, with a value or abbreviated."""
    name = word.partition("=")[0]
    return len(name) > 2 and name.startswith("--") and (option.startswith(name) or name == option)
