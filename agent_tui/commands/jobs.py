"""The command about commands in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_tui.commands.registry import command
from agent_tui.commands.result import CommandResult, OpenScreen, Text
from agent_tui.text.clean import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_tui.engine.agent import Agent
    from agent_tui.models.events import JobInfo


def _choices(agent: Agent) -> Iterable[tuple[str, str]]:
    for job in agent.background.infos():
        yield f"output {job.id}", one_line(job.command, 60)
        if job.state == "running":
            line = one_line(job.command, 60)
            yield f"stop {job.id}", line
            yield (f"end {job.id}", f"with the session: {line}") if job.kept else (f"keep {job.id}", f"running: {line}")


def state_word(job: JobInfo) -> str:
    """Returns how a job is doing, in a word or two."""
    if job.state == "running":
        return "kept" if job.kept else "running"
    if job.state == "stopped":
        return "stopped"
    code = job.code or 0
    return f"signal {-code}" if code < 0 else f"exit {code}"


@command("jobs", args="[output ID | stop ID | keep ID | end ID]", choices=_choices)
async def jobs(agent: Agent, args: str) -> CommandResult:
    """Commands in the background: output, stop, keep beyond the end.

    They end with the session. /jobs keep ID lets one go on, and says how to end it then; /jobs end ID takes that back.
    """
    what, _, id = args.partition(" ")
    id = id.strip()
    if not args:
        return OpenScreen("jobs") if agent.background.infos() else Text("No commands run in the background.")
    if not id or what not in ("output", "stop", "keep", "end"):
        return Text("/jobs takes nothing, or output, stop, keep or end with an id.", error=True)
    if what == "output":
        output = agent.background.output(id)
        return Text(output, foreign=True) if output else Text("No output yet.")
    if what == "stop":
        return Text(await agent.background.stop(id))
    return Text(agent.background.keep(id, what == "keep"))
