"""The sandbox as the rest of the program sees it, and the trials by which it is seen that a backend holds."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from agent_tui.errors import ToolError
from agent_tui.paths import private_dir
from agent_tui.pipes.programs import find_program
from agent_tui.pipes.start import run
from agent_tui.records import dataclass
from agent_tui.tools.sandbox.network import SessionNetwork
from agent_tui.tools.sandbox.policy import Domain, Launch, Loopback, Network, SandboxBackend, SandboxPolicy, free

SandboxMode = Literal["auto", "required", "off"]


@dataclass(slots=True, frozen=True)
class Sandbox:
    """The sandbox that holds on this machine. ``failed`` says of each domain and backend that does not hold why;
    ``shares`` whether commands are held as well in a network that they share."""

    backend: SandboxBackend | None = None
    proven: frozenset[Domain] = frozenset()
    mode: SandboxMode = "auto"
    failed: tuple[str, ...] = ()
    shares: bool = False

    @property
    def name(self) -> str:
        """The means: ``none`` where nothing holds."""
        return self.backend.name if self.backend is not None and self.proven else "none"

    def holds(self, domain: Domain) -> bool:
        """Returns whether commands were seen to be held to ``domain`` here. ``free`` promises nothing, so it holds."""
        return domain == "free" or (self.backend is not None and domain in self.proven)

    def has_ports(self, loopback: Loopback) -> bool:
        """Returns whether ``work`` may listen and connect on 127.0.0.1 and ::1 while the network is closed."""
        return self.backend is not None and self.holds("work") and loopback in self.backend.loopback

    def enforces(self, domain: Domain, network: Network = "ask", loopback: Loopback = "own") -> list[str]:
        """Returns the effects of the domain here, in words for people; empty where nothing is enforced."""
        if domain == "free" or self.backend is None or not self.holds(domain):
            return []
        return self.backend.enforces(domain, network, loopback)

    def refusal(self, domain: Domain) -> str:
        """Returns why nothing may run in ``domain``, in one line; empty where it may."""
        if self.mode != "required" or self.holds(domain):
            return ""
        why = f" ({self.failed[0]})" if self.failed else ""
        return (
            'Refused: [sandbox] mode is "required" and no sandbox works here'
            f'{why}. Install bubblewrap, or set the mode to "auto".'
        )

    def wrap(
        self, argv: Sequence[str], domain: Domain, policy: SandboxPolicy, cwd: Path, env: Mapping[str, str]
    ) -> Launch:
        """The process to start in ``cwd`` for ``argv``. Where the domain does not hold it is the plain command.

        Raises ToolError, with one line, where a sandbox is required and none holds, and where the private folders
        cannot be made.
        """
        if line := self.refusal(domain):
            raise ToolError(line)
        if domain == "free" or self.backend is None or not self.holds(domain):
            return free(argv, env)
        try:
            policy.prepare()
            return self.backend.wrap(argv, domain, policy, cwd, env)
        except OSError as error:
            raise ToolError(f"Cannot prepare the sandbox: {error}.") from None


def probe(base: Path, mode: SandboxMode = "auto") -> Sandbox:
    """Tries the backends of this machine, the strongest first, and keeps the first that holds ``look`` and ``work``,
    else the one that holds most. ``base`` is a private folder of ours. Takes a few tenths of a second: not for the
    UI's loop."""
    if mode == "off":
        return Sandbox(mode=mode, failed=("switched off",))
    try:
        return _proven(private_dir(base), mode)
    except OSError as error:
        return Sandbox(mode=mode, failed=(f"cannot write to {base}: {error.strerror or error}",))


def _proven(base: Path, mode: SandboxMode) -> Sandbox:
    from agent_tui.tools.sandbox.network import session_network

    shared = session_network()
    best = Sandbox(mode=mode)
    failed: list[str] = []
    for backend in backends():
        proven: set[Domain] = set()
        joins = shared is not None and "own" in backend.loopback
        shares = joins and not trial(backend, "work", base, shared)
        for domain in ("look", "work"):
            if (domain != "work" or not shares) and (why := trial(backend, domain, base)):
                failed.append(f"{backend.name}: {why}")
            else:
                proven.add(domain)
        if len(proven) > len(best.proven):
            best = Sandbox(backend, frozenset(proven), mode, shares=shares)
        if len(proven) == 2:
            break
    if best.backend is None and not failed:
        failed.append("this system has none")
    return replace(best, failed=tuple(failed))


def backends() -> list[SandboxBackend]:
    """Returns the backends that could be used here, the strongest first; a trial tells whether one holds."""
    if sys.platform == "darwin":
        from agent_tui.tools.sandbox.backends import Seatbelt

        program = find("sandbox-exec")
        return [Seatbelt(program)] if program else []
    if sys.platform != "linux":
        return []
    from agent_tui.tools.sandbox.backends import Bubblewrap, Landlock, Namespaces
    from agent_tui.tools.sandbox.confine import abi

    version = abi()
    program = find("bwrap")
    found: list[SandboxBackend] = [Bubblewrap(program, version)] if program else []
    found.append(Namespaces(version))
    return [*found, Landlock(version, ports=True), Landlock(version)] if version else found


log = logging.getLogger(__name__)

PATIENCE = 10.0
"""Seconds one trial may take; it takes a tenth of one."""

PROGRAMS = "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin:/home/linuxbrew/.linuxbrew/bin"
"""Where a backend's program may be, whatever PATH says."""

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


def trial(backend: SandboxBackend, domain: Domain, base: Path, shared: SessionNetwork | None = None) -> str:
    """Tries ``backend`` and returns why it does not hold ``domain``; empty when it does. ``base`` is a folder no list
    names, for what is needed in passing; ``shared`` is the network that ``work`` joins. Takes about a tenth of a
    second."""
    try:
        with tempfile.TemporaryDirectory(dir=base, prefix="try-") as folder:
            return _trial(backend, domain, Path(folder).resolve(), shared)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)


def _trial(backend: SandboxBackend, domain: Domain, folder: Path, shared: SessionNetwork | None) -> str:
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
            done = run(
                launch.argv,
                launch.env,
                cwd=project,
                pass_fds=launch.pass_fds,
                capture_output=True,
                timeout=PATIENCE,
            )
        could = set(done.stdout.decode("utf-8", "replace").splitlines())
        if not received():
            could.discard("udp")  # sent into a network of its own
    if done.returncode:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        return last[0] if last else f"exit code {done.returncode}"
    return _verdict(backend, domain, could)


def _verdict(backend: SandboxBackend, domain: Domain, could: set[str]) -> str:
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
    return find_program(program, {"PATH": PROGRAMS})
