"""Messages and their ordered, typed parts.

Every part keeps its own ``provider_metadata``: signatures, encrypted items, ids, whatever the provider sent along,
byte for byte. What of it goes back to a model is decided when a request is built, never when it is stored.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterable, Set
from dataclasses import field
from typing import Any, Literal, NamedTuple, TypeAlias

from agent_tui.config import HOOK_EVENTS
from agent_tui.records import dataclass
from agent_tui.text.clean import encodable
from agent_tui.text.frames import NOTE, framed, without_tags

JSON: TypeAlias = Any
Metadata: TypeAlias = dict[str, JSON]

Role = Literal["user", "assistant", "tool"]
Status = Literal["streaming", "complete", "stopped", "failed"]

INTERRUPTED_RESULT = "[interrupted]"
REFUSED = "The user refused this call."
FEEDBACK = "They said:"
"""How the result of a refused call begins, and the user's words in it: the transcript knows it by them; the rest of it
is for the model."""
TOLD_MODE = "permission mode"
"""Name of the attachment that tells the model its permission mode; in a tool result's ``display``: what its text says
of it."""
UPDATE = "environment update"
"""Of the one that tells what has changed."""
CHANGE = "document change"
"""Of the one that tells what has become of a file since it was sent."""
NEWS = "background commands"
"""Of the one that tells what has become of them."""
MALFORMED = "malformed tool call"
"""Of the one that tells that a call could not be read."""
HOOK_NAMES = frozenset(f"{event} hook" for event in HOOK_EVENTS)
"""Of those with what the user's hooks say."""
NESTED = "instructions from "
"""Begins the name of one with a memory file of a folder in which a tool has touched a file."""
CONTEXT_NOTE = "context use"
"""Of the one that tells how full the context is."""
TOLD = frozenset({TOLD_MODE, CONTEXT_NOTE, UPDATE, CHANGE, NEWS, MALFORMED, *HOOK_NAMES})
"""Names of the attachments with which the program tells the model something: none of them is the user's."""
PLAN_TOOL = "present_plan"
APPROVED = "approved"
"""The tool that plans are presented with, and what stands in its result's ``display`` beside the ``text`` of a plan
that the user approved."""
OWN_OUTPUT = "output"
"""Of the one that holds what the user's own command printed (``own_output`` knows it from a file of that name)."""
NO_OUTPUT = "[no output]"
"""What the model is told of a command that printed nothing."""
CLEARED_RESULT = "[Old tool result content cleared]"
RECALL_TOOL = "recall"
"""The tool that brings back what is no longer sent."""
CONTEXT_TOOL = "context"
KEPT_NOTE = "kept note"
"""The tool with which a model tends its own context, and what stands in its result's ``display`` of a note that every
compaction keeps."""
KEPT_TAG = "kept_note"
"""What frames it in a summary."""
SUMMARY_ID = "sum"
"""How the ids of summaries begin."""
SEARCH_TOOL = "web_search"
"""The tool that searches the web, the program's own or the provider's."""


def recall_id(message_id: str) -> str:
    """The short id by which ``recall`` knows a message: six digits, which cost two tokens. In a conversation of a
    thousand messages one in a thousand has that of another."""
    return f"{int(content_fingerprint(message_id)[:12], 16) % 1_000_000:06}"


def cleared_text(recall: str, result: str) -> str:
    """What stands in the place of a cleared result that the tool brings back by the id ``recall``."""
    return f"[Old tool result cleared: {len(result):,} characters; {RECALL_TOOL} id {recall}]"


def new_id(prefix: str) -> str:
    """A unique id that sorts by time of creation: ``prefix_`` + 12 hex digits of milliseconds + 10 random ones."""
    return f"{prefix}_{time.time_ns() // 1_000_000:012x}{os.urandom(5).hex()}"


