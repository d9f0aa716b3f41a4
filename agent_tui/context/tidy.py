"""What of a conversation is dead weight, found without a model: results that later ones stand for, attempts that failed
before one worked, and large results that nobody came back to.

Pure. What is found goes as a whole: an answer with all its calls and their results, and only where each of these is
dead weight, is sent as it is stored, and is neither pinned nor part of what is still going on.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property

from agent_tui.context.compaction.summary_parts import TODO_TOOL, in_our_words, paths_in
from agent_tui.context.tokens import CLEARED_RAW
from agent_tui.models.messages import (
    REFUSED,
    AttachmentPart,
    Message,
    Metadata,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from agent_tui.models.requests import SentMessage
from agent_tui.records import dataclass
from agent_tui.text.clean import printable_line

READ_AGAIN = "read again later"
SAME_LINES = "same lines read again later"
SAME = "same result again"
TODO = "a newer todo list replaces it"
FIXED = "failed, worked later"
UNUSED = "never mentioned since"

LARGE = 1_000
"""Tokens from which on a result that nobody mentioned is worth a line."""
LOOKED_AT = frozenset({"bash", "grep", "glob", "list", "fetch", "recall"})
"""Tools whose results are of no use once nobody comes back to them. What was read of a file may still be worked on."""
WORDS = 400
"""Characters that a model may say beside its calls: an answer with more in it stays."""

MOST_LATER = 100
"""Later results that one is held against, the newest."""

CHANGES = frozenset({"edit", "write", "apply_patch"})
"""Tools that change files: a command that is run again after them is run for what they did."""

NEVER = CHANGES | {"todo", "ask", "present_plan", "subagent", "jobs"}
"""Tools that are not called for what they show."""

SHOWN = 60
"""Characters of what a call was about."""

_NUMBERED = re.compile(r"^(\d+)\t")
_WORD = re.compile(r"[^\W_][\w./-]{3,}")
_TELLING = re.compile(r"[\d_./-]|[^\W\d_]{7}|[a-z][A-Z]")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,}")


@dataclass(slots=True, frozen=True)
class DeadWeight:
    """Messages that could go together, and what the next request would be smaller by, roughly."""

    message_ids: tuple[str, ...]
    what: str
    """The calls in a few words, as ``read src/app.py``."""
    why: str
    tokens: int


@dataclass(eq=False)
class _Called:
    """A call with its result."""

    name: str
    arguments: Metadata
    message: Message
    result: ToolResultPart

    @cached_property
    def file(self) -> str:
        return posixpath.normpath(str(self.arguments.get("path") or ""))

    @cached_property
    def lines(self) -> frozenset[str]:
        """The numbers of the lines of a file that the result shows."""
        return frozenset(found[1] for line in self.result.text.splitlines() if (found := _NUMBERED.match(line)))

    @cached_property
    def shown(self) -> tuple[str, ...]:
        """All that the result shows, pictures too."""
        pictures = (part.data or part.text or "" for part in self.message.parts if isinstance(part, AttachmentPart))
        return (self.result.text, *pictures)

    @cached_property
    def asked(self) -> str:
        """What a call that did the same would ask for."""
        if self.name in CHANGES:
            return f"change {sorted(posixpath.normpath(path) for path in paths_in(self.arguments))}"
        about = " ".join(str(self.arguments.get("command")).split()) if self.name == "bash" else self.arguments
        return f"{self.name} {json.dumps(about, sort_keys=True, default=str)}"

    def replaced_by(self, later: _Called) -> str:
        """Why this needs not be sent beside a later one that worked; empty where it does."""
        if self.result.is_error:
            return FIXED if self.asked == later.asked and not self.result.text.startswith(REFUSED) else ""
        if self.name != later.name:
            return ""
        if self.name == "read":
            if self.file != later.file or not self.lines <= later.lines:
                return ""
            whole = set(later.result.text.splitlines())
            if self.shown == later.shown or (self.lines and whole.issuperset(_of_file(self.result.text))):
                return SAME_LINES
            return READ_AGAIN if self.lines else ""
        if self.name == TODO_TOOL:
            return TODO
        same = self.name not in NEVER and self.asked == later.asked and self.shown == later.shown
        return SAME if same else ""


def dead_weight(
    path: Sequence[Message],
    view: Sequence[SentMessage],
    sizes: Mapping[str, int],
    kept: Set[str] = frozenset(),
) -> list[DeadWeight]:
    """Returns what of a conversation could go, the largest first. ``path`` is the conversation from its first message,
    ``view`` what is sent of it, ``sizes`` the tokens of messages by their ids; of ``kept`` nothing goes."""
    whole = {item.message.id for item in view if item.key == item.message.id}
    units, ended = list(units_of(path)), path[: _ended(path)]
    calls = [called for unit in units for called in _calls(unit, whole)]
    why = _replaced(calls)
    standing = {id(later) for _, later in why.values()}
    reasons = {message_id: reason for message_id, (reason, _) in why.items()}
    left = [called for called in calls if called.message.id not in reasons and id(called) not in standing]
    reasons |= dict.fromkeys(_unused(ended, left, sizes), UNUSED)
    there, by_id = {message.id for message in ended}, {called.message.id: called for called in calls}
    found: list[DeadWeight] = []
    for unit in units:
        first, *results = unit
        ids = tuple(message.id for message in unit)
        if len(results) != len(first.tool_calls) or not there.issuperset(ids) or not kept.isdisjoint(ids):
            continue
        gone = [by_id[message.id] for message in results if message.id in reasons]
        stays = any(message.id in whole and message.id not in reasons for message in results)
        size = sum(sizes.get(each, 0) for each in ids)
        if gone and stays:
            # Beside results that stay they go alone, and each leaves a placeholder.
            ids = tuple(called.message.id for called in gone)
            size = sum(sizes.get(each, 0) - CLEARED_RAW for each in ids)
        elif not gone or len(gone) < len(results) or len(first.text) > WORDS or not whole.issuperset(ids):
            continue
        if size <= 0:
            continue
        what = ", ".join(dict.fromkeys(call_words(called.name, called.arguments) for called in gone))
        because = "; ".join(dict.fromkeys(reasons[called.message.id] for called in gone))
        found.append(DeadWeight(ids, what, because, size))
    return sorted(found, key=lambda one: -one.tokens)


def units_of(path: Sequence[Message]) -> Iterator[list[Message]]:
    """The messages that can only go together: an answer with the results of its calls; each other one alone."""
    unit: list[Message] = []
    for message in path:
        if message.role == "tool" and unit:
            unit.append(message)
        elif message.role == "assistant":
            if unit:
                yield unit
            unit = [message]
        else:
            # What the user said between results stays where it is.
            yield [message]
    if unit:
        yield unit


def _ended(path: Sequence[Message]) -> int:
    """Where what is still going on begins: the newest turn, where the model has not said its last word."""
    if path and _last_word(path[-1]):
        return len(path)
    ends = (place + 1 for place in range(len(path) - 1, -1, -1) if _last_word(path[place]))
    return next(ends, 0)


def _last_word(message: Message) -> bool:
    return message.role == "assistant" and message.status != "streaming" and not message.tool_calls


def _calls(unit: Sequence[Message], whole: Set[str]) -> Iterator[_Called]:
    """The calls of a unit whose results are sent as they came."""
    asked: dict[str, ToolCallPart] = {call.call_id: call for call in unit[0].tool_calls}
    for message in unit[1:]:
        result = message.tool_result
        if result is not None and message.id in whole and (call := asked.get(result.call_id)) is not None:
            yield _Called(*in_our_words(call.name, call.arguments), message, result)


def _replaced(calls: Sequence[_Called]) -> dict[str, tuple[str, _Called]]:
    """Why the results need not be sent for which a later one stands, and which one, by their messages' ids."""
    found: dict[str, tuple[str, _Called]] = {}
    later: dict[str, list[_Called]] = {}
    for called in reversed(calls):
        key = _kin(called)
        for one in later.get(key, ())[:MOST_LATER]:
            if reason := called.replaced_by(one):
                found[called.message.id] = (reason, one)
                break
        # One for which another stands brings nothing that the other does not.
        if not called.result.is_error and called.message.id not in found:
            later.setdefault(key, []).append(called)
    return found


