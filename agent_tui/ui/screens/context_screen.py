"""The context screen at a step of the past: which one is shown, and what."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Container
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.worker import Worker, WorkerState

from agent_tui.commands import context_texts as texts
from agent_tui.commands.report import ContextReport
from agent_tui.context.chart import Course
from agent_tui.context.compaction.notices import EXACT_ASKED, EXACT_OFF, exact_text
from agent_tui.context.timeline import NOW, projected
from agent_tui.errors import AgentError
from agent_tui.models.events import CompactionEnded, ContextChanged, Event, SessionChanged
from agent_tui.ui.safety import Guarded
from agent_tui.ui.screens.compaction import DONE, WOULD, CompactionScreen
from agent_tui.ui.screens.context_edits import Answer, ContextEdits, Edit
from agent_tui.ui.screens.context_lines import RowLine
from agent_tui.ui.screens.context_rows import SIGNS
from agent_tui.ui.screens.context_view import ContextView
from agent_tui.ui.screens.timeline import TimelineView

if TYPE_CHECKING:
    from agent_tui.commands.past_words import PastView
    from agent_tui.context.compaction.plan import CompactionFigures
    from agent_tui.context.past import SessionPast
    from agent_tui.engine.agent import Agent
    from agent_tui.models.context import ContextUsage


class Travel:
    """The place in a session's time that the screen shows. ``at`` is the number of the step, None for now."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.session = agent.conversation.info.id
        self.history: SessionPast = agent.context.history()
        self.timeline = agent.context.timeline()
        self.at: int | None = None
        self._last: tuple[int, ContextUsage | None] = (0, None)

    @property
    def before(self) -> ContextUsage | None:
        """What the last step sent, which now is compared with; None until that was made ready."""
        number, usage = self._last
        return usage if number == self.history.count else None

    def prepare(self) -> None:
        """Makes ready what ← shows next, and what now is compared with. To be called in another thread."""
        count = self.history.count
        self.history.prepare(count if self.at is None else self.at)
        if count and self._last[0] != count:
            self._last = (count, self.history.moment(count).usage)

    def go(self, by: int) -> str:
        """Goes ``by`` steps further; behind the last step is now. A line for the user where there is nowhere to go."""
        count = self.history.count
        here = count + 1 if self.at is None else self.at
        wanted = max(1, here + by)
        if not count:
            return "No steps yet."
        if wanted == here:
            return "Already at the first step."
        if self.at is None and by > 0:
            return "Already at the latest."
        self.at = None if wanted > count else wanted
        return ""

    def path(self) -> Collection[str]:
        """The ids of the messages of the conversation as it is now; all there are where no branch was left."""
        conversation = self._agent.conversation
        if len(conversation.messages) == len(conversation.path):
            return conversation.messages
        return {message.id for message in conversation.path}

    def view(self) -> PastView:
        """The step it is at, compared with the one before."""
        from agent_tui.commands.past_words import past_view

        assert self.at is not None
        return past_view(self.history, self.at, None, set(self.path()))

    def moment(self, now: ContextReport) -> ContextReport:
        """Returns the report that the screen shows of the step it is at; ``now`` is the session as it is."""
        from agent_tui.commands.past_words import past_report

        view, info = self.view(), self._agent.models.info
        if view.moment.usage is not None:
            self.timeline.made_again(view.moment.number, view.moment.usage)
        same = info is not None and info.spec.key == view.moment.step.model_key
        return past_report(view, now if same else replace(now, prices=None))

    def course(self, now: ContextReport) -> Course:
        """Returns the steps with the one it is at marked; ``now`` is the session as it is."""
        usage, path = now.usage, self.path()
        last, ahead = self.timeline.now(usage, now.in_flight), projected(usage, now.in_flight)
        draft = 0 if usage.draft is None else usage.draft.tokens
        return Course(self.timeline, path, last, ahead, usage.limit, self.at or NOW, draft)


READY = 0.3
"""Seconds after opening: then the screen is drawn, and the step that ← shows is made ready."""


NAMES = {"escape": "Esc", "question_mark": "?", "left": "←", "right": "→", "up": "↑", "down": "↓"}


def shown_key(keys: str) -> str:
    """Keys of a binding as people know them: ``Shift+←``, ``Esc q``."""
    parts = ("+".join(NAMES.get(part, part) for part in key.split("+")) for key in keys.split(","))
    return " ".join(key[:1].upper() + key[1:] if len(key) > 1 else key for key in parts)


