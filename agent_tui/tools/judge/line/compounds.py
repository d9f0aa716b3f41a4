"""Loops, conditions and case statements: where they begin and end. That all of their words stand where they should is
left to the shell, which runs nothing of a statement that is wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from agent_tui.tools.judge.line.syntax import NotUnderstoodError, Word
from agent_tui.tools.judge.line.values import MAX_ROUNDS, Values
from agent_tui.tools.judge.line.word_reader import OPERATOR_START, WordReader
from agent_tui.tools.word_sets import word_set

_COMPARED = word_set("! ( ) && || < > == = != -a -o -z -n -e -f -d -r -w -x -s -L -h -nt -ot -ef -b -c -p -S")


@dataclass(slots=True)
class _Loop:
    """A loop that is being read. ``values`` are those of its variable ``name`` that are still to be gone through;
    its body begins at ``start``."""

    name: str = ""
    values: list[Word] = field(default_factory=list)
    start: int = 0


class Compounds:
    """What is open around the place where ``reader`` stands."""

    def __init__(self, reader: WordReader) -> None:
        self.reader = reader
        self._loops: list[_Loop] = []
        self._cases = self._groups = 0

    @property
    def open(self) -> bool:
        """Whether what comes next may be run again, or not at all."""
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
        """``for NAME in WORDS``: the words may run commands. Names in capitals may be settings of programs
        (``PATH``)."""
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
