"""Images scaled down to what a model takes: what is kept of them, and what hostile files do."""

from __future__ import annotations

import base64
import io
import struct
import subprocess
import sys
import zlib
from typing import Any

import pytest
from PIL import Image, ImageDraw

from agent_tui.models.image_headers import base64_size, pixel_size
from agent_tui.models.messages import AttachmentPart
from agent_tui.providers.catalog import DIALECTS
from agent_tui.providers.dialects.claude import IMAGES as CLAUDE
from agent_tui.providers.dialects.record import OWN_IMAGES, ImageLimits
from agent_tui.tools.files.pictures import MAX_PIXELS, PictureError, fit_attachments, needs_fitting, scale

GROQ = DIALECTS["groq"].images
XAI = DIALECTS["xai"].images

pytestmark = [pytest.mark.quick, pytest.mark.versions]

SMALL = ImageLimits(200_000, 400, count=None, total=None)


def encoded(image: Image.Image, form: str, **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def screenshot(width: int, height: int, mode: str = "RGB") -> Image.Image:
    image = Image.new(mode, (width, height), "white")
    ImageDraw.Draw(image).rectangle((width // 10, height // 10, width // 2, height // 2), fill="navy")
    return image


def photo(width: int, height: int) -> Image.Image:
    """Something that does not compress without loss."""
    return Image.effect_noise((width, height), 90).convert("RGB")


def part(raw: bytes, kind: str, name: str = "photo.png") -> AttachmentPart:
    return AttachmentPart(name, kind, data=base64.b64encode(raw).decode(), path=f"/x/{name}")


def opened(attachment: AttachmentPart) -> Image.Image:
    image = Image.open(io.BytesIO(base64.b64decode(attachment.data or "")))
    image.load()
    return image


def png_chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def bomb(width: int, height: int) -> bytes:
    """A PNG of a few bytes that claims to be huge."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = zlib.compress(b"\0" * 1_000_000)
    return b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + png_chunk(b"IDAT", data) + png_chunk(b"IEND", b"")


def test_what_fits_stays_byte_for_byte() -> None:
    parts = [part(encoded(screenshot(300, 200), "PNG"), "image/png"), AttachmentPart("a.txt", "text/plain", text="x")]
    assert not needs_fitting(parts, SMALL)
    kept, changed, refused = fit_attachments(parts, SMALL)
    assert (kept, changed, refused) == (parts, [], [])
    assert all(a is b for a, b in zip(kept, parts, strict=True))


@pytest.mark.slow
def test_a_large_screenshot_is_scaled_and_stays_png() -> None:
    large = part(encoded(screenshot(3_000, 2_000), "PNG"), "image/png")
    (kept,), changed, refused = fit_attachments([large], CLAUDE)
    assert changed == ["photo.png scaled from 3000×2000 to 2000×1333 for this model"]
    assert refused == []
    assert (kept.media_type, opened(kept).size, kept.name, kept.path) == (
        "image/png",
        (2_000, 1_333),
        "photo.png",
        "/x/photo.png",
    )
    assert not needs_fitting([kept], CLAUDE), "scaled once is enough"


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
def test_what_has_too_many_bytes_becomes_a_jpeg_that_fits(form: str) -> None:
    options = {"quality": 100} if form != "PNG" else {}
    raw = encoded(photo(390, 390), form, **options)
    limits = ImageLimits(min(60_000, len(raw)), 400)
    made = scale(raw, limits)
    assert made.media_type == "image/jpeg"
    assert len(base64.b64encode(made.data)) <= 60_000
    assert pixel_size(made.data) == made.size


def test_the_bytes_are_counted_after_base64() -> None:
    raw = encoded(photo(200, 200), "PNG")
    limits = ImageLimits(len(raw) + 10, 400)
    assert needs_fitting([part(raw, "image/png")], limits)
    assert len(base64.b64encode(scale(raw, limits).data)) <= len(raw) + 10


def test_a_limit_of_the_whole_request_holds_for_each_image() -> None:
    raw = encoded(photo(200, 200), "PNG")
    limits = ImageLimits(None, None, total=20_000)
    (kept,), _, _ = fit_attachments([part(raw, "image/png")], limits)
    assert len(kept.data or "") <= 20_000


def test_pixels_of_the_whole_are_limited_too() -> None:
    made = scale(encoded(screenshot(300, 200), "PNG"), ImageLimits(None, None, 15_000))
    assert made.size[0] * made.size[1] <= 15_000
    assert made.size == pytest.approx((150, 100), abs=1)


def test_a_kind_that_is_not_read_is_stored_anew() -> None:
    raw = encoded(screenshot(300, 200), "WEBP", lossless=True)
    (kept,), changed, refused = fit_attachments([part(raw, "image/webp", "a.webp")], XAI)
    assert (kept.media_type, opened(kept).size, refused) == ("image/png", (300, 200), [])
    assert changed[0].startswith("a.webp stored anew as PNG for this model")


def grey(image: Image.Image, x: int, y: int) -> int:
    return image.convert("L").crop((x, y, x + 1, y + 1)).tobytes()[0]


def test_what_a_camera_turned_is_turned() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    picture = screenshot(800, 400)
    raw = encoded(picture, "JPEG", exif=exif)
    (kept,), changed, _ = fit_attachments([part(raw, "image/jpeg", "p.jpg")], SMALL)
    image = opened(kept)
    assert image.size == (200, 400)
    assert 0x0112 not in image.getexif()
    assert changed == ["p.jpg scaled from 400×800 to 200×400 for this model"]
    # The dark corner was at the upper left: turned by a quarter it is at the upper right.
    assert grey(image, 150, 80) < 100 < grey(image, 20, 80)


def test_where_a_photo_was_taken_is_not_passed_on() -> None:
    exif = Image.Exif()
    exif.get_ifd(0x8825)[1] = "N"
    exif[0x010F] = "secret camera"
    made = scale(encoded(photo(800, 400), "JPEG", exif=exif), SMALL)
    assert b"secret camera" not in made.data


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "1", "I;16", "L"])
def test_every_mode_of_png_is_scaled(mode: str) -> None:
    image = Image.new("RGBA", (900, 900), (255, 0, 0, 128)) if mode in ("RGBA", "LA") else screenshot(900, 900)
    image = Image.new("I;16", (900, 900), 40_000) if mode == "I;16" else image.convert(mode)
    (kept,), _, refused = fit_attachments([part(encoded(image, "PNG"), "image/png")], SMALL)
    result = opened(kept)
    assert (result.size, refused) == ((400, 400), [])
    if mode in ("RGBA", "LA"):
        assert result.getchannel("A").getextrema() == (128, 128), "what was transparent still is"
    if mode == "I;16":
        assert result.getextrema() == (156, 156), "sixteen bits become eight, not white"


def test_transparency_becomes_white_in_a_jpeg() -> None:
    image = Image.merge("RGBA", (*photo(390, 390).split(), Image.new("L", (390, 390), 0)))
    made = scale(encoded(image, "PNG"), ImageLimits(30_000, 400))
    assert made.media_type == "image/jpeg"
    assert not any(Image.open(io.BytesIO(made.data)).convert("L").histogram()[:241])


@pytest.mark.parametrize("form", ["GIF", "WEBP"])
def test_of_a_moving_image_the_first_picture_is_taken(form: str) -> None:
    frames = [Image.new("RGB", (900, 600), colour) for colour in ("red", "green", "blue")]
    raw = encoded(frames[0], form, save_all=True, append_images=frames[1:])
    name = f"a.{form.lower()}"
    (kept,), changed, _ = fit_attachments([part(raw, f"image/{form.lower()}", name)], SMALL)
    image = opened(kept).convert("RGB")
    assert image.size == (400, 267)
    red, green, blue = image.crop((50, 50, 51, 51)).tobytes()
    assert red > 200 > 60 > max(green, blue)
    assert changed == [f"{name} (its first picture) scaled from 900×600 to 400×267 for this model"]


@pytest.mark.parametrize(
    "raw",
    [
        bomb(50_000, 50_000),
        bomb(MAX_PIXELS, 1),
        bomb(2**31 - 1, 2**31 - 1),
        b"GIF89a\xff\xff\xff\xff" + b"\0" * 20,
    ],
    ids=["square", "line", "largest", "gif"],
)
def test_a_bomb_is_not_unpacked(raw: bytes) -> None:
    kept, changed, refused = fit_attachments([part(raw, "image/png", "bomb.png")], SMALL)
    assert (kept, changed) == ([], [])
    assert refused[0].startswith("bomb.png: ")
    assert "\n" not in refused[0]


def test_a_bomb_says_what_it_claims_to_be() -> None:
    with pytest.raises(PictureError, match="50000×50000 pixels are more than the 80 million"):
        scale(bomb(50_000, 50_000), SMALL)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP"])
def test_a_truncated_or_spoilt_file_is_refused_in_one_line(form: str) -> None:
    whole = encoded(photo(450, 300), form)
    spoilt = bytearray(whole)
    spoilt[len(whole) // 3 : len(whole) // 3 + 200] = b"\xff" * 200
    for raw in (whole[: len(whole) // 2], whole[:60], whole[:12], bytes(spoilt)):
        attachment = part(raw, f"image/{form.lower()}", "p")
        kept, _, refused = fit_attachments([attachment], replace_size(SMALL, 10))
        # Some spoilt bytes only give a spoilt picture; nothing may be raised, and nothing too large be kept.
        assert len(kept) + len(refused) == 1
        assert all("\n" not in line for line in refused)


def replace_size(limits: ImageLimits, share: int) -> ImageLimits:
    return ImageLimits((limits.size or 0) // share, limits.side, count=None, total=None)


def test_no_base64_is_refused() -> None:
    bad = AttachmentPart("a.png", "image/png", data="!" * 300_000)
    assert fit_attachments([bad], SMALL) == ([], [], ["a.png: it is not valid base64"])


def test_a_long_thin_image_keeps_a_pixel() -> None:
    made = scale(encoded(screenshot(9_000, 3), "PNG"), CLAUDE)
    assert made.size == (2_000, 1)


def test_what_cannot_be_made_small_enough_is_said() -> None:
    with pytest.raises(PictureError, match="cannot be made small enough"):
        scale(encoded(photo(100, 100), "PNG"), ImageLimits(200, None))


@pytest.mark.slow
@pytest.mark.parametrize("limits", [CLAUDE, GROQ, XAI, OWN_IMAGES], ids=["claude", "groq", "xai", "none"])
def test_a_photo_of_a_phone_fits_everywhere(limits: ImageLimits) -> None:
    raw = encoded(photo(1_500, 1_100).resize((4_000, 3_000)), "JPEG", quality=95)
    kept, _, refused = fit_attachments([part(raw, "image/jpeg")], limits)
    assert refused == []
    assert not needs_fitting(kept, limits)


@pytest.mark.parametrize("before", [0, 3_000, 60_000, 200_000])
def test_the_size_of_a_jpeg_is_found_behind_its_preview(before: int) -> None:
    raw = encoded(screenshot(300, 200), "JPEG")
    segment = b"".join(
        b"\xff\xe1" + struct.pack(">H", min(60_000, before - n) + 2) + b"x" * min(60_000, before - n)
        for n in range(0, before, 60_000)
    )
    data = base64.b64encode(raw[:2] + segment + raw[2:]).decode()
    assert base64_size(data) == (300, 200)
    assert base64_size(data[: len(data) // 2 if before else 40]) is None


def test_nothing_is_imported_for_what_fits() -> None:
    script = (
        "import sys\n"
        "from agent_tui.tools.files.pictures import fit_attachments\n"
        "from agent_tui.models.messages import AttachmentPart\n"
        "from agent_tui.providers.dialects.claude import IMAGES as CLAUDE\n"
        "fit_attachments([AttachmentPart('a.png', 'image/png', data='iVBORw0KGgo=')], CLAUDE)\n"
        "assert 'PIL' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
