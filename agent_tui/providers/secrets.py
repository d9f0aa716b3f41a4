"""Taking keys out of any text that a person, a log or an export may see."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from agent_tui.providers.catalog import KEY_VARIABLES

MASK = "[secret]"
MIN_LENGTH = 8
"""Shorter values are not treated as secrets: replacing them would garble ordinary words."""

_NAME = re.compile(r"(?i)(api[_-]?key|token|secret|password|credential)")
_KEY_BEGINNINGS = "sk|pk|rk|gsk|xai|csk|nvapi|pplx|hf|r8|fw|tgp|ghp|gho|ghs|github_pat|glpat"
_PATTERNS = (
    (
        [f"{name}{mark}" for name in _KEY_BEGINNINGS.split("|") for mark in "-_"],
        re.compile(rf"\b(?:{_KEY_BEGINNINGS})[-_][A-Za-z0-9_\-.]{{12,}}"),
    ),
    (["aiza"], re.compile(r"\bAIza[0-9A-Za-z_\-]{20,}")),
    (["akia", "asia"], re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    (["eyj"], re.compile(r"\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*")),
    (["bearer "], re.compile(r"(?i)(?<=bearer )[A-Za-z0-9._~+/=\-]{8,}")),
    (["key="], re.compile(r"(?i)(?<=[?&]key=)[^&\s\"']{6,}")),
    (["://"], re.compile(r"(?i)(?<=://)[^/\s:@]+:[^/\s@]+(?=@)")),
)
"""What looks like a key, each behind texts (in small letters) without one of which it is not looked for: to search for
a text is cheap."""
_FIELDS = ("api", "authorization", "token", "secret")
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


_CLOUD = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "AZURE_API_KEY")
_KEYS = frozenset((*(name for names in KEY_VARIABLES.values() for name in names), *_CLOUD))
_WORD = re.compile(r"[a-z-]+|[A-Z_]+|[\d.]+|.*\s.*", re.DOTALL)
_PLACE = re.compile(r"[~./]|\w+://")
_LONG = 16
"""From this length on the value of any variable with a telling name is a secret of its own: a shorter one may be an
ordinary word, which must not be masked everywhere."""


def names_secret(name: str) -> bool:
    """Returns whether a variable's or a header's name says that its value is a key."""
    return _NAME.search(name) is not None or name.lower() == "authorization"


def is_secret(value: str) -> bool:
    """Returns whether a value that is given as a key is one, and not a word such as ``lm-studio`` for a server that
    wants none, a number or a sentence."""
    return len(value) >= MIN_LENGTH and _WORD.fullmatch(value) is None


def configured_secrets(environ: Mapping[str, str] | None = None) -> set[str]:
    """The values of the variables that hold providers' keys, and of others whose names say that they are secret."""
    found: set[str] = set()
    for name, value in (os.environ if environ is None else environ).items():
        telling = len(value) >= _LONG and _NAME.search(name) and re.search(r"\d", value) and not _PLACE.match(value)
        if is_secret(value) and (name in _KEYS or telling):
            found.add(value)
    return found


@lru_cache(maxsize=32)
def _spellings(values: frozenset[str]) -> tuple[tuple[str, ...], re.Pattern[str] | None]:
    """Every way the values may be written, longest first, and the pattern that finds them. What stands in base64 may
    be broken into lines."""
    plain: set[str] = set()
    wrapped: set[str] = set()
    for value in values:
        raw = value.encode("utf-8", "surrogatepass")
        plain |= {value, quote(value, safe=""), quote(value, safe="").lower(), json.dumps(value)[1:-1]}
        plain |= {raw.hex(), raw.hex().upper()}
        for offset in range(3):
            text = base64.b64encode(b"\0" * offset + raw).decode()
            # The characters at both ends also hold bits of what stands around the value.
            core = text[(0, 2, 3)[offset] :].rstrip("=")
            core = core[: len(core) - 1] if (offset + len(raw)) % 3 else core
            if len(core) >= MIN_LENGTH:
                wrapped |= {core, core.replace("+", "-").replace("/", "_")}
    every = sorted({s for s in plain | wrapped if len(s) >= MIN_LENGTH}, key=len, reverse=True)
    if not every:
        return (), None
    found = [r"(?:\r?\n)?".join(map(re.escape, s)) if s in wrapped else re.escape(s) for s in every]
    return tuple(every), re.compile("|".join(found))


def mask(text: str, values: Iterable[str]) -> str:
    """``text`` with each of the values masked: as it is, in URLs, in JSON, in hexadecimal and in base64."""
    _, pattern = _spellings(frozenset(v for v in values if len(v) >= MIN_LENGTH))
    return text if pattern is None else pattern.sub(MASK, text)


def redactor(known: Iterable[str] = ()) -> Callable[[str], str]:
    """``redact`` for many texts: the environment is read once."""
    values = frozenset((*known, *environment_secrets()))

    def hide(text: str) -> str:
        text = mask(text, values)
        small = text.lower()
        for beginnings, pattern in _PATTERNS:
            if any(beginning in small for beginning in beginnings):
                text = pattern.sub(MASK, text)
        return _FIELD.sub(lambda m: m.group(1) + MASK, text) if any(word in small for word in _FIELDS) else text

    return hide


def redact(text: str, known: Iterable[str] = ()) -> str:
    """``text`` without secrets: the ``known`` values, those of the environment, and whatever looks like a key."""
    return redactor(known)(text)


class Redactor:
    """``redact`` that also remembers keys which are in no variable, such as those of the keyring.

    ``mask`` is for what tools and commands say: there only the user's own keys are taken out, and nothing that merely
    looks like one, so that files are read as they are.
    """

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._configured = configured_secrets()

    def add(self, secret: str | None) -> None:
        if secret:
            self._known.add(secret)

    def known(self) -> frozenset[str]:
        return frozenset(self._known)

    def __call__(self, text: str) -> str:
        return redact(text, self._known)

    @property
    def values(self) -> set[str]:
        """The user's own keys, as far as they are known."""
        return self._configured | {value for value in self._known if is_secret(value)}

    def mask(self, text: str) -> str:
        return mask(text, self.values)

    def mask_all(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.mask(value)
        if isinstance(value, dict):
            return {key: self.mask_all(entry) for key, entry in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self.mask_all(entry) for entry in value)
        return value

    def stream(self) -> MaskedStream:
        return MaskedStream(self.values)


class MaskedStream:
    """Masks a text that comes in pieces: what may be the beginning of a secret is held back until more is known."""

    def __init__(self, values: Iterable[str]) -> None:
        self._values = frozenset(values)
        self._spelled, _ = _spellings(self._values)
        self._longest = max(map(len, self._spelled), default=0)
        self._held = ""

    def feed(self, text: str) -> str:
        """Takes the next piece of the text and returns what can be shown now."""
        text = mask(self._held + text, self._values)
        held = self._beginning(text)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]

    def flush(self) -> str:
        rest, self._held = self._held, ""
        return rest

    def _beginning(self, text: str) -> int:
        """Returns how many characters at the end may be the beginning of a secret; line ends within it do not count."""
        kept = [i for i in range(max(0, len(text) - 2 * self._longest), len(text)) if text[i] not in "\r\n"]
        tail = "".join(text[i] for i in kept)
        best = max((_overlap(tail, spelled) for spelled in self._spelled), default=0)
        return len(text) - kept[-best] if best else 0


def _overlap(text: str, word: str) -> int:
    """The length of the longest end of ``text`` that is a beginning of ``word``, but not all of it."""
    return next((n for n in range(min(len(word) - 1, len(text)), 0, -1) if text.endswith(word[:n])), 0)
