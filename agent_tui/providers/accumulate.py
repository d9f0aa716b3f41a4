"""A streamed answer as it is stored: the events of every API become parts, usage and an end."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from agent_tui.models.requests import WITHOUT_CALL, Delta, Finished, FinishReason, StreamItem, Target, UsageReport
from agent_tui.models.usage import ABSURD_WINDOWS, STANDARD, Prices, TokenUsage
from agent_tui.providers.catalog import dialect_of, family_record, wire_of
from agent_tui.providers.dialects import anthropic, chat, cohere, gemini, ollama, responses
from agent_tui.providers.dialects.endings import BadEnd
from agent_tui.providers.dialects.parts import Event, PartBuilder, StreamReader
from agent_tui.providers.dialects.search import searches_reported
from agent_tui.providers.dialects.shared import ABSURD_NUMBER, WRITES, finite, mapping, number
from agent_tui.providers.limits import billed
from agent_tui.providers.net import BODY_LIMIT, Tap
from agent_tui.text.numbers import plural
from agent_tui.text.strict_json import strict

log = logging.getLogger(__name__)

_MISSHAPEN = (TypeError, ValueError, AttributeError, KeyError, IndexError, OverflowError, RecursionError)


_STREAMS: tuple[type[StreamReader], ...] = (
    responses.ResponsesStream,
    anthropic.AnthropicStream,
    gemini.GeminiStream,
    chat.ChatStream,
    cohere.CohereStream,
    ollama.OllamaStream,
)
"""The readers, in the order in which they are asked whether an event is theirs, behind the provider's own."""


class Accumulator:
    """Turns one streamed answer into ``Delta`` and ``UsageReport`` items, and ``Finished`` at its end.

    ``window`` (tokens) is for rejecting absurd usage; ``prices`` for the cost where the provider gives none; ``limit``
    is the most bytes the provider may send; ``names`` are those of the tools that were offered. An event that is not of
    the form its protocol has is left out and ends the answer as an error: what it held is missing.
    """

    def __init__(
        self,
        target: Target,
        window: int | None = None,
        prices: Prices | None = None,
        limit: int = BODY_LIMIT,
        names: Collection[str] = (),
    ) -> None:
        self.target = target
        dialect = dialect_of(target.provider)
        self.tap = Tap(limit)
        self._window = window
        self._prices = prices
        self._tags = dialect.think_tags and family_record(target.family).think_tags
        self.estimates = False
        """A number of reasoning tokens may be made up."""
        self._hidden_thoughts = family_record(target.family).thought_signatures
        self._out = PartBuilder(names)
        self._stream: StreamReader | None = None
        self.bad_end: BadEnd | None = None
        """How the provider said that it ended, where that is the end of no answer; known once it is finished."""
        self._reported: TokenUsage | None = None
        self._chars = 0
        self._model = ""
        self._service: str | None = None

    @property
    def complete(self) -> bool:
        """The provider said how the answer ended."""
        return self._out.finish is not None

    @property
    def raw_error(self) -> dict[str, Any] | None:
        return self._out.error

    @property
    def known(self) -> bool:
        """Something of an answer was found in what came."""
        return self._stream is not None

    def read(self, event: Event) -> list[StreamItem]:
        """Returns the items that an event adds which is given, as the gateway does."""
        self._read_event(event)
        return self._items()

    def pump(self) -> list[StreamItem]:
        """Returns the items that everything the provider sent until now adds."""
        self._drain()
        return self._items()

    def finish(self) -> list[StreamItem]:
        """The end, of whatever kind: parts are closed and usage is reported, the provider's where there is any.
        ``Finished`` is only among the items when the answer was complete."""
        self.tap.close()
        self._drain()
        self._out.close_all()
        items = self._items()
        if self._reported is None:
            made, problem = estimated(self._chars), rejection(self._out.usage, self._window)
            said = reported(self._out.usage, self._hidden_thoughts)
            usage = replace(made, raw=as_it_came(self._out.usage)) if said is None else said
            usage = replace(usage, service_tier=self._service)
            self._reported = usage
            items.append(
                UsageReport(usage, self._cost(usage), problem, made if said is not None else None, self._model)
            )
        if (reason := self._finish_reason()) is not None:
            out = self._out
            items.append(Finished(reason, out.message_metadata, out.dropped, out.end_words))
        return items

    def _finish_reason(self) -> FinishReason | None:
        """How the answer ended, where it is one that can be gone on with; None for any other."""
        out, ending = self._out, self._out.finish
        if ending in ("stop", "unknown") and out.has_tool_calls:
            # Whatever a server calls it: an answer that ends with calls ends for them.
            return "tool_calls"
        if ending == "tool_calls" and not out.has_tool_calls and not out.hidden_calls:
            ending, out.end_words = "unknown", f"{out.end_words or ending} {WITHOUT_CALL}"
        if ending == "unknown" and not out.has_answer:
            self.bad_end = BadEnd(ending, out.end_words)
            return None
        if ending == "overflow" or ending == "broken" or ending == "rejected":
            self.bad_end = BadEnd(ending, out.end_words)
            return None
        return ending

    def _drain(self) -> None:
        for event in self.tap.take():
            self._read_event(event)
        if self.known and self.tap.done:
            self._out.end()

    def _read_event(self, event: Event) -> None:
        if error := event.get("error"):
            self._out.error = error if isinstance(error, dict) else {"message": str(error)}
        elif event.get("type") == "error":
            self._out.error = event
        self._take_event(event)

    def _take_event(self, event: Event) -> None:
        self._model = self._model or _model_of(event)
        # The first events of an answer name the tier that was asked for.
        self._service = service_of(event) or self._service
        try:
            if self._stream is None:
                self._stream = self._recognise(event)
            if self._stream is not None and self._stream.knows(event):
                self._stream.event(event)
        except _MISSHAPEN as error:
            log.warning("An event is not of its protocol: %s: %s", type(error).__name__, str(error)[:200])
            self._out.error = self._out.error or {"message": "it sent an event that breaks its own protocol"}

    def _recognise(self, event: Event) -> StreamReader | None:
        wire = wire_of(self.target)
        readers = _STREAMS if wire is None else (wire.stream, *_STREAMS)
        return next((reader(self._out, self._tags) for reader in readers if reader.knows(event)), None)

    def _items(self) -> list[StreamItem]:
        items: list[StreamItem] = [*self._out.take()]
        self._chars += sum(len(item.text) for item in items if isinstance(item, Delta))
        if self._out.usage:
            usage = normalise(
                self._out.usage,
                self._window,
                hidden_calls=self._out.hidden_calls,
                searches=self._out.searches,
                hidden_thoughts=self._hidden_thoughts,
            )
            if usage is not None and self.estimates:
                usage = replace(usage, reasoning_source="estimated")
            if usage is not None:
                usage = replace(usage, service_tier=self._service)
            before = self._reported
            if usage is not None and (before is None or (usage, usage.raw) != (before, before.raw)):
                self._reported = usage
                items.append(UsageReport(usage, self._cost(usage), model=self._model))
        return items

    def _cost(self, usage: TokenUsage) -> float | None:
        told = billed(self._out.usage)
        return told if told is not None or self._prices is None else self._prices.cost(usage)


