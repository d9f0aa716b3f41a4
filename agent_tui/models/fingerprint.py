"""Rolling fingerprints of what was sent. They decide whether an anchor or a signature still holds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

EMPTY = ""


def extend(fingerprint: str, item: str) -> str:
    """The fingerprint of a list that had ``fingerprint`` and now also has ``item`` at its end."""
    return hashlib.blake2b(f"{fingerprint}\n{item}".encode(), digest_size=12).hexdigest()


def fingerprint(items: Iterable[str], start: str = EMPTY) -> str:
    """The fingerprint of a list of ids, beginning from ``start``."""
    for item in items:
        start = extend(start, item)
    return start


def content_fingerprint(text: str) -> str:
    """A short digest of a piece of content (system prompt, a tool's schema, a file)."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
