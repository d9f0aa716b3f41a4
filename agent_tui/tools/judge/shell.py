"""Takes a shell command apart into the simple commands it would run. What is not fully understood is refused.

This is not a shell: it answers one question, "which programs with which words, and which files are written", and it
answers only where the answer is certain. Functions, arrays and the rarer expansions raise ``NotUnderstoodError``, and
the user is asked. A loop over a few words is gone through word by word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import field, replace

from agent_tui.records import dataclass
from agent_tui.tools.judge.syntax import MAX_ROUNDS, NOTHING, NotUnderstoodError, Redirect, SimpleCommand, Values, Word
from agent_tui.tools.judge.word_reader import OPERATOR_START, WordReader
from agent_tui.tools.word_sets import word_set

_COMPARED = word_set("! ( ) && || < > == = != -a -o -z -n -e -f -d -r -w -x -s -L -h -nt -ot -ef -b -c -p -S")


@dataclass(slots=True)
class _Loop:
    """A loop that is read: its variable ``name``, its ``values`` still to come, and where its body begins."""

    name: str = ""
    values: list[Word] = field(default_factory=list)
    start: int = 0


class Compounds:
    """The compound commands that are open around the place where ``reader`` stands."""

    def __init__(self, reader: WordReader) -> None:
        self.reader = reader
        self._loops: list[_Loop] = []
        self._cases = self._groups = 0

    @property
    def open(self) -> bool:
        """True when what comes next may be run again, or not at all."""
        return bool(self._loops or self._cases or self._groups)

    def begin(self, word: str) -> None:
        """``while``, ``if`` and their kind, which are followed by commands."""
        if word in ("while", "until"):
            self._loops.append(_Loop())
        elif word in ("if", "{"):
            self._groups += 1

    def keyword(self) -> str:
        """The word ahead, when it is plain letters or signs up to a blank, a line's end or an operator."""
        reader = self.reader
        match = re.compile(r"(?:[a-z]+|\[\[|[{}!])(?=[\s;&|()<>]|$)").match(reader.source, reader.at)
        return match.group() if match else ""

    def for_loop(self) -> None:
        """``for NAME in WORDS``, which may run commands. Names in capitals may be settings of programs (``PATH``)."""
        reader = self.reader
        match = re.compile(r"[ \t]+(?!\w*_proxy)([a-z][a-z0-9_]*)[ \t]+in(?=[ \t;\n])").match(reader.source, reader.at)
        if match is None:
            raise NotUnderstoodError("it uses an unusual loop")
        reader.at = match.end()
        found: list[Word] = []
        while True:
            reader.blanks()
            char = reader.peek()
            if char in ("", ";", "\n"):
                break
            if char in OPERATOR_START and not reader.ahead("<(", ">("):
                raise NotUnderstoodError("it uses an unusual loop")
            start = reader.at
            found += reader.words()
            if reader.at == start:
                raise NotUnderstoodError("it uses an unusual loop")
        loop = _Loop(match[1], start=reader.at)
        self._loops.append(loop)
        if len(found) <= MAX_ROUNDS and all(Values.usable(word) for word in found):
            loop.values = found
        if loop.values:
            reader.values.note(loop.name, loop.values.pop(0))

    def case(self) -> None:
        """``case WORD in``, and the first pattern. Which of the parts is run is not looked at: all are."""
        reader = self.reader
        reader.blanks()
        start = reader.at
        reader.word()
        reader.blanks()
        match = re.compile(r"(\n\s*)?in(?=\s)").match(reader.source, reader.at)
        if reader.at == start or match is None:
            raise NotUnderstoodError("it uses an unusual case statement")
        reader.at = match.end()
        self._cases += 1
        self._pattern()

    def next_case(self) -> None:
        reader = self.reader
        if not self._cases:
            raise NotUnderstoodError("';;' is not expected here")
        reader.at += 3 if reader.ahead(";;&") else 2
        self._pattern()

    def _pattern(self) -> None:
        """``a|b)``, behind ``in`` and ``;;``; not before ``esac``."""
        reader = self.reader
        reader.no_open_heredoc()
        reader.blanks()
        while reader.peek() == "\n":
            reader.at += 1
            reader.blanks()
        if self.keyword() == "esac":
            return
        reader.at += reader.ahead("(")
        while True:
            reader.blanks()
            start = reader.at
            if reader.word().pipe or reader.at == start:
                raise NotUnderstoodError("it uses an unusual case statement")
            reader.blanks()
            sign = reader.peek()
            reader.at += 1
            if sign == ")":
                return
            if sign != "|":
                raise NotUnderstoodError("it uses an unusual case statement")

    def condition(self) -> None:
        """``[[ … ]]``: nothing is started but by substitutions. Comparing numbers evaluates values, which may be
        subscripts with commands in them; patterns may hold operators."""
        reader = self.reader
        while True:
            reader.blanks()
            operator = re.compile(r"&&|\|\||[()<>\n]").match(reader.source, reader.at)
            if operator and not reader.ahead("<(", ">("):
                reader.at = operator.end()
                continue
            start = reader.at
            word = reader.word()
            raw = reader.source[start : reader.at]
            if raw == "]]":
                return
            if not raw or (raw.startswith("-") and raw not in _COMPARED) or raw == "=~":
                raise NotUnderstoodError("it uses a condition that is not plain")
            if word.pipe:
                raise NotUnderstoodError("it uses a condition that is not plain")

    def close(self, word: str) -> bool:
        """The end of one; False where a loop begins another round."""
        reader = self.reader
        if word == "done" and self._loops:
            loop = self._loops[-1]
            if loop.values:
                reader.no_open_heredoc()
                reader.values.note(loop.name, loop.values.pop(0))
                reader.at = loop.start
                return False
            self._loops.pop()
            reader.values.forget(loop.name)
        elif word == "esac" and self._cases:
            self._cases -= 1
        elif word in ("fi", "}") and self._groups:
            self._groups -= 1
        return True


