"""The facts in messages that a compaction takes away, read without a model: the user's rules and words, plans, todos,
open questions, errors and paths.

Only what the user typed can be a rule; where a sentence of theirs may be one, it is. What tools and files say, and what
came with the user's words (``typed``), is data: of it the last errors are facts, and no line of it is one because it is
there. Everything is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from operator import is_
from typing import Literal, TypeAlias

from agent_tui.context.compaction.rules import PASTE, WHOLE, is_rule
from agent_tui.context.compaction.summary_parts import TODO_TOOL, in_our_words, paths_in
from agent_tui.context.compaction.typed import typed_of
from agent_tui.models.messages import (
    APPROVED,
    FEEDBACK,
    PLAN_TOOL,
    REFUSED,
    Message,
    Part,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    own_output,
)
from agent_tui.providers.secrets import redactor
from agent_tui.records import dataclass
from agent_tui.text.clean import pictured, sentences_in
from agent_tui.text.search import fold
from agent_tui.tools.aliases import own_name

FactKind = Literal["rule", "typed", "plan", "todo", "question", "error", "path"]

LINE = 300
"""Characters of one fact that nobody typed, and of a line of data; what is longer is none."""

LONG_LINE = 20_000
"""Characters from which on a line of an answer is data, and is not read."""

MOST_LINES = 100
"""Lines beside the rules that are read of a text that was hardly typed."""

MOST_ERRORS = MOST_SYMBOLS = 5
"""Errors of one result or piece of data, the last; and changed names of one call."""

MOST = 1_000
"""Facts of one kind, but the user's rules: of twice as many of the newest the shortest."""


@dataclass(slots=True, frozen=True)
class Fact:
    """One fact as it was said, without secrets and control characters. ``message_id`` and ``role`` are those of the
    message that says it."""

    kind: FactKind
    text: str
    message_id: str
    role: Role


_Results: TypeAlias = dict[str, tuple[Message, ToolResultPart]]
"""The results of calls with their messages, by the call's id."""

_OPEN = re.compile(
    r"open question|still open|unresolved|undecided|not (?:yet )?(?:decided|clear|known)|unclear|to be decided|\btbd\b|"
    r"offene frage|noch offen|ungeklärt|question ouverte|pregunta abierta|未解決|未决|待定|سؤال مفتوح",
    re.IGNORECASE,
)
_ASKED = re.compile(r"[?？؟]['\"”’»)\]*_]*$")
_YES_NO = re.compile(
    r"\W*(?:yes|no|yep|nope|ok|okay|sure|ja|nein|oui|non|sí|si|sim|não|да|нет|好|是|不|对|對|はい|いいえ|네|아니|نعم|لا)"
    r"(?![^\W_])|\W*[好是不对對]",
    re.IGNORECASE,
)
_ERROR = re.compile(
    r"\b\w*(?:Error|Exception|Panic|Failure)\b|\b(?:error|fatal|panic|failed|failure|denied|refused|not found|"
    r"no such|cannot|unable|undefined|unexpected|timed out|segmentation fault|killed)\b|错误|錯誤|失败|失敗|エラー|"
    r"오류|خطأ|fehler|erreur|ошибка",
    re.IGNORECASE,
)
_ASIDE = re.compile(rf"{re.escape(REFUSED)}|\[exit code|File \"[^\"]*\", line \d|at \S+ ?\(")
"""Lines of a failed call that say nothing of the failure: ours, and the frames of a traceback."""
_LOGGED_ERROR = re.compile(
    r"^(?![-+@])\W*(?:\S+ ){0,4}?(?:\[?(?:ERROR|FATAL|CRITICAL|PANIC)\b|[A-Z]\w*(?:Error|Exception): |"
    r"(?:error|fatal|panic)(?:\[\w+\])?: )"
)
"""What a line of data has to say to be an error: its level or its name, near its beginning."""
_SURE_ERROR = re.compile(r"^\W*(?:[\w.]*(?:Error|Exception)\b|(?:error|fatal|panic|错误|エラー)\b.{0,40}?:)")
_PATH = re.compile(
    r"(?<![\w/.:@~-])(?:~|\.{1,2})?/?(?:[\w.@+-]{1,80}/){1,20}[\w.@+-]{0,80}\w|"
    r"(?<![\w/.:@-])\w[\w-]{0,80}\.(?:py|pyi|js|jsx|ts|tsx|go|rs|c|h|cc|cpp|java|kt|rb|php|sh|sql|toml|ya?ml|json|md|html|"
    r"css|txt|lock|cfg|ini|env)\b"
)
_DIGIT = re.compile(r"\d")
_SYMBOL = re.compile(
    r"^[+ \t]*(?:export\s+|pub(?:\(\w+\))?\s+|public\s+|private\s+|static\s+|async\s+|default\s+)*"
    r"(?:def|class|function|fn|func|struct|enum|interface|trait|type|const)\s+\*?(\w{2,80})",
    re.MULTILINE,
)
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)")
_BULLET = re.compile(r"^[\s>#*+•·–—-]*(?:\[.\]\s*)?(?:\d{1,3}[.)]\s+)?")


