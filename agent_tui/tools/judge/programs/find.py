"""find: what it looks at, and what the commands look at that it starts with the names it found."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agent_tui.tools.judge.line.syntax import NotUnderstoodError, Word
from agent_tui.tools.judge.programs.arguments import Reading
from agent_tui.tools.word_sets import word_set

Look = Callable[[Sequence[Word]], Reading | None]
"""What a command line looks at; None where it may do more."""

_FIND_VALUES = word_set(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -type -xtype -maxdepth -mindepth -size "
    "-mtime -mmin -atime -amin -ctime -cmin -perm -user -group -uid -gid -links -inum -regextype -printf -fstype "
    "-lname -ilname"
)
_FIND_PATHS = word_set("-newer -anewer -cnewer -samefile") | {f"-newer{a}{b}" for a in "aBcm" for b in "aBcm"}
_FIND_DATES = frozenset(f"-newer{a}t" for a in "aBcm")
_FIND_PLAIN = word_set(
    "-print -print0 -prune -quit -ls -empty -not -and -or -a -o ! ( ) , -true -false -depth -d -mount -xdev "
    "-daystart -executable -readable -writable -P -noleaf -nowarn -warn -nouser -nogroup -ignore_readdir_race"
)


def find_reading(arguments: list[Word], reading: Look) -> Reading | None:
    """What it looks at; ``reading`` says it of the commands it starts. None where it may do more. Raises
    NotUnderstoodError."""
    found = Reading()
    at = 0
    while at < len(arguments) and (arguments[at].text in ("-P", "-L", "-H") or arguments[at].text[:1] not in "-(!,"):
        if arguments[at].text in ("-L", "-H"):
            found.follows = True
        elif arguments[at].text != "-P":
            found.paths.append(arguments[at])
        at += 1
    found.paths = found.paths or [Word(".")]
    started: list[list[Word]] = []
    regular = False
    while at < len(arguments):
        text = arguments[at].text
        if arguments[at].dynamic or arguments[at].glob:
            raise NotUnderstoodError("what find is told to do is only known when it runs")
        at += 1
        if text == "-follow":
            found.follows = True
        elif text in _FIND_VALUES or text in _FIND_PATHS or text in _FIND_DATES:
            if at >= len(arguments):
                return None
            if arguments[at].glob:
                raise NotUnderstoodError("a file pattern is not quoted")
            regular = regular or (text == "-type" and arguments[at].text == "f")
            if text in _FIND_PATHS:
                found.paths.append(arguments[at])
            at += 1
        elif text in ("-exec", "-execdir"):
            end = next((i for i in range(at, len(arguments)) if arguments[i].text in (";", "+")), None)
            if end is None or text == "-execdir":
                return None
            started.append(arguments[at:end])
            at = end + 1
        elif text not in _FIND_PLAIN:
            return None
    return _with_started(found, started, reading, regular and not found.follows)


def _with_started(found: Reading, started: list[list[Word]], reading: Look, regular: bool) -> Reading | None:
    for line in started:
        inner = reading(line) if line else None
        if (
            inner is None
            or not _filled_in_as_files(line, inner)
            or inner.written
            or line[0].text in ("cd", "xargs", "find", "uniq", "xxd", "base64")
        ):
            return None
        found.paths += [word for word in inner.paths if "{}" not in word.text]
        found.walks = True
        found.held = found.held or inner.held
        found.follows = found.follows or not regular  # what it finds may be links
        found.unseen = found.unseen or bool(found.held)
    return found


def _filled_in_as_files(line: list[Word], inner: Reading) -> bool:
    """Whether ``{}`` stands only where a file is read or a text is printed: a name may hold a script, and make an
    option of a part of one."""
    for word in line:
        if "{}" not in word.text:
            continue
        printed = line[0].text in ("echo", "basename", "dirname") and not word.text.startswith("-")
        if not printed and (word.text.startswith("-") or not any(word is path for path in inner.paths)):
            return False
    return True
