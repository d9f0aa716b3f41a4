"""A home with secrets, a folder outside, listeners and a bystander: what a command in a sandbox must not get at."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from zlib import crc32

import pytest

from agent_tui.config import SandboxConfig
from agent_tui.tools.children.process import ProcessGroup
from agent_tui.tools.sandbox import box, places
from agent_tui.tools.sandbox.backends import Bubblewrap
from agent_tui.tools.sandbox.box import Sandbox, backends, probe
from agent_tui.tools.sandbox.confine import abi
from agent_tui.tools.sandbox.jail import Jail
from agent_tui.tools.sandbox.policy import Domain, Network
from tests.support.forms import LONG

SECRET = f"SECRET-{uuid.uuid4().hex}"
ESCAPED = "ESCAPED"

SECRET_FILES = (
    *(".ssh/id_ed25519", ".aws/credentials", ".netrc", ".gnupg/private-keys-v1.d/key", ".config/gh/hosts.yml"),
    *(".kube/config", ".docker/config.json", ".git-credentials", ".gitconfig", ".bash_history", ".zsh_history"),
    *(".python_history", ".local/share/keyrings/login.keyring", ".npmrc", ".pypirc", ".cargo/credentials.toml"),
    *(".local/share/agent-tui/sessions.db", ".config/agent-tui/config.toml", ".mozilla/firefox/logins.json"),
    *(".pgpass", ".my.cnf", ".vault-token", ".claude/.credentials.json", ".codex/auth.json", "notes.txt"),
    *(".bashrc", ".profile", ".cache/token"),
)

_CALL = """
import ctypes, sys
def word(text):
    try:
        return ctypes.c_long(int(text, 0))
    except ValueError:
        return text.encode()
print(ctypes.CDLL(None, use_errno=True).syscall(*map(word, sys.argv[1:])))
"""

PRELUDE = f"""
py() {{ "$PYTHON" -I "$@"; }}
sys() {{ py -c '{_CALL}' "$@"; }}
"""

_VICTIM = """
import signal, sys, time
def note(number, frame):
    open(sys.argv[1], "a").write(f"{number} ")
for number in (signal.SIGURG, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGCONT):
    signal.signal(number, note)
