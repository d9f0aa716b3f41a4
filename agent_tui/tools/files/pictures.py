"""Images, scaled down to what a model takes and made anew for a screen."""

from __future__ import annotations

import base64
import binascii
import io
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from agent_tui.models.image_headers import pixel_size
from agent_tui.models.messages import AttachmentPart
from agent_tui.providers.dialects.record import ImageLimits
from agent_tui.records import dataclass
from agent_tui.text.numbers import size

if TYPE_CHECKING:
    from PIL.Image import Image


PICTURE_BYTES = 40_000_000
"""Bytes of an image file that are looked at in order to scale it."""

MAX_PIXELS = 80_000_000
"""Pixels of an image that is decoded at all, about 320 MB of memory: small files can claim any size."""

_LARGEST = 4_096
"""Pixels of the longer side of an image that has to be made anew: the models themselves look at fewer."""

_FORMATS = ("PNG", "JPEG", "GIF", "WEBP")
_QUALITIES = (90, 80, 65, 50)
_SMALLEST = 16
"""Pixels of the longer side below which nothing can be seen any more."""

T = TypeVar("T")

_one_at_a_time = threading.Lock()


class PictureError(Exception):
    """An image that cannot be sent and not be made smaller. The message is a part of a sentence, for people."""


@dataclass(slots=True, frozen=True)
class Scaled:
    """An image as it is stored. ``was`` and ``size`` are pixels, as they are seen: width, height."""

    data: bytes
    media_type: str
    was: tuple[int, int]
    size: tuple[int, int]
    moving: bool = False


def fit_attachments(
    parts: Sequence[AttachmentPart], limits: ImageLimits
) -> tuple[list[AttachmentPart], list[str], list[str]]:
    """The attachments as a model takes them: images that are too large scaled down, the others as they are.

    Beside them a line for each image that was changed, and one for each that had to be left out. Takes time where
    something is scaled: call in a thread. Raises nothing, whatever the files hold.
    """
    kept: list[AttachmentPart] = []
    changed: list[str] = []
    refused: list[str] = []
    for part in parts:
        if not _too_large(part, limits):
            kept.append(part)
            continue
        try:
            made = scale(raw_of(part), limits)
        except PictureError as error:
            refused.append(f"{part.name}: {error}")
            continue
        kept.append(replace(part, media_type=made.media_type, data=base64.b64encode(made.data).decode()))
        changed.append(_line(part, made))
    return kept, changed, refused


def needs_fitting(parts: Iterable[AttachmentPart], limits: ImageLimits) -> bool:
    """Returns whether ``fit_attachments`` would change anything. Quick: only headers are read."""
    return any(_too_large(part, limits) for part in parts)


def scale(raw: bytes, limits: ImageLimits) -> Scaled:
    """An image made to fit: smaller in pixels where it has too many, and as JPEG where PNG has too many bytes.

    Turned as its camera meant it; of a moving image the first picture. Raises PictureError.
    """
    return guarded(lambda: _scale(raw, limits), "damaged or not an image, and too large to be sent as it is")


def guarded(work: Callable[[], T], otherwise: str) -> T:
    with _one_at_a_time:
        # One border for whatever the decoders raise over hostile bytes: their errors are of every kind.
        try:
            return work()
        except PictureError:
            raise
        except MemoryError:
            raise PictureError("it is too large to be scaled down here") from None
        except Exception as error:
            if type(error).__name__.startswith("DecompressionBomb"):
                raise PictureError(_too_many_pixels(None)) from None
            raise PictureError(f"it is {otherwise}") from None


def _too_large(part: AttachmentPart, limits: ImageLimits) -> bool:
    # It has to be so small that it can stay, however many are added later.
    lasting = replace(limits, side=limits.best_side, size=_room(limits))
    return part.is_image and lasting.problem(part.data or "", part.media_type) is not None


def _room(limits: ImageLimits) -> int | None:
    """Bytes after base64 that one image may have."""
    return min((n for n in (limits.size, limits.total) if n is not None), default=None)


def raw_of(part: AttachmentPart) -> bytes:
    try:
        return base64.b64decode(part.data or "", validate=True)
    except (binascii.Error, ValueError):
        raise PictureError("it is not valid base64") from None