@dataclass(slots=True)
class TextPart:
    text: str
    provider_metadata: Metadata | None = None
    pasted: list[list[int]] | None = None
    """The parts of a user's text, ``[from, to]`` in characters, that were pasted and stand behind a placeholder; None
    where none does."""
    typed: list[list[int]] | None = None
    """The parts of a user's text that they typed themselves, where a program sent it or something was piped in; None:
    all but what was pasted. What is in no such part is data, of which no word is the user's rule."""
    type: Literal["text"] = "text"


@dataclass(slots=True)
class ReasoningPart:
    """A thought of a model. ``text`` may be empty while the metadata (a signature, an encrypted item) is not."""

    text: str
    provider_metadata: Metadata | None = None
    prefix: str | None = None
    """The fingerprint of everything that was sent before it was made: some providers refuse a signature once any of
    that has changed."""
    seconds: float | None = None
    """How long it took to arrive; None where nobody measured that."""
    type: Literal["reasoning"] = "reasoning"


@dataclass(slots=True)
class ToolCallPart:
    """A call as the model wrote it: ``arguments`` is the raw JSON text, kept even when it does not parse."""

    call_id: str
    name: str
    arguments: str
    provider_metadata: Metadata | None = None
    type: Literal["tool_call"] = "tool_call"


@dataclass(slots=True)
class ToolResultPart:
    """The answer of a tool. ``text`` is for the model; ``display`` is for the transcript and is never sent."""

    call_id: str
    name: str
    text: str
    is_error: bool = False
    display: Metadata | None = None
    seconds: float | None = None
    provider_metadata: Metadata | None = None
    type: Literal["tool_result"] = "tool_result"


@dataclass(slots=True)
class AttachmentPart:
    """A file or image the user added, or one a tool returned. Exactly one of ``text`` and ``data`` (base64) is set."""

    name: str
    media_type: str
    text: str | None = None
    data: str | None = None
    path: str | None = None
    provider_metadata: Metadata | None = None
    type: Literal["attachment"] = "attachment"

    @property
    def is_image(self) -> bool:
        """True when it is an image, and here."""
        return bool(self.data) and self.media_type.startswith("image/")

    @property
    def is_hook(self) -> bool:
        """True when it is what a hook of the user's says."""
        return self.name in HOOK_NAMES

    @property
    def below_result(self) -> bool:
        """True when it stands below a tool's result, as text: not every provider takes more than text there."""
        return self.is_hook or self.name.startswith(NESTED)

    @property
    def unread(self) -> str:
        """The line that is sent in its place where the model does not take it."""
        return f"[{self.name} ({self.media_type}) cannot be read by this model]"


def images_in(parts: Iterable[object]) -> list[AttachmentPart]:
    """Those of a message's parts that are images."""
    return [part for part in parts if isinstance(part, AttachmentPart) and part.is_image]


@dataclass(slots=True)
class SummaryPart:
    """The text that stands for compacted messages. ``record_id`` names the compaction record it belongs to."""

    text: str
    record_id: str
    provider_metadata: Metadata | None = None
    pinned: bool = False
    """The words of the messages among them that the user pinned, as they were said."""
    type: Literal["summary"] = "summary"


@dataclass(slots=True)
class SearchPart:
    """A web search that ran at the provider: its call, what it found, or both (``models.search`` reads it). The
    metadata hold the ``item`` as it came, which goes back to its maker alone."""

    provider_metadata: Metadata | None = None
    type: Literal["search"] = "search"


Part: TypeAlias = TextPart | ReasoningPart | ToolCallPart | ToolResultPart | AttachmentPart | SummaryPart | SearchPart

PART_TYPES: dict[str, type[Part]] = {
    "text": TextPart,
    "reasoning": ReasoningPart,
    "tool_call": ToolCallPart,
    "tool_result": ToolResultPart,
    "attachment": AttachmentPart,
    "summary": SummaryPart,
    "search": SearchPart,
}


@dataclass(slots=True, frozen=True)
class Origin:
    """Who made an assistant message. Reasoning is resent only to the same provider, API and model."""

    provider: str
    api: str
    model: str


