"""Judges a shell command: each simple command in it must be allowed on its own, and each file it writes.

What is said here is what to *ask*, and in which domain of the sandbox a command runs; what it can do there is the
sandbox's to say.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Literal

from agent_tui.tools.files.paths import is_within, resolve_from
from agent_tui.tools.git.config import names_programs
from agent_tui.tools.judge.always import prefix
from agent_tui.tools.judge.arguments import Reading
from agent_tui.tools.judge.folders import holds_denied, leads_out, shows_denied
from agent_tui.tools.judge.git import git_asks, names_a_place, starting
from agent_tui.tools.judge.network import reaches_out, transfer_asks
from agent_tui.tools.judge.paths import named_paths, option_like
from agent_tui.tools.judge.readers import known_reader, reading, sed_in_place
from agent_tui.tools.judge.shell import NotUnderstoodError, Word, parse_command
from agent_tui.tools.judge.wrappers import Started, started_by
from agent_tui.tools.permissions.decision import ALLOWED, PLAN_MESSAGE, PLAN_REASON, Decision, worst
from agent_tui.tools.permissions.permissions import Permissions
from agent_tui.tools.permissions.rules import Rule, command_matches, exact
from agent_tui.tools.sandbox.policy import Domain
from agent_tui.tools.words import words

# They run another command, which a rule for that command must still find.
_WRAPPERS = words(
    "sudo doas env xargs command builtin exec nohup nice ionice time timeout setsid stdbuf busybox watch parallel "
    "eval strace ltrace chroot su flock script unshare find chrt taskset setarch runuser nsenter firejail"
)
_PRIVILEGED = words(
    "sudo doas su pkexec run0 runuser chroot unshare nsenter mount umount systemctl systemd-run crontab at batch "
    "launchctl loginctl dbus-send gdbus busctl kill pkill killall reboot shutdown useradd usermod passwd visudo "
    "iptables nft sysctl modprobe insmod apt apt-get dpkg yum dnf pacman zypper snap brew tmux screen docker "
    "podman kubectl helm terraform aws gcloud az ssh scp sftp rsync ftp nc ncat netcat socat telnet gpg pass "
    "security secret-tool ssh-add ssh-agent ssh-keygen xdg-open open start-stop-daemon"
)
_OPAQUE = words(
    "eval source . exec ssh xargs parallel trap alias unalias builtin command pushd popd awk gawk mawk nawk shopt "
    "enable hash set export declare typeset local readonly unset let mapfile readarray getopts complete bind fc "
    "history read env watch strace ltrace gdb lldb script flock busybox toybox expect setsid time timeout nice "
    "nohup stdbuf ionice chrt taskset vi vim nvim view ex ed emacs nano pico less more man info most split csplit "
    "parallel find sqlite3 psql mysql dd install ln"
)
_SHELL_FREE = words("find dd install ln")  # of those above, to be looked at by their operands
_INTERPRETERS = words(
    "bash sh zsh dash ksh fish python pypy node nodejs deno bun perl ruby php lua osascript tclsh wish guile "
    "racket Rscript R julia groovy scala ghci irb pry ipython"
)  # fmt: skip
_REMOVERS = words("rm mv chmod chown chgrp shred rsync find dd truncate ln cp rmdir")
_CHANGERS = _REMOVERS | words("sed tee touch install patch perl")
_COPIERS = words("cp mv ln tar zip 7z rsync scp gzip bzip2 xz zstd cpio pax dd install sftp base64 openssl ar")
# Options by which programs start others: what a rule with a star allows does not reach them.
_STARTING = {
    "cargo": re.compile(r"--config.*|-Z.*"),
    "go": re.compile(r"--?(exec|toolexec|vettool|overlay|modfile).*"),
    "tar": re.compile(r"--(to-c|checkpoint-a|use-c|rsh|info-s|new-volume|rmt).*|-\w*[IF].*"),
    "rsync": re.compile(r"-\w*e.*|--rsh.*|--rsync-path.*"),
    "zip": re.compile(r"-T.*|--unzip-command.*"),
    "make": re.compile(r"SHELL.*|\.SHELL.*|--eval.*|-\w*[fCIE].*|MAKEFLAGS.*|--(file|makefile|directory).*"),
    "pytest": re.compile(r"--(rootdir|confcutdir|basetemp).*/.*"),
    "npm": re.compile(r"--(script-shell|node-options|prefix|userconfig|globalconfig).*"),
    "find": re.compile(r"-(exec|execdir|ok|okdir|delete|fprint.*|fls)"),
}
_HARMLESS_SETTINGS = re.compile(
    r"(CI|LANG|LC_\w+|TZ|NO_COLOR|FORCE_COLOR|CLICOLOR|COLUMNS|LINES|TERM|NODE_ENV|RUST_BACKTRACE|PYTHONUNBUFFERED"
    r"|PYTHONDONTWRITEBYTECODE|DEBUG|VERBOSE|GIT_TERMINAL_PROMPT)=[\w.,:/*-]*|(GIT_)?PAGER=(cat)?"
)


def judge(permissions: Permissions, source: str, tool: str) -> Decision:
    """The decision on a whole command line."""
    try:
        commands = parse_command(source)
    except (NotUnderstoodError, RecursionError) as problem:
        return _not_understood(permissions, source, tool, str(problem))
    if not commands:
        return ALLOWED
    folders = {permissions.cwd}
    decisions: list[Decision] = []
    for command in commands:
        try:
            decisions.append(_Judge(permissions, tool, started_by(command), folders).decision())
        except NotUnderstoodError as problem:
            decisions.append(_not_understood(permissions, command.text, tool, str(problem)))
    return worst(decisions)


def _not_understood(permissions: Permissions, source: str, tool: str, problem: str) -> Decision:
    if permissions.command_rule(tool, "deny", lambda rule: command_matches(rule.pattern, source)):
        return Decision("deny", "a rule denies it", "Refused: a rule of the user denies this command. Do not retry it.")
    if permissions.mode == "plan":
        return _in_plan(permissions, problem)
    return Decision("ask", f"not fully understood: {problem}", domain="work")


def _in_plan(permissions: Permissions, problem: str) -> Decision:
    """Not known to only look: it may run where the system holds it to looking."""
    if permissions.holds("look"):
        return ALLOWED
    return Decision("deny", PLAN_REASON, f"{PLAN_MESSAGE} (Not known to be read only: {problem}.)")


class _Judge:
    """One simple command. ``folders`` are all the working directories it may run in; ``cd`` adds to them."""

    def __init__(self, permissions: Permissions, tool: str, started: Started, folders: set[Path]) -> None:
        self._permissions, self._tool, self._folders = permissions, tool, folders
        self._started, self._command = started, started.command
        self._words = [word.text for word in self._command.words]
        self._name = self._words[0].rpartition("/")[2] if self._words else ""

    def decision(self) -> Decision:
        if self._words and (not self._words[0] or any(char.isspace() for char in self._words[0])):
            # Rules are matched on words joined by spaces: "git status" as one word is another program.
            raise NotUnderstoodError("the name of the program contains a space")
        first = self._command.words[0] if self._command.words else None
        if first is not None and (first.dynamic or first.tilde or (first.glob and first.text != "[")):
            raise NotUnderstoodError("which program it is is only known when it runs")
        if self._name in _WRAPPERS and "cd" in self._words:
            raise NotUnderstoodError("where cd leads is not clear")
        if self._named_by("deny", broadly=True):
            text = "Refused: a rule of the user denies this command. Do not retry it."
            return Decision("deny", f"a rule denies {self._name}", text)
        return worst([*self._redirects(), self._program()])

    def _redirects(self) -> list[Decision]:
        decisions: list[Decision] = []
        for redirect in self._command.redirects:
            if redirect.target.pipe and not redirect.target.text:
                continue  # a here-string whose value is known later: it is only read
            kind: Literal["read", "edit"] = "edit" if redirect.kind == "write" else "read"
            decisions += self._on_paths(kind, redirect.target)
        return decisions

    def _on_paths(self, kind: Literal["read", "edit"], word: Word) -> list[Decision]:
        found = [self._permissions.path(kind, kind, path) for path in named_paths(word, self._folders)]
        # To look is enough for reading inside the project; the rest needs as much as the question is about.
        domain: Domain = "work" if kind == "edit" else "look"
        return [replace(decision, domain="free" if _outside(decision) else domain) for decision in found]

    def _program(self) -> Decision:
        if not self._words and not self._command.assignments:
            return ALLOWED
        look = self._reading()
        plan = self._permissions.mode == "plan"
        if plan and (look is None or look.written):
            if self._name in _PRIVILEGED:
                return Decision("deny", PLAN_REASON, f"{PLAN_MESSAGE} ({self._name} acts on more than the project.)")
            return self._refused_or(_in_plan(self._permissions, self._name or "an assignment"))
        if look is not None:
            return self._looks(look)
        return self._runs()

    def _refused_or(self, decision: Decision) -> Decision:
        """``decision``, unless a rule denies what is named."""
        try:
            found = self._paths()
        except NotUnderstoodError:
            return decision
        return found if found.action == "deny" else decision

    def _reading(self) -> Reading | None:
        command = self._command
        if not self._words or "/" in self._words[0] or any(
            not _HARMLESS_SETTINGS.fullmatch(word.text) or word.dynamic for word in command.assignments
        ):  # fmt: skip
            return None
        found = reading(command.words)
        if found is None:
            return None
        if self._started.given:
            if self._name in ("find", "sort", "uniq", "xxd", "tree", "base64"):
                return None  # what it is given may be options that write
            found.held, found.unseen = found.held or "what it is given is only known when it runs", True
        if self._name == "git":
            cwd = self._permissions.cwd
            # git reads the configuration of the folder it is in, which can name programs to run.
            if self._folders != {cwd} or names_programs(cwd):
                found.held = found.held or "git reads the settings of the folder it is in"
        return found

    def _looks(self, look: Reading) -> Decision:
        permissions = self._permissions
        decisions: list[Decision] = [self._held(look)] if look.held else []
        if option_like(self._command.words[1:], self._folders):
            raise NotUnderstoodError("a file pattern gives a name that is an option")
        for word in look.paths:
            if word.dynamic and look.held:
                continue  # held to what may be looked at anyway
            decisions += self._on_paths("read", word)
            decisions += self._below(look, word)
        for word in look.written:
            decisions += self._on_paths("edit", word)
        if look.contents and (denied := shows_denied(permissions, self._command.words, look.contents)):
            decisions.append(denied)
        found = worst(decisions)
        if found.action == "deny":
            return found
        if self._words[:1] == ["cd"]:
            self._change_folder()
        if self._named_by("ask", broadly=True):
            return worst([found, Decision("ask", f"a rule says to ask about {self._name}")])
        return found

    def _below(self, look: Reading, word: Word) -> list[Decision]:
        """What lies below the folders it is given, where it goes into them."""
        permissions = self._permissions
        if not (look.walks or look.follows) or word.dynamic:
            return []
        decisions: list[Decision] = []
        for path in named_paths(word, self._folders):
            if look.walks and (denied := holds_denied(permissions, path)):
                decisions.append(denied)
            if look.follows and leads_out(path, permissions.folders):
                reason = f"{self._name} follows links, and one below {path} leads outside the project"
                decisions.append(Decision("ask", reason, domain="free"))
        return decisions

    def _held(self, look: Reading) -> Decision:
        """Sure to only look where the system holds it to that. Elsewhere it is a program like others, and if it may
        read what is not named, it is asked about."""
        permissions, why = self._permissions, look.held
        if permissions.holds("look"):
            return ALLOWED
        if permissions.mode == "plan":
            return _in_plan(permissions, why)
        if permissions.mode == "auto" and not look.unseen and (self._name != "git" or permissions.trusted):
            return ALLOWED
        if (self._started.given or not self._command.dynamic) and self._named_by("allow"):
            return ALLOWED
        return Decision("ask", f"{self._name}: {why}", patterns=self._patterns())

    def _runs(self) -> Decision:
        """A program that may do more than look."""
        paths = self._paths()
        if paths.action == "deny":
            return paths
        permissions, domain = self._permissions, self._domain()
        network = domain == "work" and permissions.network == "ask" and self._reaches_out()
        if domain == "free" and self._name == "git" and not permissions.trusted:
            line = "Refused: git reaches out only in a trusted folder; the user can trust it with /trust."
            return Decision("deny", "git outside the sandbox needs a trusted folder", line)
        if paths.action != "allow":
            return replace(paths, domain="free" if "free" in (domain, paths.domain) else domain, network=network)
        return replace(self._by_rules_and_mode(domain, network), domain=domain, network=network)

    def _by_rules_and_mode(self, domain: Domain, network: bool) -> Decision:
        permissions = self._permissions
        if self._named_by("ask", broadly=True):
            return Decision("ask", f"a rule says to ask about {self._name}")
        if self._named_by("allow"):
            return ALLOWED
        if permissions.holds("work"):
            # Out of the sandbox, and into the network, only by a question that says so.
            if domain == "work" and not network and permissions.mode in ("accept-edits", "auto"):
                return ALLOWED
        elif permissions.mode == "auto":
            return self._auto()
        return Decision("ask", f"runs {self._name or 'an assignment'}", patterns=self._patterns())

    def _domain(self) -> Domain:
        """The domain it has to run in to do what it is for."""
        if self._name in _PRIVILEGED or (self._reaches_out() and self._name in ("git", "gh", "glab", "hub")):
            return "free"  # what is beyond the project, or wants the user's own keys
        return "work"

    def _reaches_out(self) -> bool:
        return bool(self._command.words) and reaches_out(self._command.words)

    def _paths(self) -> Decision:
        permissions = self._permissions
        decisions: list[Decision] = []
        for word in [*self._command.assignments, *self._command.words[1:]]:
            if self._name in _REMOVERS and word.text.removeprefix("./") in ("*", "**"):
                decisions.append(Decision("ask", f"{self._name} would take the whole folder", domain="work"))
            for path in named_paths(word, self._folders):
                decision = permissions.path("read", "read", path)
                decisions.append(self._changed(path) if decision.action == "allow" else decision)
        program = self._words[0] if self._words else ""
        if "/" in program:
            decisions += self._own_program(program)
        found = worst(decisions)
        outside = any(_outside(decision) for decision in decisions if decision.action == "ask")
        return replace(found, domain="free") if outside else found

    def _own_program(self, program: str) -> list[Decision]:
        """A program named by its path: the project's own may be a link to an interpreter elsewhere."""
        permissions = self._permissions
        found: list[Decision] = []
        for folder in self._folders:
            named = Path(os.path.normpath(folder / Path(program).expanduser()))
            if is_within(named.parent.resolve(), permissions.folders) and re.fullmatch(
                r"(python|pypy|node|ruby|perl)[\d.]*", named.name
            ):
                continue
            for path in named_paths(Word(program, quoted=True), [folder]):
                if not is_within(path, permissions.folders) and not str(path).startswith(("/usr/", "/bin/", "/opt/")):
                    found.append(Decision("ask", f"{path} is outside the project", domain="free"))
        return found

    def _changed(self, path: Path) -> Decision:
        """A path given to a program that may do anything with it."""
        permissions = self._permissions
        if self._name in _COPIERS and (denied := holds_denied(permissions, path)):
            return denied
        if permissions.protected(path):
            return Decision("ask", f"{path} decides what may run, or belongs to git itself", domain="free")
        if (
            self._name in _REMOVERS
            and self._name != "find"
            and any(f.is_relative_to(path) for f in permissions.folders)
        ):
            return Decision("ask", f"{self._name} would take the whole project", domain="work")
        if not is_within(path, permissions.folders):
            return Decision("ask", f"{path} is outside the project", domain="free")
        if self._name in _CHANGERS:
            decision = permissions.path("edit", "edit", path)
            if decision.action == "deny":
                return decision
        return ALLOWED

    def _change_folder(self) -> None:
        targets = [word for word in self._command.words[1:] if not word.text.startswith("-")]
        if len(targets) != 1 or len(self._words) > 2 or targets[0].glob or targets[0].tilde or self._words[1] == "-":
            raise NotUnderstoodError("where cd leads is not clear")
        if targets[0].dynamic:
            raise NotUnderstoodError("where cd leads is only known when it runs")
        for folder in list(self._folders):
            path = resolve_from(targets[0].text, folder)
            if os.path.normpath(folder / targets[0].text) != str(path):
                # The shell remembers the way it came: `..` would lead back there, not to the real parent.
                raise NotUnderstoodError("cd goes through a link")
            self._folders.add(path)

    def _named_by(self, which: Literal["deny", "ask", "allow"], broadly: bool = False) -> bool:
        """Whether a rule names this command. ``broadly`` (to refuse or ask): also with a path before the program's
        name, without assignments, and behind programs that run others."""
        # What gets operands that are not seen here is allowed by a rule for the whole of it.
        texts = {self._started.outer[0].text if self._started.given else self._command.text}
        if broadly:
            for command in (self._command, *self._started.outer):
                parts = [word.text for word in command.words]
                name = parts[0].rpartition("/")[2] if parts else ""
                texts |= {command.text, " ".join([name, *parts[1:]])}
                if name in _WRAPPERS:
                    texts |= {" ".join(parts[start:]) for start in range(1, len(parts))}
        starts = which == "allow" and self._starts_others()

        def matches(rule: Rule) -> bool:
            if starts and rule.pattern is not None and rule.pattern != exact(self._command.text):
                return False
            return any(command_matches(rule.pattern, text) for text in texts)

        return self._permissions.command_rule(self._tool, which, matches)

    def _starts_others(self) -> bool:
        """Whether an option makes it start what it is given: more than a rule with a star was meant for."""
        arguments = self._words[1:]
        if self._name == "git":
            return starting(arguments) or names_a_place(self._command.words[1:])
        pattern = _STARTING.get(self._name)
        return pattern is not None and any(pattern.fullmatch(word) for word in arguments)

    def _auto(self) -> Decision:
        """A command that nothing holds but this."""
        if problem := self._problem():
            return Decision("ask", problem, patterns=self._patterns())
        if self._name in ("curl", "wget"):
            problem, written = transfer_asks(self._command.words)
            if problem:
                return Decision("ask", problem, patterns=self._patterns())
            return worst([decision for word in written for decision in self._on_paths("edit", word)])
        return ALLOWED

    def _problem(self) -> str:
        name, arguments = self._name, self._command.words[1:]
        if name in _PRIVILEGED and not (name in ("docker", "podman", "kubectl") and prefix(self._words)):
            return f"{name} acts on more than the project"
        if not self._words or (name in _OPAQUE and name not in _SHELL_FREE) or self._started.given:
            return f"what {name or 'an assignment'} does is not visible here"
        if self._command.assignments and not all(_setting_within(word.text) for word in self._command.assignments):
            return "settings in front of it may change what runs"
        if name.rstrip("0123456789.") in _INTERPRETERS and not self._runs_a_file():
            return f"runs code given to {name} directly"
        if name == "git":
            return git_asks(arguments) if self._permissions.trusted else "git may start what an untrusted folder names"
        if name == "sed":
            return "" if sed_in_place(list(arguments)) else "what the script does is not visible here"
        if name in ("npx", "bunx", "uvx", "pipx") and self._words[1:2] != ["--version"]:
            return "" if prefix(self._words) else f"{name} may fetch and run what it names"
        if self._starts_others() or (known_reader(name) and name not in _SHELL_FREE):
            return f"what an option of {name} does is not visible here"
        return ""

    def _runs_a_file(self) -> bool:
        """An interpreter with a script or module to run, not with code on its command line or from a pipe."""
        for word in self._words[1:]:
            if word == "-m":
                return self._words[-1] != "-m"
            if not word.startswith("-"):
                return True
            if word.startswith(("--e", "--p", "--i", "--r")) or (word[1:2] != "-" and set(word) & set("cerpEnI")):
                return False
            if word == "-":
                return False
        return False

    def _patterns(self) -> list[str]:
        """What "always" would allow: the program with its subcommand, or exactly this where that would be a blank
        cheque."""
        if not self._words or self._command.dynamic or self._started.given:
            return []
        start = [] if self._command.assignments or self._starts_others() else prefix(self._words)
        pattern = f"{' '.join(exact(word) for word in start)} *" if start else exact(self._command.text)
        return [f"{self._tool}({pattern})"]


def _outside(decision: Decision) -> bool:
    return decision.action == "ask" and ("outside" in decision.reason or "decides what may run" in decision.reason)


def _setting_within(text: str) -> bool:
    """``NAME=value`` that is a program's own setting and names nothing that would be loaded instead of another."""
    name = text.partition("=")[0]
    return not re.match(
        r"(LD_|DYLD_|GIT_|BASH|ENV$|IFS$|PATH$|PS\d|PROMPT_|SHELL|PERL5|RUBYOPT|NODE_OPTIONS|PYTHON(STARTUP|HOME|INSPECT"
        r"|USERBASE|BREAKPOINT)|JAVA_TOOL|_JAVA|MAKEFLAGS|EDITOR|VISUAL|PAGER|.*_?PAGER$|.*EDITOR$|SSH_|RUSTC_|CARGO_|GO"
        r"FLAGS|LESS|MAN|BROWSER|CC$|CXX$|TAR_|RSYNC_|TMPDIR$|HOME$|XDG_|DOCKER_|npm_config)",
        name,
    )
