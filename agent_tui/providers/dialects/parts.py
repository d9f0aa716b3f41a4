"""An answer as ordered parts, made of what streams say: here alone it is decided which part a piece belongs to."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import field
from typing import Any, Literal, TypeAlias

from agent_tui.models.messages import Metadata
from agent_tui.models.requests import Delta
from agent_tui.providers.dialects.endings import GRAVE, Ending, ending_of
from agent_tui.providers.dialects.repeats import (
    RunningArguments,
    RunningText,
    is_json_beginning,
    is_whole_json,
    same_arguments,
)
from agent_tui.records import dataclass
from agent_tui.text.clean import printable_line

Event: TypeAlias = dict[str, Any]
"""One event of a provider's stream, parsed."""

Kind = Literal["text", "reasoning", "tool_call", "search"]
_END_WORDS = 120
"""Characters that are kept of how an end is called."""


@dataclass(slots=True, eq=False)
class OpenPart:
    """A part of the answer. It has a number from its first content on: no text and no metadata means no part."""

    kind: Kind
    place: Hashable = None
    """Its number as the stream has it, if it has one. Several parts may have the same."""
    said: RunningText = field(default_factory=RunningText)
    name: str = ""
    call_id: str | None = None
    """As the stream says it; None where it says none."""
    metadata: Metadata | None = None
    index: int | None = None
    closed: bool = False
    named_again: bool = False
    """A call's name came again behind whole arguments, and nothing since: the next that come are another call's."""


_ANYWHERE = "anywhere", object()


