"""Takes the words of a program apart by what is known of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from agent_tui.tools.judge.line.syntax import NotUnderstoodError, Word
from agent_tui.tools.judge.programs.specs import Spec


@dataclass(slots=True)
class Reading:
    """What a program that only looks would do: ``paths`` are read, ``written`` changed. ``walks``: whatever is below
    the folders among them is read, ``follows``: links in them too. ``held`` says why it is sure to only look where
    the system holds it; empty where it is sure anyway. ``unseen``: because it may read what is not named here.
    ``contents``: git shows what is in files, of now or of any time."""

    paths: list[Word] = field(default_factory=list)
    written: list[Word] = field(default_factory=list)
    walks: bool = False
    follows: bool = False
    held: str = ""
    unseen: bool = False
    contents: Literal["", "tree", "history"] = ""


class UnknownOptionError(Exception):
    """It has an option that may do anything; the text is the option."""


@dataclass(slots=True)
class _State:
    reading: Reading
    operands: list[Word]
    pattern: bool = False


def read_arguments(spec: Spec, arguments: list[Word]) -> Reading:
    """Raises UnknownOptionError, and NotUnderstoodError where a value decides that is only known when it runs."""
    state = _State(Reading(walks=spec.walks, follows=spec.links), [])
    if spec.held:
        state.reading.held = "it tells of the environment"
    at, options = 0, True
    while at < len(arguments):
        word = arguments[at]
        at += 1
        if not options or word.text in ("", "-") or not word.text.startswith("-"):
            state.operands.append(word)
        elif word.text == "--":
            options = False
        elif word.dynamic or word.glob:
            raise NotUnderstoodError("an option is only known when it runs")
        else:
            at += _option(spec, state, word, arguments[at] if at < len(arguments) else None)
    _operands(spec, state)
    return state.reading


def _option(spec: Spec, state: _State, word: Word, following: Word | None) -> int:
    """Notes one word of options; 1 when the following word is its value."""
    if word.text.startswith("--"):
        name, equals, value = word.text.partition("=")
        sign = spec.options.get(name)
        if sign is None or (equals and sign in ("", "%", "+", "~")):
            raise UnknownOptionError(word.text)
        given = Word(value, quoted=True) if equals else None
        return _note(state, name, sign, given, following)
    if spec.number and re.fullmatch(r"-\d+(\.\d+)?", word.text):
        return 0
    for position, letter in enumerate(word.text[1:], 2):
        sign = spec.options.get(f"-{letter}")
        if sign is None:
            raise UnknownOptionError(word.text)
        rest = word.text[position:]
        if sign and sign in ":<>^":
            return _note(state, f"-{letter}", sign, Word(rest, quoted=True) if rest else None, following)
        _note(state, f"-{letter}", sign, None, None)
    return 0


def _note(state: _State, name: str, sign: str, given: Word | None, following: Word | None) -> int:
    reading = state.reading
    reading.walks = reading.walks or (sign in ("+", "~") and sign != "")
    reading.follows = reading.follows or sign == "~"
    state.pattern = state.pattern or (sign in ("^", "%") and sign != "") or name in ("-f", "--file")
    if not sign or sign in "?%+~":
        return 0
    value = given or following
    if value is None:
        raise UnknownOptionError(f"{name} without a value")
    if sign == "<":
        reading.paths.append(value)
    elif sign == ">":
        reading.written.append(value)
    elif value.glob:
        # What it becomes decides which of the words after it are files.
        raise NotUnderstoodError("an option's value is a file pattern")
    return int(given is None)


def _operands(spec: Spec, state: _State) -> None:
    operands = state.operands
    # An operand that becomes several words shifts the ones after it, and may become an option.
    if any(word.dynamic and not word.quoted for word in operands):
        state.reading.held, state.reading.unseen = "a value is only known when it runs", True
    match spec.operands:
        case "NONE":
            if operands:
                raise UnknownOptionError(operands[0].text)
        case "TEXT":
            pass
        case "ONE":
            if len(operands) > 1 or any(word.glob for word in operands):
                raise UnknownOptionError("a second file")
            state.reading.paths += operands
        case "PATTERN":
            if not state.pattern and operands:
                if operands[0].glob:
                    raise NotUnderstoodError("a search pattern is not quoted")
                operands = operands[1:]
            state.reading.paths += operands
        case _:
            state.reading.paths += operands
    if state.reading.walks and not state.reading.paths:
        state.reading.paths.append(Word("."))
