"""Running the plain chat, from its first line to its exit code."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_tui import door
from agent_tui.errors import EXIT_INTERRUPTED, EXIT_OK, AgentError
from agent_tui.history import History
from agent_tui.plain.reading import Reading, Want
from agent_tui.plain.voice import Voice

if TYPE_CHECKING:
    from agent_tui.config import Settings
    from agent_tui.engine.agent import Agent
    from agent_tui.options import Options
    from agent_tui.paths import Paths
    from agent_tui.plain.chat import Chat
    from agent_tui.plain.editing import Editing

PATIENCE = 3.0
"""Seconds that proposals may take."""


class Session:
    """The two threads of the chat: this one reads, the other one runs the agent's loop. It is the listener of what is
    read: every line goes to the loop."""

    def __init__(
        self,
        make_agent: Callable[[], Awaitable[Agent]],
        options: Options,
        settings: Settings,
        paths: Paths,
        root: Path,
        why: str,
    ) -> None:
        self._make_agent = make_agent
        self._options = options
        self._settings = settings
        self._why = why
        self._live = sys.stdin.isatty()
        self._drawn = self._live and sys.stdout.isatty()
        self._root = root
        self.history = History(paths.state, str(root))
        self.editing = self._make_editing() if self._drawn else None
        self.reading = Reading(sys.stdin.fileno(), self._live, self.editing)
        self.voice = Voice(sys.stdout, self.reading.step_aside, self._spoke, self._lost)
        self.failure: AgentError | OSError | None = None
        self.farewell: list[str] = []
        self.code = EXIT_OK
        self._chat: Chat | None = None
        self._agent: Agent | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()
        self._ended = False
        self._early: list[Callable[[Chat], None]] = []
        self._starting: asyncio.Future[Agent] | None = None

    def run(self) -> int:
        """Until the user leaves; returns the exit code. Raises AgentError for what the user has to mend."""
        loop = threading.Thread(target=self._run_loop, name="agent")
        loop.start()
        self._ready.wait()
        self.reading.serve(self)
        loop.join()
        for line in self.farewell:
            door.tell(line)
        if self.failure is not None:
            raise self.failure
        return self.code

    # The listener: called in the reading thread

    def line(self, text: str) -> None:
        if self.editing is not None:
            self.editing.remember(text)
        self._tell(lambda chat: chat.line(text), heard=True)

    def over(self) -> None:
        self._tell(lambda chat: chat.over(), heard=True)

    def interrupted(self, dropped: bool) -> None:
        if self._chat is None:
            self._end_early()
        self._tell(lambda chat: chat.interrupted(dropped))

    def ended(self) -> None:
        if self._chat is None:
            self._end_early()
        self._tell(lambda chat: chat.leave())

    def _tell(self, what: Callable[[Chat], None], *, heard: bool = False) -> None:
        """Lets the loop do ``what``; what is typed before the chat is there waits for it."""

        def tell() -> None:
            if heard:
                self.reading.heard()
            if self._chat is not None:
                what(self._chat)
            else:
                self._early.append(what)

        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the chat is over
                self._loop.call_soon_threadsafe(tell)

    def _end_early(self) -> None:
        """Ctrl+C, or a signal, before the chat is there."""
        self._ended = True
        if self._loop is not None and self._starting is not None:
            self._loop.call_soon_threadsafe(self._starting.cancel)

    # The loop's thread

    def _run_loop(self) -> None:
        try:
            asyncio.run(self._main())
        except AgentError as error:
            self.failure = self.failure or error
        except Exception as error:
            import logging

            logging.getLogger(__name__).exception("The plain chat failed")
            self.failure = AgentError(f"Something went wrong: {type(error).__name__}: {error}")
        finally:
            self._ready.set()
            self.reading.want(Want("end"))

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._starting = asyncio.ensure_future(self._make_agent())
        self._ready.set()
        self.voice.say(f"agent-tui, plain mode, {self._why}. /help lists what works; Ctrl+D leaves.")
        try:
            agent = await self._starting
        except asyncio.CancelledError:
            self.code = EXIT_INTERRUPTED
            return
        self._starting, self._agent = None, agent
        try:
            await self._talk(agent)
        finally:
            session = agent.info if agent.opened else None
            used = session is not None and bool(agent.messages) and not self._options.ephemeral
            try:
                await agent.close()
            finally:
                self.farewell = agent.left_running()
                if used and session is not None:
                    self.farewell.append(f"Go on with: agent-tui --plain -r {session.id}")

    async def _talk(self, agent: Agent) -> None:
        from agent_tui.plain.chat import Chat

        chat = Chat(
            agent,
            self.voice,
            self.reading,
            self.history,
            self._edited,
            live=self._live,
            drawn=self._drawn,
            echo=not self._drawn,
        )
        agent.subscribe(chat.teller.dispatch)
        await agent.start()
        self._chat = chat
        if self._ended:
            chat.leave()
        demo = " This is the built-in DEMO model; /model chooses a real one." if agent.spec.model == "demo" else ""
        self.voice.say(f"{agent.spec.key} in {agent.root}, permission mode {agent.mode}.{demo}")
        if self._options.resume == "":
            chat.line_of_ours("/resume")
        if self._options.prompt:
            self.voice.quote(self._options.prompt, "You")
            chat.line_of_ours(self._options.prompt)
        for what in self._early:
            what(chat)
        chat.settle()
        looking = asyncio.create_task(self._look(agent), name="freshness")
        try:
            await chat.left.wait()
        finally:
            looking.cancel()
            chat.close()
            self.code = chat.code
            self._chat = None

    async def _look(self, agent: Agent) -> None:
        """Looks now and then whether files that are part of every request have changed."""
        while True:
            await asyncio.sleep(EVERY)
            if not agent.busy:
                await agent.refresh_context()

    def _lost(self, error: OSError) -> None:
        """Nobody can read what is written: the chat ends."""
        broken = isinstance(error, BrokenPipeError)
        self.failure = error if broken else AgentError(f"standard output: {error.strerror or error}")
        self._ended = True
        if self._chat is not None:
            self._chat.leave()

    def _spoke(self) -> None:
        if self._chat is not None:
            self._chat.spoke()

    # The editors of lines and of texts

    def _make_editing(self) -> Editing | None:
        from agent_tui.plain.editing import Editing

        try:
            return Editing([text for text in self.history.entries if "\n" not in text], self._proposals)
        except ImportError:  # a Python without readline: the terminal's own line will do
            self._drawn = False
            return None

    def _proposals(self, text: str) -> Sequence[str]:
        """What a line can be completed to; asked in the reading thread, answered by the loop."""
        from agent_tui.plain.proposals import proposals

        if self._loop is None or self._agent is None:
            return []
        found: Coroutine[Any, Any, Sequence[str]] = proposals(text, self._agent, self._root, self.history)
        try:
            return asyncio.run_coroutine_threadsafe(found, self._loop).result(PATIENCE)
        except (TimeoutError, RuntimeError):
            return []

    async def _edited(self, text: str, name: str) -> str | None:
        """What becomes of a text in the user's editor; None where it stays as it is. Raises AgentError."""
        if not self._drawn:
            raise AgentError("An editor needs a terminal; type the text here instead.")
        from agent_tui.commands.editing import Edited, edit_text

        found: list[Edited] = []
        command = self._settings.ui.editor

        def work() -> None:
            found.append(edit_text(text, name, command))

        await asyncio.to_thread(self.reading.lend, work)
        if found[0].problem:
            self.voice.say(found[0].problem, "Warning")
        return found[0].text


EVERY = 2.0
"""Seconds between two looks at files that are part of every request."""


def run_plain(
    make_agent: Callable[[], Awaitable[Agent]],
    options: Options,
    settings: Settings,
    paths: Paths,
    root: Path,
    why: str,
) -> int:
    """Runs the plain chat until it is left; returns the exit code. ``why`` it is plain is the first thing said.

    Raises AgentError for what the user has to mend.
    """
    if os.name != "posix":
        raise AgentError("Plain mode needs a POSIX system; agent-tui -p PROMPT works everywhere.")
    return Session(make_agent, options, settings, paths, root, why).run()