@dataclass(slots=True)
class Message:
    """One entry of a conversation. A message of role ``tool`` carries exactly one tool result (plus attachments).

    Messages form a tree: ``parent_id`` is the message before it (None for the first). The conversation of a session
    is the path from the root to the session's head, so a rewind moves the head and destroys nothing.
    """

    id: str
    role: Role
    parts: list[Part] = field(default_factory=list)
    status: Status = "complete"
    parent_id: str | None = None
    created: float = 0.0
    """Seconds since the epoch."""
    origin: Origin | None = None
    step_id: str | None = None
    raw_tokens: int | None = None
    """The o200k_base count of ``context.tokens.message_text_for_count``; None until the worker has counted it."""
    note: str | None = None
    """Why an answer failed."""
    provider_metadata: Metadata | None = None
    """What the provider attached to the message as a whole."""
    counts: tuple[int, ...] | None = None
    """The same by kind (``models.calibration.KINDS``). None until the worker has counted it."""

    @property
    def text(self) -> str:
        """All text parts joined: the answer without reasoning and tool calls."""
        return "".join(p.text for p in self.parts if isinstance(p, TextPart))

    @property
    def reasoning(self) -> str:
        return "".join(p.text for p in self.parts if isinstance(p, ReasoningPart))

    @property
    def tool_calls(self) -> list[ToolCallPart]:
        return [p for p in self.parts if isinstance(p, ToolCallPart)]

    @property
    def tool_result(self) -> ToolResultPart | None:
        for part in self.parts:
            if isinstance(part, ToolResultPart):
                return part
        return None


def attachments_of(message: Message) -> list[AttachmentPart]:
    """The attachments of a message, in their order: the first is ``ID#1``."""
    return [part for part in message.parts if isinstance(part, AttachmentPart)]


def attached_name(name: str) -> str:
    """What an attached file is called: not as what the program itself tells the model."""
    return f"./{name}" if name in TOLD or name.startswith(NESTED) else name


def without_marks(text: str) -> str:
    """A tool's words in which no line begins as those do that the program puts below them, and no tag is that of its
    notes."""
    text = without_tags(text, NOTE)
    if "[" not in text:
        return text
    names = "|".join(map(re.escape, ("Permission mode: ", NESTED, *sorted(f"{name}: " for name in HOOK_NAMES))))
    return re.sub(rf"^(?=\[(?:{names}))", r"\\", text, flags=re.MULTILINE)


def texts_below(message: Message | None) -> list[str]:
    """What stands below the result of a tool: the words of hooks, and the memory files of the folder."""
    parts = message.parts if message is not None else []
    told = [part for part in parts if isinstance(part, AttachmentPart) and part.below_result]
    return [encodable(f"[{p.name}: {p.text}]") for p in told]


PINNED_INTRODUCTION = "[The user pinned these words: they go word for word through every compaction. Oldest first.]\n\n"


NOTES_INTRODUCTION = "[You kept these notes yourself; the user did not write them. Oldest first.]\n\n"


def pinned_words(message: Message) -> str:
    """The words of a message that a pin keeps: its text, of a result the note that the model wanted kept."""
    if message.role != "tool":
        return message.text.strip()
    result = message.tool_result
    return "" if result is None else str((result.display or {}).get(KEPT_NOTE, ""))


def pinned_text(messages: Iterable[Message]) -> str:
    """The words of pinned messages as a summary carries them, and the model's own notes apart, so that they are not
    taken for the user's; empty where there are none."""
    words, notes = list[str](), list[str]()
    for message in messages:
        if not (said := pinned_words(message)):
            continue
        if message.role == "tool":
            notes.append(framed(KEPT_TAG, said))
        else:
            words.append(framed("pinned" if message.role == "user" else "pinned_answer", said))
    parts = [PINNED_INTRODUCTION + "\n\n".join(words)] if words else []
    parts += [NOTES_INTRODUCTION + "\n\n".join(notes)] if notes else []
    return "\n\n".join(parts)


def note_frames(pinned: str) -> list[str]:
    """The model's notes in a ``pinned_text``, in their frames: no other words in it hold such a frame."""
    return re.findall(rf"<{KEPT_TAG}>\n.*?\n</{KEPT_TAG}>", pinned, re.DOTALL)


