"""Answers the git commands of one line that talk to a remote: the processes they need outside are started here.

The line's processes have one end of a socket. What comes over it is asked by anyone inside, so everything in it is
looked at as hostile: what may be done was fixed before the line began (``RemoteReach``), and a request only
picks from it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shlex
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from agent_tui.errors import ToolError
from agent_tui.paths import private_dir
from agent_tui.pipes.programs import find_program
from agent_tui.pipes.start import run
from agent_tui.tools.children.bounded import run_bounded
from agent_tui.tools.git.configuration import as_config, config_of
from agent_tui.tools.git.outside import Outside, OutsideGit, RepositoryState
from agent_tui.tools.git.remotes import Address, RemoteReach, parse_address, rewritten
from agent_tui.tools.git.repository import read_small
from agent_tui.tools.sandbox import start
from agent_tui.tools.sandbox.jail import Jail
from agent_tui.tools.sandbox.policy import Domain, Launch, Network, free
from agent_tui.tools.sandbox.relay import END, ERR, FRAME, OUT, RESULT

T = TypeVar("T")

log = logging.getLogger(__name__)

MAX_REQUEST = 64_000_000
"""Bytes: all references of a repository are in it."""

MAX_SAID = 20_000_000
AT_ONCE, IN_ALL = 8, 200
_SEQUENCED = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_DGRAM
_PRIVATE = f"git-for-{os.getpid()}-"
_RELAY = (sys.executable, "-I", "-S", str(start.FOLDER / "relay.py"))
_SHIM = """#!/bin/sh
skip=
for word; do
  [ "$skip" ] && { skip=; continue; }
  case $word in
    -C|-c|--git-dir|--work-tree|--namespace|--config-env|--super-prefix) skip=1 ;;
    -*) ;;
    push) exec RELAY push GIT "$@" ;;
    *) break ;;
  esac
done
exec GIT "$@"
"""


def relay_folder(base: Path) -> Path | None:
    """Makes the folder in which a git inside the sandbox finds what talks to remotes: its own programs, but for those
    that open connections. Read-only inside. None where the user has none. Raises OSError."""
    program = find_program("git")
    if program is None:
        return None
    asked = run([program, "--exec-path"], capture_output=True, timeout=10, cwd="/")
    programs = Path(os.fsdecode(asked.stdout.strip()))
    texts = {
        "bin/git": _SHIM.replace("RELAY", shlex.join(_RELAY)).replace("GIT", shlex.quote(program)),
        "bin/ssh": _script("ssh", program),
        "git-core/git-remote-http": _script("web", program),
        "git-core/git-remote-https": _script("web", program),
        "git-core/git-upload-pack": _script("local", program),
    }
    links = {f"git-core/{there.name}": there for there in sorted(programs.iterdir())}
    mark = json.dumps([texts, {name: str(there) for name, there in links.items()}])
    folder = base / "git-relay"
    if not (folder / "made").is_file() or (folder / "made").read_text("utf-8") != mark:
        fresh = Path(tempfile.mkdtemp(prefix="git-relay-", dir=private_dir(base)))
        for name in ("bin", "git-core"):
            (fresh / name).mkdir()
        for name, there in links.items():
            if name not in texts:
                (fresh / name).symlink_to(there)
        for name, text in texts.items():
            (fresh / name).write_text(text)
            (fresh / name).chmod(0o755)
        (fresh / "made").write_text(mark, "utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # another process was quicker
            fresh.rename(folder)
        shutil.rmtree(fresh, ignore_errors=True)
    return folder


def _tidy(base: Path) -> None:
    """Removes what programs left behind that could not do so themselves: their users' settings are in it."""
    for old in base.glob("git-for-*-*"):
        try:
            os.kill(int(old.name.split("-")[2]), 0)
        except (ProcessLookupError, ValueError):
            shutil.rmtree(old, ignore_errors=True)
        except OSError:
            continue


def _script(role: str, program: str) -> str:
    return f'#!/bin/sh\nexec {shlex.join(_RELAY)} {role} {shlex.quote(program)} "$@"\n'


