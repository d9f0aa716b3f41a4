"""Slash commands: those of every chat, with lists and questions instead of screens, and what keys do on the screen."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from agent_tui.commands import registry
from agent_tui.commands import result as results
from agent_tui.commands.result import OpenScreen
from agent_tui.plain.lists import Lists
from agent_tui.text.numbers import plural

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.plain.asking import Asking, Edits
    from agent_tui.plain.queue import Queue
    from agent_tui.plain.teller import Teller
    from agent_tui.plain.voice import Voice

EXCHANGES = 5
"""Messages of the user's that /history says with their answers."""
NO_COLOURS = (
    "Themes are colours of the screen; plain mode has none, so this has no effect here. "
    "A theme for the screen: theme under [ui] in the configuration, or /theme there."
)


class ChatParts(Protocol):
    """What commands need of the chat around them."""

    asking: Asking
    queue: Queue
    teller: Teller

    async def message(self, text: str, named: str | None = None, steer: bool = False) -> None:
        """Sends a message."""

    def problem(self, text: str) -> None:
        """Says what cannot be done."""

    def leave(self) -> None:
        """Ends the chat."""

    def give_back(self, text: str) -> None:
        """Lets a text stand in the next line, to be changed and sent."""

    def settle(self) -> None:
        """Something may be wanted now that was not before."""


@dataclass(slots=True, frozen=True)
class Own:
    """A command that only plain mode has: what a key does on the screen."""

    usage: str
    what: str
    run: Callable[[str], Awaitable[None]]


