"""Thoughts that come in several fields of the chat format at once, or inside the text of the answer: said once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from agent_tui.models.messages import Metadata
from agent_tui.providers.dialects.parts import OpenPart, PartBuilder
from agent_tui.records import dataclass

TAGS = ("<think>", "<thinking>", "<thought>", "<reasoning>")
_CLOSES = tuple(f"</{tag[1:]}" for tag in TAGS)
_CLOSING = re.compile("|".join(map(re.escape, _CLOSES)))
_LONGEST_TAG = max(map(len, _CLOSES))
FIELD = "think_tags"
"""The ``field`` of such a reasoning part: where it goes when it is sent back."""

DETAILS = "reasoning_details"
_UNNAMED = ("reasoning_content", FIELD, DETAILS)
"""Channels that say nothing of where thoughts go back: the usual field does, tags and details are stored themselves."""

_BLANK_LIMIT = 64
"""Blank characters before the tag that are still its own."""


@dataclass(slots=True)
class _Channel:
    place: int = 0
    """How many characters of the thoughts that were said it has said, too."""
    since: int = 0
    """Where in them it began to do so."""
    own: OpenPart | None = None
    """The part for its words, where they turned out to be others."""


class Thoughts:
    """The thoughts of an answer. Every field (a *channel*) has a place in what was said so far: what it says of that
    again adds nothing, and what it says at the end adds to it. One that says something else there has its own part."""

    def __init__(self, out: PartBuilder) -> None:
        self._out = out
        self._pieces: list[str] = []
        self._length = 0
        self._channels: dict[str, _Channel] = {}
        self._paragraph = False
        self.part: OpenPart | None = None
        """The thought that is being said, or was said last."""

    @property
    def has_some(self) -> bool:
        return self._length > 0

    def say(self, channel: str, text: str) -> None:
        known = self._channels.get(channel)
        if known is None:
            known = self._channels[channel] = _Channel()
        part = self._current()
        if part is None and self.part is not None:
            # The next thought. What a channel has not said of the one before stays unsaid.
            known.own = None
            rest, words = self._side_by_side(known, text)
            if known.place != self._length and not (rest.startswith(words) or words.startswith(rest)):
                known.place = known.since = self._length
        if known.own is not None:
            self._out.append(known.own, text)
        elif known.place == self._length:
            self._add(known, text, channel, part)
        else:
            self._compare(known, text, channel, part)

    def go_on(self, channel: str, text: str) -> None:
        """Adds what a channel says behind all that was said."""
        self._add(self._channels.setdefault(channel, _Channel()), text, channel, self._current())

    def end_paragraph(self) -> None:
        """What follows is another part of a summary: it does not run on."""
        self._paragraph = True

    def begin(self, metadata: Metadata) -> OpenPart:
        """A thought of which something is to be stored before its first word."""
        self.part = self._out.run("reasoning")
        self._out.note(self.part, metadata)
        return self.part

    def said_from(self, piece: int) -> tuple[list[str], int]:
        """What was said from a piece on, and the number of the next one."""
        return self._pieces[piece:], len(self._pieces)

    def _current(self) -> OpenPart | None:
        """The last thought, while nothing else has come behind it."""
        newest = self._out.newest
        return self.part if self.part is newest and newest is not None and not newest.closed else None

    def _rest(self, known: _Channel) -> str:
        last = self._pieces[-1] if self._pieces else ""
        return last if self._length - known.place == len(last) else "".join(self._pieces)[known.place :]

    def _side_by_side(self, known: _Channel, text: str) -> tuple[str, str]:
        """What a channel has not said yet, and what it says now: without blanks at the beginning, as tags stand on
        lines of their own and fields do not."""
        rest = self._rest(known)
        return (rest, text) if known.place else (rest.lstrip(), text.lstrip())

    def _compare(self, known: _Channel, text: str, channel: str, part: OpenPart | None) -> None:
        whole = self._rest(known)
        rest, text = self._side_by_side(known, text)
        if not text:
            return
        if known.place == 0:
            known.place = known.since = len(whole) - len(rest)
        if rest.startswith(text):
            known.place += len(text)
        elif text.startswith(rest):
            self._add(known, text[len(rest) :], channel, part)
        else:
            said = "".join(self._pieces)[known.since : known.place]
            known.place, known.own = self._length, self._out.beside("reasoning")
            self._out.append(known.own, said + text, _field(channel))

    def _add(self, known: _Channel, text: str, channel: str, part: OpenPart | None) -> None:
        if part is None:
            known.since = self._length
            part = self.part = self._out.run("reasoning")
            self._out.append(part, text, _field(channel) if part.index is None else None)
        else:
            if self._paragraph:
                self._out.append(part, paragraph_between(part.said.text, text))
            self._out.append(part, text)
        self._paragraph = False
        self._pieces.append(text)
        self._length += len(text)
        known.place = self._length


def paragraph_between(before: str, after: str) -> str:
    """The blank line between two parts of a summary, as far as they do not have one."""
    blanks = len(before) - len(before.rstrip("\n")) + len(after) - len(after.lstrip("\n"))
    return "\n" * max(0, 2 - blanks) if before and after else ""


def _field(channel: str) -> Metadata | None:
    """The field that thoughts came in is the field they go back in."""
    return {"field": channel} if channel not in _UNNAMED else None


class TagSplitter:
    """Takes the text of an answer piece by piece and gives it on as parts: what its beginning has in tags is a thought,
    and so is what stands before a closing tag alone, where the server has written the opening one itself. ``active``
    False: only what another field says as well, which is then said once."""

    def __init__(self, out: PartBuilder, active: bool, thoughts: Thoughts) -> None:
        self._out, self._active, self._thoughts = out, active, thoughts
        self._state: Literal["start", "echo", "thinking", "unopened", "text"] = "start"
        self._held = ""
        self._opening = self._close = ""
        self._echo: _Echo
        self._part: OpenPart
        out.at_end(self.interrupt)

    def feed(self, text: str) -> None:
        """The next piece of text. Nothing is held back longer than a tag may still be coming, or a thought be one that
        was said."""
        if self._state == "start":
            text = self._start(self._held + text)
        elif self._state == "echo":
            text = self._echoed(text)
        if self._state == "thinking":
            text = self._thought(self._held + text)
        elif self._state == "unopened":
            text = self._unopened(self._held + text)
        if text and self._state == "text":
            self._out.append(self._out.run("text"), text)

    def interrupt(self) -> None:
        """Something else than text comes, or nothing any more: what was held back is as it is."""
        if self._state == "echo":
            held, self._held = self._held, ""
            self._end_echo(held)
            held = ""
        else:
            held, self._held = self._held, ""
        if self._state == "thinking" and held:
            self._say(held)
        elif held:
            self._out.append(self._out.run("text"), held)
        self._state = "text"

    def _start(self, text: str) -> str:
        """Finds out what the text begins with; gives back what is to be read on."""
        self._held = ""
        bare = text.lstrip()
        known = self._thoughts.has_some
        tags = (*(TAGS if self._active or known else ()), *(_CLOSES if known else ()))
        if len(text) - len(bare) > _BLANK_LIMIT or not tags:
            self._state = "unopened" if self._active and not known else "text"
            return text
        if any(len(bare) < len(tag) and tag.startswith(bare) for tag in tags):
            self._held = text
            return ""
        tag = next((tag for tag in tags if bare.startswith(tag)), None)
        if tag is None:
            self._state = "unopened" if self._active and not known else "text"
            return text
        rest = bare[len(tag) :]
        if tag in _CLOSES:
            # The end of thoughts that were said in a field.
            self._state = "text"
            return rest
        self._opening, self._close = text[: len(text) - len(rest)], f"</{tag[1:]}"
        if known:
            self._state, self._echo = "echo", _Echo(self._thoughts)
            return self._echoed(rest)
        self._begin()
        return rest

    def _begin(self) -> None:
        metadata = {"field": FIELD, "open": self._opening}
        self._state = "thinking"
        if self._thoughts.has_some:
            self._part = self._out.beside("reasoning")
            self._out.note(self._part, metadata)
        else:
            self._part = self._thoughts.begin(metadata)

    def _echoed(self, text: str) -> str:
        """Holds thoughts back as long as they are those that were said."""
        self._held += text
        thought, tag, rest = self._held.partition(self._close)
        if not tag:
            thought = thought[: len(thought) - _beginning_of(self._close, thought)]
        if not self._echo.says_again(thought):
            held, self._held = self._held, ""
            if self._active:
                self._begin()
                return held
            self._state = "text"
            return self._opening + held
        if tag:
            self._held = ""
            self._end_echo(thought)
        return rest if tag else ""

    def _end_echo(self, thought: str) -> None:
        self._state = "text"
        if more := self._echo.rest_of(thought):
            self._thoughts.go_on(FIELD, more)

    def _unopened(self, text: str) -> str:
        """Gives on text that may turn out to be a thought; what stands behind that is given back."""
        self._held = ""
        found = _CLOSING.search(text)
        if found is None:
            keep = max(_beginning_of(tag, text) for tag in _CLOSES) if "<" in text[-_LONGEST_TAG:] else 0
            text, self._held = text[: len(text) - keep], text[len(text) - keep :]
            if text:
                self._out.append(self._out.run("text"), text)
            return ""
        self._state = "text"
        part = self._out.run("text")
        before = part.said.text + text[: found.start()]
        if not _ends_thought(before):
            return text
        self._out.append(part, text[: found.start()])
        self._out.turn(part, "reasoning", {"field": FIELD, "close": found.group()})
        return text[found.end() :]

    def _thought(self, text: str) -> str:
        """Gives on what is thought; the rest, behind the closing tag, is given back."""
        self._held = ""
        thought, tag, rest = text.partition(self._close)
        if not tag:
            keep = _beginning_of(self._close, text)
            thought, self._held = text[: len(text) - keep], text[len(text) - keep :]
        if thought:
            self._say(thought)
        if tag:
            self._out.note(self._part, {"field": FIELD, "open": self._opening, "close": self._close})
            self._out.close(self._part)
            self._state = "text"
        return rest

    def _say(self, thought: str) -> None:
        if self._part is self._thoughts.part:
            self._thoughts.say(FIELD, thought)
        else:
            self._out.append(self._part, thought)


class _Echo:
    """Holds thoughts in tags against those that were said in a field, blanks aside."""

    def __init__(self, thoughts: Thoughts) -> None:
        self._thoughts = thoughts
        self._next = self._read = 0
        self._said = self._mine = ""

    def says_again(self, thought: str) -> bool:
        """``thought`` is all of it so far."""
        pieces, self._next = self._thoughts.said_from(self._next)
        self._said += "".join("".join(pieces).split())
        self._mine += "".join(thought[self._read :].split())
        self._read = len(thought)
        both = min(len(self._said), len(self._mine))
        same = self._said[:both] == self._mine[:both]
        self._said, self._mine = self._said[both:], self._mine[both:]
        return same

    def rest_of(self, thought: str) -> str:
        """What of it was not said."""
        self.says_again(thought)
        at = len(thought)
        for _ in self._mine:
            at = len(thought[: at - 1].rstrip()) if thought[at - 1].isspace() else at
            at -= 1
        return thought[at:] if self._mine else ""


def _ends_thought(text: str) -> bool:
    """Returns whether a closing tag behind a text ends a thought: one that is spoken of stands behind a blank or a
    quotation mark, in code, or has an opening one."""
    spoken_of = text.endswith((" ", "`", '"', "'", "(", "“", "‘")) or text.count("```") % 2 == 1
    return not spoken_of and not any(tag in text for tag in TAGS)


def _beginning_of(tag: str, text: str) -> int:
    """How many characters at the end of a text may be the beginning of a tag."""
    return next((n for n in range(min(len(tag) - 1, len(text)), 0, -1) if tag.startswith(text[-n:])), 0)


def with_tags(text: str, metadata: Mapping[str, object]) -> str:
    """Thoughts as they stood in the text they came from."""
    return f"{metadata.get('open') or ''}{text}{metadata.get('close') or ''}"


def is_tagged(metadata: Metadata | None) -> bool:
    return (metadata or {}).get("field") == FIELD
