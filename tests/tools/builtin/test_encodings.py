"""Files that are not UTF-8: read as what they are, changed in their own encoding, or not at all."""

from __future__ import annotations

import codecs
import json
from pathlib import Path

import pytest

from agent_tui.errors import ToolError
from agent_tui.tools.base import ToolContext
from agent_tui.tools.builtin.edit import ApplyPatchTool, EditTool, WriteTool
from agent_tui.tools.builtin.read import ReadTool
from agent_tui.tools.files.encodings import Encoding, encoding_of
from tests.support.tool_context import make_context

FRENCH = "L'été, où le garçon a mangé des crêpes.\nDéjà vu, naïf, à côté.\nfin\n"
JAPANESE = "これは日本語のテキストです。\n文字コードを確認します。\nfin\n"

ENCODINGS = {
    "Windows-1252": (FRENCH, b"", "cp1252"),
    "Windows-1252 with its own signs": ("“Oui” — € 5…\nd’été\nfin\n", b"", "cp1252"),
    "UTF-16 LE": (FRENCH, codecs.BOM_UTF16_LE, "utf-16-le"),
    "UTF-16 BE": (FRENCH, codecs.BOM_UTF16_BE, "utf-16-be"),
    "UTF-16 LE without a mark": (FRENCH, b"", "utf-16-le"),
    "UTF-32 LE": (FRENCH, codecs.BOM_UTF32_LE, "utf-32-le"),
    "Shift-JIS": (JAPANESE, b"", "cp932"),
    "EUC-JP": (JAPANESE, b"", "euc_jp"),
    "ISO-2022-JP": (JAPANESE, b"", "iso2022_jp"),
    "GB18030": ("这是一个中文文件，用来测试编码。\n第二行。\nfin\n", b"", "gb18030"),
    "Big5": ("這是一個中文檔案，用來測試編碼。\n第二行。\nfin\n", b"", "big5"),
    "EUC-KR": ("이것은 한국어 파일입니다.\n둘째 줄입니다.\nfin\n", b"", "euc_kr"),
    "Windows-1251": ("Это русский текст.\nВторая строка текста.\nfin\n", b"", "cp1251"),
    "KOI8-R": ("Это русский текст.\nВторая строка текста.\nfin\n", b"", "koi8-r"),
    "iso8859-2": ("# coding: iso-8859-2\nZażółć gęślą jaźń\nfin\n", b"", "iso8859-2"),
}

every = pytest.mark.parametrize("name", ENCODINGS)


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return make_context(tmp_path / "project")


def put(context: ToolContext, name: str, ends: str = "\n") -> Path:
    text, mark, codec = ENCODINGS[name]
    path = context.root / "a.txt"
    path.write_bytes(mark + text.replace("\n", ends).encode(codec))
    return path


@pytest.mark.quick
@every
async def test_read_shows_the_text_and_says_what_it_took_it_for(context: ToolContext, name: str) -> None:
    put(context, name)
    outcome = await ReadTool().run({"path": "a.txt"}, context)
    text, mark, codec = ENCODINGS[name]
    for number, line in enumerate(text.splitlines(), 1):
        assert f"{number}\t{line}" in outcome.text
    known = Encoding(codec).name
    sure = "" if mark else ", as far as its bytes tell"
    assert outcome.text.endswith(f"\n[the file is {known}, not UTF-8{sure}; edit and write keep that]")


@every
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
async def test_edit_write_and_patch_keep_the_encoding(context: ToolContext, name: str, ends: str) -> None:
    text, mark, codec = ENCODINGS[name]
    first, second, *_ = text.split("\n")
    path = put(context, name, ends)

    def holds(wanted: str) -> bool:
        return path.read_bytes() == mark + wanted.replace("\n", ends).encode(codec)

    edits = [{"old_string": f"{second}\nfin", "new_string": f"{second}\n{second}\nend"}]
    shown = EditTool().intent({"path": "a.txt", "edits": edits}, context).display
    assert shown is not None and f"+{second}" in shown["text"] and "\ufffd" not in shown["text"]
    outcome = await EditTool().run({"path": "a.txt", "edits": edits}, context)
    assert f"It keeps its {Encoding(codec).name} encoding." in outcome.text
    assert holds(f"{first}\n{second}\n{second}\nend\n")
    await ReadTool().run({"path": "a.txt"}, context)
    outcome = await WriteTool().run({"path": "a.txt", "content": f"{second}\n{first}\n"}, context)
    assert f"{Encoding(codec).name} encoding" in outcome.text and holds(f"{second}\n{first}\n")
    patch = f"*** Begin Patch\n*** Update File: a.txt\n@@\n {second}\n-{first}\n+{first}{first}\n*** End Patch"
    await ApplyPatchTool().run({"input": patch}, context)
    assert holds(f"{second}\n{first}{first}\n")


@pytest.mark.parametrize("name", ["Windows-1252", "Shift-JIS", "KOI8-R", "EUC-KR", "ISO-2022-JP"])
async def test_what_an_encoding_does_not_have_is_refused_before_anybody_is_asked(
    context: ToolContext, name: str
) -> None:
    path = put(context, name)
    before = path.read_bytes()
    await ReadTool().run({"path": "a.txt"}, context)
    edit = {"path": "a.txt", "edits": [{"old_string": "fin", "new_string": "fin 🙂"}]}
    patch = {"input": "*** Begin Patch\n*** Update File: a.txt\n@@\n-fin\n+fin 🙂\n*** End Patch"}
    for tool, arguments in (
        (EditTool(), edit),
        (WriteTool(), {"path": "a.txt", "content": "a\n🙂\n"}),
        (ApplyPatchTool(), patch),
    ):
        for attempt in (tool.intent, tool.run):
            with pytest.raises(ToolError, match=r"which has no '🙂' \(U\+1F642, slightly smiling face; line \d\)"):
                result = attempt(arguments, context)
                if not hasattr(result, "kind"):
                    await result
    assert path.read_bytes() == before


