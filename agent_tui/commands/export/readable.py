"""What people read of a session: who said what, the tool calls with what came of them, where the conversation was
compacted or rewound. Keys are masked in it, and no character acts or hides."""

from __future__ import annotations

import datetime
import json
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import accumulate
from pathlib import PurePath
from typing import Any

from agent_tui.commands.tool_words import (
    call_label,
    changed_lines,
    items_of,
    result_facts,
    shown,
)
from agent_tui.context.anchor import made_on
from agent_tui.context.compaction.summary import sizes_text
from agent_tui.context.cuts import dropped_attachments, dropped_ids, edited_words
from agent_tui.models.failure import INTERRUPTED
from agent_tui.models.messages import (
    INTERRUPTED_RESULT,
    NO_OUTPUT,
    OWN_OUTPUT,
    TOLD,
    AttachmentPart,
    Message,
    Part,
    ReasoningPart,
    SearchPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    attachments_of,
    own_output,
    summary_text,
)
from agent_tui.models.search import search_calls, search_id
from agent_tui.models.session import SessionInfo
from agent_tui.models.steps import CompactionRecord
from agent_tui.providers.secrets import redactor
from agent_tui.records import dataclass
from agent_tui.store.content import SessionContent
from agent_tui.store.export_data import own_steps, session_cost
from agent_tui.text.clean import clean, cut, program_output
from agent_tui.text.numbers import lines_in, money, plural, share_in, tokens
from agent_tui.text.strict_json import json_or
from agent_tui.tools.arguments import call_summary

MOST_OUTPUT = 40_000
"""Characters of one tool's output, one file or one call's arguments; the JSON export has the rest."""
LONG_PASTE = 12
"""Lines from which on what was pasted stands by itself."""
DROPPED = "dropped from the context"
MOST_ARGUMENTS = 12
"""Arguments of a call that are listed."""


@dataclass(slots=True)
class ReadableCall:
    """A tool call and its result, None where there is none."""

    part: ToolCallPart
    result: ToolResultPart | None
    pictures: Sequence[AttachmentPart] = ()
    dropped: bool = False
    """The user dropped the result alone."""

    @property
    def label(self) -> str:
        """What it does, in one line."""
        if self.kind == "list":
            return self.part.name
        return cut(on_one_line(call_label(self.part.name, call_summary(self.part.name, self.part.arguments))), 200)

    @property
    def sign(self) -> str:
        """How it ended, in one character."""
        if self.result is None:
            return "○"
        if self.result.text.startswith(INTERRUPTED_RESULT):
            return "⊘"
        return "✗" if self.result.is_error else "✓"

    @property
    def facts(self) -> str:
        """What came of it, in a few words."""
        if self.result is None:
            return "no result"
        return on_one_line(" · ".join([*result_facts(self.result), *([DROPPED] if self.dropped else [])]))

    @property
    def kind(self) -> str:
        """What its output is: ``diff``, ``list``, ``plan``, ``text`` or nothing."""
        if self.result is None:
            return ""
        if items_of(self.result):
            return "list"
        kind, text = shown(self.result)
        if kind == "diff" and any(changed_lines(self.result)):
            return "diff"
        return "text" if text.strip() else ""

    @property
    def output(self) -> str:
        return "" if self.result is None else shown(self.result)[1].strip("\n")

    def arguments(self) -> str:
        """The arguments that the label does not say, a line each."""
        data = json_or(self.part.arguments, None)
        if not isinstance(data, dict):
            return self.part.arguments.strip()
        label = self.label
        rows = [
            f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
            for name, value in data.items()
            if not (isinstance(value, str) and value in label)
        ]
        more = len(rows) - MOST_ARGUMENTS
        return "\n".join([*rows[:MOST_ARGUMENTS], *([f"… {more:,} more"] if more > 0 else [])])


