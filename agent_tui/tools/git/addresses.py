"""Addresses of remotes: the few forms that name a place and nothing else."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

_USER = r"[A-Za-z0-9_][\w.+-]*"
_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*)|\[[0-9A-Fa-f:.]+\])"
_WEB = re.compile(rf"https?://(?:[^\s/@\\]*@)?{_HOST}(?::\d{{1,5}})?(?:/[^\s\\]*)?", re.IGNORECASE)
_SSH = re.compile(rf"(?:ssh|git\+ssh|ssh\+git)://((?:{_USER}@)?{_HOST})(?::(\d{{1,5}}))?(/[^\s]+)")
_SHORT = re.compile(rf"((?:{_USER}@)?{_HOST}):([^-:\s][^\s]*)")
_UNSEEN = re.compile(r"[\x00-\x1f\x7f]|%[01][0-9a-f]|%7f", re.IGNORECASE)


@dataclass(slots=True, frozen=True)
class Address:
    """``web`` has its whole ``text``, ``ssh`` a ``host`` (with a user, as ssh takes it), a ``port`` (empty: the usual
    one) and a ``path``, ``local`` an absolute ``path``."""

    kind: Literal["web", "ssh", "local"]
    text: str
    host: str = ""
    port: str = ""
    path: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """The same for two ways to write one place."""
        return (self.kind, self.text) if self.kind == "web" else (self.kind, self.host, self.port, self.path)


def parse_address(text: str, folder: Path) -> Address | None:
    """None for everything else: addresses that name a helper (``ext::``), hold options or characters that are not seen.
    A path is taken from ``folder`` on."""
    if not text or text.startswith("-") or _UNSEEN.search(text) or "::" in text.partition("/")[0].replace("[::", "["):
        return None
    if _WEB.fullmatch(text):
        return Address("web", text)
    if match := _SSH.fullmatch(text):
        host, port, path = match[1], match[2], unquote(match[3])
        return Address("ssh", text, host.replace("[", "").replace("]", ""), port or "", path[path.startswith("/~") :])
    if text.startswith("file:///"):
        return _local(text, Path(unquote(text.removeprefix("file://"))))
    if "://" in text:
        return None
    if match := _SHORT.fullmatch(text):
        return Address("ssh", text, match[1].replace("[", "").replace("]", ""), "", match[2])
    return None if ":" in text.partition("/")[0] else _local(text, folder / text)


def _local(text: str, path: Path) -> Address | None:
    try:
        return Address("local", text, path=os.path.realpath(path))
    except (OSError, ValueError):
        return None


def rewritten(text: str, instead: Iterable[tuple[str, str]]) -> str:
    """``text`` by the longest of the beginnings that a configuration gives another form: (form, beginning)."""
    found = max(
        (pair for pair in instead if pair[1] and text.startswith(pair[1])), key=lambda p: len(p[1]), default=None
    )
    return found[0] + text[len(found[1]) :] if found is not None else text


def relative_to(base: str, text: str) -> str:
    """The address of a submodule, which may be given as a path from that of its repository on."""
    if not text.startswith(("./", "../")):
        return text
    base = base.rstrip("/")
    while text.startswith(("./", "../")):
        step, _, text = text.partition("/")
        if step == "..":
            cut = max(base.rfind("/"), base.rfind(":") if "://" not in base else -1)
            if cut < 0:
                return ""
            base = base[: cut + (base[cut] == ":")]
    return f"{base}{'' if base.endswith(':') else '/'}{text.rstrip('/')}"