@dataclass(slots=True, frozen=True)
class _Said:
    """What one message says, read from ``parts``. ``facts`` stand by themselves, each with what is the same in another
    one that says it, too; ``asks`` are questions with their words, ``todos`` items with whether they are done;
    ``answers`` are the words that the user answers with, None where they say yes or no."""

    parts: tuple[Part, ...]
    facts: tuple[tuple[tuple[FactKind, str], Fact], ...]
    asks: tuple[tuple[Fact, frozenset[str]], ...]
    todos: tuple[tuple[bool, Fact], ...]
    answers: frozenset[str] | None


class FactReader:
    """Reads the facts of messages; one a session, so that each message is read once. What it keeps is of the size of
    the facts."""

    def __init__(self) -> None:
        self._known: dict[str, _Said] = {}

    def read(self, messages: Sequence[Message]) -> list[Fact]:
        """The facts of messages, in their order; of those that say the same the newest.

        All messages that leave are given, those of earlier summaries included. Of one kind there are at most ``MOST``,
        but every rule of the user.
        """
        hide, results = redactor(), {r.call_id: (m, r) for m in messages if (r := m.tool_result) is not None}
        said = [self._said(message, results, hide) for message in messages]
        found: dict[tuple[FactKind, str], Fact] = {}
        for key, fact in [*_todos(said), *_questions(messages, said), *(pair for one in said for pair in one.facts)]:
            found.pop(key, None)
            found[key] = fact
        by_kind: dict[FactKind, list[Fact]] = {}
        for fact in found.values():
            by_kind.setdefault(fact.kind, []).append(fact)
        whole = {id(f) for kind, facts in by_kind.items() for f in _most(kind, facts)}
        place = {m.id: i for i, m in enumerate(messages)}
        return sorted((f for f in found.values() if id(f) in whole), key=lambda f: place[f.message_id])

    def _said(self, message: Message, results: _Results, hide: Callable[[str], str]) -> _Said:
        parts = (*message.parts, *(results[c.call_id][1] for c in message.tool_calls if c.call_id in results))
        known = self._known.get(message.id)
        if known is not None and len(known.parts) == len(parts) and all(map(is_, known.parts, parts)):
            return known
        said = _read(message, parts, results, hide)
        if message.status != "streaming":
            self._known[message.id] = said
        return said


def read_facts(messages: Sequence[Message]) -> list[Fact]:
    return FactReader().read(messages)


def _read(message: Message, parts: tuple[Part, ...], results: _Results, hide: Callable[[str], str]) -> _Said:
    asked = _short_sentences(_prose(message.text)) if message.role == "assistant" else ()
    asks = _shown((Fact("question", s, message.id, "assistant") for s in asked if _ASKED.search(s)), hide)
    items = [item for call in message.tool_calls for item in _items(message, call, results)]
    said = message.text[:PASTE] if message.role == "user" else ""
    return _Said(
        parts,
        tuple(
            ((fact.kind, fold(fact.text) if fact.kind in ("rule", "typed") else fact.text), fact)
            for fact in _shown(_of(message, results), hide)
        ),
        tuple((fact, frozenset(_content(fact.text))) for fact in asks),
        tuple(zip((done for done, _ in items), _shown((fact for _, fact in items), hide), strict=True)),
        None if _YES_NO.match(said) else frozenset(_content(said)),
    )