MAX_LENGTH = 50_000

_RESERVED = word_set("select function coproc ]]")
_OPENING = word_set("if then else elif while until do { ! time")
_CLOSING = word_set("fi done } esac")
_KEYWORDS = _OPENING | _CLOSING | {"[[", "for", "case"}
MAX_COMMANDS = 2_000
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(\[[^\]]*\])?\+?=")


def parse_command(source: str, given: Mapping[str, str] = NOTHING) -> list[SimpleCommand]:
    """All simple commands of ``source`` in order, those of substitutions and subshells included. ``given`` are the
    variables whose values are certain when it starts. Raises NotUnderstoodError."""
    if len(source) > MAX_LENGTH:
        raise NotUnderstoodError("the command is very long")
    for char in source:
        if char not in "\n\t" and (ord(char) < 32 or ord(char) == 127 or (not char.isascii() and _unseen(char))):
            raise NotUnderstoodError("it contains a control character, an invisible one or an unusual space")
    if re.search(r"[^ \t]\\\n", source):
        # The shell joins such lines before it looks at them, so an operator may be spread over two.
        raise NotUnderstoodError("a line is continued in the middle of a word")
    reader = WordReader(source, 0, 0, [], Values(source, given), _read_commands)
    _read_commands(reader, None)
    return reader.commands


def _read_commands(reader: WordReader, closing: str | None) -> None:
    _Statements(reader).list_until(closing)


def _unseen(char: str) -> bool:
    return char.isspace() or unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")


