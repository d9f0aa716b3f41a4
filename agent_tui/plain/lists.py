"""Lists to choose from: sessions, models, earlier messages; and the commands in the background."""

from __future__ import annotations

import asyncio
import time
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui.commands.branch_words import moved_text
from agent_tui.commands.jobs import state_word
from agent_tui.commands.model import model_line
from agent_tui.context.accounting.lost import lost_text
from agent_tui.models.search import SessionHit
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import age, duration, plural

if TYPE_CHECKING:
    from agent_tui.commands.agent_protocol import SearchesSessions
    from agent_tui.engine.agent import Agent
    from agent_tui.plain.commands import ChatParts
    from agent_tui.plain.voice import Voice

LISTED = 20
"""Rows of a list; the rest is found by words."""
MOST_FOUND = 500
"""Sessions a search looks for: a list shows far fewer."""


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
            found = await asyncio.to_thread(self._found, store.search_reader(), search)
        else:
            found = [SessionHit(info) for info in store.sessions()]
        listed = [hit for hit in found if hit.session.messages and hit.session.id != agent.info.id]
        here = [hit for hit in listed if hit.session.project == str(agent.root)]
        shown = [*here, *(hit for hit in listed if hit.session.project != str(agent.root))]
        if not shown:
            self._chat.problem("No other session matches." if search else "There is no other session.")
            return
        rest = len(shown) - LISTED
        more = f" {plural(rest, 'more matches', 'more match')}: /resume WORDS finds them." if rest > 0 else ""
        chosen = await self._chat.asking.pick(f"Sessions.{more}", [self._session(hit) for hit in shown[:LISTED]])
        if chosen is not None:
            await agent.resume(shown[chosen].session.id)

    @staticmethod
    def _found(reader: SearchesSessions, search: str) -> list[SessionHit]:
        with closing(reader):
            return list(islice(reader.hits(search), MOST_FOUND))

    def _session(self, hit: SessionHit) -> str:
        info = hit.session
        title = one_line(info.title or info.preview, 120) or "untitled"
        elsewhere = "" if info.project == str(self._agent.root) else f", in {one_line(Path(info.project).name, 60)}"
        ago = age(info.updated)
        who = "you" if hit.role == "user" else "the model"
        said = f". There {who} said: {one_line(hit.line, 200)}" if hit.message_id is not None else ""
        when = "just now" if ago == "now" else f"{ago} ago"
        return f"{title}, {plural(info.messages, 'message')}, {when}{elsewhere}{said}"

    async def model(self, search: str) -> None:
        """Another model."""
        agent = self._agent
        specs = [s for s in agent.models() if search.lower() in f"{s.key} {s.model}".lower()]
        rows = []
        for spec in specs[:LISTED]:
            current = " (in use)" if spec.key == agent.spec.key else ""
            rows.append(" ".join(model_line(await agent.describe(spec.key)).split()) + current)
        chosen = await self._chat.asking.pick("Models. Any LiteLLM name works as well: /model NAME.", rows)
        if chosen is not None:
            from agent_tui.commands.registry import run
            from agent_tui.commands.result import Text

            result = await run(agent, f"/model {specs[chosen].key}")
            if isinstance(result, Text):
                self._voice.say(result.text)

    async def rewind(self) -> None:
        """Back to before one of the user's messages, or to a branch that was left."""
        agent = self._agent
        path = agent.messages
        mine = [(at, m) for at, m in enumerate(path) if m.role == "user"][::-1][:LISTED]
        branches = list(agent.branches())[:LISTED]
        rows = [
            f"{one_line(m.text, 160) or 'an attachment'}, {plural(len(path) - at - 1, 'message')} after it"
            for at, m in mine
        ]
        for branch in branches:
            first = one_line(branch.first.text, 120) or "an attachment"
            rows.append(f"the branch that was left: {first}, {plural(len(branch.own), 'message')} of its own")
        chosen = await self._chat.asking.pick("Go back to before which of your messages? The newest is first.", rows)
        if chosen is None:
            return
        before = mine[chosen] if chosen < len(mine) else None
        head = branches[chosen - len(mine)].end if before is None else before[1].parent_id
        lost = lost_text(agent.lost_by_going(head), would=True)
        ways = ["Go there", "Go there, and put the files as they were then"]
        if before is not None:
            ways.append("Continue in a copy that ends there")
        how = await self._chat.asking.pick(f"Nothing is deleted: what is left stays as a branch. {lost}".rstrip(), ways)
        if how is None:
            return
        if how == 2 and before is not None:
            await agent.fork(before[1].id)
            self._voice.say("now in a copy that ends there; the original is unchanged, /resume.", "Note")
            return
        moved = await (agent.go_to(head, how == 1) if before is None else agent.rewind(before[1].id, how == 1))
        self._voice.say(moved_text(moved, agent.root), "Note")
        self._chat.give_back(moved.text)

    def jobs(self) -> None:
        """The commands in the background, the newest last."""
        now = time.time()
        for job in self._agent.jobs():
            said = f", last line: {one_line(job.last_line, 200)}" if job.last_line else ""
            line = f"{job.id}: {one_line(job.command, 200)}: {state_word(job)}, {duration(job.seconds(now))}{said}"
            self._voice.quote(line)
        self._voice.say("/jobs output ID says what it wrote; /jobs stop, keep or end ID.")