class ContextScreen(Guarded, Screen[None]):
    """Reads nothing but the calculator's answer; stays live, but at a step of the past that ← and → go to."""

    DEFAULT_CSS = """
    ContextScreen { background: $background; layout: vertical; overflow: hidden; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", "Back to now, then close", show=False),
        Binding("left", "go(-1)", "Previous step", show=False, priority=True),
        Binding("right", "go(1)", "Next step", show=False, priority=True),
        Binding("shift+left", "go(-10)", "Ten steps back", show=False, priority=True),
        Binding("shift+right", "go(10)", "Ten steps forward", show=False, priority=True),
        Binding("end", "now", "Back to now, or to the last row", show=False, priority=True),
        Binding("d", "edit('drop')", "Drop the marked messages; shows the cost first", show=False),
        Binding("z", "edit('fold')", "Fold the marked messages into a summary", show=False),
        Binding("p", "edit('pin')", "Pin or unpin the marked messages", show=False),
        Binding("r", "edit('restore')", "Restore a dropped message (or d)", show=False),
        Binding("u", "edit('undo')", "Undo the newest edit", show=False),
        Binding("d,z,enter,y", "answer('now')", "When asked: confirm", show=False, priority=True),
        Binding(
            "l",
            "answer('later')",
            "When asked: drop later, free",
            show=False,
            priority=True,
        ),
        Binding("escape,n", "answer('not')", "When asked: cancel", show=False, priority=True),
        Binding("question_mark", "keys", "Show these keys", show=False),
        Binding("c", "cache", "Show what each call read from the cache", show=False),
        Binding("e", "export", "Export as JSON", show=False),
        Binding("x", "exact", "Count exactly", show=False),
        Binding("o", "order", "Order open rows by size or by time", show=False),
        Binding("v", "preview", "Preview a compaction", show=False),
        Binding("w", "why", "Explain the number, and why it compacts or not", show=False),
    ]

    def __init__(self, agent: Agent) -> None:
        super().__init__()
        self.agent = agent
        self.now = time.time()
        self.travel = Travel(agent)
        self.view = ContextView(ContextReport.of(agent, now=self.now), self._refused)
        self.edits = ContextEdits(agent, self.view)
        self._drawn = False
        self.view.course = self.travel.course(self.view.moment)
        self._unsubscribe: Callable[[], None] = lambda: None

    def compose(self) -> ComposeResult:
        yield self.view

    def on_mount(self) -> None:
        self._unsubscribe = self.agent.subscribe(self._event)
        self.view.rows.focus()
        self.run_worker(self.agent.context.refresh(), name="refresh", exit_on_error=False)
        self.set_timer(READY, self._opened_up)

    def on_unmount(self) -> None:
        self._unsubscribe()

    def _event(self, event: Event) -> None:
        if self.agent.conversation.info.id != self.travel.session:
            self.travel = Travel(self.agent)
        elif self.travel.at is not None:
            return
        if isinstance(event, ContextChanged | CompactionEnded | SessionChanged):
            live = self._live(event if isinstance(event, ContextChanged) else None)
            self.view.show(live, self.travel.course(live))
            if self._drawn and self.travel.before is None:
                self._prepare()

    def _live(self, changed: ContextChanged | None = None) -> ContextReport:
        """The session as it is now, compared with what its last step sent."""
        return replace(ContextReport.of(self.agent, changed, self.now), before=self.travel.before)

    def _show(self) -> None:
        """The step that was gone to, or now."""
        live = self._live()
        shown = live if self.travel.at is None else self.travel.moment(live)
        self.view.show(shown, self.travel.course(live))

    def _opened_up(self) -> None:
        self._drawn = True
        self._prepare()

    def _prepare(self) -> None:
        """Has what ← shows next, and what now is compared with, made beside the screen."""
        self.run_worker(self.travel.prepare, name="prepare", group="past", thread=True, exit_on_error=False)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.worker.name != "prepare" or event.state is not WorkerState.SUCCESS:
            return
        if self.travel.at is None and self.view.moment.before is not self.travel.before:
            self._show()

    @on(TimelineView.Picked)
    def _picked(self, event: TimelineView.Picked) -> None:
        event.stop()
        self.travel.at = event.number or None
        self.view.say("")
        self._show()
        self._prepare()

    @on(ContextView.Opened)
    async def _opened(self, event: ContextView.Opened) -> None:
        event.stop()
        line = event.line
        if line.record is not None:
            self._draw(DONE, await texts.compaction_page(self.agent, line.record, self.now))
        elif line.row is not None:
            self._read(line.label, f"{texts.row_facts(line.row)}\n\n{self._text(line)}".rstrip())

    def _text(self, line: RowLine) -> str:
        row = line.row
        if row is None:
            return ""
        if row.message_id is not None and self.travel.at is not None:
            view = self.travel.view()
            rows = [*view.moment.view, *(view.before.view if view.before is not None else ())]
            return texts.sent_text(next((item for item in rows if item.message.id == row.message_id), None))
        if row.message_id is not None:
            return texts.sent_text(self.agent.conversation.sent_message(row.message_id))
        if row.fingerprint is not None:
            return texts.part_text(self.agent.context.part_text(row.fingerprint), tool=line.kind_id == "tools")
        return texts.ADDED if line.kind_id == "tools" else ""

    def _read(self, title: str, text: str) -> None:
        from agent_tui.ui.screens.text import TextScreen

        self.app.push_screen(TextScreen(title, text))

    def _draw(self, title: str, picture: CompactionFigures) -> None:
        self.app.push_screen(CompactionScreen(title, picture))

    # Keys

    def action_close(self) -> None:
        if self.view.unmark():
            return
        if self.travel.at is None:
            self.dismiss(None)
        else:
            self.action_now()

    def action_now(self) -> None:
        if self.travel.at is None:
            self.view.rows.action_last()
        else:
            self.travel.at = None
            self._show()

    def action_go(self, by: int) -> None:
        problem = self.travel.go(by)
        if problem:
            self.view.say(problem)
            return
        self.view.say("")
        self._show()
        self._prepare()

    async def action_why(self) -> None:
        if self.travel.at is None:
            self._read("What the next request contains", self.view.explained())
            return
        from agent_tui.commands.past_words import changes_text

        text = f"{changes_text(self.travel.view())}\n\n{self.view.explained()}".rstrip()
        self._read("What changed, and where the number comes from", text)

    def action_cache(self) -> None:
        from agent_tui.ui.screens.context_cache import CachePicker

        self.app.push_screen(CachePicker(self.agent))

    def action_order(self) -> None:
        order = self.view.rows.order
        order.by_time = not order.by_time
        self.view.rebuild()
        self.view.say(f"Messages by {'time' if order.by_time else 'size'}. Press o to change.")

    async def action_preview(self) -> None:
        if self._is_past():
            return
        try:
            self._draw(WOULD, await self.agent.compaction.preview())
        except AgentError as error:
            self.view.say(str(error))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The answers to a question are keys only while it is asked."""
        return self.edits.asking if action == "answer" else True

    def action_edit(self, name: Edit) -> None:
        if not self._is_past():
            self.edits.begin(name)

    def action_answer(self, answer: Answer) -> None:
        self.edits.answer(answer)

    def action_keys(self) -> None:
        bindings = [b for b in (*self.BINDINGS, *self.view.rows.BINDINGS) if isinstance(b, Binding)]
        keys = "\n".join(f"{shown_key(b.key):<13} {b.description}" for b in bindings)
        signs = "\n".join(f"{sign:<13} {what}" for sign, what in SIGNS.items())
        self._read("Keys and signs", f"{keys}\n\n{signs}")

    async def action_export(self) -> None:
        from agent_tui.commands.past_words import past_json
        from agent_tui.commands.report_json import context_json
        from agent_tui.commands.sessions import write_export

        at = self.travel.at
        data = (
            context_json(
                replace(self.view.moment, steps=self.agent.conversation.steps),
                {message.id for message in self.agent.conversation.path},
            )
            if at is None
            else past_json(self.travel.view())
        )
        text = json.dumps(data, indent=2) + "\n"
        name = f"context-{self.agent.conversation.info.id}{'' if at is None else f'-step-{at}'}"
        try:
            path = await write_export(text, self.agent.paths.exports, name, ".json")
        except AgentError as error:
            self.view.say(str(error))
        else:
            self.view.say(f"Written to {path}")

    def _refused(self) -> Container[str]:
        """The keys that would do nothing now."""
        refused = self.edits.refused()
        if self.agent.models.spec.model == "demo" or self.agent.settings.context.exact_counting == "off":
            refused.add("x")
        if not self.travel.timeline.count:
            refused |= {"←", "c"}
        return refused

    def _is_past(self) -> bool:
        """Says so of what only the session as it is now can do."""
        if self.travel.at is not None:
            self.view.say("Not possible at an earlier step. Esc goes back to now.")
        return self.travel.at is not None

    def action_exact(self) -> None:
        if self._is_past():
            return
        if self.agent.settings.context.exact_counting == "off":
            self.view.say(EXACT_OFF)
            return
        self.view.say(EXACT_ASKED)
        self._counting: Worker[None] = self.run_worker(self._exact, exclusive=True, exit_on_error=False)

    async def _exact(self) -> None:
        try:
            counted = await self.agent.context.count_exact()
        except AgentError as error:
            self.view.say(str(error))
            return
        self.view.say(exact_text(counted))
