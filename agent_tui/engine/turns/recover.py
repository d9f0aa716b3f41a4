"""A step that was refused is made again: what the refusal says, what is changed then, what is remembered of it.

A request was fine to build, and its server refuses it; as the conversation holds what is wrong with it, it would refuse
every later one. So it goes out again with less: what the words name first, else what a history may hold, the newest
addition first; each once. A change stays only where the refusal becomes another one or ends. What helped is remembered
for the model and its server, and one line says it; where nothing helped, nothing was changed.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from functools import cached_property
from types import MappingProxyType
from typing import get_args

from agent_tui.engine.compaction.service import CompactionService
from agent_tui.engine.conversation import patiently
from agent_tui.engine.models import BOUND, NO_DROP_FIELD, NO_FILES, NO_MEDIA, NO_TOOL, TEXT_UNTIL, UNTIL, remember
from agent_tui.engine.request_prefix import RequestPrefix, without_tools
from agent_tui.engine.runtime import Emit, Runtime
from agent_tui.engine.turns.overflow import Again, SizeRecovery
from agent_tui.engine.turns.step import StepResult
from agent_tui.models.events import AnswerInterrupted, MessagesWithdrawn, Notice
from agent_tui.models.failure import Adaptation, Failure, with_more
from agent_tui.models.messages import (
    MALFORMED,
    AttachmentPart,
    Message,
    ToolCallPart,
    content_fingerprint,
    user_message,
)
from agent_tui.models.requests import ModelInfo, ModelRequest, ReplayRule
from agent_tui.providers.catalog import sees
from agent_tui.providers.dialects.shared import ReplayPlan, Thinking
from agent_tui.providers.images import media_parts
from agent_tui.providers.reasoning import behind_mark, decide, fits_where_it_was_made, text_before
from agent_tui.providers.refusals import (
    UNNAMED,
    Hint,
    malformed_call,
    may_be_history,
    named_hint,
    only_files,
    refused_tools,
    refuses_drop_field,
    refuses_media,
    refuses_schema,
    speaks_of_blocks,
)
from agent_tui.records import dataclass
from agent_tui.text.clean import cut
from agent_tui.text.numbers import plural

log = logging.getLogger(__name__)

MOST_REPAIRS = 8
"""Times that one step is made again for what its server refuses."""

MOST_MALFORMED = 3
"""Calls in a row that a server cannot read, after which the turn ends."""

MALFORMED_CHARS = 1_000
"""Characters of what the server said of one that the model is told."""


@dataclass(slots=True, frozen=True)
class RequestChange:
    """A change of what is sent: what follows for the model, as half a sentence, and the facts to remember where it
    helped. ``code`` is that of the line."""

    code: str
    words: str
    facts: tuple[str, ...] = ()


class RefusedRequest:
    """A request, as it would be with what is in force now, and what it was refused with."""

    def __init__(self, runtime: Runtime, request: ModelRequest, failure: Failure, hint: Hint) -> None:
        self.runtime = runtime
        self.request = request
        self.failure = failure
        self.hint = hint

    @property
    def messages(self) -> list[Message]:
        return [item.message for item in self.request.messages]

    @cached_property
    def decided(self) -> tuple[ReplayPlan, Thinking]:
        return decide(self.request, self.runtime.info)

    def newest(self, holds: Callable[[Message], bool]) -> int:
        """The place of the newest message of which that is true; -1 where there is none."""
        return max((n for n, message in enumerate(self.messages) if holds(message)), default=-1)

    @property
    def shown(self) -> list[AttachmentPart]:
        """The pictures and files that go out as they are."""
        return media_parts(self.request.messages, self.request.media)

    def adapt(self, adaptation: Adaptation) -> None:
        rule = self.runtime.replay
        self.runtime.send_as(replay=replace(rule, adaptations=[*rule.adaptations, adaptation]))


def _holds_signed(refused: RefusedRequest) -> int:
    """Where the newest answer stands of which something goes back that its maker signed or named."""
    plan, _ = refused.decided

    def signed(message: Message) -> bool:
        if message.role != "assistant" or not plan.same_origin(message.id):
            return False
        return any(
            plan.resent(message.id, n) or bool((part.provider_metadata or {}).keys() & {"thought_signature"})
            for n, part in enumerate(message.parts)
        )

    found = refused.newest(signed)
    asks = refused.runtime.info.target.api == "responses" and refused.runtime.info.reasoning is not False
    return 0 if found < 0 and asks and refused.hint.always else found


def _holds_ids(refused: RefusedRequest) -> int:
    plan, _ = refused.decided
    if refused.runtime.info.target.api != "responses":
        return -1
    return refused.newest(
        lambda message: (
            message.role == "assistant"
            and plan.same_origin(message.id)
            and any((part.provider_metadata or {}).get("id") for part in message.parts)
        )
    )


def _holds_calls(refused: RefusedRequest) -> int:
    """Where the newest call or result stands, or else what a strict template refuses: two of one side in a row."""
    found = refused.newest(lambda m: m.role == "tool" or any(isinstance(p, ToolCallPart) for p in m.parts))
    if found >= 0:
        return found if found >= text_before(refused.request.messages, refused.request.replay) else -1
    roles = [message.role for message in refused.messages]
    same = [n for n in range(1, len(roles)) if roles[n] == roles[n - 1]]
    return same[-1] if same else -1


def _holds_answers(refused: RefusedRequest) -> int:
    if refused.runtime.info.target.api == "responses":
        return -1
    return refused.newest(lambda message: message.role == "assistant")


HOLDS: MappingProxyType[Adaptation, Callable[[RefusedRequest], int]] = MappingProxyType(
    {
        "no item ids": _holds_ids,
        "no reasoning": _holds_signed,
        "reasoning everywhere": _holds_answers,
        "short call ids": lambda r: r.newest(lambda m: any(isinstance(p, ToolCallPart) for p in m.parts)),
        "media": lambda r: r.newest(lambda m: any(part in r.shown for part in m.parts)),
        "calls as text": _holds_calls,
        "system as text": lambda r: 0 if r.request.system and r.runtime.info.target.api != "responses" else -1,
        "no thinking": lambda r: 0 if r.decided[1].kwargs and not r.decided[1].off else -1,
        "no tools": lambda r: 0 if r.request.tools else -1,
    }
)
"""Where in a request the newest thing stands that an adaptation changes; -1: nowhere."""


def _without_reasoning(refused: RefusedRequest) -> RequestChange:
    """Of a server that refuses what it made itself, in the place where it made it, nothing goes back any more; else
    what is there now stays out, as a later answer may be right."""
    runtime, request, hint = refused.runtime, refused.request, refused.hint
    rule, target = runtime.replay, runtime.info.target
    again = behind_mark(request.messages, rule.until) > 0
    always = hint.always
    if always is None:
        always = fits_where_it_was_made(request.messages, target, request.fixed_fingerprint)
        always = (again or not speaks_of_blocks(refused.failure)) and always
    facts: tuple[str, ...] = ()
    if speaks_of_blocks(refused.failure):
        rule, facts = replace(rule, bound=True), (BOUND,)
    if always or again:
        runtime.send_as(replay=rule)
        refused.adapt("no reasoning")
        return RequestChange("reasoning", "reasoning is no longer sent back", (*facts, "no reasoning"))
    last = refused.messages[refused.newest(lambda message: message.role == "assistant")].id
    runtime.send_as(replay=replace(rule, until=[*rule.until, last]))
    return RequestChange("reasoning", "earlier reasoning is left out", (*facts, UNTIL + last))


def _calls_as_text(refused: RefusedRequest) -> RequestChange:
    runtime, rule = refused.runtime, refused.runtime.replay
    words = "tool calls and their results are sent as text"
    if refused.hint.always or behind_mark(refused.request.messages, rule.text_until):
        refused.adapt("calls as text")
        return RequestChange("calls_as_text", words, ("calls as text",))
    last = refused.messages[-1].id
    runtime.send_as(replay=replace(rule, text_until=[*rule.text_until, last]))
    return RequestChange("calls_as_text", f"earlier {words}", (TEXT_UNTIL + last,))


def _without_media(refused: RefusedRequest) -> RequestChange:
    """What the server refuses to be shown is told in words, as long as it is this model: files, or all there is."""
    runtime, shown, why = refused.runtime, refused.shown, refuses_media(refused.failure)
    files = [part for part in shown if not part.is_image]
    images = len(files) < len(shown) and not (files and only_files(refused.failure))
    gone = shown if images else files
    info = runtime.info
    runtime.learn_limits(replace(info, images=False if images else info.images, files=False))
    what = gone[-1].name + (f" and {plural(len(gone) - 1, 'other')}" if len(gone) > 1 else "")
    words = f"{what} and all other {'pictures and files' if images else 'files'} are described as text"
    facts = () if why != "any" else (NO_MEDIA,) if images else (NO_FILES,)
    return RequestChange("media_refused", words, facts)


def _without_tools(refused: RefusedRequest) -> RequestChange:
    prefix = refused.runtime.request_prefix
    refused.adapt("no tools")
    refused.runtime.send_as(prefix=without_tools(prefix, {tool.schema.name for tool in prefix.offered}))
    return RequestChange("tools_refused", "it gets no tools", ("no tools",))


def _adapted(adaptation: Adaptation, words: str, code: str) -> Callable[[RefusedRequest], RequestChange]:
    def change(refused: RefusedRequest) -> RequestChange:
        refused.adapt(adaptation)
        # What only single answers made necessary need not hold for other sessions.
        lasting = adaptation != "no thinking" or bool(refused.hint.always)
        return RequestChange(code, words, (adaptation,) if lasting else ())

    return change


CHANGES: MappingProxyType[Adaptation, Callable[[RefusedRequest], RequestChange]] = MappingProxyType(
    {
        "no item ids": _adapted("no item ids", "earlier answers go back without their ids", "item_ids"),
        "no reasoning": _without_reasoning,
        "reasoning everywhere": _adapted(
            "reasoning everywhere", "every answer goes back with a field for reasoning", "reasoning"
        ),
        "short call ids": _adapted("short call ids", "tool calls go back with short ids", "call_ids"),
        "media": _without_media,
        "calls as text": _calls_as_text,
        "system as text": _adapted(
            "system as text", "the system prompt goes as part of your first message", "system_as_text"
        ),
        "no thinking": _adapted("no thinking", "it is not asked to think", "reasoning"),
        "no tools": _without_tools,
    }
)
assert CHANGES.keys() == HOLDS.keys() == set(get_args(Adaptation))


@dataclass(slots=True, frozen=True)
class _Sending:
    """What of a runtime is changed by recoveries, as it was."""

    replay: ReplayRule
    info: ModelInfo
    prefix: RequestPrefix
    schema_refused: bool
    left_out: frozenset[str]

    @staticmethod
    def of(runtime: Runtime) -> _Sending:
        replay, prefix = runtime.replay, runtime.request_prefix
        return _Sending(replay, runtime.info, prefix, runtime.schema_refused, runtime.left_out)

    def restore(self, runtime: Runtime) -> None:
        """Everything is sent as before; what refusals have taught of limits stays known."""
        runtime.send_as(
            prefix=self.prefix, replay=self.replay, left_out=self.left_out, schema_refused=self.schema_refused
        )
        runtime.learn_limits(replace(self.info, limits=runtime.info.limits))


@dataclass(slots=True)
class _Kept:
    """The changes in force for the step, each with what was sent before it."""

    changes: list[tuple[_Sending, RequestChange]] = field(default_factory=list)

    def take_back(self, runtime: Runtime) -> None:
        before, _ = self.changes.pop()
        before.restore(runtime)


Candidate = tuple[str, Callable[[RefusedRequest], RequestChange]]


class HistoryRepair:
    """Tries what is left to try for one step whose request was refused for what it holds."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._before: _Sending | None = None
        self._first: Failure | None = None
        self._words = ""
        self._base: ModelRequest | None = None
        self._kept = _Kept()
        self._tried: dict[str, Callable[[RefusedRequest], RequestChange]] = {}
        self._repairs = 0
        self._at_once = False

    def next(self, result: StepResult) -> bool:
        """Changes what is sent, so that the step may be made again; False where nothing is left to change."""
        failure = result.failure
        if failure is None or malformed_call(failure) or self._repairs >= MOST_REPAIRS:
            return False
        runtime, words = self._runtime, _comparable(failure)
        if self._before is None:
            self._before, self._first, self._base = _Sending.of(runtime), failure, result.request
        elif words == self._words and self._kept.changes and not self._names_others(result, failure):
            # It was not for that.
            self._kept.take_back(runtime)
        else:
            self._base = result.request
        self._words = words
        for name, change in self._candidates(failure):
            if name not in self._tried:
                self._tried[name] = change
                return self._take([change], failure)
        if len(self._tried) > 1 and not self._at_once:
            self._at_once = True
            return self._take(list(self._tried.values()), failure)
        return False

    def _names_others(self, result: StepResult, failure: Failure) -> bool:
        """Returns whether the same words mean other tools now: those that stand in the place of the ones left out."""
        names = refused_tools(failure, result.request.tools, self._brought())
        return bool(names) and self._kept.changes[-1][1].code == "tools_refused" and f"tools {names}" not in self._tried

    def _brought(self) -> list[str]:
        """The names of the tools of others."""
        offered = self._runtime.request_prefix.offered
        return [tool.schema.name for tool in offered if tool.group != "builtin" and not tool.deferred]

    def _refused(self, failure: Failure) -> RefusedRequest:
        """The request as it would be made now, without what was taken back."""
        assert self._base is not None
        runtime = self._runtime
        request = replace(
            self._base, replay=runtime.rule(), tools=runtime.request_prefix.tools, media=sees(runtime.info)
        )
        return RefusedRequest(runtime, request, failure, named_hint(failure) or UNNAMED)

    def _take(self, changes: Sequence[Callable[[RefusedRequest], RequestChange]], failure: Failure) -> bool:
        self._repairs += 1
        before, made = _Sending.of(self._runtime), list[RequestChange]()
        for change in changes:
            made.append(change(self._refused(failure)))
        facts = tuple(fact for change in made for fact in change.facts)
        words = "; ".join(change.words for change in made)
        self._kept.changes.append((before, RequestChange(made[0].code, words, facts)))
        log.info("Refused (%s); once more so that %s", failure.message, words)
        return True

    def _candidates(self, failure: Failure) -> Iterator[Candidate]:
        """What could be changed, in the order in which it is tried."""
        refused, named = self._refused(failure), named_hint(failure)
        request, rule = refused.request, refused.request.replay
        if request.output_schema is not None and refuses_schema(failure):
            yield "schema", _without_schema
        if rule.ask_drop and failure.kind == "invalid_request" and refuses_drop_field(failure):
            yield "drop field", _without_drop_field
        if refused.shown and refuses_media(failure):
            yield "media", _without_media
        if names := refused_tools(failure, request.tools, self._brought()):
            yield f"tools {names}", _leaving_out_tools(names)
        for name in named.adaptations if named is not None else ():
            if HOLDS[name](refused) >= 0 and not rule.needs(name):
                yield name, CHANGES[name]
        if named is None and may_be_history(failure):
            accepted = self._accepted()
            places = {name: HOLDS[name](refused) for name in UNNAMED.adaptations if not rule.needs(name)}
            # What came since a request was taken is first.
            for name in sorted((n for n in places if places[n] >= 0), key=lambda n: places[n] < accepted):
                yield name, CHANGES[name]

    def _accepted(self) -> int:
        """So many messages the server has taken before, as far as the newest request tells."""
        target = self._runtime.info.target
        for step in reversed(self._runtime.conversation.steps):
            if step.kind == "turn" and step.status == "complete" and step.model == target.model:
                return step.sent_count
        return 0

    def ended(self, result: StepResult | None, emit: Emit) -> None:
        """The step has ended. What was changed stays only where it was taken so."""
        runtime, first = self._runtime, self._first
        if self._before is None or first is None:
            return
        changes = [change for _, change in self._kept.changes]
        if result is None or result.failure is not None or not changes:
            self._before.restore(runtime)
            if result is not None and result.failure is not None and self._repairs:
                result.fail_as(with_more(first, _told_in_vain(self._repairs)))
            runtime.show_numbers(emit)
            return
        text = f"{first.cause} Sent again, now {'; '.join(change.words for change in changes)}."
        facts = [fact for change in changes for fact in change.facts]
        if facts and remember(runtime.conversation.store, runtime.info, *facts):
            text += " Remembered for this model and server; /doctor --forget forgets it."
        emit(Notice("warning", text, changes[0].code))
        runtime.show_numbers(emit)


