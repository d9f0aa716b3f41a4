"""The sandbox of one project in one process: probed once, and asked for the process of every command."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import shlex
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from agent_tui.config import SandboxConfig
from agent_tui.hardening import hide_memory
from agent_tui.paths import with_home
from agent_tui.pipes.programs import keep_out_of
from agent_tui.tools.git.remotes import Remotes
from agent_tui.tools.sandbox import places
from agent_tui.tools.sandbox.attempts import Attempts
from agent_tui.tools.sandbox.box import Sandbox, probe
from agent_tui.tools.sandbox.network import (
    HostProxy,
    SessionNetwork,
    is_registry,
    proxy_env,
    session_network,
    users_own,
)
from agent_tui.tools.sandbox.outputs import Lent, Outputs
from agent_tui.tools.sandbox.policy import (
    NO_MASKS,
    NO_SECRETS,
    Domain,
    Launch,
    Masks,
    Network,
    SandboxBackend,
    SandboxPolicy,
    Secrecy,
)
from agent_tui.tools.sandbox.private_tmp import PrivateTmp
from agent_tui.tools.sandbox.protected import write_git_config

log = logging.getLogger(__name__)

TRYING = {
    "PYTHONDONTWRITEBYTECODE": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "npm_config_fetch_retries": "0",
    "PIP_RETRIES": "1",
    "CARGO_NET_RETRY": "0",
}
"""For a command that may have to run again: it leaves be what it need not write, and does not try for minutes to reach
what is out of its reach."""

_probed: dict[tuple[str, str], Sandbox] = {}
_probing = threading.Lock()


class Jail:
    """``cache`` is our own cache folder. Commands may write in ``added`` folders, too; ``readable`` are always readable
    inside, ``hidden`` never. ``secrecy`` is what their environment lacks. ``granted`` says of a host, and whether
    packages come from there, that the user lets ``work`` reach it; ``denied`` finds in folders what rules deny
    reading."""

    def __init__(
        self,
        config: SandboxConfig,
        root: Path,
        cache: Path,
        added: Sequence[Path] = (),
        readable: Sequence[Path] = (),
        hidden: Sequence[Path] = (),
        secrecy: Secrecy = NO_SECRETS,
        sandbox: Sandbox | None = None,
    ) -> None:
        self.config, self.root, self.cache, self.sandbox = config, root, cache, sandbox
        self.granted: Callable[[str, bool], bool] = lambda host, registry: False
        self.denied: Callable[[Sequence[Path]], Masks] = lambda trees: NO_MASKS
        self.outputs = Outputs(root)
        self._secrecy = secrecy
        self._git_config = cache / "sandbox" / "gitconfig"
        name = hashlib.blake2b(os.fsencode(root.resolve()), digest_size=8).hexdigest()
        interpreters = places.project_interpreters(root.resolve())
        # Resolved before the first command runs: a command may put a link in the place of what it can write.
        self._base = SandboxPolicy(
            root,
            cache / "sandbox" / name,
            writable=_resolved([*added, *_folders(config.writable)]),
            readable=_resolved([*readable, *_folders(config.readable), *interpreters, self._git_config]),
            network=config.network,
            loopback=config.loopback,
            hidden=tuple(hidden),
        )
        folders = self._base.folders
        spared = [places.home() / name for name in places.PROGRAMS_OF_HOME] if places.home() in folders else ()
        keep_out_of((*folders, *self._base.private), spared, self.expects("work"))
        self._private_tmp = PrivateTmp(Path(os.path.realpath(self._base.temporary)), self.shows)
        self._sharing = threading.Lock()
        self._shared: SessionNetwork | None = None
        self._proxy: HostProxy | None = None

    @cached_property
    def remotes(self) -> Remotes:
        """The remotes of the repositories in the folders that commands may write in."""
        return Remotes(self._base.folders)

    @cached_property
    def _own_registries(self) -> frozenset[tuple[str, int]]:
        return users_own(os.environ, self._base.folders)

    @property
    def _backend(self) -> SandboxBackend | None:
        return self.sandbox.backend if self.sandbox is not None else None

    async def ready(self) -> Sandbox:
        """Returns the sandbox that holds here; tried when first asked for, in a thread, once a process."""
        return await asyncio.to_thread(self.tried) if self.sandbox is None else self.sandbox

    def tried(self) -> Sandbox:
        """The same for a thread of the caller's own."""
        hide_memory()  # from what runs free
        with _probing:
            key = (str(self.cache), self.config.mode)
            if self.sandbox is None and key not in _probed:
                _probed[key] = probe(self.cache / "sandbox", self.config.mode)
                log.info("Sandbox: %s (%s)", _probed[key].name, "; ".join(_probed[key].failed) or "holds")
            self.sandbox = self.sandbox or _probed[key]
            keep_out_of((), held=self.holds("work"))
            return self.sandbox

    def holds(self, domain: Domain) -> bool:
        """Returns whether commands are held to ``domain``, as far as was tried by now."""
        return domain == "free" or (self.sandbox is not None and self.sandbox.holds(domain))

    def expects(self, domain: Domain) -> bool:
        """The same, and before it was tried whether most systems of this kind hold commands."""
        if self.sandbox is not None:
            return self.holds(domain)
        return sys.platform == "linux" and self.config.mode != "off"

    def has_ports(self) -> bool:
        """Returns whether commands of ``work`` may listen and connect on 127.0.0.1 and ::1, as far as was tried by
        now."""
        return self.sandbox is not None and self.sandbox.has_ports(self.config.loopback)

    def shares(self, network: Network | None = None) -> bool:
        """Returns whether a command of ``work`` reaches the ports that others opened, as far as was tried by now."""
        closed = (network or self.config.network) != "allow"
        return closed and self.has_ports() and self.sandbox is not None and self.sandbox.shares

    def tells_hosts_apart(self) -> bool:
        """Returns whether ``work`` can be let to some hosts and no others, as far as was tried by now."""
        return self.shares("registries")

    def refused_hosts(self, since: float) -> list[str]:
        """The hosts that commands were kept from, from a moment of ``time.monotonic`` on."""
        return self._proxy.refused(since) if self._proxy is not None else []

    def _lets(self, host: str, port: int) -> bool:
        return self.granted(host, is_registry(host) or self._is_own(host, port))

    def _is_own(self, host: str, port: int) -> bool:
        """Returns whether the user's own settings, as they were before any command ran, name this host and port as a
        source of packages, and commands may reach it."""
        return (host, port) in self._own_registries and self.granted(host, True)

    def sees(self, path: Path, kind: Literal["read", "edit"]) -> bool:
        """Returns whether a resolved path outside the project is there for a command that is held: to be read, or in
        one of the private folders. What others keep in ``/tmp`` is not there where a command has its own."""
        backend, policy = self._backend, self._base
        if backend is None or not self.holds("look"):
            return False
        if any(path.is_relative_to(folder.resolve()) for folder in policy.private):
            return True
        shared = Path("/tmp").resolve()
        if backend.own_tmp and path.is_relative_to(shared) and path != shared:
            return os.path.lexists(policy.temporary / path.relative_to(shared)) or not os.path.lexists(path)
        shown = kind == "read" and any(map(path.is_relative_to, places.readable(policy)))
        return shown and not any(map(path.is_relative_to, places.secrets(policy)))

    def shows(self) -> list[Path]:
        """The folders that a held command can see, but for its private ones."""
        self._prepare()  # what is not there yet would not be seen for a while
        return [*places.writable(self._base), *places.readable(self._base)]

    @property
    def private_tmp(self) -> PrivateTmp | None:
        """The folder that held commands have for ``/tmp``; None where they see the machine's, or none. Tries the
        sandbox, where that was not done."""
        if not self.expects("look") or not self.tried().holds("look") or self._backend is None:
            return None
        return self._private_tmp if self._backend.own_tmp else None

    def _prepare(self) -> None:
        with contextlib.suppress(OSError):
            self._base.prepare()
            write_git_config(self._git_config)

    def masks(self, domain: Domain, masks: Masks) -> bool:
        """Returns whether a command of ``domain`` is kept from all of these, as far as was tried by now."""
        backend = self._backend
        if domain == "free" or backend is None or not self.holds(domain):
            return False
        return len(self._maskable(domain, masks).paths) == len(masks.paths)

    def _maskable(self, domain: Domain, masks: Masks) -> Masks:
        if domain == "look" or (self._backend is not None and self._backend.subtracts):
            return masks
        folders = places.writable(self._base)
        return replace(masks, paths=tuple(path for path in masks.paths if not any(map(path.is_relative_to, folders))))

    def policy(self, network: Network | None = None) -> SandboxPolicy:
        """The places of the project. ``network`` instead of the configured one."""
        return self._base if network is None else replace(self._base, network=network)

    @property
    def held(self) -> Path:
        """The folder for what commands made and may not make."""
        return self._base.scratch.parent / f"held-{self._base.scratch.name}"

    def environment(self, domain: Domain = "free", network: Network | None = None) -> dict[str, str]:
        """The environment of a child: without secrets, and with caches of its own where it is held."""
        from agent_tui.tools.sandbox.environment import cache_env, child_env

        held = domain != "free" and self.holds(domain)
        env = child_env(os.environ, held, self._secrecy)
        if held:
            policy = self.policy(network)
            env |= cache_env(policy.cache, policy.network in ("allow", "registries") and domain == "work")
            # Their own files are not readable: without these some programs stop at the refusal.
            env |= {
                "TMPDIR": str(policy.temporary),
                "GIT_CONFIG_GLOBAL": str(self._git_config),
                "XDG_CONFIG_HOME": str(policy.config),
                "XDG_STATE_HOME": str(policy.state),
                "npm_config_userconfig": str(policy.config / "npmrc"),
            }
        return env

    def no_sockets(self) -> bool:
        """Returns whether a command that looks may use unix sockets: it meets nobody at one, who might do anything for
        it. Looks through the project."""
        own_tmp = self._backend is not None and self._backend.own_tmp
        return own_tmp and self.outputs.listens_nobody(places.readable(self._base))

    def attempts(self, more: Iterable[Path] = (), sockets: bool = False) -> Attempts:
        """Listens to what a command of ``look`` would change that it could in ``work``; ``more`` is lent to it besides
        what it may write already, and with ``sockets`` those of unix. Runs git."""
        policy = self._base
        kept = [path for folder in policy.folders for path in places.protected(folder)]
        own_tmp = self._backend is not None and self._backend.own_tmp
        secret = [*places.secrets(policy), *self.denied(self.shows()).paths]
        closed = [path for path in (*kept, *secret) if path.is_relative_to(policy.folders[0])]
        lent = self.outputs.lent(closed, more) if policy.folders[0] == self.root.resolve() else Lent()
        lent.sockets = sockets
        try:
            return Attempts(policy.folders, kept, policy.temporary, own_tmp, lent)
        except BaseException:
            lent.give_back()
            raise

    async def launch(
        self,
        argv: Sequence[str],
        domain: Domain,
        cwd: Path,
        network: Network | None = None,
        more: Mapping[str, str] | None = None,
        readable: Sequence[Path] = (),
    ) -> Launch:
        """The process for ``argv``. ``more`` is added to its environment, ``readable`` to what it may read. Raises
        ToolError with one line where none may run."""
        await self.ready()
        return await asyncio.to_thread(self.wrapped, argv, domain, cwd, network, more, readable)

    async def look(
        self, argv: Sequence[str], cwd: Path, more: Iterable[Path], sockets: bool
    ) -> tuple[Launch, Attempts]:
        """The process for ``argv`` in ``look``, and who listens to what it would change; ``more`` and ``sockets`` as
        for ``attempts``. Whoever is cancelled meanwhile leaves nothing lent. Raises ToolError as ``launch``."""
        await self.ready()
        making = asyncio.get_running_loop().run_in_executor(None, self._looking, argv, cwd, more, sockets)
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            making.add_done_callback(_given_up)
            raise

    def _looking(self, argv: Sequence[str], cwd: Path, more: Iterable[Path], sockets: bool) -> tuple[Launch, Attempts]:
        attempts = self.attempts(more, sockets)
        try:
            # Where warnings are errors, a test that passes would fail for pytest's cache.
            cache = shlex.quote(str(self._base.cache / "pytest"))
            addopts = f"{os.environ.get('PYTEST_ADDOPTS', '')} -o cache_dir={cache}".strip()
            trying = {**TRYING, "PYTEST_ADDOPTS": addopts}
            launch = self.wrapped(attempts.wrapped(argv), "look", cwd, more=trying, lent=attempts.lent)
            launch.pass_fds = (*launch.pass_fds, attempts.begin())
        except BaseException:
            attempts.end()
            raise
        return launch, attempts

    def wrapped(
        self,
        argv: Sequence[str],
        domain: Domain,
        cwd: Path,
        network: Network | None = None,
        more: Mapping[str, str] | None = None,
        readable: Sequence[Path] = (),
        lent: Lent | None = None,
    ) -> Launch:
        """The same for a thread of the caller's own. ``lent`` is what ``look`` may have besides."""
        sandbox, policy = self.tried(), self.policy(network)
        if domain != "free" and sandbox.holds(domain):
            # What cannot be kept from it was asked about.
            policy = replace(policy, masks=self._maskable(domain, self.denied(self.shows())))
        env = self.environment(domain, network) | dict(more or {})
        policy = replace(policy, readable=(*policy.readable, *_resolved(readable))) if readable else policy
        policy = replace(policy, outputs=tuple(lent.places), sockets=lent.sockets) if lent is not None else policy
        if domain == "work" and self.shares(network):
            policy = replace(policy, shared=self._session_network())
            if policy.network == "registries" and (way := self._way_out()) is not None:
                env |= proxy_env(way.port)
        launch = sandbox.wrap(argv, domain, policy, cwd, env)
        launch.masks = policy.masks.paths
        return launch

    def _session_network(self) -> SessionNetwork | None:
        with self._sharing:
            if self._shared is None:
                self._shared = session_network()
            return self._shared

    def _way_out(self) -> HostProxy | None:
        with self._sharing:
            listener = self._shared.listener if self._shared is not None else None
            if self._proxy is None and listener is not None:
                _ = self._own_registries  # as they are before a command could change what they are read from
                self._proxy = HostProxy(listener, self._lets, self._is_own)
            return self._proxy

    def hold(self, pid: int, holds: bool) -> None:
        """Sets whether the temporary files of this process's commands are kept as long as the process ``pid`` runs."""
        mark = self._base.scratch / f"held-{os.getpid()}-{pid}"
        with contextlib.suppress(OSError):
            if holds:
                mark.touch(mode=0o600)
            else:
                mark.unlink(missing_ok=True)

    def close(self) -> None:
        """Removes the temporary files of this process's commands, and of those that could not do so themselves, and
        leaves the network they shared."""
        self._shared = None
        if self._proxy is not None:
            self._proxy.close()
            self._proxy = None
        import shutil

        needed: set[str] = set()
        for mark in self._base.scratch.glob("held-*-*"):
            _, owner, pid = mark.name.split("-", 2)
            if _runs(pid):
                needed.add(owner)
            else:
                mark.unlink(missing_ok=True)
        for folder in self._base.scratch.glob("tmp-*"):
            owner = folder.name.removeprefix("tmp-")
            if owner not in needed and (folder == self._base.temporary or not _runs(owner)):
                shutil.rmtree(folder, ignore_errors=True)


def _given_up(making: asyncio.Future[tuple[Launch, Attempts]]) -> None:
    """Nobody waits any more for a command that looks."""
    if not making.cancelled() and making.exception() is None:
        launch, attempts = making.result()
        launch.close()
        attempts.end()


def _runs(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ValueError, ProcessLookupError):
        return False
    except OSError:
        return True
    return True


def _resolved(paths: Sequence[Path]) -> tuple[Path, ...]:
    return tuple(path.resolve() for path in paths)


def _folders(names: Sequence[str]) -> tuple[Path, ...]:
    return tuple(with_home(name) for name in names)
