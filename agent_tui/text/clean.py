"""Foreign text made harmless. Each function says for whom: they differ in what they must keep.

| for                                        | characters that act or hide are | function                          |
|--------------------------------------------|---------------------------------|-----------------------------------|
| a terminal, lists, an export for people    | dropped; what hides, as codes   | `clean`, `one_line`, `clean_line` |
| names made of others' texts, that are kept | dropped                         | `printable`, `printable_line`     |
| what servers and packages say of themselves | dropped, the invisible too     | `plain`, `plain_line`             |
| a program's output for the model           | carried out, then dropped       | `program_output`                  |
| the same, where its colours are shown      | dropped                         | `colour_runs`                     |
| files' content and names for the model     | shown as pictures               | `pictured`, `pictured_line`       |
| a line that is typed, cell by cell         | a blank each                    | `blanked`                         |
| the transcript, letter by letter           | shown in place                  | `drawable`, `drawable_output`     |
| what the user is asked to allow, or for    | shown as what they are          | `visible`, `spelled`              |
| comparing with words of ours               | dropped                         | `visible_form`                    |
| a provider's wire                          | kept, if they can be encoded    | `encodable`                       |
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

_SURROGATES = range(0xD800, 0xE000)

CONTROLS: dict[int, int | str | None] = {c: None for c in (*range(0x20), *range(0x7F, 0xA0)) if c not in (0x09, 0x0A)}
CONTROLS[0xFEFF] = None
CONTROLS.update(
    {
        c: f"⟨U+{c:04X}⟩"
        for c in (0x00AD, 0x061C, 0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2060, 0x206A))
    }
)
CONTROLS.update(dict.fromkeys(_SURROGATES, 0xFFFD))
"""What a terminal acts upon, which is dropped, and what turns the direction of text or takes no room, which is shown as
what it is: a table for ``str.translate``."""

_ONE_LINE: dict[int, int | str | None] = {
    **CONTROLS,
    **dict.fromkeys((0x09, 0x0A, 0x0D, 0x85, 0x2028, 0x2029), " "),
}
_ONE_LINE_LIMIT = 400

# Patterns are texts, compiled when first used and then kept by ``re``: this leaf is imported before the first frame.
_BREAKS = "[\n\u2028\u2029]"


def cut(text: str, limit: int) -> str:
    """Text of at most ``limit`` characters; what is cut ends in ``…``."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def newlines(text: str) -> str:
    """``\\r\\n`` and lone ``\\r`` as ``\\n``."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def clean(text: str) -> str:
    """Text without control characters and lone surrogates, and with what turns its direction or takes no room as codes;
    newlines and tabs stay."""
    return newlines(text).translate(CONTROLS)


def one_line(text: str, limit: int = _ONE_LINE_LIMIT) -> str:
    """Cleaned text on one line, at most ``limit`` characters: for titles, labels, the terminal's own title."""
    return cut(" ".join(text[: limit * 2].translate(_ONE_LINE).split()), limit)


def clean_line(text: str) -> str:
    """Cleaned text of any length on one line that does not hide that it had several: a name with a line break must
    not look like two names."""
    return re.sub(_BREAKS, "␊", clean(text)).replace("\t", " ")


def printable(text: str) -> str:
    """Text without any character that has no picture of its own; newlines and tabs stay."""
    return text if text.isprintable() else "".join(c for c in text if c in "\n\t" or c.isprintable())


def printable_line(text: str, limit: int) -> str:
    """The beginning of a text on one line, at most ``limit`` characters, without what cannot be printed: for titles
    and labels that are kept. No more than a small multiple of ``limit`` is looked at."""
    return cut(printable(" ".join(text[: 8 * limit].split())), limit)


