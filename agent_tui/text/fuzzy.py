"""Fuzzy matching that stays quick on tens of thousands of candidates: cheap tests first, letters in order last."""

from __future__ import annotations

import re
from collections.abc import Sequence

ENOUGH = 50
"""With so many plain matches nobody looks for letters scattered over a path."""


def match_paths(query: str, paths: Sequence[str], limit: int = 200) -> list[str]:
    """Paths that match, best first: name starts with it, name has it, path has it, letters in order."""
    if not query:
        return sorted(paths[:5000], key=lambda p: (p.count("/"), p))[:limit]
    wanted = query.lower()
    if "/" in wanted:
        return match(query, paths, limit)
    lowered = [(p.lower(), p) for p in paths]
    inside = [(low, path) for low, path in lowered if wanted in low]
    ranked = sorted((_name_rank(low, wanted), len(path), path) for low, path in inside)
    found = [path for _, _, path in ranked[:limit]]
    if len(found) < ENOUGH:
        have = set(found)
        found += [p for p in _in_order(wanted, lowered, limit) if p not in have]
    return found[:limit]


def match(query: str, texts: Sequence[str], limit: int = 200) -> list[str]:
    """Texts that match, best first: starts with it, has it, letters in order; equals keep their order."""
    wanted = query.lower()
    lowered = [(text.lower(), text) for text in texts]
    starts = [text for low, text in lowered if low.startswith(wanted)]
    if len(starts) >= limit:
        return starts[:limit]
    have = set(starts)
    found = starts + [text for low, text in lowered if wanted in low and text not in have]
    if len(found) < ENOUGH:
        have = set(found)
        found += [text for text in _in_order(wanted, lowered, limit) if text not in have]
    return found[:limit]


def _name_rank(low: str, wanted: str) -> int:
    name = low.rstrip("/").rpartition("/")[2]
    if name.startswith(wanted):
        return 0
    return 1 if wanted in name else 2


def _in_order(wanted: str, lowered: Sequence[tuple[str, str]], limit: int) -> list[str]:
    """Texts that have the letters in order; the shorter the stretch they span, the better."""
    found: list[tuple[int, int, str]] = []
    search = re.compile(".*?".join(map(re.escape, wanted)), re.DOTALL).search
    for low, text in lowered:
        hit = search(low)
        if hit is not None:
            found.append((hit.end() - hit.start(), len(text), text))
    return [text for _, _, text in sorted(found)[:limit]]
