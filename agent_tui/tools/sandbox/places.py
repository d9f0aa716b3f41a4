"""The places a command may see: an allow-list of system and tools, the rest of the home is not there.

The lists are what common distributions and version managers use; what is missing on a machine is passed over.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path, PurePath

from agent_tui.paths import read_regular
from agent_tui.text.secrets import tells_secret
from agent_tui.tools.git.repository import is_git
from agent_tui.tools.sandbox.policy import SandboxPolicy
from agent_tui.tools.sandbox.protected import is_protected, led_to, root_places

SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/snap", "/gnu"),
    *("/var/lib/dpkg", "/var/lib/rpm", "/var/lib/pacman", "/var/lib/alternatives", "/var/cache/man"),
    *("/run/current-system", "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager/resolv.conf"),
    *("/home/linuxbrew/.linuxbrew", "/System", "/Library", "/private/etc", "/private/var/db/timezone"),
)
"""Programs, libraries and configuration of the machine."""

SYSTEM_SECRETS = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssh"),
    *("/etc/ssl/private", "/etc/pki/tls/private", "/etc/krb5.keytab", "/etc/security/opasswd", "/etc/wireguard"),
    *("/etc/NetworkManager/system-connections", "/etc/openvpn", "/etc/ipsec.secrets", "/etc/docker/key.json"),
    *("/etc/kubernetes", "/etc/rancher", "/etc/letsencrypt", "/etc/fstab", "/etc/exports", "/etc/ppp", "/etc/netplan"),
    *("/etc/wpa_supplicant", "/etc/mysql/debian.cnf", "/etc/machine-id", "/etc/credstore", "/etc/credstore.encrypted"),
)
"""Files among them that hold keys, readable where the program runs as root."""

_PREFIX = "bin lib lib64 libexec include share sbin ssl etc jre sysroot pyvenv.cfg"
_ENVIRONMENTS = " ".join(f"envs/*/{part}" for part in _PREFIX.split())
_ENV_MANAGER = "bin completions libexec plugins shims version versions"

TOOLCHAINS: Mapping[str, str] = {
    ".pyenv": f"{_ENV_MANAGER} pyenv.d",
    **dict.fromkeys((".rbenv", ".goenv", ".nodenv", ".jenv", ".phpenv"), _ENV_MANAGER),
    ".nvm": "versions alias nvm.sh nvm-exec bash_completion",
    **dict.fromkeys((".fnm", ".local/share/fnm"), "node-versions aliases"),
    ".volta": "bin tools",
    ".n": f"n {_PREFIX}",
    **dict.fromkeys((".rustup", ".local/share/rustup"), "toolchains settings.toml"),
    ".cargo": "bin registry/index registry/cache registry/src git/db git/checkouts env",
    ".asdf": "bin lib libexec plugins shims installs completions asdf.sh",
    ".sdkman": "bin candidates src",
    ".bun": "bin install/global install/cache",
    ".deno": "bin",
    ".rvm": "rubies gems bin scripts wrappers environments",
    ".gem": "ruby",
    ".ghcup": "bin ghc hls env",
    ".stack": "programs snapshots pantry",
    ".cabal": "bin lib share packages store",
    ".opam": "opam-init repo " + " ".join(f"*/{part}" for part in ("bin", "lib", "share", "sbin", "man")),
    ".elan": "bin toolchains settings.toml",
    ".juliaup": "bin julia-*",
    ".julia": "juliaup packages artifacts registries compiled environments",
    ".dotnet": "dotnet sdk shared host packs templates tools sdk-manifests",
    ".local": "bin lib/python* lib/node_modules share/man state/nix/profiles",
    ".local/pipx": "venvs shared",
    ".local/share/pipx": "venvs shared py",
    ".local/share/pnpm": "bin global nodejs store .tools pnpm pnpx",
    ".local/share/uv": "python tools",
    **dict.fromkeys((".local/share/mise", ".local/share/rtx"), "installs shims plugins"),
    ".local/share/nvm": "v*",
    **dict.fromkeys((".virtualenvs", ".local/share/virtualenvs"), " ".join(f"*/{part}" for part in _PREFIX.split())),
    ".local/share/pypoetry": "venv python",
    **dict.fromkeys((".local/share/mamba", "micromamba"), f"bin pkgs {_ENVIRONMENTS}"),
    **dict.fromkeys(
        ("miniconda3", "anaconda3", "miniforge3", "mambaforge"),
        f"{_PREFIX} condabin shell pkgs conda-meta/history {_ENVIRONMENTS}",
    ),
    ".conda": f"pkgs {_ENVIRONMENTS}",
    "go": "bin pkg/mod pkg/sumdb",
    ".go": "bin pkg src lib VERSION go.env",
    "sdk": " ".join(f"go*/{part}" for part in ("bin", "pkg", "src", "lib", "VERSION", "go.env")),
    ".nix-profile": _PREFIX,
    ".linuxbrew": f"{_PREFIX} opt Cellar",
    ".yarn": "bin berry releases",
    **dict.fromkeys((".npm-global", ".npm-packages"), _PREFIX),
    ".pnpm-store": "v*",
    ".m2": "repository wrapper",
    ".gradle": "wrapper/dists jdks native caches/modules-2 caches/jars-*",
    ".ivy2": "cache local",
    ".sbt": "boot launchers",
    ".mix": "archives elixir escripts",
    ".hex": "packages",
    ".pixi": f"bin {_ENVIRONMENTS}",
    **dict.fromkeys((".swiftly", ".local/share/swiftly"), "bin toolchains"),
    ".krew": "bin store",
    ".poetry": "bin lib venv",
    ".rye": "py shims tools self uv",
    **dict.fromkeys((".hatch", ".local/share/hatch"), "env pythons"),
    ".moon": "bin tools",
    ".proto": "bin shims tools plugins",
    ".fvm": "versions",
    "flutter": "bin packages version",
    ".pub-cache": "hosted git bin global_packages",
}
"""Interpreters, compilers and package stores below the home: of each folder the parts that make it run. Beside them lie
its configuration and what lets people in."""

CONFIGURATIONS = (".cargo/config.toml", ".cargo/config")
"""What tools need of their configuration, where nothing in it looks secret."""

SECRETS = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".config", ".kube", ".docker", ".oci", ".password-store", ".pki", ".mozilla"),
    *(".thunderbird", ".netrc", "_netrc", ".authinfo", ".authinfo.gpg", ".pgpass", ".my.cnf", ".mylogin.cnf"),
    *(".git-credentials", ".gitconfig", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", ".gem/credentials"),
    *(".cargo/credentials", ".cargo/credentials.toml", ".m2/settings.xml", ".m2/settings-security.xml"),
    *(".gradle/gradle.properties", ".terraform.d", ".terraformrc", ".vault-token", ".boto", ".s3cfg", ".rclone.conf"),
    *(".local/share/keyrings", ".local/share/kwalletd", ".local/share/agent-tui", ".local/state", ".cache"),
    *(".bash_history", ".zsh_history", ".zhistory", ".histfile", ".python_history", ".node_repl_history"),
    *(".psql_history", ".mysql_history", ".sqlite_history", ".rediscli_history", ".lesshst", ".viminfo", ".wget-hsts"),
    *(".local/share/fish", ".claude", ".claude.json", ".codex", ".gemini", ".opencode", ".cursor", ".continue"),
    *(".aider.conf.yml", ".sbt/credentials", ".ivy2/.credentials", ".nuget", ".composer/auth.json", ".bundle/config"),
    *(".Xauthority", ".ICEauthority", ".dbus", ".gnome", ".electrum", ".bitcoin", ".ethereum", ".huggingface"),
    *("Library/Keychains", "Library/Application Support", "Library/Cookies", ".snowsql", ".databrickscfg", ".fly"),
    *(".pulumi", ".heroku", ".netlify", ".vercel", ".wrangler", ".config.json", ".minikube", ".bash_profile.local"),
)
"""Where people and programs keep keys and histories below the home: never readable, also where the home itself or a
part of it is the project. Elsewhere they are not there in the first place."""

_OWN_STORE = frozenset({".git", ".hg", ".svn"})
"""Version control writes there all day: of these only what can run something is protected."""

PROTECTED = (*sorted(set(root_places()) - _OWN_STORE), ".hg/hgrc")
"""What makes git, an editor, a shell or an agent run something later, relative to a project."""

PROGRAMS_OF_HOME = (".local/bin", "bin", ".cargo/bin", ".pyenv", ".nvm")
"""Where a user's own programs lie, which are theirs to start also where the home itself is the project."""

