"""The network of held commands: one that those of a program share, so that a server one started is there for the next;
the proxy by which they reach hosts that were granted; and the registries packages come from.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
import re
import socket
import subprocess
import sys
import threading
import time
import weakref
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

from agent_tui.paths import read_regular, with_home
from agent_tui.pipes.start import run
from agent_tui.tools.sandbox.start import starter
from agent_tui.tools.word_sets import word_set
from agent_tui.urls import AddressError, Url, is_public, parse_place, parse_url, urls_in

log = logging.getLogger(__name__)

MAKING_PATIENCE = 10.0
"""Seconds the making may take; it takes a few hundredths of one."""


class SessionNetwork:
    """Only a loopback, and no way out of it but what is made of ``listener``, a socket inside it. It is there as long
    as this object, this process or a command in it is: the kernel takes it away, however they end."""

    def __init__(self, fds: list[int], listener: socket.socket | None = None) -> None:
        self._fds = fds
        self.listener = listener
        weakref.finalize(self, _close, tuple(fds))

    def joined(self) -> tuple[int, ...]:
        """Descriptors of its namespaces, in the order in which they are entered, for one launch to hand on and
        close. Raises OSError."""
        found: list[int] = []
        try:
            for fd in self._fds:
                found.append(os.dup(fd))
        except OSError:
            _close(tuple(found))
            raise
        return tuple(found)


def session_network() -> SessionNetwork | None:
    """A new one; None where the system gives none. Not for the UI's loop: it starts a process and waits for it."""
    if sys.platform != "linux":
        return None
    ours, theirs = socket.socketpair()
    with ours:
        try:
            with theirs:
                done = run(
                    starter("share", {"to": theirs.fileno()}, []),
                    pass_fds=[theirs.fileno()],
                    capture_output=True,
                    timeout=MAKING_PATIENCE,
                )
            _, fds, _, _ = socket.recv_fds(ours, 1, 3)
        except (OSError, subprocess.SubprocessError) as error:
            log.info("Commands share no network: %s", error)
            return None
    if not fds:
        log.info("Commands share no network: %s", done.stderr.decode("utf-8", "replace").strip())
        return None
    for fd in fds:
        os.set_inheritable(fd, False)
    return SessionNetwork(fds[1:], socket.socket(fileno=fds[0]))


def _close(fds: tuple[int, ...]) -> None:
    for fd in fds:
        os.close(fd)


KNOWN = word_set(
    "pypi.org files.pythonhosted.org conda.anaconda.org repo.anaconda.com "
    "registry.npmjs.org registry.yarnpkg.com repo.yarnpkg.com nodejs.org jsr.io npm.jsr.io deno.land "
    "index.crates.io static.crates.io crates.io static.rust-lang.org proxy.golang.org sum.golang.org "
    "rubygems.org index.rubygems.org repo.maven.apache.org repo1.maven.org plugins.gradle.org services.gradle.org "
    "packagist.org repo.packagist.org api.nuget.org hex.pm repo.hex.pm builds.hex.pm pub.dev "
    "cpan.metacpan.org fastapi.metacpan.org www.cpan.org cran.r-project.org cloud.r-project.org "
    "hackage.haskell.org opam.ocaml.org pkg.julialang.org"
)
"""They hand out packages under names that everybody sees. What takes uploads, hosts code or files of anybody is not
among them."""

_NAMES = re.compile(
    r"(?i:PIP|UV|PDM|POETRY|CONDA|NPM_CONFIG|YARN|PNPM|BUN|CARGO|GEM|BUNDLE|MAVEN|NUGET|COMPOSER|HEX|PUB|GOPROXY)"
    r"(?:_\w+)?"
)
_WHAT = re.compile(r"(?i:index|registry|registries|proxy|mirror|repository|hosted|channel|source|links)")
_ROUTE = re.compile(r"(?i:npm_config_|yarn_|pip_|uv_|cargo_)?(?:https?_?|no_?|http_)proxy", re.IGNORECASE)
_FILES = (
    *("~/.config/pip/pip.conf", "~/.pip/pip.conf", "/etc/pip.conf", "~/.config/uv/uv.toml", "/etc/uv/uv.toml"),
    *("~/.npmrc", "~/.yarnrc", "~/.yarnrc.yml", "~/.cargo/config.toml", "~/.cargo/config", "~/.condarc"),
    *("~/.bundle/config", "~/.gemrc", "~/.m2/settings.xml", "~/.config/pip/config", "~/.config/go/env"),
)
_MOST = 200_000


def is_registry(host: str) -> bool:
    """Returns whether a host is a public registry that everybody gets packages from."""
    return host in KNOWN


def hosts_named(command: str) -> list[str]:
    """The hosts of the web addresses that stand in a command."""
    return list(dict.fromkeys(host for host, _ in _places(command)))