print("ready", flush=True)
time.sleep(100_000)  # agent-tui-victim
"""


MEANS = ("bubblewrap", "namespaces", "Landlock with a network namespace", "Landlock")
"""What can hold a command on Linux, the strongest first. Tests run on each of them, whatever is installed."""

GIVEN = os.environ.get("AGENT_TUI_TEST_BWRAP")
"""The path of a bubblewrap that is not installed, for the tests alone: the program looks only where the system keeps
its own."""


@lru_cache
def means() -> dict[str, Sandbox | str]:
    """Each of ``MEANS`` as the program finds it when it is the only one: a sandbox that holds both domains here, else
    the reason why there is none."""
    found: dict[str, Sandbox | str] = dict.fromkeys(MEANS, "this system has none")
    if sys.platform != "linux":
        return found
    found["bubblewrap"] = "bubblewrap is not installed, and AGENT_TUI_TEST_BWRAP names none"
    # Not below /tmp, of which some means give a command its own.
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="agent-tui-test-") as base:
        for backend in [*([Bubblewrap(GIVEN, abi())] if GIVEN else []), *backends()]:
            name = _means(backend.name)
            if not isinstance(found[name], Sandbox):
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(box, "backends", lambda backend=backend: [backend])
                    tried = probe(Path(base))
                found[name] = tried if {"look", "work"} <= tried.proven else "; ".join(tried.failed)
    return found


def here() -> list[str]:
    """Those of ``MEANS`` that are here; without any the first, for which tests are skipped with the reason."""
    return [name for name, found in means().items() if not isinstance(found, str)] or [*MEANS[:1]]


def in_turn(test: str) -> list[str]:
    """The means that a test of what stands upon the sandbox is run by: one of those with namespaces and one of those
    without, which its name decides, so that each of them has its share. All there are in the long form."""
    if LONG:
        return here()
    kinds = [[name for name in here() if name.startswith("Landlock") is without] for without in (False, True)]
    return [kind[crc32(test.encode()) % len(kind)] for kind in kinds if kind]


def _means(backend: str) -> str:
    """Which of ``MEANS`` a backend is, by its name."""
    if backend.startswith("bubblewrap"):
        return "bubblewrap"
    return backend if backend in MEANS else "namespaces"


def held_by(name: str) -> Sandbox:
    """The sandbox of one of ``MEANS``, or of ``none``; skips the test, with the reason, where it is not here."""
    if name == "none":
        return Sandbox(failed=("this test has none",))
    found = means()[name]
    if isinstance(found, str):
        pytest.skip(f"{name}: {found}")
    return found


@dataclass(slots=True)
class Listeners:
    """Everything that could be reached on this machine. ``heard`` grows when something is."""

    tcp: int
    udp: int
    unix: Path
    datagrams: Path
    abstract: str
    heard: list[str] = field(default_factory=list)


@contextlib.contextmanager
def listening(folder: Path) -> Iterator[Listeners]:
    """Listeners of every kind. The unix one is in a folder of its own, with a short name."""
    with contextlib.ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        unix, abstract = (stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2))
        letters = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        abstract_name = f"agent-tui-{uuid.uuid4().hex[:12]}"
        ports = tcp.getsockname()[1], udp.getsockname()[1]
        ears = Listeners(*ports, folder / "s", folder / "d", abstract_name)
        unix.bind(str(ears.unix))
        letters.bind(str(ears.datagrams))
        abstract.bind("\0" + ears.abstract)

        def accept(name: str, one: socket.socket) -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = one.accept()
                    ears.heard.append(name)
                    connection.close()

        def receive(name: str, one: socket.socket) -> None:
            with contextlib.suppress(OSError):
                while data := one.recv(1_000):
                    ears.heard.append(f"{name} {data[:20]!r}")

        for name, one in (("tcp", tcp), ("unix", unix), ("abstract", abstract)):
            one.listen()
            threading.Thread(target=accept, args=(name, one), daemon=True).start()
        for name, one in (("udp", udp), ("datagram", letters)):
            threading.Thread(target=receive, args=(name, one), daemon=True).start()
        yield ears
        for one in (tcp, udp, unix, abstract, letters):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


@dataclass(slots=True)
class Victim:
    """Somebody else's process, with a secret in its environment."""

    process: subprocess.Popen[bytes]
    notes: Path
    limits: str

    def harm(self) -> str:
        """What was done to it; empty when nothing was."""
        if self.process.poll() is not None:
            return f"the victim ended ({self.process.returncode})"
        state = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        if state in "Tt":
            return "the victim was stopped"
        if Path(f"/proc/{self.process.pid}/limits").read_text() != self.limits:
            return "the victim's limits were changed"
        return f"the victim got signal {self.notes.read_text()}" if self.notes.exists() else ""


@contextlib.contextmanager
def victim(folder: Path) -> Iterator[Victim]:
    notes = folder / "signals"
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", _VICTIM, str(notes)],
        cwd=folder,
        env={**os.environ, "TEST_API_KEY": SECRET},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        yield Victim(process, notes, Path(f"/proc/{process.pid}/limits").read_text())
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def make_home(home: Path) -> None:
    for name in SECRET_FILES:
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        git = f"[user]\n\tname = Somebody\n[http]\n\textraheader = {SECRET}\n[alias]\n\tx = !echo {SECRET}\n"
        path.write_text(git if name == ".gitconfig" else f"{SECRET}\n")
    (home / ".local" / "bin").mkdir(parents=True)


@dataclass(slots=True)
class Place:
    """A project with a folder outside it, for one attempt."""

    base: Path

    @property
    def project(self) -> Path:
        return self.base / "project"

    @property
    def added(self) -> Path:
        """A folder that was added, though it lies in the project."""
        return self.project / "added"

    @property
    def outside(self) -> Path:
        return self.base / "outside"

    def make(self, repository: Path) -> None:
        self.project.mkdir(parents=True)
        subprocess.run(["cp", "-a", f"{repository}/.", str(self.project)], check=True)
        self.added.mkdir()
        (self.outside / "empty").mkdir(parents=True)
        (self.outside / "file").write_text(f"{SECRET}\n")
        (self.project / "link-to-outside").symlink_to(self.outside)
        (self.project / "link-to-file").symlink_to(self.outside / "file")