def _told_in_vain(times: int) -> str:
    return (
        f"It was tried {plural(times, 'time')} more with less of the conversation, which is as it was before. /rewind "
        "to before what is refused goes on from there."
    )


def _comparable(failure: Failure) -> str:
    """The words of a refusal without what differs from one request to the next: ids, places, times."""
    text = failure.detail or failure.message
    return " ".join(word for word in re.split(r"[^A-Za-z0-9_-]+", text) if word and not re.search(r"\d", word))


def _without_schema(refused: RefusedRequest) -> RequestChange:
    refused.runtime.send_as(schema_refused=True)
    return RequestChange("schema_refused", "agent-tui checks the answer itself, as the server takes no answer schemas")


def _without_drop_field(refused: RefusedRequest) -> RequestChange:
    refused.runtime.send_as(replay=replace(refused.runtime.replay, ask_drop=False))
    return RequestChange("reasoning", "agent-tui leaves out the reasoning that no longer fits", (NO_DROP_FIELD,))


def _leaving_out_tools(names: Sequence[str]) -> Callable[[RefusedRequest], RequestChange]:
    def change(refused: RefusedRequest) -> RequestChange:
        runtime, prefix = refused.runtime, refused.runtime.request_prefix
        gone = [tool.schema.text for tool in prefix.offered if tool.schema.name in names]
        fingerprints = [content_fingerprint(text) for text in gone]
        runtime.send_as(prefix=without_tools(prefix, names), left_out=runtime.left_out.union(fingerprints))
        facts = tuple(NO_TOOL + digest for digest in fingerprints)
        return RequestChange("tools_refused", f"it no longer gets {', '.join(names)}", facts)

    return change


