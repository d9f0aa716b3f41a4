"""Says whether what a model wrote can stand for what it would replace, or what is wrong with it. Pure.

Only what no summary does is held against it: it ends before its end, says nothing, says one thing again and again, or
is no account of anything. Language, length and style are the model's affair as long as the user shares the script.
"""

from __future__ import annotations

import json
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

from agent_tui.context.compaction.answers import bare, read_answer
from agent_tui.context.compaction.summary import FORM, MODEL_SECTIONS
from agent_tui.context.tokens import char_tokens
from agent_tui.models.requests import FinishReason
from agent_tui.records import dataclass
from agent_tui.text.clean import count_unreadable
from agent_tui.text.numbers import tokens

ProblemCode: TypeAlias = Literal[
    "empty",
    "thoughts",
    "tool",
    "refused",
    "truncated",
    "json",
    "echo",
    "repeats",
    "noise",
    "language",
    "question",
    "headings",
    "thin",
    "too_large",
    "over_limit",
]

ASKED_AGAIN: Mapping[ProblemCode, str] = {
    "empty": "Your last answer was empty.",
    "thoughts": "Your last answer had nothing but thoughts: write the summary itself.",
    "tool": "Your last answer called a tool; it was not run, and none is now. Answer in text alone.",
    "refused": "Your last answer was no summary. Nothing is asked of you but to say what was talked about.",
    "truncated": "Your last answer was cut off before its end: be much shorter.",
    "json": "Your last answer was JSON. Answer in Markdown, with the headings on lines of their own.",
    "echo": "Your last answer repeated what you were asked. Write the summary itself.",
    "repeats": "Your last answer said the same thing again and again. Say each thing once.",
    "noise": "Your last answer could not be read. Answer in plain words.",
    "language": "Your last answer was not in the language of the user's messages.",
    "question": "Your last answer was a question. Nobody can answer it: write the summary.",
    "headings": "It has none of the headings.",
    "thin": "Your last answer said next to nothing. Say what was wanted, decided, done and found out.",
    "too_large": "It is too long.",
    "over_limit": "It is too long.",
}
"""What the model is told in one line when it is asked once more."""


@dataclass(slots=True, frozen=True)
class SummaryProblem:
    """What is wrong with a summary; ``text`` is half a sentence for the user."""

    code: ProblemCode
    text: str


@dataclass(slots=True, frozen=True)
class Replaced:
    """What a summary would stand for: how long it is, and its words as far as they tell the languages spoken in it."""

    tokens: int = 0
    text: str = ""


NOTHING_SAID = frozenset(("", "none", "nothing", "n/a", "na", "nil", "null", "unknown", "tbd", "keine", "无", "無"))
LEAST_TOKENS, LEAST_SHARE = 30, 200
"""What a summary says at least: so many tokens, or one for so many of those it replaces where that is less."""
SHORT = 600
"""Characters up to which an answer without headings may be a refusal or a question as a whole."""
MOST_ALIKE = 8
"""Times that one line or sentence may stand in a summary."""
ALIKE_SECTIONS = 4
"""Sections from which on the same text below each of them says nothing."""
REPETITION_CHARS, REPETITION = 300, 0.1
"""From so many characters on, text that can be packed into this share of itself repeats itself; lists pack to 0.2."""
BLOB, LONGEST_NAME = 60, 240
"""Characters of a word from which on it is data; paths and addresses may be longer."""
GARBLED = 0.4
"""The share of words that cannot be pronounced, or of characters that are none, from which on text is noise."""
OWN_SCRIPT = 0.5
"""The share of letters of a script unknown to the conversation, from which on an answer is not in its language."""

_REFUSAL = re.compile(
    r"\bI(?:[\u2019']m| am) (?:very |so )?(?:sorry|unable|not able)\b|\bI (?:can(?:no|[\u2019'])?t|can not|"
    r"won[\u2019']t|will not|must decline)\b|\b(?:cannot|can[\u2019']t|unable to) (?:help|assist|comply|summari[sz]e)|"
    r"^sorry\b|\bmy apologies\b|\bI apologi[sz]e\b|\bas an? (?:AI|language model)\b|^es tut mir leid\b|"
    r"^ich kann (?:das|dabei|dir|ihnen|hier)\b|^(?:je suis )?désolé|^je ne peux pas|^lo siento|^no puedo\b|^desculpe|"
    r"^mi dispiace|^извините|^к сожалению|^(?:很)?抱歉|^对不起|^對不起|^我(?:不能|无法|無法)|^申し訳|^すみません|^죄송|"
    r"^عذر|^آسف",
    re.IGNORECASE,
)
"""A text of this alone is a refusal or an apology."""
_CALL = re.compile(
    r"^\s*(?:<\|?(?:tool_call|function_call|function=|python_tag|invoke)|\[TOOL_CALLS\]|"
    r"```(?:json|tool_call)?\s*\{\s*\"(?:name|tool|function)\"|\{\s*\"(?:name|tool|function|tool_calls)\"\s*:)",
    re.IGNORECASE,
)
_FENCE = re.compile(r"^\s*```", re.MULTILINE)
_MARKERS = re.compile(r"\b(?:BEGIN|END) (?:CONVERSATION|PREVIOUS SUMMARY) [0-9a-f]{12}")
_OPEN_END = re.compile(
    r"[,;:(\[{\u201c\u201e\u00ab\u2013\u2014]$|"
    r"(?<!\w)(?:and|or|the|a|an|of|to|in|with|for|that|by|because|und|oder|der|die|das)$"
)
_END = re.compile(r"(?<=[.!?\uff01\uff1f\u061f])\s+|(?<=[\u3002\uff01\uff1f])")
_WORD = re.compile(r"[^\W\d_]+")
_LATIN = re.compile(r"[A-Za-z]{4,}")
_VOWEL = re.compile(r"[aeiouyAEIOUY]")
_PATHLIKE = re.compile(r"[/\\.:_-].*[/\\.:_-]")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")


