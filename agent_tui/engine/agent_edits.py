"""What the model does to its own context with its tool ``context``, in the session or in a subagent. It reaches results
and answers of its own: never a message of the user's, what is pinned, or what it has not answered yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from agent_tui.context.compaction.plan import message_tokens
from agent_tui.context.tidy import dead_weight
from agent_tui.context.tokens import char_tokens
from agent_tui.engine.compaction.drop_marks import DropMarks, loop_binds
from agent_tui.engine.compaction.own_results import OwnResult, fill_words, is_protected, own_results, seen_until
from agent_tui.engine.compaction.service import AskedCompaction, CompactionService
from agent_tui.engine.conversation import Conversation
from agent_tui.engine.edit_plan import clear_record, plan_edit
from agent_tui.engine.edit_targets import EditTargets, label, marks_of
from agent_tui.engine.runtime import Runtime
from agent_tui.errors import AgentError, ToolError
from agent_tui.models.messages import CONTEXT_TOOL, KEPT_NOTE, Message, pinned_words, recall_id
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import plural, tokens
from agent_tui.tools.base import ContextAction, ToolOutcome, WhenAsked

LISTED = 10
"""Results that ``status`` names."""
NOTES_SHARE = 0.05
"""Of the limit: what the model's notes may take together."""
BOUND = (
    "The provider refuses your thoughts behind a changed beginning, and you are in the middle of using tools. Do it at "
    "the beginning of the next turn."
)


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

    async def tend(self, action: ContextAction, names: Sequence[str], text: str, focus: str) -> ToolOutcome:
        """Does an action; the outcome says what it frees and what it makes uncached. Raises ToolError where it cannot
        be."""
        try:
            self._conversation.require_writable()
            match action:
                case "status":
                    return _outcome("\n".join(self._status()), fill_words(self._runtime.usage()))
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
        for note in _notes(conversation):
            yield f"Kept note {recall_id(note.id)}: {one_line(pinned_words(note), 80)}"

    def _drop(self, names: Sequence[str]) -> ToolOutcome:
        mine = {result.message_id: result for result in own_results(self._runtime, smallest=0)}
        chosen: dict[str, OwnResult] = {}
        refused: list[str] = []
        for name in names:
            try:
                message = self._targets.named(name)
            except AgentError as error:
                refused.append(str(error).rstrip("."))
                continue
            if message.id in mine:
                chosen[message.id] = mine[message.id]
            else:
                refused.append(f"{recall_id(message.id)} {self._why_not(message)}")
        if not chosen:
            raise ToolError(f"{CONTEXT_TOOL}: nothing dropped: {'; '.join(refused)}.")
        plan, _ = plan_edit(self._runtime, self._runtime.usage(), [clear_record(self._runtime, list(chosen))])
        marks = DropMarks(self._runtime, in_turn=True)
        marks.add(chosen, by_agent=True)
        freed, count = tokens(max(0, plan.freed), True), plural(len(chosen), "result")
        when = (
            "They go before your next step"
            if marks.due()
            else "They go when that is cheap (nothing cached, a compaction, or it pays before the next one) or room is "
            "needed"
        )
        said = [f"Let go of {count}: {freed} tokens less per request.", self._uncached(plan.behind), f"{when}."]
        said += [f"Not dropped: {'; '.join(refused)}."] if refused else []
        return _outcome(" ".join(filter(None, said)), f"{count} · {freed}")

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
        return f"If done now, {tokens(behind, True)} tokens behind them are no longer cached." if behind else ""

    async def _fold(self, names: Sequence[str], text: str) -> ToolOutcome:
        path = self._conversation.path
        places = sorted(path.index(self._targets.named(name)) for name in names)
        if loop_binds(self._runtime):
            raise ToolError(f"{CONTEXT_TOOL}: {BOUND}")
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
        self._later(AskedCompaction("edit", fold=ends, text=text))
        count, part = plural(len(inside), "message"), tokens(plan.folded_tokens, True)
        said = f"{count} ({part} tokens) become your text (about {tokens(round(size), True)}) when this step ends."
        return _outcome(" ".join(filter(None, [said, self._uncached(price.behind)])), f"{count} · {part}")

    def _keep(self, text: str) -> ToolOutcome:
        size = round(char_tokens(text))
        taken = size + sum(round(char_tokens(pinned_words(note))) for note in _notes(self._conversation))
        limit = self._runtime.usage().limit
        if limit and taken > limit * NOTES_SHARE:
            most = tokens(int(limit * NOTES_SHARE), False)
            raise ToolError(f"{CONTEXT_TOOL}: all your notes would take {tokens(taken, True)} tokens of {most}.")
        outcome = _outcome("Kept: every compaction carries it word for word.", f"note of {tokens(size, True)} tokens")
        return replace(outcome, display={**(outcome.display or {}), KEPT_NOTE: text})

    async def _compact(self, focus: str) -> ToolOutcome:
        if self._compaction.auto.held_back() in ("setting", "paused"):
            raise ToolError(f"{CONTEXT_TOOL}: not compacted: {self._compaction.auto.held_back_text()}.")
        expected = await self._compaction.preview(focus, self._runtime.usage())
        if not expected.after:
            raise ToolError(f"{CONTEXT_TOOL}: {expected.say}")
        self._later(AskedCompaction("manual", focus))
        before, after = (tokens(sum(each.values()), True) for each in (expected.before, expected.after))
        return _outcome(f"It is compacted when this step ends. {expected.say}", f"{before} → {after}")

    def _later(self, asked: AskedCompaction) -> None:
        """Has it done when this step ends."""
        self._compaction.after_step.add(lambda: self._compaction.by_agent(asked))


def keep_note(conversation: Conversation, message: Message) -> None:
    """Pins what the model wanted kept, where this result says so."""
    result, state = message.tool_result, conversation.info.state
    if result is not None and KEPT_NOTE in (result.display or {}):
        conversation.keep_state(replace(state, pinned_messages=(*state.pinned_messages, message.id)))


def _notes(conversation: Conversation) -> list[Message]:
    pinned = conversation.info.state.pinned_messages
    return [message for message in conversation.path if message.role == "tool" and message.id in pinned]


def _outcome(text: str, summary: str) -> ToolOutcome:
    return ToolOutcome(text, display={"kind": "text", "summary": summary})
