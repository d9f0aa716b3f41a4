from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_tui.errors import ToolError
from agent_tui.models.messages import Metadata
from agent_tui.tools.base import ToolContext
from agent_tui.tools.builtin.find import ListTool
from agent_tui.tools.builtin.read import ReadTool
from agent_tui.tools.files.pictures import PICTURE_BYTES
from tests.support.tool_context import make_context


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return make_context(tmp_path / "project")


async def read(context: ToolContext, path: str, **more: int) -> str:
    arguments: Metadata = {"path": path, **more}
    return (await ReadTool().run(arguments, context)).text


@pytest.mark.quick
async def test_lines_are_numbered_and_ranges_say_how_to_go_on(context: ToolContext) -> None:
    (context.root / "a.txt").write_text("one\ntwo\r\nthree\nfour")
    assert await read(context, "a.txt") == "1\tone\n2\ttwo\n3\tthree\n4\tfour"
    assert (
        await read(context, "a.txt", offset=2, limit=2) == "2\ttwo\n3\tthree\n[lines 2-3 of 4; continue with offset 4]"
    )
    assert await read(context, "a.txt", offset=4, limit=1) == "4\tfour"
    assert await read(context, "a.txt", offset=0, limit=1) == await read(context, "a.txt", offset=1, limit=1)
    assert await read(context, "a.txt", offset=9) == "[the file has only 4 lines]"


@pytest.mark.quick
async def test_reading_stops_at_the_output_limit(tmp_path: Path) -> None:
    context = make_context(tmp_path / "p", output_limit=500)
    (context.root / "a").write_text("x" * 99 + "\n" + ("y" * 99 + "\n") * 99)
    text = await read(context, "a")
    assert len(text) < 800
    assert "of 100; continue with offset" in text


async def test_a_ten_megabyte_line_is_cut_and_the_next_line_reached(context: ToolContext) -> None:
    (context.root / "a").write_bytes(b"x" * 10_000_000 + b"\nnext\n")
    text = await read(context, "a")
    assert len(text) < 3_000
    assert "9,998,000 more bytes in this line" in text
    assert "\n2\tnext\n" in text


@pytest.mark.quick
async def test_hostile_content_is_made_visible(context: ToolContext) -> None:
    (context.root / "a").write_bytes(b"\xef\xbb\xbfa\x1b]0;owned\x07b\n\xff\xfe[bold]\n")
    text = await read(context, "a")
    assert text.startswith("1\ta␛]0;owned␇b\n2\t\ufffd\ufffd[bold]\n")
    assert "\x1b" not in text
    assert "control characters" in text


@pytest.mark.quick
async def test_what_is_not_text_is_refused(context: ToolContext) -> None:
    (context.root / "bin").write_bytes(b"ab\0cd")
    os.mkfifo(context.root / "pipe")
    for name, reason in (
        ("bin", "binary"),
        ("pipe", "not a regular file"),
        ("/dev/zero", "not a regular file"),
        (".", "use list"),
    ):
        with pytest.raises(ToolError, match=reason):
            await read(context, name)


@pytest.mark.quick
async def test_a_missing_file_names_similar_ones(context: ToolContext) -> None:
    (context.root / "config.toml").write_text("")
    with pytest.raises(ToolError, match=r"does not exist. In the same folder: config.toml"):
        await read(context, "confg.toml")
    for bad in ("", "a\0b"):
        with pytest.raises(ToolError, match="NUL"):
            await read(context, bad)


@pytest.mark.quick
async def test_an_image_is_attached(context: ToolContext) -> None:
    (context.root / "a.png").write_bytes(b"\x89PNG\r\n\x1a\nrest")
    outcome = await ReadTool().run({"path": "a.png"}, context)
    (part,) = outcome.attachments
    assert part.media_type == "image/png" and part.text is None and part.data is not None
    (context.root / "big.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"x" * PICTURE_BYTES)
    with pytest.raises(ToolError, match="smaller"):
        await read(context, "big.png")


@pytest.mark.quick
async def test_the_intent_names_the_real_path(context: ToolContext, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    (context.root / "link").symlink_to(tmp_path / "secret")
    assert ReadTool().intent({"path": "link"}, context).paths == [(tmp_path / "secret").resolve()]
    assert ReadTool().intent({"path": "x/../../secret"}, context).paths == [(tmp_path / "secret").resolve()]
    (context.root / "loop").symlink_to("loop")
    with pytest.raises(ToolError):
        ReadTool().intent({"path": "loop/x"}, context)


@pytest.mark.quick
async def test_list_respects_gitignore_at_every_level(context: ToolContext) -> None:
    for name in ("src/a.py", "src/a.pyc", "build/out", ".git/config", ".github/ci.yml", "keep/x.log", "sub/own.txt"):
        (context.root / name).parent.mkdir(parents=True, exist_ok=True)
        (context.root / name).write_text("")
    (context.root / ".gitignore").write_text("*.pyc\nbuild/\n*.log\n[\n")
    (context.root / "keep/.gitignore").write_text("!x.log\n")
    (context.root / "sub/.gitignore").write_text("own.txt\n")
    outcome = await ListTool().run({"depth": 2}, context)
    assert outcome.text.splitlines() == [
        ".github/", ".github/ci.yml", ".gitignore", "keep/", "keep/.gitignore", "keep/x.log",
        "src/", "src/a.py", "sub/", "sub/.gitignore",
    ]  # fmt: skip
    assert (await ListTool().run({"path": "build"}, context)).text == "out"
    assert (await ListTool().run({}, context)).text.splitlines() == [".github/", ".gitignore", "keep/", "src/", "sub/"]


@pytest.fixture
def deep(context: ToolContext) -> Iterator[None]:
    """Folders nested deeper than Python calls, and than a path may be long."""
    folder = os.open(context.root, os.O_RDONLY)
    for _ in range(1_500):
        os.mkdir("d", dir_fd=folder)
        inner = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    yield
    # pytest's own cleaning up calls itself for each level, and would fail in every later run
    subprocess.run(["rm", "-rf", str(context.root / "d")], check=True)


@pytest.mark.slow
async def test_very_deep_folders_are_walked(context: ToolContext, deep: None) -> None:
    outcome = await ListTool().run({"depth": 10_000}, context)
    assert outcome.text.count("\n") == 500


@pytest.mark.quick
async def test_hostile_file_names_stay_on_their_line(context: ToolContext) -> None:
    (context.root / "a\n\x1b[31m").write_text("")
    (Path(os.fsdecode(os.fsencode(context.root) + b"/b\xff"))).write_text("")
    assert (await ListTool().run({}, context)).text == "a␊␛[31m\nb?"


@pytest.mark.quick
async def test_wrong_arguments_are_explained(context: ToolContext) -> None:
    with pytest.raises(ToolError, match=r"path: .*There is no argument 'file'\. It takes: path, offset, limit"):
        ReadTool().intent({"file": "a"}, context)
    with pytest.raises(ToolError, match="path"):
        ReadTool().intent({}, context)
    with pytest.raises(ToolError, match=r"offset: .*integer"):
        ReadTool().intent({"path": "a", "offset": "x"}, context)


@pytest.mark.quick
@pytest.mark.parametrize("span", [{"offset": -1}, {"limit": 0}, {"offset": 2, "limit": -3}])
async def test_lines_begin_at_1(context: ToolContext, span: dict[str, int]) -> None:
    (context.root / "a").write_text("one\ntwo\n")
    with pytest.raises(ToolError, match="begin at 1"):
        await ReadTool().run({"path": "a", **span}, context)
