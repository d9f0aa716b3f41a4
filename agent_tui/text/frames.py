"""The blocks in which the model reads texts of others: no text can end its own, or look like another.

What a block is made of depends on its text alone, so that a prompt stays the same to the byte, and cached.
"""

from __future__ import annotations

import re
from functools import lru_cache

from agent_tui.text.clean import visible_form
from agent_tui.text.lookalikes import latin_form

NOTE = "agent_note"
"""The tag of what the program itself tells the model, which no text of others has: no tool's words either."""
_OURS = (
    f"{NOTE}|environment|instructions|document|file|mcp_server|pinned_answer|pinned|kept_note|user_message"
    "|tool_call|tool_response"
)
_TYPE = r"(?-i:(?<=\w<)(?:Environment|Instructions|Document|File|Pinned)[>,?\[])"
"""What is a program's type, and no tag: ``List<File>``."""
_LONGEST = 40
"""Characters of a tag that are looked at: more than any of ours has."""
_OPENING = "<\uff1c\ufe64\u2039\u2329\u3008\u27e8\u276c\u276e\u02c2\u1438\u29fc\u226e\u227a\u00ab\u226a\u300a"
"""Signs that a tag begins with, or seems to."""
_BLANKS = " \t\r\n/\\\\\u2044\u2215\u2571\u29f8\u27cb"
"""What may stand between such a sign and the name: blanks, and all that looks like a slash."""


def framed(tag: str, text: str, attributes: str = "") -> str:
    """A text in its block. ``attributes`` are those of its tag, made of ``attribute``."""
    return f"<{tag}{f' {attributes}' if attributes else ''}>\n{without_tags(text)}\n</{tag}>"


def attribute(name: str, value: str) -> str:
    """A value in a tag: on one line, and without what would end it."""
    value = " ".join(without_tags(value).split()).replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return f'{name}="{value.replace(">", "&gt;")}"'


def without_tags(text: str, ours: str = _OURS) -> str:
    """A text in which the tags of our blocks are written so that they are none, and all that a reader takes for one:
    in letters of another width or alphabet, and with characters that cannot be seen."""
    if text.isascii() and re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", text) is None:
        return re.sub(rf"<(?!{_TYPE})(?=[\s/\\]*{_named(ours)})", "&lt;", text, flags=re.IGNORECASE)
    return re.sub(f"[{_OPENING}]", lambda sign: "&lt;" if _is_ours(text, sign.end(), ours) else sign[0], text)


def _named(ours: str) -> str:
    names = ours.replace("_", r"[\s_-]+")
    return rf"(?:{names})(?:-\d+)?(?![\w-])"


def _is_ours(text: str, at: int, ours: str) -> bool:
    """Whether what begins there shows as the name of one of our tags."""
    if re.compile(_TYPE).match(text, at):
        return False
    name = ""
    while at < len(text) and len(name) < _LONGEST:
        name = (name + _shown(text[at])).lstrip(_BLANKS)
        if name and not re.match(r"[\w\s-]", name[-1]):
            break
        at += 1
    return re.match(_named(ours), name) is not None


@lru_cache(maxsize=4096)
def _shown(char: str) -> str:
    """A character as it is read: a small Latin letter, a blank, or nothing."""
    return latin_form(visible_form(f"|{char}|"))[1:-1]
