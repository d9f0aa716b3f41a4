"""Judge and sandbox together: what is let pass because the sandbox holds it is really run, and reaches nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_tui.config import PERMISSION_MODES as MODES
from agent_tui.config import PermissionsConfig, SandboxConfig
from agent_tui.tools.base import Intent
from agent_tui.tools.permissions import Permissions
from agent_tui.tools.sandbox.jail import Jail
from agent_tui.tools.sandbox.policy import Domain
from tests.support.commands import World, lines, make_world

SECRET = "SECRET-OF-THE-USER"
SECONDS = 1.0

# Not to be tried for real, even inside: what a fault of the sandbox would do to the machine is too much.
UNTRIED = (
    "kill",
    "pkill",
    "killall",
    ":()",
    "reboot",
    "shutdown",
    "mkfs",
    "dd if=/dev/zero",
    "mount",
    "rm -rf /",
    "rm -rf ~",
)


@pytest.fixture(scope="module")
def jail(tmp_path_factory: pytest.TempPathFactory) -> Jail:
    base = tmp_path_factory.mktemp("held")
    world = make_world(base / "kept")
    assert world.root.exists()
    return Jail(SandboxConfig(), base / "live/project", base / "cache")


@pytest.fixture
def live(jail: Jail) -> Iterator[World]:
    base = jail.root.parent
    yield World(jail.root, base / "outside")
    shutil.rmtree(base, ignore_errors=True)


def refresh(jail: Jail) -> World:
    """The project and what lies around it, as new."""
    base = jail.root.parent
    shutil.rmtree(base, ignore_errors=True)
    shutil.copytree(base.parent / "kept", base, symlinks=True)
    for name, target in (("out", "outside"), ("file", "outside/secret")):
        (base / "project/links" / name).unlink()
        (base / "project/links" / name).symlink_to(base / target)
    return World(base / "project", base / "outside")


def contents(folder: Path) -> dict[str, bytes | str]:
    """Every file below, links by their target."""
    found: dict[str, bytes | str] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            found[str(path.relative_to(folder))] = os.readlink(path)  # noqa: PTH115
        elif path.is_file():
            found[str(path.relative_to(folder))] = path.read_bytes()
    return found


def run(jail: Jail, command: str, domain: Domain, world: World) -> str:
    """Runs it as the bash tool's shell would, and returns all it said."""
    with jail.wrapped(["bash", "-c", command], domain, world.root) as launch:
        process = subprocess.Popen(
            launch.argv,
            cwd=world.root,
            env=launch.env,
            pass_fds=launch.pass_fds,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
    return output.decode("utf-8", "replace")


def unasked(jail: Jail, world: World) -> dict[Domain, list[str]]:
    """By domain, what any mode lets run there."""
    found: dict[Domain, list[str]] = {"look": [], "work": [], "free": []}
    for command in lines("hostile.txt"):
        for mode in MODES:
            permissions = Permissions(world.root, world.root, PermissionsConfig(mode), holds=jail.holds)
            decision = permissions.decide("bash", Intent("command", command, command=command))
            if decision.action == "allow" and command not in found[decision.domain]:
                found[decision.domain].append(command)
    return found


@pytest.mark.parametrize("domain", ["look", "work"])
def test_what_the_sandbox_holds_reaches_nothing(jail: Jail, live: World, domain: Domain) -> None:
    sandbox = jail.tried()
    if not (sandbox.holds("look") and sandbox.holds("work")):
        pytest.skip(f"no sandbox holds here: {'; '.join(sandbox.failed)}")
    commands = unasked(jail, refresh(jail))
    assert commands["free"] == [] and len(commands[domain]) > 300
    for command in commands[domain]:
        if command.startswith(UNTRIED):
            continue
        world = refresh(jail)
        before, outside = contents(world.root), contents(world.outside)
        output = run(jail, command, domain, world)
        assert SECRET not in output, command
        assert contents(world.outside) == outside, command
        assert sorted(p.name for p in world.root.parent.iterdir()) == ["outside", "project"], command
        after = contents(world.root)
        if domain == "look":
            assert after == before, command
        changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        assert not {name for name in changed if name == ".git/config" or name.startswith(".git/hooks")}, command
