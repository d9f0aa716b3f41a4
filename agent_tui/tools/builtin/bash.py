"""bash, jobs: a shell command in its own process group, and the commands that run in the background."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui.config import ToolsConfig
from agent_tui.errors import ToolError
from agent_tui.models.messages import NO_OUTPUT, Metadata
from agent_tui.models.requests import ToolSchema
from agent_tui.records import dataclass
from agent_tui.text.clean import pictured, pictured_line
from agent_tui.tools.arguments import FLAG, NUMBER, TEXT, described, parameters, reject_surrogates, validate
from agent_tui.tools.base import Intent, Keeping, ToolContext, ToolOutcome
from agent_tui.tools.children.command import LEFT_BEHIND, MAX_BYTES, CommandOrder, RunningCommand, exit_words
from agent_tui.tools.children.git_broker import GitBroker, launched
from agent_tui.tools.sandbox.policy import Domain, Launch, free
from agent_tui.tools.sandbox.start import shell
from agent_tui.tools.sandbox.words import Stopped

if TYPE_CHECKING:
    from agent_tui.tools.children.work import Work
    from agent_tui.tools.sandbox.attempts import Attempts
    from agent_tui.tools.sandbox.jail import Jail
    from agent_tui.tools.sandbox.outputs import Outputs

MAX_TIMEOUT = 3_600.0
_LOOKS = 4
"""How often a command is begun that finds out what it may write."""


@dataclass(slots=True)
class BashArguments:
    command: str
    timeout: float | None = None
    background: bool | None = None
    outside: bool = False


class BashTool:
    """Every command starts in the working directory, held to the domain of its context and without the secrets of the
    user's environment. Nothing it started outlives it. ``own`` are the user's own commands: with all that is theirs."""

    group = "builtin"

    def __init__(self, own: bool = False, config: ToolsConfig | None = None) -> None:
        self._own = own
        config = config or ToolsConfig()
        self.schema = ToolSchema(
            "bash",
            "Run a command; no stdin, fresh shell each time, background processes are ended with it. "
            f"Of output over {config.output_limit} characters the middle is saved to a file.",
            parameters(
                {
                    "command": TEXT,
                    "timeout": described(NUMBER, f"seconds, default {config.bash_timeout:g}, at most {MAX_TIMEOUT:g}"),
                    "background": FLAG,
                    "outside": described(FLAG, "leave the sandbox; asks the user"),
                },
                "command",
            ),
        )

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        args = _bash_arguments(arguments)
        shown = pictured(args.command)
        line = " ".join(shown.split())
        where = "in the background: " if args.background else ""
        return Intent(
            "command",
            where + (line if len(line) <= 100 else line[:99] + "…"),
            command=args.command,
            display={"kind": "command", "text": shown},
            outside=args.outside,
            goes_on=bool(args.background),
        )

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        """Runs a command; one that only looks is begun anew as long as nothing stops it but what it may be let do."""
        args, root = _bash_arguments(arguments), context.root.resolve()
        limit = _Limit(min(args.timeout or context.config.bash_timeout, MAX_TIMEOUT))
        more: list[Path] = []
        sockets = False
        for look in count(1):
            outcome, attempts = await self._once(args, context, limit, more, sockets)
            if outcome.stopped is None or attempts is None or context.jail is None:
                break
            found = await asyncio.to_thread(_Found.of, context.jail.outputs, attempts, outcome, root)
            again = [place for place in found.places if place not in attempts.lent.places]
            if look < _LOOKS and found.rest is None and again:
                # Nothing else stopped it, and what it wrote so far is what a build makes anew.
                more += again
                context.emit(f"\n[started again: it may now write in {_names(again, root)}]\n")
            elif look < _LOOKS and not sockets and await found.asks_for_no_more_than_sockets(context.jail):
                sockets = True
                context.emit("\n[started again: it may now use unix sockets of its own]\n")
            else:
                return replace(outcome, stopped=found.told(outcome.stopped, attempts.lent.written, root))
        return outcome

    async def _once(
        self, args: BashArguments, context: ToolContext, limit: _Limit, more: Sequence[Path], sockets: bool
    ) -> tuple[ToolOutcome, Attempts | None]:
        """Runs it. ``more`` are folders of builds it may write in; ``sockets``: it may use unix ones."""
        line = await self._ready(args, context, more, sockets)
        try:
            # What only looks changes nothing, and what the user runs is theirs.
            changes = line.launch.domain != "look" or (line.attempts is not None and line.attempts.lent.places)
            if context.keeping is not None and not self._own and changes:
                await context.keeping.before()
                line.keeping = context.keeping
            if args.background and context.jobs is None:
                raise ToolError("bash: nothing can run in the background here.")
            order = line.order(args.command, context)
            if args.background and context.jobs is not None:
                command = await context.jobs.start(order, args.timeout, context.session_id)
            else:
                command = await RunningCommand.start(order)
        except BaseException:
            line.launch.close()
            await asyncio.shield(line.over())
            raise
        if args.background:
            return _told_of(command, line.launch.domain, by_itself=context.user is not None), line.attempts
        return await self._waited_for(command, line, context, limit), line.attempts

    async def _waited_for(
        self, command: RunningCommand, line: _Line, context: ToolContext, limit: _Limit
    ) -> ToolOutcome:
        """Waits for its end, or until the user moves it into the background, where it runs on."""
        # That of a subagent stays: it would not learn of its end.
        moves = context.jobs.moved() if context.jobs is not None and context.user is not None else None
        try:
            if await command.wait(limit.left, moves, context.emit):
                return _outcome(command, line, context, limit)
            command.output.open()
            assert context.jobs is not None
            context.jobs.add(command)
        except BaseException as error:
            # Nobody else has it, also where it was about to be moved.
            if isinstance(error, asyncio.CancelledError):
                context.keep(command.output_so_far())
            await command.stop("the user")
            raise
        looks = [LOOKS_ON] if line.attempts is not None else []
        so_far = "[the user moved it there; its output so far:]"
        said = command.output.take().text.rstrip()
        return _told_of(command, line.launch.domain, *looks, so_far, said or NO_OUTPUT)

    async def _ready(self, args: BashArguments, context: ToolContext, more: Sequence[Path], sockets: bool) -> _Line:
        """The command as it is to be started, in its domain. Raises ToolError."""
        command, script = shell(args.command)
        try:
            line = await self._launched(command, args, context, more, sockets)
        except BaseException:
            if script is not None:
                os.close(script)
            raise
        if script is not None:
            line.launch.pass_fds = (*line.launch.pass_fds, script)
        return line

    async def _launched(
        self, command: list[str], args: BashArguments, context: ToolContext, more: Sequence[Path], sockets: bool
    ) -> _Line:
        jail = context.jail
        if self._own:
            from agent_tui.tools.sandbox.environment import QUIET

            return _Line(free(command, dict(os.environ) | QUIET))
        if jail is None:
            return _Line(free(command, environment()))
        cwd = context.cwd.resolve()
        if context.remotes:
            return _Line(*await launched(jail, command, context.domain, cwd, context.network, context.remotes))
        if context.first_look and context.domain == "look" and not args.background and jail.holds("look"):
            launch, attempts = await jail.look(command, cwd, more, sockets)
            return _Line(launch, attempts=attempts)
        return _Line(await jail.launch(command, context.domain, cwd, context.network))


class _Limit:
    """The time limit of a call, however often its command is begun: from its first start on."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = 0.0

    @property
    def left(self) -> float:
        self._end = self._end or time.monotonic() + self.seconds
        return max(0.0, self._end - time.monotonic())


