"""Slash commands: those of every chat, with lists and questions instead of screens, and what keys do on the screen."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, assert_never

from agent_tui.commands import registry
from agent_tui.commands.chat import job_line, state_word, subagent_facts
from agent_tui.commands.info import Info
from agent_tui.commands.model import choice_line
from agent_tui.commands.registry import OpenScreen, find, load
from agent_tui.commands.sessions import (
    branch_text,
    files_text,
    first_words,
    head_of,
    leaves_text,
    moved_text,
    tree,
    words_of,
)
from agent_tui.context.accounting.lost import lost_text
from agent_tui.models.session import Branch, SessionHit
from agent_tui.plain.event_printer import ago, result_text
from agent_tui.plain.line_writer import spoken
from agent_tui.records import dataclass
from agent_tui.terminal_output import ask_secret
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import duration, plural, tokens

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.models.messages import Message
    from agent_tui.plain.event_printer import EventPrinter
    from agent_tui.plain.line_writer import LineWriter
    from agent_tui.plain.questions import Asking, Edits
    from agent_tui.plain.sending import PlainSender
    from agent_tui.store.search import SearchReader


PAGE = 20
"""Lines that are said at once of what has to be read to its end."""
MOST_SESSIONS = 500
"""Sessions of a list; the rest is found by words."""
BRANCH_WORDS = 160
"""Characters of what was said on a branch, of which half are its first words."""


def secret(asks: str) -> str:
    """What is typed and not shown; nothing where that is given up."""
    try:
        return ask_secret(f"{asks} (not shown; an empty line cancels): ").strip()
    except EOFError:
        return ""


@dataclass(eq=False)
class Lists:
    """Puts lists as questions and does what is chosen."""

    _agent: Agent
    _writer: LineWriter
    _sender: PlainSender
    _asking: Asking

    async def resume(self, search: str) -> None:
        """Another session, this project's first. ``search`` looks at titles and at what was said."""
        agent = self._agent
        store = agent.store
        if search.strip():
            found = await found_by(store.search(), search)
        else:
            found = [SessionHit(info) for info in store.sessions.all()]
        listed = [hit for hit in found if hit.session.messages and hit.session.id != agent.conversation.info.id]
        here = [hit for hit in listed if hit.session.project == str(agent.root)]
        shown = [*here, *(hit for hit in listed if hit.session.project != str(agent.root))]
        if not shown:
            self._sender.problem("No other session matches." if search else "No other sessions.")
            return
        rest = len(shown) - MOST_SESSIONS
        more = f" {rest:,} more: /resume WORDS searches them." if rest > 0 else ""
        chosen = await self._asking.pick(f"Sessions.{more}", [self._session(hit) for hit in shown[:MOST_SESSIONS]])
        if chosen is not None:
            await agent.sessions.resume(shown[chosen].session.id)

    async def page(self, info: Info) -> None:
        """Says an info page by page, and asks whether to do what needs all of it to be shown."""
        action = next(action for action in info.actions if action.whole)
        lines, said, more = replace(info, actions=()).text.split("\n"), 0, f"Show the next {PAGE}"
        self._writer.say(info.title)
        while True:
            self._writer.quote("\n".join(lines[said : said + PAGE]))
            said = min(len(lines), said + PAGE)
            rest = len(lines) - said
            # Each keeps its number to the end: who pages on does not say yes.
            rows = ["Leave it", action.label.capitalize(), *([more] if rest else [])]
            chosen = await self._asking.pick(f"{said} of {plural(len(lines), 'line')} shown.", rows)
            row = rows[chosen] if chosen is not None else ""
            if row == more:
                continue
            unseen = action.unseen(0, rest)
            if row != action.label.capitalize():
                return
            if unseen and await self._asking.pick(f"{unseen} Go on?", ["Leave it", "Trust it unseen"]) != 1:
                return
            result = await registry.run(self._agent, action.command)
            if not isinstance(result, Info):
                self._writer.say(result.text if isinstance(result, registry.Text) else "")
                return
            info, lines, said = result, replace(result, actions=()).text.split("\n"), 0

    def _session(self, hit: SessionHit) -> str:
        info = hit.session
        title = one_line(info.title or info.preview, 120) or "untitled"
        elsewhere = "" if info.project == str(self._agent.root) else f", in {one_line(Path(info.project).name, 60)}"
        who = "you" if hit.role == "user" else "the model"
        where = "On another branch" if hit.left_behind else "There"
        said = f". {where} {who} said: {one_line(hit.line, 200)}" if hit.message_id is not None else ""
        return f"{title}, {plural(info.messages, 'message')}, {ago(info.updated)}{elsewhere}{said}"

    async def model(self, search: str) -> None:
        """Another model."""
        agent = self._agent
        await agent.models.look()
        found = agent.models.list.search(search)
        used = agent.models.spec.key
        rows = [
            " ".join(choice_line(one, agent.models.list.key_of(one.provider)).split())
            + (" (in use)" if one.name == used else "")
            for one in found
        ]
        if not rows:
            self._sender.problem("No model matches. You can also type a full name, such as openai/gpt-5.")
            return
        chosen = await self._asking.pick("Models. /model WORDS searches all of them.", rows)
        if chosen is not None:
            if found[chosen].anyway:
                agent.models.accept(found[chosen].name)
            await self.use_model(found[chosen].name)

    async def use_model(self, name: str) -> None:
        """Switches to a model, and asks for its key where it lacks one."""
        result = await registry.run(self._agent, f"/model {name}")
        if isinstance(result, OpenScreen):
            await self.key(name)
        elif isinstance(result, registry.Text):
            self._writer.say(result.text)

    async def key(self, name: str) -> None:
        """Asks for the key that a model lacks, and switches to it."""
        models = self._agent.models
        if (missing := await models.missing_key(name)) is None:
            return
        if not self._sender.live:
            self._sender.problem(f"{name} needs an API key for {missing.owner}: set {missing.variable}.")
            return
        self._writer.say(f"{name} needs an API key for {missing.owner}. You can also set {missing.variable}.")
        if not (typed := await self._sender.reads.lend(lambda: secret(f"Key for {missing.owner}"))):
            self._writer.say(f"No key entered; still using {models.spec.key}.")
            return
        self._writer.say(await models.take_key(name, typed))
        await self.use_model(name)

    async def rewind(self) -> None:
        """Back to before one of the user's messages, or to the end of a branch that was left."""
        agent = self._agent
        path = agent.conversation.path
        leave = {message.id: len(path) - at for at, message in enumerate(path)}
        entries = list(tree(path, agent.branches.all()))
        rows = [_branch(entry) if isinstance(entry, Branch) else _message(entry, leave[entry.id]) for entry in entries]
        branches = sum(isinstance(entry, Branch) for entry in entries)
        title = "Rewind to before which message? The newest is first."
        if branches:
            listed = plural(branches, "branch is", "branches are")
            title = (
                "Rewind to before which message, or go to the end of which branch? The newest is first; "
                f"{listed} listed below the message sent instead."
            )
        chosen = await self._asking.pick(title, rows)
        if chosen is not None:
            await self._go(entries[chosen], leave)

    async def _go(self, entry: Message | Branch, leave: Mapping[str, int]) -> None:
        agent, head = self._agent, head_of(entry)
        facts = branch_text(entry) if isinstance(entry, Branch) else leaves_text(leave[entry.id])
        files = agent.branches.files(head)
        said = [facts, files_text(files, agent.root, "Choice 2"), lost_text(agent.branches.lost(head), would=True)]
        ways = ["Go there", "Continue in a copy that ends there; this session is unchanged"]
        if files.put:
            ways.insert(1, "Go there and restore the files")
        how = await self._asking.pick(" ".join(filter(None, said)), ways)
        if how is None:
            return
        if how == len(ways) - 1:
            await agent.sessions.fork(entry.end if isinstance(entry, Branch) else entry.id)
            self._writer.say("now in a copy that ends there; the original is unchanged, /resume.", "Note")
            return
        restore = how == 1
        moved = await (
            agent.branches.go_to(entry.end, restore)
            if isinstance(entry, Branch)
            else agent.branches.rewind(entry.id, restore)
        )
        self._writer.say(moved_text(moved, agent.root), "Note")
        self._sender.give_back(moved.text)

    def jobs(self) -> None:
        """What runs in the background, the newest last."""
        now = time.time()
        for job in self._agent.background.infos():
            said = f", last line: {one_line(job.last_line, 200)}" if job.last_line else ""
            facts = "" if job.agent is None else f", {subagent_facts(job.agent).replace(' · ', ', ')}"
            how = f"{state_word(job)}, {duration(job.seconds(now))}{facts}{said}"
            self._writer.quote(f"{job.id}: {one_line(job_line(job), 200)}: {how}")
        self._writer.say("/jobs output ID shows its output; /jobs stop, keep or end ID.")