@dataclass(slots=True)
class ReadableMessage:
    """One message of the conversation. ``goes_on``: it is of the same answer as the entry before it. ``state`` says in
    a word or two what is unusual about it, ``ending`` why an answer did not simply end."""

    message: Message
    calls: Mapping[str, ReadableCall] = field(default_factory=dict)
    goes_on: bool = False
    state: str = ""
    ending: str = ""

    @property
    def speaker(self) -> str:
        return "User" if self.message.role == "user" else "Assistant"

    @property
    def parts(self) -> Iterator[Part | ReadableCall]:
        """Its parts with the calls in the place of theirs, and without those with which the program tells the model
        something."""
        searches = {call.call_id: ReadableCall(call, found) for call, found in search_calls(self.message.parts)}
        for part in self.message.parts:
            if isinstance(part, SearchPart):
                yield from filter(None, [searches.pop(search_id(part), None)])
            elif isinstance(part, ToolCallPart):
                yield self.calls.get(part.call_id) or ReadableCall(part, None)
            elif isinstance(part, ToolResultPart):
                yield ReadableCall(ToolCallPart(part.call_id, part.name, ""), part)
            elif not (isinstance(part, AttachmentPart) and part.name in TOLD and not part.is_hook):
                yield part


@dataclass(slots=True)
class Event:
    """What happened between two messages, in a line; ``text`` is Markdown to read of it."""

    title: str
    detail: str
    text: str = ""


