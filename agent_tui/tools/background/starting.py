"""What ``bash`` answers for a command in the background."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from agent_tui.errors import ToolError
from agent_tui.models.jobs import Reach
from agent_tui.tools.base import ToolContext, ToolOutcome
from agent_tui.tools.sandbox.policy import Launch

STARTED = "Runs in the background as "
PORTS: Mapping[Reach, str] = MappingProxyType(
    {
        "itself": "The sandbox has no network: ports it opens can be reached by itself alone.",
        "sandbox": "Ports it opens are there for your other commands in the sandbox, on 127.0.0.1; the user's browser "
        'does not reach them: for that it has to run with "outside": true.',
    }
)
"""What the model has to know of its ports."""


async def start(
    command: str,
    launch: Launch,
    cwd: Path,
    context: ToolContext,
    timeout: float | None,
    at_end: Callable[[], Awaitable[list[str]]] | None = None,
) -> ToolOutcome:
    """Starts a command and answers at once, with its id. Raises ToolError."""
    if context.jobs is None:
        launch.close()
        raise ToolError("bash: nothing can run in the background here.")
    domain = launch.domain
    job = await context.jobs.start(
        command,
        launch,
        cwd,
        context.spill_dir,
        limit=context.config.output_limit,
        secrets=context.secrets,
        jail=context.jail,
        network=context.network,
        timeout=timeout,
        at_end=at_end,
    )
    lines = [f"{STARTED}{job.id}; you will be told when it ends. It ends with the session."]
    if (reach := job.info.reach) in PORTS:
        lines.append(PORTS[reach])
    display = {"kind": "text", "summary": f"{job.id} runs in the background", "domain": domain}
    return ToolOutcome("\n".join(lines), display=display)
