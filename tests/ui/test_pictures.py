"""Pictures on a real pseudo terminal that answers as kitty does, and what hostile ones become."""

from __future__ import annotations

import base64
import io
import re
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PIL import Image
from rich.color import ColorSystem
from rich.style import Style

from agent_tui.engine.graphics import ATTRIBUTES, PLACEHOLDERS
from agent_tui.models.messages import AttachmentPart
from agent_tui.tools.files.pictures import PictureError, preview
from agent_tui.ui.flow.palette import Palette
from agent_tui.ui.terminal.passing import through_tmux
from agent_tui.ui.terminal.pictures import MARKS, PLACEHOLDER, cell, sending
from agent_tui.ui.transcript.album import KEPT, MOST_ROWS, WIDEST, Album, Pictured, PictureLine
from tests.support.every import every
from tests.support.scripts import step
from tests.support.terminal import Terminal, in_terminal

YES = b"\x1b_Gi=31;OK\x1b\\\x1b_Gi=32;OK\x1b\\\x1b[?62;c"
ASKED = PLACEHOLDERS.encode()
CELL = PLACEHOLDER.encode()
SCRIPT = step(read={"path": "shot.png"}) + step("Looked.\n" + "\nMore of it.\n" * 20 + "\nFinished")


def png(width: int = 80, height: int = 60, color: str = "red") -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), color).save(out, "PNG")
    return out.getvalue()


def attached(raw: bytes, name: str = "shot.png", media_type: str = "image/png") -> AttachmentPart:
    return AttachmentPart(name, media_type, data=base64.b64encode(raw).decode())


@contextmanager
def chat(folder: Path, **more: str) -> Iterator[Terminal]:
    (folder / "state").mkdir(exist_ok=True)
    (folder / "shot.png").write_bytes(png())
    (folder / "script.toml").write_text(SCRIPT)
    base = {"AGENT_TUI_HOME": str(folder), "TERM": "xterm-kitty", "COLORTERM": "truecolor", "TMUX": ""}
    base["AGENT_TUI_DEMO_SCRIPT"] = str(folder / "script.toml")
    with in_terminal(folder, {**base, **more}) as terminal:
        yield terminal


def attach(terminal: Terminal) -> None:
    terminal.type(b"look at @shot.png please")
    terminal.wait_for(b"please"[-1:])
    terminal.type(b"\r")


def leave(terminal: Terminal) -> None:
    terminal.type(b"\x15\x04")
    assert terminal.wait_for_end() == 0


def commands(seen: bytes) -> list[tuple[dict[str, str], bytes]]:
    """Keys and payload of what was told the terminal of pictures."""
    found = re.findall(rb"\x1b_G([^;\x1b]*);?([^\x1b]*)\x1b\\", seen)
    return [(dict(k.split("=") for k in keys.decode().split(",")), data) for keys, data in found]