class Readable:
    """A stored session for people."""

    def __init__(self, info: SessionInfo, content: SessionContent, keys: Collection[str] = ()) -> None:
        hide = redactor(keys)
        self.info, self.content = info, content
        self._tidy: Callable[[str], str] = lambda text: hide(clean(text))

    @cached_property
    def title(self) -> str:
        return self._line(self.info.title) or cut(self._line(self.info.preview), 80) or "Session"

    @cached_property
    def path(self) -> list[Message]:
        """The messages of the conversation, oldest first, as they are stored."""
        left, path = dict(self.content.messages), list[Message]()
        head = self.info.head_id
        while head is not None and (message := left.pop(head, None)) is not None:
            path.append(message)
            head = message.parent_id
        path.reverse()
        return path

    @cached_property
    def ids(self) -> frozenset[str]:
        """The ids of the messages of the conversation."""
        return frozenset(message.id for message in self.path)

    @cached_property
    def records(self) -> list[CompactionRecord]:
        """The compactions, drops and folds of the conversation."""
        return made_on(self.content.records, self.ids)

    def facts(self) -> list[tuple[str, str]]:
        """What stands below the title: names and values."""
        steps = own_steps(self.info, self.content.steps)
        models = list(dict.fromkeys(step.model_key for step in steps if step.kind == "turn")) or [self.info.model]
        told = [usage for step in steps if (usage := step.believed or step.usage) is not None]
        sent, answered = sum(usage.input for usage in told), sum(usage.output for usage in told)
        read = sum(usage.cache_read or 0 for usage in told)
        cached = f" ({share_in(read, sent)} from the cache)" if read and sent else ""
        spent = f"{tokens(sent, False)} in{cached}, {tokens(answered, False)} out" if sent else ""
        facts = [
            ("Project", self._line(PurePath(self.info.project).name)),
            ("Model", ", ".join(map(self._line, models))),
            ("Date", self._dates()),
            ("Cost", money(session_cost(self.info, self.content.steps))),
            ("Tokens", spent),
        ]
        return [(name, value) for name, value in facts if value]

    def _dates(self) -> str:
        times = [self.info.created, *(message.created for message in self.path if message.created)]
        first, last = moment(min(times)), moment(max(times))
        if first == last:
            return f"{first} UTC"
        return f"{first} – {last[11:] if first[:10] == last[:10] else last} UTC"

    def entries(self) -> Iterator[ReadableMessage | Event]:
        """Yields the conversation in its order, and what happened to it where it happened."""
        calls = self._results()
        dropped = dropped_ids(self.records)
        events = self._events()
        asked = {part.call_id for message in self.path for part in message.tool_calls}
        answering = False
        yield from events.get(None, ())
        for message in self.path:
            result = message.tool_result
            if message.role != "tool" or (result is not None and result.call_id not in asked):
                yield self._entry(message, calls, answering, message.id in dropped)
                answering = message.role != "user"
            if found := events.get(message.id):
                yield from found
                answering = False

    def _entry(
        self, message: Message, calls: Mapping[str, ReadableCall], answering: bool, dropped: bool
    ) -> ReadableMessage:
        ending = ""
        if message.status == "failed":
            ending = message.note or "The answer failed."
        elif message.status == "stopped":
            ending = message.note or INTERRUPTED
        elif message.role == "assistant" and message.note:
            ending = message.note
        own: dict[str, ReadableCall] = {}
        for part in message.tool_calls:
            if (call := calls.get(part.call_id)) is not None:
                own[part.call_id] = replace(self._call(call), dropped=call.dropped and not dropped)
        state = DROPPED if dropped else ""
        goes_on = answering and message.role != "user"
        return ReadableMessage(self._tidied(message), own, goes_on, state, self._line(ending))

    def _results(self) -> dict[str, ReadableCall]:
        """The calls by their id, as they are stored."""
        calls = {part.call_id: ReadableCall(part, None) for message in self.path for part in message.tool_calls}
        gone = dropped_ids(self.records)
        for message in self.path:
            if (result := message.tool_result) is not None and result.call_id in calls:
                call = calls[result.call_id]
                call.result = result
                call.pictures = attachments_of(self._marked(message))
                call.dropped = message.id in gone
        return calls

    def _call(self, call: ReadableCall) -> ReadableCall:
        """The same to be shown."""
        part, result = self._part(call.part), call.result
        assert isinstance(part, ToolCallPart)
        tidied = None if result is None else self._part(result)
        assert tidied is None or isinstance(tidied, ToolResultPart)
        pictures = [shown for picture in call.pictures if isinstance(shown := self._part(picture), AttachmentPart)]
        return ReadableCall(part, tidied, pictures, call.dropped)

    def _events(self) -> dict[str | None, list[Event]]:
        """What happened, by the message that it follows; None: before all of them."""
        events: dict[str | None, list[Event]] = {}
        for parent, roots in self._branches().items():
            events.setdefault(parent, []).append(self._left(roots))
        times = list(accumulate((message.created for message in self.path), max))
        for record in self.records:
            # What was compacted and undone again is nothing to read; what was dropped and is back is not either.
            if record.active and record.kind != "restore":
                place = bisect_right(times, record.created)
                events.setdefault(self.path[place - 1].id if place else None, []).append(self._record(record))
        return events

    def _record(self, record: CompactionRecord) -> Event:
        count = plural(len(record.message_ids), "message")
        sizes = f"{sizes_text(record)} tokens" if record.after_tokens is not None else ""
        text = ""
        if record.kind == "drop":
            title, what = "Dropped from the context", edited_words(record)
        elif record.kind == "prune":
            title, what = "Compacted", f"{plural(len(record.message_ids), 'old tool result')} cleared or cut"
        elif record.left_out:
            title, what = "Compacted", f"{plural(record.left_out, 'old message')} left out, no summary"
        else:
            title, what = "Folded" if record.reason == "edit" else "Compacted", f"{count} summarised"
            if (summary := self.content.summaries.get(record.summary_id or "")) is not None:
                text = self._tidy(summary_text(summary))
        return Event(title, " · ".join(filter(None, [what, sizes])), text)

    def _branches(self) -> dict[str | None, list[str]]:
        """The first messages of the branches that were left, by the message of the conversation that they follow."""
        found: dict[str | None, list[str]] = {}
        for message in self.content.messages.values():
            parent = message.parent_id if message.parent_id in self.content.messages else None
            if message.id not in self.ids and (parent is None or parent in self.ids):
                found.setdefault(parent, []).append(message.id)
        return found

    @cached_property
    def _children(self) -> dict[str | None, list[str]]:
        children: dict[str | None, list[str]] = {}
        for message in self.content.messages.values():
            children.setdefault(message.parent_id, []).append(message.id)
        return children

    def _left(self, roots: Sequence[str]) -> Event:
        todo, count = list(roots), 0
        while todo:
            count += 1
            todo += self._children.get(todo.pop(), ())
        words = cut(self._line(next((text for root in roots if (text := self.content.messages[root].text)), "")), 80)
        said = f", beginning with “{words}”" if words else ""
        return Event("Rewound to here", f"{plural(count, 'message')} left behind{said}")

    def _tidied(self, message: Message) -> Message:
        return replace(message, parts=[self._part(part) for part in self._marked(message).parts])

    def _marked(self, message: Message) -> Message:
        """The message with a word before the names of attachments that the user dropped from it."""
        gone = self._attachments.get(message.id, ())
        parts, number = list(message.parts), 0
        for place, part in enumerate(parts if gone else ()):
            if isinstance(part, AttachmentPart):
                number += 1
                parts[place] = replace(part, name=f"{DROPPED}: {part.name}") if number in gone else part
        return replace(message, parts=parts) if gone else message

    @cached_property
    def _attachments(self) -> dict[str, list[int]]:
        return dropped_attachments(record for record in self.records if record.active)

    def _part(self, part: Part) -> Part:
        tidy = self._tidy
        match part:
            case TextPart(text=text, pasted=pasted):
                pieces = [(tidy(text[start:end]), apart) for start, end, apart in _pieces(text, pasted or ())]
                spans, at = [], 0
                for piece, apart in pieces:
                    spans += [[at, at + len(piece)]] if apart else []
                    at += len(piece)
                return TextPart("".join(piece for piece, _ in pieces), pasted=spans or None)
            case ReasoningPart():
                return ReasoningPart(tidy(part.text), seconds=part.seconds)
            case ToolCallPart():
                return ToolCallPart(part.call_id, self._line(part.name), tidy(part.arguments))
            case ToolResultPart():
                return replace(
                    part,
                    name=self._line(part.name),
                    text=self._printed(part.text),
                    display=None if part.display is None else _each_text(part.display, self._printed),
                )
            case AttachmentPart():
                return replace(
                    part,
                    name=self._line(part.name),
                    media_type=self._line(part.media_type),
                    text=None if part.text is None else self._printed(part.text),
                )
            case SearchPart(metadata):
                kept = {name: value for name, value in (metadata or {}).items() if name != "item"}
                return SearchPart(_each_text(kept, self._printed))
        return replace(part, text=tidy(part.text))

    def _printed(self, text: str) -> str:
        return self._tidy(program_output(text))

    def _line(self, text: str) -> str:
        return on_one_line(self._tidy(text))


