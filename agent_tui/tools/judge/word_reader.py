"""Reads one word of a command line: quotes, expansions and substitutions, as bash takes them."""

from __future__ import annotations

import re
from collections.abc import Callable

from agent_tui.tools.judge.syntax import NotUnderstoodError, SimpleCommand, Values, Word

MAX_DEPTH = 10
MAX_NUMBERS = 100
OPERATOR_START = frozenset("|&;()<>\n")

_END = r"(?=[\s;|&<>)]|$)"
_BRACES = re.compile(r"([\w./@:+%*?=-]*)\{((?:[\w./@:+%*?-]*,)+[\w./@:+%*?-]*|\d+\.\.\d+)\}([\w./@:+%*?-]*)" + _END)
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\}|!)")
_WHOLE_VALUE = re.compile(r'"\$(?:(\w+)|\{(\w+)\})"' + _END)
# Without := (it sets the variable), @ (may run its value) and ! (names another), and with numbers for places alone.
_EXPANSION = re.compile(r"\$\{#?\w+\}|\$\{\w+(?:(?::?[-+?]|[#%/^,])[^{}()<>$`\"'\\]*|:\d+(?::\d+)?)\}")
_ARITHMETIC = re.compile(r"\$\(\(([^()$`'\"\\]*)\)\)")
_ANSI = re.compile(r"\$'((?:[^'\\]|\\[nt\\'\"])*)'")
_ESCAPES = {"n": "\n", "t": "\t"}

Nested = Callable[["WordReader", "str | None"], None]
"""Reads the commands from where the reader stands up to a closing sign, which is consumed, or the end."""


