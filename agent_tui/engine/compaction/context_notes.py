"""Tells the model how full its context is, when that matters: a line that joins the newest message before it is sent.
Its numbers are those that ``/context`` has with the line in it."""

from __future__ import annotations

import math
from dataclasses import replace

from agent_tui.context.cuts import CLEARED_SUFFIX
from agent_tui.context.tokens import char_tokens
from agent_tui.engine.compaction.asked import AskedCompactions
from agent_tui.engine.compaction.own_results import fill_words, own_results
from agent_tui.engine.compaction.preparing import growth
from agent_tui.engine.notes import note_in, put_note, take_note_out
from agent_tui.engine.runtime import Runtime
from agent_tui.models.context import ContextUsage
from agent_tui.models.messages import CONTEXT_NOTE, CONTEXT_TOOL, Message
from agent_tui.models.steps import Step
from agent_tui.records import dataclass
from agent_tui.text.numbers import tokens

THRESHOLDS = (0.50, 0.75, 0.90)
"""Shares of the limit at which it is told."""
LARGE_SHARE = 0.10
"""Of the window: a result that takes more is told of."""
ALL_SHARE = 0.01
"""Of the window: what all lines that are sent may take together."""
FRAME = 16
"""Tokens that stand around a line, at most."""
NAMED = 2
TRIES = 4
"""Of making the numbers those of a request with the line in it."""


@dataclass(slots=True, frozen=True)
class _Moment:
    """Why there is something to tell, in the words of the line."""

    compacted: str = ""
    near: bool = False
    names: int = NAMED


class ContextNotes:
    """The lines of one runtime's conversation. What was told is seen from what is sent and from the step before, so
    that a restart, a rewind and a compaction need no rule of their own."""

    def __init__(self, runtime: Runtime, asked: AskedCompactions) -> None:
        self._runtime = runtime
        self._asked = asked

    async def tell(self) -> bool:
        """Adds the line to the message that is sent next, where there is one to tell; True where that was done. To be
        called when everything is counted."""
        runtime, conversation = self._runtime, self._runtime.conversation
        newest = next((step for step in reversed(conversation.steps) if step.kind == "turn"), None)
        message = conversation.path[-1] if conversation.path else None
        tells, failures = runtime.settings.context.tell_model, self._asked.failures()
        if not (tells or failures) or message is None or not _is_unsent(message, newest):
            return False
        usage = runtime.usage()
        room = self._room(usage)
        # What came of its own calls the model has to know, also where it is told nothing else, and once there is room.
        while failures and not self._fits(usage, room, " ".join(each.failed for each in failures)):
            failures.pop()
        news = " ".join(each.failed for each in failures)
        moment = self._fitting(usage, self._moment(usage, newest), news, room) if tells else None
        forms = [None] if moment is None else [replace(moment, names=n) for n in range(moment.names, -1, -1)]
        if moment is None and not news:
            return False
        for form in forms:
            if await self._settles(message, form, news):
                self._asked.forget(failures)
                conversation.save_if_possible()
                return True
        await self._amend(message, "")
        return False

    async def _settles(self, message: Message, moment: _Moment | None, news: str) -> bool:
        """Puts the line into the message; False where its numbers would be others with it in, whatever they are."""
        line = self._text(self._runtime.usage(), moment, news)
        for _ in range(TRIES):
            await self._amend(message, line)
            if line == (line := self._text(self._runtime.usage(), moment, news)):
                return True
        return False

    async def _amend(self, message: Message, line: str) -> None:
        runtime, conversation = self._runtime, self._runtime.conversation
        amended = replace(message, parts=list(message.parts), raw_tokens=None, counts=None)
        take_note_out(amended, CONTEXT_NOTE)  # one that could not be sent: a budget was in its way, or the user
        if line:
            put_note(amended, CONTEXT_NOTE, line)
        conversation.amend(amended)
        runtime.calculate_anew()
        await runtime.count(sends=True)

    def _moment(self, usage: ContextUsage, newest: Step | None) -> _Moment | None:
        """Returns why something is to be told of the next request, ``newest`` being the last one; None where nothing
        is."""
        limit = usage.limit
        if not limit or not usage.window:
            return None
        # Shares of another model's limit say nothing of this one's.
        same = newest is not None and newest.model_key == self._runtime.info.spec.key
        before, grows = _size_of(newest if same else None), growth(self._runtime.conversation.steps)

        def crossed(line: float) -> bool:
            return before < line <= usage.total

        near = not usage.held and grows > 0 and crossed(limit - grows)
        since = newest.created if newest is not None else 0.0
        made = [r for r in self._runtime.conversation.records if r.active and r.compacts and r.created > since]
        compacted = tokens(max((r.before_tokens or 0 for r in made), default=0), True) if made else ""
        offered = any(part.row == "tools" and part.label == CONTEXT_TOOL for part in self._runtime.request_prefix.fixed)
        large = own_results(self._runtime, int(usage.window * LARGE_SHARE), unseen=True)
        if compacted or near or large or any(crossed(limit * share) for share in THRESHOLDS):
            return _Moment(compacted, near, NAMED if offered else 0)
        return None

    def _fitting(self, usage: ContextUsage, moment: _Moment | None, news: str, room: float) -> _Moment | None:
        """As much of it as there is room for; None where there is none."""
        if moment is None:
            return None
        # What comes early leaves half of the room to what must not be missed.
        urgent = moment.near or bool(moment.compacted) or usage.total >= (usage.limit or 0) * THRESHOLDS[-1]
        left = room if urgent else room - (usage.window or 0) * ALL_SHARE / 2
        every = (moment, replace(moment, names=0))
        return next((each for each in every if self._fits(usage, left, self._text(usage, each, news))), None)

    def _room(self, usage: ContextUsage) -> float:
        """Tokens that lines may still take; as much as they like where nobody knows the window."""
        return usage.window * ALL_SHARE - self._told() if usage.window else math.inf

    @staticmethod
    def _fits(usage: ContextUsage, room: float, line: str) -> bool:
        size = FRAME + round(char_tokens(line))
        return size <= room and (not usage.limit or usage.total > usage.limit or usage.total + size <= usage.limit)

    def _text(self, usage: ContextUsage, moment: _Moment | None, news: str) -> str:
        if moment is None:
            return news
        said = [fill_words(usage)]
        said += [f"compacted from {moment.compacted}"] if moment.compacted else []
        said += ["the next step may compact"] if moment.near else []
        if moment.names:
            results = sorted(
                own_results(self._runtime) + own_results(self._runtime, unseen=True), key=lambda each: -each.tokens
            )
            named = [f"{each.what} {tokens(each.tokens, True)} [{each.name}]" for each in results[: moment.names]]
            said += [f"largest: {', '.join(named)}"] if named else []
        return " ".join(filter(None, [news, f"{'; '.join(said)}."]))

    def _told(self) -> int:
        """Tokens of the lines that are sent by now, roughly."""
        view = self._runtime.conversation.view()
        lines = (note_in(sent.message, CONTEXT_NOTE) for sent in view if CLEARED_SUFFIX not in sent.key)
        return sum(FRAME + round(char_tokens(line)) for line in lines if line)


def _is_unsent(message: Message, newest: Step | None) -> bool:
    """Returns whether a message of the user or a tool is sent with the next request for the first time."""
    head = newest.given.head if newest is not None and newest.given is not None else None
    return message.role != "assistant" and message.id != head


def _size_of(step: Step | None) -> int:
    """Tokens that a request had, as it was expected."""
    if step is None:
        return 0
    return step.estimated_input or (step.counted.input if step.counted is not None else 0)