def make_repository(folder: Path) -> None:
    """A small repository, to be copied."""
    (folder / "folder").mkdir(parents=True)
    (folder / "folder" / "inner").write_text("inner\n")
    (folder / "file").write_text("file\n")
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    for command in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", *command], cwd=folder, env=env, check=True)


def tree(folder: Path, times: bool = True) -> dict[str, object]:
    """What a folder holds: names, kinds, modes, owners, contents and, with ``times``, when they were changed."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        info = path.lstat()
        what: object = info.st_mode
        if path.is_symlink():
            what = str(path.readlink())
        elif path.is_file():
            what = path.read_bytes()
        named = (info.st_mode, info.st_uid, info.st_gid, what, os.listxattr(path, follow_symlinks=False))
        found[str(path.relative_to(folder))] = (*named, info.st_mtime_ns) if times else named
    return found


def runs_later(project: Path) -> dict[str, object]:
    """What git, editors and agents would run: hooks that are in force, configuration that names programs, and all
    other protected places."""
    found: dict[str, object] = {}
    for path in places.protected(project):
        name = str(path.relative_to(project))
        if path.is_symlink():
            found[name] = str(path.readlink())
        elif name.endswith(("hooks", "info")) and path.is_dir():
            active = [p for p in path.rglob("*") if p.suffix != ".sample" and p.name not in ("exclude", "refs")]
            found |= {str(p.relative_to(project)): p.read_bytes() for p in active if p.is_file()}
        elif path.is_dir():
            found[name] = tree(path, times=False)
        elif path.is_file():
            lines = path.read_text(errors="replace").splitlines()
            programs = ("fsmonitor", "pager", "editor", "command", "hookspath", "clean", "include", "alias", "path =")
            found[name] = [line for line in lines if any(word in line.lower() for word in programs)]
    if (project / ".git").is_symlink() or (project / ".git").is_file():
        found[".git"] = "leads elsewhere"
    return {name: what for name, what in found.items() if what != []}


def left_behind(mark: str, seconds: str = "31337") -> list[str]:
    """Command lines of processes that an attempt left running: with ``mark`` in their environment, or ``seconds``, the
    time they sleep, in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
                zombie = (entry / "stat").read_text().rpartition(")")[2].split()[0] in "ZX"
                if not zombie and (mark.encode() in (entry / "environ").read_bytes() or seconds in line):
                    found.append(f"{entry.name} {line}"[:200])
    return found


def jail_for(sandbox: Sandbox, place: Place, cache: Path, network: Network = "ask") -> Jail:
    """The jail of a place's project under one sandbox."""
    return Jail(SandboxConfig(network=network), place.project, cache, [place.added], sandbox=sandbox)


@contextlib.contextmanager
def shared_memory() -> Iterator[int]:
    """The number of a piece of memory with a secret in it, that other programs of the user share."""
    import ctypes

    libc = ctypes.CDLL(None)
    libc.shmat.restype = ctypes.c_void_p
    number = libc.shmget(0, 4_096, 0o1600)
    assert number >= 0
    try:
        ctypes.memmove(libc.shmat(number, None, 0), SECRET.encode(), len(SECRET))
        yield number
    finally:
        libc.shmctl(number, 0, None)


async def run(jail: Jail, domain: Domain, place: Place, script: str, more: dict[str, str]) -> tuple[int, str]:
    """Runs a script in a project as the bash tool would, to its end or for ten seconds; its exit code and output."""
    return await run_in(place.project, jail, domain, PRELUDE + script, more, 10)


async def run_in(
    folder: Path, jail: Jail, domain: Domain, script: str, more: dict[str, str] | None = None, seconds: float = 10
) -> tuple[int, str]:
    """The same in a folder, with nothing defined for it; -1000 is the code of what was ended after ``seconds``."""
    launch = jail.wrapped(["bash", "-c", script], domain, folder, more=more)
    group = await ProcessGroup.start(launch, folder, held=jail.held)
    try:
        async with asyncio.timeout(seconds):
            reading = asyncio.ensure_future(_all(group))
            code = await group.wait()
            await asyncio.wait({reading}, timeout=0.5)
    except TimeoutError:
        code = -1000
    finally:
        await group.end()
        output = await reading
        group.close()
    return code, output.decode("utf-8", "replace")


async def _all(group: ProcessGroup) -> bytes:
    output = b""
    while data := await group.read():
        output = (output + data)[-1_000_000:]
    return output