def blanked(text: str) -> str:
    """Text of the same length in which whatever acts on a terminal, turns the direction of text, joins letters or
    cannot be seen is a blank."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


_HIDDEN = ("Cf", "Co", "Cs", "Cn", "Cc")


def plain(text: object, limit: int) -> str:
    """Returns the words of others about themselves (servers, their tools, packages), without escape sequences, control
    and invisible characters, at most ``limit`` characters long."""
    shown = program_output(str(text)[: limit * 4])
    shown = "".join(c for c in shown if c in "\n\t" or unicodedata.category(c) not in _HIDDEN).strip()
    return cut(shown, limit)


def plain_line(text: object, limit: int = 200) -> str:
    """The same on one line."""
    return " ".join(plain(text, limit).split())


_ESCAPES = (
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_].{0,4096}?(?:\x07|\x1b\\|\x9c|(?=\n)|$)"  # OSC, DCS and the like: titles, clipboard, links
    r"|\x1b[ -/]*[0-~]"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_OVERWRITTEN = r"[^\n]*\r(?!\n|$)"
_ACTING = r"[\x00-\x08\x0b-\x1f\x7f-\x9f]"


def program_output(text: str) -> str:
    """Turns what a program wrote for a terminal into text: escape sequences removed, lines overwritten with ``\\r`` as
    they ended, no control characters."""
    if "\x1b" in text or "\x9b" in text:
        text = re.sub(_ESCAPES, "", text)
    if "\r" in text:
        text = re.sub(_OVERWRITTEN, "", text.replace("\r\n", "\n")).replace("\r", "\n")
    return re.sub(_ACTING, "", text)


_SGR = r"\x1b\[([0-9;:]{0,64})m"


def colour_runs(text: str) -> Iterator[tuple[list[int], str]]:
    """The pieces of one line of a program's output, each with the codes of colours and the like (SGR) that stand right
    before it. Whatever else acts is removed, as ``program_output`` and ``clean`` do; a line's end is a space."""
    codes: list[int] = []
    for number, piece in enumerate(re.split(_SGR, text)):
        if number % 2:
            codes += [int(code) for code in re.split("[;:]", piece) if code] or [0]
        elif said := clean(program_output(piece)).replace("\n", " ").replace("\t", " "):
            yield codes, said
            codes = []


_PICTURES: dict[int, int] = {c: 0x2400 + c for c in range(0x20) if c not in (0x09, 0x0A)} | {0x7F: 0x2421}
_PICTURES |= dict.fromkeys(range(0x80, 0xA0), 0xFFFD)


def pictured(text: str) -> str:
    """File content with every control character but newline and tab replaced by its visible picture (``␛``)."""
    return text.translate(_PICTURES) if re.search(_ACTING, text) else text


def pictured_line(name: str) -> str:
    """A file name as one line of text: control characters pictured, bytes that are not UTF-8 replaced."""
    return re.sub(_BREAKS, "␊", pictured(name)).replace("\t", "␉").encode("utf-8", "replace").decode()


_UNDRAWABLE = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
_COLOURS = r"\x1b\[[0-9;:]{0,64}m"


def drawable(text: str) -> str:
    """Text of the same length without control characters (C0 shown as ␛ and the like), C1 controls, explicit
    bidirectional overrides (they reorder what stands around them) and lone surrogates. Newlines and tabs stay."""
    return text if text.isprintable() else re.sub(_UNDRAWABLE, _drawn, text)


def drawable_output(text: str) -> str:
    """A program's output for the transcript: colour sequences carry no text and are dropped, everything else stays
    visible, in the same signs as where a call is asked about."""
    if "\x1b" in text:
        text = re.sub(_COLOURS, "", text)
    text = newlines(text)
    return drawable(visible(text)) if re.search(_UNDRAWABLE, text) else text


def _drawn(match: re.Match[str]) -> str:
    code = ord(match.group())
    return " " if code in (0x2028, 0x2029) else chr(_PICTURES.get(code, 0xFFFD))


@lru_cache(maxsize=1)
def _signs() -> dict[int, int | str]:
    signs: dict[int, int | str] = {c: 0x2400 + c for c in range(0x20) if c not in (0x09, 0x0A)}
    signs.update({c: f"<U+{c:04X}>" for c in CONTROLS if c >= 0x7F and c not in _SURROGATES})
    signs.update(dict.fromkeys(_SURROGATES, 0xFFFD))
    return signs


def visible(text: str) -> str:
    """Text whose control characters are shown as symbols, or as codes, instead of acting."""
    return text.translate(_signs())


_NOT_PLAIN = "[^\n\t -~]"
_BLANK = "[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u180b-\u180f\ufe00-\ufe0f\U000e0000-\U000e0fff]"
"""Letters, marks and symbols by category that nevertheless show as nothing or as a blank."""