class Recovery:
    """Decides whether and how the steps of one turn are made again. ``begin_step`` begins each of them."""

    def __init__(self, runtime: Runtime, compaction: CompactionService, emit: Emit) -> None:
        self._runtime = runtime
        self._compaction = compaction
        self._emit = emit
        self._malformed = 0
        self.begin_step()

    def begin_step(self) -> None:
        self._history = HistoryRepair(self._runtime)
        self._size = SizeRecovery(self._runtime, self._compaction, self._emit)

    async def next(self, result: StepResult) -> Again | None:
        """Returns how to send the step again; None when it has its answer, or nothing is left to try. Raises
        StoreError."""
        failure = result.failure
        if failure is None:
            return None
        if await self._tell_malformed(failure):
            return Again()
        full = failure.overflow is not None and failure.overflow.answering
        return await self._without_answer(result) if full or not result.received else None

    async def _without_answer(self, result: StepResult) -> Again | None:
        """What came of the answer, before the window was full or in an attempt before the refused one, is left on a
        branch of its own, so that it is not sent with the next try; where there is none, it stays."""
        conversation, message = self._runtime.conversation, result.message
        came = bool(conversation.path) and conversation.path[-1] is message
        if came:
            conversation.go_to(message.parent_id)
        again: Again | None = None
        try:
            again = await self._size.next(result)
            if again is None and not result.received and self._history.next(result):
                again = Again()
        finally:
            # Also where the user ends a compaction.
            if came and again is None:
                conversation.go_to(message.id)
        if came and again is not None:
            self._emit(AnswerInterrupted(message.id))
            self._emit(MessagesWithdrawn([message.id]))
        return again

    def end_step(self, result: StepResult | None) -> None:
        """The step has ended, with its answer or without."""
        self._history.ended(result, self._emit)
        self._size.ended(result)
        if result is not None and result.failure is None:
            self._malformed = 0

    async def _tell_malformed(self, failure: Failure) -> bool:
        """Tells the model that its server could not read a call of its own; False where it was not that, or too often
        in a row."""
        if not malformed_call(failure) or self._malformed >= MOST_MALFORMED:
            return False
        self._malformed += 1
        text = (
            "Your last answer held a tool call that could not be read, so nothing was run. Write it again with "
            "arguments that are valid JSON and fit the tool's schema, or answer without it. The server said:\n"
            f"{cut(failure.detail or failure.message, MALFORMED_CHARS)}"
        )
        note = user_message("", attachments=[AttachmentPart(MALFORMED, "text/plain", text=text)])
        await patiently(lambda: self._runtime.conversation.append(note))
        told = f"The model wrote a tool call that its server could not read. Asking again ({self._malformed} of "
        self._emit(Notice("warning", f"{told}{MOST_MALFORMED}).", "malformed_call"))
        return True
