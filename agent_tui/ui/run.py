"""Running the chat, from its first frame to its exit code."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui import terminal_output
from agent_tui.config import Settings
from agent_tui.errors import EXIT_ERROR, EXIT_OK
from agent_tui.options import Served
from agent_tui.paths import Paths
from agent_tui.ui.app import AgentApp
from agent_tui.ui.chat.chat import AgentFactory

if TYPE_CHECKING:
    from agent_tui.ui.agent_protocol import ChatAgent


def run_ui(
    agent_factory: AgentFactory,
    settings: Settings,
    paths: Paths,
    root: Path,
    *,
    prompt: str = "",
    choose: bool = False,
    problems: Sequence[str] = (),
    again: Sequence[str] = ("agent-tui",),
    served: Served | None = None,
) -> int:
    """Runs the chat until the user leaves; returns the exit code. ``again`` is how the program was called, as far as
    that matters for going on with a session. ``choose``: the user is asked which session to go on with, before
    ``prompt`` is sent. ``served``: on a page of the browser instead of the terminal.

    ``agent_factory`` is awaited after the first frame and returns an agent that is not started. An AgentError from
    it or from the start leaves the screen, and its line goes to stderr. ``problems`` are lines to show at the start.
    """

    def last_words(agent: ChatAgent) -> list[str]:
        from shutil import get_terminal_size

        from agent_tui.ui.chat.leaving import scrollback, way_back

        said = scrollback(agent, get_terminal_size().columns) if settings.ui.scrollback else []
        return [*said, *([""] if said else []), *way_back(agent, again)]

    for name in ("COLUMNS", "LINES"):
        # The terminal knows its size. One that was exported, by a shell or by Python's readline in whatever started
        # this, would win over it and never change.
        os.environ.pop(name, None)
    app = AgentApp(
        agent_factory,
        settings,
        paths,
        root,
        prompt=prompt,
        choose=choose,
        problems=problems,
        detect_colors=True,
        last_words=last_words,
        served=served,
    )

    async def main() -> int:
        try:
            code = await app.run_async(mouse=settings.ui.mouse)
        finally:
            await app.close_agent()
        return code if code is not None else app.return_code or EXIT_OK

    try:
        code = asyncio.run(main())
    except KeyboardInterrupt:
        code = EXIT_OK
    except Exception as error:
        app.net.caught(error)
        code = EXIT_ERROR
    for line in app.farewell:
        terminal_output.tell(line)
    if app.failure is not None:
        terminal_output.complain(str(app.failure))
        return app.failure.exit_code
    return code
