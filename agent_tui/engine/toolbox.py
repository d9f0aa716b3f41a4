"""The tools of the running session, what they may use, and the files they changed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence

from agent_tui.engine.agent_edits import AgentEdits
from agent_tui.engine.state import AgentState, Hub
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
from agent_tui.models.messages import (
    CONTEXT_TOOL,
    NEWS,
    SEARCH_TOOL,
    AttachmentPart,
    Message,
    ToolResultPart,
)
from agent_tui.models.requests import ModelInfo, OfferedTool, SentMessage, ToolSchema
from agent_tui.models.session import FilesMoved
from agent_tui.paths import private_dir
from agent_tui.providers.catalog import patches_files, web_search
from agent_tui.text.clean import clean_line
from agent_tui.tools.base import Subagent, ToolContext, ToolMemory, User
from agent_tui.tools.children.jobs import STARTED, Jobs
from agent_tui.tools.children.work import Work
from agent_tui.tools.files.snapshots import FileHistory, ProjectKeeping, RestorePlan, Snapshotter, apply_restore
from agent_tui.tools.files.text import remember_attached
from agent_tui.tools.registry import ToolRegistry, builtin_tools
from agent_tui.tools.rules.standing import Which
from agent_tui.tools.sandbox.policy import Domain

EDIT, PATCH = "edit", "apply_patch"
_HOLDING: tuple[Which, ...] = ("deny", "ask")


class Toolbox:
    """Makes tool contexts for the current session and keeps what lives as long as it: todo list, files read."""

    def __init__(
        self, state: AgentState, jobs: Jobs, user: User, domain: Callable[[], Domain], subagent: Subagent
    ) -> None:
        self._state = state
        self._parts = parts = state.parts
        self._jobs = jobs
        self._user = user
        self._domain = domain
        self._subagent = subagent
        self._extra = extra = parts.extra_tools
        types = parts.extensions.agents.told if parts.extensions is not None else dict
        self.memory = ToolMemory()
        self._snapshots = Snapshotter(self._save, lambda: state.conversation.store.transaction())
        self._keeping = ProjectKeeping(parts.root, parts.paths.cache / "history", self._snapshots)
        self.registry = ToolRegistry(
            builtin_tools(parts.settings.tools, types),
            lambda: extra.tools() if extra is not None else [],
            [*parts.settings.tools.disabled, *((CONTEXT_TOOL,) if parts.settings.context.agent_edits == "off" else ())],
            lambda name: extra.coming(name) if extra is not None else "",
        )

    def offered(self, model: ModelInfo) -> list[OfferedTool]:
        """The tools of the next request to ``model``, in the order they are sent; none where it would not learn of
        them. Of the two ways to change a part of a file it gets the one it is trained on; who switches ``edit`` off has
        neither."""
        if model.tools is False:
            return []
        if self._parts.extensions is not None:
            self._parts.extensions.agents.refresh()
        tools = {t.schema.name: t for t in self.registry.tools() if t.group == "builtin"}
        if EDIT not in tools:
            tools.pop(PATCH, None)
        elif PATCH in tools:
            del tools[EDIT if patches_files(model.target) else PATCH]
        builtin = [OfferedTool(t.schema, t.group) for t in tools.values()] + self._searched_there(model)
        return builtin + (self._extra.offered(model.limits) if self._extra is not None else [])

    def _searched_there(self, model: ModelInfo) -> list[OfferedTool]:
        """The web search of the model's provider, where the user wants that. It cannot be asked about: a rule that
        denies it, or asks, takes it away."""
        own = web_search(model.spec, model.target) if self._parts.settings.tools.web_search == "provider" else None
        if own is None or SEARCH_TOOL in self._parts.settings.tools.disabled or self.no_search(model):
            return []
        schema = ToolSchema(SEARCH_TOOL, "Search the web, at the provider.", {}, dict(own.tool), own.tokens)
        return [OfferedTool(schema, "provider")]

    def no_search(self, model: ModelInfo) -> str:
        """Why the model gets no search of its provider's though the user wants one; empty where that is not so."""
        rules = self._parts.permissions.rules
        if self._parts.settings.tools.web_search != "provider":
            return ""
        if any(rules.for_every_call(which, SEARCH_TOOL) for which in _HOLDING):
            return "a rule denies it, or asks, which a search at the provider cannot"
        return "" if web_search(model.spec, model.target) else f"{model.spec.key} has none beside other tools"

    @property
    def starting(self) -> bool:
        """True when tools of servers that are starting may still come."""
        return self._extra is not None and self._extra.starting

    def late(self) -> list[str]:
        """The servers without whose tools the next request goes out; each is named once."""
        return self._extra.late() if self._extra is not None else []

    def context(self, calls: int = 1) -> ToolContext:
        """Returns the context of a call made now, one of so many at once: what it may use."""
        parts, session = self._parts, self._state.conversation.info.id
        return ToolContext(
            cwd=parts.cwd,
            root=parts.root,
            session_id=session,
            config=self._state.runtime.tools_config(calls),
            spill_dir=private_dir(parts.paths.cache / "output" / session),
            added_dirs=parts.added_dirs,
            before_change=self._snapshots.before_change,
            after_change=self._snapshots.after_change,
            subagent=self._subagent,
            hidden=parts.permissions.denies_reading,
            memory=self.memory,
            jail=parts.jail,
            domain=self._domain(),
            secrets=parts.secrets,
            images=self._state.image_limits,
            jobs=self._jobs,
            keeping=self._keeping,
            user=self._user,
            past=self._state.conversation.past,
            own=AgentEdits(self._state.runtime, self._state.binding.compaction),
        )

    def _save(self, message_id: str, path: str, content: bytes | None, mode: int | None) -> None:
        current = self._state.conversation
        current.store.snapshots.add(current.info.id, message_id, path, content, mode)

    def message_added(self, message: Message) -> None:
        if message.role == "user":
            self._snapshots.begin_turn(message.id)
            remember_attached(self.memory, message)

    def session_changed(self) -> None:
        self.memory = ToolMemory()

    def files(self) -> FileHistory:
        """Returns the history that is kept of the files that tools and commands changed in this session."""
        current = self._state.conversation
        return FileHistory(current.store.snapshots.all(current.info.id))

    def keep_files(self, history: FileHistory, plan: RestorePlan | None, leaving: Sequence[str]) -> None:
        """Keeps the files of a branch that is left as they are: what its messages changed, and all that ``plan`` would
        write over. ``leaving`` are the ids of its messages. Raises StoreError."""
        restored = [restore.path for restore in plan.restores] if plan is not None else []
        paths = dict.fromkeys([*history.to_keep(leaving), *restored])
        with self._state.conversation.store.transaction():
            self._snapshots.keep(paths, leaving[-1] if leaving else "")

    async def restore_files(self, plan: RestorePlan) -> FilesMoved:
        """Does what ``plan`` says."""
        problems = await asyncio.to_thread(apply_restore, plan)
        failed = {line.partition(": ")[0] for line in problems}
        return FilesMoved([r.path for r in plan.restores if str(r.path) not in failed], problems)