def _kin(called: _Called) -> str:
    """What calls have in common of which one may stand for another."""
    if called.name == "read":
        return f"read {called.file}"
    return TODO_TOOL if called.name == TODO_TOOL and not called.result.is_error else called.asked


def _of_file(text: str) -> Iterator[str]:
    return (line for line in text.splitlines() if _NUMBERED.match(line))


def _unused(ended: Sequence[Message], calls: Iterable[_Called], sizes: Mapping[str, int]) -> set[str]:
    """The large results of earlier turns of which nothing was mentioned afterwards: no word in them that tells
    something is in a later message or call."""
    large = {
        called.message.id: called
        for called in calls
        if called.name in LOOKED_AT and not called.result.is_error and sizes.get(called.message.id, 0) >= LARGE
    }
    found: set[str] = set()
    said: set[str] = set()
    asked_since = False
    for message in reversed(ended if large else ()):
        called = large.get(message.id)
        if called is not None and asked_since and said.isdisjoint(_telling(called.result.text)):
            found.add(message.id)
        said.update(word for text in _words(message) for word in _telling(text))
        asked_since = asked_since or message.role == "user"
    return found


def _words(message: Message) -> Iterator[str]:
    """What the user and the model said in a message, and asked for."""
    for part in message.parts:
        match part:
            case TextPart() | ReasoningPart():
                yield part.text
            case ToolCallPart():
                yield part.arguments
            case AttachmentPart(text=str(text)) if message.role == "user":
                yield text
            case _:
                continue


def _telling(text: str) -> Iterator[str]:
    """The words of a text that tell what it is about: names, numbers, long ones; of paths each step as well."""
    for run in _UNSPACED.findall(text):
        yield from (run[at : at + 2] for at in range(len(run) - 1))
    for word in _WORD.findall(text):
        for piece in {word, *word.split("/")}:
            if len(bare := piece.strip("./-_")) > 3 and _TELLING.search(bare):
                yield bare.lower()


def call_words(name: str, arguments: Metadata) -> str:
    """``read src/app.py``: arguments are hostile text."""
    about = next(
        (str(arguments[key]) for key in ("path", "command", "pattern", "url", "query") if key in arguments), ""
    )
    return printable_line(f"{name} {about}".rstrip(), SHOWN)