def _model_of(event: Event) -> str:
    """The model that an event says it comes from: of chat completions, Messages, Responses and Gemini."""
    for holder in (event, event.get("message"), event.get("response")):
        if isinstance(holder, dict) and isinstance(name := holder.get("model") or holder.get("modelVersion"), str):
            return name[:_LONGEST_NAME]
    return ""


def service_of(event: Event) -> str | None:
    """The tier of service that an event says answered; None where it does not. OpenAI, Groq and most name it beside
    the answer, Anthropic with the usage, Vertex as a type of traffic."""
    message, response = mapping(event.get("message")), mapping(event.get("response"))
    holders = (event, response, mapping(event.get("usage")), mapping(message.get("usage")))
    told = [holder.get("service_tier") for holder in holders]
    told.append(mapping(event.get("usageMetadata")).get("trafficType"))
    name = next((name.strip().lower() for name in told if isinstance(name, str) and name.strip()), "")
    name = name[:_LONGEST_SERVICE].removeprefix("on_demand_")
    return None if name in ("", "auto", "traffic_type_unspecified") else _SERVICES.get(name, name)


_LONGEST_SERVICE = 40
_SERVICES = {"default": STANDARD, "on_demand": STANDARD, "batch": "batches"}
"""The names of tiers of service where they are not those of the table of prices."""


# Without a known window: larger than any model's.
_ABSURD_TOKENS = 20_000_000
_MOST_TOLD = 8
_LONGEST = 8_000
_LONGEST_NAME = 200


def normalise(
    raw: Mapping[str, Any],
    window: int | None = None,
    *,
    hidden_calls: bool = False,
    hidden_thoughts: bool = False,
    searches: int = 0,
) -> TokenUsage | None:
    """The usage in ``raw``, which may be in the form of any provider. None when it is missing, zero, negative or over
    twice the ``window``: such a report is worth less than an estimate (``rejection`` says why).

    ``hidden_calls``: tools ran at the provider, so the numbers may add up several calls (``context`` False).
    ``hidden_thoughts``: the model never shows its thoughts whole; what only the total has is theirs. ``searches`` were
    seen in the answer: a report may not name them.
    """
    usage, summed = _read(raw, hidden_thoughts), hidden_calls or _summed(raw)
    if usage is None or not _possible(usage, None if summed else window):
        return None
    return replace(
        usage, context=usage.context and not summed, searches=searches_reported(raw) or searches or None, **_kept(raw)
    )


