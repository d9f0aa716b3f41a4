"""What is written and not sent yet, counted while it is typed: by its characters at once, by its tokens a moment later.

It is weighed as the calculator weighs a message: by the same estimate, the model's family and what was learned of its
server. So the total before Enter and the draft beside it come to the total after Enter.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import field
from typing import TypeAlias

from agent_tui.context.tokens import (
    ASCII_TOKENS,
    ROUGH,
    char_tokens,
    estimate_message,
    family_seen,
    round_up,
    text_of_part,
)
from agent_tui.engine.context_control import ContextControl
from agent_tui.engine.runner import TurnRelay
from agent_tui.engine.runtime import WORTH_COUNTING
from agent_tui.engine.state import AgentState
from agent_tui.engine.turns.toolrunner import mask_attachments
from agent_tui.engine.waiting import Waiting
from agent_tui.errors import WorkerError
from agent_tui.models.calibration import KINDS, Content, raw_total, text_content
from agent_tui.models.context import Draft
from agent_tui.models.events import DraftChanged, Event, MessageAdded, QueueChanged, SessionChanged
from agent_tui.models.messages import AttachmentPart, Message, Part
from agent_tui.records import dataclass
from agent_tui.text.clean import common_start
from agent_tui.tools.files.pictures import fit_attachments, needs_fitting

PAUSE = 0.15
"""Seconds between a key and the count of what it changed, at least; four times as long as the last count took."""
SLICE = 250_000
"""Characters that are counted at once: who waits for another count need not wait for a long draft."""
LOOKED_THROUGH = 1_000_000
"""From this many characters on the character rule looks at the beginning alone."""
KEPT = 64
"""Texts and files whose counts are kept beside those of the draft."""
NOTHING = (0,) * len(KINDS)

Counts: TypeAlias = "tuple[int, ...]"


@dataclass(slots=True, frozen=True)
class NamedFile:
    """A file that a text names: what it is and was changed when, about how many characters it has, and what reads it;
    None where the user is to be asked first."""

    key: Hashable
    chars: int
    read: Callable[[], AttachmentPart | None] | None


Finder: TypeAlias = Callable[[], Awaitable[list[NamedFile]]]
"""Finds the files that the draft names."""


def characters(text: str) -> float:
    """Tokens by the character rule; of a very long text by its beginning."""
    if len(text) <= LOOKED_THROUGH:
        return char_tokens(text)
    return char_tokens(text[:LOOKED_THROUGH]) * len(text) / LOOKED_THROUGH


@dataclass(slots=True)
class Weight:
    """Texts together: the ``counts`` of what is counted, and the tokens of the rest by the character rule."""

    counts: list[float] = field(default_factory=lambda: [0.0] * len(KINDS))
    rest: float = 0.0

    def add(self, counts: Sequence[int], share: float = 1.0) -> None:
        self.counts = [have + share * more for have, more in zip(self.counts, counts, strict=True)]

    def content(self, factor: float) -> Content:
        whole = [round(count) for count in self.counts]
        made = text_content(whole, raw_total(whole)) if any(whole) else Content()
        rest = self.rest * factor
        made.add(Content(plain=rest, rough=(ROUGH * rest) ** 2))
        return made


class PromptText:
    """The text that stands in the prompt. While it changes, what was counted of it last stands for what is left of
    that, and the character rule for what is new."""

    def __init__(self) -> None:
        self.text = ""
        self._counted = ""
        self._counts: Counts = NOTHING
        self._characters = 0.0

    @property
    def settled(self) -> bool:
        return self.text == self._counted

    def become(self, text: str) -> None:
        self.text = text

    def count(self, text: str, counts: Counts) -> None:
        self._counted, self._counts, self._characters = text, counts, characters(text)

    def weigh(self, whole: Weight) -> None:
        """Adds it to ``whole``."""
        before, now = self._counted, self.text
        if before == now:
            whole.add(self._counts)
            return
        start = common_start(before, now)
        end = common_start(before[start:][::-1], now[start:][::-1])
        gone = characters(before[start : len(before) - end])
        if before and gone < self._characters:
            whole.add(self._counts, 1 - gone / self._characters)
        whole.rest += characters(now[start : len(now) - end])


@dataclass(slots=True)
class _Attached:
    """What goes with a message: its parts, once they were read, and the characters of files that were not."""

    parts: list[AttachmentPart] = field(default_factory=list)
    unread: float = 0.0


class Drafting:
    """Keeps the draft's size: of what waits for its turn, and of what the prompt says stands in it.

    ``typed`` answers at once, with what is known; what has to be read or counted is done in the background, and then
    the numbers are told anew.
    """

    def __init__(self, state: AgentState, context: ContextControl, waiting: Waiting, relay: TurnRelay) -> None:
        self._state = state
        self._waiting = waiting
        self._relay = relay
        self._typed = PromptText()
        self._pastes: list[str] = []
        self._images: list[AttachmentPart] = []
        self._find: Finder | None = None
        self._counts: dict[str, Counts] = {}
        self._read: dict[Hashable, AttachmentPart | None] = {}
        self._attached = _Attached()
        self._brought: list[AttachmentPart] = []
        self._at_work = self._again = False
        self._told: Draft | None = None
        self._context = context
        self._listens = False

    def typed(
        self, text: str, pastes: Sequence[str] = (), images: Sequence[AttachmentPart] = (), find: Finder | None = None
    ) -> Draft | None:
        """Takes what stands in the prompt, the places of ``pastes`` and ``images`` left out; ``find`` finds the files
        that it names. Returns the draft's size as far as it is known now."""
        if not self._listens:
            # Where nobody types nothing of this is asked for.
            self._listens = True
            self._state.events.subscribe(self._heard)
            self._context.count_draft_by(lambda: self.now)
        self._told = self._become(text, pastes, images, find)
        return self._told

    def _become(
        self, text: str, pastes: Sequence[str], images: Sequence[AttachmentPart], find: Finder | None
    ) -> Draft | None:
        if text == self._typed.text and [*pastes] == self._pastes and [*images] == self._images:
            return self.now
        if not (text or pastes or images):
            self._attached = _Attached()
        self._typed.become(text)
        self._pastes, self._images, self._find = list(pastes), list(images), find
        self.look()
        return self.now

    def look(self) -> None:
        """Looks again at what goes with the draft, soon: files may have changed, messages may wait no more."""
        self._again = True
        if not self._at_work and self._state.opened and self._something:
            self._at_work = True
            self._state.events.spawn(self._settle(), "draft")

    def look_at_files(self) -> None:
        """The same where files go with it: what is in them may have changed."""
        if self._attached.parts or self._attached.unread:
            self.look()

    def _heard(self, event: Event) -> None:
        """What waits, and what goes along with the next message, may be another now."""
        if isinstance(event, QueueChanged | MessageAdded | SessionChanged):
            if not self._something:
                self._tell()
            self.look()

    def _tell(self) -> None:
        """Tells the draft where it is another than was told."""
        now = self.now
        if now != self._told:
            self._told = now
            self._state.events.publish(DraftChanged(now))

    @property
    def _something(self) -> bool:
        return self._writing or bool(self._waiting.count)

    @property
    def _writing(self) -> bool:
        return bool(self._typed.text.strip() or self._pastes or self._images)

    @property
    def now(self) -> Draft | None:
        """The draft as far as it is known; None where nothing is written."""
        if not self._state.opened or self._state.conversation.read_only or not self._something:
            return None
        waiting = self._waiting.to_send()
        tokens, spread, approximate = self._weigh_waiting(waiting)
        if self._writing:
            weight = Weight()
            self._typed.weigh(weight)
            for text in self._pastes:
                self._weigh_text(weight, text)
            # What was told with a message that waits goes once.
            told = [] if waiting else self._brought
            of_prompt = self._tokens(weight, [*told, *self._attached.parts], self._attached.unread)
            tokens, spread = tokens + of_prompt[0], spread + of_prompt[1]
            approximate |= of_prompt[2]
        return Draft(tokens, spread, approximate, len(waiting))

    def _weigh_waiting(self, waiting: Sequence[Message]) -> tuple[int, int, bool]:
        tokens, spread, approximate = 0, 0, False
        for number, message in enumerate(waiting):
            more = self._tokens(Weight(), [*([] if number else self._brought), *message.parts], 0.0)
            tokens, spread, approximate = tokens + more[0], spread + more[1], approximate or more[2]
        return tokens, spread, approximate

    def _tokens(self, weight: Weight, parts: Sequence[Part], unread: float) -> tuple[int, int, bool]:
        """A message of the weight and of parts: its tokens, their spread, and whether something is not counted yet."""
        runtime = self._state.runtime
        family = family_seen(runtime.info)
        calibration = runtime.calibration or family.beginning
        media: list[Part] = [p for p in parts if isinstance(p, AttachmentPart) and p.text is None]
        for text in filter(None, map(text_of_part, parts)):
            self._weigh_text(weight, text)
        weight.rest += unread
        content = estimate_message(Message("", "user", media, raw_tokens=0, counts=NOTHING), family).content.copy()
        content.add(weight.content(family.char_factor))
        return round_up(max(0.0, calibration.tokens(content))), calibration.spread(content), weight.rest > 0

    def _weigh_text(self, weight: Weight, text: str) -> None:
        counts = self._counts.get(text)
        if counts is None:
            weight.rest += characters(text)
        else:
            weight.add(counts)

    async def _settle(self) -> None:
        """Reads and counts until nothing has changed meanwhile."""
        pause = PAUSE
        try:
            while self._again and self._state.opened:
                await asyncio.sleep(pause)
                self._again = False
                begun = time.perf_counter()
                self._brought = self._relay.brings()
                await self._look_at_files()
                await self._count()
                self._tell()
                pause = max(PAUSE, 4 * (time.perf_counter() - begun))
        finally:
            self._at_work = False

    async def _look_at_files(self) -> None:
        """By their sizes first, then read, each once until it changes."""
        images, find = self._images, self._find
        found = await find() if find is not None and self._writing else []
        unread = [file for file in found if file.key not in self._read]
        asked = sum(file.chars for file in found if file.read is None) * ASCII_TOKENS
        if unread:
            known = [part for file in found if (part := self._read.get(file.key)) is not None]
            self._attached = _Attached([*images, *known], sum(file.chars for file in unread) * ASCII_TOKENS)
            self._tell()
            for file in unread:
                part = await asyncio.to_thread(file.read) if file.read is not None else None
                if part is not None:
                    part = next(iter(mask_attachments([part], self._state.parts.secrets)))
                self._read[file.key] = part
        parts = [*images, *(part for file in found if (part := self._read[file.key]) is not None)]
        limits = self._state.image_limits
        if needs_fitting(parts, limits):
            parts, _, _ = await asyncio.to_thread(fit_attachments, parts, limits)
        for key in list(self._read)[:-KEPT]:
            if all(file.key != key for file in found):
                del self._read[key]
        self._attached = _Attached(parts, asked)

    async def _count(self) -> None:
        """Counts what has no count yet. What stands in the prompt is counted by itself: each key changes it."""
        typed = self._typed.text
        parts: list[Part] = [*self._brought, *self._attached.parts]
        parts += [part for message in self._waiting.to_send() for part in message.parts]
        wanted = dict.fromkeys([*self._pastes, *filter(None, map(text_of_part, parts))])
        texts = [typed, *(text for text in wanted if text not in self._counts)]
        if not self._state.parts.counter.running and sum(map(len, texts)) < WORTH_COUNTING:
            # The character rule is good enough for so few.
            return
        try:
            if not self._typed.settled:
                self._typed.count(typed, await self._counted(typed))
            for text in wanted:
                if text not in self._counts:
                    self._counts[text] = await self._counted(text)
        except WorkerError:
            # The character rule stays; who counts messages has said so.
            return
        for text in [text for text in self._counts if text not in wanted][:-KEPT]:
            del self._counts[text]

    async def _counted(self, text: str) -> Counts:
        whole = NOTHING
        for start in range(0, len(text), SLICE):
            (counts,) = await self._state.parts.counter.count([text[start : start + SLICE]])
            whole = tuple(map(sum, zip(whole, counts, strict=True)))
        return whole
