"""What programs are known for, by their names: what the judge asks about when one is not known to only look."""

from __future__ import annotations

import re

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

OPAQUE = word_set(
    "eval source . exec ssh xargs parallel trap alias unalias builtin command pushd popd awk gawk mawk nawk shopt "
    "enable hash set export declare typeset local readonly unset let mapfile readarray getopts complete bind fc "
    "history read env watch strace ltrace gdb lldb script flock busybox toybox expect setsid time timeout nice "
    "nohup stdbuf ionice chrt taskset vi vim nvim view ex ed emacs nano pico less more man info most split csplit "
    "parallel find sqlite3 psql mysql dd install ln"
)
"""What they do is not visible in their words."""

SHELL_FREE = word_set("find dd install ln")
"""Of those above, to be looked at by their operands."""

INTERPRETERS = word_set(
    "bash sh zsh dash ksh fish python pypy node nodejs deno bun perl ruby php lua osascript tclsh wish guile "
    "racket Rscript R julia groovy scala ghci irb pry ipython elixir iex erl sbcl clisp jshell gnuplot octave dc gjs"
)  # fmt: skip
"""They run code given to them."""

REMOVERS = word_set("rm mv chmod chown chgrp shred rsync find dd truncate ln cp rmdir")
"""They may take a whole folder with them."""

CHANGERS = REMOVERS | word_set("sed tee touch install patch perl")
"""They change the files they name."""

COPIERS = word_set("cp mv ln tar zip 7z rsync scp gzip bzip2 xz zstd cpio pax dd install sftp base64 openssl ar")
"""They take along what is in the folders they name."""

STARTING = {
    "cargo": re.compile(r"--config.*|-Z.*"),
    "go": re.compile(r"--?(exec|toolexec|vettool|overlay|modfile).*"),
    "tar": re.compile(
        r"--(to-c|checkpoint-a|use-c|rsh|info-s|new-volume|rmt|absolute).*|-\w*[IFP].*|[cxtrud][a-z]*[IFP][a-zA-Z]*"
    ),
    "rsync": re.compile(r"-\w*e.*|--rsh.*|--rsync-path.*"),
    "zip": re.compile(r"-T.*|--unzip-command.*"),
    "make": re.compile(r"SHELL.*|\.SHELL.*|--eval.*|-\w*[fCIE].*|MAKEFLAGS.*|--(file|makefile|directory).*"),
    "tox": re.compile(r"exec|e|-c.*|--(conf|root|workdir|override).*|-x.*"),
    "nox": re.compile(r"-f.*|--(noxfile|envdir).*"),
    "pytest": re.compile(r"--(rootdir|confcutdir|basetemp).*/.*"),
    "npm": re.compile(r"--(script-shell|node-options|prefix|userconfig|globalconfig).*"),
    "find": re.compile(r"-(exec|execdir|ok|okdir|delete|fprint.*|fls)"),
    "pylint": re.compile(r"--(i|load|rc).*"),
    "mypy": re.compile(r"--(python-e|config|custom|install-t|[a-z]*-report).*"),
    "rake": re.compile(r"-\w*[eEpfrRIglN].*|--(exec|req|rakef|libd|rakelib|sys|no-s).*"),
    "rspec": re.compile(r"-\w*[rI].*|--(require|options).*"),
    "kubectl": re.compile(r"-s.*|--(kubec|se|tok|cl|cont|u|as|ce|cl|pas|ins|tls|pr|cache|dis).*"),
    "mvn": re.compile(
        r".*:.*|-(f|s|gs|gt|t|l|pl|P|C).*|-D(?!(test|skipTests|it\.test)(=|$)).*|--(file|set|glob|def|proj|tool).*"
    ),
    "dotnet": re.compile(
        r"[-/]+(p|prop|propert).*|@.*|--(logger|test-adapter|settings|collect|source|use-).*|-[lars].*"
    ),
    "zig": re.compile(r"--(build-file|test-cmd|test-runner|libc|zig-lib).*"),
    "mocha": re.compile(r"-[rR].*|--(require|import|loader|eval|reporter|config|package|ui|exp|node).*"),
    "jest": re.compile(
        r"-c.*|--(config|rootDir|global|runner|run|set|test[ERS]|trans|reporters|resolver|filter|preset|env|snap).*"
    ),
    "vitest": re.compile(r"-[cr].*|--(config|root|dir|pool|glob|environment|reporter|browser|outputF|exec).*"),
    "eslint": re.compile(r"-[cf].*|--(config|rulesdir|plugin|parser|resolve|format|flag).*"),
    "prettier": re.compile(r"--(plugin|config|find).*"),
    "phpunit": re.compile(r"-[cd].*|--(bootstrap|prepend|conf|ext|include|loader|printer).*"),
    "phpstan": re.compile(r"-[ac].*|--(auto|conf).*"),
    "rubocop": re.compile(r"-[rcf].*|--(req|conf|form|plugin|server).*"),
    "stylelint": re.compile(r"-[cf].*|--(config|custom|format).*"),
    "mix": re.compile(r"-r.*|--(require|import|no-start|formatter|include-|exec).*|do|run"),
}
"""Options by which programs start others, run code that is given there, or read settings that do: what a rule with a
star allows does not reach them."""

HARMLESS_SETTINGS = re.compile(
    r"(CI|LANG|LC_\w+|TZ|NO_COLOR|FORCE_COLOR|CLICOLOR|COLUMNS|LINES|TERM|NODE_ENV|RUST_BACKTRACE|PYTHONUNBUFFERED"
    r"|PYTHONDONTWRITEBYTECODE|DEBUG|VERBOSE|GIT_TERMINAL_PROMPT)=[\w.,:/*-]*|(GIT_)?PAGER=(cat)?"
)
"""Settings in front of a command that change nothing of what it does."""


def setting_within(text: str) -> bool:
    """``NAME=value`` that is a program's own setting and names nothing that would be loaded instead of another."""
    name = text.partition("=")[0]
    return not re.match(
        r"(LD_|DYLD_|GIT_|BASH|ENV$|IFS$|PATH$|PS\d|PROMPT_|SHELL|PERL5|RUBYOPT|NODE_OPTIONS|PYTHON(STARTUP|HOME|INSPECT"
        r"|USERBASE|BREAKPOINT)|JAVA_TOOL|_JAVA|MAKEFLAGS|EDITOR|VISUAL|PAGER|.*_?PAGER$|.*EDITOR$|SSH_|RUSTC_|CARGO_|GO"
        r"FLAGS|LESS|MAN|BROWSER|CC$|CXX$|TAR_|RSYNC_|TMPDIR$|HOME$|XDG_|DOCKER_|npm_config)",
        name,
    )
