"""The screens of what goes on beside the conversation: what runs in the background, messages that wait to be sent."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.binding import Binding, BindingType
from textual.content import Content

from agent_tui.commands.chat import job_line, state_word, subagent_facts
from agent_tui.errors import AgentError
from agent_tui.models.events import Event, JobInfo, JobsChanged, PortReach, QueueChanged, WaitingMessage
from agent_tui.text.cells import fit, shorten
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import duration
from agent_tui.ui.screens.picker import Picker, R, T
from agent_tui.ui.screens.text import TextRows, TextScreen
from agent_tui.ui.theme import Paint, Piece
from agent_tui.ui.widgets.queue import word

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent


EVERY = 1.0
"""Seconds between two looks at times and last lines, while the screen is open and something runs."""


PORTS: dict[PortReach, str] = {
    "sandbox": "Its ports are private to the sandbox: other commands there reach them, your browser does not.",
    "itself": "Its ports are private: nothing else reaches them, not even your browser.",
}


def state(job: JobInfo) -> tuple[str, str]:
    """Returns how a job is doing, in a word or two, and the colour for that."""
    ended = "error" if job.code else "success"
    return state_word(job), {"running": "primary", "stopped": "warning"}.get(job.state, ended)


class FollowedPicker(Picker[T, R]):
    """A list that follows what happens to what is in it: any event of the kind ``FOLLOWS``."""

    FOLLOWS: ClassVar[type[Event]]

    def __init__(self, agent: Agent) -> None:
        super().__init__()
        self.agent = agent
        self._unsubscribe: Callable[[], None] = lambda: None

    def on_mount(self) -> None:
        self._unsubscribe = self.agent.subscribe(self.heard)

    def on_unmount(self) -> None:
        self._unsubscribe()

    def heard(self, event: Event) -> None:
        if isinstance(event, self.FOLLOWS):
            self.call_later(self.look_again)

    def look_again(self, index: int | None = None) -> None:
        if self.is_attached and self.is_mounted:
            super().look_again(index)


class JobPicker(FollowedPicker[JobInfo, None]):
    """Commands and subagents. Enter shows the output, or the transcript; Ctrl+X stops, Ctrl+Y keeps a command beyond
    the session, or takes that back."""

    TITLE_TEXT = "In the background"
    PLACEHOLDER = "search"
    HINT = "Enter output · Ctrl+X stop · Ctrl+Y keep · Esc close"
    EMPTY = "Nothing runs in the background."
    PREVIEW_LINES = 2
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+x", "stop", "Stop", show=False, priority=True),
        Binding("ctrl+y", "keep", "Keep", show=False, priority=True),
    ]
    FOLLOWS = JobsChanged

    def __init__(self, agent: Agent) -> None:
        super().__init__(agent)
        self._said: dict[str, str] = {}

    def on_mount(self) -> None:
        self.set_interval(EVERY, self._tick)

    def _tick(self) -> None:
        if any(job.state == "running" for job in self.shown):
            self.look_again()

    def entries(self, search: str) -> Sequence[JobInfo]:
        """Those that run first, the newest of each first."""
        wanted = search.lower()
        jobs = reversed(self.agent.background.infos())
        found = [job for job in jobs if wanted in f"{job.id} {job_line(job)}".lower()]
        return sorted(found, key=lambda job: job.state != "running")

    def draw(self, entry: JobInfo, width: int, paint: Paint, here: bool) -> Sequence[Piece]:
        word, color = state(entry)
        lasted = fit(duration(entry.seconds(time.time())), 12, right=True)
        room = max(8, width - 5 - 10 - 12)
        command, last = one_line(job_line(entry), 300), _said(entry)
        own = room if room < 40 or not last else room // 2
        return [
            (fit(entry.id, 5), paint("muted")),
            (fit(word, 10), paint(color)),
            (fit(command, own), paint("primary" if here else "foreground", bold=here)),
            (fit(f"  {last}", room - own) if own < room else "", paint("faint")),
            (lasted, paint("muted")),
        ]

    def width_of(self, entry: JobInfo) -> int:
        command, last = cell_len(one_line(job_line(entry), 300)), cell_len(_said(entry))
        return 5 + 10 + 12 + (2 * max(command, last + 2, 20) if last else command)

    def preview(self, entry: JobInfo) -> str:
        facts = f"pid {entry.pid} · {one_line(entry.log, 300)}"
        if entry.agent is not None:
            facts = subagent_facts(entry.agent)
        lines = [one_line(entry.last_line, 200) or "no output yet", facts]
        if entry.state == "running" and entry.reach in PORTS:
            lines.append(PORTS[entry.reach])
        said = self._said.get(entry.id)
        return "\n".join([said, *lines] if said else lines)

    def refused(self) -> Container[str]:
        job = self.current
        if job is None:
            return ("Enter", "Ctrl+X", "Ctrl+Y")
        if job.state != "running":
            return ("Ctrl+X", "Ctrl+Y")
        return () if job.can_stay else ("Ctrl+Y",)

    def chosen(self, entry: JobInfo) -> None:
        self.app.push_screen(JobOutputScreen(self.agent, entry))

    def action_stop(self) -> None:
        if (entry := self.current) is not None and entry.state == "running":
            self.run_worker(self._stop(entry.id), exit_on_error=False)

    async def _stop(self, id: str) -> None:
        try:
            self._say(id, await self.agent.background.stop(id))
        except AgentError as error:
            self._say(id, str(error))

    def action_keep(self) -> None:
        if (entry := self.current) is not None:
            try:
                self._say(entry.id, self.agent.background.keep(entry.id, not entry.kept))
            except AgentError as error:
                self._say(entry.id, str(error))

    def _say(self, id: str, text: str) -> None:
        """Says what came of a key, above the facts of the row."""
        self._said = {id: text}
        self.look_again()


def _said(job: JobInfo) -> str:
    """What is told beside the command: its last line; of a subagent how far it is before that."""
    last = one_line(job.last_line, 300)
    return last if job.agent is None else " · ".join(filter(None, (subagent_facts(job.agent, whole=False), last)))


class JobOutputScreen(TextScreen):
    """The newest output of one, as it comes; Ctrl+X stops it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+x", "stop", "Stop", show=False)]

    def __init__(self, agent: Agent, job: JobInfo) -> None:
        self.agent, self.job_id = agent, job.id
        super().__init__(f"{job.id} {job_line(job)}", self._now())

    def _now(self) -> str:
        try:
            return self.agent.background.output(self.job_id) or "(no output yet)"
        except AgentError as error:
            return str(error)

    def on_mount(self) -> None:
        self.call_after_refresh(self.query_one(TextRows).action_last)
        self.set_interval(EVERY, self._look_again)

    def _look_again(self) -> None:
        text = self._now()
        if text != self.text:
            self.text = text
            self.query_one(TextRows).show(text)
            self.fit(self.size)

    def action_stop(self) -> None:
        self.run_worker(self._stop(), exit_on_error=False)

    async def _stop(self) -> None:
        try:
            await self.agent.background.stop(self.job_id)
        except AgentError as error:
            self.query_one("#frame").border_subtitle = Content(one_line(str(error)))
        self._look_again()