def reported(raw: Mapping[str, Any], hidden_thoughts: bool = False) -> TokenUsage | None:
    """A report that ``normalise`` does not take, in our form all the same: it is what the bill says. None where it is
    in no form we know, or nothing can be billed by its numbers."""
    usage = _read(raw, hidden_thoughts)
    if usage is None or usage.input <= 0 or usage.output < 0:
        return None
    return replace(usage, searches=searches_reported(raw) or None, **_kept(raw))


def _kept(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {"told": cache_told(raw) or None, "raw": as_it_came(raw)}


def as_it_came(raw: Mapping[str, Any]) -> dict[str, Any] | None:
    """A report word for word; None where there is none, or it is far longer than reports are."""
    kept: dict[str, Any] = strict(dict(raw))
    kept = kept if len(json.dumps(kept)) <= _LONGEST else {}
    return kept or None


def cache_told(raw: Mapping[str, Any]) -> dict[str, float]:
    """Returns what a provider says of its cache beside reads and writes, under its own names: writes by how long they
    are kept, what was missed or saved, what was read by kind."""
    found: dict[str, float] = {}

    def take(name: str, value: Any) -> None:
        if (number := finite(value)) is not None and abs(number) < ABSURD_NUMBER:
            found[name] = number

    prompts = mapping(raw.get("prompt_tokens_details"))
    lives = mapping(raw.get("cache_creation")) or mapping(prompts.get("cache_creation_token_details"))
    for name in WRITES:
        take(name, lives.get(name))
    for name in ("prompt_cache_hit_tokens", "prompt_cache_miss_tokens", "cache_discount"):
        take(name, raw.get(name))
    rows = raw.get("cacheTokensDetails")
    for row in rows[:_MOST_TOLD] if isinstance(rows, list) else ():
        entry = mapping(row)
        take(f"cacheTokensDetails {str(entry.get('modality') or '?')[:20]}", entry.get("tokenCount"))
    return found


def rejection(raw: Mapping[str, Any], window: int | None = None) -> str | None:
    """Why ``normalise`` does not take a report, in words for people; None when it does or there is none."""
    if not raw:
        return None
    usage = _read(raw)
    if usage is None:
        return f"unknown format, with {', '.join(sorted(map(str, raw)))[:200]}"
    if _possible(usage, None if _summed(raw) else window):
        return None
    where = f" for a window of {window:,}" if window else ""
    return f"it says {plural(usage.input, 'token')} of input and {usage.output:,} of output{where}"


def _possible(usage: TokenUsage, window: int | None) -> bool:
    largest = ABSURD_WINDOWS * window if window else _ABSURD_TOKENS
    return 0 < usage.input <= largest and 0 <= usage.output <= largest


def estimated(output_chars: int) -> TokenUsage:
    """Returns the stand-in for a report that did not come: four characters a token of the answer. Never anchors."""
    return TokenUsage(0, -(-output_chars // 4), source="estimated", reasoning_source="estimated")


def _read(raw: Mapping[str, Any], hidden_thoughts: bool = False) -> TokenUsage | None:
    if "promptTokenCount" in raw or "totalTokenCount" in raw:
        return gemini.read_usage(raw)
    if isinstance(raw.get("tokens"), Mapping) or "billed_units" in raw:
        return cohere.read_usage(raw)
    if "prompt_eval_count" in raw or "eval_count" in raw:
        return ollama.read_usage(raw)
    if "input_tokens_details" in raw or ("input_tokens" in raw and "total_tokens" in raw):
        return responses.read_usage(raw)
    if "input_tokens" in raw:
        return anthropic.read_usage(raw)
    if "prompt_tokens" in raw or "completion_tokens" in raw:
        return chat.read_usage(raw, hidden_thoughts)
    return None


def _summed(raw: Mapping[str, Any]) -> bool:
    """Returns whether the report itself says that tools ran at the provider, or that it adds up several rounds."""
    tools = ("server_tool_use", "server_tool_use_details", "server_side_tool_usage_details")
    names = ("toolUsePromptTokenCount", "num_sources_used", "num_server_side_tools_used", "num_search_queries")
    counts = [*(count for name in tools for count in mapping(raw.get(name)).values()), *map(raw.get, names)]
    rounds = raw.get("iterations")
    return any(number(count) > 0 for count in counts) or (isinstance(rounds, list) and len(rounds) > 1)
