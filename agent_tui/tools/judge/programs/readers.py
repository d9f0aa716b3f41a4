"""Which command lines only look, and what at: by the table, and by hand where a program has a grammar of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from agent_tui.tools.judge.line.syntax import NotUnderstoodError, Word
from agent_tui.tools.judge.programs.arguments import Reading, UnknownOptionError, read_arguments
from agent_tui.tools.judge.programs.find import find_reading
from agent_tui.tools.judge.programs.git import git_reading
from agent_tui.tools.judge.programs.scripts import awk_only_prints, jq_only_filters, sed_only_edits
from agent_tui.tools.judge.programs.specs import specs
from agent_tui.tools.word_sets import word_set

_ENVIRONMENT = "it tells of the environment"
_LATER = "a value is only known when it runs"
_PRINTS = word_set("echo true false : printf")
_PLAIN_NAMES = word_set(
    "HOME PWD OLDPWD USER LOGNAME PATH SHELL LANG TERM RANDOM SECONDS VIRTUAL_ENV UID EUID HOSTNAME"
)
# Their version is printed before anything of the project is read.
_VERSIONS = word_set("python python3 node ruby perl java gcc g++ clang bash rg jq sed awk make cmake git curl")
# They may read the project's settings first, and with them start something.
_PROJECT_VERSIONS = word_set("npm npx pnpm yarn bun deno cargo rustc rustup go pip pip3 uv poetry tox docker gh tsc")
_VERSION_WORDS = frozenset(
    {("node", "-v"), ("ruby", "-v"), ("perl", "-v"), ("java", "-version"), ("npm", "-v"), ("go", "version")}
)


def reading(line: Sequence[Word]) -> Reading | None:
    """What the program on this command line looks at; None when it may do more than look, or is not known. Raises
    NotUnderstoodError where that depends on what is only known when it runs."""
    name, arguments = line[0].text, list(line[1:])
    try:
        found = _look(name, arguments)
    except UnknownOptionError:
        return None
    if found is not None and any(word.dynamic for word in arguments):
        little = not found.held and name in _PRINTS and all(_tells_little(word.text) for word in arguments)
        found.held, found.unseen = ("", False) if little else (found.held or _LATER, True)
    return found


def _look(name: str, arguments: list[Word]) -> Reading | None:
    if len(arguments) == 1 and not arguments[0].dynamic:
        asked = arguments[0].text in ("--version", "-V") or (name, arguments[0].text) in _VERSION_WORDS
        if asked and name in _VERSIONS:
            return Reading()
        if asked and name in _PROJECT_VERSIONS:
            return Reading(held="it may read the project's settings first")
    if name in _PRINTS and name != "printf":
        return Reading()
    if by_hand := _BY_HAND.get(name):
        return by_hand(arguments)
    spec = specs().get(name)
    return None if spec is None else read_arguments(spec, arguments)


def _tells_little(text: str) -> bool:
    """Whether the variables in a word are those of the command itself, or no secret. What substitutions run is judged
    on its own."""
    names = re.findall(r"\$\{?(\w+)", text)
    return all(name in _PLAIN_NAMES or not name.isidentifier() or name.islower() for name in names)


def _printf(arguments: list[Word]) -> Reading | None:
    return None if arguments and arguments[0].text.startswith("-") else Reading()


def _cd(arguments: list[Word]) -> Reading | None:
    return Reading(paths=[word for word in arguments if word.text != "-"])


def _date(arguments: list[Word]) -> Reading | None:
    at = 0
    while at < len(arguments):
        text = arguments[at].text
        if text in ("-d", "--date"):
            at += 1
        elif not re.fullmatch(r"\+.*|-u|-R|-I\w*|--utc|--iso-8601(=\w+)?|--date=.*|--rfc-3339=\w+", text, re.DOTALL):
            return None
        at += 1
    return Reading()


_TESTS = word_set("-e -f -d -r -w -x -s -z -n -L -h = != == ] ! -a -o -nt -ot -ef -eq -ne -lt -gt -le -ge")


def _test(arguments: list[Word]) -> Reading | None:
    # -v evaluates a subscript, and with it a command; a file behind -nt is only looked up.
    if any(word.text.startswith("-") and word.text not in _TESTS for word in arguments):
        return None
    return Reading(paths=[word for word in arguments if word.text not in _TESTS and not word.dynamic])


def _sed(arguments: list[Word], *, in_place: bool = False) -> Reading | None:
    scripts: list[Word] = []
    operands: list[Word] = []
    at = 0
    while at < len(arguments):
        word = arguments[at]
        at += 1
        if word.text in ("-e", "--expression") and at < len(arguments):
            scripts.append(arguments[at])
            at += 1
        elif word.text.startswith("--expression="):
            scripts.append(Word(word.text.partition("=")[2], word.dynamic))
        elif re.fullmatch(r"-[nEruszl]*e", word.text) and at < len(arguments):
            scripts.append(arguments[at])
            at += 1
        elif re.fullmatch(
            r"-[nErusz]+|--(quiet|silent|regexp-extended|separate|unbuffered|null-data|posix)", word.text
        ) or (in_place and re.fullmatch(r"-i|--in-place|-[nErsz]+i|-i\.\w+", word.text)):
            continue
        elif word.text.startswith("-") and word.text != "-":
            return None
        else:
            operands.append(word)
    if not scripts:
        if not operands:
            return None
        if in_place and operands[0].text == "" and len(operands) > 1:
            operands.pop(0)  # the form of BSD: an empty suffix
        scripts, operands = [operands[0]], operands[1:]
    if any(word.glob for word in scripts):
        raise NotUnderstoodError("the script is not quoted")
    if any(word.dynamic or not sed_only_edits(word.text) for word in scripts):
        return None
    return Reading(paths=operands)


def sed_in_place(arguments: list[Word]) -> bool:
    """Whether these are arguments of a sed that changes the files it names and does nothing else."""
    return _sed(arguments, in_place=True) is not None


def _awk(arguments: list[Word]) -> Reading | None:
    at = 0
    while at < len(arguments) and arguments[at].text.startswith("-"):
        text = arguments[at].text
        if text in ("-F", "-v"):
            at += 1
        elif not re.fullmatch(r"-F.+|-v\w+=.*", text, re.DOTALL):
            return None
        at += 1
    if at >= len(arguments) or arguments[at].dynamic or not awk_only_prints(arguments[at].text):
        return None
    if arguments[at].glob:
        raise NotUnderstoodError("the program is not quoted")
    rest = arguments[at + 1 :]
    if any(word.text.startswith("-") and word.text != "-" for word in rest):
        return None
    return Reading(paths=[w for w in rest if not re.match(r"[A-Za-z_]\w*=", w.text)])


def _jq(arguments: list[Word]) -> Reading | None:
    if not all(jq_only_filters(word.text) for word in arguments):
        return None
    return read_arguments(specs()["jq"], _without_named(arguments))


def _without_named(arguments: list[Word]) -> list[Word]:
    """Without ``--arg NAME VALUE``: texts that a filter uses by their name."""
    rest: list[Word] = []
    at = 0
    while at < len(arguments) and arguments[at].text != "--":
        if arguments[at].text in ("--arg", "--argjson"):
            if any(word.glob or (word.dynamic and not word.quoted) for word in arguments[at : at + 3]):
                raise NotUnderstoodError("a value may become several words")
            at += 3
        else:
            rest.append(arguments[at])
            at += 1
    return rest + arguments[at:]


def _env(arguments: list[Word]) -> Reading | None:
    return Reading(held=_ENVIRONMENT) if not arguments else None


def _command(arguments: list[Word]) -> Reading | None:
    return Reading() if arguments and arguments[0].text in ("-v", "-V") else None


def _set(arguments: list[Word]) -> Reading | None:
    """Only the usual first line of a script: stop at errors, say what is done."""
    if not arguments:
        return None
    text = " ".join(word.text for word in arguments)
    return Reading() if re.fullmatch(r"[-+][eux]+|(-[eux]*o|-o) pipefail|-[eux]+ -o pipefail", text) else None


def _read(arguments: list[Word]) -> Reading | None:
    """Into variables in small letters: capitals may be settings of programs."""
    plain = all(re.fullmatch(r"-r|(?!\w*_proxy)[a-z][a-z0-9_]*", word.text) for word in arguments)
    return Reading() if plain else None


def _pip(arguments: list[Word]) -> Reading | None:
    if arguments and arguments[0].text in ("list", "show", "freeze", "check"):
        plain = all(re.fullmatch(r"[\w.-]+", word.text) for word in arguments[1:])
        options = all(word.text in ("--outdated", "--format=json", "-f", "--files") for word in arguments[1:]
                      if word.text.startswith("-"))  # fmt: skip
        return Reading(held="it runs in an interpreter") if plain and options else None
    return None


def _npm(arguments: list[Word]) -> Reading | None:
    if (
        arguments
        and arguments[0].text in ("ls", "list", "ll")
        and all(
            re.fullmatch(r"--(depth=\d+|all|json|long|parseable)|[\w@][\w@/.-]*", word.text) for word in arguments[1:]
        )
    ):
        return Reading(held="it reads the project's settings first")
    return None


_BY_HAND: dict[str, Callable[[list[Word]], Reading | None]] = {
    "[": _test,
    "awk": _awk,
    "cd": _cd,
    "command": _command,
    "date": _date,
    "env": _env,
    "find": lambda arguments: find_reading(arguments, reading),
    "gawk": _awk,
    "git": git_reading,
    "jq": _jq,
    "mawk": _awk,
    "npm": _npm,
    "pip": _pip,
    "pip3": _pip,
    "printf": _printf,
    "read": _read,
    "sed": _sed,
    "set": _set,
    "test": _test,
}


def known_reader(name: str) -> bool:
    """Whether a program is one whose options are known here: with another option it is not run unseen."""
    return name in specs() or name in _BY_HAND.keys() - {"npm", "pip", "pip3"}
