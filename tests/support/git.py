"""Git as a test uses it, remotes of every kind on this machine, and repositories that try to have something run."""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import subprocess
import threading
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from agent_tui.config import SandboxConfig
from agent_tui.tools.base import ToolContext, ToolOutcome
from agent_tui.tools.builtin.bash import BashTool
from agent_tui.tools.sandbox.jail import Jail
from tests.support.forms import LONG
from tests.support.sandbox_world import held_by
from tests.support.starting import use_programs_in
from tests.support.tool_context import make_context

IDENTITY = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]


def git(root: Path, *arguments: str) -> str:
    """What the command prints, without the last line break. Raises CalledProcessError."""
    command = ["git", "-C", str(root), *IDENTITY, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.rstrip("\n")


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
    home = base / "home"
    home.mkdir(parents=True)
    try:
        fake_ssh(base / "tools", base / "ssh-calls")
        for name in [name for name in os.environ if name.startswith("GIT_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        use_programs_in(monkeypatch, base / "tools")
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
            jail = Jail(SandboxConfig(), base / "project", base / "cache", sandbox=sandbox)
            yield World(base, jail, base / "project", base / "plain", remote, addresses)
            jail.close()
    finally:
        shutil.rmtree(base, ignore_errors=True)


@dataclass(slots=True, frozen=True)
class Hostile:
    """``config``, ``files`` (in the work tree) and ``inner`` (in ``.git``) may name ``{evil}``, a program that leaves
    a mark. ``fires`` is a git command of a user's that would start it: the proof that the trap is one."""

    name: str
    config: Sequence[tuple[str, str]] = ()
    files: Sequence[tuple[str, str]] = ()
    inner: Sequence[tuple[str, str]] = ()
    fires: Sequence[str] = ()


def _hook(name: str, *fires: str) -> Hostile:
    return Hostile(f"hook {name}", inner=[(f"hooks/{name}", "#!/bin/sh\n{evil}\n")], fires=fires)


_HOOKS = [
    _hook("post-index-change", "update-index", "--refresh", "-q"),
    _hook("reference-transaction", "update-ref", "refs/heads/x", "HEAD"),
    _hook("pre-commit", "commit", "-am", "x"),
    _hook("prepare-commit-msg", "commit", "-am", "x"),
    _hook("commit-msg", "commit", "-am", "x"),
    _hook("post-commit", "commit", "-am", "x"),
    _hook("post-checkout", "checkout", "-q", "-b", "x"),
    *[
        _hook(name)
        for name in (
            *("applypatch-msg", "pre-applypatch", "post-applypatch", "pre-merge-commit", "post-merge", "pre-rebase"),
            *("post-rewrite", "pre-push", "pre-receive", "update", "proc-receive", "post-receive", "post-update"),
            *("push-to-checkout", "pre-auto-gc", "sendemail-validate", "fsmonitor-watchman", "p4-changelist"),
        )
    ],
]

_ATTRIBUTES = [(".gitattributes", "* filter=x diff=x merge=x\n")]

HOSTILE = [
    *_HOOKS,
    Hostile("filter.clean", [("filter.x.clean", "{evil}")], _ATTRIBUTES, fires=("status",)),
    Hostile("filter.clean required", [("filter.x.clean", "{evil}"), ("filter.x.required", "true")], _ATTRIBUTES,
            fires=("status",)),
    Hostile("filter.smudge", [("filter.x.smudge", "{evil}")], _ATTRIBUTES, fires=("checkout", "-f", "HEAD", "--", "a")),
    Hostile("filter.process", [("filter.x.process", "{evil}")], _ATTRIBUTES, fires=("status",)),
    Hostile("filter in info/attributes", [("filter.x.clean", "{evil}")], inner=[("info/attributes", "* filter=x\n")],
            fires=("status",)),
    Hostile("core.attributesFile", [("filter.x.clean", "{evil}"), ("core.attributesFile", "more")],
            [("more", "* filter=x\n")], fires=("status",)),
    Hostile("fsmonitor", [("core.fsmonitor", "{evil}")], fires=("status",)),
    Hostile("fsmonitor version 1", [("core.fsmonitor", "{evil}"), ("core.fsmonitorHookVersion", "1")],
            fires=("status",)),
    Hostile("fsmonitor in a worktree configuration", [("extensions.worktreeConfig", "true")],
            inner=[("config.worktree", "[core]\n\tfsmonitor = {evil}\n")], fires=("status",)),
    Hostile("fsmonitor and untracked cache", [("core.fsmonitor", "{evil}"), ("core.untrackedCache", "true")],
            fires=("ls-files", "--others")),
    Hostile("hooksPath", [("core.hooksPath", "hooks")], [("hooks/post-index-change", "#!/bin/sh\n{evil}\n")],
            fires=("update-index", "--refresh", "-q")),
    Hostile("diff.external", [("diff.external", "{evil}")], fires=("diff",)),
    Hostile("diff driver", [("diff.x.command", "{evil}")], _ATTRIBUTES, fires=("diff",)),
    Hostile("textconv", [("diff.x.textconv", "{evil}")], _ATTRIBUTES, fires=("diff",)),
    Hostile("textconv cached", [("diff.x.textconv", "{evil}"), ("diff.x.cachetextconv", "true")], _ATTRIBUTES,
            fires=("log", "-p")),
    Hostile("merge driver", [("merge.x.driver", "{evil}")], _ATTRIBUTES),
    Hostile("include", [("include.path", "../more")], [("more", "[core]\n\tfsmonitor = {evil}\n")], fires=("status",)),
    Hostile("includeIf onbranch", [("includeIf.onbranch:**.path", "../more")],
            [("more", "[core]\n\tfsmonitor = {evil}\n")], fires=("status",)),
    Hostile("includeIf gitdir", [("includeIf.gitdir:/**.path", "../more")],
            [("more", "[core]\n\tfsmonitor = {evil}\n")], fires=("status",)),
    Hostile("includeIf hasconfig", [("includeIf.hasconfig:remote.*.url:**.path", "../more"),
                                    ("remote.o.url", "file:///x")], [("more", "[core]\n\tfsmonitor = {evil}\n")],
            fires=("status",)),
    Hostile("alias status", [("alias.st", "!{evil}")], fires=("st",)),
    Hostile("aliases of what we call", [("alias.ls-files", "!{evil}"), ("alias.status", "!{evil}"),
                                       ("alias.log", "!{evil}")]),
    Hostile("pager", [("core.pager", "{evil}")]),
    Hostile("pager of a command", [("pager.status", "{evil}"), ("pager.log", "{evil}"), ("pager.ls-files", "{evil}")]),
    Hostile("editor", [("core.editor", "{evil}")], fires=("commit", "-a")),
    Hostile("sequence.editor", [("sequence.editor", "{evil}")]),
    Hostile("sshCommand", [("core.sshCommand", "{evil}"), ("remote.o.url", "ssh://x/y")], fires=("fetch", "o")),
    Hostile("ssh.variant", [("core.sshCommand", "{evil}"), ("ssh.variant", "simple"), ("remote.o.url", "x:y")],
            fires=("ls-remote", "o")),
    Hostile("gitProxy", [("core.gitProxy", "{evil}"), ("remote.o.url", "git://x.invalid/y")], fires=("fetch", "o")),
    Hostile("askPass", [("core.askPass", "{evil}")]),
    Hostile("gpg.program", [("gpg.program", "{evil}"), ("commit.gpgSign", "true"), ("log.showSignature", "true")],
            fires=("commit", "-am", "x", "-S")),
    Hostile("gpg.ssh.program", [("gpg.format", "ssh"), ("gpg.ssh.program", "{evil}"), ("user.signingKey", "a")],
            fires=("commit", "-am", "x", "-S")),
    Hostile("gpg.ssh.defaultKeyCommand", [("gpg.format", "ssh"), ("gpg.ssh.defaultKeyCommand", "{evil}")],
            fires=("commit", "-am", "x", "-S")),
    Hostile("gpg.x509.program", [("gpg.format", "x509"), ("gpg.x509.program", "{evil}"), ("log.showSignature", "true")],
            fires=("commit", "-am", "x", "-S")),
    Hostile("credential.helper", [("credential.helper", "!{evil}")]),
    Hostile("credential.helper of one host", [("credential.https://x.invalid.helper", "!{evil}")]),
    Hostile("remote helper", [("remote.o.url", "ext::{evil}"), ("protocol.ext.allow", "always")], fires=("fetch", "o")),
    Hostile("remote.vcs", [("remote.o.vcs", "evil"), ("remote.o.url", "x")]),
    Hostile("uploadpack", [("remote.o.url", "."), ("remote.o.uploadpack", "{evil}")], fires=("fetch", "o")),
    Hostile("receivepack", [("remote.o.url", "."), ("remote.o.receivepack", "{evil}")], fires=("push", "o", "HEAD")),
    Hostile("packObjectsHook", [("uploadpack.packObjectsHook", "{evil}")]),
    Hostile("url insteadOf", [("remote.o.url", "x:y"), ("url.ext::{evil} .insteadOf", "x:"),
                              ("protocol.ext.allow", "always")], fires=("fetch", "o")),
    Hostile("promisor with missing objects", [("extensions.partialClone", "o"), ("remote.o.promisor", "true"),
                                              ("remote.o.url", "ext::{evil}"), ("protocol.ext.allow", "always")],
            inner=[("HEAD", "1234567890123456789012345678901234567890\n")], fires=("log", "-1")),
    Hostile("promisor whose commit is missing", [("core.repositoryFormatVersion", "1"),
                                                 ("extensions.partialClone", "o"), ("remote.o.promisor", "true"),
                                                 ("remote.o.partialCloneFilter", "blob:none"),
                                                 ("remote.o.url", "."), ("remote.o.uploadpack", "{evil}")],
            inner=[("refs/heads/main", "1234567890123456789012345678901234567890\n")], fires=("log", "-1")),
    Hostile("alternateRefsCommand", [("core.alternateRefsCommand", "{evil}")],
            inner=[("objects/info/alternates", "/tmp\n")]),
    Hostile("submodule update", [("submodule.s.update", "!{evil}"), ("submodule.s.url", ".")],
            [(".gitmodules", '[submodule "s"]\n\tpath = s\n\turl = .\n\tupdate = !{evil}\n')]),
    Hostile("submodule.recurse", [("submodule.recurse", "true"), ("status.submoduleSummary", "true")]),
    Hostile("trailer command", [("trailer.x.command", "{evil}"), ("trailer.x.cmd", "{evil}")]),
    Hostile("man viewer", [("man.x.cmd", "{evil}"), ("man.viewer", "x"), ("help.format", "man")]),
    Hostile("web browser", [("browser.x.cmd", "{evil}"), ("web.browser", "x"), ("help.browser", "x")]),
    Hostile("tools", [("difftool.x.cmd", "{evil}"), ("mergetool.x.cmd", "{evil}"), ("diff.tool", "x"),
                      ("merge.tool", "x")], fires=("difftool", "-y")),
    Hostile("interactive filter", [("interactive.diffFilter", "{evil}")]),
    Hostile("sendemail", [("sendemail.smtpServer", "{evil}"), ("sendemail.toCmd", "{evil}")]),
    Hostile("autocorrect to an alias", [("help.autocorrect", "immediate"), ("alias.statuss", "!{evil}")],
            fires=("statuss",)),
    Hostile("core.worktree", [("core.worktree", ".."), ("core.fsmonitor", "{evil}")], fires=("status",)),
    Hostile("bare with a worktree", [("core.bare", "false"), ("core.fsmonitor", "{evil}"),
                                     ("core.splitIndex", "true")], fires=("status",)),
    Hostile("unknown extension", [("core.repositoryFormatVersion", "1"), ("extensions.evil", "{evil}")]),
    Hostile("sparse index", [("core.sparseCheckout", "true"), ("index.sparse", "true"), ("core.fsmonitor", "{evil}")],
            inner=[("info/sparse-checkout", "/*\n")], fires=("status",)),
    Hostile("maintenance", [("gc.auto", "1"), ("maintenance.auto", "true"), ("gc.recentObjectsHook", "{evil}"),
                            ("gc.autoDetach", "false")]),
    Hostile("trace to a program", [("trace2.eventTarget", "af_unix:/tmp/none"), ("core.fsmonitor", "{evil}")],
            fires=("status",)),
    Hostile("environment files", files=[(".envrc", "export GIT_EXTERNAL_DIFF={evil}\n{evil}\n"), (".env", "x={evil}"),
                                        ("git", "#!/bin/sh\n{evil}\n")]),
    Hostile("configuration in the shape of a value", [("core.filemode", "true\n[core]\n\tfsmonitor={evil}")]),
    Hostile("configuration in one line", inner=[("config", "[core] repositoryformatversion = 0\n[core] fsmonitor = "
                                                           "{evil}\n[filter \"x\"] clean = {evil}\n")],
            files=_ATTRIBUTES, fires=("status",)),
    Hostile("configuration over lines", inner=[("config", "[core]\n\tfilemode = tr\\\nue\n\tfsmoni\\\ntor = {evil}\n")
                                               ]),
    Hostile("commondir", inner=[("commondir", "../evil-git\n")],
            files=[("evil-git/config", "[core]\n\tfsmonitor = {evil}\n"), ("evil-git/HEAD", "ref: refs/heads/main\n"),
                   ("evil-git/objects/x", ""), ("evil-git/refs/x", "")]),
    Hostile("diff.wsErrorHighlight and colour", [("color.ui", "always"), ("color.pager", "true"),
                                                 ("core.pager", "{evil}"), ("diff.external", "{evil}")],
            fires=("diff",)),
    Hostile("bundle and refs", [("fetch.bundleURI", "ext::{evil}"), ("protocol.allow", "always")]),
    Hostile("instaweb", [("instaweb.httpd", "{evil}"), ("instaweb.browser", "{evil}")]),
]  # fmt: skip


def together() -> list[list[Hostile]]:
    """Each trap by itself in the long form; else those together that do not stand in each other's way."""
    if LONG:
        return [[trap] for trap in HOSTILE]
    whole = [
        trap
        for trap in HOSTILE
        if not any(name in ("config", "HEAD", "commondir") or "refs" in name for name, _ in trap.inner)
        and not any(key.startswith(("extensions", "core.worktree")) for key, _ in trap.config)
    ]
    # ``core.hooksPath`` would have git look for hooks elsewhere.
    hooks = [trap for trap in whole if trap.name.startswith("hook ")]
    rest = [trap for trap in whole if trap not in hooks]
    return [hooks, rest, *([trap] for trap in HOSTILE if trap not in whole)]


def ids_of(traps: Sequence[Hostile]) -> str:
    """How a test of these is called."""
    return traps[0].name if len(traps) == 1 else f"{len(traps)} traps"


def evil_program(base: Path) -> tuple[Path, Path]:
    """A program that leaves a mark and passes on what it is given, and the mark."""
    mark, program = base / "mark", base / "evil.sh"
    program.write_text(f"#!/bin/sh\ntouch '{mark}'\nexec timeout 0.3 cat\n")
    program.chmod(0o755)
    return program, mark


def ordinary(base: Path) -> Path:
    """A repository with two commits, a changed file and a new one."""
    root = base / "template"
    root.mkdir()
    commands: list[list[str]] = [["init", "-q", "-b", "main"]]
    (root / "a").write_text("a\n")
    (root / "b").write_text("b\n")
    commands += [["add", "."], ["commit", "-q", "-m", "start"], ["commit", "-q", "--allow-empty", "-m", "second"]]
    for arguments in commands:
        git(root, *arguments)
    (root / "a").write_text("changed\n")
    (root / "new").write_text("")
    return root


def make_hostile(template: Path, root: Path, hostile: Sequence[Hostile], evil: Path) -> Path:
    """A copy of ``template`` with the traps of ``hostile`` in it."""
    shutil.copytree(template, root, symlinks=True)
    for trap in hostile:
        for place, files in ((root, trap.files), (root / ".git", trap.inner)):
            for name, text in files:
                path = place / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text.replace("{evil}", str(evil)))
                if text.startswith("#!"):
                    path.chmod(0o755)
        for key, value in trap.config:
            file = str(root / ".git/config")
            command = ["git", "config", "--file", file, "--add", key.replace("{evil}", str(evil))]
            subprocess.run([*command, value.replace("{evil}", str(evil))], check=True, capture_output=True)
    return root
