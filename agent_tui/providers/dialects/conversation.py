"""A stored conversation in the order and with the names that every API takes: each call directly followed by its
result, and of calls the name, the id and the arguments in a form that is accepted. A model invents names, another
provider's ids are too long, arguments are cut off: once refused, such a call would be refused with every later
message."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import takewhile
from types import MappingProxyType
from typing import Any

from agent_tui.models.messages import (
    INTERRUPTED_RESULT,
    TOLD,
    AttachmentPart,
    Message,
    Metadata,
    Part,
    ReasoningPart,
    SearchPart,
    SummaryPart,
    TextPart,
    ToolCallPart,
    texts_below,
)
from agent_tui.models.requests import Media, SentMessage
from agent_tui.providers.dialects.record import CallIds
from agent_tui.providers.dialects.record import ToolNames as NameForm
from agent_tui.records import dataclass
from agent_tui.text.clean import encodable
from agent_tui.text.frames import NOTE, attribute, framed
from agent_tui.text.strict_json import json_or, names_twice, strict

NOT_SENT = "text/x-not-sent"
"""Media type of the words that stand for an image which is not sent."""
EMPTY_USER = "(empty message)"
EMPTY_RESULT = "(no output)"

NAME_FORMS: Mapping[NameForm, re.Pattern[str]] = MappingProxyType(
    {
        # OpenAI, Mistral, Bedrock and most others; Anthropic takes 128 characters.
        "plain": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
        # ai.google.dev/api/caching#FunctionDeclaration: "Must start with a letter or an underscore".
        "google": re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}"),
        # docs.cohere.com/reference/chat: "a-z, A-Z, 0-9, _ and must not begin with a digit".
        "cohere": re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}"),
    }
)
_NAME_START = 51
"""Characters that a name begins with before what makes it another's than all others'."""

ID_FORMS: Mapping[CallIds, re.Pattern[str]] = MappingProxyType(
    {
        # Of another model's calls as ``openai``; its own as they came: Kimi's ``functions.read:0`` are in its template,
        # and LiteLLM has Gemini's signature in them.
        "free": re.compile(r"[a-zA-Z0-9_.:-]{1,40}|[!-~]+__thought__[!-~]+"),
        # "string too long. Expected a string with maximum length 40".
        "openai": re.compile(r"[a-zA-Z0-9_-]{1,40}"),
        # The Responses API, Anthropic ("should match pattern '^[a-zA-Z0-9_-]+$'"), Bedrock.
        "plain": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
        # "must be a-z, A-Z, 0-9, with a length of 9".
        "short": re.compile(r"[a-zA-Z0-9]{9}"),
    }
)
_STRICTEST: tuple[CallIds, ...] = ("short", "openai", "plain", "free")


def stricter(one: CallIds, other: CallIds | None) -> CallIds:
    """Returns the one of two forms of ids that fits both."""
    return one if other is None else min(one, other, key=_STRICTEST.index)


def object_arguments(raw: str) -> str:
    """Arguments as the text of a JSON object, byte for byte where they are one. Several providers parse them and
    refuse the whole conversation over a call that a model once wrote wrongly."""
    return _remembered(raw) if len(raw) <= _SHORT else _object(raw)


_SHORT = 16_384
"""Characters of arguments that are remembered: those of every call go with every request."""


def _object(raw: str) -> str:
    raw = encodable(raw)
    if not raw.strip():
        return "{}"
    value = json_or(raw, None)
    if not isinstance(value, dict):
        return json.dumps({"invalid_arguments": raw})
    sound = strict(value)
    return raw if sound is value and not names_twice(raw) else json.dumps(sound)


_remembered = lru_cache(maxsize=4_096)(_object)


class ToolNames:
    """The names of tools as they are sent: their own where the API takes those, else one made of them, always the same.
    No two tools have the same. Names that are ``offered`` come first; what else a conversation names follows in its
    order."""

    def __init__(self, offered: Iterable[str] = (), form: NameForm = "plain") -> None:
        self._pattern = NAME_FORMS[form]
        self._sent: dict[str, str] = {}
        self._real: dict[str, str] = {}
        offered = list(offered)
        for name in (*filter(self._pattern.fullmatch, offered), *offered):
            self.sent(name)

    def sent(self, name: str) -> str:
        """Returns the name that is sent for a tool's."""
        if (known := self._sent.get(name)) is not None:
            return known
        sent, salt = name, 0
        while self._pattern.fullmatch(sent) is None or sent in self._real:
            sent = _made_of(name, salt)
            salt += 1
        self._sent[name], self._real[sent] = sent, name
        return sent

    @property
    def replaced(self) -> dict[str, str]:
        """The tools that are sent under another name, by that."""
        return {sent: name for sent, name in self._real.items() if sent != name}