HOME_PROTECTED = (
    *PROGRAMS_OF_HOME,
    *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile"),
    *(".zlogin", ".zlogout", ".inputrc", ".xprofile", ".xinitrc", ".xsession", ".pam_environment", ".pythonrc"),
    *(".gitconfig", ".tmux.conf", ".screenrc", ".emacs", ".emacs.d"),
)
"""The same, where the home itself is the project."""

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


GIT_PROTECTED = ("hooks", "config", "config.worktree", "info", "commondir", "remotes", "branches")
"""What makes git run something later, or send what is there elsewhere, in a repository's own folder."""

_GIT_FOLDERS = 20_000
"""How many folders are looked through for git's own; where there are more, nothing is run."""
_LINKS = 8
_MOST_SETTINGS = 200_000
_INSTALLATION = ("bin", "lib", "lib64", "include", "pyvenv.cfg")
_FRESH = 30.0
"""Seconds for which it is known what there is on this machine."""


def home() -> Path:
    """The user's home, links resolved; the root folder where there is none."""
    try:
        return Path.home().resolve()
    except (RuntimeError, OSError):
        return Path("/")


@lru_cache(maxsize=1)
def interpreter() -> list[Path]:
    """Returns the places of this program's own interpreter and package: the starter runs inside. Found out once, before
    a command could put a link in the place of an environment that lies in the project."""
    own = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent.parent}
    # An interpreter in /usr/bin would otherwise make a root of /usr's parent.
    return [*sorted(path.resolve() for path in own if len(path.parts) > 2), Path(__file__).resolve().parent]


