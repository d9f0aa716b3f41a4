from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.errors import ToolError
from agent_tui.text.clean import pictured, program_output
from agent_tui.tools.output import Collector, cap
from tests.support.every import every
from tests.support.tool_context import fill_disk

pytestmark = pytest.mark.quick


@every(
    ("raw", "cleaned"),
    [
        ("a\x1b[1;31mb\x1b[0m", "ab"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;javascript:alert(1)\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;ZXZpbA==\x07x", "x"),
        ("\x1bP+q544e\x1b\\x", "x"),
        ("\x9b31mx\x9d0;t", "x0;t"),
        ("\x1b(Bx\x1b=\x1b7", "x"),
        ("a\0b\x08c\x7f", "abc"),
        ("1%\r2%\r3%\ndone\r\n", "3%\ndone\n"),
        ("\x1b]unfinished\nnext", "\nnext"),
        ("tab\tstays", "tab\tstays"),
    ],
)
def test_terminal_output_becomes_text(raw: str, cleaned: str) -> None:
    assert program_output(raw) == cleaned


@given(st.text(alphabet="ab\x1b[]m;0\x07\\\n\r\x9b\x9dP\0"))
def test_nothing_that_controls_a_terminal_is_left(raw: str) -> None:
    for text in (program_output(raw), pictured(raw)):
        assert all(char in "\n\t" or not (ord(char) < 32 or 127 <= ord(char) < 160) for char in text)


@given(st.lists(st.text(max_size=300), max_size=20))
def test_pieces_make_no_difference(tmp_path_factory: pytest.TempPathFactory, pieces: list[str]) -> None:
    folder = tmp_path_factory.getbasetemp() / "spill"
    collector = Collector(500, folder, "x")
    for piece in pieces:
        collector.feed(piece)
    whole = "".join(pieces)
    capped, once = collector.take(), cap(whole, 500, folder, "x")
    assert capped.text.replace(str(capped.path), "") == once.text.replace(str(once.path), "")
    assert capped.characters == len(whole)
    if len(whole) <= 500:
        assert (capped.text, capped.path) == (whole, None)
    else:
        assert capped.path is not None and whole[:250] in capped.text and whole[-250:] in capped.text
        expected = whole.encode("utf-8", "replace").decode()
        assert capped.path.read_bytes().decode() == expected


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("size", [600, 100_000])
def test_a_disk_that_is_full_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    fill_disk(monkeypatch)
    with pytest.raises(ToolError, match="No space"):
        cap("x" * size, 500, tmp_path, "x")
    collector = Collector(500, tmp_path, "x")
    with pytest.raises(ToolError, match="No space"):
        collector.feed("x" * size)
        collector.close()
    collector.close()


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolError, match="could not be saved"):
        cap("x" * 1000, 500, tmp_path / "file", "x")
