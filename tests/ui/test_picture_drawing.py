"""What a picture becomes for a terminal: never more than it takes, nothing of the file itself, and the right dots."""

from __future__ import annotations

import base64
import io

import pytest
from PIL import Image

from agent_tui.engine.graphics import Replies
from agent_tui.models.messages import AttachmentPart
from agent_tui.terminal_input import TerminalReader, TerminalReport
from agent_tui.tools.files.pictures import PictureError
from agent_tui.ui.screens.picture import MOST_BYTES, Canvas, drawing, number_of
from agent_tui.ui.terminal.pictures import PLACEHOLDER, hears_pictures
from tests.support.every import every

pytestmark = pytest.mark.quick

BLACK = (0, 0, 0)


def attached(image: Image.Image, form: str = "PNG", name: str = "shot.png") -> AttachmentPart:
    out = io.BytesIO()
    image.save(out, form)
    return AttachmentPart(name, f"image/{form.lower()}", data=base64.b64encode(out.getvalue()).decode())


@every("holds", [True, False])
@every("size", [(1, 1), (3000, 20), (20, 3000), (640, 480)])
@every("room", [(1, 1), (60, 18), (198, 48)])
def test_a_drawing_keeps_to_its_room_and_shape(holds: bool, size: tuple[int, int], room: tuple[int, int]) -> None:
    made = drawing(attached(Image.new("RGB", size, "red")), Canvas(holds, (10, 20)), room, BLACK)
    assert 1 <= made.box[0] <= room[0] and 1 <= made.box[1] <= room[1] and made.was == size
    assert all(line.cell_length == made.box[0] for line in made.lines)


def test_noise_is_bounded() -> None:
    noise = Image.effect_noise((1_000, 800), 100).convert("RGB")
    made = drawing(attached(noise), Canvas(True, (10, 20)), (198, 48), BLACK)
    assert sum(map(len, made.sequences)) < MOST_BYTES * 1.4


@every("holds", [True, False])
@every(
    "raw",
    [
        pytest.param(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\xff\xff\x00\x00\xff\xff\x08\x02", id="a bomb"),
        pytest.param(b"GIF89a\x10\x00\x10\x00" + b"\x1b]2;owned\x07" * 20, id="sequences"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_hostile_files_become_a_sentence(holds: bool, raw: bytes) -> None:
    part = AttachmentPart("x.png", "image/png", data=base64.b64encode(raw).decode())
    with pytest.raises(PictureError):
        drawing(part, Canvas(holds, (10, 20)), (80, 20), BLACK)
    with pytest.raises(PictureError):
        drawing(AttachmentPart("x.png", "image/png", data="\x1b[2J"), Canvas(holds, (10, 20)), (80, 20), BLACK)


def test_what_can_be_seen_through_stands_on_the_background() -> None:
    made = drawing(attached(Image.new("RGBA", (10, 20), (255, 0, 0, 0))), Canvas(False, (10, 20)), (5, 5), (0, 0, 255))
    styles = {segment.style for line in made.lines for segment in line if segment.style is not None}
    colors = {color.triplet for style in styles for color in (style.color, style.bgcolor) if color is not None}
    assert colors == {(0, 0, 255)}


def test_a_terminal_that_holds_pictures_gets_placeholders_in_the_colour_of_its_number() -> None:
    part = attached(Image.new("RGB", (400, 200), "red"))
    for few in (False, True):
        canvas = Canvas(True, (10, 20), wrapped=True, few_colors=few)
        made = drawing(part, canvas, (80, 20), BLACK)
        assert made.box == (40, 10) and len(made.lines) == 10
        assert made.lines[0].text.count(PLACEHOLDER) == 40 and "U=1" in made.sequences[0]
        color = made.lines[0]._segments[0].style.color  # type: ignore[union-attr]
        assert color is not None and color.triplet is not None
        red, green, blue = color.triplet
        assert f"i={number_of(canvas)}," in made.sequences[0]
        if not few:
            assert number_of(canvas) == red << 16 | green << 8 | blue


REPLIED = "\x1b_Gi=31;OK\x1b\\\x1bP>|kitty(0.40)\x1b\\\x1b[?62;c"


def test_replies_are_heard_as_they_come() -> None:
    heard: list[Replies] = []
    listen = hears_pictures(heard.append)
    for one in TerminalReader().feed(REPLIED.encode()):
        assert isinstance(one, TerminalReport)
        listen(one.sequence)
    (replies,) = heard
    assert replies.placeholders and replies.name == "kitty(0.40)"


@pytest.mark.parametrize("report", ["\x1b[?2048;1$y", "\x1b[<0;1;1M", "\x1b]11;rgb:0/0/0\x07"])
def test_other_reports_are_no_replies(report: str) -> None:
    hears_pictures(lambda replies: pytest.fail("no reply"))(report)
