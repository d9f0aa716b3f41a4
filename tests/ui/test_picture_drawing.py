"""What a picture becomes for a terminal: never more than it takes, nothing of the file itself, and the right dots."""

from __future__ import annotations

import base64
import io
import random
import re
from collections.abc import Sequence

import pytest
from PIL import Image

from agent_tui.engine.terminal import Replies, Way
from agent_tui.models.messages import AttachmentPart
from agent_tui.terminal_input import TerminalReader, TerminalReport
from agent_tui.tools.files.pictures import PictureError
from agent_tui.ui.screen_buffer import ScreenBuffer
from agent_tui.ui.screens.picture import MOST_BYTES, MOST_SIXELS, Canvas, drawing
from agent_tui.ui.terminal.pictures import PLACEHOLDER, Overlay, Place, encoded, hears_pictures, showing
from tests.support.every import every
from tests.support.forms import one_of
from tests.support.pixel import sixels_in

WAYS: tuple[Way, ...] = ("sixel", "iterm2", "kitty", "blocks")
BLACK = (0, 0, 0)


def attached(image: Image.Image, form: str = "PNG", name: str = "shot.png") -> AttachmentPart:
    out = io.BytesIO()
    image.save(out, form)
    return AttachmentPart(name, f"image/{form.lower()}", data=base64.b64encode(out.getvalue()).decode())


