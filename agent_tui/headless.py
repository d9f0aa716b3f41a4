"""The same agent without a screen: one prompt in, its outcome on standard output, an exit code."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import TextIO

from agent_tui import door
from agent_tui.commands import registry
from agent_tui.engine.agent import Agent
from agent_tui.errors import EXIT_ERROR, EXIT_INTERRUPTED, EXIT_OK, EXIT_RETRYABLE, EXIT_STEP_LIMIT, ConfigError
from agent_tui.headless_output import Printer
from agent_tui.models.events import Event, Notice, StopReason, TurnEnded
from agent_tui.models.failure import Failure
from agent_tui.models.messages import AttachmentPart
from agent_tui.options import OutputFormat

log = logging.getLogger(__name__)

SERVER_PATIENCE = 20.0
"""Seconds that MCP servers get to start before the prompt is sent without them."""

EXIT_BY_REASON: dict[StopReason, int] = {
    "end": EXIT_OK,
    "length": EXIT_OK,
    "refused": EXIT_ERROR,
    "step_limit": EXIT_STEP_LIMIT,
    "interrupted": EXIT_INTERRUPTED,
    "error": EXIT_ERROR,
}


class Run:
    """One prompt, from its start to its end. ``over`` is set when there is nothing more to wait for."""

    def __init__(self, agent: Agent, printer: Printer) -> None:
        self.agent = agent
        self.printer = printer
        self.over = asyncio.Event()
        self.output_error: OSError | None = None

    def handle(self, event: Event) -> None:
        """Prints an event. When nobody reads the output any more, the turn is ended."""
        try:
            if self.output_error is None:
                self.printer.handle(event)
        except OSError as error:
            self.output_error = error
            self.agent.interrupt()
        finally:
            if isinstance(event, TurnEnded):
                self.over.set()

    def stop(self) -> None:
        """Ends the turn, or the run where no turn has begun."""
        if not self.agent.interrupt():
            self.printer.stop_reason = "interrupted"
            self.over.set()

    def finish(self) -> None:
        """Prints what comes at the end."""
        try:
            if self.output_error is None:
                self.printer.finish()
        except OSError as error:
            self.output_error = error

    async def go(self, prompt: str, piped: str = "") -> None:
        """Sends the prompt with what was piped in, and waits for the end of its turn."""
        preparing = asyncio.create_task(self._prepare(prompt, piped))
        ending = asyncio.create_task(self.over.wait())
        await asyncio.wait({preparing, ending}, return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        if self.over.is_set():
            preparing.cancel()
        else:
            self.agent.submit(*preparing.result())
            await self.over.wait()
        await self.agent.join()

    async def _prepare(self, typed: str, piped: str) -> tuple[str, list[AttachmentPart]]:
        """The message to send: a user command expanded, files and resources attached that were named with ``@`` by
        the user themselves: what is piped in, and the text of a command, may be anyone's.

        MCP servers are waited for: the one request would otherwise go without them. Raises ConfigError for a command
        that only the chat has.
        """
        agent = self.agent
        if agent.parts.extensions is not None:
            await agent.parts.extensions.ready(SERVER_PATIENCE)
        prompt = await _expanded(agent, "\n\n".join(part for part in (typed, piped) if part))
        if "@" not in typed:
            return prompt, []
        from agent_tui.commands.mentions import expand_mentions

        found, problems = await asyncio.to_thread(expand_mentions, typed, agent.cwd, agent.folders)
        resources, unread = await agent.mcp_attachments(typed)
        attached, scaled, refused = await agent.fit_images([*found, *resources])
        for problem in [*problems, *unread, *refused]:
            self.printer.problem(f"Not attached: {problem}", "attachment")
        for line in scaled:
            agent.publish(Notice("info", line, "attachment"))
        return prompt, attached


async def _expanded(agent: Agent, prompt: str) -> str:
    name, args = registry.split(prompt)
    if not prompt.startswith("/") or not name:
        return prompt
    for own in agent.user_commands():
        if own.name == name:
            text = own.expand(args)
            return text if isinstance(text, str) else await text
    if registry.find(name) is not None:
        raise ConfigError(f"/{name} is a command of the chat; -p sends a message.")
    return prompt


async def run_headless(
    make_agent: Callable[[], Awaitable[Agent]],
    prompt: str,
    output: OutputFormat,
    out: TextIO | None = None,
    *,
    piped: str = "",
) -> int:
    """Sends one prompt, followed by what was piped in, prints what comes of it and returns the exit code. SIGINT,
    SIGTERM, SIGHUP and SIGQUIT interrupt the turn.

    Raises AgentError for what the user has to mend before anything can be sent.
    """
    agent = await make_agent()
    printer = Printer(agent, output, out or sys.stdout, sys.stderr)
    run = Run(agent, printer)
    agent.subscribe(run.handle)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, run.stop)
    try:
        await agent.start()
        if not agent.read_only:
            await run.go(prompt, piped)
        run.finish()
    finally:
        await agent.close()
    if run.output_error is not None:
        log.info("Nobody reads the output: %s", run.output_error)
        if not isinstance(run.output_error, BrokenPipeError):
            door.complain(f"standard output: {run.output_error.strerror or run.output_error}")
        return EXIT_ERROR
    return exit_code(printer.stop_reason, printer.failure)


def exit_code(reason: StopReason, failure: Failure | None) -> int:
    """What a script is told about how the turn ended."""
    if failure is not None and failure.retryable:
        return EXIT_RETRYABLE
    return EXIT_BY_REASON[reason]
