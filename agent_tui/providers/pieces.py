"""A request as a prompt cache sees it: a digest of each message as the body has it, and the settings beside them.

Each message is encoded by what encodes the whole request, alone, so that equal digests are equal bytes, and the other
way round; cache markers are left out. What was encoded once is not encoded again while it is sent the same way.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from operator import is_
from typing import Any

from agent_tui import __version__
from agent_tui.models.messages import Message, Metadata, ToolCallPart, images_in
from agent_tui.models.requests import ModelInfo, ModelRequest, SentMessage, Target
from agent_tui.providers.catalog import (
    Called,
    caching_of,
    dialect_of,
    direct_wire,
    forgets,
    is_for_litellm,
    sees,
    variable_base,
)
from agent_tui.providers.dialects.claude import marked_places
from agent_tui.providers.dialects.conversation import is_summary
from agent_tui.providers.dialects.litellm import messages_for_litellm
from agent_tui.providers.dialects.outgoing import OutgoingRequest
from agent_tui.providers.dialects.record import Wire
from agent_tui.providers.dialects.shared import ReplayPlan, Thinking
from agent_tui.providers.request import outgoing, shown
from agent_tui.records import dataclass

OWN_SERVER = "own "
"""How the setting ``server`` begins for a server of the user's own, of which only the language is known."""

_CONVERSATION = ("messages", "contents", "input")
_ELSEWHERE = frozenset({*_CONVERSATION, "model", "tools", "system", "systemInstruction", "instructions"})
"""Fields of a body that are fixed parts or messages."""
_NO_MATTER = frozenset(
    {"stream", "stream_options", "max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens"}
    | {"num_predict", "temperature", "top_p", "top_k", "topP", "topK", "min_p", "seed", "stop", "stop_sequences"}
    | {"stopSequences", "presence_penalty", "frequency_penalty", "repeat_penalty", "user", "metadata", "store"}
    | {"include", "usage", "n", "drop_params", "max_retries", "num_retries"}
)
"""Fields that say what becomes of the answer: nobody reads them before the prompt."""
_NAMED = {
    **dict.fromkeys(("thinking", "reasoning", "reasoning_effort", "think", "effort", "thinkingConfig"), "thinking"),
    **dict.fromkeys(("response_format", "format", "text"), "schema"),
    **dict.fromkeys(("responseSchema", "responseJsonSchema", "responseMimeType"), "schema"),
    **dict.fromkeys(("tool_choice", "toolConfig"), "tool choice"),
    "prompt_cache_key": "cache key",
}
_HOLDERS = ("output_config", "generationConfig", "options", "extra_body")
"""Fields that hold others of different meaning."""
OTHERS = "others"
_SHORT = 60
_CARRIER = "carrier"
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

PROGRAM = "program"
Known = Mapping[str, str]
"""Digests of messages that were sent before, by their keys."""

Treatment = tuple[bool, tuple[int, ...]]


@dataclass(slots=True, frozen=True)
class Pieces:
    """The messages of one request; ``marks`` see ``models.steps.Sent``."""

    keys: list[str]
    digests: list[str]
    marks: list[int]
    settings: dict[str, str]


@dataclass(slots=True)
class PieceMaker:
    """Makes the pieces of one conversation's requests, one after the other."""

    _form: Any = None
    _items: list[SentMessage] = field(default_factory=list)
    _treatments: list[Treatment | None] = field(default_factory=list)
    _keys: list[str] = field(default_factory=list)
    _digests: list[str] = field(default_factory=list)

    def pieces(
        self,
        request: ModelRequest,
        info: ModelInfo,
        plan: ReplayPlan,
        thinking: Thinking,
        known: Callable[[dict[str, str]], Known] = lambda settings: {},
    ) -> Pieces:
        """Those of a request that is sent with this plan and thinking. ``known`` is asked, for the first request, what
        was sent with the same settings before this was made."""
        items = shown(request, info)
        wire = direct_wire(request.spec, info.target)
        empty = outgoing(replace(request, messages=[]), info, plan, thinking)
        empty.whole = False
        settings = _settings(request, empty, wire)
        if "images" in caching_of(info.target).loses and (
            images := sum(len(images_in(item.message.parts)) for item in items)
        ):
            settings["images"] = str(images)
        form = (info.target, sees(info), wire is None, settings.get("thinking"))
        if form != self._form:
            self._form, self._items = form, []
        treatments = [plan.treatment(i.message.id) if i.message.role == "assistant" else None for i in items]
        same = self._same(items, treatments)
        earlier = known(settings) if not self._items else {}
        alone = replace(empty, arguments=_as_pieces(empty.arguments), system=())
        made = [_piece(item, alone, wire, earlier) for item in items[same:]]
        self._items, self._treatments = list(items), treatments
        self._keys = [*self._keys[:same], *(item.key for item in items[same:])]
        self._digests = [*self._digests[:same], *made]
        marks = self._marks(request, info.target) if empty.marked else []
        return Pieces(self._keys, self._digests, marks, settings)

    def _same(self, items: Sequence[SentMessage], treatments: Sequence[Treatment | None]) -> int:
        """Returns how many messages are the objects that were sent before, treated as before: a stored message does not
        change."""
        end = min(len(self._items), len(items))
        if all(map(is_, self._items, items)) and self._treatments[:end] == treatments[:end]:
            return end

        def changed(n: int) -> bool:
            return self._treatments[n] != treatments[n] or not _alike(self._items[n], items[n])

        return next(filter(changed, range(end)), end)

    def _marks(self, request: ModelRequest, target: Target) -> list[int]:
        """Returns where the markers of a cached prefix stand, as numbers of messages."""
        # An answer of which nothing is sent is none on the wire.
        pairs = zip(self._items, self._digests, strict=True)
        roles = ["" if digest == _NOTHING else item.message.role for item, digest in pairs]
        summary = bool(self._items) and is_summary(self._items[0].message)
        places = marked_places(roles, summary, forgets(target), request.sent_before)
        return [*([0] if request.system or request.tools else []), *(place + 1 for place in places)]


