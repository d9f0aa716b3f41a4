"""Git's configuration files, read as git reads them and without git: what they say, and whether that names programs."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator

_SPACE = " \t\r\n"
_ESCAPED = {"t": "\t", "b": "\b", "n": "\n", "\\": "\\", '"': '"'}


def read_config(text: str) -> list[tuple[str, str]]:
    """Keys and values of a configuration, without those it includes: sections and keys in small letters, a key without
    a value is a switch that is on. Raises ValueError for what git would not read."""
    return list(_Reader(text).pairs())


def config_of(text: str) -> list[tuple[str, str]]:
    """The same; where git would not read it what stands before that."""
    found: list[tuple[str, str]] = []
    with contextlib.suppress(ValueError):
        found.extend(_Reader(text).pairs())
    return found


class _Reader:
    def __init__(self, text: str) -> None:
        # Git is done at the end of a file as at the end of a line.
        self._text, self._at = text.removeprefix("\ufeff").replace("\r\n", "\n") + "\n", 0

    def _next(self) -> str:
        if self._at >= len(self._text) or self._text[self._at] == "\0":  # at which git ends keys and values
            raise ValueError("ends within something")
        self._at += 1
        return self._text[self._at - 1]

    def _word(self, more: str) -> str:
        """The letters, figures and others of ``more`` that come next, in small letters."""
        start = self._at
        while (char := self._text[self._at]) in more or (char.isascii() and char.isalnum()):
            self._at += 1
        return self._text[start : self._at].lower()

    def pairs(self) -> Iterator[tuple[str, str]]:
        section = ""
        while self._at < len(self._text):
            char = self._next()
            if char in "#;":
                self._at = self._text.index("\n", self._at)
            elif char == "[":
                section = self._header() + "."
            elif char not in _SPACE:
                if not (char.isascii() and char.isalpha()):
                    raise ValueError("no key")
                self._at -= 1
                yield section + self._word("-"), self._value()

    def _header(self) -> str:
        name = self._word("-.")
        char = self._next()
        if char == "]":
            return name
        while char in " \t\r":
            char = self._next()
        if char != '"':
            raise ValueError("no header")
        name += "."
        while (char := self._next()) != '"':
            char = self._next() if char == "\\" else char
            if char == "\n":
                raise ValueError("a name over several lines")
            name += char
        if self._next() != "]":
            raise ValueError("a header without an end")
        return name

    def _value(self) -> str:
        while (char := self._next()) in " \t":
            pass
        if char == "\n":
            return "true"
        if char != "=":
            raise ValueError("neither value nor end of line")
        value, spaces, quoted = "", "", False
        while (char := self._next()) != "\n":
            if char in _SPACE and not quoted:
                spaces += char if value else ""
                continue
            if char in "#;" and not quoted:
                self._at = self._text.index("\n", self._at) + 1
                return value
            value, spaces = value + spaces, ""
            if char == "\\":
                char = self._next()
                if char != "\n" and char not in _ESCAPED:
                    raise ValueError("no such escape")
                value += _ESCAPED.get(char, "")
            elif char == '"':
                quoted = not quoted
            else:
                value += char
        if quoted:
            raise ValueError("quotes without an end")
        return value


def as_config(settings: Iterable[tuple[str, str]]) -> str:
    """A configuration with these values, in this order."""
    lines: list[str] = []
    for key, value in settings:
        section, _, rest = key.partition(".")
        name, dot, last = rest.rpartition(".")
        below = ' "' + name.replace("\\", "\\\\").replace('"', '\\"') + '"' if dot else ""
        quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        lines.append(f'[{section}{below}]\n\t{last} = "{quoted}"\n')
    return "".join(lines)


_BOOLEAN = re.compile(r"true|false|yes|no|on|off|1|0")
_AS_FILES = {
    "core.filemode": _BOOLEAN,
    "core.ignorecase": _BOOLEAN,
    "core.symlinks": _BOOLEAN,
    "core.precomposeunicode": _BOOLEAN,
    "core.autocrlf": re.compile(r"true|false|input"),
    "core.eol": re.compile(r"lf|crlf|native"),
    "extensions.objectformat": re.compile(r"sha1|sha256"),
}


def about_files(settings: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Those that say how files and objects are to be read, with a value that can mean nothing else."""
    return {key: value for key, value in settings if key in _AS_FILES and _AS_FILES[key].fullmatch(value.lower())}


