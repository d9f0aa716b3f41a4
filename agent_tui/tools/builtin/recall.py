"""recall: what was said and seen in this session and is no longer sent, by words or by id."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from agent_tui.errors import ToolError
from agent_tui.models.messages import (
    RECALL_TOOL,
    TOLD,
    AttachmentPart,
    Message,
    Metadata,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    images_in,
    recall_id,
)
from agent_tui.models.requests import ToolSchema
from agent_tui.records import dataclass
from agent_tui.text.clean import cut, pictured, pictured_line
from agent_tui.text.numbers import plural
from agent_tui.text.search import contains, fold, search_words, spans
from agent_tui.tools.aliases import own_name
from agent_tui.tools.arguments import INTEGER, TEXT, described, parameters, short_summary, validate
from agent_tui.tools.base import Intent, Past, ToolContext, ToolOutcome
from agent_tui.tools.builtin.read import same_now
from agent_tui.tools.children.process import Stop, in_thread
from agent_tui.tools.files.beneath import info_of
from agent_tui.tools.files.text import attached_version, version

HITS = 5
HIT_CHARS = 700
"""Hits that are shown with their text, and the characters of it: about two hundred tokens each."""

MORE_HITS = 15
"""Further ones of which a line is shown."""

TEXT_CHARS = 8_000
"""Characters of a message that is asked for by its id; more of it by an offset."""

MAX_WORDS = 20
WORTH = 0.5
"""Hits that are worth less than this share of the best are none."""

EDGE = 80
"""An excerpt begins and ends at the ends of lines where one is so near."""


@dataclass(slots=True)
class RecallArguments:
    query: str = ""
    id: str = ""
    offset: int = 0


class Hit(NamedTuple):
    """A message with a query's words in it; ``worth`` is more the rarer these are."""

    worth: float
    place: int
    text: str


class RecallTool:
    """Looks through ``context.past``: messages of this conversation that a compaction took away, cleared or cut.
    Reasoning is never among what it shows, nor what it showed before."""

    group = "builtin"
    schema = ToolSchema(
        RECALL_TOOL,
        "Search the part of this conversation that is no longer in view, or read from it by id.",
        parameters({"query": TEXT, "id": TEXT, "offset": described(INTEGER, "first character")}),
    )

    def intent(self, arguments: Metadata, context: ToolContext) -> Intent:
        args = _checked(arguments)
        return Intent("internal", f"{RECALL_TOOL} {pictured_line(args.id or args.query)[:100]}")

    async def run(self, arguments: Metadata, context: ToolContext) -> ToolOutcome:
        args, past = _checked(arguments), context.past()
        asked = args.id or (args.query if args.query.isdecimal() else "")
        named = [message for message in past.path if asked and _is_named(message, asked)]
        if args.id and not named:
            raise ToolError(f"{RECALL_TOOL}: nothing in this conversation has the id {pictured_line(args.id)[:60]}.")
        if named:
            return await in_thread(lambda stop: _Recall(past, context, stop).read(named, max(0, args.offset)))
        return await in_thread(lambda stop: _Recall(past, context, stop).search(args.query))


def _checked(arguments: Metadata) -> RecallArguments:
    """Raises ToolError for a call that asks for nothing."""
    # Ids are digits: some models write them as numbers.
    numbers = {name: f"{arguments[name]:06}" for name in ("query", "id") if type(arguments.get(name)) is int}
    args = validate(RecallArguments, {**arguments, **numbers}, RECALL_TOOL)
    args.id, args.query = args.id.strip().lstrip("#"), args.query.strip()
    if not args.id and not search_words(args.query):
        raise ToolError(f"{RECALL_TOOL}: give words to search for, or the id of what you want to read.")
    return args


def _is_named(message: Message, id: str) -> bool:
    result = message.tool_result
    return id in (message.id, recall_id(message.id)) or (result is not None and result.call_id == id)


def said(message: Message) -> str:
    """What ``recall`` knows of a message: its text, its calls, its result, and what is attached as text."""
    parts: list[str] = []
    for part in message.parts:
        match part:
            case TextPart() | ToolResultPart():
                parts.append(part.text)
            case ToolCallPart() if own_name(part.name) != RECALL_TOOL:
                parts.append(f"{part.name} {part.arguments}")
            case AttachmentPart() if part.text and part.name not in TOLD:
                parts.append(f"[{part.name}]\n{part.text}")
    return "\n".join(text for text in parts if text)