def project_interpreters(root: Path) -> list[Path]:
    """Returns the places of the interpreters of the project's virtual environments: an environment is links to one
    elsewhere.

    A file in the project says where, so it is believed only where an installation of Python is, and nothing secret.
    """
    found: list[Path] = []
    for name in (".venv", "venv", "env"):
        link = root / name / "bin" / "python"
        for _ in range(_LINKS):
            if not link.is_symlink():
                break
            link = link.parent.resolve() / link.readlink()
            installed = _resolved(link.parent).parent
            if link.parent.name == "bin" and any(installed.glob("lib/python3*")) and not _is_secret(installed):
                found += [installed / part for part in _INSTALLATION if (installed / part).exists()]
    return found


def _is_secret(path: Path) -> bool:
    """Returns whether a place is the home or a secret place, lies in a secret place, or holds any of them."""
    below = home()
    known = _usual_secrets(below, moment())
    return below.is_relative_to(path) or any(path.is_relative_to(one) or one.is_relative_to(path) for one in known)


def readable(policy: SandboxPolicy) -> list[Path]:
    """Every place that may be read, links resolved, existing ones only."""
    return [*_readable(os.environ.get("PATH", ""), home(), policy.readable, moment())]


def moment() -> int:
    """A number that changes from time to time: what there is on a machine is looked for anew then."""
    return int(time.monotonic() / _FRESH)


@lru_cache(maxsize=16)
def _readable(path: str, below: Path, more: tuple[Path, ...], _: int) -> tuple[Path, ...]:
    places = [Path(place) for place in SYSTEM]
    places += [found for root, parts in TOOLCHAINS.items() for found in _parts(below / root, parts)]
    places += [below / name for name in CONFIGURATIONS if _tells_nothing(below / name)]
    named = [place for place in more if _resolved(place) == place]
    return tuple(existing([*places, *interpreter(), *path_folders(path), *named]))


def _parts(root: Path, parts: str) -> Iterator[Path]:
    for part in parts.split() if root.is_dir() else ():
        if "*" in part:
            yield from root.glob(part)
        else:
            yield root / part


def _tells_nothing(path: Path) -> bool:
    try:
        data = read_regular(path, _MOST_SETTINGS + 1)
        return len(data) <= _MOST_SETTINGS and not tells_secret(data.decode())
    except (OSError, ValueError):
        return False


def path_folders(path: str) -> Iterator[Path]:
    """The folders that PATH names, links resolved, as far as they are named like folders of programs, also where a
    link leads (a command may have made it); nothing above them."""
    names = ("bin", "sbin", "shims", "scripts")
    for entry in path.split(os.pathsep):
        folder = Path(entry)
        if folder.is_absolute() and folder.name in names and (found := _resolved(folder)).name in names:
            yield found


def writable(policy: SandboxPolicy) -> list[Path]:
    """The folders that ``work`` may write in: with a linked worktree comes the repository it is one of."""
    return existing([*policy.folders, *(git for folder in policy.folders if (git := linked_repository(folder)))])


def linked_repository(folder: Path) -> Path | None:
    """Git's own folder of the repository that ``folder`` is a linked worktree of. A file in the worktree names it, and
    that may say anything: only a repository that names this worktree in turn is believed."""
    try:
        if not (folder / ".git").is_file() or (folder / ".git").is_symlink():
            return None
        own = folder / _line(folder / ".git").removeprefix("gitdir:").strip()
        back = Path(_line(own / "gitdir"))
        common = (own / _line(own / "commondir")).resolve()
    except (OSError, ValueError):
        return None
    known = back.is_absolute() and back.resolve() == (folder / ".git").resolve()
    if not known or own.resolve().parent != common / "worktrees" or not is_git(common):
        return None
    return common


