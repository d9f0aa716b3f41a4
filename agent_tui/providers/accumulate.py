"""Our own accumulator of streamed answers. LiteLLM's ``stream_chunk_builder`` is never used: depending on the version
it doubles thinking, or drops unsigned thinking, reasoning items and reasoning details.

The provider's own events (``tap``) are read where they can be had, because LiteLLM's chunks have lost things by then;
LiteLLM's chunks are the source where they cannot (another transport, an unknown protocol, an answer that was not
streamed).
"""

from __future__ import annotations

import dataclasses
import logging
from typing import Any, Protocol

from agent_tui.models.requests import Finished, StreamItem, Target, UsageReport
from agent_tui.models.usage import Prices, TokenUsage
from agent_tui.providers.catalog import dialect_of, family_record
from agent_tui.providers.dialects.anthropic import AnthropicStream, ConverseStream
from agent_tui.providers.dialects.chat import ChatStream
from agent_tui.providers.dialects.decoding import Event, PartBuilder
from agent_tui.providers.dialects.gemini import GeminiStream
from agent_tui.providers.dialects.ollama import CohereStream, OllamaStream
from agent_tui.providers.dialects.responses import ResponsesStream
from agent_tui.providers.dialects.usage import as_it_came, estimated, normalise, rejection, reported
from agent_tui.providers.limits import billed
from agent_tui.providers.litellm import kept_chunks
from agent_tui.providers.net import BODY_LIMIT
from agent_tui.providers.tap import Tap

log = logging.getLogger(__name__)

# Chunks that are held back while the tap has seen bytes but no event yet.
_PATIENCE = 3
_MISSHAPEN = (TypeError, ValueError, AttributeError, KeyError, IndexError, OverflowError, RecursionError)


class _Stream(Protocol):
    def event(self, event: Event) -> None: ...


_PROTOCOLS: tuple[Any, ...] = (
    ResponsesStream,
    AnthropicStream,
    ConverseStream,
    GeminiStream,
    ChatStream,
    CohereStream,
    OllamaStream,
)


_TAGGED = (ChatStream, OllamaStream)
"""Protocols of servers whose models may write their thoughts into the text."""