def _shown(facts: Iterable[Fact], hide: Callable[[str], str]) -> list[Fact]:
    """Facts without secrets and control characters."""
    found = list(facts)
    whole = "\n".join(fact.text for fact in found)
    if pictured(hide(whole)) == whole:
        return found
    return [replace(fact, text=pictured(hide(fact.text))) for fact in found]


def _most(kind: FactKind, facts: list[Fact]) -> list[Fact]:
    if kind == "rule" or len(facts) <= MOST:
        return facts
    return sorted(facts[-2 * MOST :], key=lambda f: len(f.text))[:MOST]


def _of(message: Message, results: _Results) -> Iterator[Fact]:
    """The facts that one message says by itself."""
    if message.role == "user":
        for part in message.parts:
            if isinstance(part, TextPart) and own_output(message) is None:
                yield from _typed(message, part)
    elif message.role == "assistant":
        yield from _answered(message)
        for call in message.tool_calls:
            if call.call_id in results:
                yield from _called(message, call, *results[call.call_id])
    else:
        result = message.tool_result
        if result is not None:
            yield from _said_to_tools(message, result)


# What the user typed


def _typed(message: Message, part: TextPart) -> Iterator[Fact]:
    text = typed_of(part)
    for piece in text.words:
        if len(piece) > PASTE:
            yield from _hardly_typed(message, piece)
            continue
        for sentence in [piece.strip()] if len(piece) <= WHOLE else sentences_in(piece):
            if sentence:
                yield Fact("rule" if is_rule(sentence) else "typed", sentence, message.id, "user")
    for piece in text.data:
        yield from _found_in(message, piece)


def _hardly_typed(message: Message, text: str) -> Iterator[Fact]:
    """The rules in a text of which it is not known that somebody else wrote it, and the lines that carry a fact."""
    count = 0
    for line in sentences_in(text):
        if is_rule(line):
            yield Fact("rule", line, message.id, "user")
        elif count < MOST_LINES and len(line) <= LINE and _carries(line):
            count += 1
            yield Fact("typed", line, message.id, "user")


def _carries(line: str) -> bool:
    return any(p.search(line) for p in (_DIGIT, _PATH, _ERROR))


def _found_in(message: Message, data: str) -> Iterator[Fact]:
    """The errors in data that came with a message, as in what a tool found."""
    lines = [line.strip() for line in data.splitlines() if len(line) <= LINE]
    errors = list(dict.fromkeys(filter(_LOGGED_ERROR.match, lines)))
    yield from (Fact("error", line, message.id, "user") for line in errors[-MOST_ERRORS:])


def _said_to_tools(message: Message, result: ToolResultPart) -> Iterator[Fact]:
    """What the user said where a tool or the program asked them, known by what only the program writes into
    ``display``; and the plans that they approved."""
    display = result.display or {}
    name, text = own_name(result.name), result.text
    if name == PLAN_TOOL and display.get(APPROVED):
        for line in str(display.get("text") or "").splitlines():
            if stripped := _BULLET.sub("", line).strip():
                yield Fact("plan", stripped, message.id, "tool")
        return
    said = ""
    if name == PLAN_TOOL and "answer" in display and FEEDBACK in text:
        said = text.partition(FEEDBACK)[2].rpartition("\nRevise it and present it again.")[0]
    elif name == "ask" and "answer" in display and not result.is_error:
        said = text.partition("The user wrote: ")[2]
    elif result.is_error and display == {"kind": "text", "text": result.text} and text.startswith(REFUSED):
        said = text.partition(FEEDBACK)[2]
    yield from _typed(message, TextPart(said.strip())) if said.strip() else ()


# What was answered


def _prose(text: str) -> str:
    """Without its blocks of code and lines that nobody reads."""
    kept, inside = [], False
    for line in text.splitlines():
        if _FENCE.match(line):
            inside = not inside
        elif not inside and len(line) <= LONG_LINE:
            kept.append(line)
    return "\n".join(kept)


def _answered(message: Message) -> Iterator[Fact]:
    prose = _prose(message.text)
    open_ones = [s for s in _short_sentences(prose) if _OPEN.search(s) and not _ASKED.search(s)]
    yield from (Fact("question", sentence, message.id, "assistant") for sentence in open_ones)
    paths = dict.fromkeys(m[0].rstrip(".,;:") for m in _PATH.finditer(prose))
    yield from (Fact("path", path, message.id, "assistant") for path in paths)