def _message(message: Message, leave: int) -> str:
    return f"{first_words(message)}, {ago(message.created)}, {plural(leave - 1, 'message')} after it"


def _branch(branch: Branch) -> str:
    what = ("Branch", "Branch of the branch above", f"Branch at level {branch.depth + 1}")[min(branch.depth, 2)]
    size = f"{plural(len(branch.own), 'message')}, {spoken(tokens(branch.tokens, True))} tokens"
    return f"{what}: {words_of(branch, BRANCH_WORDS)}, {ago(branch.updated)}, {size}"


async def found_by(reader: SearchReader, search: str) -> list[SessionHit]:
    """Looks in a thread, which ends soon where nobody waits for it any more: the program waits for its end."""
    left = Event()

    def look() -> list[SessionHit]:
        with closing(reader):
            return list(islice(reader.hits(search, stopped=left.is_set), MOST_SESSIONS))

    try:
        return await asyncio.to_thread(look)
    finally:
        left.set()
        reader.stop()


EXCHANGES = 5
"""Messages of the user's that /history says with their answers."""
NO_COLOURS = (
    "Plain mode has no colours, so themes have no effect here. "
    "For the screen, set theme under [ui] in the configuration, or run /theme there."
)


OWN = {
    "output": ("/output [N]", "Show the whole result of the newest tool call; 2 is the one before it."),
    "history": ("/history [N | all]", "Show your last five messages with the answers."),
    "reasoning": ("/reasoning [on | off]", "Show what the model thought; on shows it after each turn."),
    "queue": ("/queue [drop | send] [N]", "List queued messages; drop removes the newest, send sends the first."),
    "steer": ("/steer TEXT", "Send a message into the running turn, before its next step."),
    "edit": ("/edit [TEXT]", "Write the message in your editor."),
}
"""Commands that only plain mode has, with what they do: what a key does on the screen."""


