"""The processes outside the sandbox that talk to a remote for a git inside it.

What fetches is a pipe to the other side's ``git-upload-pack`` and nothing more: the git that asks, and everything that
its repository names, stays inside. What pushes is git with a repository of our own, whose configuration we wrote and
whose references were told to us; of the real one it reads objects, which are data. The user's own configuration counts
for who they are there: credential helpers, proxies, certificates, how ssh is called. The environment is a list.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from agent_tui.paths import private_dir
from agent_tui.pipes.programs import find_program, safe_path
from agent_tui.pipes.start import run
from agent_tui.records import dataclass
from agent_tui.tools.git.configuration import as_config
from agent_tui.tools.git.remotes import Address, RemoteReach, Settings, parse_address
from agent_tui.tools.git.repository import OBJECT, listed

_KEPT = re.compile(
    r"HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|TERM|TMPDIR|SSH_AUTH_SOCK|SSH_AGENT_PID|GPG_AGENT_INFO"
    r"|DBUS_SESSION_BUS_ADDRESS|XDG_\w+|DISPLAY|WAYLAND_DISPLAY|KRB5CCNAME|KRB5_CONFIG|SSL_CERT_FILE|SSL_CERT_DIR"
    r"|CURL_CA_BUNDLE|(?:https?|all|no)_proxy|(?:HTTPS?|ALL|NO)_PROXY|GH_\w+|GITHUB_TOKEN|GITLAB_TOKEN|GITLAB_HOST|GCM_\w+"
    r"|GIT_SSH(?:_COMMAND|_VARIANT)?|GIT_SSL_\w+|GIT_PROXY_\w+|GIT_HTTP_\w+|GIT_CONFIG_(?:GLOBAL|SYSTEM|NOSYSTEM)"
)
_NOT_HERE = re.compile(r"core\.(?:hookspath|fsmonitor|worktree|bare|pager)|(?:alias|include|includeif|push)\..*")
_PASSWORD = re.compile(r"https?://[^/]*@|[a-z+]*://[^/]*:[^/]*@", re.IGNORECASE)
_VERSION = re.compile(r"version=[012]")
_OPEN_SSH = ("ssh",)
_REFERENCE = re.compile(r"refs/(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)|/\.|[\x00-\x20\x7f~^:?*\[\\]))[^/].*[^/.]")


@dataclass(slots=True, frozen=True)
class Outside:
    """One process. ``environment`` is all it gets."""

    command: list[str]
    environment: dict[str, str]


@dataclass(slots=True, frozen=True)
class RepositoryState:
    """The description a repository gives of itself: where HEAD is, its references, the commits at which a shallow one
    ends."""

    head: str
    references: Mapping[str, str]
    shallow: Sequence[str] = ()
    sha256: bool = False

    def sound(self) -> bool:
        """Returns whether a repository can say this of itself: every line of it is written into one of ours."""
        head = self.head.removeprefix("ref: ")
        return (
            (_REFERENCE.fullmatch(head) if head != self.head else OBJECT.fullmatch(head)) is not None
            and all(_REFERENCE.fullmatch(name) and OBJECT.fullmatch(at) for name, at in self.references.items())
            and all(OBJECT.fullmatch(commit) for commit in self.shallow)
        )


class OutsideGit:
    """Git on a private folder: ``private`` is made to be its repository. Raises OSError where
    the folder cannot be made. Not for the UI's loop."""

    def __init__(self, private: Path, place: Path | None) -> None:
        self._private = private_dir(private)
        self._env = _environment()
        self._program = find_program("git")
        user = _user_settings(self._program, self._env, place)
        self._user = [(key, value) for key, value in user if not _NOT_HERE.fullmatch(key)]
        self._pushes = [(key, value) for key, value in user if key in ("push.default", "push.followtags")]
        (self._private / "global").write_text(as_config(self._user), "utf-8", "surrogateescape")
        self._env |= {
            "GIT_DIR": str(self._private / "repository"),
            "GIT_CONFIG_GLOBAL": str(self._private / "global"),
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "",
            "SSH_ASKPASS_REQUIRE": "never",
            "GCM_INTERACTIVE": "never",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_PAGER": "cat",
            "GIT_EDITOR": "true",
        }

    @property
    def instead(self) -> list[tuple[str, str]]:
        """The addresses in whose place the user has git reach something else: (form, beginning), without passwords."""
        found = [
            (key[4:-10], value) for key, value in self._user if key.startswith("url.") and key.endswith(".insteadof")
        ]
        return [(form, start) for form, start in found if not _PASSWORD.match(form)]

    def takes(self, address: Address, protocol: str, gate: Sequence[str]) -> Outside:
        """A pipe to what hands out objects there; ``gate`` is what stands before git's helper for the web."""
        self._furnish(RepositoryState("ref: refs/heads/none", {}), ())
        env = self._env | {"GIT_ALLOW_PROTOCOL": _protocols([address])}
        git, version = self._program or "git", {"GIT_PROTOCOL": protocol} if _VERSION.fullmatch(protocol) else {}
        if address.kind == "local":
            return Outside([git, "upload-pack", "--", address.path], _without_repository(env) | version)
        if address.kind == "web":
            return Outside([*gate, git, address.text], env)
        ssh = self._ssh()
        words = f"git-upload-pack {shlex.quote(address.path)}"
        port = [] if not address.port else ["-P" if "plink" in ssh else "-p", address.port]
        options = ["-o", "SendEnv=GIT_PROTOCOL"] if _is_open_ssh(ssh) else []
        command = ["/bin/sh", "-c", f'{ssh} "$@"', "ssh", *options, *port, address.host, words]
        return Outside(command, _without_repository(env) | version)

    def resolved(self, address: Address) -> Address | None:
        """Returns the address that the user's configuration has git go to in place of this one."""
        done = self._run("ls-remote", "--get-url", address.path if address.kind == "local" else address.text)
        return parse_address(done.decode("utf-8", "surrogateescape").rstrip("\n"), self._private) if done else None

    def pushes(self, reach: RemoteReach, told: RepositoryState) -> Outside:
        """The git that pushes as ``reach`` says. Raises ValueError for a repository that says what none can."""
        if reach.push is None or reach.objects is None or not told.sound():
            raise ValueError("this is not what a repository says of itself")
        self._furnish(told, (*self._pushes, *reach.settings))
        env = self._env | {
            "GIT_ALLOW_PROTOCOL": _protocols(reach.addresses),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": _listed(reach.objects),
            "GIT_SSH_COMMAND": self._ssh(),
        }
        words = ["push", "--no-recurse-submodules", "--no-signed", "--no-verify", *reach.push]
        return Outside([self._program or "git", "--no-pager", *words], env)

    def references(self) -> dict[str, str]:
        """The references of the private repository, as they are after a push."""
        done = self._run("for-each-ref", "--format=%(objectname) %(refname)", "refs/remotes/") or b""
        pairs = (line.partition(" ") for line in done.decode("utf-8", "surrogateescape").splitlines())
        return {name: at for at, _, name in pairs}

    def settings(self) -> Settings:
        """The settings of the private repository, to which a push may have added."""
        file = str(self._private / "repository/config")
        return tuple(listed([self._program or "git", "config", "--file", file], self._env, self._private) or ())

    def _run(self, *words: str) -> bytes | None:
        done = run([self._program or "git", *words], self._env, cwd=self._private, capture_output=True, timeout=30)
        return done.stdout if done.returncode == 0 else None

    def _furnish(self, told: RepositoryState, settings: Iterable[tuple[str, str]]) -> None:
        """Makes the private repository one with these references and settings, and with nothing to start."""
        repository = private_dir(self._private / "repository")
        for name in ("objects/pack", "refs/heads", "hooks"):
            (repository / name).mkdir(parents=True, exist_ok=True)
        values = [("core.repositoryformatversion", "1" if told.sha256 else "0"), ("core.bare", "true")]
        values += [("extensions.objectformat", "sha256")] if told.sha256 else []
        values += [pair for pair in settings if not pair[0].startswith("extensions.")]
        values += [("core.hookspath", str(repository / "hooks")), ("core.fsmonitor", "false"), ("gc.auto", "0")]
        values += [("push.gpgsign", "false"), ("push.recursesubmodules", "no"), ("core.logallrefupdates", "false")]
        (repository / "config").write_text(as_config(values), "utf-8", "surrogateescape")
        (repository / "HEAD").write_text(told.head + "\n", "utf-8", "surrogateescape")
        packed = "".join(f"{at} {name}\n" for name, at in sorted(told.references.items()))
        (repository / "packed-refs").write_text(packed, "utf-8", "surrogateescape")
        if told.shallow:
            (repository / "shallow").write_text("".join(f"{commit}\n" for commit in told.shallow))

    def _ssh(self) -> str:
        """Returns the command by which the user has ssh called, made never to ask anything."""
        values = dict(self._user)
        command = self._env.get("GIT_SSH_COMMAND") or values.get("core.sshcommand")
        if not command:
            command = shlex.quote(self._env.get("GIT_SSH", "ssh"))
        return f"{command} -o BatchMode=yes -o EscapeChar=none" if _is_open_ssh(command) else command


def _is_open_ssh(command: str) -> bool:
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    return bool(words) and Path(words[0]).name in _OPEN_SSH


def _protocols(addresses: Iterable[Address]) -> str:
    """``http`` only where an address says so."""
    plain = any(address.kind == "web" and address.text.lower().startswith("http:") for address in addresses)
    return "https:ssh:file" + (":http" if plain else "")


def _without_repository(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name != "GIT_DIR"}


def _listed(path: Path) -> str:
    """A path as one entry of a list of them."""
    text = str(path)
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if ":" in text or text.startswith('"') else text


def _environment() -> dict[str, str]:
    """The user's own, without what could lead to a program or a library of the project."""
    env = {name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)}
    return env | {"PATH": safe_path(), "LC_ALL": env.get("LC_ALL", "C.UTF-8")}


def _user_settings(program: str | None, env: Mapping[str, str], place: Path | None) -> list[tuple[str, str]]:
    """The user's own configuration, with what it includes for a repository at ``place``. Reading it starts nothing."""
    asked = [program or "git", "config", "--global", "--includes"]
    found = listed(asked, {**env, "GIT_DIR": str(place)}) if place is not None else None
    return (listed(asked, env) if found is None else found) or []
