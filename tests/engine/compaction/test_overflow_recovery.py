"""What is done after a refusal as too long, and what is believed of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field

import pytest

from agent_tui.engine.calls import fitting_output
from agent_tui.engine.models import with_learned
from agent_tui.engine.turns.overflow import believable
from agent_tui.models.context import Accuracy, Calculation, ContextUsage, SessionTotals
from agent_tui.models.events import CompactionEnded
from agent_tui.models.failure import Failure, Overflow
from agent_tui.models.requests import (
    Delta,
    Failed,
    Finished,
    ModelInfo,
    ModelRequest,
    ModelSpec,
    Started,
    StreamItem,
    UsageReport,
)
from agent_tui.models.usage import TokenUsage
from tests.support.compaction_bench import Make
from tests.support.compaction_world import TARGET, model_info, raw, sections, sent_text, words
from tests.support.every import every

pytestmark = [pytest.mark.quick, pytest.mark.versions]


@dataclass
class Strict:
    """A model that refuses what does not fit its real window, output included; ``tell`` is what it says of it, and
    ``factor`` by how much it counts more than we do."""

    window: int
    tell: Callable[[int, int, int], Overflow | None]
    factor: float = 1.0
    requests: list[ModelRequest] = field(default_factory=list)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        self.requests.append(request)
        yield Started(TARGET)
        size = int(self.factor * sum(raw(sent_text([s])) + 4 for s in request.messages))
        asked = request.max_output or 0
        if request.kind == "compaction":
            yield Delta(0, "text", sections())
            yield Finished("stop")
        elif size + asked > self.window:
            yield Failed(Failure("context_overflow", "Too long.", overflow=self.tell(size, asked, self.window)))
        else:
            yield Delta(0, "text", "Done.")
            yield UsageReport(TokenUsage(size, 2))
            yield Finished("stop")

    async def describe(self, spec: ModelSpec) -> ModelInfo:
        return model_info()

    async def count_exact(self, request: ModelRequest) -> int | None:
        return None

    @property
    def kinds(self) -> list[str]:
        """Those of the requests; the calls for the parts of one summary are one."""
        kinds: list[str] = [r.kind for r in self.requests]
        return [kind for n, kind in enumerate(kinds) if kind != "compaction" or kinds[n - 1] != "compaction"]


def exact(size: int, asked: int, window: int) -> Overflow:
    return Overflow(input=size, output=asked, window=window, text="stated")


def about(size: int, asked: int, window: int) -> Overflow:
    return Overflow(input=size - size // 50, output=asked, window=window, exact=False)


def whole(size: int, asked: int, window: int) -> Overflow:
    return Overflow(total=size + asked, window=window)


def silent(size: int, asked: int, window: int) -> None:
    return None


@pytest.mark.parametrize("tell", [exact, about, whole, silent])
async def test_a_smaller_window_than_known_costs_a_shorter_answer_and_no_compaction(
    bench: Make, tell: Callable[[int, int, int], Overflow | None]
) -> None:
    model = Strict(20_000, tell)
    world = bench(model, model_info(32_768, 16_000))
    world.fill(40, 200)
    ended = await world.turn("Go on.")
    assert ended.stop_reason == "end"
    assert model.kinds == ["turn", "turn"]
    assert world.conversation.records == []
    assert len(world.notices("less_output")) == 1
    if tell is not silent:
        assert world.runtime.info.limits.window == 20_000
        assert len(world.notices("limit_learned")) == 1


async def test_what_was_learned_keeps_the_next_turn_from_being_refused(
    bench: Make,
) -> None:
    model = Strict(20_000, exact)
    world = bench(model, model_info(32_768, 16_000))
    world.fill(40, 200)
    await world.turn("Go on.")
    model.requests.clear()
    assert (await world.turn("And on.")).stop_reason == "end"
    assert model.kinds == ["turn"]
    info = with_learned(world.store, model_info(32_768, 16_000))
    assert (info.limits.window, info.limits.source) == (20_000, "learned")


async def test_input_that_does_not_fit_is_compacted_once_to_the_window_that_was_stated(
    bench: Make,
) -> None:
    model = Strict(9_000, exact)
    world = bench(model, model_info(32_768, 4_000))
    world.fill(62, 300)
    ended = await world.turn("Go on.")
    assert ended.stop_reason == "end"
    assert model.kinds == ["turn", "compaction", "turn"]
    assert [e.outcome for e in world.events if isinstance(e, CompactionEnded)] == ["done"]


async def test_after_the_compaction_a_shorter_answer_may_still_be_what_fits(
    bench: Make,
) -> None:
    model = Strict(9_000, exact, factor=1.6)
    world = bench(model, model_info(9_000, 9_000))
    world.fill(60, 100)
    ended = await world.turn("Go on.")
    assert ended.stop_reason == "end"
    assert model.kinds == ["turn", "compaction", "turn", "turn"]
    assert len(world.notices("less_output")) == 1


@pytest.mark.parametrize("window", [4_096, 8_192])
async def test_a_small_window_is_content_with_a_short_answer(bench: Make, window: int) -> None:
    model = Strict(window, exact, factor=1.5)
    world = bench(model, model_info(window, window))
    world.fill(2, int(window * 0.29))
    ended = await world.turn("Go on.")
    assert ended.stop_reason == "end"
    assert model.kinds == ["turn", "turn"]
    assert world.conversation.records == []


async def test_the_stated_size_anchors_the_estimate_where_it_is_not_absurd(
    bench: Make,
) -> None:
    def refuses(size: int, asked: int, window: int) -> Overflow:
        return Overflow(input=size + 700, window=100)

    world = bench(Strict(0, refuses), model_info(32_768, 4_000))
    world.settings.context.auto_compact = False
    world.fill(40, 200)
    await world.turn("Go on.")
    usage = world.runtime.usage()
    assert usage.calculation.last_input == usage.total
    assert usage.basis == "measured"

    world = bench(Strict(0, lambda size, asked, window: Overflow(input=size * 9, window=100)), model_info())
    world.settings.context.auto_compact = False
    before = world.runtime.usage().total
    await world.turn("Hello. " + words(1_000))
    usage = world.runtime.usage()
    assert usage.anchor_step is None
    assert usage.total < before + 2_000
    assert world.runtime.info.limits.source == "config"


async def test_what_was_refused_for_another_reason_is_not_asked_again(
    bench: Make,
) -> None:
    class Other(Strict):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
            self.requests.append(request)
            yield Started(TARGET)
            yield Failed(Failure("invalid_request", "No such parameter."))

    model = Other(0, silent)
    world = bench(model, model_info())
    ended = await world.turn("Hello.")
    assert ended.failure is not None
    assert ended.failure.message == "No such parameter."
    assert model.kinds == ["turn"]


def usage(total: int, window: int | None, limit: int | None = None) -> ContextUsage:
    return ContextUsage(
        model="m",
        window=window,
        reserve=None,
        limit=limit,
        total=total,
        free=None,
        over=None,
        basis="estimated",
        estimated_tokens=total,
        would_compact=False,
        turns_left=None,
        calculation=Calculation(None, None, 0, 0, 0, total),
        rows=[],
        accuracy=Accuracy(),
        session=SessionTotals(),
    )


@every(
    ("overflow", "total", "window", "asked", "wanted"),
    [
        (Overflow(input=190_000, output=20_000, window=200_000), 190_000, 200_000, 20_000, 9_984),
        # The input leaves no room for an answer.
        (Overflow(input=199_500, output=20_000, window=200_000), 199_500, 200_000, 20_000, None),
        (Overflow(input=205_000, max_input=200_000), 205_000, 200_000, 20_000, None),
        (Overflow(max_input=98_304), 90_000, 98_304, 20_000, None),
        # At least so long: our own number where it is larger.
        (Overflow(input=60_000, output=65_000, window=128_000, exact=False), 70_000, 128_000, 65_000, 56_600),
        # The answer counted in, and not.
        (Overflow(total=270_000, window=262_144), 240_000, 262_144, 30_000, 17_344),
        (Overflow(total=270_000, window=262_144), 268_000, 262_144, 30_000, None),
        (Overflow(output=100_000, max_output=64_000), 10_000, 200_000, 100_000, 64_000),
        (Overflow(output=100_000, max_output=64_000), 150_000, 200_000, 100_000, 47_000),
        (Overflow(max_output=8_192), 1_000, None, None, 8_192),
        # Nothing said: half, where by our numbers the input fits well.
        (None, 100_000, 200_000, 32_000, 16_000),
        (None, 190_000, 200_000, 8_000, None),
        (None, 100_000, 200_000, 1_500, None),
        (None, 100_000, None, 32_000, None),
    ],
)
def test_how_much_answer_there_is_room_for(
    overflow: Overflow | None, total: int, window: int | None, asked: int | None, wanted: int | None
) -> None:
    fits_well = window is not None and total <= window - min(32_000, window // 4)
    assert fitting_output(overflow, asked, total, window=window, fits_well=fits_well) == wanted


def test_an_absurd_size_is_not_believed() -> None:
    assert believable(Overflow(input=120_000), 100_000)
    assert believable(Overflow(input=2_500), 600)
    assert not believable(Overflow(input=400_000), 100_000)
    assert not believable(Overflow(input=10), 100_000)
    assert believable(Overflow(window=8_192), 100_000)
    stated = Overflow(input=4_496, output=3_696, window=8_192)
    assert believable(stated, 410, 3_696), "who knows what was asked for has counted"
    assert not believable(stated, 410, 4_000)


@dataclass
class Stepwise(Strict):
    """Looks at the answer's length first, and at the whole only when that will do."""

    longest: int = 8_000

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        if request.kind == "turn" and (request.max_output or 0) > self.longest:
            self.requests.append(request)
            told = Overflow(output=request.max_output, max_output=self.longest)
            yield Failed(Failure("invalid_request", "max_tokens is too large.", overflow=told))
            return
        async for item in super().stream(request):
            yield item


async def test_an_answer_over_the_longest_and_then_over_the_window_costs_no_compaction(
    bench: Make,
) -> None:
    model = Stepwise(12_000, exact)
    world = bench(model, model_info(32_768, 16_000))
    world.fill(40, 200)
    assert (await world.turn("Go on.")).stop_reason == "end"
    assert model.kinds == ["turn", "turn", "turn"]
    assert world.conversation.records == []
    assert world.runtime.info.limits.window == 12_000
    assert world.runtime.info.limits.max_output == 8_000


async def test_what_refuses_every_length_is_not_asked_for_ever(bench: Make) -> None:
    model = Stepwise(12_000, exact, longest=0)
    model.longest = -1
    world = bench(model, model_info(32_768, 16_000))
    world.fill(40, 200)
    assert (await world.turn("Go on.")).stop_reason == "error"
    assert len(model.requests) <= 4