@dataclass(slots=True)
class _Line:
    """A command to be started. ``broker`` answers its git, ``attempts`` notes what it tries, and ``keeping`` was told
    that it runs."""

    launch: Launch
    broker: GitBroker | None = None
    attempts: Attempts | None = None
    keeping: Keeping | None = None

    def order(self, command: str, context: ToolContext) -> CommandOrder:
        return CommandOrder(
            command,
            self.launch,
            context.cwd.resolve(),
            context.spill_dir,
            context.config.output_limit,
            context.secrets,
            self.over,
            context.jail,
            context.network,
            can_stay=self.attempts is None,
        )

    async def over(self) -> list[str]:
        """It has ended: what it leaves behind is written, recorded or put back. Answers what to tell."""
        if self.attempts is not None:
            self.attempts.end()
        notes = await self.broker.over() if self.broker is not None else []
        return [*notes, *(await self.keeping.after() if self.keeping is not None else [])]


@dataclass(slots=True, frozen=True)
class _Found:
    """Of what stopped a command: the ``places`` of builds that it might be let write, the ``rest`` that is none, and
    the ``rules`` by which the user could let commands write there."""

    places: tuple[Path, ...]
    rest: Stopped | None
    rules: tuple[str, ...]

    @staticmethod
    def of(outputs: Outputs, attempts: Attempts, outcome: ToolOutcome, root: Path) -> _Found:
        from agent_tui.tools.sandbox.words import stopped

        tried = attempts.end()
        wanted = outputs.wanted(tried)
        left = {path: folder for path, folder in tried.items() if path not in wanted}
        succeeded = (outcome.display or {}).get("exit_code") == 0
        rest = stopped(outcome.text, succeeded, left, root) if wanted else outcome.stopped
        folder = outputs.offered(left) if left else None
        rules = (f"edit(./{folder.relative_to(root)}/**)",) if folder is not None else ()
        return _Found(tuple(dict.fromkeys(wanted.values())), rest, rules)

    async def asks_for_no_more_than_sockets(self, jail: Jail) -> bool:
        """Returns whether all it wants are unix sockets, and nobody is there whom it could meet at one."""
        return self.rest is not None and self.rest.socket and await asyncio.to_thread(jail.no_sockets)

    def told(self, stopped: Stopped, written: Iterable[Path], root: Path) -> Stopped:
        """``stopped`` without what is let be written, and with what the command has already ``written``."""
        begun = _names(sorted(written), root)
        begun = f" (it has already written in {begun} and would start over)" if begun else ""
        left = self.rest or stopped
        return replace(stopped, what=f"{left.what}{begun}", rules=self.rules, writes=left.writes, ports=left.ports)


