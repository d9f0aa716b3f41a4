"""The programs that only read and print, with the options known to do no more: what runs unasked where nothing holds.

The list is short on purpose. Where a sandbox holds, it says of a program only that no question can come of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent_tui.tools.judge.line.syntax import Word
from agent_tui.tools.judge.programs.git import git_looks
from agent_tui.tools.word_sets import word_set

_LETTERS = {
    name: letters
    for line in """
cat,tac,nl,rev: AbeEnstTuv
head,tail: qvznc
ls: 1aAbBcCdFgGhiklmnNopqQrRsStuUvxX
wc,basename,dirname,whoami,uname,nproc,seq,tr,stat,which,type: acmlLwsnrvpitfd
cut,paste,comm,cmp,column,fold: bcdfsnz123tw
sort: bcdfgghMnrRsuVzkt
uniq: cdDiuzfsw
du: abchkmsSxd
df: ahHiklPT
diff: abBcdeiNpqsTuwyU
file: bhik
grep,egrep,fgrep: EFGIPabchHiLlnoqrsvwxzABCm
rg: FHIilNnopPqsSUuvwxcABCmgtT
tree: adfgpstLI
realpath,readlink: efmns
md5sum,sha1sum,sha256sum,sha512sum,cksum: btz
date: uRI
echo,printf,true,false,:,pwd,sleep,id,cd: neEPLgu
""".strip().splitlines()
    for names, _, letters in [line.partition(": ")]
    for name in names.split(",")
}
_LONG = re.compile(
    r"--(all|almost-all|bytes|case-sensitive|column|count|brief|dirsfirst|extended-regexp|files|files-with-matches"
    r"|files-without-match|fixed-strings|gitignore|hidden|human-readable|ignore-case|invert-match|json|line-number|lines"
    r"|line-regexp|no-filename|no-heading|no-ignore|null|number|numeric-sort|only-matching|perl-regexp|quiet|recursive"
    r"|reverse|smart-case|stats|summarize|unified|unique|utc|verbose|with-filename|word-regexp|words|zero-terminated)"
    r"|--(after-context|before-context|color|colour|context|exclude|exclude-dir|format|glob|group-directories-first"
    r"|include|max-count|max-depth|relative-to|sort|time-style|type|iso-8601)(=.*)?"
)
"""By their whole names, for all of them: GNU's abbreviations are not known."""

_PATTERNS = word_set("grep egrep fgrep rg")
_PRINTS = word_set("echo printf true false :")
_FIND = word_set(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -type -maxdepth -mindepth -size -mtime -mmin "
    "-atime -ctime -cmin -perm -user -group -newer -newermt -regextype -printf -print -print0 -prune -quit -ls -empty "
    "-not -and -or -a -o -true -false -depth -mount -xdev -executable -readable -writable"
)
_SED = re.compile(r"(\d+|\$|/[\w ^$.*-]+/)(,(\d+|\$|/[\w ^$.*-]+/))?p(;(\d+|\$)(,(\d+|\$))?p)*")
_TESTS = word_set("-e -f -d -r -w -x -s -z -n -L -h = != == ] ! -a -o -nt -ot -ef -eq -ne -lt -gt -le -ge")
_PLAIN_NAMES = word_set(
    "HOME PWD OLDPWD USER LOGNAME PATH SHELL LANG TERM RANDOM SECONDS VIRTUAL_ENV UID EUID HOSTNAME"
)
_VERSIONS = word_set("python python3 node ruby perl java gcc g++ clang bash rg jq sed awk make cmake git curl")


def read_by(line: Sequence[Word]) -> list[Word] | None:
    """The words that may be files which the program on this command line reads; None where it may do more than read, or
    is not known."""
    name, arguments = line[0].text, list(line[1:])
    texts = [word.text for word in arguments]
    if name in _VERSIONS and texts in (["--version"], ["-V"]):
        return []
    if any(word.dynamic and not (name in _PRINTS and _tells_little(word.text)) for word in arguments):
        return None
    match name:
        case "[" | "test":
            # -v evaluates a subscript, and with it a command.
            plain = all(text in _TESTS or not text.startswith("-") for text in texts)
            return [word for word in arguments if word.text not in _TESTS] if plain else None
        case "git":
            return [word for word in arguments if not word.text.startswith("-")] if git_looks([name, *texts]) else None
        case "find":
            plain = all(text in _FIND or not re.match(r"-(?!\d)", text) for text in texts)
            return arguments if plain and not any(w.glob for w in arguments if w.text[:1] in "-") else None
        case "sed":
            if len(texts) < 2 or texts[0] != "-n" or not _SED.fullmatch(texts[1]) or arguments[1].glob:
                return None
            return None if any(text.startswith("-") for text in texts[2:]) else arguments[2:]
        case "command":
            return [] if texts[:1] in (["-v"], ["-V"]) else None
        case "set":
            usual = re.fullmatch(r"[-+][eux]+|(-[eux]*o|-o) pipefail|-[eux]+ -o pipefail", " ".join(texts))
            return [] if usual else None
        case "read":
            # Into variables in small letters: capitals may be settings of programs.
            return [] if all(re.fullmatch(r"-r|(?!\w*_proxy)[a-z][a-z0-9_]*", text) for text in texts) else None
        case "printf" if texts[:1] and texts[0].startswith("-"):
            return None
        case "date" if any(not text.startswith(("+", "-")) for text in texts):
            return None
        case "uniq" if sum(not re.match("-.", text) for text in texts) > 1:
            return None  # the second is written
    return _by_letters(name, arguments)


def knows(name: str) -> bool:
    """Whether a program is one that reads with the right options: with others it may be anything."""
    return name in _LETTERS or name in ("[", "test")


def _by_letters(name: str, arguments: list[Word]) -> list[Word] | None:
    if name in _PRINTS:
        return []
    letters = _LETTERS.get(name)
    if letters is None:
        return None
    short = re.compile(rf"-[{letters}]*[\d,.:;|%+ _-]*")
    options = [word for word in arguments if word.text.startswith("-") and len(word.text) > 1]
    given = [word for word in options if name in _PATTERNS and word.text == "-e"]
    if any(not (short.fullmatch(w.text) or _LONG.fullmatch(w.text)) or w.glob for w in options if w not in given):
        return None
    operands = [word for word in arguments if word not in options]
    if name in _PATTERNS and not given and "--files" not in [word.text for word in options]:
        if operands[:1] and operands[0].glob:
            return None
        operands = operands[1:]
    return [*operands, *(word for word in options if "/" in word.text)]


def _tells_little(text: str) -> bool:
    """Whether the variables in a word are those of the command itself, or no secret. What substitutions run is judged
    on its own."""
    names = re.findall(r"\$\{?(\w+)", text)
    return all(name in _PLAIN_NAMES or not name.isidentifier() or name.islower() for name in names)
