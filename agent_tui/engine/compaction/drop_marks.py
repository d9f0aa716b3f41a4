"""What is marked to go from what is sent once that is cheap: by the user (``/context drop --later``), or by the agent.
One rule says when: nothing of it is in the provider's cache, or there is no room, or what is read anew is saved again
within the requests that are left."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace

from agent_tui.context.accounting.next_input import over_limit
from agent_tui.context.cuts import CLEARED_SUFFIX, parts_of
from agent_tui.engine.compaction.preparing import growth
from agent_tui.engine.edit_plan import EditPlan, clear_record, commit_edit, count_words, edit_record, plan_edit
from agent_tui.engine.edit_targets import EditTargets, marks_of
from agent_tui.engine.runtime import Emit, Runtime
from agent_tui.errors import AgentError
from agent_tui.models.events import Notice
from agent_tui.models.steps import CompactionRecord
from agent_tui.providers.reasoning import prefix_bound
from agent_tui.text.numbers import tokens

log = logging.getLogger(__name__)


class DropMarks:
    """The marks of one session's conversation; ``in_turn``: the model is at work on it."""

    def __init__(self, runtime: Runtime, in_turn: bool) -> None:
        self._runtime = runtime
        self._conversation = runtime.conversation
        self._in_turn = in_turn
        self._targets = EditTargets(lambda: self._conversation, lambda: in_turn)

    def add(self, ids: Collection[str], *, by_agent: bool) -> None:
        """Marks messages. Raises AgentError where that cannot be stored."""
        state, asked = self._conversation.info.state, self._conversation.time_of_edit()
        new = [each for each in ids if each not in marks_of(self._conversation)]
        waiting = dict(state.drops_waiting) | dict.fromkeys(new, asked)
        agents = (*(each for each in state.agent_drops if each not in new), *(new if by_agent else ()))
        self._conversation.set_state(replace(state, drops_waiting=waiting, agent_drops=agents))

    def forget(self, ids: Collection[str]) -> None:
        """Takes marks back."""
        state, gone = self._conversation.info.state, frozenset(ids)
        left = {each: asked for each, asked in state.drops_waiting.items() if each not in gone}
        agents = tuple(each for each in state.agent_drops if each in left)
        self._conversation.keep_state(replace(state, drops_waiting=left, agent_drops=agents))

    def due(self, more: Collection[str] = ()) -> bool:
        """Returns whether what is marked goes before the request that is sent next, or would if the agent let go of
        ``more``."""
        if not (more or marks_of(self._conversation)):
            return False
        usage = self._runtime.usage()
        if over_limit(usage):
            return True
        if self._in_turn and loop_binds(self._runtime):
            return False
        if cold_in_turn(self._runtime):
            return True
        try:
            plan, _ = plan_edit(self._runtime, usage, self._records(more))
        except AgentError:
            return False
        return self.pays(plan)

    def pays(self, plan: EditPlan) -> bool:
        """Returns whether what an edit has the next request read anew is saved again within the requests that are left
        before the limit is reached, and within as many as there have been: the session may end sooner."""
        usage, steps = self._runtime.usage(), self._conversation.steps
        if plan.pays_after is None or not usage.limit:
            return plan.pays_after == 0
        grows = growth(steps)
        left = (usage.limit - usage.total) // grows if grows else 0
        return plan.pays_after <= min(left, sum(step.kind == "turn" for step in steps))

    def _records(self, more: Collection[str] = ()) -> list[CompactionRecord]:
        """The records that carry the marks out: the user's, and the agent's, with ``more`` of them. Raises
        AgentError."""
        agents = frozenset((*self._conversation.info.state.agent_drops, *more))
        marks = dict.fromkeys((*marks_of(self._conversation), *more))
        whole = {item.message.id for item in self._conversation.view() if CLEARED_SUFFIX not in item.key}
        users = [each for each in marks if each not in agents]
        records = [edit_record(self._conversation, "drop", self._targets.droppable(users))] if users else []
        if left := [each for each in marks if each in agents and each in whole]:
            records.append(clear_record(self._runtime, left))
        return records

    def carry_out(self, emit: Emit) -> bool:
        """Has what is marked go; False where nothing is, or it cannot go. Raises AgentError, and what is not gone stays
        marked."""
        if not (marks := marks_of(self._conversation)):
            return False
        records = self._records()
        for record in records:
            record.created = self._conversation.time_of_edit()
            plan, after = plan_edit(self._runtime, self._runtime.usage(), [record])
            commit_edit(self._runtime, record, after, emit)
            self.forget(parts_of(record))
            if record.by != "agent":
                less = f"{tokens(plan.freed, True)} tokens less per request"
                emit(Notice("info", f"Dropped {count_words(plan.part_ids)}: {less}.", "dropped"))
        self.forget(marks)
        return bool(records)


def cold_in_turn(runtime: Runtime) -> bool:
    """Returns whether the request that is sent next finds nothing in the provider's cache, as far as is known before a
    step."""
    newest = next((step for step in reversed(runtime.conversation.steps) if step.kind == "turn"), None)
    return newest is None or newest.model_key != runtime.info.spec.key or runtime.cold_read == 0


def loop_binds(runtime: Runtime) -> bool:
    """Returns whether the model is in the middle of a tool loop whose thoughts its provider refuses behind a changed
    beginning: nothing before them is changed then unless there is no room."""
    path = runtime.conversation.path
    open_loop = bool(path) and (path[-1].role == "tool" or bool(path[-1].tool_calls))
    return open_loop and (runtime.rule().bound or prefix_bound(runtime.info.target))
