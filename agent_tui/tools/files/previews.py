"""Images as a screen shows them: made anew from the pixels, so that nothing of a file itself reaches a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from agent_tui.models.messages import AttachmentPart
from agent_tui.tools.files.pictures import guarded, load_pillow, open_picture, raw_of, saved

if TYPE_CHECKING:
    from PIL.Image import Image

Size: TypeAlias = tuple[int, int]
"""Pixels, wide and high, as they are seen."""
Rgb: TypeAlias = tuple[int, int, int]
WHITE: Rgb = (255, 255, 255)
_DAMAGED = "damaged or no image"
_LOOKED_AT = 200
"""Dots of a side that are looked at in order to choose colours."""
_QUALITIES = (85, 70, 50)


@dataclass(slots=True, frozen=True)
class Preview:
    """An image file, of ``size``, and the pixels of the image that it was made of."""

    data: bytes
    size: Size
    was: Size


@dataclass(slots=True, frozen=True)
class Dots:
    """An image as dots: for each three bytes (red, green, blue), or the number of its colour in ``palette``."""

    pixels: bytes
    size: Size
    was: Size
    palette: Sequence[Rgb] = ()


def preview(part: AttachmentPart, width: int, height: int, most_bytes: int | None = None, png: bool = False) -> Preview:
    """An image file, not larger than so many pixels and never larger than it is, nor than ``most_bytes``: a PNG, or a
    JPEG where a PNG has too many of them. ``png``: nothing else.

    Takes time: call in a thread. Raises PictureError, as all of these do.
    """

    def work() -> Preview:
        picture, was = _fitted(part, width, height)
        data = saved(picture, "PNG")
        while most_bytes is not None and len(data) > most_bytes and max(picture.size) > 1:
            flat = _flat(picture, WHITE)
            files = (saved(flat, "JPEG", quality=quality) for quality in (() if png else _QUALITIES))
            fitting = next((file for file in files if len(file) <= most_bytes), None)
            if fitting is not None:
                return Preview(fitting, flat.size, was)
            picture = picture.resize((max(1, picture.width * 3 // 4), max(1, picture.height * 3 // 4)))
            data = saved(picture, "PNG")
        return Preview(data, picture.size, was)

    return guarded(work, _DAMAGED)


def dots(part: AttachmentPart, width: int, height: int, background: Rgb, colors: int | None = None) -> Dots:
    """An image on a background, not larger than so many pixels and never larger than it is; with ``colors`` no more
    different ones than that, at most 256."""

    def work() -> Dots:
        picture, was = _fitted(part, width, height)
        flat = _flat(picture, background)
        if colors is None:
            return Dots(flat.tobytes(), flat.size, was)
        few = _few_colors(flat, min(colors, 256))
        flat_palette = few.getpalette() or []
        palette = [(flat_palette[n], flat_palette[n + 1], flat_palette[n + 2]) for n in range(0, len(flat_palette), 3)]
        return Dots(few.tobytes(), few.size, was, palette)

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


def _few_colors(picture: Image, colors: int) -> Image:
    """The very colours where there are no more of them than that; else those of a part of the dots, of which all others
    are mixed."""
    pillow, _ = load_pillow()
    options = {"method": pillow.Quantize.MEDIANCUT, "dither": pillow.Dither.NONE}
    if picture.getcolors(colors) is not None:
        return picture.quantize(colors, **options)
    part = picture.resize(_in_box(picture.size, _LOOKED_AT, _LOOKED_AT), pillow.Resampling.NEAREST)
    return picture.quantize(palette=part.quantize(colors, **options), dither=pillow.Dither.FLOYDSTEINBERG)
