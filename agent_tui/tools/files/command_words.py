"""Splits lines of shell, and other texts of programs, into the words that may be files."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import lru_cache

from agent_tui.records import dataclass
from agent_tui.tools.files.program_readings import BEFORE, KEYWORDS, PIPED, program_name, reading_of

_ASSIGNMENT = re.compile(r"\w+\+?=")
_SUBSTITUTED = re.compile(r"\$\((.*)\)|`([^`]*)`|[<>]\((.*)\)", re.DOTALL)
_COPIES = frozenset(
    [
        "cat",
        "head",
        "tail",
        "tac",
        "nl",
        "cut",
        "tr",
        "uniq",
        "paste",
        "base64",
        "grep",
        "jq",
        "yq",
        "awk",
        "sed",
        "sort",
    ]
)
_WORD = re.compile(r"[\w./~@%+-]+")
_QUOTED = re.compile(r"\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'|`([^`\n]*)`")
_WRITTEN = re.compile(
    r"\bopen\([^()\n]*?,\s*(?:mode\s*=\s*)?[\"'][wax][bt+]*[\"']"
    r"|(?:append|write)File(?:Sync)?\(\s*[\"'`][^\"'`\n]+[\"'`]"
    r"|[\"'][^\"'\n]+[\"']\)\.(?:write_(?:text|bytes)|touch|unlink|open\(\s*[\"'][wax])"
)
_VARIABLE = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)?|\$\w+|\$[@*#?!]|\$$|\{[\w.!\[\]'\"]*\}")
_ENDS = re.compile(r"\.(?:pyw?|[zk]?sh|bash|[cm]?[jt]sx?|rb|p[lm]|php|lua|mk|ps1|R|jl|txt|json|ya?ml|toml)$")
_FEEDS = re.compile(r"\|\s*(?:\S*/|sudo\s+|xargs\s.*)*(?:(?:ba|da|z|k|fi)?sh\b|python[\d.]*\s*(?:-\s|$))|\beval\b|<\(")
_GROUPS = re.compile(r"\}|\b(?:done|fi|esac|function)\b|\(\)")
"""What is printed by commands that stand together may be run elsewhere in the text."""
_MOST_BRACES, _MOST_LETTERS = 64, 1_000


@dataclass(slots=True)
class Statement:
    """Commands that give each other what they print. ``looks``: the files that they name are data."""

    commands: list[list[str]] = field(default_factory=list)
    nested: list[str] = field(default_factory=list)
    looks: bool = False
    writes: bool = False


def statements(text: str) -> Iterator[Statement]:
    """The statements of a shell's text, those in the words of a shell's command too."""
    feeds = _FEEDS.search(text) is not None and _GROUPS.search(re.sub(r"\$\{[^}]*\}|\{\}", "", text)) is not None
    for one in _statements(text):
        one.looks = one.looks and not feeds
        yield one


def _statements(text: str) -> Iterator[Statement]:
    text = text.replace("\\\n", " ")
    tokens = _tokens(text)
    if tokens is None:  # an open quote somewhere: a comment, a here-document
        for line in text.splitlines():
            if (tokens := _tokens(line)) is None:
                yield Statement([["source", *(word for word in _WORD.findall(line))]])
            else:
                yield from _parse(tokens)
    else:
        yield from _parse(tokens)


def _tokens(text: str) -> list[str] | None:
    # a comment ends with its line, and so does what it stands in
    text = re.sub(r"(?m)(^|\s)#(?!!).*$", r"\1", text)
    lexer = shlex.shlex(text, posix=True, punctuation_chars="();<>|&\n`")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        return list(lexer)
    except ValueError:
        return None


def _parse(tokens: Sequence[str]) -> Iterator[Statement]:
    one, command, depth, is_target = Statement(), list[str](), 0, False
    for token in [*tokens, "\n"]:
        if not token or token.strip("();<>|&\n`"):
            if is_target:
                one.writes = one.writes or not (token.isdigit() or token.startswith("/dev/") or token == "-")
            else:
                command.append(token)
            is_target = False
            continue
        if ">" in token and "(" not in token:
            is_target = True
            if command and command[-1].isdigit():
                command.pop()
            continue
        if set(token) <= {"<"}:  # what it reads is a word of it
            continue
        is_target = False
        if ")" in token and depth == 0 and "(" not in token:  # a pattern of ``case``
            one.commands, command = [], []
            continue
        one.commands += [command] if command else []
        command = []
        inside = depth > 0
        depth = max(0, depth + token.count("(") - token.count(")") if "`" not in token else (0 if inside else 1))
        if (not depth and set(token) & set(";&\n")) or (not depth and token == "||"):
            yield from _finish(one)
            one = Statement()
    one.commands += [command] if command else []
    yield from _finish(one)


def _finish(one: Statement) -> Iterator[Statement]:
    found, stripped, flows = list[list[str]](), list[list[str]](), False
    todo = list(one.commands)
    while todo:
        words = todo.pop(0)
        for word in words:
            for groups in _SUBSTITUTED.findall(word):
                for inner in _parse(_tokens("".join(groups)) or []):
                    found += inner.commands
                    one.nested += inner.nested
        flows = flows or words[0] in ("for", "select")
        program = _without_prefix(words)
        if program and program[0] in BEFORE - {"exec"} and " " in program[-1]:
            one.nested.append(program[-1])
        flows = flows or (not program and len(one.commands) > 1) or any("$(" in w for w in words[:1])
        stripped += [program] if program else []
    everything = [*stripped, *(program for words in found if (program := _without_prefix(words)))]
    names = [program_name(words[0]) for words in everything]
    fed = len(everything) > 1 and any(name in PIPED for name in names)
    copied = one.writes and any(name in _COPIES for name in names)
    one.looks = bool(everything) and not (flows or fed or copied) and all(map(_only_looks, everything))
    one.commands = [*one.commands, *found]
    for words in everything:
        if " " in words[0] or "\n" in words[0]:
            one.nested.append(words[0])
        reading = reading_of(words)
        if reading is not None and reading.shell:
            one.nested += [word for word in words[1:] if re.search(r"[\s;|&]", word)]
    if one.commands:
        yield one
    for text in dict.fromkeys(one.nested):
        if fed:
            yield Statement([["source", *_WORD.findall(text)]])
        elif (tokens := _tokens(text)) is not None:
            yield from _parse(tokens)
    one.nested = []


def _only_looks(words: Sequence[str]) -> bool:
    reading = reading_of(words)
    if reading is None or not reading.looks:
        return False
    if "/" in words[0] and not re.match(r"/(?:usr|bin|opt)/|.*(?:venv|node_modules)/\.?\w+/", words[0]):
        return False  # a script of the project that has the name of a known program
    return not (reading.runs and re.search(reading.runs, " ".join(words[1:])))


def programs_of(one: Statement) -> Iterator[list[str]]:
    """The programs that a statement starts, each with its words."""
    for words in one.commands:
        if program := _without_prefix(words):
            yield program


def before_arguments(words: Sequence[str]) -> list[str]:
    """The program of a command, and what stands before it."""
    return list(words[: len(words) - len(_without_prefix(words)) + 1])


def _without_prefix(words: Sequence[str]) -> list[str]:
    at, passed = 0, False
    while at < len(words):
        word = words[at]
        if program_name(word) in BEFORE:
            passed = True
        elif not (
            word in KEYWORDS
            or word in ("$", "{}")
            or _ASSIGNMENT.match(word)
            or (passed and (word.startswith("-") or re.fullmatch(r"[\d.]+[smhd]?", word)))
        ):
            return list(words[at:])
        at += 1
    return []


def code_words(text: str) -> tuple[list[str], list[str]]:
    """What may be files in a text that is no shell's: of what is quoted, and of all else. What it writes is none."""
    text = _WRITTEN.sub(" ", text)
    quoted = ["".join(groups) for groups in _QUOTED.findall(text)]
    named = [word for word in _WORD.findall(text) if "/" in word or _ENDS.search(word)]
    return list(dict.fromkeys(quoted)), list(dict.fromkeys(named))