@dataclass(eq=False)
class Commands:
    """Runs commands and says what they answer."""

    _agent: Agent
    _writer: LineWriter
    _sender: PlainSender
    _asking: Asking
    _printer: EventPrinter
    _edits: Edits
    _leave: Callable[[], None]
    _settle: Callable[[], None]

    def __post_init__(self) -> None:
        self._lists = Lists(self._agent, self._writer, self._sender, self._asking)
        self._own: dict[str, Callable[[str], Awaitable[None]]] = {
            "output": self._output,
            "history": self._history,
            "reasoning": self._reasoning,
            "queue": self._queue,
            "steer": self._steer,
            "edit": self._edit,
        }

    def knows(self, line: str) -> bool:
        """Returns whether a line is a command of plain mode's own."""
        return line.startswith("/") and registry.split(line)[0].lower() in OWN

    async def run(self, line: str) -> None:
        """Runs ``/name args``. Raises AgentError for what cannot be done."""
        name, args = registry.split(line)
        if (own := self._own.get(name.lower())) is not None:
            await own(args)
            return
        result = await registry.run(self._agent, line)
        match result:
            case registry.Submit(text, typed):
                # The user's own words alone name files: the command's text is from a file or a server.
                await self._sender.message(text, line, typed=typed)
            case registry.Text(text, error=True):
                self._sender.problem(text)
            case Info() if self._sender.live and any(action.whole for action in result.actions):
                await self._lists.page(result)
            case Info(foreign=True):
                self._writer.quote(result.text)
            case Info():
                self._writer.say(result.text)
            case registry.Text(text, foreign=True):
                self._writer.quote(text, indent="  ")
            case registry.Text(text, then=then):
                self._writer.say(text)
                if "\n" in then and self._sender.reads.drawn:
                    self._sender.give_back(then)
                elif "\n" in then:
                    self._writer.quote(then, "The brief")
            case OpenScreen():
                await self._open(result)
            case registry.Copy(text, what):
                await self._copy(text, what)
            case registry.Quit():
                self._leave()
            case registry.Nothing():
                pass
            case _:
                assert_never(result)
        self._settle()

    async def _open(self, result: OpenScreen) -> None:
        match result.name:
            case "context":
                from agent_tui.commands.context import rows_text

                await self._agent.context.refresh()
                self._writer.say(rows_text(self._agent))
            case "compact":
                from agent_tui.commands.context_texts import compaction_picture, picture_text

                picture = await compaction_picture(self._agent, result.data, time.time())
                if picture is not None:
                    self._writer.quote(picture_text(picture), indent="  ")
            case "help":
                for line in help_lines(self._agent, result.data):
                    self._writer.quote(line)
            case "themes":
                self._writer.say(NO_COLOURS, "Note")
            case "vim":
                self._writer.say("Vim keys work on the screen only; this line has a shell's keys.", "Note")
            case "picture":
                from agent_tui.commands.chat import named_pictures

                self._writer.say("plain mode cannot show pictures. In this conversation:", "Note")
                self._writer.quote(named_pictures(self._agent), indent="  ")
            case "efforts":
                levels = "; ".join(f"{level.effort}: {level.words}" for level in self._agent.models.levels())
                self._writer.say(f"thinking is {self._agent.models.effort}. {levels}. /thinking LEVEL sets it.", "Note")
            case "sessions":
                await self._lists.resume(result.data)
            case "models":
                await self._lists.model(result.data)
            case "key":
                await self._lists.key(result.data)
            case "rewind":
                await self._lists.rewind()
            case "jobs":
                self._lists.jobs()
            case "queue":
                await self._queue("")
            case "tidy":
                from agent_tui.commands.tidy import dead_weight_in, tidy_lines

                self._writer.quote("\n".join(tidy_lines(self._agent, await dead_weight_in(self._agent))), indent="  ")
            case _:
                assert_never(result.name)

    async def _copy(self, text: str, what: str) -> None:
        from agent_tui.commands.desktop import copy_text

        if await asyncio.to_thread(copy_text, text):
            self._writer.say(f"copied {what}.", "Note")
        else:
            self._sender.problem(
                "No clipboard program found (wl-copy, xclip, xsel). Run /export md to write the conversation to a file."
            )

    # What keys do on the screen

    async def _output(self, args: str) -> None:
        found = self._printer.results
        back = int(args) if args.isdecimal() and len(args) < 6 else 0 if args else 1
        if not 1 <= back <= len(found):
            count = plural(len(found), "tool call")
            self._sender.problem(f"Usage: /output [N]. 1 is the newest; {count} since the start.")
            return
        self._writer.quote(result_text(*found[-back]), indent="  ")

    async def _history(self, args: str) -> None:
        if args != "all" and args and not (args.isdecimal() and int(args[:6]) > 0):
            self._sender.problem("Usage: /history [N | all]")
        elif not self._agent.conversation.path:
            self._writer.say("no messages yet.", "Note")
        else:
            exchanges = None if args == "all" else int(args[:6] or EXCHANGES)
            if earlier := self._printer.tell_past(exchanges):
                self._writer.say(f"{plural(earlier, 'earlier message')}: /history all.", "Note")

    async def _reasoning(self, args: str) -> None:
        if args in ("on", "off"):
            self._printer.show_reasoning = args == "on"
            self._writer.say(f"reasoning is {'shown at the end of each turn' if args == 'on' else 'hidden'}.", "Note")
            return
        if args:
            self._sender.problem("Usage: /reasoning [on | off]")
            return
        answers = [m for m in self._agent.conversation.path if m.role == "assistant"]
        reasoning = answers[-1].reasoning.strip() if answers else ""
        if reasoning:
            self._writer.quote(reasoning, "Thought")
        else:
            self._writer.say("the newest answer has no readable reasoning.", "Note")

    async def _queue(self, args: str) -> None:
        verb, _, number = args.partition(" ")
        chosen = self._sender.queue.named(number.strip()) if number else None
        if verb not in ("", "drop", "send") or (number and chosen is None):
            self._sender.problem("Usage: /queue [drop | send] [N]")
        elif verb == "drop":
            taken = self._agent.turns.take_back(chosen.id if chosen is not None else None)
            if taken is None:
                self._writer.say("the queue is empty.", "Note")
            else:
                self._writer.quote(taken.text, "Removed from the queue")
        elif verb == "send":
            if not self._agent.turns.send_waiting(chosen.id if chosen is not None else None):
                self._writer.say("nothing can be sent now.", "Note")
        else:
            self._writer.quote("\n".join(self._sender.queue.lines()) or "The queue is empty.")

    async def _steer(self, args: str) -> None:
        if args:
            await self._sender.message(args, steer=True)
        else:
            self._sender.problem("Usage: /steer TEXT")

    async def _edit(self, args: str) -> None:
        text = await self._edits(args, "message.md")
        if text is not None and text.strip():
            self._writer.quote(text, "You")
            await self._sender.message(text)
        else:
            self._writer.say("nothing written, nothing sent.", "Note")