@pytest.mark.slow
def test_a_picture_is_sent_once_stands_in_the_text_and_is_taken_back(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        terminal.wait_for(ASKED)
        terminal.type(YES)
        attach(terminal)
        terminal.wait_for(CELL)
        terminal.wait_for(b"Finished")
        leave(terminal)
    told = [(keys, data) for keys, data in commands(terminal.seen) if keys.get("a") != "q"]
    begun = [keys for keys, _ in told if keys.get("a") == "T"]
    assert len(begun) == 2  # the user's and the tool's, each once
    for keys in begun:
        assert (keys["U"], keys["q"], keys["f"]) == ("1", "2", "100")
        assert (keys["c"], keys["r"]) == ("8", "3")
    numbers = {keys["i"] for keys in begun}
    assert {keys["i"] for keys, _ in told if keys.get("a") == "d"} == numbers
    colors = {f"{int(r) << 16 | int(g) << 8 | int(b)}" for r, g, b in colors_of_cells(terminal.seen)}
    assert colors <= numbers and colors
    assert terminal.seen.rfind(b"a=d") < terminal.seen.rfind(b"\x1b[?1049l")


def colors_of_cells(seen: bytes) -> list[tuple[bytes, bytes, bytes]]:
    return re.findall(rb"38;2;(\d+);(\d+);(\d+)[0-9;]*m" + CELL, seen)


@pytest.mark.slow
def test_the_answer_reaches_no_prompt(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        terminal.wait_for(ASKED)
        terminal.type(YES[:5])
        terminal.type(YES[5:] + b"typed")
        terminal.wait_for(b"typed"[-1:])
        leave(terminal)
    assert b"Gi=31;OK" not in terminal.seen and b"[?62" not in terminal.seen


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment",
    [
        pytest.param({"AGENT_TUI_UI__IMAGES": "off"}, id="off"),
        pytest.param({"NO_COLOR": "1"}, id="no colours"),
    ],
)
def test_where_they_are_not_wanted_there_is_one_line_and_nothing_else(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    with chat(tmp_path, **environment) as terminal:
        terminal.wait_for(b"DEMO")
        attach(terminal)
        terminal.wait_for(b"Finished")
        terminal.type(b"/picture\r")
        terminal.wait_for(b"Pictures are a line in the conversation")
        leave(terminal)
    assert not commands(terminal.seen) and CELL not in terminal.seen
    assert ATTRIBUTES.encode() not in terminal.seen
    assert b"+ shot.png (image/png)" in terminal.seen


@pytest.mark.slow
def test_a_session_that_is_opened_again_sends_what_is_seen_of_it(tmp_path: Path) -> None:
    with chat(tmp_path, AGENT_TUI_UI__IMAGES="kitty") as terminal:
        attach(terminal)
        terminal.wait_for(b"Finished")
        leave(terminal)
    with chat(tmp_path, AGENT_TUI_UI__IMAGES="kitty") as terminal:
        terminal.wait_for(b"DEMO")
        terminal.type(b"/resume\r")
        terminal.wait_for(b"look at @shot.png")
        terminal.type(b"\r")
        terminal.wait_for(b"Finished")
        assert not commands(terminal.seen)
        terminal.type(b"\x1b[1;5H")
        terminal.wait_for(CELL)
        leave(terminal)
    assert any(keys.get("a") == "T" for keys, _ in commands(terminal.seen))


class Glue:
    """A terminal that keeps what it is told, and the work that is begun."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.work: list[Callable[[], object]] = []

    def write_to_terminal(self, sequence: str) -> None:
        self.told.append(sequence)

    def album(self, system: ColorSystem = ColorSystem.TRUECOLOR, in_tmux: bool = False) -> Album:
        return Album(self, (10, 20), system, in_tmux, self.work.append, lambda: None)


async def show(glue: Glue, album: Album, part: AttachmentPart) -> None:
    picture = album.picture(part)
    assert picture.size is not None
    picture.box = album.box(picture.size, 80)
    line = PictureLine(0, "", Style())
    line.picture = picture
    album.look([line])
    while glue.work:
        await glue.work.pop()()  # type: ignore[misc]


async def test_what_is_not_looked_at_is_not_sent_and_the_terminal_keeps_no_more_than_it_has_to() -> None:
    glue = Glue()
    album = glue.album(ColorSystem.EIGHT_BIT)
    parts = [attached(png(20 + n, 20)) for n in range(KEPT + 2)]
    for part in parts:
        album.picture(part)
    assert glue.told == []
    for part in parts:
        await show(glue, album, part)
    kept = [keys["i"] for keys, _ in commands("".join(glue.told).encode()) if keys.get("a") == "T"]
    gone = [keys["i"] for keys, _ in commands("".join(glue.told).encode()) if keys.get("a") == "d"]
    assert len(kept) == KEPT + 2 and gone == kept[:2]
    assert all(16 <= int(number) <= 255 for number in kept)
    await show(glue, album, parts[0])
    assert album.picture(parts[0]).state == "shown"


@pytest.mark.quick
async def test_through_tmux_each_sequence_is_wrapped() -> None:
    glue = Glue()
    await show(glue, glue.album(in_tmux=True), attached(png()))
    assert glue.told
    for sequence in glue.told:
        assert sequence.startswith("\x1bPtmux;\x1b\x1b_G") and sequence.endswith("\x1b\x1b\\\x1b\\")
        assert sequence == through_tmux(sequence[7:-2].replace("\x1b\x1b", "\x1b"))


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(png()[:60], id="cut off"),
        pytest.param(png()[:16] + b"\x00\x00\xff\xff\x00\x00\xff\xff" + png()[24:], id="a bomb"),
        pytest.param(b"GIF89a\x10\x00\x10\x00" + b"\x1b]2;owned\x07" * 20, id="sequences"),
    ],
)
@pytest.mark.quick
async def test_a_hostile_image_becomes_a_line_and_never_reaches_the_terminal(raw: bytes) -> None:
    glue = Glue()
    album = glue.album()
    part = attached(raw)
    await show(glue, album, part)
    assert album.picture(part).state == "failed" and album.picture(part).problem
    assert glue.told == []


@pytest.mark.quick
@pytest.mark.parametrize("raw", [b"%PDF-1.7 no image", b"<svg/>", b""])
def test_what_is_no_image_by_its_bytes_is_never_decoded(raw: bytes) -> None:
    assert Glue().album().picture(attached(raw)).size is None


@pytest.mark.slow
def test_what_is_sent_was_made_here_from_pixels_alone() -> None:
    raw = io.BytesIO()
    from PIL.PngImagePlugin import PngInfo

    note = PngInfo()
    note.add_text("Comment", "where it was taken")
    Image.new("RGB", (4000, 1000), "blue").save(raw, "PNG", pnginfo=note)
    made = preview(attached(raw.getvalue()), 400, 240)
    assert made.was == (4000, 1000) and b"where it was taken" not in made.data
    with Image.open(io.BytesIO(made.data)) as shown:
        assert shown.size == (400, 100) == made.size
    with pytest.raises(PictureError):
        preview(attached(b"nothing"), 10, 10)


@pytest.mark.quick
@every("size", [(1, 1), (10, 20), (5000, 10), (10, 5000), (640, 480), (60_000, 60_000)])
@every("room", [1, 20, 77, 300])
def test_a_picture_keeps_to_the_room_there_is(size: tuple[int, int], room: int) -> None:
    columns, rows = Glue().album().box(size, room)
    assert 1 <= columns <= min(room, WIDEST) and 1 <= rows <= MOST_ROWS


@pytest.mark.quick
def test_nothing_parts_a_placeholder_from_its_marks() -> None:
    """What lies on a picture cuts its lines anywhere."""
    glue = Glue()
    album = glue.album()
    picture = album.picture(attached(png(2000, 400)))
    picture.state = "shown"
    flow = Pictured(album, picture, first=(("▌ ", ""),), fill="")
    for y, line in enumerate(flow.lay(0, 80, Palette({}, Style()))):
        assert line.strip is not None and line.strip.cell_length == 80
        columns = picture.box[0]
        assert line.strip.text == "▌ " + "".join(cell(y, x) for x in range(columns)) + " " * (78 - columns)
        for cut in range(3, 2 + columns):
            left, right = line.strip.divide([cut, 80])
            assert right.text.startswith(PLACEHOLDER) and left.cell_length == cut
    assert all(unicodedata.combining(mark) == 230 for mark in MARKS) and len(set(MARKS)) == len(MARKS)


@pytest.mark.quick
def test_a_picture_in_many_pieces_is_put_together_again() -> None:
    raw = bytes(range(256)) * 100
    told = commands("".join(sending(7, raw, 4, 2)).encode())
    assert [keys["m"] for keys, _ in told] == ["1"] * (len(told) - 1) + ["0"]
    assert all(set(keys) == {"m", "q"} for keys, _ in told[1:])
    assert base64.b64decode(b"".join(data for _, data in told)) == raw