class PartBuilder:
    """The answer so far. What a part *is* tells it from others: its kind, then its id, its name, what it holds. The
    number that a stream gives it, its ``place``, is one sign among these, for there are gateways that number all parts
    0, begin at 1, or give no number.

    Text, thoughts and searches:

    1. An id that is known names its part.
    2. Else a piece belongs to the newest part at its place, or without a place to the newest of all, if that is of the
       piece's kind and open. Else it begins a part.
    3. A part that begins, by an event that says so or by another kind, ends the one before it at its place. Without
       places it ends the newest, unless that is a call, which others may interleave.

    Calls: ``_is_same_call`` has the rules.

    Whole parts that are told behind their pieces (``restate``) are held against what came, each against another part.

    ``names`` are those of the tools that were offered.
    """

    def __init__(self, names: Collection[str] = ()) -> None:
        self.deltas: list[Delta] = []
        self.usage: Metadata = {}
        self.finish: Ending | None = None
        self.end_words = ""
        """How the provider calls that end, in its own words."""
        self.message_metadata: Metadata | None = None
        self.error: Metadata | None = None
        self.hidden_calls, self.searches = False, 0
        self.dropped: list[str] = []
        """Places of reasoning blocks in the request that the provider says it left out."""
        self._names = frozenset(names)
        self._parts: list[OpenPart] = []
        """In the order in which they began, those without content among them."""
        self._at: dict[Hashable, OpenPart | None] = {}
        self._by_id: dict[str, OpenPart] = {}
        self._calls_at: dict[Hashable, OpenPart] = {}
        """The newest call at each place, and of all."""
        self._newest_at: dict[Hashable, tuple[int, OpenPart]] = {}
        self._open_at: dict[Hashable, list[tuple[int, OpenPart]]] = {}
        """Calls with their numbers, at each place and ``_ANYWHERE``: the newest, and those that were open when one was
        last looked for. An answer may have thousands, and one is looked for with each piece."""
        self._newest: OpenPart | None = None
        self._count = 0
        self._at_end: list[Callable[[], None]] = []

    def at_end(self, do: Callable[[], None]) -> None:
        """Has something done before the parts are closed, however the answer ends."""
        self._at_end.append(do)

    @property
    def has_tool_calls(self) -> bool:
        return any(part.kind == "tool_call" for part in self._parts)

    @property
    def has_content(self) -> bool:
        return self._count > 0

    @property
    def has_answer(self) -> bool:
        """Whether there is anything to go on with: more than thoughts."""
        return any(
            part.kind != "reasoning" and part.index is not None and (part.said.length or part.kind != "text")
            for part in self._parts
        )

    @property
    def newest(self) -> OpenPart | None:
        """The part that began last and has content or may get some."""
        return self._newest

    def take(self) -> list[Delta]:
        deltas, self.deltas = self.deltas, []
        return deltas

    def report(self, usage: Any) -> None:
        """Adds what the provider says of usage; what is no set of named values says nothing."""
        if isinstance(usage, Mapping):
            self.usage.update(usage)

    def begin(self, kind: Kind, place: Hashable = None, part_id: str | None = None, text: str = "") -> OpenPart:
        """The part that a stream says begins, with what it has from the start."""
        _require_text(text)
        known = self._by_id.get(part_id) if part_id else None
        if known is not None and known.kind == kind:
            # Told twice.
            return known
        part = self._open(kind, place, part_id)
        if opening := part.said.open(text):
            self._emit(part, opening)
        return part

    def begin_other(self, place: Hashable) -> None:
        """Something begins that is no part of the answer: what comes for it is passed over."""
        self._end_at(place)
        self._at[place] = None
        self._newest = None

    def part(self, kind: Kind, place: Hashable = None, part_id: str | None = None) -> OpenPart:
        """The part that a piece belongs to, found or begun."""
        known = self._by_id.get(part_id) if part_id else None
        if known is not None and known.kind == kind:
            return known
        part = self._newest if place is None else self._at.get(place)
        if part is not None and part.kind == kind and not part.closed:
            return part
        return self._open(kind, place, part_id)

    def run(self, kind: Kind) -> OpenPart:
        """The newest part where it is an open one of ``kind``, else a new one: for protocols that have no blocks, where
        a change of kind is all that separates parts."""
        part = self._newest
        return part if part is not None and part.kind == kind and not part.closed else self._open(kind, None, None)

    def beside(self, kind: Kind) -> OpenPart:
        """A part beside the newest, which stays the newest and open."""
        part = OpenPart(kind)
        self._parts.append(part)
        return part

    def write(self, part: OpenPart, text: str, last: bool = False) -> None:
        """Adds what a piece adds to a part (``RunningText``). A closed one takes no more. Raises TypeError for what is
        no text."""
        if not isinstance(text, str):
            _require_text(text)
        if not part.closed and (new := part.said.add(text, last)):
            self._emit(part, new)

    def append(self, part: OpenPart, text: str, metadata: Metadata | None = None) -> None:
        """Adds a text that is known to be new, and the metadata."""
        if not isinstance(text, str):
            _require_text(text)
        if part.closed:
            text = ""
        if text:
            part.said.append(text)
        if text or (metadata is not None and metadata != part.metadata):
            self._emit(part, text, metadata)

    def note(self, part: OpenPart, metadata: Metadata) -> None:
        """Replaces the metadata of a part, which may be closed."""
        if metadata != part.metadata:
            self._emit(part, "", metadata)

    def call(
        self,
        arguments: str = "",
        *,
        place: Hashable = None,
        call_id: str | None = None,
        item_id: str | None = None,
        name: str = "",
        metadata: Metadata | None = None,
        begins: bool = False,
    ) -> OpenPart:
        """The call that a piece belongs to, with the piece added. ``item_id`` is a second id, which is not the call's
        own. ``begins``: the stream says that a call begins. Raises TypeError for an id, a name or arguments that are no
        text."""
        if not (name or call_id) and (part := self._going_on(place, item_id)) is not None:
            self.write(part, arguments)
            return part
        _require_text(arguments, call_id or "", item_id or "", name)
        part = self._known_call(place, call_id, item_id, bool(name))
        another = begins and not (part is not None and call_id and part.call_id == call_id)
        if part is None or another or not self._is_same_call(part, place, call_id, item_id, name, arguments):
            name = name or (part.name if part is not None else "")
            part = self._open("tool_call", place, None)
            part.said = RunningArguments()
            part.call_id, part.name, part.metadata = call_id, name, metadata
            made = call_id or f"call_{uuid.uuid4().hex[:24]}"
            if place is None:
                self._calls_at.clear()
            self._calls_at[place] = self._calls_at[None] = part
            self._number(part)
            self.deltas.append(Delta(part.index or 0, "tool_call", "", metadata, call_id=made, name=name))
            if opening := part.said.open(arguments):
                self._emit(part, opening)
        else:
            self._amend(part, call_id, name)
            if metadata is not None:
                self.note(part, {**(part.metadata or {}), **metadata})
            if not (name and self._is_said(part, arguments)):
                self.write(part, arguments)
        for one in (call_id, item_id):
            if one:
                self._by_id[one] = part
        return part

    def known_call(self, place: Hashable, item_id: str | None) -> OpenPart | None:
        """The call that something without a name is told of."""
        return self._known_call(place, None, item_id, named=False)

    def complete(self, part: OpenPart, whole: str) -> None:
        """Adds what is missing of a text that is told as a whole."""
        if not part.closed and (rest := part.said.complete(whole)):
            self._emit(part, rest)

    def restate(
        self,
        kind: Kind,
        text: str,
        matched: set[OpenPart],
        *,
        place: Hashable = None,
        call_id: str | None = None,
        item_id: str | None = None,
        name: str = "",
    ) -> OpenPart:
        """The part that is told as a whole, with what had not come of it; a new one where nothing had. ``matched`` are
        those that were told so before and are others, unless the id or all else is the same; the part is added."""
        _require_text(text, call_id or "", item_id or "", name)
        part = self._told_part(kind, text, matched, place, [one for one in (call_id, item_id) if one], name)
        if part is None:
            if kind == "tool_call":
                part = self.call(text, place=place, call_id=call_id, item_id=item_id, name=name, begins=True)
            else:
                part = self.begin(kind, place, item_id, text)
        elif kind == "tool_call":
            self._amend(part, call_id, "" if part.name else name)
        if item_id:
            self._by_id[item_id] = part
        self.complete(part, text)
        matched.add(part)
        return part

    def repeats_calls(self, calls: Iterable[tuple[Hashable, str, str]]) -> bool:
        """Returns whether these calls (place, name, arguments) are all there were, once more: the places are those they
        had, or those in this list."""
        own = [part for part in self._parts if part.kind == "tool_call"]
        again = list(calls)
        return len(own) == len(again) > 0 and all(
            part.name == name
            and same_arguments(part.said.text, arguments)
            and (part.place is None or place in (None, part.place, n))
            for n, (part, (place, name, arguments)) in enumerate(zip(own, again, strict=True))
        )

    def said(self, kind: Kind) -> str:
        """All that parts of a kind hold."""
        return "".join(part.said.text for part in self._parts if part.kind == kind)

    def open_at(self, place: Hashable, *kinds: Kind) -> OpenPart | None:
        """The newest open part at a place, of some kinds; of all parts where nothing ever began there."""
        if place in self._at and self._at[place] is None:
            return None
        anywhere = place is None or place not in self._at
        for part in reversed(self._parts):
            if not part.closed and (not kinds or part.kind in kinds) and (anywhere or part.place == place):
                return part
        return None

    def turn(self, part: OpenPart, kind: Kind, metadata: Metadata) -> None:
        """A part turns out to be of another kind than was thought, and is over."""
        part.kind = kind
        self._emit(part, "", metadata)
        self.close(part)

    def settle(self, part: OpenPart) -> None:
        """Gives on what was held back of a part."""
        if rest := part.said.settle():
            self._emit(part, rest)

    def close(self, part: OpenPart) -> None:
        if part.closed:
            return
        self.settle(part)
        part.closed = True
        if part.index is not None:
            self.deltas.append(Delta(part.index, part.kind, closed=True))

    def ends(self, reason: Any, ending: Ending | None = None, told: Any = "") -> None:
        """The provider said with which reason its answer ended; what is no reason says nothing. ``ending`` is what it
        means where the table does not have to say, ``told`` what else was said of it. The first that is grave stays."""
        ending = ending or ending_of(reason)
        if ending is None or self.finish in GRAVE:
            return
        self.finish = ending
        words = ": ".join(str(one) for one in (reason, told) if one)
        self.end_words = printable_line(words, _END_WORDS)

    def end(self) -> None:
        """The provider said that its answer is whole. Some say no more than that of how it ended."""
        if self._count and self.error is None:
            self.finish = self.finish or ("tool_calls" if self.has_tool_calls else "stop")

    def close_all(self) -> None:
        for do in self._at_end:
            do()
        for part in self._parts:
            self.close(part)

    def _open(self, kind: Kind, place: Hashable, part_id: str | None) -> OpenPart:
        self._end_at(place)
        part = OpenPart(kind, place)
        self._parts.append(part)
        if kind == "tool_call":
            for at in (_ANYWHERE, place):
                self._newest_at[at] = len(self._parts), part
                self._open_at.setdefault(at, []).append(self._newest_at[at])
        self._newest = part
        self._at[place] = part
        if part_id:
            self._by_id[part_id] = part
        return part

    def _end_at(self, place: Hashable) -> None:
        """A part begins: the one before it at its place is over, and the newest where that has none. Calls go on: their
        pieces may have ids."""
        newest = self._newest
        unplaced = newest if newest is not None and (place is None or newest.place is None) else None
        for before in (unplaced, self._at.get(place)):
            if before is not None and before.kind != "tool_call":
                self.close(before)

    def _number(self, part: OpenPart) -> None:
        if part.index is None:
            part.index = self._count
            self._count += 1

    def _emit(self, part: OpenPart, text: str, metadata: Metadata | None = None) -> None:
        if part.index is None:
            self._number(part)
        if metadata is not None:
            part.metadata = metadata
        self.deltas.append(Delta(part.index or 0, part.kind, text, metadata, part.closed))

    def _amend(self, part: OpenPart, call_id: str | None, name: str) -> None:
        """Gives a call the id or the name that came after its first piece, or the rest of the name."""
        later_id = call_id if part.call_id is None else None
        whole = _joined_name(part.name, name, bool(part.said.length))
        if later_id or whole != part.name:
            part.call_id, part.name = part.call_id or later_id, whole
            self.deltas.append(Delta(part.index or 0, "tool_call", call_id=later_id, name=whole))

    def _going_on(self, place: Hashable, item_id: str | None) -> OpenPart | None:
        """The call that a piece which is nothing but arguments goes on with, where that is plain."""
        part = self._calls_at.get(place) if item_id is None else self._by_id.get(item_id)
        plain = part is not None and part.kind == "tool_call" and not (part.closed or part.named_again)
        return part if plain else None

    def _known_call(self, place: Hashable, call_id: str | None, item_id: str | None, named: bool) -> OpenPart | None:
        """The call that a piece is most likely of: the one with its id, at its place where several have that; else the
        newest at its place, or of all where it has none. A piece without a name is of the newest, wherever that is, as
        long as its arguments are not whole."""
        by_id = [part for one in (call_id, item_id) if one and (part := self._by_id.get(one)) is not None]
        at_place = self._newest_call(place)
        if at_place is not None and (not by_id or at_place in by_id):
            return at_place
        if by_id or named:
            return next((part for part in by_id if part.kind == "tool_call"), None)
        newest = self._newest_call(None)
        return None if newest is None or is_whole_json(newest.said.text) else newest

    def _is_said(self, part: OpenPart, arguments: str) -> bool:
        """Returns whether a call has these arguments, however they are written."""
        return bool(part.said.length) and is_whole_json(arguments) and same_arguments(part.said.text, arguments)

    def _newest_call(self, place: Hashable) -> OpenPart | None:
        """The newest call at a place, or without one; at any where that is None. An open one before all closed ones."""
        places = (_ANYWHERE,) if place is None else (None, place)
        found: list[tuple[int, OpenPart]] = []
        for opened in (self._open_at[at] for at in places if at in self._open_at):
            while opened and opened[-1][1].closed:
                opened.pop()
            found += opened[-1:]
        found = found or [self._newest_at[at] for at in places if at in self._newest_at]
        return max(found, key=lambda numbered: numbered[0])[1] if found else None

    def _is_same_call(
        self, part: OpenPart, place: Hashable, call_id: str | None, item_id: str | None, name: str, arguments: str
    ) -> bool:
        """Returns whether a piece goes on with the call that it is most likely of, or begins another one.

        1. Only what has a name begins a call, but where the arguments are whole, others begin, and it has another id or
           the name had come again.
        2. The same id at the same place is the same call, and so is the same name without any id, unless the arguments
           are whole, or cannot go on so, and others begin.
        3. Another name is another call, unless it can be the rest of a name: no argument has come, and the tools that
           were offered do not say otherwise.
        4. Another id with the same name is another call, unless no argument has come yet or they go on: there are
           servers that make up an id for each piece.
        """
        same_id = bool(call_id) and part.call_id == call_id
        if same_id and name == part.name and place == part.place and _goes_on(part, arguments):
            return True
        another_id = bool(call_id) and part.call_id is not None and not same_id
        if not name:
            new_id = another_id and call_id not in self._by_id
            begins = (new_id or part.named_again) and arguments.lstrip().startswith("{")
            return not (begins and is_whole_json(part.said.text))
        if part.closed:
            # Told twice, or another one of a server that has one id for all.
            return same_id and (self._by_id.get(item_id or "") is part or self._is_said(part, arguments))
        said = part.said.text
        moved = place is not None and part.place not in (None, place)
        rest = not (said or another_id or moved) and self._is_rest_of_name(part.name, name)
        if name != part.name and not rest:
            return same_id and not moved and not is_whole_json(said)
        if another_id and (not said or not arguments.strip()):
            return bool(arguments.strip()) if not said else not is_whole_json(said)
        if not arguments.strip():
            part.named_again = not same_id and is_whole_json(said)
            return True
        again = said.strip() and same_arguments(said, arguments)
        return same_id if again else not _begin_anew(said, arguments)

    def _is_rest_of_name(self, known: str, more: str) -> bool:
        if not known or known == more:
            return True
        if any(name.startswith((known + more, more)) and name.startswith(known) for name in self._names):
            return True
        return known not in self._names and more not in self._names

    def _told_part(
        self, kind: Kind, text: str, matched: set[OpenPart], place: Hashable, ids: list[str], name: str
    ) -> OpenPart | None:
        def agrees(part: OpenPart) -> bool:
            """Holds no other thing than what is told."""
            said = part.said.text
            if kind == "tool_call":
                return part.name in ("", name) and (not said or text.startswith(said) or same_arguments(said, text))
            return not said or not text or text.startswith(said) or said.startswith(text)

        for one in ids:
            if (known := self._by_id.get(one)) is not None and known.kind == kind:
                return known
        own = [part for part in self._parts if part.kind == kind]
        free = [part for part in own if part not in matched]
        if place is not None:
            for part in reversed(own):
                if part.place == place and agrees(part) and (part not in matched or part.said.text == text):
                    return part
        equal = [part for part in free if _is_told_by(part, kind, text, name)]
        if near := equal or [part for part in free if agrees(part)]:
            return near[0]
        # Several that the stream did not tell apart, and that are told one by one.
        return next((part for part in own if text and kind != "tool_call" and text in part.said.text), None)


