"""Takes a shell command apart into the simple commands it would run. What is not fully understood is refused.

This is not a shell: it answers one question, "which programs with which words, and which files are written", and it
answers only where the answer is certain. Loops, functions, arithmetic, arrays and the rarer expansions raise
``NotUnderstoodError``, and the user is asked.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import Literal

from agent_tui.tools.words import words

MAX_LENGTH = 50_000
MAX_DEPTH = 10

_RESERVED = words("case esac select function coproc ]]")
_OPENING = words("if then else elif while until do { ! time")
_CLOSING = words("fi done }")
_KEYWORDS = _OPENING | _CLOSING | {"[[", "for"}
_COMPARED = words("! ( ) && || < > == = != -a -o -z -n -e -f -d -r -w -x -s -L -h -nt -ot -ef -b -c -p -S")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(\[[^\]]*\])?\+?=")
_OPERATOR_START = frozenset("|&;()<>\n")


class NotUnderstoodError(Exception):
    """The command uses something whose effect is not known without running it; the text says what."""


@dataclass(slots=True)
class Word:
    """A word after quotes are removed. ``dynamic``: its value is only known when it runs. ``glob``: it holds
    unquoted ``*``, ``?`` or ``[``. ``tilde``: it begins with an unquoted ``~``."""

    text: str = ""
    dynamic: bool = False
    glob: bool = False
    tilde: bool = False
    quoted: bool = False
    pipe: bool = False


@dataclass(slots=True)
class Redirect:
    """``write`` for anything that may change the target; descriptors duplicated (``2>&1``) are not listed."""

    kind: Literal["read", "write"]
    target: Word


@dataclass(slots=True)
class SimpleCommand:
    """One program run, or assignments alone. ``text`` is what rules are matched against: words joined by a space."""

    assignments: list[Word] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join(word.text for word in [*self.assignments, *self.words])

    @property
    def dynamic(self) -> bool:
        return any(word.dynamic for word in [*self.assignments, *self.words])


def parse_command(source: str) -> list[SimpleCommand]:
    """All simple commands of ``source`` in order, those of substitutions and subshells included. Raises
    NotUnderstoodError."""
    if len(source) > MAX_LENGTH:
        raise NotUnderstoodError("the command is very long")
    for char in source:
        if char not in "\n\t" and (ord(char) < 32 or ord(char) == 127 or (not char.isascii() and _unseen(char))):
            raise NotUnderstoodError("it contains a control character, an invisible one or an unusual space")
    if re.search(r"[^ \t]\\\n", source):
        # The shell joins such lines before it looks at them, so an operator may be spread over two.
        raise NotUnderstoodError("a line is continued in the middle of a word")
    parser = _Parser(source, 0)
    parser.list_until(None)
    return parser.commands


def _unseen(char: str) -> bool:
    return char.isspace() or unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")


class _Parser:
    def __init__(self, source: str, depth: int, start: int = 0) -> None:
        if depth > MAX_DEPTH:
            raise NotUnderstoodError("it is nested too deeply")
        self.source, self.at, self.depth = source, start, depth
        self.commands: list[SimpleCommand] = []
        self._heredocs: list[tuple[str, bool, bool]] = []  # delimiter, quoted, tabs stripped

    def list_until(self, closing: str | None) -> None:
        """Reads commands up to ``closing`` (which is consumed) or the end of the source."""
        while True:
            self._blanks()
            char = self._peek()
            if char == "":
                if closing is not None:
                    raise NotUnderstoodError(f"a {closing!r} is missing")
                self._no_open_heredoc()
                return
            if char == closing:
                self._no_open_heredoc()
                self.at += 1
                return
            if char == "\n":
                self.at += 1
                self._heredoc_bodies()
            elif char in ";&|":
                if self.source.startswith((";;", ";&"), self.at):
                    raise NotUnderstoodError("it uses a case statement")
                if self.source.startswith("&>", self.at):
                    self._simple()
                else:
                    self.at += 1
            elif char == "(":
                if self.source.startswith("((", self.at):
                    raise NotUnderstoodError("it uses arithmetic")
                self.at += 1
                self._nested(")")
                self._after_subshell()
            elif char == ")":
                raise NotUnderstoodError("a parenthesis does not match")
            else:
                self._simple()

    def _nested(self, closing: str) -> None:
        self._no_open_heredoc()
        inner = _Parser(self.source, self.depth + 1, self.at)
        inner.list_until(closing)
        self.at = inner.at
        self.commands += inner.commands

    def _after_subshell(self) -> None:
        """A subshell may be redirected as a whole."""
        command = SimpleCommand()
        while True:
            self._blanks()
            if not self._redirect(command):
                break
        if command.redirects:
            self.commands.append(command)
        if self._peek() not in ("", "\n", ";", "&", "|", ")"):
            raise NotUnderstoodError("something follows the end of a group")

    def _simple(self) -> None:
        command = SimpleCommand()
        begin = self.at
        while True:
            self._blanks()
            if self._redirect(command):
                continue
            char = self._peek()
            if char == "(":
                raise NotUnderstoodError("it defines a function or an array")
            if self.at == begin and (keyword := self._bare()) in _KEYWORDS:
                self._keyword(keyword)
                return
            if char == "" or (char in _OPERATOR_START and not self.source.startswith(("<(", ">("), self.at)):
                break
            start = self.at
            word = self._word()
            raw = self.source[start : self.at]
            if "\n" in raw:
                self._no_open_heredoc()
            if not command.words and _ASSIGNMENT.match(raw):
                if "[" in raw.partition("=")[0]:
                    raise NotUnderstoodError("it assigns to an array")
                command.assignments.append(word)
                continue
            if not command.words and not word.quoted and word.text in _RESERVED | _KEYWORDS:
                raise NotUnderstoodError(f"it uses the shell keyword {word.text}")
            command.words.append(word)
        if self.at == begin:
            raise NotUnderstoodError(f"{self._peek()!r} is not expected here")
        self.commands.append(command)

    def _bare(self) -> str:
        """The word ahead, when it is plain letters or signs up to a blank, a line's end or an operator."""
        match = re.compile(r"(?:[a-z]+|\[\[|[{}!])(?=[\s;&|()<>]|$)").match(self.source, self.at)
        return match.group() if match else ""

    def _keyword(self, word: str) -> None:
        """A word of a loop or a condition. That all of them stand where they should is left to the shell, which runs
        nothing of a statement that is wrong."""
        self.at += len(word)
        if word == "for":
            self._for()
        elif word == "[[":
            self._condition()
        elif word in _CLOSING:
            self._after_subshell()
        elif word == "time":
            self._blanks()
            if re.compile(r"-p\s").match(self.source, self.at):
                self.at += 2

    def _for(self) -> None:
        """``for NAME in WORDS``: the words may run commands; what NAME is, is only known later. Names in capitals may
        be settings of programs (``PATH``)."""
        match = re.compile(r"[ \t]+(?!\w*_proxy)[a-z][a-z0-9_]*[ \t]+in(?=[ \t;\n])").match(self.source, self.at)
        if match is None:
            raise NotUnderstoodError("it uses an unusual loop")
        self.at = match.end()
        while True:
            self._blanks()
            char = self._peek()
            if char in ("", ";", "\n"):
                return
            if char in _OPERATOR_START and not self.source.startswith(("<(", ">("), self.at):
                raise NotUnderstoodError("it uses an unusual loop")
            start = self.at
            self._word()
            if self.at == start:
                raise NotUnderstoodError("it uses an unusual loop")

    def _condition(self) -> None:
        """``[[ … ]]``: nothing is started but by substitutions. Comparing numbers evaluates values, which may be
        subscripts with commands in them; patterns may hold operators."""
        while True:
            self._blanks()
            operator = re.compile(r"&&|\|\||[()<>\n]").match(self.source, self.at)
            if operator and not self.source.startswith(("<(", ">("), self.at):
                self.at = operator.end()
                continue
            start = self.at
            word = self._word()
            raw = self.source[start : self.at]
            if raw == "]]":
                self._after_subshell()
                return
            if not raw or (raw.startswith("-") and raw not in _COMPARED) or raw == "=~":
                raise NotUnderstoodError("it uses a condition that is not plain")
            if word.pipe:
                raise NotUnderstoodError("it uses a condition that is not plain")

    def _blanks(self) -> None:
        while True:
            char = self._peek()
            if char in (" ", "\t") and char:
                self.at += 1
            elif self.source.startswith("\\\n", self.at):
                self.at += 2
            elif char == "#":
                end = self.source.find("\n", self.at)
                self.at = len(self.source) if end < 0 else end
            else:
                return

    def _redirect(self, command: SimpleCommand) -> bool:
        match = re.compile(r"(\d*)(<<<|<<-|<<|<>|<&|<|>>|>\||>&|>|&>>|&>)").match(self.source, self.at)
        if match is None or self.source.startswith(("<(", ">("), self.at):
            return False
        digits, operator = match.groups()
        if digits and operator.startswith("&"):
            return False
        if self.source.startswith(("<(", ">("), match.end() - 1) and operator in ("<", ">") and digits:
            raise NotUnderstoodError("a redirection is unclear")
        self.at = match.end()
        self._blanks()
        if self._peek() in ("", "\n", ";", "|", ")", "("):
            raise NotUnderstoodError("a redirection has no target")
        start = self.at
        target = self._word()
        if self.at == start:
            raise NotUnderstoodError("a redirection has no target")
        if operator in ("<<", "<<-"):
            if target.dynamic or target.glob:
                raise NotUnderstoodError("the end mark of a here-document is unclear")
            self._heredocs.append((target.text, target.quoted, operator == "<<-"))
        elif operator in ("<&", ">&") and re.fullmatch(r"\d+-?|-", target.text):
            pass
        elif operator == "<":
            command.redirects.append(Redirect("read", target))
        elif operator != "<<<":
            command.redirects.append(Redirect("write", target))
        elif target.dynamic:
            command.redirects.append(Redirect("read", Word("", pipe=True)))
        return True

    def _heredoc_bodies(self) -> None:
        for delimiter, quoted, stripped in self._heredocs:
            while True:
                if self.at >= len(self.source):
                    raise NotUnderstoodError("a here-document does not end")
                end = self.source.find("\n", self.at)
                end = len(self.source) if end < 0 else end
                line = self.source[self.at : end]
                self.at = min(end + 1, len(self.source))
                if (line.lstrip("\t") if stripped else line) == delimiter:
                    break
                if not quoted and re.search(r"[$`\\]", line):
                    raise NotUnderstoodError("a here-document contains expansions")
        self._heredocs.clear()

    def _no_open_heredoc(self) -> None:
        if self._heredocs:
            raise NotUnderstoodError("a here-document does not end")

    def _peek(self) -> str:
        return self.source[self.at : self.at + 1]

    def _word(self) -> Word:
        word = Word()
        first, brace = True, False
        while char := self._peek():
            if char in " \t" or (char in _OPERATOR_START and not self._process_substitution(word)):
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
                elif brace and (char == "," or self.source.startswith("..", self.at)):
                    raise NotUnderstoodError("it uses brace expansion")
                word.text += char
                self.at += 1
            first = False
        if self._peek() == "(":
            raise NotUnderstoodError("it defines a function, an array or an extended pattern")
        return word

    def _process_substitution(self, word: Word) -> bool:
        if not self.source.startswith(("<(", ">("), self.at):
            return False
        if word.text or word.quoted or word.dynamic:
            raise NotUnderstoodError("a process substitution is part of a word")
        start = self.at
        self.at += 2
        self._nested(")")
        word.text, word.pipe = self.source[start : self.at], True
        if self._peek() not in ("", " ", "\t", "\n", ";", "|", "&", ")"):
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
        while (char := self._peek()) != '"':
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
            raise NotUnderstoodError("it uses arithmetic")
        if rest.startswith("("):
            self.at += 2
            self._nested(")")
        elif rest.startswith("{"):
            match = re.compile(r"\$\{\w+\}").match(self.source, self.at)
            if match is None:
                raise NotUnderstoodError("it uses a parameter expansion")
            self.at = match.end()
        elif rest.startswith("["):
            raise NotUnderstoodError("it uses arithmetic")
        elif not quoted and rest[:1] in ("'", '"') and rest:
            raise NotUnderstoodError("it uses $-quoting")
        elif match := re.compile(r"\$(?:[A-Za-z_]\w*|[0-9@*#?$!-])").match(self.source, self.at):
            self.at = match.end()
        else:
            word.text += "$"
            self.at += 1
            return
        word.dynamic = True
        word.text += self.source[start : self.at]

    def _backticks(self, word: Word) -> None:
        start = self.at
        self.at += 1
        inner = ""
        while (char := self._peek()) != "`":
            if char == "":
                raise NotUnderstoodError("a backtick does not end")
            if char == "\\":
                # Inside double quotes one more level is removed: too subtle to judge.
                raise NotUnderstoodError("it has a backslash between backticks")
            inner += char
            self.at += 1
        self.at += 1
        parser = _Parser(inner, self.depth + 1)
        parser.list_until(None)
        self.commands += parser.commands
        word.dynamic = True
        word.text += self.source[start : self.at]