class GitBroker:
    """Made for one line, before it starts; there until the last of its processes is gone. ``folders`` are those that
    the model may write in, ``base`` a private folder of ours. ``environment`` and ``fd`` are what the line is started
    with, and ``folder`` what it must be able to read; who starts it closes ``fd``."""

    def __init__(self, reaches: Sequence[RemoteReach], base: Path, folder: Path) -> None:
        self._reaches, self._base = reaches, base
        self._instead: list[tuple[str, str]] = []
        self._upstreams: dict[Path, list[tuple[str, str]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._served = 0
        self.environment: dict[str, str] = {}
        self.folder = folder
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, _SEQUENCED)
        self._ours.setblocking(False)
        self.fd = theirs.detach()

    @classmethod
    async def open(cls, reaches: Sequence[RemoteReach], base: Path, path: str) -> GitBroker | None:
        """``path`` is the PATH of the line. None where git is missing. Raises ToolError."""
        try:
            folder = await asyncio.to_thread(relay_folder, base)
            if folder is None:
                return None
            broker = cls(reaches, base, folder)
        except (OSError, subprocess.SubprocessError) as error:
            raise ToolError(f"git cannot be let out of the sandbox: {error}.") from None
        try:
            place = next((reach.repository for reach in reaches if reach.repository is not None), None)
            broker._instead = await asyncio.to_thread(broker._looked_up, place)
        except BaseException:
            broker._ours.close()
            os.close(broker.fd)
            raise
        pairs = broker._instead
        broker.environment = {
            "AGENT_TUI_GIT": str(broker.fd),
            "GIT_EXEC_PATH": str(folder / "git-core"),
            "GIT_SSH_COMMAND": str(folder / "bin/ssh"),
            "GIT_SSH_VARIANT": "ssh",
            **({"GIT_CONFIG_COUNT": str(len(pairs))} if pairs else {}),
            **{f"GIT_CONFIG_KEY_{at}": f"url.{form}.insteadOf" for at, (form, _) in enumerate(pairs)},
            **{f"GIT_CONFIG_VALUE_{at}": beginning for at, (_, beginning) in enumerate(pairs)},
        }
        if any(reach.push is not None or reach.problem for reach in reaches):
            broker.environment["PATH"] = f"{folder / 'bin'}{os.pathsep}{path}"
        asyncio.get_running_loop().add_reader(broker._ours, broker._readable)
        return broker

    def _looked_up(self, place: Path | None) -> list[tuple[str, str]]:
        _tidy(private_dir(self._base))
        with tempfile.TemporaryDirectory(prefix=_PRIVATE, dir=self._base) as name:
            return OutsideGit(Path(name), place).instead

    def close(self) -> None:
        """Ends what runs for it. Safe to call again."""
        if self._ours.fileno() < 0:
            return
        with contextlib.suppress(RuntimeError):
            asyncio.get_running_loop().remove_reader(self._ours)
        self._ours.close()
        for task in self._tasks:
            task.cancel()  # once: they end their process on the way out

    async def over(self) -> list[str]:
        """The line has ended: ends what runs for it, and writes what a push had to remember. Answers what to tell."""
        self.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        notes: list[str] = []
        for repository, settings in self._upstreams.items():
            problem = await asyncio.to_thread(_remember, repository, settings)
            if problem:
                notes.append(problem)
        self._upstreams.clear()
        return notes

    def _readable(self) -> None:
        try:
            data, fds, _, _ = socket.recv_fds(self._ours, 16, 4, getattr(socket, "MSG_CMSG_CLOEXEC", 0))
        except BlockingIOError:
            return
        except OSError:
            data, fds = b"", []
        if not data:
            self.close()  # nobody is left who could ask
            return
        self._served += 1
        if len(self._tasks) >= AT_ONCE or self._served > IN_ALL or len(fds) < 2:
            _close(*fds)
            return
        task = asyncio.get_running_loop().create_task(self._serve(fds))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, fds: list[int]) -> None:
        """One request: a file with what is asked, the pipe for the answer, and the streams it is about."""
        private = None
        asked, back, *streams = fds
        ours = [asked, back]
        try:
            if not stat.S_ISREG(os.fstat(asked).st_mode) or not all(_is_pipe(fd) for fd in fds[1:]):
                return
            request = await _in_thread(_whole, asked)
            answer = await _Answer.to(back)
            ours.remove(back)
            try:
                private = Path(tempfile.mkdtemp(prefix=_PRIVATE, dir=self._base))
                code = await self._done(request, answer, private, streams)
                await answer.send(END, str(code).encode())
            except ToolError as refused:
                await answer.send(RESULT, json.dumps({"refused": str(refused)}).encode())
                await answer.send(END, b"128")
            finally:
                answer.close()
        except (OSError, ValueError, KeyError, TypeError, AttributeError, subprocess.SubprocessError) as error:
            log.info("A request of git in the sandbox was dropped: %s", error)
        finally:
            _close(*ours, *streams)
            if private is not None:
                await _in_thread(shutil.rmtree, private, ignore_errors=True)

    async def _done(self, request: dict[str, object], answer: _Answer, private: Path, streams: list[int]) -> int:
        """Does what is asked; its exit code. Raises ToolError with a line for what may not be."""
        if request["kind"] == "push":
            return await self._push(request, answer, private)
        if len(streams) != 2:
            raise ValueError("no streams")
        asked = _asked_for(request)
        reach, address = next(self._allowing(asked), (None, None))
        if reach is None or address is None:
            why = next((one.problem for one in self._reaches if one.problem), "")
            shown = asked.text if asked is not None else "that"
            raise ToolError(f"git may not reach {shown} in this command{f': {why}' if why else ''}.")
        outside = await _in_thread(OutsideGit, private, reach.repository)
        there = await _in_thread(outside.resolved, address)
        if there is None or there.kind != address.kind:
            raise ToolError(
                f"git is configured to reach {address.text} in a way that is not possible from the sandbox."
            )
        process = await _in_thread(outside.takes, there, str(request["protocol"]), [*_RELAY, "gate"])
        return await self._run(process, answer, private, streams)

    def _allowing(self, asked: Address | None) -> Iterator[tuple[RemoteReach, Address]]:
        """Yields each reach that allows to fetch from there, with the address as it was allowed: git inside may have
        made it another by the user's configuration."""
        for reach in self._reaches:
            for one in reach.addresses if reach.push is None and asked is not None else ():
                for known in (one, parse_address(rewritten(one.text, self._instead), reach.folder)):
                    if known is not None and asked is not None and known.key == asked.key:
                        yield reach, known

    async def _push(self, request: dict[str, object], answer: _Answer, private: Path) -> int:
        argv, folder = request["argv"], os.path.realpath(str(request["folder"]))
        reach = next((r for r in self._reaches if list(r.argv) == argv and os.path.realpath(r.folder) == folder), None)
        if reach is None or reach.push is None:
            why = f": {reach.problem}" if reach is not None and reach.problem else ""
            raise ToolError(f"git push was not allowed outside the sandbox in this command{why}.")
        told = _told(request)
        outside = await _in_thread(OutsideGit, private, reach.repository)
        process = await _in_thread(outside.pushes, reach, told)
        before = await _in_thread(outside.settings)
        code = await self._run(process, answer, private, [])
        after = await _in_thread(outside.references)
        tracked = {name: at for name, at in told.references.items() if name.startswith("refs/remotes/")}
        changed = [
            (name, tracked.get(name, ""), after.get(name, ""))
            for name in sorted(tracked.keys() | after.keys())
            if tracked.get(name) != after.get(name)
        ]
        await answer.send(RESULT, json.dumps({"references": changed}).encode("utf-8", "surrogateescape"))
        new = [pair for pair in await _in_thread(outside.settings) if pair not in before]
        if reach.repository is not None and new:
            self._upstreams.setdefault(reach.repository, []).extend(p for p in new if p[0].startswith("branch."))
        return code

    async def _run(self, process: Outside, answer: _Answer, private: Path, streams: list[int]) -> int:
        """Runs one process; what it says goes into the answer, and the end of who asked is its own. ``streams`` are
        what it reads and writes, if there are any, and are closed."""
        given = (streams[0], streams[1]) if streams else b""
        streams.clear()
        launch = free(process.command, process.environment)
        output, errors, gone = _Passed(answer, OUT).take, _Passed(answer, ERR).take, answer.gone.wait()
        end = await run_bounded(launch, private, None, output, errors, given=given, unwanted=gone, drain=2.0)
        return 128 if end.why else end.code