def judge_summary(text: str, finish: FinishReason, replaced: Replaced, thought: bool = False) -> SummaryProblem | None:
    """What is wrong with a model's answer; None where nothing is. ``thought``: it had thoughts beside its text. How
    long the next input would be is for ``check_size``."""
    whole = bare(text)
    if finish == "refused":
        return SummaryProblem("refused", "the model refused to summarise")
    if not whole:
        return _nothing(text, finish, thought)
    if _CALL.match(whole) or _has_calls(whole):
        return SummaryProblem("tool", "the model called a tool instead of summarising")
    if _is_json(whole):
        return SummaryProblem("json", "the model's summary was JSON")
    sections = read_answer(text)
    said = _said(sections)
    said_text = "\n".join(said.values())
    if _is_noise(said_text or whole):
        return SummaryProblem("noise", "the model's summary was not readable")
    if _is_echo(whole):
        return SummaryProblem("echo", "the model repeated its instructions instead of summarising")
    if _refuses(said, whole):
        return SummaryProblem("refused", "the model refused to summarise")
    if _repeats(whole, said):
        return SummaryProblem("repeats", "the model's summary repeated itself")
    if finish == "length" or _ends_open(whole, finish, sections):
        return SummaryProblem("truncated", "the model's summary was cut off")
    if _asks(said, whole):
        return SummaryProblem("question", "the model asked a question instead of summarising")
    if not sections:
        if finish == "tool_calls":
            return SummaryProblem("tool", "the model called a tool instead of summarising")
        return SummaryProblem("headings", f"the model's summary had none of the {len(MODEL_SECTIONS)} headings")
    if _is_foreign(said_text, replaced.text):
        return SummaryProblem("language", "the model's summary was in another language")
    if char_tokens(said_text) < min(LEAST_TOKENS, replaced.tokens // LEAST_SHARE) or not said_text:
        return SummaryProblem("thin", "the model's summary said next to nothing")
    return None


def _nothing(text: str, finish: FinishReason, thought: bool) -> SummaryProblem:
    if finish == "tool_calls":
        return SummaryProblem("tool", "the model called a tool instead of summarising")
    if finish == "length":
        return SummaryProblem("truncated", "the model's summary was cut off before it began")
    if thought or text.strip():
        return SummaryProblem("thoughts", "the model only thought and wrote no summary")
    return SummaryProblem("empty", "the model's summary was empty")


def _said(sections: Mapping[str, str]) -> dict[str, str]:
    """What the sections say, without those that say there is nothing."""
    found = {}
    for name, body in sections.items():
        lines = [line for line in body.splitlines() if line.strip(" \t-*+_().…>[]").casefold() not in NOTHING_SAID]
        if lines:
            found[name] = "\n".join(lines)
    return found


def _units(text: str) -> Iterator[str]:
    """Lines and sentences, as they compare with each other."""
    for line in text.splitlines():
        for sentence in _END.split(line):
            unit = " ".join(sentence.strip(" \t-*+>#|.").casefold().split())
            if len(unit) > 3 and any(map(str.isalnum, unit)):
                yield unit


def _repeats(whole: str, said: Mapping[str, str]) -> bool:
    counts = Counter(_units("\n".join(said.values()) or whole))
    most, every = max(counts.values(), default=0), sum(counts.values())
    if most >= MOST_ALIKE or (most >= 4 and most * 2 > every):
        return True
    bodies = {" ".join(_units(body)) for body in said.values()}
    if len(said) >= ALIKE_SECTIONS and len(bodies) == 1:
        return True
    return any(_packs(part) for part in (whole, whole[-4 * REPETITION_CHARS :]))


def _packs(text: str) -> bool:
    data = text.encode("utf-8", "replace")
    return len(data) >= REPETITION_CHARS and len(zlib.compress(data)) < REPETITION * len(data)


def _is_noise(text: str) -> bool:
    """Blobs of data, characters that are none, or letters that are no words."""
    visible = sum(not c.isspace() for c in text)
    if not visible:
        return False
    bad = count_unreadable(text)
    blobs = sum(len(word) for word in text.split() if len(word) >= BLOB and not _is_name(word))
    if bad > 0.05 * visible or blobs > 0.5 * visible:
        return True
    latin = _LATIN.findall(text)
    mute = sum(not _VOWEL.search(word) and not word.isupper() for word in latin)
    return len(latin) >= 10 and mute > GARBLED * len(latin)


def _is_name(word: str) -> bool:
    """A path, an address, or text of a language that sets no blanks."""
    return _UNSPACED.search(word) is not None or (len(word) <= LONGEST_NAME and _PATHLIKE.search(word) is not None)


def _is_echo(whole: str) -> bool:
    """The marks around the input, or three clauses of the instructions."""
    if _MARKERS.search(whole):
        return True
    flat = " ".join(whole.casefold().split())
    clauses = (" ".join(clause.casefold().split()) for clause in re.split(r"[.;:]\s", FORM))
    return sum(clause in flat for clause in clauses if len(clause) > 40) >= 3


def _refuses(said: Mapping[str, str], whole: str) -> bool:
    if said:
        bodies = {" ".join(body.split()) for body in said.values()}
        return sum(map(len, bodies)) <= SHORT and all(_REFUSAL.search(body.lstrip("-* ")) for body in bodies)
    return len(whole) <= SHORT and _REFUSAL.search(whole[: SHORT // 2]) is not None


def _asks(said: Mapping[str, str], whole: str) -> bool:
    texts = [body for name, body in said.items() if name != MODEL_SECTIONS[-1]] if said else [whole]
    if said and not texts:
        return False
    return all(len(text) <= SHORT and text.rstrip(" *_\"'").endswith(("?", "\uff1f", "\u061f")) for text in texts)


def _ends_open(whole: str, finish: FinishReason, sections: Mapping[str, str]) -> bool:
    """It breaks off in a sentence or a block of code, whatever the server says; where that does not know how the answer
    ended, it has to have come to the last heading."""
    last = whole.rstrip().rpartition("\n")[2].strip()
    if len(_FENCE.findall(whole)) % 2:
        return True
    lacks_last = len(sections) > 1 and MODEL_SECTIONS[-1] not in sections
    return lacks_last and (finish in ("unknown", "paused") or _OPEN_END.search(last.casefold()) is not None)


def _is_json(whole: str) -> bool:
    if whole[:1] not in '{["':
        return False
    try:
        return isinstance(json.loads(whole), dict | list | str)
    except (ValueError, RecursionError):
        return False


def _has_calls(whole: str) -> bool:
    """Nothing but calls in tags."""
    return not re.sub(r"<(tool_call|function_calls?|invoke)\b.*?</\1>", "", whole, flags=re.DOTALL).strip()


def _script(letter: str) -> str:
    """The script of a letter, roughly; those that are written together are one."""
    if letter < "\u0250":
        return "LATIN"
    name = unicodedata.name(letter, "").partition(" ")[0]
    return "EAST" if name in ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "FULLWIDTH") else name


def _is_foreign(said: str, replaced: str) -> bool:
    """Most of its letters are of a script that what it replaces does not know. Latin is everybody's: code is in it."""
    scripts = Counter(map(_script, "".join(_WORD.findall(said[:20_000]))))
    script, count = scripts.most_common(1)[0] if scripts else ("LATIN", 0)
    if not replaced or script == "LATIN" or count <= OWN_SCRIPT * sum(scripts.values()):
        return False
    return not any(_script(letter) == script for letter in replaced if letter >= "\u0250" and letter.isalpha())


MIN_GAIN = 0.05
"""A compaction has to make the next input at least 5 % smaller."""


def check_size(
    before: int,
    after: int,
    limit: int | None,
    *,
    fits: bool = False,
    before_estimated: bool = True,
    part: int | None = None,
) -> SummaryProblem | None:
    """The checks of the whole next input, in tokens: at least 5 % smaller than before, and below the limit unless it
    ``fits`` the window with an answer. Of a fold: 5 % of the ``part`` it is of."""
    sizes = f"{tokens(before, before_estimated)} → {tokens(after, True)}"
    if part is not None:
        few = f"the summary is not at least 5 % smaller than the {tokens(part, True)} it would replace"
        return SummaryProblem("too_large", few) if before - after < max(1, part * MIN_GAIN) else None
    if after > before * (1 - MIN_GAIN):
        return SummaryProblem("too_large", f"the summary is not at least 5 % smaller than what it replaces ({sizes})")
    if limit is not None and after > limit and not fits:
        over = f"the limit of {tokens(limit, False)}"
        return SummaryProblem("over_limit", f"it would still be over {over} ({sizes})")
    return None