def users_own(environ: Mapping[str, str], apart_from: Iterable[Path]) -> frozenset[tuple[str, int]]:
    """The (host, port) that the user's environment and own files name as where packages come from. A file that lies in
    one of the folders ``apart_from`` can be written by commands, and says nothing."""
    found = {place for name, value in environ.items() if _names_index(name) for place in _places(value)}
    folders = [folder.resolve() for folder in apart_from]
    for name in _FILES:
        path = Path(os.path.realpath(with_home(name)))
        if not any(path.is_relative_to(folder) for folder in folders):
            found |= set(_in_file(path))
    return frozenset(found)


def _names_index(name: str) -> bool:
    if _ROUTE.fullmatch(name):
        return False  # the way there, not the place
    return _NAMES.fullmatch(name) is not None and _WHAT.search(name) is not None


@lru_cache(maxsize=64)
def _in_file(path: Path) -> tuple[tuple[str, int], ...]:
    try:
        text = read_regular(path, _MOST).decode("utf-8", "replace")
    except OSError:
        return ()
    lines = (line for line in text.splitlines() if not line.lstrip().startswith(("#", ";", "//")))
    return tuple(
        place for line in lines if not re.match(r"\s*(?:https?-)?proxy\s*[=:]", line) for place in _places(line)
    )


def _places(text: str) -> Iterator[tuple[str, int]]:
    return ((url.host, url.port) for _, _, url in urls_in(text))


MOST = 64
"""Connections at a time; further ones wait."""
HEAD = 64 * 1024
PATIENCE = 30.0
"""Seconds for a request to be said, and for a connection to be made."""
_PIECE = 1 << 16
_PORTS = (80, 443)
_OF_THIS_CONNECTION = ("proxy-", "connection:", "host:", "keep-alive:", "upgrade:")
_REQUEST = re.compile(r"(?P<method>[A-Z]+) (?P<target>[!-~]+) (?P<version>HTTP/1\.[01])")
_FIELD = re.compile(r"[\w!#$%&'*+.^`|~-]+:[^\x00-\x08\x0a-\x1f\x7f]*", re.ASCII)


