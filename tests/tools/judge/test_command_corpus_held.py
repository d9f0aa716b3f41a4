"""Judge and sandbox together: what is let pass because the sandbox holds it is really run, and reaches nothing."""

from __future__ import annotations

import asyncio
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent_tui.config import PermissionMode, PermissionsConfig, SandboxConfig
from agent_tui.errors import ToolError
from agent_tui.tools.base import Intent
from agent_tui.tools.sandbox.box import Sandbox
from agent_tui.tools.sandbox.jail import Jail
from agent_tui.tools.sandbox.policy import Domain
from tests.support.commands import World, lines, make_world, sections
from tests.support.forms import LONG, some
from tests.support.sandbox_world import run_in
from tests.support.tool_context import permissions_of

SECRET = "SECRET-OF-THE-USER"
SECONDS = 2.0
LANES = 8
LOOK_EVERY = 3
"""Of what runs in ``look``, where nothing can be written at all, so many commands make one that is tried."""
MODES: tuple[PermissionMode, ...] = ("ask", "accept-edits", "plan", "auto") if LONG else ("plan", "auto")
"""The one that lets least pass and the one that lets most; the others too in the long form."""

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


@dataclass(slots=True)
class Lane:
    """A project of its own, so that several commands can be tried at once."""

    base: Path
    jail: Jail
    untouched: bool = False
    """Nothing has changed since it was as new."""

    @property
    def world(self) -> World:
        return World(self.base / "live/project", self.base / "live/outside")

    def refresh(self) -> World:
        """The project and what lies around it, as new."""
        live = self.base / "live"
        if self.untouched:
            return self.world
        shutil.rmtree(live, ignore_errors=True)
        shutil.copytree(self.base.parent / "kept", live, symlinks=True)
        for name, target in (("out", "outside"), ("file", "outside/secret")):
            (live / "project/links" / name).unlink()
            (live / "project/links" / name).symlink_to(live / target)
        return self.world


@dataclass(slots=True)
class Held:
    """Projects to try commands in, and what any mode lets run there, by domain."""

    lanes: list[Lane]
    unasked: dict[Domain, list[str]]


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox) -> Held:
    base = tmp_path_factory.mktemp("held")
    make_world(base / "kept")
    folders = [base / f"lane{number}" for number in range(LANES)]
    jails = [Jail(SandboxConfig(), folder / "live/project", folder / "cache", sandbox=sandbox) for folder in folders]
    found = [Lane(folder, jail) for folder, jail in zip(folders, jails, strict=True)]
    return Held(found, unasked(found[0]))


def contents(folder: Path) -> dict[str, tuple[int, bytes | str]]:
    """Everything below with its kind and mode: files by what is in them, links by their target."""
    found: dict[str, tuple[int, bytes | str]] = {}
    waiting = [str(folder)]
    while waiting:
        for entry in os.scandir(waiting.pop()):
            what: bytes | str = ""
            if entry.is_symlink():
                what = os.readlink(entry.path)  # noqa: PTH115
            elif entry.is_dir():
                waiting.append(entry.path)
            elif entry.is_file():
                what = Path(entry.path).read_bytes()
            found[os.path.relpath(entry.path, folder)] = entry.stat(follow_symlinks=False).st_mode, what
    return found


def unasked(lane: Lane) -> dict[Domain, list[str]]:
    """By domain, what any mode lets run there."""
    world = lane.refresh()
    found: dict[Domain, list[str]] = {"look": [], "work": [], "free": []}
    for command in lines("hostile.txt"):
        for mode in MODES:
            permissions = permissions_of(
                world.root, PermissionsConfig(mode), holds=lane.jail.holds, has_ports=lane.jail.has_ports
            )
            decision = permissions.decide("bash", Intent("command", command, command=command))
            if decision.action == "allow" and command not in found[decision.domain]:
                found[decision.domain].append(command)
    return found


def one_of_each(commands: list[str]) -> list[str]:
    """One of every program under every heading of the corpus; all of them in the long form."""
    if LONG:
        return commands
    heading = {command: heading for heading, command in sections("hostile.txt")}
    return list({(heading[command], command.split()[0]): command for command in reversed(commands)}.values())


async def reached(lane: Lane, command: str, domain: Domain) -> str:
    """What a command reached that it must not, in words; empty when it reached nothing."""
    world = lane.refresh()
    lane.untouched = False
    before, outside = contents(world.root), contents(world.outside)
    try:
        _, said = await run_in(world.root, lane.jail, domain, command, seconds=SECONDS)
    except ToolError as error:
        return f"{command!r} was not started: {error}"
    if SECRET in said:
        return f"{command!r} read the secret"
    around = sorted(path.name for path in world.root.parent.iterdir())
    if contents(world.outside) != outside or around != ["outside", "project"]:
        return f"{command!r} wrote outside"
    after = contents(world.root)
    lane.untouched = before == after
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    kept = {name for name in changed if domain == "look" or name == ".git/config" or name.startswith(".git/hooks")}
    return f"{command!r} changed {sorted(kept)}" if kept else ""


@pytest.mark.slow
@pytest.mark.parametrize("domain", ["look", "work"])
async def test_what_the_sandbox_holds_reaches_nothing(held: Held, domain: Domain) -> None:
    commands = held.unasked[domain]
    assert held.unasked["free"] == [] and len(commands) > 300
    tried = one_of_each([command for command in commands if not command.startswith(UNTRIED)])
    assert len(tried) > 80
    tried = [*some(tried, LOOK_EVERY if domain == "look" else 1)]

    async def along(lane: Lane, share: list[str]) -> list[str]:
        return [await reached(lane, command, domain) for command in share]

    shares = (along(lane, tried[number::LANES]) for number, lane in enumerate(held.lanes))
    assert [line for found in await asyncio.gather(*shares) for line in found if line] == []