@every("seed", range(12))
def test_sixels_are_the_very_dots(seed: int) -> None:
    chance = random.Random(seed)
    width, height, colors = chance.randint(1, 40), chance.randint(1, 20), chance.choice([1, 2, 5, 256])
    palette = [(chance.randrange(256), chance.randrange(256), chance.randrange(256)) for _ in range(colors)]
    runs = [bytes([chance.randrange(colors)]) * chance.randint(1, 9) for _ in range(width * height)]
    pixels = b"".join(runs)[: width * height]
    if seed % 3 == 0:
        pixels = pixels[:width] * height  # bands of which all rows are the same
    (read,) = sixels_in(encoded(width, height, palette, pixels))
    assert read.size == (width, height)
    shares = [tuple((value * 100 + 127) // 255 for value in color) for color in palette]
    assert read.dots == {(n % width, n // width): shares[color] for n, color in enumerate(pixels)}


@every("way", WAYS)
@every("size", [(1, 1), (3000, 20), (20, 3000), (640, 480)])
@every("room", [(1, 1), (60, 18), (198, 48)])
def test_a_drawing_keeps_to_its_room_and_shape(way: Way, size: tuple[int, int], room: tuple[int, int]) -> None:
    made = drawing(attached(Image.new("RGB", size, "red")), Canvas(way, (10, 20)), room, BLACK)
    assert 1 <= made.box[0] <= room[0] and 1 <= made.box[1] <= room[1] and made.was == size
    assert all(line.cell_length == made.box[0] for line in made.lines)
    if way == "sixel":
        (read,) = sixels_in(made.sequence)
        assert read.size[0] <= room[0] * 10 and read.size[1] <= room[1] * 20
        assert len(read.dots) == read.size[0] * read.size[1]


@pytest.mark.parametrize("way", one_of(WAYS))
def test_noise_is_bounded(way: Way) -> None:
    noise = Image.effect_noise((700, 500), 100).convert("RGB")
    made = drawing(attached(noise), Canvas(way, (10, 20), wrapped=True), (198, 48), BLACK)
    assert len(made.sequence) < MOST_BYTES * 1.4 <= 1_000_000  # what tmux takes in one piece
    free = drawing(attached(noise), Canvas("sixel", (10, 20)), (30, 10), BLACK)
    assert len(free.sequence) <= MOST_SIXELS


@every("way", WAYS)
@every(
    "raw",
    [
        pytest.param(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\xff\xff\x00\x00\xff\xff\x08\x02", id="a bomb"),
        pytest.param(b"GIF89a\x10\x00\x10\x00" + b"\x1b]2;owned\x07" * 20, id="sequences"),
        pytest.param(b"\x1bPq#0~\x1b\\", id="sixels"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_hostile_files_become_a_sentence(way: Way, raw: bytes) -> None:
    part = AttachmentPart("x.png", "image/png", data=base64.b64encode(raw).decode())
    with pytest.raises(PictureError):
        drawing(part, Canvas(way, (10, 20)), (80, 20), BLACK)
    with pytest.raises(PictureError):
        drawing(AttachmentPart("x.png", "image/png", data="\x1b[2J"), Canvas(way, (10, 20)), (80, 20), BLACK)


def test_a_hostile_name_reaches_no_terminal() -> None:
    name = "a\x1b]0;owned\x07;width=900:\n\u202egnp.png"
    sequence = showing(name, b"image", 4, 2)
    assert sequence.count("\x1b") == 1 and sequence.count("\x07") == 1 and sequence.count(":") == 1
    assert re.fullmatch(r"\x1b\]1337;File=[A-Za-z0-9+/=;]*:[A-Za-z0-9+/=]*\x07", sequence)
    called = base64.b64decode(re.findall("name=([^;]*)", sequence)[0]).decode()
    assert called.isprintable() and "owned" in called


def test_what_can_be_seen_through_stands_on_the_background() -> None:
    half = Image.new("RGBA", (10, 20), (255, 0, 0, 0))
    (read,) = sixels_in(drawing(attached(half), Canvas("sixel", (10, 20)), (5, 5), (0, 0, 255)).sequence)
    assert set(read.dots.values()) == {(0, 0, 100)}


def test_in_tmux_kitty_gets_placeholders_which_tmux_can_place() -> None:
    part = attached(Image.new("RGB", (400, 200), "red"))
    for few in (False, True):
        made = drawing(part, Canvas("inline", (10, 20), wrapped=True, few_colors=few), (80, 20), BLACK)
        assert made.box == (40, 10) and len(made.lines) == 10
        assert made.lines[0].text.count(PLACEHOLDER) == 40 and "U=1" in made.sequence
        color = made.lines[0]._segments[0].style.color  # type: ignore[union-attr]
        assert color is not None and color.triplet is not None
        red, green, blue = color.triplet
        assert f"i={made.number}," in made.sequence
        if not few:
            assert made.number == red << 16 | green << 8 | blue


class Glue(ScreenBuffer):
    """A terminal and what it shows, which keep what they are told."""

    def __init__(self) -> None:
        super().__init__(True)
        self.told: list[str] = []
        self.forgotten: list[object] = []

    def write_to_terminal(self, sequence: str) -> None:
        self.told.append(sequence)

    def forget(self) -> None:
        self.forgotten.append("all")

    def forget_rows(self, rows: Sequence[int]) -> None:
        self.forgotten.append(rows)


def test_an_overlay_is_there_once_and_goes_without_a_trace() -> None:
    glue = Glue()
    overlay = Overlay(glue, glue, False)
    assert not overlay.wipe() and glue.told == []
    overlay.put("DRAW", Place(4, 2, 10, 5), 7)
    assert glue.told == ["\x1b7\x1b[3;5HDRAW\x1b8"]
    overlay.put("OTHER", Place(0, 0, 1, 1))
    assert "a=d,d=I,i=7" in glue.told[1] and "\x1b[2J" in glue.told[1] and glue.forgotten == ["all"]
    assert overlay.wipe() and "a=d" not in glue.told[3] and not overlay.wipe()


def test_in_tmux_an_overlay_stands_where_its_pane_is_and_clears_no_other() -> None:
    glue = Glue()
    overlay = Overlay(glue, glue, True)
    overlay.put("DRAW", Place(4, 2, 10, 2, (40, 1)))
    overlay.wipe()
    assert glue.told[0] == "\x1bPtmux;\x1b\x1b7\x1b\x1b[4;45HDRAW\x1b\x1b8\x1b\\"
    assert "[4;45H\x1b\x1b[10X" in glue.told[1] and "[5;45H\x1b\x1b[10X" in glue.told[1] and "2J" not in glue.told[1]
    assert glue.forgotten == [range(2, 4)]


REPLIED = "\x1b_Gi=31;OK\x1b\\\x1bP>|XTerm(379)\x1b\\\x1b[6;18;9t\x1b[?1;0;256S\x1b[?63;1;4c"


def test_replies_are_heard_as_they_come() -> None:
    heard: list[Replies] = []
    listen = hears_pictures(heard.append)
    for one in TerminalReader().feed(REPLIED.encode()):
        assert isinstance(one, TerminalReport)
        listen(one.sequence)
    (replies,) = heard
    assert replies.placeholders and replies.sixels and replies.name == "XTerm(379)" and replies.cell == (9, 18)


@pytest.mark.parametrize("report", ["\x1b[?2048;1$y", "\x1b[<0;1;1M", "\x1b]11;rgb:0/0/0\x07"])
def test_other_reports_are_no_replies(report: str) -> None:
    hears_pictures(lambda replies: pytest.fail("no reply"))(report)
