"""The server's own words in the body of an error, in whatever form it gives them."""

from __future__ import annotations

import html
import re
from typing import Any

_TITLE = re.compile(r"<title[^>]*>(.*?)</title>|<h1[^>]*>(.*?)</h1>", re.IGNORECASE | re.DOTALL)
_UNSEEN = re.compile(r"<(script|style|head)\b.*?(?:</\1>|$)|<!--.*?(?:-->|$)", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
PAGE = re.compile(r"<!doctype html|<html\b|<title>", re.IGNORECASE)
"""Where an HTML page begins."""

_PAGE_CHARS = 20_000
_SEEN_CHARS = 200
_NAMES = ("message", "error", "detail", "details", "error_message", "msg", "errors", "reason", "title", "type")
_DEPTH = 4


def words_of(body: Any) -> str:
    """What an error's body says, without its wrapping; empty when it says nothing. ``body`` is parsed JSON or text."""
    if isinstance(body, str):
        return _page(body) if body.lstrip()[:1] == "<" else body.strip()
    return _inside(body, _DEPTH)


def _inside(value: Any, depth: int) -> str:
    if isinstance(value, str):
        return value.strip()
    if depth == 0:
        return ""
    if isinstance(value, list):
        return next((found for item in value[:5] if (found := _inside(item, depth - 1))), "")
    if isinstance(value, dict):
        return next((found for name in _NAMES if (found := _inside(value.get(name), depth - 1))), "")
    return ""


def _page(text: str) -> str:
    """The heading of an HTML page, for what stands below it is for browsers; without one, how its text begins."""
    text = text[:_PAGE_CHARS]
    found = _TITLE.search(text)
    inner = next((group for group in found.groups() if group), "") if found else ""
    if words := _visible(inner):
        return words
    return _visible(_UNSEEN.sub(" ", text))[:_SEEN_CHARS]


def _visible(markup: str) -> str:
    return " ".join(html.unescape(_TAG.sub(" ", markup)).split())
