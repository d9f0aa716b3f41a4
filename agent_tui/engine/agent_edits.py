"""What the model does to its own context with its tool ``context``, in the session or in a subagent. It reaches results
and answers of its own: never a message of the user's, what is pinned, or what it has not answered yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from agent_tui.context.compaction.plan import message_tokens
from agent_tui.context.cuts import cleared_message
from agent_tui.context.tidy import dead_weight
from agent_tui.context.tokens import char_tokens
from agent_tui.engine.compaction.drop_marks import DropMarks, loop_binds
from agent_tui.engine.compaction.own_results import (
    OwnResult,
    fill_words,
    is_protected,
    kept_notes,
    own_results,
    seen_until,
)
from agent_tui.engine.compaction.service import CompactionService
from agent_tui.engine.conversation import Conversation
from agent_tui.engine.edit_plan import clear_record, plan_edit
from agent_tui.engine.edit_targets import EditTargets, label, marks_of
from agent_tui.engine.runtime import Runtime
from agent_tui.errors import AgentError, ToolError
from agent_tui.models.messages import CONTEXT_TOOL, KEPT_NOTE, Message, pinned_words, recall_id
from agent_tui.records import dataclass
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import plural, tokens
from agent_tui.tools.base import ContextAction, ToolOutcome, WhenAsked

LISTED = 10
"""Results that ``status`` names."""
NOTES_SHARE = 0.05
"""Of the limit: what the model's notes may take together."""
NEXT, BOUND = (
    "before the next request",
    "when the next turn begins (the provider refuses thoughts behind a changed beginning, and tools are being used)",
)
"""When something is done."""


@dataclass(slots=True, frozen=True)
class _Act:
    """What an action would do, ready to be done."""

    outcome: ToolOutcome
    do: Callable[[], None] = lambda: None


