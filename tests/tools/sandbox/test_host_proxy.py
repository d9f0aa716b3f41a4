"""The way out of the sandbox: real programs, registries on loopback, and hosts that nobody granted."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from agent_tui.config import PermissionsConfig, SandboxConfig
from agent_tui.tools.sandbox.box import Sandbox
from agent_tui.tools.sandbox.jail import Jail
from agent_tui.tools.sandbox.network import HostProxy, users_own
from agent_tui.tools.sandbox.policy import SandboxPolicy
from tests.support.every import every
from tests.support.tool_context import permissions_of

Serve = Callable[[Path], int]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serves a folder on loopback, outside the sandbox; gives the port."""
    servers: list[ThreadingHTTPServer] = []

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    def start(folder: Path) -> int:
        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return int(servers[-1].server_port)

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def jail(sandbox: Sandbox, base: Path, *, allow: tuple[str, ...] = ()) -> Jail:
    (base / "project").mkdir(exist_ok=True)
    made = Jail(SandboxConfig(network="registries"), base / "project", base / "cache", sandbox=sandbox)
    if not made.tells_hosts_apart():
        pytest.skip("commands share no network here")
    rules = PermissionsConfig("auto", allow=list(allow))
    permissions = permissions_of(base / "project", rules, network="registries")
    made.granted = permissions.grants
    return made


