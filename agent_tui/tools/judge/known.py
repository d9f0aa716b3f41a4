"""The facts known about programs, by their names: which change files, which run code, which only read and what, and
what an answer "always" allows of them. Only what decides what is asked, never what is safe.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from agent_tui.tools.judge.programs import git_looks
from agent_tui.tools.judge.words import Word
from agent_tui.tools.word_sets import word_set

WRAPPERS = word_set(
    "sudo doas env xargs command builtin exec nohup nice ionice time timeout setsid stdbuf busybox watch parallel "
    "eval strace ltrace chroot su flock script unshare find chrt taskset setarch runuser nsenter firejail"
)
"""They run another command, which a rule for that command must still find."""

PRIVILEGED = word_set(
    "sudo doas su pkexec run0 runuser chroot unshare nsenter mount umount systemctl systemd-run crontab at batch "
    "launchctl loginctl dbus-send gdbus busctl kill pkill killall reboot shutdown useradd usermod passwd visudo "
    "iptables nft sysctl modprobe insmod apt apt-get dpkg yum dnf pacman zypper snap brew tmux screen docker "
    "podman kubectl helm terraform aws gcloud az ssh scp sftp rsync ftp nc ncat netcat socat telnet gpg pass "
    "security secret-tool ssh-add ssh-agent ssh-keygen xdg-open open start-stop-daemon"
)
"""They act on more than the project: no sandbox is of use to them."""

INTERPRETERS = word_set(
    "bash sh zsh dash ksh fish python pypy node nodejs deno bun perl ruby php lua osascript tclsh wish guile "
    "racket Rscript R julia groovy scala ghci irb pry ipython elixir iex erl sbcl clisp jshell gnuplot octave dc gjs"
)  # fmt: skip
"""They run code given to them."""

OPAQUE = word_set(
    "eval source . exec ssh xargs parallel trap alias unalias builtin command pushd popd awk gawk mawk nawk sed shopt "
    "enable hash set export declare typeset local readonly unset let mapfile readarray getopts complete bind fc "
    "history read env printenv watch strace ltrace gdb lldb script flock busybox toybox expect setsid time timeout "
    "nice nohup stdbuf ionice chrt taskset vi vim nvim view ex ed emacs nano pico less more man info most split csplit "
    "find sqlite3 psql mysql hostname dd install jq yq npx bunx uvx pipx deno cmake php tar zip curl wget xxd base64"
)
"""What they do is not visible in their words."""

DELETERS = word_set("rm rmdir unlink mv shred truncate")
"""Nothing is left where they were: what they are given has to be known."""

CHANGERS = DELETERS | word_set("chmod chown chgrp dd rsync cp ln sed tee touch install patch perl mkdir mktemp")
"""They change the files they name."""

COPIERS = word_set("cp mv ln tar zip 7z rsync scp gzip bzip2 xz zstd cpio pax dd install sftp base64 openssl ar")
"""They take along what is in the folders they name."""

_ALWAYS = (CHANGERS - {"sed", "perl", "mktemp"}) | word_set(
    "unzip gunzip bunzip2 unxz rename dos2unix split csplit patchelf strip black isort autopep8 yapf docformatter "
    "rustfmt swiftformat ktlint"
)
_WITH = {
    "sed": r"-[a-zA-Z]*i.*|--in-place.*",
    "perl": r"-[a-zA-Z0-9]*i.*",
    "ruff": r"format|--fix.*",
    "cargo": r"fmt|fix|add|remove|new|init|install|update",
    "go": r"fmt|get|mod|generate|clean|install",
    "gofmt": r"-[a-z]*w.*",
    "goimports": r"-[a-z]*w.*",
    "clang-format": r"-i.*",
    "prettier": r"--write|-w",
    "biome": r"--write|--fix|--apply.*",
    "eslint": r"--fix",
    "stylelint": r"--fix",
    "rubocop": r"-[aAx]|--auto.*",
    "terraform": r"fmt",
    "mix": r"format",
    "dart": r"format|fix",
    "npm": r"init|version|pkg|link|uninstall|remove|dedupe",
    "tar": r"-?[a-zA-Z]*x.*|--extract|--get",
    "find": r"-delete|-fprint.*|-fls",
    "make": r"install",
}
_ONLY_SAYS = word_set("--check --diff --dry-run -n --list-different -l --verify --version --help")
_BEFORE = word_set("npx bunx uvx run exec uv poetry pnpm yarn bundle -m")


def changes(words: Sequence[str]) -> bool:
    """Returns whether a program is known to change files of the project: running it in ``look`` would be for nothing. A
    program not known here shows it by what the sandbox stops."""
    line = [word.rpartition("/")[2] for word in words[:1]] + list(words[1:])
    while len(line) > 1 and (line[0] in _BEFORE or re.fullmatch(r"python[\d.]*", line[0])) and line[0] != "-m":
        if re.fullmatch(r"python[\d.]*", line[0]) and line[1] != "-m":
            return False
        line = line[1:]
        while len(line) > 1 and line[0] in _BEFORE:
            line = line[1:]
    if not line:
        return False
    name, rest = line[0], line[1:]
    if any(word in _ONLY_SAYS for word in rest) and name not in DELETERS:
        return False
    if name in _ALWAYS:
        return True
    pattern = _WITH.get(name)
    return pattern is not None and any(re.fullmatch(pattern, word) for word in rest)


HARMLESS_SETTINGS = re.compile(
    r"(CI|LANG|LC_\w+|TZ|NO_COLOR|FORCE_COLOR|CLICOLOR|COLUMNS|LINES|TERM|GIT_TERMINAL_PROMPT)=[\w.,:*-]*|(GIT_)?PAGER=(cat)?"
)
"""Settings in front of a command that change nothing of what it does."""


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
    """The words that may be files which this program reads; None where it may do more than read, or is not known."""
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
        case "printf" if arguments and not _only_prints(arguments[0]):
            return None
        case "date" if any(not text.startswith(("+", "-")) for text in texts):
            return None
        case "uniq" if sum(not re.match("-.", text) for text in texts) > 1:
            return None  # the second is written
    return _by_letters(name, arguments)


def _only_prints(form: Word) -> bool:
    """Returns whether the first word of ``printf`` is a format that sets no variable, as ``-v`` and ``%n`` do."""
    sets = form.text.startswith("-") or re.search(r"%[-+ #'*.\d]*[hjlLqtz]*n", form.text.replace("%%", ""))
    return not (sets or form.glob or form.dynamic)


def knows(name: str) -> bool:
    """Returns whether a program only reads when it is given the right options: with others it may be anything."""
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
    """Returns whether the variables in a word are the command's own, or no secret."""
    names = re.findall(r"\$\{?(\w+)", text)
    return all(name in _PLAIN_NAMES or not name.isidentifier() or name.islower() for name in names)