_ADDRESS = r"(?!.*::).*"
_HARMLESS: tuple[tuple[str, str], ...] = (
    (
        r"core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf"
        r"|eol|safecrlf|quotepath|abbrev|untrackedcache|preloadindex|fscache|longpaths|protecthfs|protectntfs"
        r"|hidedotfiles|compression|loosecompression|bigfilethreshold|packedgit\w+|deltabasecachelimit|whitespace"
        r"|sparsecheckout|sparsecheckoutcone|multipackindex|commitgraph|checkstat|trustctime|sharedrepository|fsync\w*"
        r"|excludesfile|attributesfile|worktree|commentchar|commentstring|splitindex|usereplacerefs|createobject)",
        r".*",
    ),
    (r"core\.fsmonitor", r"|true|false|yes|no|on|off|1|0"),
    (r"extensions\.(?:objectformat|worktreeconfig|noop|refstorage|preciousobjects|relativeworktrees)", r".*"),
    (r"remote\..+\.(?:url|pushurl)", _ADDRESS),
    (
        r"remote\..+\.(?:fetch|push|mirror|tagopt|prune|prunetags|skip\w+|followremotehead|gh-resolved)"
        r"|remote\.pushdefault",
        r".*",
    ),
    (r"remote\..+\.(?:promisor|partialclonefilter)|extensions\.partialclone", r".*"),
    (r"branch\..+\.(?:remote|merge|pushremote|rebase|description|base|(?:gh|vscode|github)-[\w-]+)", r".*"),
    (r"branch\.(?:autosetup\w+|sort)|submodule\.(?:recurse|active|fetchjobs)", r".*"),
    (r"submodule\..+\.(?:active|branch|path|fetchrecursesubmodules)", r".*"),
    (r"submodule\..+\.url", _ADDRESS),
    (r"submodule\..+\.update", r"checkout|rebase|merge|none"),
    (r"submodule\..+\.ignore", r"all|dirty"),
    (r"(?:user|author|committer)\.(?:name|email|signingkey|useconfigonly)", r".*"),
    (r"(?:commit|tag)\.(?:gpgsign|template|verbose|cleanup|status|sort|forcesignannotated)|gpg\.format", r".*"),
    (r"(?:pull|push|fetch|rebase|status|checkout|stash|clone|init|log|format|blame|grep)\.[\w-]+", r".*"),
    (r"merge\.(?:conflictstyle|ff|log|stat|autostash|renames|renamelimit|directoryrenames|verifysignatures)", r".*"),
    (
        r"diff\.(?:algorithm|renames|renamelimit|color\w+|mnemonicprefix|noprefix|context|interhunkcontext|ignore\w+"
        r"|submodule|wserrorhighlight|relative|statgraphwidth|indentheuristic|dirstat|orderfile|tool|guitool)",
        r".*",
    ),
    (r"diff\..+\.(?:xfuncname|funcname|wordregex|binary|cachetextconv|algorithm)|merge\..+\.name", r".*"),
    (r"(?:color|column|advice|index|feature|i18n|rerere|worktree|versionsort|notes|maintenance|gitflow)\..+", r".*"),
    (
        r"gc\.(?!recentobjectshook).+|pack\.(?!packobjectshook).+|http\..+|transfer\..+|receive\.[\w-]+|protocol\.version",
        r".*",
    ),
    (r"credential\..*helper", r"|store|cache|osxkeychain|manager|manager-core|wincred|libsecret"),
    (r"credential\.(?:.+\.)?(?:username|usehttppath)", r".*"),
    (r"lfs\.(?:repositoryformatversion|(?:.+\.)?(?:access|locksverify))", r".*"),
)
"""Keys with which git runs nothing that their value names, and with which values. What is not among them may run
anything: nobody keeps a list of all that git, and what it is extended by, runs."""

_CONTACTS = re.compile(r"(?:https?|ssh|git)://.+|(?:[\w.-]+@)?[\w.-]{2,}:(?!:|//).+", re.DOTALL)
_REMOTE = re.compile(r"remote\.(.+)\.(promisor|url)", re.DOTALL)


def runs_nothing(settings: Iterable[tuple[str, str]]) -> bool:
    """Returns whether all that a configuration says is known to name no program. Of a partial clone git fetches what
    is missing as it needs it: from a folder that would run what that names."""
    settings = list(settings)
    partial = {value for key, value in settings if key == "extensions.partialclone"}
    elsewhere: dict[str, bool] = {}
    for key, value in settings:
        if (remote := _REMOTE.fullmatch(key)) is not None and remote[2] == "url":
            elsewhere[remote[1]] = elsewhere.get(remote[1], True) and _CONTACTS.fullmatch(value) is not None
        elif remote is not None:
            partial.add(remote[1])
    return all(elsewhere.get(name, False) for name in partial) and all(
        any(re.fullmatch(k, key, re.DOTALL) and re.fullmatch(v, value, re.DOTALL) for k, v in _HARMLESS)
        for key, value in settings
    )
