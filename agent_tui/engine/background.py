"""The commands in the background: who is told what of them, and when."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent_tui.engine.state import Hub
from agent_tui.models.events import (
    CompactionEnded,
    Event,
    JobInfo,
    JobsChanged,
    MessageAdded,
    MessagesWithdrawn,
    Notice,
    SessionChanged,
)
from agent_tui.models.messages import NEWS, AttachmentPart, Message, ToolResultPart
from agent_tui.models.requests import SentMessage
from agent_tui.text.clean import clean_line
from agent_tui.tools.children.job import Job
from agent_tui.tools.children.jobs import STARTED, Jobs

_STARTED = re.compile(rf"{STARTED}b(\d{{1,6}});")
_ENDED = re.compile(r"\bb(\d{1,6}) (?:(?:ended|was stopped) after |is gone)")


class Background:
    """Holds the jobs beside the conversation, so that no compaction touches them.

    The user gets a line when one ends. The model learns it with the next message or tool result that is sent; and
    which ones run where it may have lost sight of them: after a compaction, a rewind or a change of session.
    """

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self.jobs = Jobs(self._changed)
        self._lost_sight: set[str] = set()
        self._reopened = True
        self._carried: tuple[str, list[Job]] | None = None
        hub.subscribe(self._listen)

    def _changed(self, job: Job) -> None:
        if not job.running and job in self.jobs.all():
            self._hub.publish(Notice("info", f"{job.state_line()} · {clean_line(job.line)}", "background"))
        self._tell_count()

    def _tell_count(self) -> None:
        self._hub.publish(JobsChanged(len(self.jobs.running())))

    def _listen(self, event: Event) -> None:
        match event:
            case CompactionEnded("done" | "undone") | SessionChanged(_, True) | MessagesWithdrawn():
                self._lost_sight = {job.id for job in self.jobs.running()}
                self._reopened = True
            case MessageAdded(message) if message.role == "user":
                self._reopened = False
                if self._carried is not None and self._carried[0] == message.id:
                    self._known(self._carried[1])

    def _known(self, jobs: list[Job]) -> None:
        self._carried = None
        for job in jobs:
            self._lost_sight.discard(job.id)
            if not job.running:
                job.told = True

    def _news(self) -> list[Job]:
        """Returns the commands of which there is something that the model does not know."""
        return [j for j in self.jobs.all() if (j.id in self._lost_sight if j.running else not j.told)]

    def attach(self, message: Message, view: Sequence[SentMessage]) -> None:
        """Lets a message of the user bring the news to a model that is sent ``view`` before it. They count as told once
        it is part of the conversation."""
        news = self._news()
        lines = [*self._gone(view), *(_line(job) for job in news)]
        if lines:
            message.parts.insert(0, AttachmentPart(NEWS, "text/plain", text="\n".join(lines)))
            self._carried = (message.id, news)

    def _gone(self, view: Sequence[SentMessage]) -> list[str]:
        """A line for each command that the model takes for running although it ended with an earlier run of the
        program or of the session. Looked for where the conversation is not the one of before."""
        if not self._reopened:
            return []
        said = [text for sent in view for part in sent.message.parts if (text := _said(part))]
        # Only a result that begins like this is one of ours: output may hold any words.
        started = {int(found[1]) for text in said if (found := _STARTED.match(text))}
        ended = {int(number) for text in said for number in _ENDED.findall(text)}
        self.jobs.count_from(max(started, default=0))
        here = {job.id for job in self.jobs.all()}
        gone = [f"b{number}" for number in sorted(started - ended) if f"b{number}" not in here]
        return [f"background command {id} is gone: it ended with the session, unless the user kept it" for id in gone]

    def append(self, message: Message) -> None:
        """Lets a tool's result that is about to be stored bring them."""
        part = message.tool_result
        if part is not None and (news := self._news()):
            part.text = "\n".join([part.text, *(f"[{_line(job)}]" for job in news)])
            self._known(news)

    def session_ended(self) -> None:
        """Another session is in force."""
        leaving = self.jobs.session_ended()
        if leaving:
            names = ", ".join(f"{job.id} {clean_line(job.line)}" for job in leaving)
            self._hub.publish(Notice("info", f"Ended with the session: {names}", "background"))
            self._tell_count()

    async def close(self) -> None:
        """Ends them all, but for those that are kept."""
        await self.jobs.close()

    # For the user

    def infos(self) -> list[JobInfo]:
        """In the order they were started."""
        return [job.info for job in self.jobs.all()]

    def output(self, id: str) -> str:
        """The newest output. Raises ToolError when there is none of that id."""
        return self.jobs.get(id).shown

    async def stop(self, id: str) -> str:
        """Ends one; a line on how it is then. Raises ToolError when there is none of that id."""
        return (await self.jobs.stop(id, "the user")).state_line() + "."

    def keep(self, id: str, going_on: bool = True) -> str:
        """Sets whether a background command goes on when the program ends, and returns a line that says so. Raises
        ToolError when there is none of that id, or it has ended."""
        info = self.jobs.keep(id, going_on).info
        if not going_on:
            return f"{id} ends with the session."
        return f"{id} goes on when the session or agent-tui ends: `kill {info.pid}` ends it, {info.log} has its output."

    def left_running(self) -> list[str]:
        """After the end: a line for each one that goes on."""
        return [
            f"Goes on in the background: {clean_line(info.command)} (kill {info.pid} ends it; output: {info.log})"
            for info in self.jobs.left
        ]


def _said(part: object) -> str:
    """Returns the text of a part that may speak of background commands."""
    if isinstance(part, ToolResultPart):
        return part.text
    return part.text or "" if isinstance(part, AttachmentPart) and part.name == NEWS else ""


def _line(job: Job) -> str:
    return f"background command {job.state_line()} · {job.line}"
