"""Seatbelt, the sandbox of macOS, by a profile of our own. Written from Apple's published profiles and never tried by
us: whether it holds is what the trial at the start says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from agent_tui.tools.sandbox import places
from agent_tui.tools.sandbox.policy import (
    GIT_HELD,
    NO_HOME,
    NO_WRITING,
    PROJECT_WRITING,
    Domain,
    Launch,
    Loopback,
    Network,
    SandboxPolicy,
    look_words,
    network_words,
)

_BASE = """(version 1)
(deny default)
(allow process-fork process-exec)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow file-read-metadata)
(allow file-read* (literal "/") (subpath "/dev/fd") (literal "/dev/null") (literal "/dev/zero") (literal "/dev/random")
  (literal "/dev/urandom") (subpath "/private/var/db/dyld") (subpath "/private/var/select"))
(allow file-write-data (literal "/dev/null") (literal "/dev/zero"))
(allow ipc-posix-sem)
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo") (global-name "com.apple.logd"))
"""


class Seatbelt:
    """``program`` is the path of sandbox-exec."""

    name = "Seatbelt"
    subtracts = True
    own_tmp = False
    # It goes by address, so this machine can be told from the others; but its ports are everybody's here.
    loopback: frozenset[Loopback] = frozenset({"machine"})

    def __init__(self, program: str) -> None:
        self.program = program

    def wrap(
        self, argv: Sequence[str], domain: Domain, policy: SandboxPolicy, cwd: Path, env: Mapping[str, str]
    ) -> Launch:
        command = [self.program, "-p", profile(domain, policy), *argv]
        return Launch(command, {**env, "TMPDIR": str(policy.temporary)}, domain)

    def enforces(self, domain: Domain, network: Network, loopback: Loopback) -> list[str]:
        words = [NO_HOME]
        if domain == "look":
            return [NO_WRITING, *words, look_words(False)]
        words = [PROJECT_WRITING, *words, GIT_HELD]
        return [*words, network_words(network, loopback if loopback == "machine" else "deny")]


def profile(domain: Domain, policy: SandboxPolicy) -> str:
    """The profile: what comes later wins."""
    folders = places.writable(policy)
    lines = [_BASE, _rule("allow file-read*", [*places.readable(policy), *folders])]
    lines.append(_rule("allow file-read* file-write*", [folder.resolve() for folder in policy.private]))
    if domain == "work":
        lines.append(_rule("allow file-write*", folders))
        for folder in folders:
            lines.append(_rule("deny file-write*", places.protected(folder, policy)))
            lines.append(f"(deny file-write-unlink (literal {_quoted(folder / '.git')}))")
    lines.append(_rule("deny file-read* file-write*", places.secrets(policy)))
    lines.append(_rule("allow file-read* file-write*", [folder.resolve() for folder in policy.private]))
    if domain == "work" and policy.network == "allow":
        lines.append("(allow network-outbound (remote ip)) (allow network-bind network-inbound (local ip))")
        lines.append('(allow mach-lookup (global-name "com.apple.SystemConfiguration.configd"))')
        lines.append('(allow network-outbound (literal "/private/var/run/mDNSResponder"))')
    elif domain == "work" and policy.loopback == "machine":
        lines.append('(allow network-outbound (remote ip "localhost:*"))')
        lines.append('(allow network-bind network-inbound (local ip "localhost:*"))')
    return "\n".join(lines)


def _rule(what: str, paths: Iterable[Path]) -> str:
    return f"({what} {' '.join(f'(subpath {_quoted(path)})' for path in paths)})"


def _quoted(path: Path) -> str:
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'
