"""Remotes of every kind on this machine: over the web with a password, over ssh, and on the disk."""

from __future__ import annotations

import base64
import contextlib
import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PASSWORD = "correct-horse-7"


@contextlib.contextmanager
def web_server(folder: Path) -> Iterator[str]:
    """The address at which the repositories below ``folder`` are served by git itself, to who knows the password."""
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
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
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