def _is_told_by(part: OpenPart, kind: Kind, text: str, name: str) -> bool:
    said = part.said.text
    return part.name == name and same_arguments(said, text) if kind == "tool_call" else bool(text) and said == text


def _goes_on(part: OpenPart, arguments: str) -> bool:
    return isinstance(part.said, RunningArguments) and part.said.goes_on(arguments)


def _begin_anew(said: str, arguments: str) -> bool:
    """Returns whether arguments cannot belong to those that were said."""
    if not said.strip():
        return False
    if arguments.startswith(said) and said.lstrip().startswith("{"):
        # All again, and more.
        return False
    if is_whole_json(said):
        return True
    return arguments.lstrip().startswith("{") and not is_json_beginning(said + arguments)


def _joined_name(known: str, more: str, has_arguments: bool) -> str:
    """A name that comes at once, again with each piece, in pieces, or longer each time."""
    if not more or (has_arguments and known):
        return known
    return more if more.startswith(known) else known + more


def place_of(value: Any) -> int | None:
    """A part's number in a stream; None where there is none."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 10:
        return int(value)
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e9 else None


def _require_text(*values: object) -> None:
    """Raises TypeError for a value that is no text: what providers send is only typed in their documentation."""
    for value in values:
        if not isinstance(value, str):
            raise TypeError(f"{type(value).__name__} where text belongs")


class StreamReader:
    """Reads the events of one answer into ``out``. ``tags``: the model may write its thoughts into the text."""

    def __init__(self, out: PartBuilder, tags: bool = False) -> None:
        self.out = out

    @staticmethod
    def knows(event: Event) -> bool:
        """Says whether an event is of this API."""
        raise NotImplementedError

    def event(self, event: Event) -> None:
        raise NotImplementedError


def as_arguments(value: Any) -> str:
    """Raw argument text of a tool call, whether the provider gave text or an object."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
