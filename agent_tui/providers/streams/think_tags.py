"""Thoughts that a local model writes into its plain text, between ``<think>`` and ``</think>`` at the very start.

They become a reasoning part and a text part that together are the text as it came, byte for byte: the tags stand in
the reasoning part's metadata, and the answer goes back to the model with them.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent_tui.models.messages import Metadata
from agent_tui.providers.streams.parts import PartBuilder

OPEN, CLOSE = "<think>", "</think>"
FIELD = "think_tags"
"""The ``field`` of such a reasoning part: where it goes when it is sent back."""

_BLANK_LIMIT = 64
"""Blank characters before the tag that are still its own."""


class TagSplitter:
    """Takes the text of an answer piece by piece and gives it on as parts. ``active`` False: everything is text."""

    def __init__(self, out: PartBuilder, active: bool) -> None:
        self._out = out
        self._state = "start" if active else "text"
        self._held = ""
        self._open = ""
        out.at_end(self.interrupt)

    def feed(self, text: str) -> None:
        """The next piece of text. Nothing is held back longer than a tag may still be coming."""
        if self._state == "start":
            text, self._held = self._held + text, ""
            bare = text.lstrip()
            if len(text) - len(bare) <= _BLANK_LIMIT and len(bare) < len(OPEN) and OPEN.startswith(bare):
                self._held = text
                return
            if bare.startswith(OPEN) and len(text) - len(bare) <= _BLANK_LIMIT:
                self._state = "thinking"
                self._open, text = text[: len(text) - len(bare)] + OPEN, bare[len(OPEN) :]
                self._out.add(self._out.run("reasoning"), "reasoning", "", {"field": FIELD, "open": self._open})
            else:
                self._state = "text"
        if self._state == "thinking":
            text = self._thought(self._held + text)
        if text and self._state == "text":
            self._out.add(self._out.run("text"), "text", text)

    def interrupt(self) -> None:
        """Something else than text comes, or nothing any more: what was held back is as it is."""
        held, self._held = self._held, ""
        if self._state == "thinking" and held:
            self._out.add(self._out.run("reasoning"), "reasoning", held)
        elif held:
            self._out.add(self._out.run("text"), "text", held)
        self._state = "text"

    def _thought(self, text: str) -> str:
        """Gives on what is thought; the rest, behind the closing tag, is given back."""
        self._held = ""
        thought, tag, rest = text.partition(CLOSE)
        if not tag:
            keep = next((n for n in range(min(len(CLOSE) - 1, len(text)), 0, -1) if CLOSE.startswith(text[-n:])), 0)
            thought, self._held = text[: len(text) - keep], text[len(text) - keep :]
        key = self._out.run("reasoning")
        self._out.add(key, "reasoning", thought)
        if tag:
            self._out.add(key, "reasoning", "", {"field": FIELD, "open": self._open, "close": CLOSE})
            self._out.close(key)
            self._state = "text"
        return rest


def with_tags(text: str, metadata: Mapping[str, object]) -> str:
    """Thoughts as they stood in the text they came from."""
    return f"{metadata.get('open') or ''}{text}{metadata.get('close') or ''}"


def is_tagged(metadata: Metadata | None) -> bool:
    return (metadata or {}).get("field") == FIELD