def _alike(before: SentMessage, now: SentMessage) -> bool:
    """Returns whether two entries are of the same message: what is stored does not change, nor what is made of it."""
    if before is now or before.key != now.key:
        return before is now
    if before.message is now.message:
        return True
    return before.stored is now.stored and (now.stored is not None or before.message == now.message)


def _as_pieces(arguments: Metadata) -> Metadata:
    """The arguments that say how messages are sent."""
    return {name: value for name, value in arguments.items() if name not in _ELSEWHERE}


def _piece(item: SentMessage, alone: OutgoingRequest, wire: Wire | None, earlier: Known) -> str:
    """Digest of a message. ``earlier`` ones hold where it can only be sent in one way: a stored message does not
    change, but its reasoning and images may be left out."""
    fixed = not any(part.type in ("reasoning", "attachment", "search") for part in item.message.parts)
    if fixed and (known := earlier.get(item.key)) is not None:
        return known
    carried = item.message.role == "tool"
    alone = replace(alone, items=[_carrier(item), item] if carried else [item])
    if wire is None:
        sent = messages_for_litellm(alone, [])
    else:
        body = wire.body(alone)
        sent = next(body[name] for name in _CONVERSATION if name in body)
    return _digest(_JSON(sent[int(carried) :]))


def _carrier(item: SentMessage) -> SentMessage:
    """An answer with the call of a result: nobody sends a result alone."""
    result = item.message.tool_result
    call = ToolCallPart(result.call_id if result else "", result.name if result else "", "{}")
    return SentMessage(Message(_CARRIER, "assistant", [call]), _CARRIER)


def _settings(request: ModelRequest, made: OutgoingRequest, wire: Wire | None) -> dict[str, str]:
    """Returns the settings of a request, by name: what else of it a cache may depend on."""
    target = made.target
    settings = {"model": f"{target.provider}/{target.api}/{target.model}", PROGRAM: __version__}
    dialect = dialect_of(target.provider)
    address = request.spec.api_base or variable_base(dialect)
    if address:
        own = Called(target.provider, address).own
        settings["server"] = f"{OWN_SERVER if own else ''}{_digest(address)}"
    body = made.arguments if wire is None else wire.body(made)
    if request.spec.cache_ttl is not None:
        settings["cache ttl"] = request.spec.cache_ttl
    grouped: dict[str, dict[str, Any]] = {}
    for name, value in body.items():
        inner = value.items() if name in _HOLDERS and isinstance(value, dict) else [(name, value)]
        for key, one in inner:
            if key not in _ELSEWHERE and key not in _NO_MATTER and not is_for_litellm(key):
                grouped.setdefault(_NAMED.get(key, OTHERS), {})[f"{name}.{key}"] = one
    if request.replay.adaptations:
        grouped.setdefault(OTHERS, {})["adaptations"] = request.replay.adaptations
    for name, values in grouped.items():
        text = json.dumps(values, sort_keys=True, default=str, separators=(",", ":"))
        settings[name] = text if len(text) <= _SHORT and name != OTHERS else _digest(text)
    return settings


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


_NOTHING = _digest(_JSON([]))
"""The digest of a message of which nothing is sent."""
