"""Long pastes and images stand in the prompt as a placeholder and are put back when the message is sent."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agent_tui.text.numbers import lines_in, plural

if TYPE_CHECKING:
    from agent_tui.models.messages import AttachmentPart, Written

MAX_CHARS = 1_000
MAX_LINES = 15

PLACEHOLDER = re.compile(r"\[(?:Pasted text|Image) #\d+[^\]\n]*\]")

IMAGE = re.compile(r"\[Image #\d+\]")


def is_long(text: str) -> bool:
    """Returns whether a paste is shown as a placeholder: over 1 000 characters or 15 lines."""
    return len(text) > MAX_CHARS or lines_in(text) > MAX_LINES


class Placeholders:
    """The placeholders of the current prompt, with the texts and images that they stand for."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.images: dict[str, AttachmentPart] = {}
        self._count = 0

    def collapse(self, text: str) -> str:
        """A placeholder for a long text; short text is returned as it is."""
        if not is_long(text):
            return text
        for known, kept in self.texts.items():
            if kept == text:
                return known
        self._count += 1
        lines = lines_in(text)
        size = plural(lines, "line") if lines > 1 else plural(len(text), "character")
        name = f"[Pasted text #{self._count} · {size}]"
        self.texts[name] = text
        return name

    def image(self, part: AttachmentPart) -> str:
        self._count += 1
        name = f"[Image #{self._count}]"
        self.images[name] = part
        return name

    def expand(self, text: str) -> Written:
        """The text with every paste in place, and the images it mentions."""
        from agent_tui.models.messages import Written

        images = [part for name, part in self.images.items() if name in text]
        pieces: list[str] = []
        pasted: list[list[int]] = []
        at = length = 0
        for hit in PLACEHOLDER.finditer(text):
            if (whole := self.texts.get(hit[0])) is None:
                continue
            pieces += [text[at : hit.start()], whole]
            length += hit.start() - at + len(whole)
            pasted.append([length - len(whole), length])
            at = hit.end()
        return Written("".join([*pieces, text[at:]]), images, pasted)

    def apart(self, text: str) -> tuple[str, list[str], list[AttachmentPart]]:
        """The text without its placeholders, the pastes that they stand for, and the images."""
        if not self.texts and not self.images:
            return text, [], []
        found = [hit[0] for hit in PLACEHOLDER.finditer(text)]
        pastes = [self.texts[name] for name in found if name in self.texts]
        images = [part for name, part in self.images.items() if name in text]
        for name in dict.fromkeys(name for name in found if name in self.texts):
            text = text.replace(name, "")
        return text, pastes, images

    def restore(self, typed: Written) -> str:
        """The text of a message that comes back into the prompt, its pastes and images behind placeholders again. What
        the text names with ``@`` is read again when it is sent."""
        text, parts, pasted = typed
        for start, end in reversed(pasted):
            text = text[:start] + self.collapse(text[start:end]) + text[end:]
        names = sorted(set(IMAGE.findall(text)), key=lambda name: (len(name), name))
        for part in parts:
            named = "@" in text and part.name.rpartition("/")[2] in text
            if named or not part.media_type.startswith("image/"):
                continue
            name = self.image(part)
            text = text.replace(names.pop(0), name) if names else f"{text} {name}".lstrip()
        return text

    def places(self, text: str) -> list[tuple[int, int]]:
        return [hit.span() for hit in PLACEHOLDER.finditer(text) if hit[0] in self.texts or hit[0] in self.images]

    def before(self, line: str, column: int) -> int | None:
        """Returns the column at which the placeholder of ours begins that ends at ``column``; None without one."""
        return next((start for start, end in self.places(line) if end == column), None)

    def clear(self) -> None:
        self.texts.clear()
        self.images.clear()
