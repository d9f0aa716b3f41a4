"""The blocks in which the model reads texts of others: no text can end its own, or look like another.

What a block is made of depends on its text alone, so that a prompt stays the same to the byte, and cached.
"""

from __future__ import annotations

import re

_OURS = "instructions|document|mcp_server|pinned_answer|pinned|user_message|tool_call|tool_response"
_AS_IT_IS = ("document", "file")
"""Blocks with files that the model may go on to edit: nothing in their kind of tag is written in another way."""


def framed(tag: str, text: str, attributes: str = "") -> str:
    """A text in its block. ``attributes`` are those of its tag, made of ``attribute``."""
    text = without_tags(text, apart_from=tag if tag in _AS_IT_IS else "")
    name, number = tag, 2
    while re.search(rf"<\s*/?\s*{name}(?![\w-])", text, re.IGNORECASE):
        name, number = f"{tag}-{number}", number + 1
    return f"<{name}{f' {attributes}' if attributes else ''}>\n{text}\n</{name}>"


def attribute(name: str, value: str) -> str:
    """A value in a tag: on one line, and without what would end it."""
    value = " ".join(value.split()).replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return f'{name}="{value.replace(">", "&gt;")}"'


def without_tags(text: str, apart_from: str = "") -> str:
    """A text in which the tags of our blocks are written so that they are none."""
    if "<" not in text:
        return text
    ours = "|".join(tag for tag in _OURS.split("|") if tag != apart_from)
    text = re.sub(rf"<(?=\s*/?\s*(?:{ours})(?:-\d+)?(?![\w-]))", "&lt;", text, flags=re.IGNORECASE)
    return text if apart_from == "file" else re.sub(r"<(?=\s*file\s+name=)", "&lt;", text, flags=re.IGNORECASE)