class HostProxy:
    """``allowed`` says of a host and a port whether they were granted, ``own`` whether the user's own settings name
    them: these may be on a private network, and at any port. Raises OSError."""

    def __init__(
        self, listener: socket.socket, allowed: Callable[[str, int], bool], own: Callable[[str, int], bool]
    ) -> None:
        self._listener, self._allowed, self._own = listener, allowed, own
        self.port: int = listener.getsockname()[1]
        self._refused: deque[tuple[float, str]] = deque(maxlen=200)
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="host proxy", daemon=True)
        self._thread.start()

    def refused(self, since: float) -> list[str]:
        """The hosts that were refused from a moment of ``time.monotonic`` on, each once."""
        return list(dict.fromkeys(host for moment, host in list(self._refused) if moment >= since))

    def close(self) -> None:
        """Ends it, with all that goes through it."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(2.0)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except Exception:
            log.exception("The way out of the sandbox has ended")
        finally:
            with contextlib.suppress(Exception):
                self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()
            self._listener.close()

    async def _serve(self) -> None:
        room = asyncio.Semaphore(MOST)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            async with room:
                try:
                    await self._one(reader, writer)
                except (OSError, EOFError, ValueError, TimeoutError, asyncio.LimitOverrunError) as error:
                    log.debug("A connection out of the sandbox ended: %s", type(error).__name__)
                finally:
                    writer.close()

        server = await asyncio.start_server(serve, sock=self._listener, limit=HEAD)
        async with server:
            await self._over.wait()
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(PATIENCE):
            head = await reader.readuntil(b"\r\n\r\n")
        line, *fields = head.decode("latin-1").split("\r\n")[:-2]
        request, length = _REQUEST.fullmatch(line), _length(fields)
        tunnel = request is not None and request["method"] == "CONNECT"
        url = _asked_for(request["target"], tunnel) if request is not None else None
        if request is None or url is None or length is None:
            await _say(
                writer,
                "400 Bad Request",
                "agent-tui: the sandbox's proxy takes only CONNECT and plain http:// requests",
            )
            return
        host, port = url.host, url.written_port or (443 if tunnel else 80)
        if not self._granted(host, port):
            self._refused.append((time.monotonic(), host))
            await _say(
                writer, f"403 {host} is not granted by the user", f"agent-tui: {host} is not granted by the user"
            )
            return
        try:
            async with asyncio.timeout(PATIENCE):
                onward = await self._onward(host, port, tunnel)
        except (OSError, TimeoutError, ValueError, EOFError) as error:
            why = str(error) or "no answer in time"
            await _say(writer, "502 Bad Gateway", f"agent-tui: {host} cannot be reached: {why}")
            return
        far_reader, far_writer, proxied = onward
        try:
            if tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                kept = [f for f in fields if not f.lower().startswith(_OF_THIS_CONNECTION)]
                first = f"{request['method']} {url.origin if proxied else ''}{url.target} {request['version']}"
                own = [f"Host: {url.place}", "Connection: close", *proxied]
                far_writer.write("\r\n".join([first, *own, *kept, "", ""]).encode("latin-1"))
            await _both_ways(reader, writer, far_reader, far_writer, None if tunnel else length)
        finally:
            far_writer.close()

    def _granted(self, host: str, port: int) -> bool:
        return self._own(host, port) if port not in _PORTS else self._allowed(host, port)

    async def _onward(
        self, host: str, port: int, tunnel: bool
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, list[str]]:
        """A connection to a host, through the user's own proxy where their environment names one; then with the fields
        a request to that has. Raises OSError."""
        from urllib.request import getproxies, proxy_bypass

        proxy = None if proxy_bypass(f"{host}:{port}") else getproxies().get("https" if tunnel else "http")
        if not proxy:
            for address in (addresses := await self._addresses(host, port)):
                with contextlib.suppress(OSError):
                    return (*await asyncio.open_connection(address, port, limit=HEAD), [])
            raise OSError(f"none of its {len(addresses)} addresses answers")
        try:
            way = parse_url(proxy if "//" in proxy else f"http://{proxy}", login=True)
        except AddressError as error:
            raise OSError(f"the proxy that the environment names is not used. {error}") from None
        login = ":".join(unquote(word) for word in [*way.login.split(":", 1), ""][:2])
        fields = [f"Proxy-Authorization: Basic {b64encode(login.encode()).decode()}"] if way.login else []
        reader, writer = await asyncio.open_connection(
            way.host, way.written_port or 80, limit=HEAD, ssl=True if way.scheme == "https" else None
        )
        if not tunnel:
            return reader, writer, fields or ["Proxy-Connection: close"]
        try:
            place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            writer.write("\r\n".join([f"CONNECT {place} HTTP/1.1", f"Host: {place}", *fields, "", ""]).encode())
            answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            if answer.split(" ", 2)[1:2] != ["200"]:
                raise OSError("the proxy that the environment names refused it")
        except BaseException:
            writer.close()
            raise
        return reader, writer, []

    async def _addresses(self, host: str, port: int) -> list[str]:
        found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = list(dict.fromkeys(str(item[4][0]) for item in found))
        public = [a for a in addresses if is_public(ipaddress.ip_address(a.partition("%")[0]))]
        if len(public) < len(addresses) and not self._own(host, port):
            raise OSError("it leads to a private address")
        return addresses


def _asked_for(target: str, tunnel: bool) -> Url | None:
    """What a request to the proxy asks for; None for what it does not take."""
    try:
        url = parse_place(target) if tunnel else parse_url(target)
    except AddressError:
        return None
    return url if url.scheme == "http" else None


def _length(fields: Sequence[str]) -> int | None:
    """Returns the number of bytes that follow the head of a request; None where whoever is behind the proxy could see
    another end of it, and take what follows for a request of its own, which nobody has looked at."""
    lengths: list[str] = []
    for field in fields:
        name, _, value = field.partition(":")
        if not _FIELD.fullmatch(field) or name.lower() == "transfer-encoding":
            return None
        if name.lower() == "content-length":
            lengths.append(value.strip())
    if not lengths:
        return 0
    return int(lengths[0]) if len(lengths) == 1 and re.fullmatch(r"[0-9]{1,15}", lengths[0]) else None


async def _both_ways(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    far_reader: asyncio.StreamReader,
    far_writer: asyncio.StreamWriter,
    length: int | None,
) -> None:
    """Carries bytes until both ends have said all, of the first no more than ``length``."""
    there = asyncio.ensure_future(_carry(reader, far_writer, length))
    try:
        await _carry(far_reader, writer)
    finally:
        there.cancel()
        await asyncio.gather(there, return_exceptions=True)


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, length: int | None = None) -> None:
    while length != 0 and (data := await reader.read(_PIECE if length is None else min(length, _PIECE))):
        writer.write(data)
        await writer.drain()
        length = None if length is None else length - len(data)
    if length is not None:
        return
    if writer.can_write_eof():
        writer.write_eof()


async def _say(writer: asyncio.StreamWriter, status: str, text: str) -> None:
    body = f"{text}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()


def proxy_env(port: int) -> dict[str, str]:
    """Variables by which programs take the way out; what they talk to on this machine they reach by themselves."""
    address = f"http://127.0.0.1:{port}"
    here = "localhost,127.0.0.1,::1"
    java = " ".join(f"-D{scheme}.proxyHost=127.0.0.1 -D{scheme}.proxyPort={port}" for scheme in ("http", "https"))
    found = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), address) | {"NO_PROXY": here}
    found |= {name.lower(): value for name, value in found.items()}
    return found | {"NODE_USE_ENV_PROXY": "1", "MAVEN_OPTS": java, "GRADLE_OPTS": java}
