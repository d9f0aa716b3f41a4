"""Judges a shell command: each simple command in it must be allowed on its own, and each file it writes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from agent_tui.tools.command_paths import named_paths
from agent_tui.tools.git_config import names_programs
from agent_tui.tools.paths import is_within, resolve_from
from agent_tui.tools.permissions import ALLOWED, PLAN_MESSAGE, Decision, Permissions, worst
from agent_tui.tools.readonly import only_looks
from agent_tui.tools.rules import Rule, command_matches, exact
from agent_tui.tools.shell import NotUnderstoodError, SimpleCommand, parse_command
from agent_tui.tools.words import words

# They run another command, which a rule for that command must still find.
_WRAPPERS = words(
    "sudo doas env xargs command builtin exec nohup nice ionice time timeout setsid stdbuf busybox watch parallel eval "
    "strace chroot su"
)
_PRIVILEGED = words("sudo doas su pkexec run0 chroot mount umount systemctl crontab")
_OPAQUE = words("eval source . exec ssh xargs parallel trap alias builtin command pushd popd awk gawk mawk")
_INTERPRETERS = words("bash sh zsh dash ksh fish python node deno bun perl ruby php lua osascript tclsh")
_REMOVERS = words("rm mv chmod chown chgrp shred rsync find dd truncate ln cp")
_CHANGERS = _REMOVERS | words("sed tee touch install patch perl")
_BLANK_CHEQUES = words("curl wget tee sed kill")
_NO_PATHS = words("echo printf true false : seq basename dirname")
# The second word is what matters: `git commit`, `npm run`.
_SUBCOMMANDS = words(
    "git npm pnpm yarn cargo go uv pip docker kubectl gh make just poetry hatch nox tox bundle rake mvn gradle dotnet "
    "brew apt"
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
            decisions.append(_Judge(permissions, tool, command, folders).decision())
        except NotUnderstoodError as problem:
            decisions.append(_not_understood(permissions, command.text, tool, str(problem)))
    return worst(decisions)


def _not_understood(permissions: Permissions, source: str, tool: str, problem: str) -> Decision:
    if permissions.command_rule(tool, "deny", lambda rule: command_matches(rule.pattern, source)):
        return Decision("deny", "a rule denies it", "Refused: a rule of the user denies this command. Do not retry it.")
    if permissions.mode == "plan":
        return Decision("deny", "plan mode is read only", f"{PLAN_MESSAGE} (Not known to be read only: {problem}.)")
    return Decision("ask", f"not fully understood: {problem}")


class _Judge:
    """One simple command. ``folders`` are all the working directories it may run in; ``cd`` adds to them."""

    def __init__(self, permissions: Permissions, tool: str, command: SimpleCommand, folders: set[Path]) -> None:
        self._permissions, self._tool = permissions, tool
        self._command, self._folders = command, folders
        self._words = [word.text for word in command.words]
        self._name = self._words[0].rpartition("/")[2] if self._words else ""

    def decision(self) -> Decision:
        if self._words and (not self._words[0] or any(char.isspace() for char in self._words[0])):
            # Rules are matched on words joined by spaces: "git status" as one word is another program.
            raise NotUnderstoodError("the name of the program contains a space")
        first = self._command.words[0] if self._command.words else None
        if first is not None and (first.dynamic or (first.glob and first.text != "[")):
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
                raise NotUnderstoodError("what it is given to read is only known when it runs")
            kind: Literal["read", "edit"] = "edit" if redirect.kind == "write" else "read"
            for path in named_paths(redirect.target, self._folders):
                decisions.append(self._permissions.path(kind, kind, path))
        return decisions

    def _program(self) -> Decision:
        if not self._words and not self._command.assignments:
            return ALLOWED
        looks = self._only_looks()
        if not looks and self._permissions.mode == "plan":
            return Decision(
                "deny", "plan mode is read only", f"{PLAN_MESSAGE} (Not known to be read only: {self._name}.)"
            )
        paths = self._paths(looks)
        if paths.action != "allow":
            return paths
        if self._words[:1] == ["cd"]:
            self._change_folder()
        if self._named_by("ask", broadly=True):
            return Decision("ask", f"a rule says to ask about {self._name}")
        if looks or self._named_by("allow"):
            return ALLOWED
        if self._permissions.mode == "auto":
            return self._auto()
        return Decision("ask", f"runs {self._name or 'an assignment'}", patterns=self._patterns())

    def _only_looks(self) -> bool:
        command = self._command
        if command.assignments or command.dynamic or not only_looks(self._words):
            return False
        # git reads the configuration of the folder it is in, which can name programs to run.
        cwd = self._permissions.cwd
        return self._name != "git" or (self._folders == {cwd} and not names_programs(cwd))

    def _paths(self, looks: bool) -> Decision:
        permissions = self._permissions
        decisions: list[Decision] = []
        named = [*self._command.assignments, *self._command.words[1:]]
        for word in named:
            if looks and self._name in _NO_PATHS and not word.glob and not word.dynamic:
                continue
            if self._name in _REMOVERS and word.text.removeprefix("./") in ("*", "**"):
                decisions.append(Decision("ask", f"{self._name} would take the whole folder"))
            for path in named_paths(word, self._folders):
                if looks and not is_within(path, permissions.folders) and not _exists(path):
                    continue  # nothing there to be read: a search pattern, most likely
                decision = permissions.path("read", "read", path)
                if not looks and decision.action == "allow":
                    decision = self._changed(path)
                decisions.append(decision)
        program = self._words[0] if self._words else ""
        if "/" in program and not looks:
            for path in named_paths(self._command.words[0], self._folders):
                if not is_within(path, permissions.folders) and not str(path).startswith(("/usr/", "/bin/", "/opt/")):
                    decisions.append(Decision("ask", f"{path} is outside the project"))
        return worst(decisions)

    def _changed(self, path: Path) -> Decision:
        """A path given to a program that may do anything with it."""
        permissions = self._permissions
        if permissions.protected(path):
            return Decision("ask", f"{path} decides what may run, or belongs to git itself")
        if self._name in _REMOVERS and any(folder.is_relative_to(path) for folder in permissions.folders):
            return Decision("ask", f"{self._name} would take the whole project")
        if not is_within(path, permissions.folders):
            return Decision("ask", f"{path} is outside the project")
        if self._name in _CHANGERS:
            decision = permissions.path("edit", "edit", path)
            if decision.action == "deny":
                return decision
        return ALLOWED

    def _change_folder(self) -> None:
        targets = [word for word in self._command.words[1:] if not word.text.startswith("-")]
        if len(targets) != 1 or len(self._words) > 2 or targets[0].glob or targets[0].tilde or self._words[1] == "-":
            raise NotUnderstoodError("where cd leads is not clear")
        for folder in list(self._folders):
            path = resolve_from(targets[0].text, folder)
            if os.path.normpath(folder / targets[0].text) != str(path):
                # The shell remembers the way it came: `..` would lead back there, not to the real parent.
                raise NotUnderstoodError("cd goes through a link")
            self._folders.add(path)

    def _named_by(self, which: Literal["deny", "ask", "allow"], broadly: bool = False) -> bool:
        """Whether a rule names this command. ``broadly`` (to refuse or ask): also with a path before the program's
        name, without assignments, and behind programs that run others."""
        texts = {self._command.text}
        if broadly and self._words:
            texts.add(" ".join([self._name, *self._words[1:]]))
            if self._name in _WRAPPERS:
                texts |= {" ".join(self._words[start:]) for start in range(1, len(self._words))}

        def matches(rule: Rule) -> bool:
            return any(command_matches(rule.pattern, text) for text in texts)

        return self._permissions.command_rule(self._tool, which, matches)

    def _auto(self) -> Decision:
        if self._name in _PRIVILEGED:
            return Decision("ask", f"{self._name} acts on the whole system", patterns=self._patterns())
        if self._name in _OPAQUE or not self._words:
            return Decision("ask", f"what {self._name or 'an assignment'} does is not visible here")
        if self._name.rstrip("0123456789.") in _INTERPRETERS and not self._runs_a_file():
            return Decision("ask", f"runs code given to {self._name} directly", patterns=self._patterns())
        return ALLOWED

    def _runs_a_file(self) -> bool:
        """An interpreter with a script or module to run, not with code on its command line or from a pipe."""
        for word in self._words[1:]:
            if word == "-m":
                return self._words[-1] != "-m"
            if not word.startswith("-"):
                return True
            if word.startswith(("--e", "--p")) or (word[1:2] != "-" and set(word) & set("cerpEn")) or word == "-":
                return False
        return False

    def _patterns(self) -> list[str]:
        """What "always" would allow: the program with its subcommand, or exactly this where that would be a blank
        cheque."""
        if not self._words or self._command.dynamic:
            return []
        blank = _WRAPPERS | _PRIVILEGED | _OPAQUE | _INTERPRETERS | _REMOVERS | _BLANK_CHEQUES
        name = self._name.rstrip("0123456789.") or self._name
        if name in blank or self._name in blank or self._command.assignments or "/" in self._words[0]:
            return [f"{self._tool}({exact(self._command.text)})"]
        start = [exact(word) for word in self._words[:1]]
        if self._name in _SUBCOMMANDS:
            if len(self._words) < 2 or not self._words[1].replace("-", "").isalnum() or self._words[1][0] == "-":
                return [f"{self._tool}({exact(self._command.text)})"]
            start.append(self._words[1])
            if self._words[1] in ("run", "exec") and len(self._words) > 2:
                start.append(exact(self._words[2]))
        return [f"{self._tool}({' '.join(start)} *)"]


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return True
