"""Repositories whose configuration, hooks, attributes or layout try to have a program started by whoever looks."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.git import git


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
