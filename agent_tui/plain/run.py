"""Running the plain chat, from its first line to its exit code."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_tui import terminal_output
from agent_tui.completion import FileIndex, propose, query_at, shell_lines
from agent_tui.errors import EXIT_INTERRUPTED, EXIT_OK, AgentError, ConfigError
from agent_tui.history import PromptHistory
from agent_tui.plain.line_writer import LineWriter
from agent_tui.text.clean import one_line

if TYPE_CHECKING:
    from agent_tui.config import Settings
    from agent_tui.engine.agent import Agent
    from agent_tui.options import Options
    from agent_tui.paths import Paths
    from agent_tui.plain.chat import PlainChat
    from agent_tui.plain.reading import Reads


PATIENCE = 3.0
"""Seconds that proposals may take."""
EVERY = 2.0
"""Seconds between two looks at files that are part of every request."""

log = logging.getLogger(__name__)


class PlainSession:
    """The chat and what it is read from. It is the listener of what is read; what comes before the chat is there waits
    for it."""

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
        self._screen = self._live and sys.stdout.isatty()
        self._root = root
        self.history = PromptHistory(paths.state, str(root))
        self.writer = LineWriter(sys.stdout, self._spoke, self._lost)
        self.reads = self.writer.reads = self._make_reads()
        self.failure: AgentError | OSError | None = None
        self.farewell: list[str] = []
        self.code = EXIT_OK
        self._chat: PlainChat | None = None
        self._agent: Agent | None = None
        self._ended = False
        self._open = False
        self._unsent: list[str] = []
        self._early: list[Callable[[PlainChat], None]] = []
        self._starting: asyncio.Future[Agent] | None = None

    # The listener

    def line(self, text: str) -> None:
        if self._chat is None:
            self._unsent.append(text)
        self._tell(lambda chat: chat.line(text))

    def lines(self, text: str) -> None:
        if self._chat is None:
            self._unsent.append(text)
        self._tell(lambda chat: chat.line(text, is_message=True))

    def over(self) -> None:
        self._tell(lambda chat: chat.over())

    def interrupted(self) -> None:
        if self._chat is None:
            self._end_early()
        self._tell(lambda chat: chat.interrupted())

    def ended(self) -> None:
        if self._chat is None:
            self._end_early()
        self._tell(lambda chat: chat.leave())

    def _tell(self, what: Callable[[PlainChat], None]) -> None:
        if self._chat is not None:
            what(self._chat)
        else:
            self._early.append(what)

    def _end_early(self) -> None:
        """Ctrl+C, or a signal, before the chat is there."""
        self._ended = True
        if self._starting is not None:
            self._starting.cancel()

    # From the first line to the last

    async def run(self) -> None:
        """Until the user leaves. Raises AgentError for what the user has to mend."""
        from agent_tui.plain.reading import Listener

        self._on_signals()
        self.reads.open(Listener(self.line, self.lines, self.over, self.interrupted, self.ended))
        self._open = True
        try:
            await self._run()
        finally:
            self._close()
        for line in self.farewell:
            terminal_output.tell(line)
        if self.failure is not None:
            raise self.failure

    def _on_signals(self) -> None:
        """Signals come as events between two others. What the caller ignores (``nohup``) stays ignored."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._failed)
        loop.add_signal_handler(signal.SIGINT, self._on_interrupt)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            if signal.getsignal(number) != signal.SIG_IGN:
                loop.add_signal_handler(number, self.ended)

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What nobody caught: where something typed or a signal could not be dealt with, nothing can be done here any
        more, not even leaving."""
        error = context.get("exception")
        if "handle" not in context or not isinstance(error, Exception):
            loop.default_exception_handler(context)
            return
        log.error("Internal error", exc_info=error)
        text = one_line(str(error), 200)
        what = f"{type(error).__name__}{': ' + text if text else ''}"
        self.failure = self.failure or AgentError(f"Internal error: {what}. See the log for details.")
        self.ended()

    def _on_interrupt(self) -> None:
        if not self.reads.lent:  # else it is for the program that has the terminal
            self.interrupted()

    async def _run(self) -> None:
        self._starting = asyncio.ensure_future(self._make_agent())
        self.writer.say(f"agent-tui, plain mode, {self._why}. /help lists the commands; Ctrl+D quits.")
        try:
            agent = await self._starting
        except asyncio.CancelledError:
            self.code = EXIT_INTERRUPTED
            return
        self._starting, self._agent = None, agent
        try:
            await self._talk(agent)
        finally:
            session = agent.conversation.info if agent.opened else None
            used = session is not None and bool(agent.conversation.path) and not self._options.ephemeral
            try:
                await agent.close()
            finally:
                self.farewell = agent.background.left_running()
                if used and session is not None:
                    self.farewell.append(f"Resume with: agent-tui --plain -r {session.id}")

    async def _talk(self, agent: Agent) -> None:
        from agent_tui.plain.chat import PlainChat

        chat = PlainChat(
            agent, self.writer, self.reads, self.history, self._edited, live=self._live, echo=not self._screen
        )
        agent.subscribe(chat.printer.dispatch)
        await agent.start()
        if not self._live and (problem := await agent.models.key_problem()) is not None:
            raise ConfigError(problem)  # nobody is there to give one
        self._chat = chat
        if self._ended:
            chat.leave()
        demo = (
            " This is the built-in DEMO model; /model chooses a real one." if agent.models.spec.model == "demo" else ""
        )
        self.writer.say(f"{agent.models.spec.key} in {agent.root}, permission mode {agent.mode.now}.{demo}")
        if self._options.resume == "":
            chat.send("/resume")
        if self._options.prompt:
            self.writer.quote(self._options.prompt, "You")
            chat.send(self._options.prompt)
        self._restore_draft()
        if not chat.left.is_set():
            self._unsent.clear()
            for what in self._early:
                what(chat)
        chat.settle()
        looking = asyncio.create_task(
            look_now_and_then(lambda: agent.turns.busy, agent.context.refresh, EVERY), name="freshness"
        )
        try:
            await chat.left.wait()
        finally:
            looking.cancel()
            self._unsent.append(chat.close())
            self.code, self._chat = chat.sender.code, None
            self._close()

    def _lost(self, error: OSError) -> None:
        """Nobody can read what is written: the chat ends. Of a terminal that is gone nobody has to be told."""
        if not self._screen:
            broken = isinstance(error, BrokenPipeError)
            self.failure = error if broken else AgentError(f"cannot write standard output: {error.strerror or error}")
        self.ended()

    def _spoke(self) -> None:
        if self._chat is not None:
            self._chat.spoke()

    # The line that was not sent

    def _restore_draft(self) -> None:
        """Brings back what stood in the line when the program was left here."""
        draft = self.history.load_draft() if self.reads.drawn else ""
        if draft:
            self.reads.bring_back(draft)
            self.history.save_draft("")

    def _close(self) -> None:
        """Gives the terminal back, and keeps what was typed there and not sent."""
        if self._open:
            self._open = False
            typed = [text for text in (*self._unsent, self.reads.close()) if text.strip()]
            if typed and self._live:
                self.history.save_draft("\n".join(typed))

    # The editors of lines and of texts

    def _make_reads(self) -> Reads:
        descriptor = sys.stdin.fileno()
        if self._screen:
            from agent_tui.plain.typed import TypedLine, edits_itself

            if edits_itself(descriptor):
                return TypedLine(descriptor, self.writer, self.history.entries, self._proposals)
        from agent_tui.plain.reading import LineSource

        return LineSource(descriptor, self._live)

    async def _proposals(self, text: str) -> Sequence[str]:
        """Whole lines that go on as ``text`` does; a single one that is near it where none does."""
        from agent_tui.plain.commands import OWN

        if self._chat is None or self._agent is None or (query := query_at(text, len(text), True)) is None:
            return []
        shell = shell_lines(self.history) if query.kind == "shell" else []
        try:
            async with asyncio.timeout(PATIENCE):
                proposed = await propose(query, self._agent, FileIndex(self._root), shell)
        except TimeoutError:
            return []
        found = [text[: query.start] + p.insert for p in proposed]
        if query.kind == "command" and " " not in text:
            found += [line for name in OWN if (line := f"/{name} ").startswith(text)]
        begins = [line for line in found if line.lower().startswith(text.lower())]
        return begins or (found if len(found) == 1 else [])

    async def _edited(self, text: str, name: str) -> str | None:
        """Lets the user edit a text in their editor and returns the new text; None where it stays as it is. Raises
        AgentError."""
        if not self.reads.drawn:
            raise AgentError("An editor needs a terminal; type the text here instead.")
        from agent_tui.commands.desktop import edit_text

        command = self._settings.ui.editor
        edited = await self.reads.lend(lambda: edit_text(text, name, command))
        if edited.problem:
            self.writer.say(edited.problem, "Warning")
        return edited.text


async def look_now_and_then(busy: Callable[[], bool], look: Callable[[], Awaitable[bool]], every: float) -> None:
    """Looks whether files that are part of every request have changed, while nothing else happens. A look that fails
    is not the last one."""
    while True:
        await asyncio.sleep(every)
        if not busy():
            try:
                await look()
            except Exception:
                log.exception("Looking for changed files failed")


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

    async def chat() -> int:
        session = PlainSession(make_agent, options, settings, paths, root, why)
        await session.run()
        return session.code

    return asyncio.run(chat())