def _made_of(name: str, salt: int) -> str:
    """A name in every form, with a digest of what it is made of."""
    start = re.sub(r"[^a-zA-Z0-9_]+", "_", name).strip("_")
    start = start if start[:1].isalpha() else f"tool_{start}"
    return f"{start[:_NAME_START].strip('_')}_{_digest(name, salt)[:12]}"


def _digest(text: str, salt: int) -> str:
    return hashlib.blake2b(f"{text}\n{salt}".encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


@dataclass(slots=True, frozen=True)
class AnswerCall:
    """A tool call with the id and the name it has on the wire."""

    part: ToolCallPart
    id: str
    name: str

    @property
    def arguments(self) -> str:
        return object_arguments(self.part.arguments)


@dataclass(slots=True, frozen=True)
class Result:
    """A tool result with its call; ``message`` None for a call that was never answered."""

    call: AnswerCall
    message: Message | None

    @property
    def text(self) -> str:
        part = self.message.tool_result if self.message is not None else None
        text = encodable(part.text) if part is not None else INTERRUPTED_RESULT
        return "\n\n".join([text if text.strip() else EMPTY_RESULT, *map(encodable, texts_below(self.message))])

    @property
    def attachments(self) -> list[AttachmentPart]:
        parts = self.message.parts if self.message is not None else []
        return [part for part in parts if isinstance(part, AttachmentPart) and not part.below_result]


@dataclass(slots=True, frozen=True)
class AssistantTurn:
    """An assistant message with its calls, by part index."""

    message: Message
    calls: dict[int, AnswerCall]


Entry = Message | AssistantTurn | Result


def entries(
    items: Sequence[SentMessage],
    names: ToolNames,
    *,
    ids: CallIds = "free",
    own: Callable[[str], bool] = lambda message_id: False,
) -> Iterator[Entry]:
    """The conversation with every call directly followed by its results, in the order of the calls: answers that are
    missing are made up, results nobody asked for are left out. Ids are unique and in the form ``ids``; ``own`` says
    of a message's id whether the model it is sent to has made it."""
    used: set[str] = set()
    for index, item in enumerate(items):
        message = _strict_metadata(item.message)
        if message.role == "user":
            yield message
        if message.role != "assistant":
            continue
        form: CallIds = "openai" if ids == "free" and not own(message.id) else ids
        calls = {
            n: AnswerCall(part, _wire_id(part.call_id, form, used), names.sent(part.name))
            for n, part in enumerate(message.parts)
            if isinstance(part, ToolCallPart)
        }
        yield AssistantTurn(message, calls)
        behind = (items[n].message for n in range(index + 1, len(items)))
        results = list(takewhile(lambda message: message.role == "tool", behind))
        for call in calls.values():
            found = next((m for m in results if (r := m.tool_result) and r.call_id == call.part.call_id), None)
            if found is not None:
                results.remove(found)
            yield Result(call, found)


def _strict_metadata(message: Message) -> Message:
    """The message with metadata that JSON can say: servers send anything, and Python reads it."""
    changed: dict[int, Part] = {}
    for n, part in enumerate(message.parts):
        stored = part.provider_metadata
        if stored is not None and (sound := strict(stored)) is not stored:
            changed[n] = replace(part, provider_metadata=sound if isinstance(sound, dict) else None)
    return (
        replace(message, parts=[changed.get(n, part) for n, part in enumerate(message.parts)]) if changed else message
    )


def _wire_id(call_id: str, ids: CallIds, used: set[str]) -> str:
    wire, salt = call_id, 0
    while ID_FORMS[ids].fullmatch(wire) is None or wire in used:
        digest = _digest(call_id, salt)
        wire = digest[:9] if ids == "short" else f"call_{digest}"
        salt += 1
    used.add(wire)
    return wire


def is_summary(message: Message) -> bool:
    return any(isinstance(part, SummaryPart) for part in message.parts)


def attachment_text(part: AttachmentPart, media: Media) -> str | None:
    """The words that stand for an attachment; None for a picture or PDF file that goes as its data."""
    if part.media_type == NOT_SENT:
        return encodable(part.text or "")
    if part.text is not None:
        tag = NOTE if part.name in TOLD else "file"
        return encodable(framed(tag, part.text, attribute("name", part.name)))
    if not media.takes(part) or not _is_base64(part.data or ""):
        return encodable(part.unread)
    return None


Said = list[str | AttachmentPart]
"""Texts, and the attachments that go as their data."""


def said_in(parts: Iterable[Part], media: Media) -> Said:
    """What some parts say: the texts among them, and the attachments, as words where they go so."""
    found: Said = []
    for part in parts:
        if isinstance(part, AttachmentPart):
            text = attachment_text(part, media)
            found.append(part if text is None else text)
        elif isinstance(part, (TextPart, SummaryPart)) and part.text.strip():
            found.append(encodable(part.text))
    return found


def data_url(part: AttachmentPart) -> str:
    return f"data:{part.media_type};base64,{part.data}"


_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="


def _is_base64(data: str) -> bool:
    return not data.encode("utf-8", "replace").translate(None, _BASE64)


def text_in(metadata: Mapping[str, Any], name: str) -> str:
    """A text of a part's metadata; empty for what is none: what a provider sent is only typed in its documentation."""
    value = metadata.get(name)
    return value if isinstance(value, str) else ""


def objects_in(metadata: Mapping[str, Any], name: str) -> list[Metadata]:
    """The objects of a list in a part's metadata."""
    value = metadata.get(name)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def thought_signature(part: Part) -> str:
    """A part's thought signature: base64, whatever a server has sent; empty where it has none."""
    signature = text_in(part.provider_metadata or {}, "thought_signature")
    return signature if signature.isascii() and signature.isprintable() else ""


def runs(parts: Sequence[Part]) -> Iterator[list[tuple[int, Part]]]:
    """Numbered parts of an answer in runs of reasoning, then one text, then tool calls. Only one part of each may have
    a thought signature of its own, so reasoning with one stands alone, and so does a search."""
    group: list[tuple[int, Part]] = []
    rank = 0
    for n, part in enumerate(parts):
        if isinstance(part, SearchPart):
            yield group
            yield [(n, part)]
            group, rank = [], 0
            continue
        mine = 0 if isinstance(part, ReasoningPart) else 1 if isinstance(part, TextPart) else 2
        signed = rank == 0 and group and (group[-1][1].provider_metadata or {}).get("thought_signature")
        if mine < rank or (mine == rank == 1 and group) or signed:
            yield group
            group, rank = [], 0
        group.append((n, part))
        rank = mine
    if group:
        yield group


Join = Callable[[Metadata, Metadata], Metadata]
"""Makes one message of two of the user's."""


def alternating(messages: Sequence[Metadata], join: Join) -> list[Metadata]:
    """User messages in a row as one: a summary and what the user said after it, or what was said before an answer
    came; a word of the model's before one that follows a result, and of the user's between two answers. What is before
    them stays the same bytes."""
    found: list[Metadata] = []
    for message in messages:
        before = found[-1]["role"] if found else ""
        if message["role"] == before == "assistant":
            found.append({"role": "user", "content": EMPTY_USER})
        if message["role"] == before == "user":
            found[-1] = join(found[-1], message)
            continue
        if message["role"] == "user" and before == "tool":
            found.append({"role": "assistant", "content": "OK."})
        found.append(message)
    return found


def say_system(messages: list[Metadata], join: Join) -> None:
    """Has the user's first message begin with the system prompt, for a server that knows no such role."""
    if not messages or messages[0]["role"] != "system":
        return
    system = {**messages.pop(0), "role": "user"}
    if messages and messages[0]["role"] == "user":
        system = join(system, messages.pop(0))
    messages.insert(0, system)