EXPLAINED = {
    "queued": "Will be sent after the running turn. Ctrl+S sends it before the next step instead.",
    "steer": "Will be sent before the next step of the running turn.",
    "held": "Not sent before you left this session. Send it with Ctrl+S.",
    "failed": "Could not be sent. Try again with Ctrl+S.",
    "unanswered": "Sent, but the request failed. It will be sent with your next message.",
}
PAUSED = "Paused: the turn did not finish. Send it with Ctrl+S."


class QueuePicker(FollowedPicker[WaitingMessage, str]):
    """Answers the id of one that is to be edited. The list follows what happens meanwhile."""

    TITLE_TEXT = "Queued messages"
    PLACEHOLDER = "search"
    HINT = "Enter edit · Ctrl+S send · Ctrl+X drop · Alt+↑↓ order · Esc close"
    EMPTY = "The queue is empty."
    PREVIEW_LINES = 2
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "send", "Send now", show=False, priority=True),
        Binding("ctrl+x", "drop", "Drop", show=False, priority=True),
        Binding("alt+up,shift+up", "order(-1)", "Move up", show=False, priority=True),
        Binding("alt+down,shift+down", "order(1)", "Move down", show=False, priority=True),
    ]
    FOLLOWS = QueueChanged

    def __init__(self, agent: Agent, paused: bool) -> None:
        super().__init__(agent)
        self._paused = paused
        self._said = ""

    def heard(self, event: Event) -> None:
        if isinstance(event, QueueChanged):
            self._paused = event.paused
        super().heard(event)

    def look_again(self, index: int | None = None) -> None:
        """The cursor stays on its message, wherever that is now."""
        if not self.is_attached or not self.is_mounted:
            return
        at = self.current.id if self.current is not None else ""
        now = (n for n, waits in enumerate(self.entries(self.searched)) if waits.id == at)
        super().look_again(next(now, None) if index is None else index)

    def entries(self, search: str) -> Sequence[WaitingMessage]:
        return [waits for waits in self.agent.waiting.listed if search.lower() in waits.text.lower()]

    def draw(self, entry: WaitingMessage, width: int, paint: Paint, here: bool) -> Sequence[Piece]:
        name, color = word(entry, self._paused)
        return [
            (fit(name, 12), paint(color)),
            (shorten(one_line(entry.text, 500), max(1, width - 12)), paint("foreground", bold=here)),
        ]

    def width_of(self, entry: WaitingMessage) -> int:
        return 12 + cell_len(one_line(entry.text, 500))

    def preview(self, entry: WaitingMessage) -> str:
        paused = self._paused and entry.kind in ("queued", "steer")
        lines = [self._said, PAUSED if paused else EXPLAINED[entry.kind], one_line(entry.why, 500)]
        return "\n".join(line for line in lines if line)

    def refused(self) -> Container[str]:
        if (entry := self.current) is None:
            return ("Enter", "Ctrl+S", "Ctrl+X", "Alt+↑↓")
        no = set[str]()
        if not self.agent.turns.can_send(entry):
            no |= {"Ctrl+S"}
        if not self.agent.turns.can_take_back(entry):
            no |= {"Enter", "Ctrl+X"}
        if self.searched or len(self.shown) < 2 or entry.kind == "unanswered":
            no |= {"Alt+↑↓"}
        return no

    def chosen(self, entry: WaitingMessage) -> None:
        self.dismiss(entry.id)

    def action_send(self) -> None:
        if (entry := self.current) is None:
            return
        if self.agent.turns.send_waiting(entry.id):
            if not self.agent.waiting.listed:
                self.dismiss(None)
            self._say("")
        else:
            self._say("Cannot send now: something else is running.")

    def action_drop(self) -> None:
        """It stays in the prompt's history, where every message has been since it was typed."""
        if (entry := self.current) is None:
            return
        if self.agent.turns.take_back(entry.id) is None:
            self._say("Cannot be dropped any more.")
        else:
            self._say("Dropped. Ctrl+R in the prompt finds the text.")

    def action_order(self, by: int) -> None:
        if (entry := self.current) is not None and not self.searched:
            moved = self.agent.waiting.move(entry.id, by)
            self._say("" if moved else "Already first." if by < 0 else "Already last.")

    def _say(self, text: str) -> None:
        """Says what came of a key, above what is known of the row."""
        self._said = text
        self.look_again()
        self._preview()