def spelled(text: str, *, line: bool = False) -> str:
    """Text in which nothing is hidden, for what the user is asked to allow: control characters as symbols; characters
    that are invisible, turn the direction of text or look like a blank as codes (``⟨U+202E⟩``).

    Newlines and tabs stay, unless all has to stand on one ``line``: then they are symbols, too.
    """
    text = re.sub(_NOT_PLAIN, lambda match: _code(match.group()), text)
    return text.replace("\n", "␊").replace("\t", "␉") if line else text


def asked_words(text: object, limit: int, *, line: bool = False) -> str:
    """What somebody asks the user for, as ``spelled``, at most ``limit`` characters of it."""
    said = str(text)[: limit * 2].strip()
    return cut(spelled(" ".join(said.split()) if line else said, line=line), limit)


@lru_cache(maxsize=4096)
def _code(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp", "Zs") or re.match(_BLANK, char):
        return f"⟨U+{code:04X}⟩"
    return char


_GAPS = "\u115f\u1160\u2800"
"""Letters and a symbol that show as a gap, in Unicode's compatibility form."""


def visible_form(text: str) -> str:
    """Text as people read it, for telling whether it looks like other words: whatever its case, its width and its
    letters' font (Unicode's compatibility form); without accents and without what cannot be seen; blanks of any kind
    and number are one blank, at its ends none."""
    for _ in range(2):  # folding the case can leave letters that have a compatibility form of their own
        text = unicodedata.normalize("NFKD", text).casefold()
    return " ".join("".join(map(_visible_form, text)).split())


def _visible_form(char: str) -> str:
    if char.isspace() or char in _GAPS:
        return " "
    return "" if unicodedata.category(char)[0] in "CM" else char


_SURROGATE = "[\ud800-\udfff]"


def encodable(text: str) -> str:
    """Text that can be encoded: lone surrogates, which some models emit, become U+FFFD, pairs become characters.
    Nothing else is changed: this is what goes over the wire."""
    lone = re.search(_SURROGATE, text)
    return text if lone is None else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_END = re.compile(r"[.!?…؟。！？](?:(?<=[.!?…؟])['\"”’)]*\s+(?=[^\sa-z])|(?<=[。！？])[。！？]*[”」』）)]*)")
_SHORT = re.compile(r"(?:\b[^\W\d_]|\b(?:etc|vs|bzw|ca|Nr|No|cf|Dr|Mr|Mrs))\.\s+$")
"""A point that ends no sentence: an abbreviation's."""


def without_format_signs(text: str) -> str:
    """The text without the signs that nobody sees and that say how it is laid out, such as what pages put into it."""
    return "".join(sign for sign in text if unicodedata.category(sign) != "Cf")


def sentences_in(text: str) -> Iterator[str]:
    """The sentences and lines of a text. Lines that were wrapped in a sentence are joined."""
    for line in _unwrapped(text.splitlines()):
        start = 0
        for end in _END.finditer(line):
            if _SHORT.search(line[max(0, end.end() - 8) : end.end()]) is None:
                yield line[start : end.end()].strip()
                start = end.end()
        if last := line[start:].strip():
            yield last


def _unwrapped(lines: Iterable[str]) -> Iterator[str]:
    held: list[str] = []
    for line in lines:
        before = held[-1] if held else ""
        if held and line[:1].islower() and len(before) >= 40 and (before[-1].isalnum() or before[-1] == ","):
            held.append(line.rstrip())
            continue
        if held:
            yield " ".join(held)
        held = [line.rstrip()]
    if held:
        yield " ".join(held)


def common_start(one: str, other: str) -> int:
    """How many characters two texts begin with alike, by comparing ever smaller pieces: no loop over characters."""
    least, most = 0, min(len(one), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        if one[least:middle] == other[least:middle]:
            least = middle
        else:
            most = middle - 1
    return least


_UNREADABLE = ("Cc", "Cn", "Co", "Cs")


def count_unreadable(text: str, usual: str = "\t\n\r") -> int:
    """How many characters of a text nobody reads: controls but for the ``usual`` ones, halves of pairs, what no
    standard has a meaning for, and marks of what could not be decoded."""
    return sum(char == "\ufffd" or unicodedata.category(char) in _UNREADABLE for char in text if char not in usual)
