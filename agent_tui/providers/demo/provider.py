"""The demo model as a Provider: it streams in this process and answers at once, whatever else is still loading."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui.errors import WorkerError
from agent_tui.models.failure import Failure
from agent_tui.models.fingerprint import content_fingerprint
from agent_tui.models.requests import (
    Counter,
    Delta,
    Failed,
    Finished,
    FinishReason,
    ModelInfo,
    ModelRequest,
    ModelSpec,
    Provider,
    Started,
    StreamItem,
    UsageReport,
)
from agent_tui.models.usage import Limits, Prices, TokenUsage
from agent_tui.providers.catalog.targets import resolve_target
from agent_tui.providers.demo.answers import compose, words_in
from agent_tui.providers.demo.script import Script, ScriptedStep, load_script
from agent_tui.providers.demo.witness import Witness

WINDOW = 16_000
MAX_OUTPUT = 2_000
CHUNK = 14
PACE_SECONDS = 0.012
COUNT_SECONDS = 20.0


class DemoProvider:
    """Deterministic for the same conversation. ``pace`` is seconds between chunks of unscripted answers; a script
    (the model's ``extra.script``, or ``script`` here) sets its own."""

    def __init__(self, counter: Counter, script: Path | None = None, pace: float = PACE_SECONDS) -> None:
        self._witness = Witness(counter)
        self._pace = pace
        self._default_script = script
        self._scripts: dict[Path, Script] = {}

    def _script(self, spec: ModelSpec) -> Script | None:
        name = spec.extra.get("script") or self._default_script
        if not name:
            return None
        path = Path(name).expanduser()
        if path not in self._scripts:
            self._scripts[path] = load_script(path)
        return self._scripts[path]

    async def describe(self, spec: ModelSpec) -> ModelInfo:
        """The demo's own limits, unless configuration or script say otherwise. Raises ConfigError for a bad script."""
        script = self._script(spec)
        window = spec.context_window or (script.window if script else None) or WINDOW
        output = spec.max_output or (script.max_output if script else None) or MAX_OUTPUT
        limits = Limits(window, None, output, "config" if spec.context_window else "demo")
        prices = Prices.per_million(spec.prices) if spec.prices else Prices(0.0, 0.0, 0.0, 0.0)
        return ModelInfo(spec, resolve_target(spec), limits, prices, reasoning=True, images=True)

    async def count_exact(self, request: ModelRequest) -> int | None:
        """None: like most local models, the demo has no counting endpoint."""
        return None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        yield Started(resolve_target(request.spec))
        script = self._script(request.spec)
        newest = next((words_in(s.message) for s in reversed(request.messages) if s.message.role == "user"), "")
        step = script.take(request, newest) if script is not None else None
        info = await self.describe(request.spec)
        counting = asyncio.create_task(self._witness.input_tokens(request))
        try:
            if step is not None and step.failure is not None and step.after == 0:
                yield Failed(step.failure)
                return
            overflow = await self._overflow(request, counting, info.limits.window)
            if overflow is not None:
                yield Failed(overflow)
                return
            answer = _scripted(step) if step is not None else _composed(request, self._pace)
            streamed: list[str] = []
            sent = 0
            for delta, delay in answer.deltas(len(request.messages)):
                if step is not None and step.failure is not None and sent >= step.after:
                    yield Failed(step.failure)
                    return
                if step is not None and step.hang and sent >= step.after:
                    await asyncio.Event().wait()
                if delay:
                    await asyncio.sleep(delay)
                sent += len(delta.text)
                streamed.append(delta.text)
                yield delta
            if step is not None and step.failure is not None:
                yield Failed(step.failure)
                return
            if step is not None and step.hang:
                await asyncio.Event().wait()
            report = await self._report(answer, counting, step)
            if report is not None:
                yield report
            yield Finished(answer.finish)
        finally:
            counting.cancel()

    async def _overflow(
        self, request: ModelRequest, counting: asyncio.Task[tuple[int, int]], window: int | None
    ) -> Failure | None:
        """Refuses what does not fit, as real models do. Only a request that could be too long waits for the count."""
        chars = sum(len(str(s.message.parts)) for s in request.messages) + sum(len(b.text) for b in request.system)
        if window is None or chars < window:
            return None
        try:
            async with asyncio.timeout(COUNT_SECONDS):
                tokens, _ = await asyncio.shield(counting)
        except (WorkerError, TimeoutError):
            return None
        asked = request.max_output or 0
        if tokens + asked <= window:
            return None
        return Failure(
            "context_overflow",
            f"The request is too long for the model: {tokens:,} tokens and {asked:,} of output, window {window:,}. "
            "Nothing is lost; /compact makes room.",
            detail=f"demo: maximum context length is {window} tokens, got {tokens} + {asked}",
            status=400,
        )

    async def _report(
        self, answer: _Answer, counting: asyncio.Task[tuple[int, int]], step: ScriptedStep | None
    ) -> UsageReport | None:
        if step is not None and step.usage is False:
            return None
        try:
            async with asyncio.timeout(COUNT_SECONDS):
                tokens, cached = await asyncio.shield(counting)
            reasoning, text, calls = await self._witness.tokens([answer.reasoning, answer.text, answer.calls_text])
        except (WorkerError, TimeoutError):
            return None
        usage = TokenUsage(tokens, reasoning + text + calls, reasoning, cached, tokens - cached)
        if step is not None and isinstance(step.usage, dict):
            said = {"reasoning": reasoning, "cache_read": cached, "cache_write": tokens - cached, **step.usage}
            usage = TokenUsage(
                said.get("input", usage.input),
                said.get("output", usage.output),
                said["reasoning"],
                said["cache_read"],
                said["cache_write"],
            )
        return UsageReport(usage)


class _Answer:
    def __init__(
        self,
        reasoning: str,
        text: str,
        calls: list[tuple[str, str]],
        finish: FinishReason,
        chunk: int,
        delay: float,
    ) -> None:
        self.reasoning = reasoning
        self.text = text
        self.calls = calls
        self.finish: FinishReason = finish
        self._chunk = max(1, chunk)
        self._delay = delay

    @property
    def calls_text(self) -> str:
        return "\n".join(f"{name} {arguments}" for name, arguments in self.calls)

    def deltas(self, position: int) -> Iterator[tuple[Delta, float]]:
        index = 0
        if self.reasoning:
            for piece in self._pieces(self.reasoning):
                yield Delta(index, "reasoning", piece), self._delay
            signature = content_fingerprint(self.reasoning)
            metadata = {"demo": {"signature": signature, "id": f"rs_{signature[:10]}"}}
            yield Delta(index, "reasoning", metadata=metadata, closed=True), 0.0
            index += 1
        if self.text:
            for piece in self._pieces(self.text):
                yield Delta(index, "text", piece), self._delay
            index += 1
        for name, arguments in self.calls:
            call_id = f"call_{content_fingerprint(f'{position}.{index}{arguments}')[:12]}"
            yield Delta(index, "tool_call", call_id=call_id, name=name), self._delay
            for piece in self._pieces(arguments):
                yield Delta(index, "tool_call", piece), self._delay
            index += 1

    def _pieces(self, text: str) -> Iterator[str]:
        return (text[i : i + self._chunk] for i in range(0, len(text), self._chunk))


def _scripted(step: ScriptedStep) -> _Answer:
    calls = [(call["name"], call.get("arguments", "{}")) for call in step.tool_calls]
    finish: FinishReason = step.finish or ("tool_calls" if calls else "stop")
    return _Answer(step.reasoning, step.text, calls, finish, step.chunk, step.delay)


def _composed(request: ModelRequest, pace: float) -> _Answer:
    answer = compose(request)
    finish: FinishReason = "tool_calls" if answer.calls else "stop"
    return _Answer(answer.reasoning, answer.text, answer.calls, finish, CHUNK, pace)


if TYPE_CHECKING:

    def _conforms(provider: DemoProvider) -> Provider:
        return provider
