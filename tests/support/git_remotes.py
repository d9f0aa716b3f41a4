"""Remotes of every kind on this machine: over the web with a password, over ssh, and on the disk."""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import subprocess
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from agent_tui.config import SandboxConfig
from agent_tui.tools.base import ToolContext, ToolOutcome
from agent_tui.tools.builtin.bash import BashTool
from agent_tui.tools.sandbox.jail import Jail
from tests.support.git import git
from tests.support.sandbox_world import held_by
from tests.support.tool_context import make_context

PASSWORD = "correct-horse-7"


@contextlib.contextmanager
def web_server(folder: Path, old: bool = False) -> Iterator[str]:
    """The address at which the repositories below ``folder`` are served by git itself, to who knows the password.
    ``old``: it takes no notice of the protocol that is asked for."""
    exec_path = subprocess.run(["git", "--exec-path"], capture_output=True, text=True, check=True).stdout.strip()
    expected = "Basic " + base64.b64encode(f"user:{PASSWORD}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            if self.headers.get("Authorization") != expected:
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="git"')
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            path, _, query = self.path.partition("?")
            body = self._chunks() if self.headers.get("Transfer-Encoding") == "chunked" else b""
            body = body or self.rfile.read(int(self.headers.get("Content-Length") or 0))
            env = {
                "PATH": os.defpath,
                "GIT_PROJECT_ROOT": str(folder),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_CONFIG_NOSYSTEM": "1",
                "HOME": str(folder),
                "REMOTE_USER": "user",
                "REQUEST_METHOD": self.command,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": "" if old else self.headers.get("Git-Protocol", ""),
            }
            done = subprocess.run(
                [f"{exec_path}/git-http-backend"], input=body, env=env, capture_output=True, check=False
            )
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
            self.send_response(int(fields.pop("Status", "200").split()[0]))
            for name, value in fields.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _chunks(self) -> bytes:
            found = b""
            while size := int(self.rfile.readline(), 16):
                found += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return found

        do_GET = do_POST = _serve

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def fake_ssh(folder: Path, log: Path) -> None:
    """A program ``ssh`` that notes how it is called and runs the other side's command here."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "ssh"
    program.write_text(f'#!/bin/sh\necho "$*" >> \'{log}\'\nfor last; do :; done\nexec sh -c "$last"\n')
    program.chmod(0o755)


@dataclass(slots=True)
class World:
    """``project`` is a clone of ``remote``; ``plain`` a copy of it that plain git works on. ``addresses`` are ways to
    the remote: the web with a password, ssh, and its folder, which is not there inside."""

    base: Path
    jail: Jail
    project: Path
    plain: Path
    remote: Path
    addresses: dict[str, str]

    def context(self) -> ToolContext:
        return replace(make_context(self.project), jail=self.jail, domain="work")

    async def run(self, line: str, *remotes: str, folder: Path | None = None) -> ToolOutcome:
        """Runs a line of which ``remotes`` are the commands that were allowed to reach out."""
        known = self.jail.remotes
        reaches = tuple(known.reach(remote.split(), folder or self.project) for remote in remotes)
        return await BashTool().run({"command": line, "timeout": 60}, replace(self.context(), remotes=reaches))

    def more(self, *arguments: str) -> None:
        """Something new on the remote."""
        git(self.base / "other", "pull", "-q")
        for number in arguments:
            (self.base / "other" / number).write_text(number)
            git(self.base / "other", "add", ".")
            git(self.base / "other", "commit", "-qm", f"more {number}")
        git(self.base / "other", "push", "-q", "origin", "HEAD")


@contextlib.contextmanager
def make_world(means: str, monkeypatch: pytest.MonkeyPatch, old: bool = False) -> Iterator[World]:
    """``means`` is what holds commands; skips where it is not there. ``old``: the server knows no new protocol."""
    sandbox = held_by(means)
    base = (Path("/var/tmp") / f"agent-tui-test-{uuid.uuid4().hex[:8]}").resolve()
    base.mkdir()
    try:
        home = base / "home"
        home.mkdir()
        fake_ssh(base / "tools", base / "ssh-calls")
        for name in [name for name in os.environ if name.startswith("GIT_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        monkeypatch.setenv("PATH", f"{base / 'tools'}:{os.environ['PATH']}")
        (home / ".gitconfig").write_text(
            "[user]\n\tname = t\n\temail = t@example.org\n[credential]\n\thelper = store\n"
            "[init]\n\tdefaultBranch = main\n[safe]\n\tdirectory = *\n"
        )
        remote = base / "served" / "remote.git"
        git(base, "init", "-q", "--bare", str(remote))
        git(remote, "config", "http.receivepack", "true")
        git(base, "clone", "-q", str(remote), str(base / "other"))
        (base / "other" / "file").write_text("1")
        git(base / "other", "add", ".")
        git(base / "other", "commit", "-qm", "first")
        git(base / "other", "push", "-q", "origin", "HEAD")
        git(base, "clone", "-q", str(remote), str(base / "project"))
        with web_server(base / "served", old) as server:
            (home / ".git-credentials").write_text(server.replace("//", f"//user:{PASSWORD}@") + "\n")
            addresses = {
                "web": f"{server}/remote.git",
                "ssh": f"ssh://git@host.invalid:2222{remote}",
                "short": f"git@host.invalid:{remote}",
                "folder": str(remote),
            }
            jail = Jail(SandboxConfig(), base / "project", base / "cache")
            jail.sandbox = sandbox
            yield World(base, jail, base / "project", base / "plain", remote, addresses)
            jail.close()
    finally:
        shutil.rmtree(base, ignore_errors=True)
