"""The one door to a terminal for everything that is not the screen: what goes through it cannot drive a terminal.

Every line of the command line, of a run without a screen and of the program's end is printed here. File names, titles,
keys and models' words may hold escape sequences; a terminal acts upon those wherever they come from.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import IO, Any

CONTROLS: dict[int, int | None] = {c: None for c in (*range(0x20), 0x7F, *range(0x80, 0xA0)) if c not in (0x09, 0x0A)}
CONTROLS.update(dict.fromkeys((1564, 8206, 8207, *range(8234, 8239), *range(8294, 8298), 65279)))
CONTROLS.update(dict.fromkeys(range(55296, 57344), 65533))
"""What a terminal acts upon, or what turns the direction of text, as a table for ``str.translate``."""


def clean(text: str) -> str:
    """Text without control characters, direction overrides and lone surrogates; newlines and tabs stay."""
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(CONTROLS)


def line_of(text: str) -> str:
    """Cleaned text on one line: a name with a line break must not look like two of them."""
    return clean(text).replace("\n", "␊").replace("\t", " ")


def say(text: str = "") -> None:
    """A line, or several, on standard output: data."""
    write(sys.stdout, clean(text) + "\n")


def say_json(value: Any) -> None:
    """A value as JSON on standard output; ASCII, so that nothing in it needs cleaning."""
    write(sys.stdout, json.dumps(value, indent=2, ensure_ascii=True) + "\n")


def tell(text: str) -> None:
    """A line on standard error: narration. Nothing is raised when nobody can read it."""
    try:
        write(sys.stderr, clean(text) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return


def complain(text: str) -> None:
    """What went wrong, in one line on standard error, with the program's name."""
    tell(f"agent-tui: {line_of(text)}")


def write(stream: IO[str], text: str) -> None:
    """Text for a stream that may be a terminal. A carriage return is dropped: text that comes in pieces may have its
    line feed in the next one."""
    stream.write(text.replace("\r", "").translate(CONTROLS))


def ask(question: str) -> str:
    """The user's answer to a question on the terminal."""
    return input(clean(question))


def ask_secret(question: str) -> str:
    """The same without showing what is typed."""
    from getpass import getpass

    return getpass(clean(question))


class Parser(argparse.ArgumentParser):
    """argparse repeats arguments in its errors."""

    def _print_message(self, message: str, file: Any = None) -> None:
        if message:
            write(file or sys.stderr, message)
