"""What a sandbox stopped of a command that was held to looking: the words of the question whether it may do more."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_CACHE = re.compile(r"cache", re.IGNORECASE)
_UNREACHED = re.compile(
    r"could not resolve|temporary failure in name resolution|name or service not known|nodename nor servname"
    r"|\b(?:EAI_AGAIN|ENETUNREACH|ENOTFOUND)\b|network is unreachable|failed to lookup address|dns error"
    r"|no address associated|unable to resolve|lookup \S+ on |UnknownHostException|unable to look up",
    re.IGNORECASE,
)
_SOCKET = re.compile(
    r"\b(?:listen|bind|connect|socket)\b.{0,80}?(?:EACCES|EPERM|permission denied|operation not permitted)"
    r"|(?:EACCES|EPERM|permission denied|operation not permitted).{0,40}?\bsocket\b"
    r"|SocketException: (?:Permission denied|Operation not permitted)",
    re.IGNORECASE,
)
_NOBODY = re.compile(r"ECONNREFUSED|connection refused|(?:failed to|couldn't|could not) connect", re.IGNORECASE)
_IN_PYTHON = re.compile(r"socket\.socket|create_server|_socket\.")
_REFUSAL = re.compile(
    r"permission denied|operation not permitted|read-only file system|\b(?:EACCES|EPERM|EROFS)\b", re.I
)
_PORT = re.compile(r":(\d{2,5})\b(?![:.]\d)|\bport:? (\d{2,5})\b")
_HOST = re.compile(r"(?<![\w.@<-])(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}(?![\w.(-])", re.IGNORECASE)
_URL_HOST = re.compile(r"https?://(?:[^@/\s'\"]*@)?([A-Za-z0-9.-]+)")
_NO_HOSTS = re.compile(
    r"\.(?:py|js|mjs|cjs|ts|rs|go|rb|java|c|h|log|json|toml|lock|txt|md|sh|so)$|^node\.|^pip\._", re.I
)
_TAIL = 20_000
_A_SOCKET = "to open a socket"


@dataclass(slots=True, frozen=True)
class Stopped:
    """``what`` it wants, in words that follow "wants": ``to write build/``. ``network``: it needs to reach out;
    ``hosts`` are those it named. ``socket``: a unix socket is all it wants. ``rules`` would let commands write there
    until the program ends."""

    what: str
    network: bool = False
    hosts: tuple[str, ...] = ()
    socket: bool = False
    rules: tuple[str, ...] = ()


def stopped(
    output: str, succeeded: bool, attempts: Mapping[Path, bool] | None, root: Path, serving: bool = False
) -> Stopped | None:
    """What was stopped, by what the kernel told of it (None: it could not tell) and by what it said; None where it did
    its work, or failed for reasons of its own. ``serving``: another command may have ports open that this one could not
    reach."""
    tail = output[-_TAIL:]
    wanted: list[str] = []
    if written := (
        _written(attempts, root, _refusals(tail, succeeded)) if attempts is not None else _said(tail, succeeded)
    ):
        wanted.append(f"to write {written}")
    unreached = [line for line in tail.split("\n") if _UNREACHED.search(line)]
    hosts = tuple(dict.fromkeys(host for line in unreached for host in _hosts(line)))[:3]
    if unreached:
        wanted.append(f"the network ({', '.join(hosts)})" if hosts else "the network")
    elif not succeeded and (line := _socket_line(tail)):
        port = _PORT.search(line)
        wanted.append(f"to open port {port.group(1) or port.group(2)}" if port else _A_SOCKET)
    elif not succeeded and serving and (line := next(filter(_NOBODY.search, tail.split("\n")), "")):
        port = _PORT.search(line)
        wanted.append(f"to reach port {port.group(1) or port.group(2)}" if port else "to reach a port")
    return Stopped(" and ".join(wanted), bool(unreached), hosts, wanted == [_A_SOCKET]) if wanted else None


def _refusals(tail: str, succeeded: bool) -> list[str] | None:
    """The lines that say why a program failed: a cache that is named there it could not do without. None where it ended
    well."""
    if succeeded:
        return None
    return [line for line in tail.split("\n") if _REFUSAL.search(line) and "warning" not in line.lower()]


def _written(attempts: Mapping[Path, bool], root: Path, refusals: Sequence[str] | None) -> str:
    """The paths as the user is told of them. Caches that could not be written stop few programs, and what a program
    that ended well only tried to lock stops none."""
    by_first: dict[str, list[str]] = {}
    for path, folder in attempts.items():
        inside = path.is_relative_to(root)
        name = path.relative_to(root).as_posix() if inside else str(path)
        if _CACHE.search(name) and not any(name in line for line in refusals or ()):
            continue
        if refusals is None and path.name == "index.lock":
            continue
        first, slash, _ = name.partition("/") if inside else (str(path.parent), "/", "")
        by_first.setdefault(first + slash, []).append(name + "/" * folder)
    names = [paths[0] if len(set(paths)) == 1 and first != ".git/" else first for first, paths in by_first.items()]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _said(tail: str, succeeded: bool) -> str:
    """The same from what a command said, where that is all there is."""
    if succeeded:
        return ""
    lines = [line for line in tail.split("\n") if _REFUSAL.search(line) and not _SOCKET.search(line)]
    return "in the project" if any(not _CACHE.search(line) for line in lines) else ""


def _socket_line(tail: str) -> str:
    lines = tail.split("\n")
    for number, line in enumerate(lines):
        if _SOCKET.search(line):
            return " ".join(lines[number : number + 1])
        if line.startswith("PermissionError: [Errno") and "'" not in line:
            above = lines[max(0, number - 4) : number]
            if any(_IN_PYTHON.search(row) for row in above):
                return line
    return ""


def _hosts(line: str) -> list[str]:
    found = [*_URL_HOST.findall(line), *_HOST.findall(line)]
    return [host.lower() for host in found if "." in host and not _NO_HOSTS.search(host)][:1]
