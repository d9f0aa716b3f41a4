"""Tries whether a backend holds, by doing inside it what it must refuse."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from agent_tui.tools.sandbox.policy import Backend, Domain, SandboxPolicy
from agent_tui.tools.sandbox.session_network import SessionNetwork

log = logging.getLogger(__name__)

PATIENCE = 10.0
"""Seconds one trial may take; it takes a tenth of one."""

PROGRAMS = "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin:/home/linuxbrew/.linuxbrew/bin"
"""Where a backend's program may be: never in a folder that PATH names first and others may write."""

_TRIAL = r"""
import os, socket, sys
outside, project, tcp, udp, hidden, listener = sys.argv[1:7]
def tried(name, attempt):
    try:
        attempt()
    except (OSError, ValueError):
        return
    print(name)
def write(path):
    with open(path, "x") as file:
        file.write("x")
def connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as one:
        one.settimeout(2)
        one.connect(address)
def send():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.sendto(b"x", ("127.0.0.1", int(udp)))
tried("write outside", lambda: write(outside + "/new"))
tried("link outside", lambda: os.link(outside + "/secret", project + "/linked"))
tried("read outside", lambda: open(outside + "/secret").close())
tried("list outside", lambda: os.listdir(outside))
tried("truncate outside", lambda: os.truncate(outside + "/secret", 0))
tried("write project", lambda: write(project + "/new"))
tried("read project", lambda: open(project + "/file").close())
tried("write hooks", lambda: write(project + "/.git/hooks/new"))
tried("write temporary", lambda: write(os.environ["TMPDIR"] + "/new-" + str(os.getpid())))
tried("tcp", lambda: connect(socket.AF_INET, ("127.0.0.1", int(tcp))))
tried("udp", send)
def ports():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        connect(socket.AF_INET, one.getsockname())
tried("ports of its own", ports)
tried("unix", lambda: connect(socket.AF_UNIX, outside + "/socket"))
if sys.platform == "linux":
    tried("abstract", lambda: connect(socket.AF_UNIX, "\0" + hidden))
tried("memory", lambda: open("/proc/" + listener + "/environ").read(1))
"""

_NEVER = frozenset(
    {"write outside", "link outside", "read outside", "list outside", "truncate outside", "tcp", "udp", "unix"}
) | {"abstract", "memory"}
_ALWAYS = frozenset({"read project", "write temporary"})


def trial(backend: Backend, domain: Domain, base: Path, shared: SessionNetwork | None = None) -> str:
    """Why ``backend`` does not hold ``domain``; empty when it does. ``base`` is a folder no list names, for what is
    needed in passing; ``shared`` is the network that ``work`` joins. Takes about a tenth of a second."""
    try:
        with tempfile.TemporaryDirectory(dir=base, prefix="try-") as folder:
            return _trial(backend, domain, Path(folder).resolve(), shared)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)


def _trial(backend: Backend, domain: Domain, folder: Path, shared: SessionNetwork | None) -> str:
    outside, project = folder / "outside", folder / "project"
    for place in (outside, project / ".git" / "hooks"):
        place.mkdir(parents=True)
    (outside / "secret").write_text("secret")
    (project / "file").write_text("file")
    policy = SandboxPolicy(project, folder / "scratch", shared=shared)
    policy.prepare()
    with _listening(outside / "socket") as (arguments, received):
        command = [sys.executable, "-I", "-S", "-c", _TRIAL, str(outside), str(project), *arguments]
        with backend.wrap(
            command, domain, policy, project, {"PATH": os.environ.get("PATH", "/usr/bin:/bin")}
        ) as launch:
            done = subprocess.run(
                launch.argv,
                env=launch.env,
                cwd=project,
                pass_fds=launch.pass_fds,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PATIENCE,
                check=False,
            )
        could = set(done.stdout.decode("utf-8", "replace").splitlines())
        if not received():
            could.discard("udp")  # sent into a network of its own
    if done.returncode:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        return last[0] if last else f"exit code {done.returncode}"
    return _verdict(backend, domain, could)


def _verdict(backend: Backend, domain: Domain, could: set[str]) -> str:
    needed = _ALWAYS | ({"write project"} if domain == "work" else set())
    needed |= {"ports of its own"} if "own" in backend.loopback else set()
    refused = _NEVER | (set() if domain == "work" else {"write project"})
    if domain == "look" or backend.subtracts:
        refused |= {"write hooks"}
    words = [f"cannot {word}" for word in sorted(needed - could)] + [f"can {word}" for word in sorted(refused & could)]
    if words:
        log.warning("%s does not hold %s: %s", backend.name, domain, "; ".join(words))
    return "; ".join(words)


@contextlib.contextmanager
def _listening(path: Path) -> Iterator[tuple[list[str], Callable[[], bool]]]:
    """Listeners that must not be reached: what to tell the trial of them, and whether the one without connections
    received anything."""
    with contextlib.ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)
        unix = stack.enter_context(socket.socket(socket.AF_UNIX))
        with contextlib.suppress(OSError):  # a path too long for one
            unix.bind(str(path))
            unix.listen()
        hidden = f"agent-tui-{os.getpid()}-{path.parent.parent.name}"
        if sys.platform == "linux":
            abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
            abstract.bind("\0" + hidden)
            abstract.listen()

        def received() -> bool:
            try:
                return bool(udp.recv(16))
            except OSError:
                return False

        ports = [str(tcp.getsockname()[1]), str(udp.getsockname()[1])]
        yield [*ports, hidden, str(os.getpid())], received


def find(program: str) -> str | None:
    """A backend's program, in places that belong to the system."""
    return shutil.which(program, path=PROGRAMS)
