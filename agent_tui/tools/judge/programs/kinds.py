"""What programs are known for, by their names: only what decides what is asked, never what is safe."""

from __future__ import annotations

import re
from collections.abc import Sequence

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
    """Whether a program is known to change files of the project: in ``look`` it would be for nothing. What is not known
    here is seen by what the sandbox stops."""
    line = [word.rpartition("/")[2] if at == 0 else word for at, word in enumerate(words)]
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
