"""jobs: the commands that run in the background."""

from __future__ import annotations

from dataclasses import dataclass

from agent_tui.errors import ToolError
from agent_tui.models.messages import Metadata
from agent_tui.models.requests import ToolSchema
from agent_tui.text.clean import pictured_line
from agent_tui.tools.arguments import validate
from agent_tui.tools.base import BackgroundJob, BackgroundJobs, Intent, ToolContext, ToolOutcome

MAX_WAIT = 600.0
"""Seconds one call may wait for a command's end."""


@dataclass(slots=True)
class JobsArguments:
    id: str | None = None
    wait: float | None = None
    stop: bool | None = None


class JobsTool:
    """New output and state of a background command, its end, or the list of all."""

    group = "builtin"
    schema = ToolSchema(
        "jobs",
        "New output and state of a command bash runs in the background; without id, all.",
        {
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "wait": {"type": "number", "description": "seconds, for its end"},
                "stop": {"type": "boolean"},
            },
        },
    )

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        args = _arguments(arguments)
        what = "stop" if args.stop else "wait for" if args.wait else "look at"
        return Intent("internal", f"{what} {pictured_line(args.id)[:40]}" if args.id else "list background commands")

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        args = _arguments(arguments)
        if context.jobs is None:
            raise ToolError("jobs: nothing can run in the background here.")
        if args.id is None:
            return _list(context.jobs)
        job = context.jobs.get(args.id)
        if args.stop:
            await context.jobs.stop(args.id, "a call")
        elif args.wait:
            await job.ended(min(args.wait, MAX_WAIT))
        return ToolOutcome(job.look(), is_error=job.failed, display={"kind": "text", "summary": job.state_line()})


def _list(jobs: BackgroundJobs) -> ToolOutcome:
    found = jobs.all()
    lines = [_row(job) for job in found]
    running = sum(job.info.state == "running" for job in found)
    display: Metadata = {"kind": "text", "summary": f"{running} running"}
    return ToolOutcome("\n".join(lines) or "No background commands.", display=display)


def _row(job: BackgroundJob) -> str:
    last = job.info.last_line
    return f"{job.state_line()} · {job.line}{f' · {last}' if last else ''}"


def _arguments(arguments: Metadata) -> JobsArguments:
    args = validate(JobsArguments, arguments, "jobs")
    args.id = args.id or None
    if args.id is None and (args.stop or args.wait):
        raise ToolError("jobs: which one? Give its id.")
    if args.wait is not None and not args.wait >= 0:
        raise ToolError("jobs: wait must be 0 seconds or more.")
    return args
