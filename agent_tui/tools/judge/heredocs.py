"""Checks that a here-document ends where bash has it end."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agent_tui.tools.judge.words import NotUnderstoodError

if TYPE_CHECKING:
    from tree_sitter import Node

_MARK = re.compile(r"""(['"]?)([\w.!:@%+-]+)\1|\\([\w.-]+)""", re.ASCII)


def check_heredoc(text: bytes, start: Node, body: Node, end: Node) -> bool:
    """Returns whether its mark is quoted, so that nothing in it is expanded. Raises NotUnderstoodError where the parser
    and bash may not agree on what belongs to it."""
    mark = _MARK.fullmatch(text[start.start_byte : start.end_byte].decode())
    if mark is None:
        raise NotUnderstoodError("the end mark of a here-document is unclear")
    quoted = bool(mark[1] or mark[3])
    name = (mark[2] or mark[3]).encode()
    stripped = text[: start.start_byte].rstrip(b" \t").endswith(b"<<-")
    at = text.find(b"\n", start.end_byte) + 1
    if any(sign in text[start.end_byte : at] for sign in (b"(", b"`")):
        raise NotUnderstoodError("a here-document begins on a line with more commands in it")
    if at == 0 or body.start_byte < at or text[at : body.start_byte].strip(b"\t"):
        raise NotUnderstoodError("a here-document does not begin behind its line")
    while at < len(text):
        until = text.find(b"\n", at)
        until = len(text) if until < 0 else until
        line = text[at:until]
        if (line.lstrip(b"\t") if stripped else line) == name:
            if not (at <= end.start_byte and end.end_byte == until):
                raise NotUnderstoodError("a here-document ends elsewhere than it seems")
            return quoted
        if not quoted and line.endswith(b"\\"):
            raise NotUnderstoodError("a line of a here-document is continued")
        at = until + 1
    raise NotUnderstoodError("a here-document does not end")
