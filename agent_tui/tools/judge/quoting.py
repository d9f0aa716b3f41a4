"""Reads the text of one word by the rules of the quotes it stands in, as bash does, whatever a parser made of it."""

from __future__ import annotations

import re

from agent_tui.tools.judge.words import NotUnderstoodError, Word

MAX_NUMBERS = 100

_BRACES = re.compile(r"([\w./@:+%*?=-]*)\{((?:[\w./@:+%*?-]*,)+[\w./@:+%*?-]*|\d+\.\.\d+)\}([\w./@:+%*?-]*)", re.ASCII)
_BRACED = re.compile(r"\{.*(?:,|\.\.)")
_VARIABLE = re.compile(r"\$(?:[A-Za-z_]\w*|[0-9@*#?$!-])", re.ASCII)
# Without := (it sets the variable), @ (may run its value) and ! (names another), and with numbers for places alone.
_EXPANSION = re.compile(
    r"\$\{#?\w+\}|\$\{\w+(?:(?::?[-+?]|[#%/^,])[^{}()<>$`\"'\\]*|:\d+(?::\d+)?)\}", re.ASCII
)  # fmt: skip
_NUMBERS = re.compile(r"\$\(\([\d\s+*/%()<>=!&|-]*\)\)", re.ASCII)
_ANSI = re.compile(r"\$'((?:[^'\\]|\\[nt\\'\"])*)'")
_ESCAPES = {"n": "\n", "t": "\t"}
_ACTIVE = re.compile(r"\$[\w{(\[@*#?$!'\"-]|`")
"""What would be expanded where nothing quotes it."""


def brace_words(raw: str) -> list[Word] | None:
    """The words that plain braces make of one; None where there are none."""
    match = _BRACES.fullmatch(raw)
    if match is None:
        return None
    before, inside, after = match.groups()
    parts = inside.split(",")
    if len(parts) == 1:
        first, last = (int(number) for number in inside.split(".."))
        if abs(last - first) > MAX_NUMBERS or inside != f"{first}..{last}":
            raise NotUnderstoodError("it uses brace expansion")
        step = 1 if last >= first else -1
        parts = [str(number) for number in range(first, last + step, step)]
    texts = [before + part + after for part in parts]
    return [Word(text, glob="*" in text or "?" in text) for text in texts if text]


def has_braces(raw: str) -> bool:
    """Returns whether the shell may make several words of an unquoted text."""
    return _BRACED.search(raw) is not None


def expansion_doubt(kind: str, raw: str) -> str:
    """Returns why an expansion may do more than give a text; empty where it does not. Raises NotUnderstoodError where
    it is none for bash."""
    if kind == "command_substitution":
        # Backquotes end at the next one for bash, whatever it stands in.
        if raw.startswith("$((") or (raw.startswith("`") and re.search(r"[`\\]", raw[1:-1])):
            raise NotUnderstoodError("a substitution is unclear")
        return ""
    if kind == "simple_expansion":
        if not _VARIABLE.fullmatch(raw):
            raise NotUnderstoodError("a variable is unclear")
        return ""
    if kind == "expansion":
        return "" if _EXPANSION.fullmatch(raw) else "it uses a parameter expansion"
    return "" if _NUMBERS.fullmatch(raw) else "it uses arithmetic"


def add_unquoted(raw: str, word: Word) -> None:
    """Adds a text without quotes."""
    at = 0
    while at < len(raw):
        char = raw[at]
        if char == "\\":
            if raw[at + 1 : at + 2] in ("", "\n"):
                raise NotUnderstoodError("a backslash is unclear")
            word.text += raw[at + 1]
            word.quoted = True
            at += 2
            continue
        first = not word.text and not word.quoted
        if char in " \t\n;&|()<>`'\"" or (char == "#" and first) or (char == "$" and _ACTIVE.match(raw, at)):
            raise NotUnderstoodError("a word is unclear")
        if char in "*?[":
            word.glob = True
        elif char == "~" and (first or word.text.endswith(("=", ":"))):
            word.tilde = True
            word.dynamic = word.dynamic or not first
        word.text += char
        at += 1


def add_double_quoted(raw: str, word: Word, document: bool = False) -> None:
    """Adds a text that stands in double quotes, or in a here-``document``."""
    plain = re.sub(r"\\.", "", raw, flags=re.DOTALL)
    if _ACTIVE.search(plain) or (not document and '"' in plain) or plain.endswith("\\"):
        raise NotUnderstoodError("a quote is unclear")
    word.text += re.sub(r"\\([\"\\$`\n])", lambda found: found[1].strip("\n"), raw)


def add_single_quoted(raw: str, word: Word) -> None:
    """Adds a text with its single quotes, ``$'…'`` with plain escapes too."""
    match = _ANSI.fullmatch(raw)
    if match is None and not re.fullmatch(r"'[^']*'", raw):
        raise NotUnderstoodError("a quote is unclear")
    word.text += raw[1:-1] if match is None else re.sub(r"\\(.)", lambda e: _ESCAPES.get(e[1], e[1]), match[1])
    word.quoted = True
