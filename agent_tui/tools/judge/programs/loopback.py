"""Programs that talk to ports of this machine: where nothing else can come of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent_tui.tools.judge.line.syntax import Word
from agent_tui.tools.judge.programs.network import transfer

_PART = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_HOST = rf"(?:localhost|127\.{_PART}\.{_PART}\.{_PART})"
_PORT = r"[0-9]{1,5}"
_URL = re.compile(rf"(?:https?://)?(?:{_HOST}|\[::1\])(?::{_PORT})?(?:[/?][^\s\\@\x00-\x1f\x7f]*)?", re.IGNORECASE)
"""Plain spellings alone: no user name, no number that only a resolver reads as an address, no name below another."""
_SHORT = re.compile(rf"(?:https?://)?:{_PORT}(?:/[^\s\\@]*)?")
"""HTTPie's own for localhost."""

_FOLLOWS = re.compile(r"-[^-]*L.*|--location.*")
_HTTPIE_FLAGS = re.compile(
    r"-[jfvbhpI]+|--(json|form|verbose|body|headers|ignore-stdin|check-status|pretty=\w+|print=\w+)"
)
_HTTPIE_ITEM = re.compile(r"[\w.-]+(:=|==|=|:)[^@]*")
_NETCAT_FLAGS = re.compile(r"-[vn46]*z[vn46]*|-[vn46]+|-w\d{1,3}")


def stays_here(line: Sequence[Word]) -> bool:
    """Whether a command talks to loopback addresses alone: no redirect, proxy, name or socket leads it elsewhere, and
    it sends no file. What cannot be said for sure is False."""
    # ``[::1]`` and ``?`` look like patterns of file names.
    line = [Word(word.text) if word.glob and not word.dynamic and _URL.fullmatch(word.text) else word for word in line]
    if not line or any(word.dynamic or word.glob or word.tilde for word in line):
        return False
    words = [word.text for word in line]
    match words[0]:
        case "curl":
            return _transfers(line)
        case "wget":
            # It follows redirects unless it is told not to.
            quiet = [word for word in line if word.text != "--max-redirect=0"]
            return len(quiet) == len(line) - 1 and _transfers(quiet)
        case "http" | "https":
            return _httpie(words[1:])
        case "nc" | "ncat" | "netcat":
            return _knocks(words[1:])
    return False


def _transfers(line: Sequence[Word]) -> bool:
    done = transfer(line)
    if done.problem or not done.urls or any(_FOLLOWS.fullmatch(option) for option in done.options):
        return False
    return all(_URL.fullmatch(url) for url in done.urls)


def _httpie(words: Sequence[str]) -> bool:
    plain = [word for word in words if not _HTTPIE_FLAGS.fullmatch(word)]
    if plain and re.fullmatch(r"[A-Z]+", plain[0]):
        plain = plain[1:]
    if not plain or any(word.startswith("-") for word in plain):
        return False
    here = _URL.fullmatch(plain[0]) or _SHORT.fullmatch(plain[0])
    return here is not None and all(_HTTPIE_ITEM.fullmatch(item) for item in plain[1:])


def _knocks(words: Sequence[str]) -> bool:
    """netcat that only looks whether a port is open."""
    plain, at, looks = [], 0, False
    while at < len(words):
        word = words[at]
        at += 1
        if word == "-w" and at < len(words) and re.fullmatch(r"\d{1,3}", words[at]):
            at += 1
        elif _NETCAT_FLAGS.fullmatch(word):
            looks = looks or "z" in word
        else:
            plain.append(word)
    return (
        looks
        and len(plain) >= 2
        and (re.fullmatch(_HOST, plain[0]) is not None or plain[0] == "::1")
        and all(re.fullmatch(rf"{_PORT}(-{_PORT})?", port) for port in plain[1:])
    )