class WordReader:
    """A place in ``source``. ``commands`` takes those of substitutions; ``values`` is what is known of variables."""

    def __init__(
        self, source: str, depth: int, at: int, commands: list[SimpleCommand], values: Values, nested: Nested
    ) -> None:
        if depth > MAX_DEPTH:
            raise NotUnderstoodError("it is nested too deeply")
        self.source, self.depth, self.at = source, depth, at
        self.commands, self.values = commands, values
        self.heredocs: list[tuple[str, bool, bool]] = []  # delimiter, quoted, tabs stripped
        self._nested = nested

    def inside(self, closing: str) -> None:
        """Reads the commands up to ``closing``."""
        self.no_open_heredoc()
        inner = WordReader(self.source, self.depth + 1, self.at, self.commands, self.values, self._nested)
        self._nested(inner, closing)
        self.at = inner.at

    def no_open_heredoc(self) -> None:
        if self.heredocs:
            raise NotUnderstoodError("a here-document does not end")

    def peek(self) -> str:
        return self.source[self.at : self.at + 1]

    def ahead(self, *texts: str) -> bool:
        return self.source.startswith(texts, self.at)

    def blanks(self) -> None:
        while True:
            char = self.peek()
            if char in (" ", "\t") and char:
                self.at += 1
            elif self.ahead("\\\n"):
                self.at += 2
            elif char == "#":
                end = self.source.find("\n", self.at)
                self.at = len(self.source) if end < 0 else end
            else:
                return

    def words(self) -> list[Word]:
        """The word ahead, or the several that plain braces make of it."""
        match = _BRACES.match(self.source, self.at)
        if match is None:
            return [self.word()]
        before, inside, after = match.groups()
        parts = inside.split(",")
        if len(parts) == 1:
            first, last = (int(number) for number in inside.split(".."))
            if abs(last - first) > MAX_NUMBERS or inside != f"{first}..{last}":
                raise NotUnderstoodError("it uses brace expansion")
            parts = [str(number) for number in range(first, last + 1)] or [str(n) for n in range(first, last - 1, -1)]
        self.at = match.end()
        texts = [before + part + after for part in parts]
        return [Word(text, glob="*" in text or "?" in text) for text in texts if text]

    def word(self) -> Word:
        """The word ahead, as a single one."""
        if match := _WHOLE_VALUE.match(self.source, self.at):
            pattern = self.values.pattern(match[1] or match[2])
            if pattern is not None:
                self.at = match.end()
                return pattern
        word, begin = Word(), self.at
        first, brace = True, False
        while char := self.peek():
            if char in " \t" or (char in OPERATOR_START and not self._process_substitution(word)):
                break
            if char in "<>":
                continue
            if char == "\\":
                self._backslash(word)
            elif char == "'":
                word.text += self._until_quote()
                word.quoted = True
            elif char == '"':
                self._double_quoted(word)
            elif char == "$":
                self._dollar(word)
            elif char == "`":
                self._backticks(word)
            else:
                if char in "*?[":
                    word.glob = True
                elif char == "~" and (first or word.text.endswith(("=", ":"))):
                    word.tilde = True
                    word.dynamic = word.dynamic or not first
                elif char == "{":
                    brace = True
                elif brace and (char == "," or self.ahead("..")):
                    raise NotUnderstoodError("it uses brace expansion")
                word.text += char
                self.at += 1
            first = False
        if self.peek() == "(":
            raise NotUnderstoodError("it defines a function, an array or an extended pattern")
        if word.written:
            word.written = re.sub("[\"']", "", self.source[begin : self.at])
        if word.dynamic and (variable := _VARIABLE.fullmatch(word.text)):
            word.made = "job" if word.text == "$!" else self.values.made(variable[1] or variable[2] or "")
        return word

    def _process_substitution(self, word: Word) -> bool:
        if not self.ahead("<(", ">("):
            return False
        if word.text or word.quoted or word.dynamic:
            raise NotUnderstoodError("a process substitution is part of a word")
        start = self.at
        self.at += 2
        self.inside(")")
        word.text, word.pipe = self.source[start : self.at], True
        if self.peek() not in ("", " ", "\t", "\n", ";", "|", "&", ")"):
            raise NotUnderstoodError("a process substitution is part of a word")
        return True

    def _backslash(self, word: Word) -> None:
        following = self.source[self.at + 1 : self.at + 2]
        if not following:
            raise NotUnderstoodError("it ends in a backslash")
        if following != "\n":
            word.text += following
            word.quoted = True
        self.at += 2

    def _until_quote(self) -> str:
        end = self.source.find("'", self.at + 1)
        if end < 0:
            raise NotUnderstoodError("a quote does not end")
        text = self.source[self.at + 1 : end]
        self.at = end + 1
        return text

    def _double_quoted(self, word: Word) -> None:
        word.quoted = True
        self.at += 1
        while (char := self.peek()) != '"':
            if char == "":
                raise NotUnderstoodError("a quote does not end")
            if char == "\\":
                following = self.source[self.at + 1 : self.at + 2]
                if following != "\n":
                    word.text += following if following in ('"', "\\", "$", "`") else char + following
                self.at += 2
            elif char == "$":
                self._dollar(word, quoted=True)
            elif char == "`":
                self._backticks(word)
            else:
                word.text += char
                self.at += 1
        self.at += 1

    def _dollar(self, word: Word, quoted: bool = False) -> None:
        rest = self.source[self.at + 1 : self.at + 3]
        start = self.at
        if rest.startswith("(("):
            match = _ARITHMETIC.match(self.source, self.at)
            if match is None or not self.values.counts(match[1]):
                raise NotUnderstoodError("it uses arithmetic")
            self.at = match.end()
        elif rest.startswith("("):
            self.at += 2
            self.inside(")")
        elif rest.startswith("["):
            raise NotUnderstoodError("it uses arithmetic")
        elif not quoted and rest[:1] in ("'", '"') and rest:
            match = _ANSI.match(self.source, self.at)
            if match is None:
                raise NotUnderstoodError("it uses $-quoting")
            self.at = match.end()
            word.text += re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), match[1])
            word.quoted = True
            return
        elif match := re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\}|[0-9@*#?$!-])").match(self.source, self.at):
            self.at = match.end()
            name = match[1] or match[2] or ""
            known = self.values.text(name, quoted)
            if known is not None:
                word.text += known
                word.written = "$" if self.values.given(name) else word.written
                return
        elif rest.startswith("{"):
            match = _EXPANSION.match(self.source, self.at)
            if match is None:
                raise NotUnderstoodError("it uses a parameter expansion")
            self.at = match.end()
        else:
            word.text += "$"
            self.at += 1
            return
        word.dynamic = True
        word.text += self.source[start : self.at]

    def expansions(self) -> None:
        """Reads the rest as the body of a here-document: nothing counts in it but what is expanded."""
        word = Word()
        while char := self.peek():
            if char == "\\":
                self.at += 2
            elif char == "$":
                self._dollar(word, quoted=True)
            elif char == "`":
                self._backticks(word)
            else:
                self.at += 1

    def body(self, text: str) -> None:
        """Reads ``text`` as the body of a here-document in which values are expanded."""
        WordReader(text, self.depth + 1, 0, self.commands, self.values, self._nested).expansions()

    def _backticks(self, word: Word) -> None:
        start = self.at
        self.at += 1
        inner = ""
        while (char := self.peek()) != "`":
            if char == "":
                raise NotUnderstoodError("a backtick does not end")
            if char == "\\":
                # Inside double quotes one more level is removed: too subtle to judge.
                raise NotUnderstoodError("it has a backslash between backticks")
            inner += char
            self.at += 1
        self.at += 1
        self._nested(WordReader(inner, self.depth + 1, 0, self.commands, self.values, self._nested), None)
        word.dynamic = True
        word.text += self.source[start : self.at]
