"""What ``bash`` answers for a command in the background."""

from __future__ import annotations

from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.tools.base import ToolContext, ToolOutcome
from agent_tui.tools.sandbox.policy import Launch

STARTED = "Runs in the background as "
UNREACHABLE = "The sandbox has no network: ports it opens can be reached by itself alone."
SHARED = (
    "Ports it opens are there for your other commands in the sandbox, on 127.0.0.1; the user's browser does not reach "
    'them: for that it has to run with "outside": true.'
)


async def start(command: str, launch: Launch, cwd: Path, context: ToolContext, timeout: float | None) -> ToolOutcome:
    """Starts a command and answers at once, with its id. Raises ToolError."""
    if context.jobs is None:
        launch.close()
        raise ToolError("bash: nothing can run in the background here.")
    jail, domain = context.jail, launch.domain
    job = await context.jobs.start(
        command,
        launch,
        cwd,
        context.spill_dir,
        limit=context.config.output_limit,
        secrets=context.secrets,
        jail=jail,
        network=context.network,
        timeout=timeout,
    )
    lines = [f"{STARTED}{job.id}; you will be told when it ends. It ends with the session."]
    if jail is not None and domain != "free" and jail.holds(domain):
        network = jail.policy(context.network).network if domain == "work" else "deny"
        shares = domain == "work" and jail.shares(network)
        lines += [] if network == "allow" else [SHARED] if shares else [UNREACHABLE]
    display = {"kind": "text", "summary": f"{job.id} runs in the background", "domain": domain}
    return ToolOutcome("\n".join(lines), display=display)
