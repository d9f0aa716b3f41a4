"""Words that are looked for: how they are read, when a text contains them, and where."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

Span = tuple[int, int]

_PHRASE = re.compile(r'"([^"\s][^"]*)"(?!\S)')
_WORD = re.compile(r"\S+")
_PLAIN = re.compile("[\0-\x7f]+(?![^\0-\x7f])")
"""ASCII up to a character that an accent may follow."""
_BLANKS = dict.fromkeys((*range(0x20), 0x7F), " ")
_LONE = re.compile("[\ud800-\udfff]")
_JAMO = range(0x1160, 0x1200)
"""Vowels and finals of Korean syllables, which join with what stands before them (Unicode 3.12)."""


def fold(text: str) -> str:
    """Text for comparing, whatever its case, its width and how accents are put together (Unicode's compatibility form,
    casefolded); control characters are blanks."""
    if text.isascii():
        return text.lower().translate(_BLANKS)
    text = unicodedata.normalize("NFKC", text).casefold()
    return _LONE.sub("\ufffd", unicodedata.normalize("NFKC", text).translate(_BLANKS))


def search_words(query: str) -> list[str]:
    """Returns the texts a query asks for, folded, each once: its words, and as one what stands ``"in quotes"``. Nothing
    else in it means anything but itself."""
    found: list[str] = []
    at = 0
    while (match := _WORD.search(query, at)) is not None:
        phrase = _PHRASE.match(query, match.start())
        at = (phrase or match).end()
        found += [" ".join(fold(phrase[1]).split())] if phrase is not None else fold(match[0]).split()
    return [word for word in dict.fromkeys(found) if word]


def contains(folded: str, word: str) -> bool:
    """Returns whether a folded text has one of the ``search_words`` in it."""
    return word in (folded if " " not in word else " ".join(folded.split()))


def spans(text: str, words: Sequence[str]) -> list[Span]:
    """Returns the places of ``search_words`` in a text as it is: ranges of characters in their order, none touching
    another."""
    folded, places = _mapped(text)
    found: list[Span] = []
    for word in words:
        for match in re.finditer(r"\s+".join(map(re.escape, word.split())), folded):
            start, end = match.span()
            found.append((places[start], places[end - 1] + 1) if places else (start, end))
    return _joined(_whole(text, found) if places else found)


def _mapped(text: str) -> tuple[str, list[int]]:
    """The folded text, and for each of its characters the place of what it came from; none where that is the same."""
    if text.isascii():
        return fold(text), []
    out: list[str] = []
    places: list[int] = []
    at = 0
    while at < len(text):
        plain = _PLAIN.match(text, at)
        if plain is not None:
            end = plain.end()
            out.append(fold(plain[0]))
            places += range(at, end)
        else:
            end = _end(text, at + 1)
            out.append(fold(text[at:end]))
            places += [at] * len(out[-1])
        at = end
    return "".join(out), places


def _joins(char: str) -> bool:
    return unicodedata.combining(char) != 0 or ord(char) in _JAMO


def _whole(text: str, found: Iterable[Span]) -> list[Span]:
    """Ranges with the accents that belong to their last character."""
    return [(start, _end(text, end)) for start, end in found]


def _end(text: str, end: int) -> int:
    """Returns where what joins with the character before ``end`` ends."""
    while end < len(text) and _joins(text[end]):
        end += 1
    return end


def _joined(found: Iterable[Span]) -> list[Span]:
    out: list[Span] = []
    for start, end in sorted(found):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out


ENOUGH = 50
"""With so many plain matches nobody looks for letters scattered over a path."""


def match_paths(query: str, paths: Sequence[str], limit: int = 200) -> list[str]:
    """Paths that match, best first: name starts with it, name has it, path has it, letters in order."""
    words = query.lower().split()
    if not words:
        return sorted(paths[:5000], key=lambda p: (p.count("/"), p))[:limit]
    if "/" in query or len(words) > 1:
        return match(query, paths, limit)
    wanted = words[0]
    lowered = [(p.lower(), p) for p in paths]
    inside = [(low, path) for low, path in lowered if wanted in low]
    ranked = sorted((_name_rank(low, wanted), len(path), path) for low, path in inside)
    found = [path for _, _, path in ranked[:limit]]
    if len(found) < ENOUGH:
        have = set(found)
        found += [path for path in _in_order(wanted, lowered, limit) if path not in have]
    return found[:limit]


def match(query: str, texts: Sequence[str], limit: int = 200, *, letters: bool = True) -> list[str]:
    """Texts that match, best first: it is what is typed, begins with it, words do, it has all the words, in any order.
    Only where none has, the ``letters`` in their order. Equals keep their order."""
    wanted = query.lower().strip()
    words = [*dict.fromkeys(wanted.split())]
    lowered = [(text.lower(), text) for text in texts]
    inside = [(low, text) for low, text in lowered if all(word in low for word in words)]
    if inside:
        begins = re.compile("|".join(rf"(?<![^\W_]){re.escape(word)}" for word in words))
        ranked = sorted(inside, key=lambda item: _word_rank(item[0], wanted, len(words), begins))
        return [text for _, text in ranked[:limit]]
    return _in_order("".join(words), lowered, limit) if letters else []


def _word_rank(low: str, wanted: str, words: int, begins: re.Pattern[str]) -> int:
    if low.startswith(wanted):
        return 0 if low == wanted else 1
    return 2 if len(set(begins.findall(low))) == words else 3


def _name_rank(low: str, wanted: str) -> int:
    name = low.rstrip("/").rpartition("/")[2]
    if name.startswith(wanted):
        return 0
    return 1 if wanted in name else 2


def _in_order(wanted: str, lowered: Sequence[tuple[str, str]], limit: int) -> list[str]:
    """Texts that have the letters in order; the shorter the stretch they span, the better."""
    search = re.compile(".*?".join(map(re.escape, wanted)), re.DOTALL).search
    hits = ((search(low), text) for low, text in lowered)
    found = ((hit.end() - hit.start(), len(text), text) for hit, text in hits if hit is not None)
    return [text for _, _, text in sorted(found)[:limit]]