class _Passed:
    """Passes on what a process says, up to a limit, as one kind of frame of an answer."""

    def __init__(self, answer: _Answer, kind: int) -> None:
        self._answer, self._kind, self._total = answer, kind, 0

    async def take(self, data: bytes) -> bool:
        self._total += len(data)
        if self._total <= MAX_SAID:
            await self._answer.send(self._kind, data)
        return True


async def launched(
    jail: Jail, argv: Sequence[str], domain: Domain, cwd: Path, network: Network | None, reaches: Sequence[RemoteReach]
) -> tuple[Launch, GitBroker | None]:
    """A process held to ``domain``, and who answers its git for what it may reach; nobody, where it is not held. Raises
    ToolError."""
    held = domain != "free" and (await jail.ready()).holds(domain)
    path = os.environ.get("PATH", os.defpath)
    broker = await GitBroker.open(reaches, jail.cache / "sandbox", path) if held else None
    if broker is None:
        return await jail.launch(argv, domain, cwd, network), None
    try:
        launch = await jail.launch(
            argv, domain, cwd, network, more=broker.environment, readable=[broker.folder.resolve()]
        )
    except BaseException:
        os.close(broker.fd)
        broker.close()
        raise
    launch.pass_fds = (*launch.pass_fds, broker.fd)
    return launch, broker


