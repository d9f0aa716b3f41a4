"""An edit that misses says what differs, and what it offers for the next try is in the file and fits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.errors import ToolError
from agent_tui.tools.builtin.edit import EditTool
from agent_tui.tools.files.edit_mismatch import LINES, SEARCHED, why_missing
from tests.support.every import every
from tests.support.tool_context import make_context

pytestmark = pytest.mark.quick

FILE = """\
import os


def greet(name: str) -> str:
\tif not name:
\t    return "nobody"
    return f"Hello, {name}"  # a caf\u00e9 \u2013 or two


def leave(name: str) -> str:
    return f"Bye, {name}"
"""


def offered(said: str) -> str:
    """The text that is offered, as the model would send it."""
    line = next(line for line in said.split("\n") if line.startswith("To change this"))
    return str(json.loads(line.partition("exactly: ")[2]))


@every(
    ("wanted", "reason", "exact"),
    [
        ("def leave(nmae: str) -> str:", 'the file has "def leave(name', "def leave(name: str) -> str:"),
        (
            '10\tdef leave(name: str) -> str:\n11\t    return f"Bye, {name}"\n',
            "line numbers",
            FILE[FILE.index("def leave") :],
        ),
        ("    4→def greet(name: str) -> str:", "line numbers", "def greet(name: str) -> str:"),
        (
            "def greet(name: str) -> str:\n    if not name:",
            "white space",
            "def greet(name: str) -> str:\n\tif not name:",
        ),
        ("return “nobody”", "Quotes, dashes or spaces", 'return "nobody"'),
        ("# a café - or two", "Quotes, dashes or spaces", "# a café \u2013 or two"),
        ("# a cafe\u0301 \u2013 or two", "Accents", "# a café \u2013 or two"),
        ('return f\\"Bye, {name}\\"', "escaped once too often", 'return f"Bye, {name}"'),
        ('\treturn f"Hello, {name}"', "Only white space", '    return f"Hello, {name}"'),
        ('    return f"Bye, {name}"\n\n\n', "line breaks around it", '    return f"Bye, {name}"'),
        ("DEF  leave(NAME: str)", "case differ", "def leave(name: str)"),
    ],
)
def test_what_differs_is_named_and_the_exact_text_offered(wanted: str, reason: str, exact: str) -> None:
    said = why_missing(FILE, wanted)
    assert reason in said.split("\n")[0]
    assert offered(said) == exact and exact in FILE
    line = FILE[: FILE.index(exact)].count("\n") + 1
    assert f"\n{line}\t" in said


def test_mixed_line_ends_are_told_apart() -> None:
    text = "one\r\ntwo\nthree\r\n"
    said = why_missing(text, "one\ntwo\n")
    assert said.startswith("The line ends differ") and offered(said) == "one\r\ntwo\n" and "\r" not in said


@every("text", ["a\u00a0b", "a\u200bb c", "cafe\u0301", "a\u2003b", "\ufeffa b"])
def test_what_cannot_be_seen_is_offered_as_its_number(text: str) -> None:
    said = why_missing(
        f"{text}\n", text.translate({0x00A0: " ", 0x200B: None, 0x0301: None, 0x2003: " ", 0xFEFF: None})
    )
    line = next(line for line in said.split("\n") if line.startswith("To change this"))
    assert line.isascii() and offered(said) in text


def test_nothing_near_is_said_so() -> None:
    assert why_missing(FILE, "class Completely: different = True").startswith("Nothing like it is in the file: read")
    assert why_missing("", "x").startswith("Nothing like it")
    assert why_missing("\n\n\n", "   ").startswith("Nothing like it")


def test_a_long_miss_is_short_and_of_a_large_file_only_the_beginning_is_looked_at() -> None:
    lines = [f"value_{n} = {n}" for n in range(200)]
    wanted = "\n".join(lines).replace("value_7 ", "valve_7 ")
    said = why_missing("\n".join(lines), wanted)
    assert len(said.split("\n")) < LINES + 6 and "Read lines 1-200" in said and "valve_7" in said
    assert why_missing("x = 1\n" * SEARCHED, "unlike anything").startswith("Nothing like it")


def test_hostile_content_does_not_act() -> None:
    said = why_missing("a\x1b]0;owned\x07 = 1  \u202e\nb = 2\n", "a\x1b]0;owned\x07 = 1 \u202e")
    assert "\x1b" not in said and "\x07" not in said
    assert offered(said) == "a\x1b]0;owned\x07 = 1  \u202e"
    assert "not UTF-8" in why_missing("caf\udcff  au lait\n", "caf\udcff au lait")


@settings(max_examples=150, deadline=None)
@given(st.text('ab \t\n\r“"-–é', max_size=60), st.text('ab \t\n\r“"-–é\\', max_size=20))
def test_whatever_is_offered_is_in_the_file(text: str, wanted: str) -> None:
    said = why_missing(text, wanted)
    if "exactly: " in said:
        assert offered(said) in text


async def test_the_offer_is_taken_by_edit(tmp_path: Path) -> None:
    context = make_context(tmp_path / "project")
    file = context.root / "a.py"
    file.write_bytes(FILE.encode())
    with pytest.raises(ToolError) as missed:
        await EditTool().run(
            {"path": "a.py", "edits": [{"old_string": "\tif  not name :\n", "new_string": "x"}]}, context
        )
    assert "Nothing was changed" in str(missed.value) and file.read_text() == FILE
    edits = [{"old_string": offered(str(missed.value)), "new_string": "\tif True:\n"}]
    await EditTool().run({"path": "a.py", "edits": edits}, context)
    assert "\tif True:\n\t    return" in file.read_text()


async def test_an_edit_that_was_made_before_is_recognized(tmp_path: Path) -> None:
    context = make_context(tmp_path / "project")
    (context.root / "a.py").write_text(FILE)
    edits = [{"old_string": 'return "no one"', "new_string": 'return "nobody"'}]
    with pytest.raises(ToolError, match="new_string stands in line 6 already"):
        await EditTool().run({"path": "a.py", "edits": edits}, context)