_WHOLE = word_set(
    "pytest py.test mypy pyright ruff black isort flake8 pylint bandit eslint prettier tsc jest vitest mocha "
    "tox nox rspec rubocop phpunit phpstan golangci-lint shellcheck stylelint biome standard clippy mkdir touch tree"
)
_CODE_TOOLS = _WHOLE | word_set("unittest doctest")
_RUNNERS = word_set("npx bunx uvx")
_ONE: dict[str, frozenset[str]] = {
    "git": word_set(
        "add commit checkout switch restore stash merge fetch pull push tag branch cherry-pick revert mv rm apply"
    ),
    "npm": word_set("test t ls outdated"),
    "pnpm": word_set("test ls outdated"),
    "yarn": word_set("test list outdated"),
    "cargo": word_set("build test check clippy fmt doc bench run tree"),
    "go": word_set("build test vet fmt list doc version"),
    "pip": word_set("list show freeze check"),
    "pip3": word_set("list show freeze check"),
    "docker": word_set("ps images logs inspect version"),
    "podman": word_set("ps images logs inspect version"),
    "kubectl": word_set("get describe logs version"),
    "dotnet": word_set("build test"),
    "mvn": word_set("test compile verify package"),
    "swift": word_set("build test"),
    "zig": word_set("build test"),
    "mix": word_set("test compile format"),
    "rake": word_set("test spec"),
}
_TWO: dict[str, frozenset[tuple[str, str]]] = {
    "gh": frozenset(
        (first, second)
        for first, seconds in {
            "pr": "view list diff checks status",
            "issue": "view list status",
            "run": "view list",
            "release": "view list",
            "repo": "view list",
            "workflow": "view list",
        }.items()
        for second in seconds.split()
    ),
    "go": frozenset({("mod", "tidy"), ("mod", "verify"), ("mod", "graph")}),
}
_SCRIPTS = word_set("npm pnpm yarn bun")
_BEHIND_RUN = {"uv": "run", "poetry": "run", "pipenv": "run", "hatch": "run", "bundle": "exec", "pdm": "run"}
_OWN = re.compile(r"(?:\./)?(?:\.?venv/bin|env/bin|node_modules/\.bin)/\w[\w-]*")
_PYTHON = re.compile(r"(?:[\w./-]+/)?python[\d.]*")
_PLAIN = re.compile(r"[A-Za-z0-9@_][\w.@/:-]*")


def prefix(line: Sequence[str]) -> list[str]:
    """The first words, which name what was asked about; empty where only the whole command does."""
    name, rest = line[0], list(line[1:])
    if _OWN.fullmatch(name) and PurePosixPath(name).name in _WHOLE:
        return [name]
    if "/" in name or not all(_PLAIN.fullmatch(word) for word in rest[:1]):
        return [name] if name in _WHOLE else _module(line)
    if name in _WHOLE:
        return [name]
    first = rest[0] if rest else ""
    second = rest[1] if len(rest) > 1 and _PLAIN.fullmatch(rest[1]) else ""
    if first in _ONE.get(name, ()):
        return [name, first]
    if (first, second) in _TWO.get(name, ()):
        return [name, first, second]
    if name in _SCRIPTS and first == "run" and second:
        return [name, first, second]
    if name in _RUNNERS and first in _CODE_TOOLS:
        return [name, first]
    if _BEHIND_RUN.get(name) == first and second in _CODE_TOOLS:
        return [name, first, second]
    return []


def _module(line: Sequence[str]) -> list[str]:
    """``python -m pytest``, with the interpreter as it was named; ``python -m coverage run -m pytest`` too."""
    if not _PYTHON.fullmatch(line[0]) or list(line[1:2]) != ["-m"] or len(line) < 3:
        return []
    if line[2] == "coverage":
        behind = list(line[3:5]) == ["run", "-m"] and len(line) > 5 and line[5] in _CODE_TOOLS
        return list(line[:6]) if behind else []
    return list(line[:3]) if line[2] in _CODE_TOOLS else []
