"""Describes the sandbox to people and the model, and what it stopped of a command that was held to looking: the words
of the question whether it may do more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent_tui.records import dataclass
from agent_tui.tools.sandbox.box import Sandbox
from agent_tui.tools.sandbox.policy import Domain, Loopback, Network, network_words
from agent_tui.urls import urls_in

_WORDS = r"permission denied|operation not permitted|read-only file system"
_CODES = r"\b(?:EACCES|EPERM|EROFS)\b"
_DENIED = rf"{_WORDS}|{_CODES}"
_REFUSED = re.compile(_DENIED, re.IGNORECASE)
_KEPT_FROM = re.compile(rf"{_DENIED}|resource busy|\bEBUSY\b", re.IGNORECASE)
_GIT_SETTINGS = (
    "[sandbox: git's settings stay as they are: they say who commits are by, and what git starts outside the sandbox. "
    "Run git config as a command of its own: the user is asked. For one commit alone: git -c user.name=… -c "
    "user.email=… commit]"
)
_SETTINGS = re.compile(r"could not (?:lock|write) config file [^\n]*|could not write to config[^\n]*")
_SURELY = re.compile(
    rf"(?m)(?:{_WORDS})(?: \(os error \d+\)|: '[^'\n]*')?\.?$|{_CODES}"
    r"|\b(?:EAI_AGAIN|ENETUNREACH)\b|could not resolve host|name resolution$|service not known",
    re.IGNORECASE,
)
_ABSENT = r"no such file or directory|\bENOENT\b"
_MISSING = re.compile(rf"{_ABSENT}|not found", re.IGNORECASE)
_UNREACHED = re.compile(
    r"could not resolve|temporary failure in name resolution|name or service not known|nodename nor servname"
    r"|\b(?:EAI_AGAIN|ENETUNREACH|ENOTFOUND)\b|network is unreachable|failed to lookup address|dns error"
    r"|no address associated|unable to resolve|lookup \S+ on [\[\d]|UnknownHostException|unable to look up \S+ \(",
    re.IGNORECASE,
)
_ALONE = r"ECONNREFUSED|connection refused|(?:failed to|couldn't) connect"
_NOBODY = re.compile(rf"{_ALONE}|could not connect", re.IGNORECASE)
_OFFLINE = re.compile(rf"{_UNREACHED.pattern}|{_ALONE}|getaddrinfo|offline", re.IGNORECASE)
_HOMES = ("/home/", "/root/", "/Users/", "~/", "$HOME")
_TAIL = 20_000
_SHELLS_NAME = re.compile(r"(?m)^\S*\b(?:ba|da|z|k)?sh: (?:line \d+: )?")
_NAMED = r"""(?<![\w.:/~-])([/~](?:[^\s:'"‘’“”`,;()\[\]]){1,300})"""
_HERE = re.compile(r"(?<![\w.])(?:localhost|127\.\d+\.\d+\.\d+|::1)(?![\w.])", re.IGNORECASE)


def _writable(domain: Domain, builds: bool) -> str:
    """The only places that a command may write. ``builds``: it may write what builds make."""
    if domain == "work":
        return "the project, added folders and $TMPDIR"
    return "$TMPDIR and build folders that git ignores" if builds else "$TMPDIR"


def place_words(domain: Domain, network: Network, loopback: Loopback, builds: bool = False) -> str:
    """Describes what holds a command, in the words that the model is told with its permission mode. ``builds``: it may
    write what builds make."""
    reaches = {"allow": "the network", "registries": "no network but package registries"} if domain == "work" else {}
    ports = "; on 127.0.0.1 they reach each other" if domain == "work" else "; on 127.0.0.1 each reaches itself alone"
    return (
        "Commands run in a sandbox: they read the project and the system, not the home, write only "
        f"{_writable(domain, builds)}, have {reaches.get(network, 'no network')}{'' if loopback == 'deny' else ports}. "
        '"outside": true asks the user to let one out.'
    )


def refused(
    output: str,
    domain: Domain,
    network: Network | None = None,
    shares: bool = False,
    failed: bool = True,
    builds: bool = False,
) -> list[str]:
    """A line for a command that the sandbox may have stopped, naming what it reached for, and how it may be asked for
    outside; none where its output does not look like it. ``shares``: it has the ports of other commands; ``builds``: it
    may write what builds make. One that has not ``failed``, as ``make | tail`` never does, must have said so in so many
    words."""
    tail = output[-_TAIL:]
    if domain == "free" or (not failed and not _SURELY.search(tail)):
        return []
    again = ' If it is needed, call it again with "outside": true; the user is asked.' if domain == "work" else ""
    if _OFFLINE.search(tail) and not (domain == "work" and network == "allow"):
        whose = "that commands in the sandbox have open" if shares and domain == "work" else "that it opens itself"
        ports = f" It reaches ports {whose}, no others of this machine." if _HERE.search(tail) else ""
        return [f"[sandbox: this ran without a network ({domain}).{ports}{again}]"]
    if _REFUSED.search(tail):
        what = f"it may write only {_writable(domain, builds)}"
        if path := _path(tail, _DENIED):
            return [f"[sandbox: {path}: not allowed here, {what} ({domain}).{again}]"]
        return [f"[sandbox: this ran where {what} ({domain}); that may be why.{again}]"]
    if _MISSING.search(tail) and any(home in tail for home in (*_HOMES, f"{Path.home()}/")):
        if path := _path(tail, _ABSENT):
            return [f"[sandbox: {path}: cannot be seen here, like most of the home folder ({domain}).{again}]"]
        return [f"[sandbox: most of the home folder cannot be seen here ({domain}); that may be why.{again}]"]
    return []


def git_settings(output: str, domain: Domain) -> list[str]:
    """A line for a command that could not write git's settings."""
    return [_GIT_SETTINGS] if domain != "free" and _SETTINGS.search(output[-_TAIL:]) else []


def masked(output: str, masks: Sequence[Path], root: Path) -> list[str]:
    """A line for a command that could not read, or change, what rules keep from commands."""
    refusals = [line for line in output[-_TAIL:].split("\n") if _KEPT_FROM.search(line)]
    named = [path for path in masks if any(_names(line, path.name) for line in refusals)]
    if not named:
        return []
    names = [path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path) for path in named]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return [
        f"[sandbox: {', '.join(names[:3])}{more}: a rule of the user denies reading this, so commands can neither read "
        "nor change it. Leave it out: git add, for instance, by naming the other files.]"
    ]


def _names(line: str, name: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", line) is not None


def _path(output: str, problem: str) -> str:
    """The path that the last line of its kind names, in front of the problem or behind it; empty where none does."""
    pattern = rf"(?:{_NAMED})[^\n/~]{{0,40}}(?:{problem})|(?:{problem})[^\n/~]{{0,40}}?(?:{_NAMED})"
    found = list(re.finditer(pattern, _SHELLS_NAME.sub("", output), re.IGNORECASE))
    if not found:
        return ""
    named = next(group for group in found[-1].groups() if group)
    below = str(Path.home())
    return "~" + named[len(below) :] if named == below or named.startswith(below + "/") else named


def kept_from(hosts: Sequence[str]) -> list[str]:
    """A line for hosts that were refused, with what would open them."""
    if not hosts:
        return []
    named = ", ".join(hosts[:3]) + (f" and {len(hosts) - 3} more" if len(hosts) > 3 else "")
    return [
        f"[sandbox: {named}: not open to commands here. The user can open it with the rule network({hosts[0]}), "
        'or be asked by "outside": true.]'
    ]


def undone(kept: Sequence[tuple[str, Path]]) -> list[str]:
    """Lines for what a command changed and may not change."""
    words = {
        "kept": "restored; commands may not change it",
        "held": "removed; commands may not create it",
        "changed": "changed and could not be restored; check it",
    }
    lines = [f"[sandbox: {path} {words[word]}]" for word, path in kept[:20]]
    return lines + [_GIT_SETTINGS] * any(path.parts[-2:] == (".git", "config") for _, path in kept)


def described(sandbox: Sandbox, domain: Domain, network: Network = "ask", loopback: Loopback = "own") -> str:
    """One line on a domain: ``look (bubblewrap): writes nothing …``."""
    if domain == "free":
        return "free: no sandbox, all your rights"
    if not sandbox.holds(domain):
        return f"{domain}: not enforced here"
    return f"{domain} ({sandbox.name}): {', '.join(sandbox.enforces(domain, network, loopback))}"


UNHELD = (
    "auto mode without a sandbox: the project's programs run without asking and can reach all your files, keys and the "
    "network. You are asked only about what is known to reach beyond the project."
)
"""What mode ``auto`` means where nothing holds."""


BYPASS = "bypass mode: commands run without asking and without a sandbox. Use it only in containers you throw away."


def unheld(mode: str, sandbox: Sandbox) -> str:
    """Describes what a permission mode means here beyond its name; empty where commands are held, or refused."""
    if mode == "bypass":
        return BYPASS
    return UNHELD if mode == "auto" and not sandbox.holds("work") and sandbox.mode != "required" else ""


def ports_line(sandbox: Sandbox, network: Network, loopback: Loopback) -> str:
    """Describes what tests that open ports will find, and what would change it; empty where nothing holds commands."""
    if not sandbox.holds("work") or sandbox.backend is None:
        return ""
    if network != "allow" and loopback != "deny" and not sandbox.has_ports(loopback):
        ways = [word for word in sorted(sandbox.backend.loopback) if word != loopback]
        way = f'[sandbox] loopback = "{ways[0]}"' if ways else 'bubblewrap, or [sandbox] network = "allow"'
        return f"commands cannot open ports on 127.0.0.1; to allow it: {way}"
    own = "own" in sandbox.backend.loopback
    found = network_words(network, "own" if own and loopback != "deny" else loopback)
    shared = network != "allow" and sandbox.shares and own and sandbox.has_ports(loopback)
    return f"{found}, shared by the commands of a run" if shared else found


def status_line(sandbox: Sandbox) -> str:
    """One line on what holds."""
    if sandbox.mode == "off":
        return "off ([sandbox] mode)"
    held = [domain for domain in ("look", "work") if domain in sandbox.proven]
    why = f" ({sandbox.failed[0]})" if sandbox.failed else ""
    if len(held) == 2:
        return f"{sandbox.name}, the last resort{why}" if sandbox.name == "Landlock" and why else sandbox.name
    if held:
        return f"{sandbox.name}, {held[0]} only{why}"
    if sandbox.mode == "required":
        return f"required, but none works here{why}: commands are refused"
    return f"none{why}: commands have all your rights"


_CACHE = re.compile(r"cache", re.IGNORECASE)
_SOCKET = re.compile(
    r"\b(?:listen|bind|connect|socket)\b.{0,80}?(?:EACCES|EPERM|permission denied|operation not permitted)"
    r"|(?:EACCES|EPERM|permission denied|operation not permitted).{0,40}?\bsocket\b"
    r"|SocketException: (?:Permission denied|Operation not permitted)",
    re.IGNORECASE,
)
_IN_PYTHON = re.compile(r"socket\.socket|create_server|_socket\.")
_PORT = re.compile(r":(\d{2,5})\b(?![:.]\d)|\bport:? (\d{2,5})\b")
_HOST = re.compile(r"(?<![\w.@<-])(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}(?![\w.(-])", re.IGNORECASE)
_NO_HOSTS = re.compile(
    r"\.(?:py|js|mjs|cjs|ts|rs|go|rb|java|c|h|log|json|toml|lock|txt|md|sh|so)$|^node\.|^pip\._", re.I
)

_A_SOCKET = "to open a socket"


@dataclass(slots=True, frozen=True)
class Stopped:
    """``what`` it wants, in words that follow "wants": ``to write build/``. ``network``: it needs to reach out;
    ``hosts`` are those it named. ``socket``: a unix socket is all it wants. ``writes``, ``ports``: it
    wants to write, to open or reach a port or a socket; ``rules`` would let commands write there until the program
    ends."""

    what: str
    network: bool = False
    hosts: tuple[str, ...] = ()
    socket: bool = False
    rules: tuple[str, ...] = ()
    writes: bool = False
    ports: bool = False


def stopped(
    output: str, succeeded: bool, attempts: Mapping[Path, bool] | None, root: Path, serving: bool = False
) -> Stopped | None:
    """Returns what was stopped, by what the kernel told of it (None: it could not tell) and by what it said; None where
    it did its work, or failed for reasons of its own. ``serving``: another command may have ports open that this one
    could not reach."""
    tail = output[-_TAIL:]
    wanted: list[str] = []
    if written := (
        _written(attempts, root, _refusals(tail, succeeded)) if attempts is not None else _said(tail, succeeded)
    ):
        wanted.append(f"to write {written}")
    ports = False
    unreached = [line for line in tail.split("\n") if _UNREACHED.search(line)]
    hosts = tuple(dict.fromkeys(host for line in unreached for host in _hosts(line)))[:3]
    if unreached:
        wanted.append(f"the network ({', '.join(hosts)})" if hosts else "the network")
    elif not succeeded and (line := _socket_line(tail)):
        port = _PORT.search(line)
        wanted.append(f"to open port {port.group(1) or port.group(2)}" if port else _A_SOCKET)
        ports = True
    elif not succeeded and serving and (line := next(filter(_NOBODY.search, tail.split("\n")), "")):
        port = _PORT.search(line)
        wanted.append(f"to reach port {port.group(1) or port.group(2)}" if port else "to reach a port")
        ports = True
    if not wanted:
        return None
    alone = wanted == [_A_SOCKET]
    return Stopped(" and ".join(wanted), bool(unreached), hosts, alone, writes=bool(written), ports=ports)


_LEAVINGS = re.compile(
    r"\.benchmarks|\.coverage(\..*)?|\.hypothesis|\.testmondata.*|\.nyc_output|\.stestr|\.phpunit\.result.*|__pycache__"
)
"""What test programs keep for their next run, at the end of one that is over by then."""


def _is_leaving(path: Path) -> bool:
    return any(_LEAVINGS.fullmatch(part) for part in path.parts)


def not_kept(attempts: Mapping[Path, bool], root: Path) -> list[str]:
    """A line for what a test program that did its work could not keep for its next run."""
    found = [path.relative_to(root) for path in attempts if path.is_relative_to(root) and _is_leaving(path)]
    names = sorted({next(part for part in path.parts if _LEAVINGS.fullmatch(part)) for path in found})
    names = [name for name in names if name != "__pycache__"]
    return [f"[sandbox: {', '.join(names)} not kept: this ran only looking, and is complete]"] if names else []


def _refusals(tail: str, succeeded: bool) -> list[str] | None:
    """The lines that say why a program failed: a cache that is named there it could not do without. None where it ended
    well."""
    if succeeded:
        return None
    return [line for line in tail.split("\n") if _REFUSED.search(line) and "warning" not in line.lower()]


def _written(attempts: Mapping[Path, bool], root: Path, refusals: Sequence[str] | None) -> str:
    """The paths as the user is told of them. Caches and what is kept of a test run stop few programs that could not
    write them, and what a program that ended well only tried to lock stops none."""
    by_first: dict[str, list[str]] = {}
    for path, folder in attempts.items():
        inside = path.is_relative_to(root)
        name = path.relative_to(root).as_posix() if inside else str(path)
        if (_CACHE.search(name) or _is_leaving(path)) and not any(name in line for line in refusals or ()):
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
    lines = [line for line in tail.split("\n") if _REFUSED.search(line) and not _SOCKET.search(line)]
    return "in the project" if any(not _CACHE.search(line) for line in lines) else ""


def _socket_line(tail: str) -> str:
    lines = tail.split("\n")
    for number, line in enumerate(lines):
        if _SOCKET.search(line):
            return line
        above = lines[max(0, number - 4) : number]
        in_python = line.startswith("PermissionError: [Errno") and "'" not in line
        if in_python and any(_IN_PYTHON.search(row) for row in above):
            return line
    return ""


def _hosts(line: str) -> list[str]:
    found = [*(url.host for _, _, url in urls_in(line)), *_HOST.findall(line)]
    return [host.lower() for host in found if "." in host and not _NO_HOSTS.search(host)][:1]