@pytest.mark.quick
async def test_a_few_bytes_that_are_no_utf8_stay(context: ToolContext) -> None:
    path = context.root / "log"
    path.write_bytes("é è à ü\nbad: \xff\nend é\n".encode().replace(b"\xc3\xbf", b"\xff"))
    outcome = await ReadTool().run({"path": "log"}, context)
    assert "2\tbad: \ufffd" in outcome.text and "some bytes are not UTF-8" in outcome.text
    await EditTool().run({"path": "log", "edits": [{"old_string": "end é", "new_string": "end ö"}]}, context)
    assert path.read_bytes() == "é è à ü\nbad: ".encode() + b"\xff\n" + "end ö\n".encode()
    await ReadTool().run({"path": "log"}, context)
    with pytest.raises(ToolError, match="what they are would be lost"):
        await WriteTool().run({"path": "log", "content": "bad: \ufffd\n"}, context)
    with pytest.raises(ToolError, match="leave them out of old_string"):
        await EditTool().run({"path": "log", "edits": [{"old_string": "bad: \ufffd", "new_string": "x"}]}, context)


@pytest.mark.parametrize(
    ("old", "new", "after"),
    [
        ("b\nc", "b\nx", b"a\r\nb\nx\r\nd\n"),
        ("a\nb", "a\nb2\nb3", b"a\r\nb2\r\nb3\nc\r\nd\n"),
        ("c", "c\nc2", b"a\r\nb\nc\r\nc2\r\nd\n"),
        ("b", "b\nb2", b"a\r\nb\nb2\nc\r\nd\n"),
        ("d\n", "", b"a\r\nb\nc\r\n"),
    ],
)
async def test_line_ends_of_two_kinds_stay_where_they_are(
    context: ToolContext, old: str, new: str, after: bytes
) -> None:
    (context.root / "a").write_bytes(b"a\r\nb\nc\r\nd\n")
    await EditTool().run({"path": "a", "edits": [{"old_string": old, "new_string": new}]}, context)
    assert (context.root / "a").read_bytes() == after


async def test_a_notebook_keeps_its_encoding(context: ToolContext) -> None:
    cell: dict[str, object] = {
        "cell_type": "code",
        "source": ["x = 'é'"],
        "outputs": [],
        "execution_count": None,
        "metadata": {},
    }
    text = json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}, ensure_ascii=False)
    path = context.root / "a.ipynb"
    for mark, codec in ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (b"", "cp1252")):
        path.write_bytes(mark + text.encode(codec))
        assert "x = 'é'" in (await ReadTool().run({"path": "a.ipynb"}, context)).text
        await EditTool().run({"path": "a.ipynb", "edits": [{"old_string": "'é'", "new_string": "'è'"}]}, context)
        data = path.read_bytes()
        assert data.startswith(mark) and "x = 'è'" in data[len(mark) :].decode(codec)


@pytest.mark.parametrize("data", [b"\x1f\x8b\x08" + bytes(range(256)), bytes(range(1, 256)), b"\xff\xfe\x00", b"a\0b"])
async def test_what_is_no_text_is_refused(context: ToolContext, data: bytes) -> None:
    (context.root / "b").write_bytes(data)
    for tool, arguments in (
        (ReadTool(), {"path": "b"}),
        (EditTool(), {"path": "b", "edits": [{"old_string": "a", "new_string": "c"}]}),
    ):
        with pytest.raises(ToolError, match="binary"):
            await tool.run(arguments, context)
    with pytest.raises(ToolError, match="Read it before"):
        await WriteTool().run({"path": "b", "content": "x"}, context)
    assert (context.root / "b").read_bytes() == data


@pytest.mark.parametrize("codec", ["cp850", "mac_roman", "cp1250"])
async def test_text_in_an_encoding_that_cannot_be_told_is_no_binary_file(context: ToolContext, codec: str) -> None:
    text = "řeka, kůň a ťukání: Ťuk, ťuk, ťapka\nfin\n" if codec == "cp1250" else "für Übung, überall über Düsen\nfin\n"
    path = context.root / "a.txt"
    path.write_bytes(text.encode(codec))
    assert "2\tfin" in (await ReadTool().run({"path": "a.txt"}, context)).text
    await EditTool().run({"path": "a.txt", "edits": [{"old_string": "fin", "new_string": "end"}]}, context)
    assert path.read_bytes() == text.replace("fin", "end").encode(codec)


def test_whatever_is_taken_gives_the_bytes_back() -> None:
    """Of bytes at random, and of any text in any of the encodings."""
    import random

    rng = random.Random(36)
    for _ in range(3_000):
        data = bytes(rng.choices(range(256), rng.choices(range(256), k=256), k=rng.randrange(40)))
        found = encoding_of(data)
        if found is not None:
            assert found.encode(found.decode(data), "x") == data
    for text, mark, codec in ENCODINGS.values():
        for end in range(0, len(text), 3):
            data = mark + text[:end].encode(codec)
            found = encoding_of(data)
            assert found is None or found.encode(found.decode(data), "x") == data