TYPING = (
    ("Enter", "send; while the model works, queue the message"),
    ("a backslash at the end of a line", "continue the message on the next line; pasted lines are one message"),
    ("an empty line", "send queued messages"),
    ("Ctrl+C", "interrupt, or clear the line; twice on an empty line: quit"),
    ("Ctrl+D", "on an empty line: quit"),
    ("a number", "answer a question; m shows the rest of a long change or plan"),
    ("@file", "attach a file, @file:10-40 for some lines; Tab completes"),
    ("!command", "run a command; the model sees its output with your next message"),
    ("Up and Down", "earlier lines; Ctrl+R searches them"),
)
INSTEAD = {
    "copy": "Copy the last answer as Markdown.",
    "picture": "List the pictures of the conversation and their files.",
    "theme": "Colours of the screen: no effect in plain mode.",
    "vim": "Vim keys on the screen's prompt: no effect in plain mode.",
}
"""What commands do otherwise here."""


def help_lines(agent: Agent, topic: str = "") -> Iterator[str]:
    """Everything there is to know; of a ``topic`` that command alone, with all its help."""
    if (named := OWN.get(topic.lstrip("/").lower())) is not None:
        yield ": ".join(named)
        return
    command = find(topic.lstrip("/")) if topic else None
    if command is not None:
        yield f"{command.usage}: {INSTEAD.get(command.name, command.doc)}"
        return
    rows = [("Typing", ""), *TYPING, ("Commands", "")]
    rows += [(c.usage, INSTEAD.get(c.name, c.summary)) for c in load().values() if c.name not in OWN]
    rows += [(f"/{c.name}", c.description) for c in agent.project.user_commands()]
    rows += [("Commands that are keys on the screen", ""), *OWN.values()]
    wanted = topic.lower().split()
    for name, what in rows:
        if not what and not wanted:
            yield f"{name}:"
        elif what and all(word in f"{name} {what}".lower() for word in wanted):
            yield f"  {name}: {what}"