def own_command(message: Message) -> str | None:
    """Returns what the user's own command printed; None for every other message."""
    output = own_output(message)
    return "" if output is not None and output.strip() == NO_OUTPUT else output


def is_own_output(part: Part) -> bool:
    return isinstance(part, AttachmentPart) and part.name == OWN_OUTPUT


def written(part: TextPart) -> Iterator[tuple[str, bool]]:
    """Yields what was written, and the long pastes in it by themselves (True)."""
    spans = [span for span in part.pasted or () if part.text.count("\n", *span) >= LONG_PASTE]
    for start, end, apart in _pieces(part.text, spans):
        if text := part.text[start:end].strip("\n"):
            yield text, apart


def paste_name(text: str) -> str:
    return f"Pasted {plural(lines_in(text), 'line')}"


def short(text: str) -> tuple[str, int]:
    """Returns the beginning of an output, and how many characters of it are left out."""
    return text[:MOST_OUTPUT], max(0, len(text) - MOST_OUTPUT)


def left_out(count: int) -> str:
    """The line that stands for them."""
    return f"… {plural(count, 'more character')}; the JSON export has them"


def moment(then: float) -> str:
    """A time (seconds since the epoch) as ``2026-11-23 14:05``, in UTC."""
    return f"{datetime.datetime.fromtimestamp(then, datetime.UTC):%Y-%m-%d %H:%M}"


def on_one_line(text: str) -> str:
    """A text on one line."""
    return " ".join(text.split())


def _pieces(text: str, spans: Sequence[Sequence[int]]) -> Iterator[tuple[int, int, bool]]:
    """Yields a text in pieces: from, to, and whether it is one of the spans."""
    at = 0
    for start, end in spans:
        if at <= start < end <= len(text):
            yield at, start, False
            yield start, end, True
            at = end
    yield at, len(text), False


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    """The same value with every text in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_each_text(item, change) for item in value]
    if isinstance(value, dict):
        return {key: _each_text(item, change) for key, item in value.items()}
    return value
