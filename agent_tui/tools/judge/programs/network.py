"""Programs that need the network to do what they are for, and those that talk to this machine alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from agent_tui.tools.word_sets import word_set

_REACHES = word_set(
    "curl wget ssh scp sftp rsync ftp nc ncat netcat socat telnet gh glab hub docker podman kubectl helm aws "
    "gcloud az terraform npx bunx uvx pipx dig nslookup host ping traceroute http https"
)
_FETCHING = {
    **dict.fromkeys(["pip", "pip3"], word_set("install download wheel index search")),
    "npm": word_set("install i ci add update outdated audit publish view info search login exec init create"),
    "pnpm": word_set("install i add update outdated audit publish dlx"),
    "yarn": word_set("install add upgrade outdated audit publish dlx"),
    "bun": word_set("install add update x"),
    "uv": word_set("sync add tool lock install compile"),
    "poetry": word_set("install add update lock publish"),
    "cargo": word_set("add install update fetch publish search"),
    "go": word_set("get mod install"),
    "bundle": word_set("install update"),
    "gem": word_set("install update push"),
    "composer": word_set("install update require"),
    "brew": word_set("install upgrade update"),
}
_TALKERS = word_set("curl wget http https xh nc ncat netcat telnet ping")
_HERE = re.compile(
    r"(?:https?://)?(?:localhost|127\.\d+\.\d+\.\d+|\[?::1\]?|0\.0\.0\.0)(?::\d+)?(?:[/?].*)?|(?:https?://)?:\d+(?:/.*)?",
    re.IGNORECASE,
)


_OFFLINE = frozenset({"--offline", "--no-index"})
"""Words by which package managers do without: who is wrong here has no network where the command is held."""


def reaches_out(words: Sequence[str], folders: Iterable[Path]) -> bool:
    """Whether a command is one that needs the network to do what it is for, in whichever of ``folders`` it runs."""
    name = words[0].rpartition("/")[2]
    if name in ("npx", "bunx") and _installed(words[1:], folders):
        return False
    if name in _REACHES:
        return True
    if _OFFLINE.intersection(words):
        return False
    if re.fullmatch(r"python[\d.]*", name) and list(words[1:3]) == ["-m", "pip"]:
        return len(words) > 3 and words[3] in _FETCHING["pip"]
    return (name in _FETCHING and any(word in _FETCHING[name] for word in words[1:3])) or (
        name == "yarn" and len(words) == 1
    )


def stays_here(words: Sequence[str]) -> bool:
    """Whether a command seems to talk to this machine alone. Where it is held it has no other to talk to: who is
    wrong here asks a question too few, and reaches nothing."""
    if words[0] not in _TALKERS:
        return False
    named = [word for word in words[1:] if _HERE.fullmatch(word)]
    listens = words[0] in ("nc", "ncat", "netcat") and any(re.fullmatch(r"-[a-z]*l[a-z]*", word) for word in words)
    return bool(named or listens) and not any("://" in word and word not in named for word in words[1:])


def _installed(arguments: Sequence[str], folders: Iterable[Path]) -> bool:
    """Whether what ``npx`` is to run lies in the project."""
    rest = [word for word in arguments if word not in ("--no-install", "--no", "--")]
    plain = bool(rest) and re.fullmatch(r"[\w.-]+", rest[0]) is not None and not rest[0].startswith(("-", "."))
    return plain and all((folder / "node_modules/.bin" / rest[0]).exists() for folder in folders)
