"""Keeps what each step of a session sent, and judges what it read from the provider's cache."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field
from functools import partial

from agent_tui.context.accounting.inputs import reasoning_tokens
from agent_tui.context.anchor import share_at
from agent_tui.context.cache_forecast import ForecastBasis, forecast_basis
from agent_tui.context.cache_misses import PrefixSizes, judge, life_of
from agent_tui.context.request_differences import MODEL, SERVER, THINKING, SentHistory, sent_fixed
from agent_tui.context.sent_lists import SentLists, SentMessages
from agent_tui.context.tokens import estimate_fixed, estimate_message, family_of
from agent_tui.models.messages import Message
from agent_tui.models.requests import ModelInfo, ModelRequest, SentMessage
from agent_tui.models.steps import Sent, Step
from agent_tui.providers.catalog import caching_of
from agent_tui.providers.dialects.record import Caching
from agent_tui.providers.dialects.shared import ReplayPlan, Thinking
from agent_tui.providers.pieces import OWN_SERVER, PROGRAM, Known, PieceMaker, Pieces
from agent_tui.records import dataclass


@dataclass(slots=True)
class SentLog:
    """Of one session and model. ``lists`` are those of its calculator: what a step adds costs what is new in it."""

    _maker: PieceMaker = field(default_factory=PieceMaker)

    def record(
        self, step: Step, request: ModelRequest, info: ModelInfo, plan: ReplayPlan, thinking: Thinking,
        earlier: Sequence[Step], lists: SentLists,
    ) -> None:  # fmt: skip
        """Stores with a step what its request is made of. ``earlier`` are the session's steps, itself among them or
        not."""
        pieces = self._pieces(request, info, plan, thinking, earlier, lists)
        keys = (lists.keys(step, earlier) if step.sent_keys is not None else None) or pieces.keys
        if len(keys) == len(pieces.digests):
            lists.record(step, SentMessages(keys, pieces.digests), earlier)
        step.sent = Sent(pieces.settings, pieces.marks)

    def forecast_basis(
        self, step: Step, request: ModelRequest, info: ModelInfo, plan: ReplayPlan, thinking: Thinking,
        earlier: Sequence[Step], summaries: Collection[str], lists: SentLists,
    ) -> ForecastBasis | None:  # fmt: skip
        """Returns what the next request would find in the provider's cache; ``step`` is what it would be. Nothing of it
        is recorded."""
        pieces = self._pieces(request, info, plan, thinking, earlier, lists)
        step.sent = Sent(pieces.settings, pieces.marks)
        caching, sizes = _caching(step, info), _sizes(step, request.messages, earlier, info)
        history = SentHistory(lists, earlier, (step, SentMessages(pieces.keys, pieces.digests)))
        return forecast_basis(step, earlier, history, caching, sizes, info.prices, summaries)

    def _pieces(
        self, request: ModelRequest, info: ModelInfo, plan: ReplayPlan, thinking: Thinking, earlier: Sequence[Step],
        lists: SentLists,
    ) -> Pieces:  # fmt: skip
        return self._maker.pieces(request, info, plan, thinking, partial(self._known, SentHistory(lists, earlier)))

    def _known(self, history: SentHistory, settings: dict[str, str]) -> Known:
        """Returns what the newest step sent, where the same program sent it the same way: a session of thousands of
        messages is not encoded anew because it is resumed."""
        found = ((step.sent, history.of(step)) for step in reversed(history.steps))
        sent, messages = next((each for each in found if each[1] is not None), (None, None))
        if sent is None or messages is None:
            return {}
        if any(sent.settings.get(name) != settings.get(name) for name in (MODEL, SERVER, THINKING, PROGRAM)):
            return {}
        return dict(zip(messages.keys, messages.digests, strict=True))

    def judge(
        self,
        step: Step,
        steps: Sequence[Step],
        view: Sequence[SentMessage],
        info: ModelInfo,
        summaries: Collection[str],
        lists: SentLists,
    ) -> None:
        """Says with a finished step what of it should have been read from the cache, and why it was not. ``view`` are
        the messages that it sent."""
        if step.sent is None or step.counted is None:
            return
        caching = _caching(step, info)
        step.cache_life = life_of(step, caching)
        earlier = steps[: next((n for n in range(len(steps) - 1, -1, -1) if steps[n] is step), len(steps))]
        sizes = _sizes(step, view, earlier, info)
        found = judge(step, earlier, SentHistory(lists, steps), caching, sizes, info.prices, summaries)
        step.expected_read, step.miss = found.expected, found.miss


def _caching(step: Step, info: ModelInfo) -> Caching:
    """Returns how the prompts of a model are cached where a step sends it."""
    own = step.sent is not None and step.sent.settings.get(SERVER, "").startswith(OWN_SERVER)
    return caching_of(info.target, own)


def _sizes(step: Step, view: Sequence[SentMessage], earlier: Sequence[Step], info: ModelInfo) -> PrefixSizes:
    """Beginnings of a step's input by estimate, in the proportion in which all of it was counted."""
    fixed: list[float] = []
    messages: list[float] = []

    def spoken(message: Message) -> float:
        return estimate_message(message, family_of(info.target)).exact

    def measure() -> None:
        if messages:
            return
        family, total = family_of(info.target), 0.0
        fixed.append(0.0)
        for part in sent_fixed(step):
            total += family.beginning.tokens(estimate_fixed(part, family)[0])
            fixed.append(total)
        messages.append(total)
        answered = {other.message_id: other for other in earlier if other.counted is not None}
        for index, item in enumerate(view):
            total += spoken(item.message)
            if (share := share_at(step.sent_reasoning or (), index)) and item.message.role == "assistant":
                total += share * reasoning_tokens(item.message, answered.get(item.message.id), spoken)[0]
            messages.append(total)

    def size(of: list[float], count: int) -> int:
        measure()
        whole = messages[-1]
        scale = step.counted.input / whole if step.counted is not None and whole else 1.0
        return round(of[min(count, len(of) - 1)] * scale)

    return PrefixSizes(partial(size, fixed), partial(size, messages))
