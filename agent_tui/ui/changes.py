"""What the agent's events change on the main screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_tui.ui import terminal
from agent_tui.ui.actions import Actions
from agent_tui.ui.widgets.status import StatusFacts

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.models.context import ContextUsage
    from agent_tui.models.messages import Message
    from agent_tui.models.steps import CompactionRecord
    from agent_tui.ui.permissions import Permissions

LONG_TURN = 10.0
"""Seconds after which the end of a turn is worth a notification."""


class Changes(Actions):
    """``_opening`` is the agent from its making on, also while it still opens its session."""

    permissions: Permissions
    _opening: Agent | None = None
    _facts: StatusFacts
    _turn_runs = False

    def session_changed(self, reload: bool) -> None:
        agent = self._opening
        if agent is None:
            return
        if reload:
            self.permissions.clear()
            self.transcript.load(agent.messages, agent.records, self.summaries(agent))
            if not agent.messages:
                self.show_banner(agent)
        self.facts_changed()

    def summaries(self, agent: Agent) -> dict[str, Message]:
        """The summary messages of the session, by id."""
        return agent.store.summaries(agent.info.id) if agent.records else {}

    def show_banner(self, agent: Agent) -> None:
        lines = ["agent-tui", f"{agent.spec.key} in {agent.root}"]
        if self.is_demo(agent):
            lines.append("DEMO: a built-in model that needs no key and no network. /model chooses a real one.")
        lines.append("/context shows what fills the window, to the token · /help lists commands and keys")
        self.transcript.add_banner(lines)

    @staticmethod
    def is_demo(agent: Agent) -> bool:
        return agent.spec.model == "demo"

    def facts_changed(self) -> None:
        """Mode, model, branch or title may be others now."""
        agent = self._opening
        if agent is None:
            return
        facts, state = self._facts, agent.info.state
        facts.starting = False
        facts.model = agent.spec.key
        facts.demo = self.is_demo(agent)
        facts.mode = agent.mode
        facts.branch = agent.branch
        facts.read_only = agent.read_only
        facts.paused = state.compaction_paused
        facts.off = state.compaction_off or not self.settings.context.auto_compact
        self.status.update_facts(facts)
        for mode, name in (("accept-edits", "-edits"), ("plan", "-plan"), ("auto", "-auto")):
            self.prompt.set_class(agent.mode == mode, name)
        title = agent.info.title
        terminal.set_title(self, f"{'✳ ' if agent.busy else ''}{title or 'agent-tui'}")

    def context_changed(self, usage: ContextUsage, in_flight: int) -> None:
        self._facts.usage, self._facts.in_flight = usage, in_flight
        if in_flight:
            self.status.refresh()
        else:
            self.facts_changed()

    def turn_started(self) -> None:
        self._turn_runs = True
        self.activity_phase("Working")
        self.facts_changed()

    def activity_phase(self, phase: str) -> None:
        """What the line above the prompt says while the agent works."""
        if phase != self.activity.phase:
            self.activity.begin(phase, f"Esc to interrupt{' · Enter queues' if self.size.width > 70 else ''}")

    def turn_ended(self, reason: str) -> None:
        lasted = self.activity.seconds
        self._turn_runs = False
        self.activity.end()
        self.permissions.clear()
        self.files.stale()
        self.facts_changed()
        if lasted >= LONG_TURN and reason != "interrupted":
            title = self.agent.info.title if self.agent is not None else ""
            self.notify_user(f"{title or 'The turn'} is done")

    def compaction_ended(self, outcome: str, text: str, records: list[CompactionRecord]) -> None:
        agent = self.agent
        # A compaction that the user asked for is still busy here, but nothing follows it.
        if self._turn_runs:
            self.activity_phase("Working")
        else:
            self.activity.end()
        level = {"failed": "error", "not_worth_it": "warning"}.get(outcome, "info")
        self.transcript.add_notice(level, text)
        if agent is not None and outcome == "done":
            summaries = self.summaries(agent)
            for record in records:
                summary = summaries.get(record.summary_id or "")
                if summary is not None:
                    self.transcript.add_summary(record, summary)
        self.facts_changed()

    def notify_user(self, text: str) -> None:
        """Rings when the user looks elsewhere."""
        if self.settings.ui.notifications and not self.app_focus:
            terminal.notify(self, text)
