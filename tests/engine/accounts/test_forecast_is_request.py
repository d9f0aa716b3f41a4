"""What is foreseen of a request is what is sent: over random models, efforts, windows and conversations."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from agent_tui.config import ContextConfig, ModelConfig, PermissionsConfig, Settings
from agent_tui.engine.agent import Agent
from agent_tui.models.messages import AttachmentPart
from agent_tui.models.requests import (
    Counter,
    Delta,
    Effort,
    Finished,
    ModelInfo,
    ModelRequest,
    ModelSpec,
    Started,
    StreamItem,
    UsageReport,
)
from agent_tui.models.usage import Limits, TokenUsage
from agent_tui.providers.demo import DemoProvider
from agent_tui.providers.pieces import PieceMaker, Pieces
from tests.support.agents import parts_for, running, say
from tests.support.forms import examples, one_of
from tests.support.pixel import PIXEL_BASE64

MODELS = (
    "anthropic/claude-sonnet-4-5",
    "anthropic/claude-haiku-4-5",
    "anthropic/claude-sonnet-4-6",
    "bedrock/anthropic.claude-opus-4-5",
    "openrouter/anthropic/claude-sonnet-4.5",
    "gemini/gemini-2.5-pro",
    "gemini/gemini-3-pro-preview",
    "openai/gpt-5-mini",
    "azure/gpt-5-mini",
    "deepseek/deepseek-chat",
    "mistral/magistral-medium-latest",
    "zai/glm-4.7",
    "ollama_chat/qwen3",
    "hosted_vllm/qwen3",
)
EFFORTS: tuple[Effort, ...] = ("off", "low", "medium", "high")
WINDOWS = (24_000, 28_000, 32_000, 64_000, 96_000, 128_000, 200_000, 1_000_000)
OUTPUTS = (None, 4_096, 8_192, 32_000, 64_000)
LONG = "A line of the conversation that says what is to be known of it. " * 150


class Remembering(DemoProvider):
    """Thinks, calls a tool now and then, and reads all of the last request again."""

    def __init__(self, counter: Counter, rng: random.Random, window: int, output: int | None) -> None:
        super().__init__(counter, None, pace=0.0)
        self._rng, self._limits, self._before, self._calls = rng, Limits(window, None, output, "config"), 0, 0

    async def describe(self, spec: ModelSpec) -> ModelInfo:
        return replace(await super().describe(spec), limits=self._limits)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        yield Started((await self.describe(request.spec)).target)
        part = 0
        if request.effort != "off":
            signed = {"type": "thinking", "signature": "c2ln", "encrypted_content": "e"}
            yield Delta(0, "reasoning", "Let me think. " * 40, metadata=signed)
            part = 1
        if calls := request.messages[-1].message.role == "user" and self._rng.random() < 0.5:
            self._calls += 1
            yield Delta(part, "tool_call", '{"path": "."}', call_id=f"call{self._calls}", name="list")
        else:
            yield Delta(part, "text", "Yes. " * self._rng.choice((1, 300)))
        total, _ = await self._witness.input_tokens(request)
        read, self._before = min(self._before, total), total
        yield UsageReport(TokenUsage(total, 300, cache_read=read, cache_write=total - read))
        yield Finished("tool_calls" if calls else "stop")


@pytest.mark.forms(1)
@pytest.mark.parametrize("seed", one_of(range(examples(14, 200)), every=7))
async def test_what_is_foreseen_is_what_is_sent(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    window, output = rng.choice(WINDOWS), rng.choice(OUTPUTS)
    model = ModelConfig(MODELS[seed % len(MODELS)], reasoning_effort=rng.choice(EFFORTS))
    settings = Settings(
        default_model="m",
        models={"m": model},
        permissions=PermissionsConfig(mode="auto"),
        context=ContextConfig(exact_counting="off", auto_compact=False),
    )
    provider: Callable[[Counter], Remembering] = lambda counter: Remembering(counter, rng, window, output)  # noqa: E731
    made: list[Pieces] = []
    whole = PieceMaker.pieces

    def pieces(self: PieceMaker, *args: object, **kwargs: object) -> Pieces:
        made.append(whole(self, *args, **kwargs))  # type: ignore[arg-type]
        return made[-1]

    parts = parts_for(tmp_path / "home", tmp_path / "p", settings=settings, provider=provider)
    (tmp_path / "p" / "notes.txt").write_text(LONG)
    with mock.patch.object(PieceMaker, "pieces", pieces):
        async with running(parts) as (agent, _):
            await say(agent, "begin " + LONG)
            changed = False
            for turn in range(6):
                changed = _change(agent, rng) or changed
                said, foreseen = agent.context.usage().forecast, made[-1]
                newest = agent.conversation.steps[-1].sent
                assert said is not None and newest is not None
                if not changed and foreseen.settings == newest.settings:
                    assert said.cold is None, (turn, said)
                count, digests, steps = len(foreseen.keys), list(foreseen.digests), len(agent.conversation.steps)
                made.clear()
                pictures = (AttachmentPart("a.png", "image/png", data=PIXEL_BASE64),) if rng.random() < 0.3 else ()
                await say(agent, f"turn {turn}", pictures)
                if len(agent.conversation.steps) == steps:
                    # The window is full: nothing was sent.
                    return
                sent = next(one for one in made if len(one.keys) > count)
                assert sent.digests[:count] == digests, turn
                # A picture comes with the message.
                came = {"images"} if pictures else set()
                differ = {name for name, _ in sent.settings.items() ^ foreseen.settings.items()}
                assert differ <= came, turn
                assert {*foreseen.marks} <= {*sent.marks}
                changed = False


def _change(agent: Agent, rng: random.Random) -> bool:
    """Does something that changes the next request, or nothing."""
    match rng.choice(("nothing", "nothing", "nothing", "pin", "effort")):
        case "pin":
            (agent.context.unpin if agent.context.pinned else agent.context.pin)("notes.txt")
            return True
        case "effort":
            agent.models.set_effort(rng.choice(EFFORTS))
            return True
    return False