@lru_cache(20_000)
def meanings(word: str) -> list[str]:
    """What a word may be as a path: in options and lists, with braces expanded, and a star for each variable."""
    found: list[str] = []
    for one in _braces(word):
        one = _VARIABLE.sub("*", one).strip()
        parts = [one, *re.split(r"[=:,;]", one)] if re.search(r"[=:,;]", one) else [one]
        if re.match(r"-\w.", one) and not one.startswith("--"):
            parts.append(one[2:])
        for part in parts:
            part = re.sub(r"\*\*+(?=.*\*\*)", "*", re.sub(r"^(?:\*+/)+", "", part.lstrip("@!<>")[:_MOST_LETTERS]))
            if part and part.strip("*?./") and "\0" not in part and "\n" not in part:
                found.append(part)
            elif part in (".", "./"):
                found.append(".")
    return list(dict.fromkeys(found))


def _braces(word: str) -> list[str]:
    todo, done = [word], list[str]()
    while todo and len(todo) + len(done) < _MOST_BRACES:
        one = todo.pop()
        match = re.search(r"(?<!\$)\{([^{}]*,[^{}]*)\}", one)
        if match is None:
            done.append(one)
        else:
            todo += [one[: match.start()] + part + one[match.end() :] for part in match[1].split(",")]
    return [*done, *todo]