def without_notes(pinned: str, numbers: Set[int]) -> str:
    """The ``pinned_text`` that there would be without these of the notes in it, counted from 1."""
    notes = note_frames(pinned)
    begin = pinned.rfind(NOTES_INTRODUCTION, 0, pinned.find(notes[0])) if notes else len(pinned)
    users, left = pinned[:begin].removesuffix("\n\n"), [n for i, n in enumerate(notes, 1) if i not in numbers]
    return "\n\n".join(filter(None, [users, NOTES_INTRODUCTION + "\n\n".join(left) if left else ""]))


def summary_text(message: Message) -> str:
    """All that a summary says, the pinned words at its end."""
    return "\n\n".join(part.text for part in message.parts if isinstance(part, SummaryPart))


class Written(NamedTuple):
    """The part of a message that the user wrote: the text with every paste in place, what goes with it, and where in it
    the pastes are (``TextPart.pasted``)."""

    text: str
    attachments: list[AttachmentPart]
    pasted: list[list[int]] = []


def user_message(
    text: str,
    *,
    parent_id: str | None = None,
    attachments: list[AttachmentPart] | None = None,
    pasted: list[list[int]] | None = None,
    typed: list[list[int]] | None = None,
) -> Message:
    """A new user message; attachments come before the text, as providers recommend."""
    parts: list[Part] = [*(attachments or [])]
    if text or not parts:
        parts.append(TextPart(text, pasted=pasted or None, typed=typed))
    return Message(new_id("msg"), "user", parts, "complete", parent_id, time.time())


def own_output(message: Message) -> str | None:
    """Returns the output of the user's own ``!command``; None for every other message."""
    if message.role != "user" or not message.text.startswith("!"):
        return None
    return next((p.text for p in message.parts if isinstance(p, AttachmentPart) and p.name == OWN_OUTPUT), None)


def written_in(message: Message) -> Written:
    """Returns the part of a user's message that they wrote."""
    pasted = next((part.pasted for part in message.parts if isinstance(part, TextPart)), None)
    return Written(message.text, attachments_of(message), pasted or [])


def first_paragraph(text: str) -> list[list[int]]:
    """Where the typed words are in a prompt that a program sends, or that is piped in alone: in its first paragraph.
    What comes behind it may be anything that was put there."""
    start = len(text) - len(text.lstrip())
    end = re.compile(r"\n[ \t]*\r?\n").search(text, start)
    return [[start, end.start() if end is not None else len(text)]] if text[start:] else []


def range_of(words: str, text: str) -> list[list[int]]:
    """Where the user's ``words`` stand in a ``text`` that a command made with them; empty where they do not."""
    words = words.strip()
    at = text.rfind(words) if words else -1
    return [[at, at + len(words)]] if at >= 0 else []


EMPTY = ""


def extend(fingerprint: str, item: str) -> str:
    """The fingerprint of a list that had ``fingerprint`` and now also has ``item`` at its end."""
    return hashlib.blake2b(f"{fingerprint}\n{item}".encode(), digest_size=12).hexdigest()


def fingerprint(items: Iterable[str], start: str = EMPTY) -> str:
    """The fingerprint of a list of ids, beginning from ``start``."""
    for item in items:
        start = extend(start, item)
    return start


def content_fingerprint(text: str) -> str:
    """A short digest of a piece of content (system prompt, a tool's schema, a file)."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


_NOTE = re.compile(r"\[… [\d,]+ characters left out; everything is in [^\n]{1,4096}?: read or grep it …\]")


def saved_note(left_out: int, path: object) -> str:
    """The note on ``left_out`` characters of an output that is whole in the file ``path``."""
    return f"[… {left_out:,} characters left out; everything is in {path}: read or grep it …]"


def find_saved_note(text: str) -> str:
    """The note in an output; empty when there is none."""
    found = _NOTE.search(text)
    return found[0] if found else ""