def _names(places: Iterable[Path], root: Path) -> str:
    return ", ".join(f"{place.relative_to(root)}{'/' * place.is_dir()}" for place in places)


LOOKS_ON = (
    "It may only look, and no question follows any more: if that stops it, call it again with background: true, "
    "which asks first."
)
"""What the model has to know of a command that would have been asked about, had it been waited for."""


def _told_of(job: RunningCommand, domain: Domain, *more: str, by_itself: bool = True) -> ToolOutcome:
    """What the model is told of a command that runs in the background; of its end it learns ``by_itself`` or not."""
    from agent_tui.tools.children.jobs import PORTS, STARTED

    end = "you will be told when it ends" if by_itself else "wait for its end with jobs, nobody tells you of it"
    lines = [f"{STARTED}{job.id}; {end}. It ends with the session."]
    if (reach := job.info.reach) in PORTS:
        lines.append(PORTS[reach])
    display = {"kind": "text", "summary": f"{job.id} runs in the background", "domain": domain}
    return ToolOutcome("\n".join([*lines, *more]), display=display)


def _bash_arguments(arguments: Metadata) -> BashArguments:
    args = validate(BashArguments, arguments, "bash")
    if not args.command.strip():
        raise ToolError("bash: command is empty.")
    if "\0" in args.command:
        raise ToolError("bash: command contains a NUL character.")
    if args.timeout is not None and not args.timeout > 0:
        raise ToolError("bash: timeout must be more than 0 seconds.")
    reject_surrogates(args.command, "bash", "command")
    return args


def environment() -> dict[str, str]:
    """The environment of a command that no sandbox has a word in: without secrets, and quiet."""
    from agent_tui.tools.sandbox.environment import child_env

    return child_env(os.environ)


