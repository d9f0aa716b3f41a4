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

from agent_tui.text.secrets import MASK, MIN_LENGTH, PROVIDERS_KEYS, names_secret, without_keys


def environment_secrets() -> list[str]:
    """Values of environment variables whose names say that they are secret."""
    return [value for name, value in os.environ.items() if len(value) >= MIN_LENGTH and names_value(name, value)]


def names_value(name: str, value: str) -> bool:
    """Returns whether a name says that its value is secret, and the value is no place or number."""
    return names_secret(name) and _ORDINARY.match(value) is None


_WORD = re.compile(r"[a-z-]+|[A-Z_]+|[\d.]+|.*\s.*", re.DOTALL)
_ORDINARY = re.compile(r"[~./]|\w+://|[\d.]+\Z")
"""Places and numbers: what a variable may hold whose name only sounds secret."""
_LONG = 16
"""From this length on the value of any variable with a telling name is a secret of its own: a shorter one may be an
ordinary word, which must not be masked everywhere."""


def is_secret(value: str) -> bool:
    """Returns whether a value that is given as a key is one, and not a word such as ``lm-studio`` for a server that
    wants none, a number or a sentence."""
    return len(value) >= MIN_LENGTH and _WORD.fullmatch(value) is None


def configured_secrets(environ: Mapping[str, str] | None = None) -> set[str]:
    """The values of the variables that hold providers' keys, and of others whose names say that they are secret."""
    found: set[str] = set()
    for name, value in (os.environ if environ is None else environ).items():
        telling = len(value) >= _LONG and re.search(r"\d", value) and names_value(name, value)
        if is_secret(value) and (re.fullmatch(PROVIDERS_KEYS, name) or telling):
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
    """``text`` with each of the values masked: as it is, in URLs, in JSON, in hexadecimal and in base64; and as far as
    a text repeats the beginning or the end of one."""
    values = frozenset(v for v in values if len(v) >= MIN_LENGTH)
    return _without_parts(_without_whole(text, values), values)


def _without_whole(text: str, values: frozenset[str]) -> str:
    _, pattern = _spellings(values)
    return text if pattern is None else pattern.sub(MASK, text)


_PART = 12
"""Characters of a beginning or an end of a key that are masked like all of it."""
_KIND = r"(?:[a-z]{2,6}\d{0,2}[-_])*"
"""How keys of a kind begin, which says nothing of one."""


def _without_parts(text: str, values: frozenset[str]) -> str:
    for value in values:
        kind = re.match(_KIND, value)
        size = max(_PART, kind.end() + 1 if kind else 0)
        if len(value) <= size or not is_secret(value):
            continue
        begin, end = value[:size], value[-_PART:]
        if begin in text:
            text = MASK.join(_after(piece, value[size:]) if n else piece for n, piece in enumerate(text.split(begin)))
        if end in text:
            rest, pieces = value[-_PART - 1 :: -1], text.split(end)
            last = len(pieces) - 1
            text = MASK.join(_after(piece[::-1], rest)[::-1] if n < last else piece for n, piece in enumerate(pieces))
    return text


def _after(text: str, word: str) -> str:
    """A text without what it has of a word at its beginning."""
    same = next((n for n, (mine, its) in enumerate(zip(text, word, strict=False)) if mine != its), None)
    return text[min(len(text), len(word)) if same is None else same :]


def redactor(known: Iterable[str] = ()) -> Callable[[str], str]:
    """``redact`` for many texts: the environment is read once."""
    values = frozenset((*known, *environment_secrets()))

    return lambda text: without_keys(mask(text, values))


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
        return each_text(value, self.mask)

    def stream(self) -> MaskedStream:
        return MaskedStream(self.values)


def each_text(value: Any, change: Callable[[str], str]) -> Any:
    """A value as JSON has it, with every text in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: each_text(entry, change) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(each_text(entry, change) for entry in value)
    return value


class MaskedStream:
    """Masks a text that comes in pieces: what may be the beginning of a secret is held back until more is known."""

    def __init__(self, values: Iterable[str]) -> None:
        self._values = frozenset(values)
        self._spelled, _ = _spellings(self._values)
        self._longest = max(map(len, self._spelled), default=0)
        self._held = ""

    def feed(self, text: str) -> str:
        """Takes the next piece of the text and returns what can be shown now."""
        text = _without_whole(self._held + text, self._values)
        held = self._beginning(text)
        self._held = text[len(text) - held :]
        return _without_parts(text[: len(text) - held], self._values)

    def flush(self) -> str:
        rest, self._held = self._held, ""
        return _without_parts(rest, self._values)

    def _beginning(self, text: str) -> int:
        """Returns how many characters at the end may be the beginning of a secret; line ends within it do not count."""
        kept = [i for i in range(max(0, len(text) - 2 * self._longest), len(text)) if text[i] not in "\r\n"]
        tail = "".join(text[i] for i in kept)
        best = max((_overlap(tail, spelled) for spelled in self._spelled), default=0)
        return len(text) - kept[-best] if best else 0


def _overlap(text: str, word: str) -> int:
    """The length of the longest end of ``text`` that is a beginning of ``word``, but not all of it."""
    return next((n for n in range(min(len(word) - 1, len(text)), 0, -1) if text.endswith(word[:n])), 0)
