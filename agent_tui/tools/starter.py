"""Starts what a project or the user's configuration brings: hooks, the status command, MCP servers.

It runs outside the sandbox, with what the user may do. So what it names in places that commands write is what the user
saw, no bytecode comes from there, and in a folder nobody trusts git runs nothing that the folder's configuration names.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.models.messages import Metadata
from agent_tui.paths import private_dir, with_home
from agent_tui.pipes.programs import find_program, program_environment, why_not_found
from agent_tui.records import dataclass
from agent_tui.text.clean import plain_line
from agent_tui.text.numbers import duration, size
from agent_tui.tools.children.bounded import Buffer, run_bounded
from agent_tui.tools.files.file_watch import FileWatch
from agent_tui.tools.files.fingerprints import BEING_WRITTEN, SETTLED_SECONDS, NamedFiles, fingerprint
from agent_tui.tools.files.named_files import named_files, with_environment
from agent_tui.tools.git.untrusted import harmless_git
from agent_tui.tools.sandbox.policy import free
from agent_tui.tools.sandbox.start import shell_program

MOST_BYTES = 1_000_000
"""Of what a command prints, and of its errors; one that prints more is ended."""
SETTLING = SETTLED_SECONDS + 0.05
"""Seconds that a file which was written just now is waited for, once."""
_ENDED_WITHIN = 1.0
"""Seconds after its start in which a command is ended whose files change; a later one may have changed them itself."""
_NAMED = 4
_FOR_SERVERS = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
"""What servers get of our environment."""


@dataclass(slots=True, frozen=True)
class Ran:
    """How a command ended. ``problem`` says why it did not come to an end of its own, or was not started; ``said`` is
    what a driver's callback answered in its place. ``changed``: what of it is not as the user accepted it, so that it
    was not started or its answer does not count; ``known``: in a folder that they trusted."""

    code: int = 0
    output: str = ""
    errors: str = ""
    problem: str = ""
    said: Metadata | None = None
    changed: str = ""
    known: bool = False


class NotAccepted(ToolError):
    """A command whose files are not what the user accepted in this folder. ``what`` names them."""

    def __init__(self, line: str, what: str) -> None:
        super().__init__(line)
        self.what = what


@dataclass(slots=True, frozen=True)
class CommandFiles:
    """The files that a command names, as they were looked at, watched since."""

    root: Path
    named: NamedFiles
    found: Mapping[str, str]
    watch: FileWatch

    def is_same(self) -> bool:
        """Whether all of it is what was looked at. Reads files. A whole environment of packages is only watched."""
        same = fingerprint(replace(self.named, trees=()), self.root)
        return not self.watch.look() and all(self.found.get(path) == digest for path, digest in same.items())


class Starter:
    """For one project. ``changed`` says which of some files, by what they are now, are not as the user accepted them;
    ``bytecode`` is a private folder for what Python compiles. ``lets_git_out``: git may run what the trusted folder
    names."""

    def __init__(
        self,
        root: Path,
        bytecode: Path,
        changed: Callable[[Mapping[str, str]], Sequence[str]],
        trusted: Callable[[], bool],
        lets_git_out: Callable[[], bool] | None = None,
    ) -> None:
        self.root, self._bytecode, self._changed, self._trusted = root, bytecode, changed, trusted
        self._lets_git_out = lets_git_out or trusted

    def _look(self, command: str | Sequence[str], cwd: Path) -> CommandFiles:
        named = named_files(command, cwd, self.root)
        paths = (*named.files, *named.missing, *named.trees)
        watch = FileWatch(paths, os.path.realpath(self.root))
        return CommandFiles(self.root, named, fingerprint(named, self.root, settled=True), watch)

    def _accepted(self, command: str | Sequence[str], cwd: Path) -> CommandFiles:
        """Raises NotAccepted."""
        looked = self._look(command, cwd)
        changed = self._changed(looked.found)
        if changed and all(looked.found[path] == BEING_WRITTEN for path in changed):
            looked.watch.close()
            time.sleep(SETTLING)
            looked = self._look(command, cwd)
            changed = self._changed(looked.found)
        if changed or looked.named.problem:
            looked.watch.close()
            if why := looked.named.problem:
                raise NotAccepted(f"not started: {why}", why)
            raise NotAccepted(not_accepted(changed, self._trusted()), _listed(changed))
        return looked

    def environment(
        self, command: str | Sequence[str], cwd: Path, environ: Mapping[str, str], given: Collection[str] = ()
    ) -> dict[str, str]:
        """What ``command``, a line of shell or a program with its arguments, is started with: of ``environ`` names in
        ``given`` were configured for it. Reads files. Raises ToolError with the line that says why it may not be
        started."""
        looked = self._accepted(command, cwd)
        looked.watch.close()
        return self._environment(command, cwd, environ, given, looked.named)

    def _environment(
        self,
        command: str | Sequence[str],
        cwd: Path,
        environ: Mapping[str, str],
        given: Collection[str],
        named: NamedFiles,
    ) -> dict[str, str]:
        if isinstance(command, str) and (missing := _only_where_commands_write(command, environ)):
            raise ToolError(missing)
        variables = program_environment(environ, given)
        with contextlib.suppress(OSError):
            private_dir(self._bytecode)
        variables["PYTHONPYCACHEPREFIX"] = str(self._bytecode)
        if not named.imports:
            variables["PYTHONSAFEPATH"] = "1"
        return harmless_git(cwd, variables, trusted=self._lets_git_out())

    def server(
        self, command: str, args: Sequence[str], env: Mapping[str, str], cwd: str | None
    ) -> tuple[str, dict[str, str]]:
        """The absolute program of a server and its environment: little of ours, and what its configuration says. Reads
        files. Raises ToolError with why it may not be started."""
        folder, program = Path(cwd or self.root), with_home(command)
        if not folder.is_dir():
            raise ToolError(f"{cwd}: no such program or folder")
        given = {name: os.environ[name] for name in _FOR_SERVERS if name in os.environ} | dict(env)
        if "/" in command:
            program = folder / program
        elif (found := find_program(command, given)) is not None:
            program = Path(found)
        elif "commands may write" in (why := why_not_found(command, given)):
            raise ToolError(why)
        if not program.is_file():
            raise ToolError(f"{command}: no such program or folder")
        if not os.access(program, os.X_OK):
            raise ToolError(f"{command} is not executable")
        return str(program), self.environment(with_environment(env, str(program), *args), folder, given, env)

    async def run(self, line: str, told: bytes, cwd: Path, environ: Mapping[str, str], seconds: float) -> Ran:
        """Runs a line of shell, which is ``told`` something as its input, to its end, or to that of its time or room;
        what it leaves running is ended with it. Whoever is cancelled meanwhile leaves nothing running."""
        try:
            looked = await asyncio.to_thread(self._accepted, line, cwd)
        except NotAccepted as error:
            return Ran(problem=str(error), changed=error.what, known=self._trusted())
        try:
            env = await asyncio.to_thread(self._environment, line, cwd, environ, (), looked.named)
            ran: Ran | None = None
            async with _until_touched(looked.watch):
                ran = await run_shell_line(line, told, cwd, env, seconds)
            if ran is not None and await asyncio.to_thread(looked.is_same):
                return ran
        except ToolError as error:
            return Ran(problem=str(error))
        finally:
            looked.watch.close()
        why = "its answer does not count: a file that it runs, or a folder on the way, changed while it ran"
        return Ran(problem=why, changed="while it ran", known=self._trusted())


def not_accepted(paths: Sequence[str], trusted: bool) -> str:
    """The line for a command whose files the user did not see as they are."""
    why = "changed since you trusted this folder" if trusted else "in a folder that you have not trusted as it is"
    return f"not started: {_listed(paths)} {why}; /trust shows it and asks"


def _listed(paths: Sequence[str]) -> str:
    names = ", ".join(plain_line(path, 120) for path in sorted(paths)[:_NAMED])
    return f"{names} and {len(paths) - _NAMED} more" if len(paths) > _NAMED else names


_BEFORE = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "{", "time", "exec", "env", "nohup"})
"""Words of a shell behind which a command begins."""


def _only_where_commands_write(line: str, environ: Mapping[str, str]) -> str:
    """Why a program that a line starts is not found; empty where all are, or are none."""
    for name in _started(line):
        why = "" if "/" in name or find_program(name, environ) else why_not_found(name, environ)
        if "commands may write" in why:
            return f"{why}. Name it by its path, or install it elsewhere"
    return ""


def _started(line: str) -> Iterator[str]:
    """The first word of each command of a line, as far as it can be read."""
    words = shlex.shlex(line.replace("\n", ";"), posix=True, punctuation_chars=True)
    words.whitespace_split, words.commenters = True, ""
    begins = True
    with contextlib.suppress(ValueError):
        for word in words:
            if word.strip("();<>|&") == "":
                begins = not word.startswith((">", "<"))
            elif begins and word not in _BEFORE and not re.match(r"\w+=", word):
                yield word
                begins = False


@contextlib.asynccontextmanager
async def _until_touched(watch: FileWatch) -> AsyncIterator[None]:
    """Ends at once what it is around where ``watch`` sees something soon after the start."""
    loop = asyncio.get_running_loop()
    until = loop.time() + _ENDED_WITHIN
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(None) as limit:

            def see() -> None:
                if watch.look() and loop.time() < until and not limit.expired():
                    limit.reschedule(0.0)

            if watch.sees:
                loop.add_reader(watch.fileno(), see)
            try:
                yield
            finally:
                if watch.sees:
                    loop.remove_reader(watch.fileno())


async def run_shell_line(line: str, told: bytes, cwd: Path, env: Mapping[str, str], seconds: float) -> Ran:
    """``Starter.run`` behind its checks."""
    output, errors = Buffer(MOST_BYTES), Buffer(MOST_BYTES)
    launch = free([shell_program(), "-c", line], env)
    try:
        end = await run_bounded(launch, cwd, seconds, output.take, errors.take, given=told)
    except ToolError as error:
        return Ran(problem=str(error))
    if end.why == "time":
        return Ran(problem=f"took more than {duration(seconds)} and was ended")
    if end.why == "room":
        return Ran(problem=f"printed more than {size(MOST_BYTES)} and was ended")
    return Ran(end.code, output.text, errors.text)