class _Answer(asyncio.Protocol):
    """The way back to who asked. ``gone``: nobody reads any more."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()
        self._free = asyncio.Event()
        self._free.set()
        self._transport: asyncio.WriteTransport | None = None

    @classmethod
    async def to(cls, fd: int) -> _Answer:
        transport, protocol = await asyncio.get_running_loop().connect_write_pipe(cls, os.fdopen(fd, "wb", buffering=0))
        protocol._transport = transport
        return protocol

    def pause_writing(self) -> None:
        self._free.clear()

    def resume_writing(self) -> None:
        self._free.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone.set()
        self._free.set()

    async def send(self, kind: int, data: bytes) -> None:
        if self._transport is not None and not self.gone.is_set():
            self._transport.write(FRAME.pack(kind, len(data)) + data)
            await self._free.wait()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


def _asked_for(request: dict[str, object]) -> Address | None:
    """The address a request names, in the form in which git inside knew it."""
    nowhere = Path("/")
    if request["kind"] == "web":
        address = parse_address(str(request["address"]), nowhere)
        return address if address is not None and address.kind == "web" else None
    if request["kind"] == "local":
        address = parse_address(str(request["path"]), nowhere)
        return address if address is not None and address.kind == "local" else None
    words = shlex.split(str(request["command"]))
    if len(words) != 2 or words[0] != "git-upload-pack":
        raise ToolError("Over ssh git may only fetch from inside the sandbox; to push, use the command `git push`.")
    host, port = str(request["host"]), str(request["port"])
    return Address("ssh", f"{host}:{words[1]}", host, port, words[1])


def _told(request: dict[str, object]) -> RepositoryState:
    references, shallow = request["references"], request["shallow"]
    if not isinstance(references, dict) or not isinstance(shallow, list):
        raise ValueError("not what a repository says")
    named = {str(name): str(at) for name, at in references.items()}
    return RepositoryState(str(request["head"]), named, [str(line) for line in shallow], request["sha256"] is True)


def _remember(repository: Path, settings: Iterable[tuple[str, str]]) -> str:
    """Adds which branch goes with which to a repository's configuration, at its end; why not, where it cannot be."""
    before = read_small(repository / "config", repository, 2_000_000)
    known = {key for key, _ in config_of(before)}
    settings = list(dict.fromkeys(settings))
    if os.path.realpath(repository) != str(repository):
        return "[the upstream was not set: the repository was moved]"
    clash = sorted({key.split(".", 1)[1].rpartition(".")[0] for key, _ in settings if key in known})
    if clash:
        return f"[{', '.join(clash)} keeps the upstream it had: change it with git branch -u outside the sandbox]"
    flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | getattr(os, "O_CLOEXEC", 0)
    try:
        fd = os.open(repository / "config", flags)
        with os.fdopen(fd, "ab") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode) or not before:
                return "[the upstream was not set: the repository's configuration is no plain file]"
            text = ("" if before.endswith("\n") else "\n") + as_config(settings)
            file.write(text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        return f"[the upstream was not set: {error.strerror}]"
    return ""


async def _in_thread(work: Callable[..., T], *arguments: object, **named: object) -> T:
    """Does it in a thread, and waits for that also when it is cancelled: its files are there as long as it runs."""
    doing = asyncio.ensure_future(asyncio.to_thread(work, *arguments, **named))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait({doing})
        raise


def _is_pipe(fd: int) -> bool:
    return stat.S_ISFIFO(os.fstat(fd).st_mode)


def _whole(fd: int) -> dict[str, object]:
    size = os.fstat(fd).st_size
    request = json.loads(os.pread(fd, size, 0)) if size <= MAX_REQUEST else None
    if not isinstance(request, dict):
        raise ValueError("not a request")
    return request


def _close(*fds: int) -> None:
    for fd in fds:
        with contextlib.suppress(OSError):
            os.close(fd)
