"""Commands in the background: how each is, its output, and keys to stop or keep it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.binding import Binding, BindingType
from textual.content import Content

from agent_tui.commands.jobs import state_word
from agent_tui.errors import AgentError
from agent_tui.models.events import Event, JobsChanged
from agent_tui.models.jobs import JobInfo, Reach
from agent_tui.text.cells import fit
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import duration
from agent_tui.ui.draw import Piece
from agent_tui.ui.screens.picker import Picker
from agent_tui.ui.screens.text import TextRows, TextScreen
from agent_tui.ui.theme import Paint

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent

EVERY = 1.0
"""Seconds between two looks at times and last lines, while the screen is open and something runs."""


PORTS: Mapping[Reach, str] = MappingProxyType(
    {
        "sandbox": "Ports it opens are the sandbox's own: its commands reach them, your browser does not.",
        "itself": "Ports it opens are its own: nothing else reaches them, your browser neither.",
    }
)


def state(job: JobInfo) -> tuple[str, str]:
    """How it is in a word or two, and its colour."""
    word = state_word(job)
    if job.state == "running":
        return word, "primary"
    if job.state == "stopped":
        return word, "warning"
    return word, "error" if job.code else "success"


class JobPicker(Picker[JobInfo, None]):
    """Enter shows the output; Ctrl+X stops, Ctrl+Y keeps beyond the session, or takes that back."""

    TITLE_TEXT = "Commands in the background"
    PLACEHOLDER = "search commands"
    HINT = "Enter output · Ctrl+X stop · Ctrl+Y keep · Esc close"
    EMPTY = "No command was started in the background."
    PREVIEW_LINES = 2
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+x", "stop", "Stop", show=False, priority=True),
        Binding("ctrl+y", "keep", "Keep", show=False, priority=True),
    ]

    def __init__(self, agent: Agent) -> None:
        super().__init__()
        self.agent = agent
        self._unsubscribe: Callable[[], None] = lambda: None
        self._said: dict[str, str] = {}

    def on_mount(self) -> None:
        self._unsubscribe = self.agent.subscribe(self._heard)
        self.set_interval(EVERY, self._tick)

    def on_unmount(self) -> None:
        self._unsubscribe()

    def _heard(self, event: Event) -> None:
        if isinstance(event, JobsChanged):
            self.call_later(self.look_again)

    def _tick(self) -> None:
        if any(job.state == "running" for job in self.shown):
            self.look_again()

    def look_again(self) -> None:
        """Shows how they are now; the cursor stays."""
        if self.is_attached and self.is_mounted:
            self.shown = self.entries(self.searched)
            self.say_empty()
            self.rows.set_count(len(self.shown))
            self.fit(self.size)

    def entries(self, search: str) -> Sequence[JobInfo]:
        """Those that run first, the newest of each first."""
        wanted = search.lower()
        found = [job for job in reversed(self.agent.background.infos()) if wanted in f"{job.id} {job.command}".lower()]
        return sorted(found, key=lambda job: job.state != "running")

    def draw(self, entry: JobInfo, width: int, paint: Paint, here: bool) -> Sequence[Piece]:
        word, color = state(entry)
        lasted = fit(duration(entry.seconds(time.time())), 12, right=True)
        room = max(8, width - 5 - 10 - 12)
        command, last = one_line(entry.command, 300), one_line(entry.last_line, 300)
        own = room if room < 40 or not last else room // 2
        return [
            (fit(entry.id, 5), paint("muted")),
            (fit(word, 10), paint(color)),
            (fit(command, own), paint("primary" if here else "foreground", bold=here)),
            (fit(f"  {last}", room - own) if own < room else "", paint("faint")),
            (lasted, paint("muted")),
        ]

    def width_of(self, entry: JobInfo) -> int:
        command, last = (cell_len(one_line(text, 300)) for text in (entry.command, entry.last_line))
        return 5 + 10 + 12 + (2 * max(command, last + 2, 20) if last else command)

    def preview(self, entry: JobInfo) -> str:
        lines = [one_line(entry.last_line, 200) or "no output yet", f"pid {entry.pid} · {one_line(entry.log, 300)}"]
        if entry.state == "running" and entry.reach in PORTS:
            lines.append(PORTS[entry.reach])
        said = self._said.get(entry.id)
        return "\n".join([said, *lines] if said else lines)

    def chosen(self, entry: JobInfo) -> None:
        self.app.push_screen(JobOutput(self.agent, entry))

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
        """What came of a key, above the facts of the row."""
        self._said = {id: text}
        self.look_again()


class JobOutput(TextScreen):
    """The newest output of one, as it comes; Ctrl+X stops it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+x", "stop", "Stop", show=False)]

    def __init__(self, agent: Agent, job: JobInfo) -> None:
        self.agent, self.job_id = agent, job.id
        super().__init__(f"{job.id} {job.command}", self._now())

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
            self.query_one("#frame").border_subtitle = Content(str(error)).plain
        self._look_again()