class _Recall:
    """One call, in a thread."""

    def __init__(self, past: Past, context: ToolContext, stop: Stop) -> None:
        self._past = past
        self._context = context
        self._stop = stop
        self._calls = {call.call_id: call for message in past.path for call in message.tool_calls}
        self._turns = [0] * len(past.path)
        """How many turns began after each message."""
        turns = 0
        for place in range(len(past.path) - 1, -1, -1):
            self._turns[place] = turns
            turns += past.path[place].role == "user"
        self._places = {message.id: index for index, message in enumerate(past.path)}

    def read(self, named: Sequence[Message], offset: int) -> ToolOutcome:
        """The text of a message from ``offset`` on, with its images; where several have the id, of each the head."""
        if len(named) > 1:
            lines = [f"{message.id}: {self._head(message, said(message))}" for message in named]
            return _outcome(
                "\n".join(["Several messages have this id. Ask by the long one:", *lines]), named, "several"
            )
        (message,) = named
        text = pictured(said(message))
        if offset and offset >= len(text):
            raise ToolError(f"{RECALL_TOOL}: it has only {len(text):,} characters.")
        most = min(TEXT_CHARS, self._context.config.output_limit)
        piece = text[offset : offset + most]
        end = offset + len(piece)
        notes = [self._head(message, text)]
        if message.id not in self._past.gone:
            notes.append("[it is still in the conversation above]")
        if offset or end < len(text):
            way = f"; continue with offset {end}" if end < len(text) else ""
            notes.append(f"[characters {offset:,}-{end:,} of {len(text):,}{way}]")
        outcome = _outcome("\n".join([*notes, piece]), named, plural(len(piece), "character"))
        outcome.attachments = [] if offset else list(images_in(message.parts))
        return outcome

    def search(self, query: str) -> ToolOutcome:
        """The messages with most of the words in them; of those with as many, the ones that have them as whole words
        first, then the newest."""
        words = search_words(query)[:MAX_WORDS]
        count = len(self._past.gone)
        if not count:
            return _outcome("Nothing of this conversation was taken out: all of it is above.", (), "nothing is gone")
        hits = self._hits(words)
        where = f"{plural(count, 'message')} that {'is' if count == 1 else 'are'} no longer in view"
        if not hits:
            return _outcome(f"No hit in {where}. Try other or fewer words.", (), "no hit")
        shown, more = hits[:HITS], hits[HITS : HITS + MORE_HITS]
        blocks = [f"{plural(len(hits), 'hit')} in {where}. {RECALL_TOOL} with an id shows all of one."]
        blocks += [self._excerpt(hit, words) for hit in shown]
        if more:
            blocks.append("\n".join(["Also in:", *(self._head(self._past.path[h.place], h.text) for h in more)]))
        found = [self._past.path[hit.place] for hit in shown]
        return _outcome("\n\n".join(blocks), found, plural(len(hits), "hit"))

    def _hits(self, words: Sequence[str]) -> list[Hit]:
        had: list[tuple[int, str, list[str]]] = []
        whole: dict[int, int] = {}
        for index, text, label in self._texts():
            if self._stop.is_set():
                raise ToolError(f"{RECALL_TOOL}: interrupted.")
            folded = fold(f"{label}\n{text}")
            if found := [word for word in words if contains(folded, word)]:
                had.append((index, text, found))
                whole[index] = sum(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", folded) is not None for word in found)
        worth = {
            word: math.log(1 + len(self._past.gone) / sum(word in found for _, _, found in had))
            for word in {word for _, _, found in had for word in found}
        }
        hits = [Hit(sum(worth[word] for word in found), index, text) for index, text, found in had]
        best = max((hit.worth for hit in hits), default=0.0)
        good = (hit for hit in hits if hit.worth >= WORTH * best)
        return sorted(good, key=lambda h: (-h.worth, -whole[h.place], -h.place))

    def _texts(self) -> Iterator[tuple[int, str, str]]:
        """What is no longer sent, the newest first, each text once, and what a result is of: it is looked for by the
        words of its call, too. What was recalled is found where it stands."""
        seen: set[tuple[str, str]] = set()
        for index in range(len(self._past.path) - 1, -1, -1):
            message = self._past.path[index]
            result = message.tool_result
            if message.id not in self._past.gone or (result is not None and own_name(result.name) == RECALL_TOOL):
                continue
            text = said(message)
            call = self._calls.get(result.call_id) if result is not None else None
            label = short_summary(call) if call is not None else ""
            if text.strip() and (label, text) not in seen:
                seen.add((label, text))
                yield index, text, label

    def _excerpt(self, hit: Hit, words: Sequence[str]) -> str:
        text = pictured(hit.text)
        start, end = _window(text, [place for place, _ in spans(text, words)])
        before, after = "…" if start else "", "…" if end < len(text) else ""
        head = self._head(self._past.path[hit.place], text, f"from {start:,}" if start else "")
        return f"{head}\n{before}{text[start:end]}{after}"

    def _head(self, message: Message, text: str, *notes: str) -> str:
        """``[416823 · result of read src/app.py · 12 turns ago · 12,345 characters · the file has changed since]``."""
        turns = self._turns[self._places[message.id]]
        result, call = message.tool_result, None
        who = {"user": "the user", "assistant": "you", "tool": "result"}[message.role]
        if result is not None:
            call = self._calls.get(result.call_id)
            who = f"result of {short_summary(call) if call is not None else cut(pictured_line(result.name), 60)}"
        age = f"{plural(turns, 'turn')} ago" if turns else "this turn"
        since = self._since(message, result, call)
        facts = [recall_id(message.id), who, age, plural(len(text), "character"), *notes, since]
        return f"[{' · '.join(fact for fact in facts if fact)}]"

    def _since(self, message: Message, result: ToolResultPart | None, call: ToolCallPart | None) -> str:
        """What became of what a message shows: of a file that was read or attached, and of a call that was made again.
        Empty where nothing is known of that."""
        if result is None or call is None:
            files = [p for p in message.parts if isinstance(p, AttachmentPart) and p.path and p.text]
            return _changed(files, self._context)
        if result.is_error:
            return "failed"
        again = self._again(message, call)
        same = same_now(call, result.text, self._context) if own_name(call.name) == "read" else None
        if same is not None:
            return "the file is the same now" if same else "the file has changed since"
        return again

    def _again(self, message: Message, call: ToolCallPart) -> str:
        """What a later call with the same arguments gave."""
        for later in reversed(self._past.path[self._places[message.id] + 1 :]):
            result = later.tool_result
            other = self._calls.get(result.call_id) if result is not None else None
            if result is None or other is None or (other.name, other.arguments) != (call.name, call.arguments):
                continue
            own = message.tool_result
            return "the same later" if own is not None and own.text == result.text else f"newer: {recall_id(later.id)}"
        return ""


def _changed(files: Sequence[AttachmentPart], context: ToolContext) -> str:
    """Whether attached files are others now than when they were read."""
    for part in files:
        path, then = Path(part.path or ""), attached_version(part)
        if then is None or context.hidden(path):
            continue
        info = info_of(path)
        if info is None or version(info) != then:
            return "the file has changed since"
    return ""


def _window(text: str, places: Sequence[int]) -> tuple[int, int]:
    """The stretch of ``HIT_CHARS`` with most of ``places`` in it; its ends at those of lines where one is near."""
    if len(text) <= HIT_CHARS:
        return 0, len(text)
    best, most, last = 0, 0, 0
    for first, place in enumerate(places):
        last = max(last, first)
        while last < len(places) and places[last] < place + HIT_CHARS * 3 // 4:
            last += 1
        if last - first > most:
            best, most = place, last - first
    start = max(0, min(best - HIT_CHARS // 8, len(text) - HIT_CHARS))
    line = text.rfind("\n", max(0, start - EDGE), start) + 1
    start = line if line else start
    end = start + HIT_CHARS
    if end + EDGE >= len(text):
        return start, len(text)
    line = text.find("\n", end, end + EDGE)
    return start, line if line >= 0 else end


def _outcome(text: str, found: Sequence[Message], summary: str) -> ToolOutcome:
    """``recalled`` in what is stored for people are the ids of the messages whose text is shown."""
    recalled = [message.id for message in found]
    return ToolOutcome(text, display={"kind": "text", "summary": summary, "recalled": recalled})