_STARTED = re.compile(rf"{STARTED}([ab]\d{{1,6}});")
_ENDED = re.compile(r"\b([ab]\d{1,6}) (?:(?:ended|was stopped) after |is gone)")
_GONE = {
    "a": "subagent {} is gone: it ended with the session",
    "b": "command {} is gone: it ended with the session, unless the user kept it",
}


class Background:
    """Holds what runs beside the conversation, commands and subagents, so that no compaction touches it.

    The user gets a line when one ends. The model learns it with the next message or tool result that is sent, what a
    subagent answered too; and which ones run where it may have lost sight of them: after a compaction, a rewind or a
    change of session.
    """

    def __init__(self, events: Hub) -> None:
        self._events = events
        self.jobs = Jobs(self._changed)
        self._lost_sight: set[str] = set()
        self._reopened = True
        self._carried: tuple[str, list[Work]] | None = None
        events.subscribe(self._listen)

    def _changed(self, job: Work) -> None:
        if not job.running and job in self.jobs.all():
            self._events.publish(
                Notice("info", f"{job.state_line(to_user=True)} · {clean_line(job.line)}", "background")
            )
        self._tell_count()

    def _tell_count(self) -> None:
        self._events.publish(JobsChanged(len(self.jobs.running())))

    def _listen(self, event: Event) -> None:
        match event:
            case CompactionEnded("done" | "undone") | SessionChanged(_, True) | MessagesWithdrawn():
                self._lost_sight = {job.id for job in self.jobs.running()}
                self._reopened = True
            case MessageAdded(message) if message.role == "user":
                self._reopened = False
                if self._carried is not None and self._carried[0] == message.id:
                    self._known(self._carried[1])

    def _known(self, jobs: list[Work]) -> None:
        self._carried = None
        for job in jobs:
            self._lost_sight.discard(job.id)
            if not job.running:
                job.tell()

    def _news(self) -> list[Work]:
        """Returns those of which there is something that the model does not know."""
        return [j for j in self.jobs.all() if (j.id in self._lost_sight if j.running else not j.told)]

    def attach(self, message: Message, view: Sequence[SentMessage]) -> None:
        """Lets a message of the user bring the news to a model that is sent ``view`` before it. They count as told once
        it is part of the conversation."""
        news = self._news()
        if lines := [*self._gone(view), *(work.news for work in news)]:
            message.parts.insert(0, AttachmentPart(NEWS, "text/plain", text="\n".join(lines)))
            self._carried = (message.id, news)

    def _gone(self, view: Sequence[SentMessage]) -> list[str]:
        """A line for each one that the model takes for running although it ended with an earlier run of the
        program or of the session. Looked for where the conversation is not the one of before."""
        if not self._reopened:
            return []
        said = [text for sent in view for part in sent.message.parts if (text := _said(part))]
        # Only a result that begins like this is one of ours: output may hold any words.
        started = dict.fromkeys(found[1] for text in said if (found := _STARTED.match(text)))
        ended = {id for text in said for id in _ENDED.findall(text)}
        self.jobs.count_from(max((int(id[1:]) for id in started), default=0))
        here = {job.id for job in self.jobs.all()}
        gone = [id for id in started if id not in ended and id not in here]
        return [f"background {_GONE[id[0]].format(id)}" for id in gone]

    def append(self, message: Message) -> None:
        """Lets a tool's result that is about to be stored bring them."""
        part = message.tool_result
        if part is not None and (news := self._news()):
            part.text = "\n".join([part.text, *(f"[{work.news}]" for work in news)])
            self._known(news)

    def session_ended(self) -> None:
        """Another session is in force."""
        leaving = self.jobs.session_ended()
        if leaving:
            names = ", ".join(f"{job.id} {clean_line(job.line)}" for job in leaving)
            self._events.publish(Notice("info", f"Ended with the session: {names}", "background"))
            self._tell_count()

    def infos(self) -> list[JobInfo]:
        """In the order they were started."""
        return [job.info for job in self.jobs.all()]

    def output(self, id: str) -> str:
        """The newest output. Raises ToolError when there is none of that id."""
        return self.jobs.get(id).shown

    def move(self) -> bool:
        """Moves the commands that are waited for into the background; False where there are none. Raises ToolError
        where there would be too many."""
        return self.jobs.move()

    async def stop(self, id: str) -> str:
        """Ends one; a line on how it is then. Raises ToolError when there is none of that id."""
        return (await self.jobs.stop(id, "the user")).state_line(to_user=True) + "."

    def keep(self, id: str, going_on: bool = True) -> str:
        """Sets whether a background command goes on when the program ends, and returns a line that says so. Raises
        ToolError when there is none of that id, or it has ended."""
        info = self.jobs.keep(id, going_on).info
        if not going_on:
            return f"{id} ends with the session."
        stop = f"Stop it with `kill {info.pid}`; its output is in {info.log}."
        return f"{id} keeps running when the session or agent-tui ends. {stop}"

    def left_running(self) -> list[str]:
        """After the end: a line for each one that goes on."""
        return [
            f"Still running: {clean_line(info.command)} (kill {info.pid} stops it; output: {info.log})"
            for info in self.jobs.left
        ]


def _said(part: object) -> str:
    """Returns the text of a part that may speak of background commands."""
    if isinstance(part, ToolResultPart):
        return part.text
    return part.text or "" if isinstance(part, AttachmentPart) and part.name == NEWS else ""