def _outcome(command: RunningCommand, line: _Line, context: ToolContext, limit: _Limit) -> ToolOutcome:
    """What the model is told of a command that was waited for and has ended, and people with it."""
    from agent_tui.tools.sandbox.environment import missed
    from agent_tui.tools.sandbox.words import git_settings, kept_from, masked, not_kept, refused, stopped

    output, code, domain = command.output.take(), command.code or 0, line.launch.domain
    text, root, jobs = output.text.rstrip("\n"), context.root.resolve(), context.jobs
    ended = {
        "its time limit": f"timed out after {limit.seconds:g} s",
        "too much output": f"ended: more than {MAX_BYTES:,} bytes of output",
    }.get(command.stopped_by or "", "")
    hint = "; background: true has no limit" if jobs is not None else ""
    notes = [LEFT_BEHIND] * command.left_behind
    if ended:
        notes.append(f"[{ended} and was ended{hint}]" if command.stopped_by == "its time limit" else f"[{ended}]")
    elif code != 0:
        notes.append(f"[{exit_words(code)}]")
    notes += command.undone_notes + [f"[{command.output.problem}]"] * bool(command.output.problem)
    found: Stopped | None = None
    if line.attempts is not None:
        tried = line.attempts.end()
        # One that was ended may be half through: whether it did its work is not known.
        if not ended and code >= 0:
            serving = any(job.info.state == "running" for job in (jobs.all() if jobs is not None else ()))
            found = stopped(text, code == 0, tried, root, serving)
        if found is not None:
            line.attempts.undo()
        elif not ended:
            notes += not_kept(tried, root)
    if found is None:
        jail, network = context.jail, context.network
        shares = jail is not None and jail.shares(network)
        kept = masked(text, line.launch.masks, root) or git_settings(text, domain)
        notes += kept or refused(text, domain, network, shares, code != 0, builds=line.attempts is not None)
        notes += kept_from(jail.refused_hosts(command.begun) if jail is not None else [])
        private = jail.private_tmp if jail is not None else None
        if private is not None:
            notes += private.lines(f"{command.command[:20_000]}\n{text}", command.started, domain != "free")
        notes += missed(text, os.environ, line.launch.env) if domain != "free" and code != 0 else []
    lines = [one for one in (text, *notes, *command.end_notes) if one]
    display: Metadata = {"kind": "text", "summary": ended or f"exit code {code}", "exit_code": code, "domain": domain}
    display |= output.counted()
    failed = bool(ended) or code != 0
    return ToolOutcome("\n".join(lines) or NO_OUTPUT, is_error=failed, display=display, stopped=found)


MAX_WAIT = 600.0
"""Seconds one call may wait for a command's end."""


@dataclass(slots=True)
class JobsArguments:
    id: str | None = None
    wait: float | None = None
    stop: bool | None = None


class JobsTool:
    """New output and state of a command or subagent in the background, its end, or the list of all."""

    group = "builtin"
    schema = ToolSchema(
        "jobs",
        "New output and state of what runs in the background; without id, all.",
        parameters({"id": TEXT, "wait": described(NUMBER, "seconds, for its end"), "stop": FLAG}),
    )

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        args = _jobs_arguments(arguments)
        what = "stop" if args.stop else "wait for" if args.wait else "look at"
        return Intent(
            "internal", f"{what} {pictured_line(args.id)[:40]}" if args.id else "list what runs in the background"
        )

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        args = _jobs_arguments(arguments)
        if context.jobs is None:
            raise ToolError("jobs: nothing can run in the background here.")
        # A subagent has those that it started; the news of the others is for the session that it works for.
        owner = context.session_id if context.user is None else None
        if args.id is None:
            return _list_jobs(context.jobs.all(owner))
        job = context.jobs.get(args.id, owner)
        if args.stop:
            await context.jobs.stop(args.id, "a call")
        elif args.wait:
            await job.ended(min(args.wait, MAX_WAIT))
        return ToolOutcome(job.look(), is_error=job.failed, display={"kind": "text", "summary": job.state_line()})


def _list_jobs(jobs: Sequence[Work]) -> ToolOutcome:
    lines = [" · ".join(filter(None, (job.state_line(), job.line, job.info.last_line))) for job in jobs]
    running = sum(job.info.state == "running" for job in jobs)
    display: Metadata = {"kind": "text", "summary": f"{running} running"}
    return ToolOutcome("\n".join(lines) or "Nothing runs in the background.", display=display)


def _jobs_arguments(arguments: Metadata) -> JobsArguments:
    args = validate(JobsArguments, arguments, "jobs")
    args.id = args.id or None
    if args.id is None and (args.stop or args.wait):
        raise ToolError("jobs: which one? Give its id.")
    if args.wait is not None and not args.wait >= 0:
        raise ToolError("jobs: wait must be 0 seconds or more.")
    return args