class _Statements:
    """``_certain``: what comes next is run in any case, by this shell itself."""

    def __init__(self, reader: WordReader) -> None:
        self.reader = reader
        self._compounds = Compounds(reader)
        self._certain, self._joined = True, False

    def list_until(self, closing: str | None) -> None:
        """Reads commands up to ``closing`` (which is consumed) or the end of the source."""
        reader = self.reader
        while True:
            reader.blanks()
            char = reader.peek()
            if char == "":
                if closing is not None:
                    raise NotUnderstoodError(f"a {closing!r} is missing")
                reader.no_open_heredoc()
                return
            if char == closing:
                reader.no_open_heredoc()
                reader.at += 1
                return
            if char == "\n":
                reader.at += 1
                self._certain = self._certain or not self._joined
                self._heredoc_bodies()
            elif char in ";&|":
                if reader.ahead(";;", ";&"):
                    self._compounds.next_case()
                elif reader.ahead("&>"):
                    self._simple()
                else:
                    self._certain = char == ";"
                    self._joined = char != ";"
                    reader.at += 1
            elif char == "(":
                if reader.ahead("(("):
                    raise NotUnderstoodError("it uses arithmetic")
                reader.at += 1
                reader.inside(")")
                self._after_subshell()
            elif char == ")":
                raise NotUnderstoodError("a parenthesis does not match")
            else:
                self._simple()

    def _after_subshell(self) -> None:
        """A subshell may be redirected as a whole."""
        reader = self.reader
        command = SimpleCommand()
        while True:
            reader.blanks()
            if not self._redirect(command):
                break
        if command.redirects:
            self._append(command)
        if reader.peek() not in ("", "\n", ";", "&", "|", ")"):
            raise NotUnderstoodError("something follows the end of a group")

    def _simple(self) -> None:
        reader = self.reader
        self._joined = False
        command = SimpleCommand()
        begin = reader.at
        while True:
            reader.blanks()
            if self._redirect(command):
                continue
            char = reader.peek()
            if char == "(":
                raise NotUnderstoodError("it defines a function or an array")
            if reader.at == begin and (keyword := self._compounds.keyword()) in _KEYWORDS:
                self._keyword(keyword)
                return
            if char == "" or (char in OPERATOR_START and not reader.ahead("<(", ">(")):
                break
            start = reader.at
            assigned = not command.words and _ASSIGNMENT.match(reader.source, start) is not None
            found = [reader.word()] if assigned else reader.words()
            raw = reader.source[start : reader.at]
            if "\n" in raw:
                reader.no_open_heredoc()
            if assigned:
                if "[" in raw.partition("=")[0]:
                    raise NotUnderstoodError("it assigns to an array")
                command.assignments += found
                continue
            for word in found:
                if not command.words and not word.quoted and word.text in _RESERVED | _KEYWORDS:
                    raise NotUnderstoodError(f"it uses the shell keyword {word.text}")
                command.words.append(word)
        if reader.at == begin:
            raise NotUnderstoodError(f"{reader.peek()!r} is not expected here")
        self._append(command)

    def _append(self, command: SimpleCommand) -> None:
        reader = self.reader
        if len(reader.commands) >= MAX_COMMANDS:
            raise NotUnderstoodError("it runs very many commands")
        reader.commands.append(command)
        alone = not command.words and not command.redirects and len(command.assignments) == 1
        inner = reader.depth or self._compounds.open
        here = not re.compile(r"\|(?!\|)|&(?!&)").match(reader.source, reader.at)
        if alone and not inner and here and self._certain:
            word = command.assignments[0]
            name, _, value = word.text.partition("=")
            if name.isidentifier():
                reader.values.note(name, replace(word, text=value))
        if alone and command.assignments[0].dynamic:
            name, _, value = command.assignments[0].text.partition("=")
            if name.isidentifier():
                reader.values.note_made(name, value)

    def _keyword(self, word: str) -> None:
        """A word of a loop or a condition. That all of them stand where they should is left to the shell, which runs
        nothing of a statement that is wrong."""
        reader = self.reader
        reader.at += len(word)
        if word == "for":
            self._compounds.for_loop()
        elif word == "[[":
            self._compounds.condition()
            self._after_subshell()
        elif word == "case":
            self._compounds.case()
        elif word in _CLOSING:
            if self._compounds.close(word):
                self._after_subshell()
        elif word == "time":
            reader.blanks()
            if re.compile(r"-p\s").match(reader.source, reader.at):
                reader.at += 2
        else:
            self._compounds.begin(word)

    def _redirect(self, command: SimpleCommand) -> bool:
        reader = self.reader
        match = re.compile(r"(\d*)(<<<|<<-|<<|<>|<&|<|>>|>\||>&|>|&>>|&>)").match(reader.source, reader.at)
        if match is None or reader.ahead("<(", ">("):
            return False
        digits, operator = match.groups()
        if digits and operator.startswith("&"):
            return False
        if reader.source.startswith(("<(", ">("), match.end() - 1) and operator in ("<", ">") and digits:
            raise NotUnderstoodError("a redirection is unclear")
        reader.at = match.end()
        reader.blanks()
        if reader.peek() in ("", "\n", ";", "|", ")", "("):
            raise NotUnderstoodError("a redirection has no target")
        start = reader.at
        target = reader.word()
        if reader.at == start:
            raise NotUnderstoodError("a redirection has no target")
        if operator in ("<<", "<<-"):
            if target.dynamic or target.glob:
                raise NotUnderstoodError("the end mark of a here-document is unclear")
            reader.heredocs.append((target.text, target.quoted, operator == "<<-"))
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
        reader = self.reader
        for delimiter, quoted, stripped in reader.heredocs:
            lines: list[str] = []
            while True:
                if reader.at >= len(reader.source):
                    raise NotUnderstoodError("a here-document does not end")
                end = reader.source.find("\n", reader.at)
                end = len(reader.source) if end < 0 else end
                line = reader.source[reader.at : end]
                reader.at = min(end + 1, len(reader.source))
                if (line.lstrip("\t") if stripped else line) == delimiter:
                    break
                lines.append(line)
                if not quoted and line.endswith("\\"):
                    raise NotUnderstoodError("a line of a here-document is continued")
            if not quoted:
                reader.body("\n".join(lines))
        reader.heredocs.clear()