class AgentEdits:
    """Satisfies the tools' ``OwnContext`` for the conversation of one runtime, which ``compaction`` compacts."""

    def __init__(self, runtime: Runtime, compaction: CompactionService) -> None:
        self._runtime = runtime
        self._conversation = runtime.conversation
        self._compaction = compaction
        self._targets = EditTargets(lambda: self._conversation, lambda: True)

    def asks(self, action: ContextAction) -> WhenAsked:
        """When the user is asked before an action: what loses nothing needs no question, unless they want one."""
        if action == "status":
            return ""
        if self._runtime.settings.context.agent_edits == "ask":
            return "always"
        return "where it would change something" if action in ("fold", "compact") else ""

    async def expected(self, action: ContextAction, names: Sequence[str], text: str, focus: str) -> str:
        """What ``tend`` would say, without doing it. Raises ToolError where it cannot be."""
        return (await self._planned(action, names, text, focus)).outcome.text

    async def tend(self, action: ContextAction, names: Sequence[str], text: str, focus: str) -> ToolOutcome:
        """Does an action; the outcome says what it frees and what it makes uncached. Raises ToolError where it cannot
        be."""
        act = await self._planned(action, names, text, focus)
        try:
            act.do()
        except AgentError as error:
            raise ToolError(f"{CONTEXT_TOOL}: {error}") from None
        return act.outcome

    async def _planned(self, action: ContextAction, names: Sequence[str], text: str, focus: str) -> _Act:
        try:
            self._conversation.require_writable()
            match action:
                case "status":
                    return _act("\n".join(self._status()), fill_words(self._runtime.usage()))
                case "drop":
                    return self._drop(names)
                case "fold":
                    return await self._fold(names, text)
                case "keep":
                    return self._keep(text)
                case "compact":
                    return await self._compact(focus)
        except ToolError:
            raise
        except AgentError as error:
            raise ToolError(f"{CONTEXT_TOOL}: {error}") from None

    def _status(self) -> Iterator[str]:
        usage, conversation = self._runtime.usage(), self._conversation
        yield fill_words(usage)
        yield "; ".join(f"{row.label} {tokens(row.tokens, row.approximate)}" for row in usage.rows if row.tokens)
        results = own_results(self._runtime)
        if results:
            yield "Results, the largest first (name, what, tokens):"
            yield from (result.words for result in results[:LISTED])
            if len(results) > LISTED:
                rest = sum(result.tokens for result in results[LISTED:])
                yield f"and {plural(len(results) - LISTED, 'smaller one')}, {tokens(rest, True)}"
        kept = frozenset((*conversation.info.state.pinned_messages, *marks_of(conversation)))
        sizes = message_tokens(usage)
        useless = dead_weight(conversation.path, conversation.view(), sizes, kept)
        names = {result.message_id: result.name for result in results}
        for each in useless[:LISTED]:
            if mine := [names[i] for i in each.message_ids if i in names]:
                yield f"No longer needed: {' '.join(mine)} {each.what} ({each.why})"
        if waiting := marks_of(conversation):
            yield f"Let go of, and still sent: {' '.join(recall_id(i.partition('#')[0]) for i in waiting)}"
        for note in kept_notes(conversation):
            yield f"Kept note {recall_id(note.id)}: {one_line(pinned_words(note), 80)}"

    def _drop(self, names: Sequence[str]) -> _Act:
        mine = {result.message_id: result for result in own_results(self._runtime, smallest=0)}
        chosen: dict[str, OwnResult] = {}
        refused: list[str] = []
        for name in names:
            try:
                message = self._targets.named(name)
            except AgentError as error:
                refused.append(str(error).rstrip("."))
                continue
            if message.id not in mine:
                refused.append(f"{recall_id(message.id)} {self._why_not(message)}")
            elif mine[message.id].tokens <= self._placeholder(message):
                refused.append(f"{recall_id(message.id)} is as short as what would take its place")
            else:
                chosen[message.id] = mine[message.id]
        if not chosen:
            raise ToolError(f"{CONTEXT_TOOL}: nothing dropped: {'; '.join(refused)}.")
        plan, _ = plan_edit(self._runtime, self._runtime.usage(), [clear_record(self._runtime, list(chosen))])
        marks = DropMarks(self._runtime, in_turn=True)
        freed, count = tokens(max(0, plan.freed), True), plural(len(chosen), "result")
        cheap = "when that is cheap (nothing cached, a compaction, or it pays before the next one) or room is needed"
        when = f"They go {NEXT if marks.due(chosen) else cheap}."
        said = [f"Let go of {count}: {freed} tokens less per request.", self._uncached(plan.behind), when]
        said += [f"Not dropped: {'; '.join(refused)}."] if refused else []
        return _act(" ".join(said), f"{count} · {freed}", lambda: marks.add(chosen, by_agent=True))

    def _placeholder(self, message: Message) -> int:
        """Tokens of what is sent in the place of a result that is let go of."""
        recall = recall_id(message.id) if self._runtime.inputs().recall else ""
        return self._runtime.size_of(cleared_message(message, recall))

    def _why_not(self, message: Message) -> str:
        if message.role == "user":
            return "is the user's message"
        if message.id in marks_of(self._conversation):
            return "is let go of already"
        if message.role == "assistant":
            return "is an answer, not a result: fold it"
        if is_protected(message, self._conversation):
            return "is pinned, a kept note or an approved plan"
        place = next(place for place, each in enumerate(self._conversation.path) if each is message)
        return "is no longer sent" if place < seen_until(self._conversation.path) else "is new: answer it first"

    @staticmethod
    def _uncached(behind: int) -> str:
        if not behind:
            return "Nothing cached changes."
        return f"If done now, {tokens(behind, True)} tokens behind them are no longer cached."

    def _when(self) -> str:
        return BOUND if loop_binds(self._runtime) else NEXT

    async def _fold(self, names: Sequence[str], text: str) -> _Act:
        path = self._conversation.path
        places = sorted(path.index(self._targets.named(name)) for name in names)
        ends = self._targets.ends_of_fold(path[places[0]].id, path[places[-1]].id)
        plan, price = await self._compaction.plan_fold(ends, "", self._runtime.usage())
        assert plan.summary is not None
        inside = frozenset(plan.summary.message_ids)
        for message in path:
            if message.id in inside and (message.role == "user" or is_protected(message, self._conversation)):
                what = "the user's message" if message.role == "user" else "what is kept"
                raise ToolError(f"{CONTEXT_TOOL}: {label(message)} lies between these names: fold around {what}.")
        size = char_tokens(text)
        if plan.folded_tokens is not None and size >= plan.folded_tokens:
            raise ToolError(
                f"{CONTEXT_TOOL}: your text is as long as the messages ({tokens(plan.folded_tokens, True)} tokens)."
            )
        count, part, ids = plural(len(inside), "message"), tokens(plan.folded_tokens, True), plan.summary.message_ids
        said = f"{count} ({part} tokens) become the text ({tokens(round(size), True)}) {self._when()}."
        said = f"{said} {self._uncached(price.behind)}"
        return _act(said, f"{count} · {part}", lambda: self._compaction.asked.add(fold=ids, text=text))

    def _keep(self, text: str) -> _Act:
        size = round(char_tokens(text))
        taken = size + sum(round(char_tokens(pinned_words(note))) for note in kept_notes(self._conversation))
        limit = self._runtime.usage().limit
        if limit and taken > limit * NOTES_SHARE:
            most = tokens(int(limit * NOTES_SHARE), False)
            raise ToolError(f"{CONTEXT_TOOL}: all your notes would take {tokens(taken, True)} tokens of {most}.")
        said = f"Kept: every compaction carries it word for word ({tokens(size, True)} tokens). {self._uncached(0)}"
        act = _act(said, f"note of {tokens(size, True)} tokens")
        return _Act(replace(act.outcome, display={**(act.outcome.display or {}), KEPT_NOTE: text}))

    async def _compact(self, focus: str) -> _Act:
        if self._compaction.auto.held_back() in ("setting", "paused"):
            raise ToolError(f"{CONTEXT_TOOL}: not compacted: {self._compaction.auto.held_back_text()}.")
        expected = await self._compaction.preview(focus, self._runtime.usage())
        if not expected.after:
            raise ToolError(f"{CONTEXT_TOOL}: {expected.say}")
        before, after = (tokens(sum(each.values()), True) for each in (expected.before, expected.after))
        said = f"It is compacted {self._when()}. {expected.say}"
        return _act(said, f"{before} → {after}", lambda: self._compaction.asked.add(focus))


def keep_note(conversation: Conversation, message: Message) -> None:
    """Pins what the model wanted kept, where this result says so."""
    result, state = message.tool_result, conversation.info.state
    if result is not None and KEPT_NOTE in (result.display or {}):
        conversation.keep_state(replace(state, pinned_messages=(*state.pinned_messages, message.id)))


def _act(text: str, summary: str, do: Callable[[], None] = lambda: None) -> _Act:
    return _Act(ToolOutcome(text, display={"kind": "text", "summary": summary}), do)
