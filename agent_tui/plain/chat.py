"""The loop's part of the chat: what becomes of each line, of Ctrl+C and of the end."""

from __future__ import annotations

import asyncio
import time
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING

from agent_tui.commands.registry import is_command, split
from agent_tui.commands.turn_words import EXIT_BY_REASON
from agent_tui.errors import EXIT_ERROR, EXIT_INTERRUPTED, EXIT_RETRYABLE, AgentError
from agent_tui.models.messages import new_id
from agent_tui.plain.commands import Commands, secret
from agent_tui.plain.event_printer import EventPrinter
from agent_tui.plain.questions import Asking, AskLines, Edits
from agent_tui.plain.reading import Reads, Want
from agent_tui.plain.sending import PlainSender, QueueView
from agent_tui.records import dataclass

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.history import PromptHistory
    from agent_tui.plain.line_writer import LineWriter
    from agent_tui.say.answering import Reply


TWICE = 2.0
"""Seconds within which a second Ctrl+C leaves."""
PROMPT, MORE = "You: ", "More: "
LONG_COMMANDS = ("compact", "context")
"""Commands that keep the agent busy: what is typed meanwhile waits in the agent's queue."""


@dataclass(eq=False)
class PlainChat:
    """What somebody types, or a script says, and what becomes of it."""

    agent: Agent
    writer: LineWriter
    reads: Reads
    history: PromptHistory
    edits: Edits
    _: KW_ONLY
    live: bool
    """Somebody types, and may do so while the agent works; else lines are a script."""
    echo: bool
    """Lines have to be written, for nothing else does."""

    def __post_init__(self) -> None:
        self.left = asyncio.Event()
        queue = QueueView()
        self.asking = Asking(
            self.writer,
            self.edits,
            self._typed_ahead,
            self.settle,
            self._call_user,
            self._go_on if self.live else None,
        )
        self.printer = EventPrinter(self.agent, self.writer, self.asking, queue, self.settle, self._call_user)
        self.sender = PlainSender(self.agent, self.writer, self.reads, queue, self.asking, self.live)
        self.commands = Commands(
            self.agent, self.writer, self.sender, self.asking, self.printer, self.edits, self.leave, self.settle
        )
        self._order = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._resting: asyncio.Task[None] | None = None
        self._lines: list[str] = []
        self._unsent: dict[str, str] = {}
        self._wanted = Want("nothing")
        self._settling = False
        self._cancelled_at: float | None = None
        self._ending = False

    # What is wanted next

    def settle(self) -> None:
        """Soon, when everything that goes on now has been told: says what is to be read next."""
        if not self._settling:
            self._settling = True
            asyncio.get_running_loop().call_soon(self._settle)

    def _settle(self) -> None:
        self._settling = False
        if self.left.is_set():
            return
        if self.agent.turns.busy and self._resting is None:
            self._resting = asyncio.create_task(self._rest(), name="rest")
        question = self.asking.front
        if question is not None:
            self._ask(Want("answer", question.prompt))
        elif self.agent.turns.busy or self._tasks or self._resting is not None:
            self._ask(Want("nothing", self._prompt))
        elif self._ending:
            self.leave()
        else:
            self._ask(Want("edit", self._prompt))

    @property
    def _prompt(self) -> str:
        return MORE if self._lines else PROMPT

    def _ask(self, want: Want) -> None:
        if want != self._wanted and want.kind != "nothing" and not self.reads.drawn:
            self.writer.prompt(want.prompt)
        self._wanted = want
        self.reads.want(want)

    def spoke(self) -> None:
        """Something was written: a prompt that stood there has to be written again."""
        self._wanted = Want("nothing")
        self.settle()

    async def _rest(self) -> None:
        """Until nothing runs and nothing waits that would start by itself."""
        while self.agent.turns.busy:
            await self.agent.turns.join()
            await asyncio.sleep(0)
        self._resting = None
        reason, self.printer.stop_reason = self.printer.stop_reason, None
        if reason is not None:
            self.sender.failed(EXIT_RETRYABLE if self.printer.failure_retryable else EXIT_BY_REASON[reason])
        self.settle()

    # What comes in

    def line(self, text: str, *, is_message: bool = False) -> None:
        """A line that was read, or a paste of several. ``is_message``: it is no command and no answer."""
        self._cancelled_at = None
        self._wanted = Want("nothing")
        self.writer.typed(text if self.echo else None)
        if self.asking.front is not None and (is_message or not self._is_command(text)):
            if not is_message and self.asking.take(text) != "other":
                self.settle()
                return
            front = self.asking.front
            if not text.startswith("/") and not (isinstance(front, AskLines) and front.ask.kind == "stop"):
                self.writer.say("Not an answer, so queued as a message. The question is still open.", "Note")
        if is_message:
            self.send("\n".join([*self._lines, text]).strip("\n"), is_message=True)
            self._lines.clear()
        else:
            self._take(text)
        self.settle()

    def _is_command(self, text: str) -> bool:
        return self.commands.knows(text) or is_command(text, self.agent)

    def _typed_ahead(self) -> None:
        """A question is about to be put: what was typed before is no answer to it."""
        text = self.reads.typed_ahead()
        if text:
            self._take(text)

    def _call_user(self) -> None:
        """Something waits for the user, who may have gone for a walk."""
        if self.reads.drawn and self.agent.settings.ui.notifications:
            self.writer.ring()

    def _take(self, text: str) -> None:
        if text.endswith("\\") and not text.endswith("\\\\"):
            self._lines.append(text[:-1])
            return
        lines, self._lines = [*self._lines, text], []
        text = "\n".join(lines).strip("\n")
        first = text.split("\n", 1)[0]
        if len(lines) == 1 and first.startswith(("/", "!")) and "\n" in text:
            # A paste of commands is several commands, not one with line breaks in it.
            for each in text.split("\n"):
                self.send(each)
        else:
            self.send(text)

    def send(self, text: str, *, is_message: bool = False) -> None:
        """Sends a message, or runs a command unless it ``is_message``."""
        if not text.strip():
            if not self.agent.turns.busy and self.agent.turns.send_waiting():
                self.settle()
            return
        self.history.add(text)
        key = new_id("line")
        self._unsent[key] = text
        task = asyncio.create_task(self._handle(text, key, is_message), name=key)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _go_on(self, question: AskLines, reply: Reply) -> None:
        """What stopped the turn is answered; the question is put again where that could not be done."""
        way = reply.choice.way if reply.choice is not None else None

        async def answer() -> None:
            stops, model = self.agent.stops, self.agent.models.spec.key
            written = reply.text
            if way is not None and way.models:
                self.asking.closed(question.request_id)
                await self.commands.run("/model")
                if self.agent.models.spec.key == model:
                    self.asking.put_back(question)
                return
            if way is not None and way.secret:
                written = await self.reads.lend(lambda: secret(way.asks))
            if way is None or written or not way.asks:
                await stops.answer(question.request_id, way.key if way is not None else "", written)
            else:
                question.put()

        async def run() -> None:
            try:
                await answer()
            except AgentError as error:
                self.writer.quote(str(error), "Error")
                question.put()

        task = asyncio.create_task(run(), name="go on")
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.writer.quote(str(error) or type(error).__name__, "Error")
            self.sender.failed(EXIT_ERROR)
        self.settle()

    async def _handle(self, text: str, key: str, is_message: bool) -> None:
        agent = self.agent
        try:
            if not is_message and self._is_command(text):
                del self._unsent[key]
                if split(text)[0] in LONG_COMMANDS or self.asking.front is not None:
                    await self.commands.run(text)
                else:
                    async with self._order:
                        await self.commands.run(text)
            elif not is_message and text.startswith("!") and text[1:].strip():
                del self._unsent[key]
                await agent.shell(text[1:].strip())
            else:
                async with self._order:
                    await self.sender.message(text)
                del self._unsent[key]
        except AgentError as error:
            self.sender.problem(str(error))
            if self._unsent.pop(key, None) is not None:
                self.sender.give_back(text)

    def interrupted(self) -> None:
        """Ctrl+C: gives up a question of ours, interrupts, drops the line, and twice on an empty one leaves. What was
        typed while the agent worked is kept when it is interrupted."""
        now, before = time.monotonic(), self._cancelled_at
        self._cancelled_at = None
        self._broken()
        self._wanted = Want("nothing")
        if self.asking.drop_own():
            self.settle()
            return
        if self.agent.turns.busy:
            self.agent.turns.interrupt()
            self.writer.say("Interrupting…")
        elif not self.live:
            self.sender.code = EXIT_INTERRUPTED
            self.leave()
        elif self.reads.drop() or self._lines:
            self._lines.clear()
            self.writer.say("Line cleared.")
        elif before is not None and now - before <= TWICE:
            self.leave()
        else:
            self._cancelled_at = now
            self.writer.say("Press Ctrl+C again to quit.")
        self.settle()

    def over(self) -> None:
        """Nothing more can be read, or Ctrl+D: a script is answered to its end, somebody who types leaves."""
        self._broken()
        if self._lines:
            self._take("")
        self._ending = True
        if self.live:
            self.leave()
            return
        self.asking.give_up()
        self.settle()

    def _broken(self) -> None:
        if not self.reads.drawn:
            self.writer.broken()

    def leave(self) -> None:
        """Ends the chat with everything stored."""
        self.writer.end_answer()
        self.reads.want(Want("end"))
        self.left.set()

    def close(self) -> str:
        """The chat is over; returns what was typed and neither sent nor stored."""
        self.printer.close()
        for task in [*self._tasks, *([self._resting] if self._resting is not None else [])]:
            task.cancel()
        return "\n".join([*self._unsent.values(), *self._lines])
