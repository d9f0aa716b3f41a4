"""Lists to choose from: sessions, models, earlier messages; and the commands in the background."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import closing
from itertools import islice
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from agent_tui.commands.branch_words import (
    branch_text,
    files_text,
    first_words,
    head_of,
    leaves_text,
    moved_text,
    tree,
    words_of,
)
from agent_tui.commands.jobs import state_word
from agent_tui.commands.model import model_line
from agent_tui.context.accounting.lost import lost_text
from agent_tui.models.branches import Branch
from agent_tui.models.search import SessionHit
from agent_tui.plain.past import ago
from agent_tui.plain.spoken import spoken
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import duration, plural, tokens

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.models.messages import Message
    from agent_tui.plain.commands import ChatParts
    from agent_tui.plain.voice import Voice
    from agent_tui.store.search_reader import SearchReader

MOST = 500
"""Sessions of a list; the rest is found by words."""
WORDS = 160
"""Characters of what was said on a branch, of which half are its first words."""


class Lists:
    """Puts lists as questions and does what is chosen."""

    def __init__(self, agent: Agent, voice: Voice, chat: ChatParts) -> None:
        self._agent = agent
        self._voice = voice
        self._chat = chat

    async def resume(self, search: str) -> None:
        """Another session, this project's first. ``search`` looks at titles and at what was said."""
        agent = self._agent
        store = agent.store
        if search.strip():
            found = await found_by(store.search.reader(), search)
        else:
            found = [SessionHit(info) for info in store.sessions.all()]
        listed = [hit for hit in found if hit.session.messages and hit.session.id != agent.conversation.info.id]
        here = [hit for hit in listed if hit.session.project == str(agent.root)]
        shown = [*here, *(hit for hit in listed if hit.session.project != str(agent.root))]
        if not shown:
            self._chat.problem("No other session matches." if search else "There is no other session.")
            return
        rest = len(shown) - MOST
        more = f" {plural(rest, 'more matches', 'more match')}: /resume WORDS finds them." if rest > 0 else ""
        chosen = await self._chat.asking.pick(f"Sessions.{more}", [self._session(hit) for hit in shown[:MOST]])
        if chosen is not None:
            await agent.sessions.resume(shown[chosen].session.id)

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
        specs = [s for s in agent.models.all() if search.lower() in f"{s.key} {s.model}".lower()]
        rows = []
        for spec in specs:
            current = " (in use)" if spec.key == agent.models.spec.key else ""
            rows.append(" ".join(model_line(await agent.models.describe(spec.key)).split()) + current)
        chosen = await self._chat.asking.pick("Models. Any LiteLLM name works as well: /model NAME.", rows)
        if chosen is not None:
            from agent_tui.commands.registry import run
            from agent_tui.commands.result import Text

            result = await run(agent, f"/model {specs[chosen].key}")
            if isinstance(result, Text):
                self._voice.say(result.text)

    async def rewind(self) -> None:
        """Back to before one of the user's messages, or to the end of a branch that was left."""
        agent = self._agent
        path = agent.conversation.path
        leave = {message.id: len(path) - at for at, message in enumerate(path)}
        entries = list(tree(path, agent.branches.all()))
        rows = [
            self._branch(entry) if isinstance(entry, Branch) else self._message(entry, leave[entry.id])
            for entry in entries
        ]
        branches = sum(isinstance(entry, Branch) for entry in entries)
        title = "Go back to before which of your messages? The newest is first."
        if branches:
            stands = plural(branches, "branch that was left stands", "branches that were left stand")
            title = (
                "Go back to before which of your messages, or to the end of which branch? The newest is first; "
                f"{stands} below the message that came instead."
            )
        chosen = await self._chat.asking.pick(title, rows)
        if chosen is not None:
            await self._go(entries[chosen], leave)

    @staticmethod
    def _message(message: Message, leave: int) -> str:
        return f"{first_words(message)}, {ago(message.created)}, {plural(leave - 1, 'message')} after it"

    @staticmethod
    def _branch(branch: Branch) -> str:
        what = (
            "Branch"
            if not branch.depth
            else "Branch of the branch above"
            if branch.depth == 1
            else (f"Branch at level {branch.depth + 1}")
        )
        size = f"{plural(len(branch.own), 'message')}, {spoken(tokens(branch.tokens, True))} tokens"
        return f"{what}: {words_of(branch, WORDS)}, {ago(branch.updated)}, {size}"

    async def _go(self, entry: Message | Branch, leave: Mapping[str, int]) -> None:
        agent, head = self._agent, head_of(entry)
        facts = branch_text(entry) if isinstance(entry, Branch) else leaves_text(leave[entry.id])
        files = agent.branches.files(head)
        said = [facts, files_text(files, agent.root, "Choice 2"), lost_text(agent.branches.lost(head), would=True)]
        ways = ["Go there", "Continue in a copy that ends there; this session stays as it is"]
        if files.put:
            ways.insert(1, "Go there, and put the files as they were then")
        how = await self._chat.asking.pick(" ".join(filter(None, said)), ways)
        if how is None:
            return
        if how == len(ways) - 1:
            await agent.sessions.fork(entry.end if isinstance(entry, Branch) else entry.id)
            self._voice.say("now in a copy that ends there; the original is unchanged, /resume.", "Note")
            return
        restore = how == 1
        moved = await (
            agent.branches.go_to(entry.end, restore)
            if isinstance(entry, Branch)
            else agent.branches.rewind(entry.id, restore)
        )
        self._voice.say(moved_text(moved, agent.root), "Note")
        self._chat.give_back(moved.text)

    def jobs(self) -> None:
        """The commands in the background, the newest last."""
        now = time.time()
        for job in self._agent.background.infos():
            said = f", last line: {one_line(job.last_line, 200)}" if job.last_line else ""
            line = f"{job.id}: {one_line(job.command, 200)}: {state_word(job)}, {duration(job.seconds(now))}{said}"
            self._voice.quote(line)
        self._voice.say("/jobs output ID says what it wrote; /jobs stop, keep or end ID.")


async def found_by(reader: SearchReader, search: str) -> list[SessionHit]:
    """Looks in a thread, which ends soon where nobody waits for it any more: the program waits for its end."""
    left = Event()

    def look() -> list[SessionHit]:
        with closing(reader):
            return list(islice(reader.hits(search, stopped=left.is_set), MOST))

    try:
        return await asyncio.to_thread(look)
    finally:
        left.set()
        reader.stop()
