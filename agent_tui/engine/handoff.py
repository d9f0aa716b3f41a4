"""Goes on in a new session with a written brief of this one: the summary that a compaction of all of it would write,
with the goal as its focus, as the first message, which the user reads and sends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from agent_tui.context.compaction.answers import with_unknown_paths
from agent_tui.context.compaction.judge import SummaryProblem
from agent_tui.context.compaction.plan import CompactionPlan
from agent_tui.context.compaction.price import summary_call
from agent_tui.context.compaction.situation import Situation
from agent_tui.context.compaction.summary import FILES, MODEL_SECTIONS, NOTHING
from agent_tui.context.compaction.summary_plan import SummaryPlan, facts_of
from agent_tui.context.tokens import message_text_for_count
from agent_tui.engine.cache_forecast import warm_call
from agent_tui.engine.compaction.summary_call import SummaryCall, TextCalls
from agent_tui.engine.context_control import ContextControl
from agent_tui.engine.conversation import patiently
from agent_tui.engine.model_call import open_call
from agent_tui.engine.runner import Runner
from agent_tui.engine.session_control import SessionControl
from agent_tui.engine.state import AgentState
from agent_tui.errors import AgentError, StoreError
from agent_tui.models.events import Notice
from agent_tui.models.usage import NO_COST
from agent_tui.providers.secrets import redact
from agent_tui.records import dataclass
from agent_tui.text.clean import one_line, pictured
from agent_tui.text.numbers import money, tokens

SHOWN = 80
FOCUS = "a new conversation begins, with this goal: {goal}. Leave out what that does not need."


@dataclass(slots=True, frozen=True)
class Brief:
    """The first message of the new session, to be read and sent by the user; ``line`` says what was done."""

    text: str
    line: str


async def _accept(sections: Mapping[str, str]) -> SummaryProblem | None:
    """A brief takes nothing away, so that it need not be shorter than anything."""
    return None


class Handoff:
    """Makes the brief, then the session: as long as the brief is not there, nothing has changed. The two sessions name
    each other, and say so whenever one is opened."""

    def __init__(self, state: AgentState, context: ContextControl, runner: Runner, sessions: SessionControl) -> None:
        self._state = state
        self._context = context
        self._runner = runner
        self._sessions = sessions

    async def begin(self, goal: str) -> Brief:
        """Puts a new session in front, with the files pinned that are pinned here, and returns the brief for it. Raises
        AgentError where there is nothing to hand off, and where it was interrupted before anything had changed."""
        what = "hand off"
        self._runner.need_idle(what)
        conversation = self._state.conversation
        conversation.require_writable()
        if not any(message.role == "user" for message in conversation.path):
            raise AgentError("Nothing to hand off yet.")
        brief = await self._runner.exclusively(self._brief(goal), what)
        if brief is None:
            raise AgentError("Interrupted; nothing changed.")
        # What was sent meanwhile was meant for this session.
        await self._runner.join()
        before = conversation.info
        try:
            await self._sessions.clear()
        except StoreError as error:
            # What the model wrote was paid for.
            why = one_line(str(error), 200).rstrip(".")
            self._publish("warning", f"Cannot start a new session: {why}. Run /clear, then send this brief.")
            return brief
        try:
            await self._link(before.id, goal)
        except StoreError as error:
            self._publish("warning", f"Cannot link the two sessions: {one_line(str(error), 200)}.")
        return brief

    async def _link(self, before: str, goal: str) -> None:
        """Each session keeps the id of the other; the new one has the pinned files and is told what was read of outside
        the project, which is in the brief, too."""
        store, fresh = self._state.parts.store, self._state.conversation
        state = store.sessions.get(before).state
        kept = replace(fresh.info.state, handed_from=before, pinned=state.pinned, read_outside=state.read_outside)
        self._state.parts.permissions.reach.load(kept)
        await patiently(lambda: fresh.set_state(kept))

        def link() -> None:
            # Read and written at once: another window may go on with that session.
            with store.transaction():
                there = store.sessions.get(before)
                state = replace(there.state, handed_to=(*there.state.handed_to, fresh.info.id))
                store.sessions.save(replace(there, state=state))

        await patiently(link)
        self._context.prefix.refresh()
        self._context.recount()
        for line in fresh.links():
            self._publish("info", line)

    async def _brief(self, goal: str) -> Brief:
        runtime, emit = self._state.runtime, self._state.events.publish
        plan = await asyncio.to_thread(self._plan, goal)
        summary, conversation = plan.summary, runtime.conversation
        assert summary is not None
        expected = summary_call(plan, plan.now.usage, runtime.info.prices)
        price = f"{money(expected.usd)} expected" if expected.usd else f"{tokens(expected.input, True)} tokens"
        self._publish("info", f"The model writes a brief for the new session, {price}.")
        calls = TextCalls(lambda planned: open_call(runtime, planned, emit, "the summary call"))
        call = SummaryCall(calls, plan, runtime.info, conversation.info.id, partial(warm_call, runtime))
        try:
            answer = await call.ask(_accept)
        finally:
            conversation.save_if_possible()
        if answer.why is not None:
            why = one_line(answer.why, 300)
            self._publish("warning", f"The brief lists only facts, without a word of the model: {why}.")
            summary = summary.without_model()
        text = await asyncio.to_thread(self._text, goal, summary, answer.sections)
        spent = f" It cost {money(sum((step.cost for step in calls.steps), NO_COST))}." if calls.steps else ""
        return Brief(text, f"Review the brief and send it. /resume goes back.{spent}")

    def _plan(self, goal: str) -> CompactionPlan:
        """The plan of a summary of all of the conversation."""
        runtime, conversation = self._state.runtime, self._state.conversation
        inputs, path = runtime.inputs().as_now(), list(conversation.path)
        now = Situation(inputs, runtime.usage(), path, dict(conversation.summaries), "edit", facts_of)
        if not now.path:
            raise AgentError("Nothing to hand off yet.")
        summary = replace(now.fold(0, len(now.path)), characters=0)
        return CompactionPlan("summary", "asked for", now, summary=summary, focus=FOCUS.format(goal=goal))

    def _text(self, goal: str, summary: SummaryPlan, sections: Mapping[str, str]) -> str:
        """The brief: the goal, then the summary without what it has nothing for. Paths that nobody had named are said
        to be so."""
        conversation, root = self._state.conversation, self._state.parts.cwd
        name = one_line(conversation.info.title or conversation.info.preview, SHOWN)
        earlier = (
            f"This continues an earlier session, “{name}” ({conversation.info.id}). What you need to know from it:"
        )
        known = "\n".join(map(message_text_for_count, conversation.past().path))
        said = {name: body for name, body in sections.items() if any(map(_says, body.splitlines()))}
        text = summary.text(with_unknown_paths(said, known), earlier)
        for heading in (*MODEL_SECTIONS, FILES):
            text = text.replace(f"\n\n## {heading}\n{NOTHING}", "")
        text = pictured(redact("\n\n".join(filter(None, [text, summary.pinned]))))
        return f"{goal}\n\n{text}".replace(f"- {root}/", "- ")

    def _publish(self, level: str, text: str) -> None:
        self._state.events.publish(Notice("warning" if level == "warning" else "info", text, "handoff"))


def _says(line: str) -> bool:
    return line.strip(" -*_().").casefold() not in ("", "none", "nothing")