def _short_sentences(prose: str) -> Iterator[str]:
    bare = (_BULLET.sub("", sentence).strip() for sentence in sentences_in(prose))
    return (sentence for sentence in bare if 3 < len(sentence) <= LINE)


def _questions(messages: Sequence[Message], said: Sequence[_Said]) -> list[tuple[tuple[FactKind, str], Fact]]:
    """The questions of answers that the user's next message does not answer: it begins with no yes or no and shares no
    word of theirs."""
    answers: frozenset[str] | None = frozenset()
    left = []
    for message, one in zip(reversed(messages), reversed(said), strict=True):
        if message.role == "user" and message.text.strip():
            answers = one.answers
        elif answers is not None:
            left += [fact for fact, words in reversed(one.asks) if not answers & words]
    return [((fact.kind, fact.text), fact) for fact in reversed(left)]


def _content(text: str) -> list[str]:
    """The words of a text that carry meaning: long ones, and pairs of signs where words are not set apart."""
    words = re.findall(r"[\u3040-\u30ff\u3400-\u9fff]{2}|[^\W\d_\u3040-\u30ff\u3400-\u9fff]{5,}|\d+", fold(text))
    return [w for w in words if w not in ("should", "would", "could", "there", "which", "about", "these", "those")]


# What was called


def _called(message: Message, call: ToolCallPart, at: Message, result: ToolResultPart) -> Iterator[Fact]:
    name, arguments = in_our_words(call.name, call.arguments)
    if name in ("write", "edit", "apply_patch") and not result.is_error:
        paths = [pictured(path) for path in paths_in(arguments)]
        for path in paths:
            yield Fact("path", path, message.id, "assistant")
        if len(paths) == 1:
            edits = arguments.get("edits")
            new = [e.get("new_string") for e in edits if isinstance(e, dict)] if isinstance(edits, list) else []
            written = "\n".join(str(t or "") for t in (*new, arguments.get("content"), arguments.get("input")))
            for symbol in list(dict.fromkeys(_SYMBOL.findall(written)))[:MOST_SYMBOLS]:
                yield Fact("path", f"{paths[0]}: {symbol}", message.id, "assistant")
    if name == "ask" and not result.is_error and "answer" in (result.display or {}):
        asked = str(arguments.get("question") or "").strip()
        yield Fact("typed", " ".join(f"{asked} {result.text}".split()), at.id, "tool")
    elif result.is_error or isinstance(arguments.get("command"), str):
        mark = _ERROR if result.is_error else _SURE_ERROR
        lines = [line.strip() for line in result.text[-20_000:].splitlines() if len(line) <= LINE]
        lines = [line for line in lines if line and not _ASIDE.match(line)]
        errors = list(dict.fromkeys(filter(mark.search, lines))) or (lines[-1:] if result.is_error else [])
        yield from (Fact("error", line, at.id, "tool") for line in errors[-MOST_ERRORS:])


def _items(message: Message, call: ToolCallPart, results: _Results) -> Iterator[tuple[bool, Fact]]:
    """The items of a todo list, each with whether it is done."""
    if own_name(call.name) != TODO_TOOL or call.call_id not in results or results[call.call_id][1].is_error:
        return
    items = in_our_words(TODO_TOOL, call.arguments)[1].get("items")
    for item in items if isinstance(items, list) else []:
        if isinstance(item, dict) and isinstance(item.get("text"), str):
            text = " ".join(item["text"].split())[:LINE]
            yield item.get("status") == "completed", Fact("todo", text, message.id, "assistant")


def _todos(said: Sequence[_Said]) -> Iterator[tuple[tuple[FactKind, str], Fact]]:
    """Items that no later list calls done, also those of lists that were replaced."""
    newest: dict[str, tuple[bool, Fact]] = {}
    for done, fact in (item for one in said for item in one.todos):
        newest.pop(fact.text, None)
        newest[fact.text] = done, fact
    yield from ((("todo", fact.text), fact) for done, fact in newest.values() if not done and fact.text)
