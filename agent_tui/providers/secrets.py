"""Taking keys out of any text that a person, a log or an export may see."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

MASK = "[secret]"
MIN_LENGTH = 8
"""Shorter values are not treated as secrets: replacing them would garble ordinary words."""

_NAME = re.compile(r"(?i)(api_?key|token|secret|password|credential)")
_PATTERNS = (
    re.compile(
        r"\b(?:sk|pk|rk|gsk|xai|csk|nvapi|pplx|hf|r8|fw|tgp|ghp|gho|ghs|github_pat|glpat)[-_][A-Za-z0-9_\-.]{12,}"
    ),
    re.compile(r"\bAIza[0-9A-Za-z_\-]{20,}"),
    re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    re.compile(r"\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*"),
    re.compile(r"(?i)(?<=bearer )[A-Za-z0-9._~+/=\-]{8,}"),
    re.compile(r"(?i)(?<=[?&]key=)[^&\s\"']{6,}"),
    re.compile(r"(?i)(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"),
)
_FIELD = re.compile(
    r"(?i)((?:x-api-key|api[-_]?key|x-goog-api-key|authorization|access[-_]?token|secret[-_]?key)"
    r"[\"']?\s*[:=]\s*[\"']?(?:bearer\s+|basic\s+)?)([^\s\"',;}\]]{6,})"
)


def environment_secrets() -> list[str]:
    """Values of environment variables whose names say that they are secret."""
    return [
        value
        for name, value in os.environ.items()
        if len(value) >= MIN_LENGTH and not value.isdigit() and _NAME.search(name)
    ]


def redact(text: str, known: Iterable[str] = ()) -> str:
    """``text`` without secrets: the ``known`` values, those of the environment, and whatever looks like a key."""
    values = {v for v in (*known, *environment_secrets()) if len(v) >= MIN_LENGTH}
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, MASK)
    for pattern in _PATTERNS:
        text = pattern.sub(MASK, text)
    return _FIELD.sub(lambda m: m.group(1) + MASK, text)


class Redactor:
    """``redact`` that also remembers keys which are in no variable, such as those of the keyring."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def add(self, secret: str | None) -> None:
        if secret:
            self._known.add(secret)

    def known(self) -> frozenset[str]:
        """The keys it was told of."""
        return frozenset(self._known)

    def __call__(self, text: str) -> str:
        return redact(text, self._known)