class Commands:
    """Runs commands and says what they answer."""

    def __init__(self, agent: Agent, voice: Voice, chat: ChatParts, edits: Edits) -> None:
        self._agent = agent
        self._voice = voice
        self._chat = chat
        self._edits = edits
        self._lists = Lists(agent, voice, chat)
        self.own: dict[str, Own] = {
            "output": Own("/output [N]", "All that the newest tool call returned; 2 the one before it.", self._output),
            "history": Own(
                "/history [N | all]", "What was said: your last five messages with the answers.", self._history
            ),
            "reasoning": Own("/reasoning [on | off]", "What the model thought; on says it each time.", self._reasoning),
            "queue": Own(
                "/queue [drop | send] [N]", "What waits; drop takes the newest back, send sends.", self._queue
            ),
            "steer": Own("/steer TEXT", "A message that goes in at the next step of the running turn.", self._steer),
            "edit": Own("/edit [TEXT]", "Writes the message in your editor.", self._edit),
        }

    def knows(self, line: str) -> bool:
        """Whether it is a command of plain mode's own."""
        return line.startswith("/") and registry.split(line)[0].lower() in self.own

    async def run(self, line: str) -> None:
        """Runs ``/name args``. Raises AgentError for what cannot be done."""
        name, args = registry.split(line)
        own = self.own.get(name.lower())
        if own is not None:
            await own.run(args)
            return
        result = await registry.run(self._agent, line)
        match result:
            case results.Submit(text):
                # The user's own words alone name files: the command's text is from a file or a server.
                await self._chat.message(text, line)
            case results.Text(text, _, True):
                self._chat.problem(text)
            case results.Text(text, foreign=True):
                self._voice.quote(text, indent="  ")
            case results.Text(text):
                self._voice.say(text)
            case OpenScreen():
                await self._open(result)
            case results.Copy(text, what):
                await self._copy(text, what)
            case results.Quit():
                self._chat.leave()
            case _:
                pass
        self._chat.settle()

    async def _open(self, result: OpenScreen) -> None:
        match result.name:
            case "context":
                from agent_tui.commands.context_parts import rows_text

                await self._agent.context.refresh()
                self._voice.say(rows_text(self._agent))
            case "help":
                self._help(result.data)
            case "themes":
                self._voice.say(NO_COLOURS, "Note")
            case "vim":
                self._voice.say("vim's keys are the screen's; the line here has the keys of a shell.", "Note")
            case "picture":
                from agent_tui.commands.pictures import named_pictures

                self._voice.say("pictures are not shown as text. In this conversation:", "Note")
                self._voice.quote(named_pictures(self._agent), indent="  ")
            case "efforts":
                levels = "; ".join(f"{level.effort}: {level.words}" for level in self._agent.models.levels())
                self._voice.say(f"thinking is {self._agent.models.effort}. {levels}. /thinking LEVEL sets it.", "Note")
            case "sessions":
                await self._lists.resume(result.data)
            case "models":
                await self._lists.model(result.data)
            case "rewind":
                await self._lists.rewind()
            case "jobs":
                self._lists.jobs()
            case _:
                self._voice.say(f"there is no {result.name} in plain mode; /help lists what works.", "Warning")

    def _help(self, topic: str) -> None:
        from agent_tui.plain.help import help_lines

        own = [(command.usage, command.what) for command in self.own.values()]
        for line in help_lines(self._agent, own, topic):
            self._voice.quote(line)

    async def _copy(self, text: str, what: str) -> None:
        from agent_tui.commands.clipboard import copy_text

        if await asyncio.to_thread(copy_text, text):
            self._voice.say(f"copied {what}.", "Note")
        else:
            self._chat.problem(
                "There is no program for the clipboard here (wl-copy, xclip, xsel); /export md writes the conversation "
                "to a file."
            )

    # What keys do on the screen

    async def _output(self, args: str) -> None:
        from agent_tui.plain.result_words import result_text

        found = self._chat.teller.results
        back = int(args) if args.isdecimal() and len(args) < 6 else 0 if args else 1
        if not 1 <= back <= len(found):
            count = plural(len(found), "tool call")
            self._chat.problem(f"/output takes a number, 1 is the newest; there were {count} since the start.")
            return
        self._voice.quote(result_text(*found[-back]), indent="  ")

    async def _history(self, args: str) -> None:
        if args != "all" and args and not (args.isdecimal() and int(args[:6]) > 0):
            self._chat.problem("/history takes nothing, a number of your messages, or all.")
        elif not self._agent.conversation.path:
            self._voice.say("nothing was said yet.", "Note")
        else:
            exchanges = None if args == "all" else int(args[:6] or EXCHANGES)
            if earlier := self._chat.teller.tell_past(exchanges):
                self._voice.say(f"{plural(earlier, 'message is', 'messages are')} earlier: /history all.", "Note")

    async def _reasoning(self, args: str) -> None:
        if args in ("on", "off"):
            self._chat.teller.show_reasoning = args == "on"
            self._voice.say(f"reasoning is {'said at the end of each turn' if args == 'on' else 'not said'}.", "Note")
            return
        if args:
            self._chat.problem("/reasoning takes nothing, on or off.")
            return
        answers = [m for m in self._agent.conversation.path if m.role == "assistant"]
        reasoning = answers[-1].reasoning.strip() if answers else ""
        if reasoning:
            self._voice.quote(reasoning, "Thought")
        else:
            self._voice.say("the newest answer has no reasoning that can be read.", "Note")

    async def _queue(self, args: str) -> None:
        verb, _, number = args.partition(" ")
        chosen = self._chat.queue.named(number.strip()) if number else None
        if verb not in ("", "drop", "send") or (number and chosen is None):
            self._chat.problem("/queue takes nothing, or drop or send, with the number of a message if you like.")
        elif verb == "drop":
            taken = self._agent.turns.take_back(chosen.id if chosen is not None else None)
            if taken is None:
                self._voice.say("nothing waits.", "Note")
            else:
                self._voice.quote(taken.text, "Taken back")
        elif verb == "send":
            if not self._agent.turns.send_waiting(chosen.id if chosen is not None else None):
                self._voice.say("nothing can be sent now.", "Note")
        else:
            self._voice.quote("\n".join(self._chat.queue.lines()) or "Nothing waits.")

    async def _steer(self, args: str) -> None:
        if args:
            await self._chat.message(args, steer=True)
        else:
            self._chat.problem("/steer needs a message.")

    async def _edit(self, args: str) -> None:
        text = await self._edits(args, "message.md")
        if text is not None and text.strip():
            self._voice.quote(text, "You")
            await self._chat.message(text)
        else:
            self._voice.say("nothing was written, nothing is sent.", "Note")
