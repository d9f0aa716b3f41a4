"""Everything that is written to a terminal beside the screen: it is cleaned, so that it cannot drive the terminal.

Every line of the command line, of a run without a screen and of the program's end is printed here. File names, titles,
keys and models' words may hold escape sequences; a terminal acts upon those wherever they come from.
"""

from __future__ import annotations

import sys
from typing import IO, Any

from agent_tui.text.clean import CONTROLS, clean, clean_line
from agent_tui.text.secrets import without_keys


def say(text: str = "") -> None:
    """A line, or several, on standard output: data."""
    write(sys.stdout, clean(text) + "\n")


def say_json(value: Any) -> None:
    """A value as JSON on standard output; ASCII, so that nothing in it needs cleaning."""
    import json  # not before the first frame

    write(sys.stdout, json.dumps(value, indent=2, ensure_ascii=True) + "\n")


def tell(text: str) -> None:
    """A line on standard error: narration. Nothing is raised when nobody can read it."""
    try:
        write(sys.stderr, without_keys(clean(text), fields=False) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return


def complain(text: str) -> None:
    """Says what went wrong, in one line on standard error, with the program's name."""
    tell(f"agent-tui: {clean_line(text)}")


def write(stream: IO[str], text: str) -> None:
    """Text for a stream that may be a terminal. A carriage return is dropped: text that comes in pieces may have its
    line feed in the next one."""
    stream.write(text.replace("\r", "").translate(CONTROLS))


def step(stream: IO[str], back: int, text: str, after: int) -> None:
    """Goes back so many cells in a line that is typed, writes ``text`` there, and goes back again."""
    stream.write("\b" * back)
    write(stream, text)
    stream.write("\b" * after)


def ring(stream: IO[str]) -> None:
    """The bell."""
    stream.write("\a")


def ask(question: str) -> str:
    """The user's answer to a question on the terminal."""
    return input(clean(question))


def ask_secret(question: str) -> str:
    """The same without showing what is typed."""
    from getpass import getpass

    return getpass(clean(question))
