"""An edit whose text fits exactly one place but for white space, quotes or dashes is made there, and said."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.errors import ToolError
from agent_tui.tools.builtin.edit import EditTool
from agent_tui.tools.files.near import near_matches
from tests.support.every import every
from tests.support.tool_context import make_context

pytestmark = pytest.mark.quick

FILE = """\
import os


def greet(name: str) -> str:
\tif not name:
\t    return "nobody"
    return f"Hello, {name}"  # a caf\u00e9 \u2013 or two


class Leaving:
    def leave(self, name: str) -> str:
        return f"Bye, {name}"
"""


@every(
    ("old", "new", "lines", "differs"),
    [
        (
            '\treturn f"Hello, {name}"',
            '\treturn f"Hi, {name}"',
            ('    return f"Hello', '    return f"Hi'),
            "white space",
        ),
        ("# a café - or two", "# one", ("# a café \u2013 or two", "# one"), "quotes or dashes"),
        ("return “nobody”", "return None", ('return "nobody"', "return None"), "quotes or dashes"),
        ("not name:  \n", "name:\n", ("not name:\n", "name:\n"), "white space"),
        ("import  os\n", "import re\n", ("import os\n", "import re\n"), "white space"),
        (
            '11\t    def leave(self, name: str) -> str:\n12\t        return f"Bye, {name}"\n',
            "11\t    def leave(self) -> None:\n12\t        pass\n",
            (FILE[FILE.index("    def leave") :], "    def leave(self) -> None:\n        pass\n"),
            "the line numbers of read",
        ),
        (
            'def leave(self, name: str)  -> str:\n    return f"Bye, {name}"\n',
            "def leave(self) -> None:\n    if self:\n        pass\n",
            (FILE[FILE.index("    def leave") :], "    def leave(self) -> None:\n        if self:\n            pass\n"),
            "white space",
        ),
    ],
)
async def test_what_fits_one_place_is_made_and_said(
    tmp_path: Path, old: str, new: str, lines: tuple[str, str], differs: str
) -> None:
    context = make_context(tmp_path / "project")
    file = context.root / "a.py"
    file.write_bytes(FILE.encode())
    outcome = await EditTool().run({"path": "a.py", "edits": [{"old_string": old, "new_string": new}]}, context)
    assert file.read_bytes().decode() == FILE.replace(*lines)
    line = FILE[: FILE.index(lines[0])].count("\n") + 1
    assert outcome.text == f"Edited a.py: 1 replacement. [old_string fits only line {line}, but for {differs}]"


@every(
    ("text", "old", "new", "why"),
    [
        ("a  b\na   b\n", "a b", "c", "It fits in several places but for white space: add surrounding lines."),
        ("x = 1\n", "y = 1", "z", "Read it again"),
        ("\tif a:\n\t\tb()\n", "    if a:\n        b()", "    if c:\n            d()", "Read it again"),
        ("  a\n    b\n", "a \n a", "c", "Read it again"),
        ("\n\n\n", "   ", "x", "Read it again"),
    ],
)
async def test_what_fits_nowhere_or_twice_is_left(tmp_path: Path, text: str, old: str, new: str, why: str) -> None:
    context = make_context(tmp_path / "project")
    (context.root / "a").write_text(text)
    with pytest.raises(ToolError) as missed:
        await EditTool().run({"path": "a", "edits": [{"old_string": old, "new_string": new}]}, context)
    assert str(missed.value).startswith("old_string is not in a. Nothing was changed.") and why in str(missed.value)
    assert (context.root / "a").read_text() == text


async def test_line_ends_of_both_kinds_stay(tmp_path: Path) -> None:
    context = make_context(tmp_path / "project")
    (context.root / "a").write_bytes(b"one\r\ntwo  \r\nthree\nfour\n")
    edits = [{"old_string": "one\ntwo\n", "new_string": "1\n2\n"}]
    await EditTool().run({"path": "a", "edits": edits}, context)
    assert (context.root / "a").read_bytes() == b"1\r\n2\r\nthree\nfour\n"


@settings(max_examples=200, deadline=None)
@given(st.text('ab \t\n“"-–', max_size=60), st.text('ab \t\n“"-–', min_size=1, max_size=20))
def test_a_place_is_in_the_file_and_has_the_same_words(text: str, old: str) -> None:
    for match in near_matches(text, old, "new"):
        there = text[match.start : match.end].replace("“", '"').replace("–", "-").split()
        assert there == old.replace("“", '"').replace("–", "-").split()


async def test_an_edit_that_was_made_before_is_recognized(tmp_path: Path) -> None:
    context = make_context(tmp_path / "project")
    (context.root / "a.py").write_text(FILE)
    edits = [{"old_string": 'return "no one"', "new_string": 'return "nobody"'}]
    with pytest.raises(ToolError, match="new_string stands in line 6 already"):
        await EditTool().run({"path": "a.py", "edits": edits}, context)
