"""Inline Markdown as plain text with styled runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_tui.text.clean import drawable
from agent_tui.ui.flow.lines import Run

if TYPE_CHECKING:
    from markdown_it.token import Token

_URL = re.compile(r"https?://[^\s<>\"'`│]*[^\s<>\"'`│.,;:!?)\]}*_]")
_SAFE = re.compile(r"(?:https?://|mailto:)[^\s\x00-\x20\x7f-\x9f]+\Z", re.IGNORECASE)
_STYLES = {"em_open": "em", "strong_open": "strong", "s_open": "strike"}


def safe_link(url: str) -> str | None:
    """The address, if a click on it can do no more than open a page or a mail."""
    return url if len(url) <= 2_000 and _SAFE.match(url) else None


class _Text:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self.runs: list[Run] = []
        self.end = 0

    def add(self, text: str, style: str, link: str | None) -> None:
        if text:
            self.parts.append(text)
            self.end += len(text)
            self.runs.append((self.end, style, link))


def inline(token: Token, base: str = "") -> tuple[str, list[Run]]:
    """Text and runs of an ``inline`` token."""
    return render(token.children or (), base)


def render(children: Sequence[Token], base: str = "") -> tuple[str, list[Run]]:
    """Text and runs of inline tokens. Soft breaks are spaces, hard ones newlines."""
    out = _Text()
    styles = [base] if base else []
    links: list[tuple[str, int]] = []
    link: str | None = None
    style = base
    for token in children:
        kind = token.type
        if kind == "text":
            _text(out, drawable(token.content).replace("\n", " ").replace("\t", " "), style, link)
        elif kind == "code_inline":
            out.add(drawable(token.content).replace("\t", " "), f"{style} inline", link)
        elif kind == "softbreak":
            out.add(" ", style, link)
        elif kind == "hardbreak":
            out.add("\n", style, link)
        elif kind == "link_open":
            href = str(token.attrs.get("href", ""))
            links.append((href, out.end))
            link = safe_link(href)
            styles.append("link")
        elif kind == "link_close":
            if styles:
                styles.pop()
            link = None
            href, start = links.pop() if links else ("", 0)
            text = "".join(out.parts)[start:] if href else ""
            if href and safe_link(href) is None and text != href:
                out.add(f" ({drawable(href)})", "muted", None)
        elif kind == "image":
            href = str(token.attrs.get("src", ""))
            alt = drawable(token.content) or drawable(href)
            out.add(f"🖼 {alt}".replace("\n", " "), f"{style} link", safe_link(href))
        elif kind in _STYLES:
            styles.append(_STYLES[kind])
        elif kind.endswith("_close"):
            if styles:
                styles.pop()
        else:
            out.add(drawable(token.content).replace("\n", " "), f"{style} muted", link)
        style = " ".join(styles)
    return "".join(out.parts), out.runs


def _text(out: _Text, text: str, style: str, link: str | None) -> None:
    if link is None and "://" in text:
        at = 0
        for match in _URL.finditer(text):
            out.add(text[at : match.start()], style, None)
            out.add(match.group(), f"{style} link", safe_link(match.group()))
            at = match.end()
        text = text[at:]
    out.add(text, style, link)
