"""Shows what the agent's events change around the transcript: status, title, the line above the prompt."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agent_tui.text.clean import one_line
from agent_tui.ui.chat.face import Face, is_demo
from agent_tui.ui.chat.view import ChatPart
from agent_tui.ui.widgets.drawn_lines import StatusFacts

if TYPE_CHECKING:
    from agent_tui.completion import FileIndex
    from agent_tui.engine.agent import Agent
    from agent_tui.engine.draft import NamedFile
    from agent_tui.models.context import ContextUsage, Draft
    from agent_tui.models.messages import Message
    from agent_tui.models.steps import CompactionRecord
    from agent_tui.ui.chat.view import MainView


LOOKED_THROUGH = 1_000_000
"""Characters up to which a draft is looked through for files while it is typed."""


class SessionView(ChatPart):
    """Shows the session in front and how its turn goes."""

    def __init__(self, view: MainView, files: FileIndex, auto_compact: bool) -> None:
        super().__init__(view)
        self._files = files
        self._auto_compact = auto_compact
        self._facts = StatusFacts()
        self._turn_runs = False
        self._loaded = ""
        self._foretold = ""
        self._hinted = ""
        self.face = Face(view)

    def session_changed(self, reload: bool) -> None:
        agent = self._view.holder.opening
        if agent is None:
            return
        if reload:
            from agent_tui.commands.turn_words import endings_without_words

            path, records = agent.conversation.path, agent.conversation.own_records
            same, self._loaded = self._loaded == agent.conversation.info.id, agent.conversation.info.id
            endings = endings_without_words(path, agent.conversation.steps)
            self._view.transcript.load(path, records, _summaries(agent), agent.root, same=same, endings=endings)
            self.face.forget()
            if not path:
                self.face.show(agent)
        self.facts_changed()

    def facts_changed(self) -> None:
        """Mode, model, branch or title may be others now."""
        agent = self._view.holder.opening
        if agent is None:
            return
        facts, state = self._facts, agent.conversation.info.state
        facts.starting = False
        if facts.model != agent.models.spec.key:
            facts.model = agent.models.spec.key
            self.face.draw(agent)
        facts.demo = is_demo(agent)
        facts.mode = agent.mode.now
        facts.branch = agent.project.branch
        facts.read_only = agent.conversation.read_only
        facts.paused = state.compaction_paused
        facts.off = not self._auto_compact
        self._view.status.update_facts(facts)
        for modes, name in ((("accept-edits",), "-edits"), (("plan",), "-plan"), (("auto", "bypass"), "-auto")):
            self._view.prompt.set_class(agent.mode.now in modes, name)
        title = agent.conversation.info.title
        self._view.window.set_title(f"{'✳ ' if agent.turns.busy else ''}{title or 'agent-tui'}")

    def context_changed(self, usage: ContextUsage, in_flight: int) -> None:
        agent = self._view.holder.opening
        if not usage.window and agent is not None and agent.models.info is None:
            return  # a window that is still looked up is not unknown
        self._facts.usage, self._facts.in_flight = usage, in_flight
        if in_flight:
            self._view.status.refresh()
        else:
            self.facts_changed()
            self._foretell(usage)
            if self._facts.draft is not None:
                self._warn()

    def draft_changed(self, draft: Draft | None) -> None:
        """What is written and not sent yet is another, or is counted now."""
        if draft != self._facts.draft:
            self._facts.draft = draft
            self._view.status.refresh()
            self._warn()

    def _warn(self) -> None:
        """Says, as long as it is so, what sending the draft leads to that is not wanted."""
        from agent_tui.context.accounting.next_input import draft_warning

        usage = self._facts.usage
        self._view.activity.warn("" if usage is None else draft_warning(usage, self._facts.draft))

    def _foretell(self, usage: ContextUsage) -> None:
        """Hints, once for each reason, at what the next request pays anew; the status line goes on saying it."""
        from agent_tui.context.cache_forecast import cold_words

        cold = usage.forecast.cold if usage.forecast is not None else None
        reason = "" if cold is None else cold.what if cold.cause == "ours" else cold.cause
        standing = bool(self._hinted) and self._view.activity.hint_text == self._hinted
        if reason == self._foretold and not standing:
            return
        text = "" if cold is None else one_line(cold_words(cold))
        if (standing and text != self._hinted) or (text and not standing):
            self._view.hint(text)
        self._foretold, self._hinted = reason, text

    def jobs_changed(self, running: int) -> None:
        self._facts.jobs = running
        self._view.status.update_facts(self._facts)

    def turn_started(self) -> None:
        self._turn_runs = True
        self._view.phase("Working")
        self.facts_changed()

    def turn_ended(self, reason: str) -> None:
        from agent_tui.commands.turn_words import LONG_TURN

        lasted = self._view.activity.seconds
        self._turn_runs = False
        self._view.activity.end()
        self._files.stale()
        self.facts_changed()
        if lasted >= LONG_TURN and reason != "interrupted":
            title = self._agent.conversation.info.title if self._agent is not None else ""
            self._view.call_user(f"{title or 'The turn'} is done")

    def compaction_ended(self, outcome: str, text: str, records: list[CompactionRecord]) -> None:
        view, agent = self._view, self._agent
        # A compaction that the user asked for is still busy here, but nothing follows it.
        if self._turn_runs:
            view.phase("Working")
        else:
            view.activity.end()
        if outcome == "undone":
            view.transcript.undo_records(records, text)
        elif records:
            summaries = _summaries(agent) if agent is not None else {}
            # One line for one event: that of the summary where there is one.
            record = next((record for record in records if record.summary_id), records[-1])
            view.transcript.add_record(record, summaries.get(record.summary_id or ""), text)
        elif text:
            view.say({"failed": "error", "not_worth_it": "warning"}.get(outcome, "info"), text)
        self.facts_changed()


class DraftCount(ChatPart):
    """Has what stands in the prompt counted while it is typed."""

    def __init__(self, view: MainView, session: SessionView) -> None:
        super().__init__(view)
        self._session = session

    def changed(self) -> None:
        agent, prompt = self._agent, self._view.prompt
        if agent is None:
            return
        text, pastes, images = prompt.placeholders.apart(prompt.text)
        if text.startswith(("/", "!")) and _is_no_message(text):
            text, pastes, images = "", [], []
        self._session.draft_changed(agent.draft.typed(text, pastes, images, self._find))

    async def _find(self) -> list[NamedFile]:
        from agent_tui.commands.mentions import named_files

        agent, text = self._agent, self._view.prompt.whole_text
        if agent is None or "@" not in text or len(text) > LOOKED_THROUGH:
            return []
        return await asyncio.to_thread(named_files, text, agent.cwd, agent.project.files)


def _is_no_message(text: str) -> bool:
    from agent_tui.commands.registry import is_command

    return is_command(text) or bool(text.startswith("!") and text[1:].strip())


def _summaries(agent: Agent) -> dict[str, Message]:
    return agent.store.messages.summaries(agent.conversation.info.id) if agent.conversation.own_records else {}