def _line(path: Path) -> str:
    return read_regular(path, 4_096).decode().partition("\n")[0].strip()


def secrets(policy: SandboxPolicy) -> list[Path]:
    """Every place that must not be read, links resolved where they lead elsewhere, whether it exists or not. What the
    user named to be read or written is theirs to name, unless it is hidden."""
    explicit = {_resolved(path) for path in (*policy.folders, *policy.readable)}
    hidden = {place for path in policy.hidden for place in (path, _resolved(path))} | {*policy.masks.paths}
    usual = [*_usual_secrets(home(), moment())]
    if any(home().is_relative_to(folder) for folder in policy.folders):
        usual += [home() / root for root in TOOLCHAINS]  # what is listed of them is laid over
    return [*(path for path in usual if path not in explicit), *sorted(hidden)]


def secret_places() -> tuple[Path, ...]:
    """Places that no command in the sandbox may read, whatever folders are added around them."""
    return _usual_secrets(home(), moment())


@lru_cache(maxsize=4)
def _usual_secrets(below: Path, _: int) -> tuple[Path, ...]:
    named = [Path(path) for path in SYSTEM_SECRETS] + [below / path for path in SECRETS]
    return tuple(dict.fromkeys(place for path in named for place in (path, _resolved(path)) if place != below))


def protected(folder: Path) -> list[Path]:
    """Returns the places that stay read-only in a writable folder, whether they exist or not."""
    names = PROTECTED + (HOME_PROTECTED if folder == home() else ())
    found = [git / name for git in git_folders(folder) for name in GIT_PROTECTED]
    if is_git(folder):
        return found
    if (folder / ".git").is_file() or (folder / ".git").is_symlink():
        found = [folder / ".git"]  # of a linked worktree or a submodule: it says where the repository is
    return list(dict.fromkeys([*found, *(folder / name for name in names), *_spelled(folder), *led_to(folder)]))


def _spelled(folder: Path) -> list[Path]:
    """Entries of ``folder`` that are protected in another spelling or by the end of their name."""
    try:
        entries = [entry.name for entry in os.scandir(folder)]
    except OSError:
        return []
    return [folder / name for name in entries if name.casefold() not in _OWN_STORE and is_protected(PurePath(name))]


def git_folders(folder: Path) -> list[Path]:
    """The folder of git in ``folder``, whether it exists or not, and those of its submodules and worktrees. ``folder``
    may be one of git itself. Raises OSError where there are too many to look through."""
    git = folder if is_git(folder) else folder / ".git"
    found, looked = [git], 0
    for kind in ("modules", "worktrees"):
        todo = [git / kind]
        while todo:
            looked += 1
            if looked > _GIT_FOLDERS:
                raise OSError(f"{git / kind} has more than {_GIT_FOLDERS:,} folders")
            try:
                inside = [Path(entry.path) for entry in os.scandir(todo.pop()) if entry.is_dir(follow_symlinks=False)]
            except OSError:
                continue
            for place in inside:
                if (place / "HEAD").is_file():
                    found.append(place)
                    todo.append(place / "modules")
                elif kind == "modules":
                    todo.append(place)  # a submodule's name may have slashes
    return found


def existing(paths: Iterable[Path]) -> list[Path]:
    """Those that exist, links resolved, without those below another."""
    found = {os.path.realpath(path) for path in paths}
    kept: list[str] = []
    for path in sorted(path for path in found if os.path.exists(path)):  # noqa: PTH110 - a hundred of them a command
        if not any(is_within(path, other) for other in kept):
            kept.append(path)
    return [Path(path) for path in kept]


def is_within(path: str, tree: str) -> bool:
    """Returns whether ``path`` is ``tree`` or below it, as text."""
    return path == tree or path.startswith(tree.rstrip("/") + "/")


def without(tree: Path, holes: Iterable[Path]) -> Iterator[str]:
    """The largest parts of ``tree`` that hold none of ``holes``: itself when there is none in it. Links are left out
    where the tree is taken apart, and what comes into being later is in no part."""
    return _without(str(tree), [str(hole) for hole in holes])


def _without(tree: str, holes: Iterable[str]) -> Iterator[str]:
    inside = [hole for hole in holes if is_within(hole, tree)]
    if tree in inside:
        return
    if not inside:
        yield tree
        return
    try:
        entries = sorted(os.scandir(tree), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if not entry.is_symlink():
            yield from _without(entry.path, inside)


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path