class Accumulator:
    """Turns one streamed answer into ``Delta`` and ``UsageReport`` items, and ``Finished`` at its end.

    ``window`` (tokens) is for rejecting absurd usage; ``prices`` for the cost where the provider gives none; ``limit``
    is the most bytes the provider may send. An event that is not of the form its protocol has is left out and ends the
    answer as an error: what it held is missing.
    """

    def __init__(
        self,
        target: Target,
        window: int | None = None,
        prices: Prices | None = None,
        limit: int = BODY_LIMIT,
    ) -> None:
        self.target = target
        dialect = dialect_of(target.provider)
        self.tap = Tap(json_lines=dialect.json_lines, limit=limit)
        self._window = window
        self._prices = prices
        self._tags = dialect.think_tags and family_record(target.family).think_tags
        self._guessed = dialect.guessed_reasoning
        self._out = PartBuilder()
        self._stream: _Stream | None = None
        self._own = False
        self._held: list[Any] = []
        self._made_up: dict[str, Any] | None = None
        self._reported: TokenUsage | None = None
        self._chars = 0

    @property
    def complete(self) -> bool:
        """The provider said how the answer ended."""
        return self._out.finish is not None

    @property
    def truncated(self) -> bool:
        return not self.complete

    @property
    def independent(self) -> bool:
        """The provider's own events are read, whatever LiteLLM makes of them."""
        return self._own

    @property
    def raw_error(self) -> dict[str, Any] | None:
        """An error the provider sent inside its stream."""
        return self._out.error

    def feed(self, chunk: Any) -> list[StreamItem]:
        """What a chunk of LiteLLM's stream, and everything the provider sent until now, adds."""
        self._drain()
        if not self._own:
            self._held.append(chunk)
            if self._stream is not None or not self.tap.seen or len(self._held) >= _PATIENCE:
                self._fall_back()
        return self._items()

    def pump(self) -> list[StreamItem]:
        """What the provider sent until now adds, without a chunk of LiteLLM's (see ``Tap.on_data``)."""
        self._drain()
        return self._items()

    def finish(self, stream: Any = None) -> list[StreamItem]:
        """The end, of whatever kind: parts are closed and usage is reported, the provider's where there is any.
        ``Finished`` is only among the items when the answer was complete."""
        self.tap.close()
        self._drain()
        if not self._own:
            self._fall_back()
            if not self._out.usage:
                self._take_usage(kept_chunks(stream))
        self._out.close_all()
        items = self._items()
        if self._reported is None:
            made, problem = estimated(self._made_up, self._chars), rejection(self._out.usage, self._window)
            said = reported(self._out.usage)
            usage = dataclasses.replace(made, raw=as_it_came(self._out.usage)) if said is None else said
            self._reported = usage
            items.append(UsageReport(usage, self._cost(usage), problem, made if said is not None else None))
        if self._out.finish is not None:
            reason = "tool_calls" if self._out.finish == "stop" and self._out.has_tool_calls else self._out.finish
            items.append(Finished(reason, self._out.message_metadata, self._out.dropped))
        return items

    def _drain(self) -> None:
        if self._stream is not None and not self._own:
            return
        for event in self.tap.take():
            if error := event.get("error"):
                self._out.error = error if isinstance(error, dict) else {"message": str(error)}
            elif event.get("type") == "error":
                self._out.error = event
            self._take_event(event)

    def _take_event(self, event: Event) -> None:
        try:
            if self._stream is None:
                self._stream = self._recognise(event)
                self._own = self._stream is not None
            if self._stream is not None and self._knows(event):
                self._stream.event(event)
        except _MISSHAPEN as error:
            log.warning("An event is not of its protocol: %s: %s", type(error).__name__, str(error)[:200])
            self._out.error = self._out.error or {"message": "it sent an event that is not of its own protocol"}

    def _recognise(self, event: Event) -> _Stream | None:
        for protocol in _PROTOCOLS:
            if protocol.knows(event):
                stream: _Stream = protocol(self._out, self._tags) if protocol in _TAGGED else protocol(self._out)
                return stream
        return None

    def _knows(self, event: Event) -> bool:
        return bool(type(self._stream).knows(event))  # type: ignore[union-attr]

    def _fall_back(self) -> None:
        """Read LiteLLM's chunks: chat-completion chunks, or the events of a Responses call."""
        held, self._held = self._held, []
        for chunk in held:
            event = _as_event(chunk)
            if self._stream is None:
                self._stream = (
                    ResponsesStream(self._out) if ResponsesStream.knows(event) else ChatStream(self._out, self._tags)
                )
            usage = event.pop("usage", None) if isinstance(self._stream, ChatStream) else None
            self._take_made_up(usage)
            self._take_event(event)

    def _take_made_up(self, usage: Any) -> None:
        """A chunk of LiteLLM carries usage it may have invented; only ``stream.chunks`` tells (see ``finish``)."""
        if isinstance(usage, dict):
            self._made_up = usage

    def _take_usage(self, chunks: Any) -> None:
        """LiteLLM keeps the chunks as they came; usage in one of them is the provider's."""
        for chunk in chunks:
            usage = getattr(chunk, "usage", None)
            if usage is not None:
                self._out.report(_as_event(usage))
        if self._made_up and self._out.usage:
            self._out.usage.update({k: v for k, v in self._made_up.items() if v is not None})

    def _items(self) -> list[StreamItem]:
        items: list[StreamItem] = []
        for delta in self._out.take():
            self._chars += len(delta.text)
            items.append(delta)
        if self._out.usage:
            usage = normalise(self._out.usage, self._window, hidden_calls=self._out.hidden_calls)
            if usage is not None and not self._own and self._guessed:
                usage = dataclasses.replace(usage, reasoning_source="estimated")
            before = self._reported
            if usage is not None and (before is None or (usage, usage.raw) != (before, before.raw)):
                self._reported = usage
                items.append(UsageReport(usage, self._cost(usage)))
        return items

    def _cost(self, usage: TokenUsage) -> float | None:
        told = billed(self._out.usage)
        if told is not None:
            return told
        return None if self._prices is None else self._prices.cost(usage)


def _as_event(chunk: Any) -> Event:
    if isinstance(chunk, dict):
        return dict(chunk)
    dump = getattr(chunk, "model_dump", None)
    if dump is None:
        return {}
    event: Event = dump(mode="json", warnings=False)
    return event