def run(made: Jail, *argv: str) -> tuple[int, str]:
    policy: SandboxPolicy = made.policy()
    with made.wrapped(argv, "work", policy.root) as launch:
        done = subprocess.run(
            launch.argv,
            env=launch.env,
            cwd=policy.root,
            pass_fds=launch.pass_fds,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    return done.returncode, done.stdout


def missing(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def wheel(folder: Path, name: str) -> None:
    path = folder / "simple" / name.replace("_", "-") / f"{name}-1.0-py3-none-any.whl"
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as made:
        made.writestr(f"{name}.py", "")
        info = f"{name}-1.0.dist-info"
        made.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        made.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr(f"{info}/RECORD", "")


@pytest.mark.slow
def test_pip_installs_from_the_registry_that_the_user_names(
    tmp_path: Path, sandbox: Sandbox, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing("pip")
    wheel(tmp_path / "index", "granted_thing")
    port = serve(tmp_path / "index")
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_")) or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    # Under Landlock pip ends at a folder of it that is there and cannot be read.
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"http://registry.example.net:{port}/simple/")
    monkeypatch.setattr(socket, "getaddrinfo", _as_here(socket.getaddrinfo))
    made = jail(sandbox, tmp_path)
    try:
        code, said = run(
            made, "pip", "--trusted-host", "registry.example.net", "download", "--no-deps", "granted-thing"
        )
        assert code == 0, said
        assert (tmp_path / "project" / "granted_thing-1.0-py3-none-any.whl").exists()
    finally:
        made.close()


@pytest.mark.slow
def test_npm_installs_from_the_registry_that_the_user_names_and_warns_of_nothing_of_ours(
    tmp_path: Path, sandbox: Sandbox, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing("npm")
    index = tmp_path / "index"
    index.mkdir()
    package = tmp_path / "package.json"
    package.write_text(json.dumps({"name": "granted-thing", "version": "1.0.0"}))
    with tarfile.open(index / "thing.tgz", "w:gz") as archive:
        archive.add(package, "package/package.json")
    port = serve(index)
    registry = f"http://registry.example.net:{port}/"
    listed = {"name": "granted-thing", "version": "1.0.0", "dist": {"tarball": f"{registry}thing.tgz"}}
    document = {"name": "granted-thing", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": listed}}
    (index / "granted-thing").write_text(json.dumps(document))
    for name in [name for name in os.environ if name.lower().startswith("npm_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("npm_config_registry", registry)
    monkeypatch.setattr(socket, "getaddrinfo", _as_here(socket.getaddrinfo))
    made = jail(sandbox, tmp_path)
    (tmp_path / "project" / "package.json").write_text('{"name":"x","version":"1.0.0"}')
    try:
        code, said = run(made, "npm", "install", "--no-audit", "--no-fund", "granted-thing")
        assert code == 0 and "warn" not in said.lower(), said
        assert (tmp_path / "project" / "node_modules" / "granted-thing" / "package.json").exists()
    finally:
        made.close()


def test_cargo_fetches_from_the_registry_that_the_user_names(
    tmp_path: Path, sandbox: Sandbox, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing("cargo")
    index = tmp_path / "index"
    (index / "gr" / "an").mkdir(parents=True)
    crate = tmp_path / "granted-1.0.0"
    (crate / "src").mkdir(parents=True)
    (crate / "Cargo.toml").write_text('[package]\nname = "granted"\nversion = "1.0.0"\nedition = "2021"\n')
    (crate / "src" / "lib.rs").write_text("")
    with tarfile.open(index / "granted.crate", "w:gz") as archive:
        archive.add(crate, "granted-1.0.0")
    import hashlib

    checksum = hashlib.sha256((index / "granted.crate").read_bytes()).hexdigest()
    port = serve(index)
    registry = f"http://registry.example.net:{port}"
    (index / "config.json").write_text(json.dumps({"dl": f"{registry}/{{crate}}.crate"}))
    entry = {"name": "granted", "vers": "1.0.0", "deps": [], "cksum": checksum, "features": {}, "yanked": False}
    (index / "gr" / "an" / "granted").write_text(json.dumps(entry) + "\n")
    for name in [name for name in os.environ if name.lower().endswith("_proxy") or name.startswith("CARGO_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("CARGO_REGISTRIES_MINE_INDEX", f"sparse+{registry}/")
    monkeypatch.setattr(socket, "getaddrinfo", _as_here(socket.getaddrinfo))
    made = jail(sandbox, tmp_path)
    root = tmp_path / "project"
    (root / "src").mkdir()
    (root / "src" / "lib.rs").write_text("")
    (root / "Cargo.toml").write_text(
        '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n'
        '[dependencies]\ngranted = { version = "1", registry = "mine" }\n'
    )
    try:
        code, said = run(made, "cargo", "fetch")
        assert code == 0, said
        assert 'name = "granted"' in (root / "Cargo.lock").read_text()
    finally:
        made.close()


def test_a_host_that_was_not_granted_is_refused_and_named(tmp_path: Path, sandbox: Sandbox) -> None:
    missing("curl")
    made = jail(sandbox, tmp_path)
    try:
        for address in ("https://example.com/", "http://example.com/", "http://169.254.169.254/", "http://10.0.0.1/"):
            code, said = run(made, "curl", "-sS", address)
            assert code != 0 or "is not granted by the user" in said
        assert made.refused_hosts(0.0) == ["example.com", "169.254.169.254", "10.0.0.1"]
    finally:
        made.close()


def test_a_granted_name_that_leads_to_a_private_address_is_not_reached(
    tmp_path: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing("curl")
    monkeypatch.setattr(socket, "getaddrinfo", _as_here(socket.getaddrinfo, "inner.example.com"))
    made = jail(sandbox, tmp_path, allow=("network(inner.example.com)",))
    try:
        _, said = run(made, "curl", "-sS", "http://inner.example.com/")
        assert "leads to a private address" in said
    finally:
        made.close()


def test_only_the_users_own_settings_name_registries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, project = tmp_path / "home", tmp_path / "home" / "project"
    (home / ".config" / "pip").mkdir(parents=True)
    project.mkdir()
    (home / ".config" / "pip" / "pip.conf").write_text("[global]\nindex-url = https://u:p@mine.example.com/simple\n")
    (home / ".npmrc").write_text(
        "# https://old.example.com\nregistry=http://npm.example.com:4873/\nproxy=http://way:1/\n"
    )
    (project / ".npmrc").write_text("registry=https://attacker.example.com/\n")
    monkeypatch.setenv("HOME", str(home))
    environ = {
        "GOPROXY": "https://go.example.com,direct",
        "HTTPS_PROXY": "http://way:2",
        "OTHER": "https://x.example.com",
    }
    found = users_own(environ, [project])
    assert {("mine.example.com", 443), ("npm.example.com", 4873), ("go.example.com", 443)} <= found
    assert not {host for host, _ in found} & {"old.example.com", "attacker.example.com", "way", "x.example.com"}
    # A home that is the project can be written by commands: what lies there says nothing.
    assert ("npm.example.com", 4873) not in users_own({}, [home])


def test_the_proxy_of_the_user_is_behind_it(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """A company's way out stays the only one, with the login that the environment gives for it."""
    heard: list[bytes] = []
    upstream = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        connection, _ = upstream.accept()
        with connection:
            heard.append(connection.recv(4096))
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            heard.append(connection.recv(4096))
            connection.sendall(b"back")

    threading.Thread(target=answer, daemon=True).start()
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("https_proxy", f"http://me:word@127.0.0.1:{upstream.getsockname()[1]}")
    listener = socket.create_server(("127.0.0.1", 0))
    proxy = HostProxy(listener, lambda host, port: host == "pypi.org", lambda host, port: False)
    try:
        with socket.create_connection(("127.0.0.1", proxy.port), 10) as client:
            client.sendall(b"CONNECT pypi.org:443 HTTP/1.1\r\nHost: pypi.org\r\n\r\n")
            assert client.recv(4096).startswith(b"HTTP/1.1 200")
            client.sendall(b"there")
            assert client.recv(4) == b"back"
        assert b"CONNECT pypi.org:443" in heard[0] and b"Basic bWU6d29yZA==" in heard[0] and heard[1] == b"there"
    finally:
        proxy.close()
        upstream.close()


def test_nothing_follows_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another request on the same connection is for whoever the far side takes it: a proxy of the user's, say."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    upstream = socket.create_server(("127.0.0.1", 0))
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{upstream.getsockname()[1]}")
    proxy = HostProxy(socket.create_server(("127.0.0.1", 0)), lambda host, port: host == "granted.example", _nobodys)
    try:
        with socket.create_connection(("127.0.0.1", proxy.port), 10) as client:
            client.sendall(
                b"POST http://Granted.example./a?b HTTP/1.1\r\nConnection: keep-alive\r\nContent-Length: 2\r\n"
            )
            client.sendall(b"\r\nokGET http://other.example/ HTTP/1.1\r\n\r\n")
            far, _ = upstream.accept()
            with far:
                got = b""
                while not got.endswith(b"ok"):
                    got += far.recv(4096)
                far.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                assert client.recv(4096).startswith(b"HTTP/1.1 200")
                far.shutdown(socket.SHUT_WR)
                assert far.recv(4096) == b""
        assert got.startswith(b"POST http://granted.example/a?b HTTP/1.1\r\n") and b"keep-alive" not in got
    finally:
        proxy.close()
        upstream.close()


def _nobodys(host: str, port: int) -> bool:
    return False


@every(
    "said",
    [
        b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"CONNECT :1 HTTP/1.1\r\n\r\n",
        b"\xff\x00 x y\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\n\r\n",
        b"GET http://granted.example/ HTTP/1.1\r\nX: a\n\nGET http://other.example/ HTTP/1.1\n\r\n\r\n",
        b"GET http://granted.example/\tx HTTP/1.1\r\n\r\n",
        b"GET http://other.example\\@granted.example/ HTTP/1.1\r\n\r\n",
        b"GET http://other.example@granted.example/ HTTP/1.1\r\n\r\n",
        b"GET http://granted.example/ HTTP/1.1\r\n folded: x\r\n\r\n",
        b"POST http://granted.example/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n12",
        b"POST http://granted.example/ HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        b"POST http://granted.example/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
)
def test_nonsense_ends_its_connection_and_nothing_else(said: bytes) -> None:
    granted = "granted.example".__eq__
    proxy = HostProxy(
        socket.create_server(("127.0.0.1", 0)), lambda host, port: granted(host), lambda host, port: False
    )
    try:
        for _ in range(2):
            with socket.create_connection(("127.0.0.1", proxy.port), 10) as client:
                client.sendall(said)
                client.shutdown(socket.SHUT_WR)
                assert client.recv(4096)[:12] in (b"", b"HTTP/1.1 400")
    finally:
        proxy.close()


def _as_here(real: Callable[..., object], *names: str) -> Callable[..., object]:
    """Names of this test that lead to this machine, whatever the system's resolver makes of them."""

    def look_up(host: object, *more: object, **options: object) -> object:
        here = host in (names or ("registry.example.net",))
        return real("127.0.0.1" if here else host, *more, **options)

    return look_up