def _line(part: AttachmentPart, made: Scaled) -> str:
    first = " (its first picture)" if made.moving else ""
    if made.size != made.was:
        return f"{part.name}{first} scaled from {_pixels(made.was)} to {_pixels(made.size)} for this model"
    kind = made.media_type.removeprefix("image/").upper()
    return f"{part.name}{first} stored anew as {kind} for this model, {size(len(made.data))}"


def _pixels(size: tuple[int, int]) -> str:
    return f"{size[0]}×{size[1]}"


def _too_many_pixels(size: tuple[int, int] | None) -> str:
    claimed = f"{_pixels(size)} pixels are" if size else "it claims"
    return f"{claimed} more than the {MAX_PIXELS // 1_000_000} million pixels that are scaled down; make it smaller"


def _scale(raw: bytes, limits: ImageLimits) -> Scaled:
    def fitting(stored: tuple[int, int]) -> tuple[int, int]:
        return _within(stored, min(limits.best_side or _LARGEST, _LARGEST), limits.pixels)

    pillow, _ = load_pillow()
    photo, moving, stored, picture = open_picture(raw, fitting)
    width, height = fitting(stored)
    turned = (picture.width < picture.height) != (stored[0] < stored[1])
    was = (stored[1], stored[0]) if turned else stored
    size = (height, width) if turned else (width, height)
    room = _room(limits)
    while max(size) >= _SMALLEST:
        small = picture if picture.size == size else picture.resize(size, pillow.Resampling.LANCZOS)
        for data, media_type in _encodings(small, photo, limits.types):
            if room is None or -(-len(data) // 3) * 4 <= room:
                return Scaled(data, media_type, was, size, moving)
        size = (max(1, size[0] * 3 // 4), max(1, size[1] * 3 // 4))
    raise PictureError("it cannot be made small enough for this model")


def open_picture(
    raw: bytes, fitting: Callable[[tuple[int, int]], tuple[int, int]]
) -> tuple[bool, bool, tuple[int, int], Image]:
    """Opens a picture; returns whether it is a photo, whether it moves, its size as it is stored, and the image turned
    as it was meant: decoded smaller where ``fitting`` says that less is enough."""
    said = pixel_size(raw)
    if said is not None and said[0] * said[1] > MAX_PIXELS:
        raise PictureError(_too_many_pixels(said))
    pillow, turn = load_pillow()
    with pillow.open(io.BytesIO(raw), formats=_FORMATS) as opened:
        if opened.width * opened.height > MAX_PIXELS:
            raise PictureError(_too_many_pixels(opened.size))
        moving = getattr(opened, "n_frames", 1) > 1
        photo = opened.format == "JPEG"
        stored = opened.size
        if photo:
            # Decodes at a half, a quarter or an eighth where that is enough: most of the time and the memory.
            opened.draft(None, fitting(stored))
        opened.load()
        return photo, moving, stored, turn(_plain(opened))


def _within(size: tuple[int, int], side: int, pixels: int | None) -> tuple[int, int]:
    """The largest size of the same shape that keeps to the limits."""
    width, height = size
    share = min(1.0, side / max(size))
    if pixels is not None and width * height * share * share > pixels:
        share = (pixels / (width * height)) ** 0.5
    if share == 1.0:
        return size
    # Rounded to the nearest, but never beyond a limit of the side or of the whole.
    found = (max(1, round(width * share)), max(1, round(height * share)))
    if pixels is not None and found[0] * found[1] > pixels:
        found = (max(1, int(width * share)), max(1, int(height * share)))
    return found


def _plain(picture: Image) -> Image:
    """In a mode that PNG and JPEG can hold: with colours, and transparent only where it was."""
    if picture.mode in ("RGB", "RGBA", "L"):
        return picture.copy()
    if picture.mode.startswith(("I", "F")):
        # Sixteen bits of grey.
        return picture.convert("I").point(lambda value: value / 256).convert("L")
    if picture.mode in ("LA", "La", "PA", "RGBa") or "transparency" in picture.info:
        return picture.convert("RGBA")
    return picture.convert("L" if picture.mode == "1" else "RGB")


def _encodings(picture: Image, photo: bool, types: frozenset[str]) -> Iterator[tuple[bytes, str]]:
    """The image as PNG where it was lossless, then as JPEG of less and less quality. What a camera noted, such as the
    place, is not taken along."""
    if not photo and "image/png" in types:
        yield saved(picture, "PNG"), "image/png"
    flat = _flat(picture, WHITE) if picture.mode == "RGBA" else picture
    for quality in _QUALITIES:
        yield saved(flat, "JPEG", quality=quality), "image/jpeg"


def saved(picture: Image, form: str, **options: Any) -> bytes:
    out = io.BytesIO()
    picture.save(out, form, **options)
    return out.getvalue()


@cache
def load_pillow() -> tuple[ModuleType, Any]:
    """Pillow, which takes a while to import and is only needed for this; and what turns an image as it is meant."""
    import warnings

    from PIL import Image, ImageOps

    Image.MAX_IMAGE_PIXELS = MAX_PIXELS
    # Its warning of a bomb would be written over the screen.
    warnings.simplefilter("error", Image.DecompressionBombWarning)
    return Image, ImageOps.exif_transpose


Size: TypeAlias = tuple[int, int]
"""Pixels, wide and high, as they are seen."""
Rgb: TypeAlias = tuple[int, int, int]
WHITE: Rgb = (255, 255, 255)
_DAMAGED = "damaged or not an image"


@dataclass(slots=True, frozen=True)
class Preview:
    """An image file, of ``size``, and the pixels of the image that it was made of."""

    data: bytes
    size: Size
    was: Size


@dataclass(slots=True, frozen=True)
class Dots:
    """An image as dots: for each three bytes (red, green, blue)."""

    pixels: bytes
    size: Size
    was: Size


def preview(part: AttachmentPart, width: int, height: int, most_bytes: int | None = None) -> Preview:
    """An image file as PNG, not larger than so many pixels and never larger than it is, nor than ``most_bytes``.

    Takes time: call in a thread. Raises PictureError, as all of these do.
    """

    def work() -> Preview:
        picture, was = _fitted(part, width, height)
        data = saved(picture, "PNG")
        while most_bytes is not None and len(data) > most_bytes and max(picture.size) > 1:
            picture = picture.resize((max(1, picture.width * 3 // 4), max(1, picture.height * 3 // 4)))
            data = saved(picture, "PNG")
        return Preview(data, picture.size, was)

    return guarded(work, _DAMAGED)


def dots(part: AttachmentPart, width: int, height: int, background: Rgb) -> Dots:
    """An image on a background, not larger than so many pixels and never larger than it is."""

    def work() -> Dots:
        picture, was = _fitted(part, width, height)
        flat = _flat(picture, background)
        return Dots(flat.tobytes(), flat.size, was)

    return guarded(work, _DAMAGED)


def _fitted(part: AttachmentPart, width: int, height: int) -> tuple[Image, Size]:
    """It, in the box, and the size that it has."""
    width, height = max(1, width), max(1, height)
    _, _, stored, picture = open_picture(raw_of(part), lambda stored: _in_box(stored, *[max(width, height)] * 2))
    size = _in_box(picture.size, width, height)
    if size != picture.size:
        pillow, _ = load_pillow()
        picture = picture.resize(size, pillow.Resampling.BILINEAR, reducing_gap=2.0)
    turned = (picture.width < picture.height) != (stored[0] < stored[1])
    return picture, (stored[1], stored[0]) if turned else stored


def _in_box(size: Size, width: int, height: int) -> Size:
    share = min(1.0, width / size[0], height / size[1])
    return max(1, round(size[0] * share)), max(1, round(size[1] * share))


def _flat(picture: Image, background: Rgb) -> Image:
    """Without anything to see through."""
    if picture.mode != "RGBA":
        return picture.convert("RGB")
    pillow, _ = load_pillow()
    flat: Image = pillow.new("RGB", picture.size, background)
    flat.paste(picture, mask=picture.getchannel("A"))
    return flat
