"""The attempts of ``escapes.toml``, for real, by every means that holds on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import tomllib
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent_tui.tools.sandbox.box import Sandbox
from agent_tui.tools.sandbox.policy import Domain
from tests.support import sandbox_world as world
from tests.support.forms import LONG, some

GROUPS: list[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "escapes.toml").read_text())["group"]
CASES = [
    pytest.param(group, domain, id=f"{group['name']}-{domain}", marks=pytest.mark.slow)
    for group in GROUPS
    for domain in group["domains"]
]
MOST: dict[Domain, int] = {"look": 1, "work": 2}
FIRST = {
    domain: [attempt for group in GROUPS if domain in group["domains"] for attempt in group["attempts"][:most]]
    for domain, most in MOST.items()
}
"""One or two attempts of each group: what is tried where slow tests are left out."""
AT_ONCE = 4
LOOK_EVERY = 6
"""Of what is also tried in ``work``, where more is allowed, so many attempts make one that is tried in ``look``."""
TWIN, TWIN_EVERY = "Landlock", 3
"""What differs from another means by the network alone, and how many of its attempts make one."""
NEXT = " ;;; "
"""Between two commands of one attempt: what the first leaves behind may lead the second out."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="tried on Linux only")


@dataclass
class Scene:
    base: Path
    repository: Path
    later: dict[str, object]
    """What runs later in a project that nobody touched."""


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    # Not below /tmp: a private one of its own would hide mistakes.
    base = Path(os.environ.get("XDG_CACHE_HOME") or "/var/tmp") / f"agent-tui-test-{uuid.uuid4().hex[:8]}"
    base.mkdir()
    try:
        base.chmod(0o755)
        world.make_home(base / "home")
        world.make_repository(base / "repository")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HOME", str(base / "home"))
            patch.setenv("TEST_API_KEY", world.SECRET)
            untouched = world.Place(base / "untouched")
            untouched.make(base / "repository")
            yield Scene(base, base / "repository", world.runs_later(untouched.project))
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _scripts(group: dict[str, Any], domain: Domain, sandbox: Sandbox) -> Sequence[str]:
    """The attempts of one group in one domain: the variations too in the long form."""
    if LONG:
        return [*group["attempts"], *group.get("variations", [])]
    if domain == "look" and "work" in group["domains"]:
        return some(group["attempts"], LOOK_EVERY)
    return some(group["attempts"], TWIN_EVERY if sandbox.name == TWIN else 1)


class Lane:
    """A place with its jail, in which one attempt follows another; each finds it as new."""

    def __init__(self, scene: Scene, sandbox: Sandbox) -> None:
        self.scene = scene
        self.place = world.Place(scene.base / f"{scene.base.name}-{uuid.uuid4().hex}")
        self._make()
        self.jail = world.jail_for(sandbox, self.place, self.place.base / "cache")

    def _make(self) -> None:
        self.place.make(self.scene.repository)
        self.outside, self.inside = world.tree(self.place.outside), world.tree(self.place.project)

    def found(self, domain: Domain, output: str) -> list[str]:
        """What an attempt got at; makes the place anew where it is not as it was."""
        wrong = []
        if world.SECRET in output:
            wrong.append("read a secret")
        if world.ESCAPED in output:
            wrong.append("says that it got out")
        outside, inside = world.tree(self.place.outside), world.tree(self.place.project)
        if outside != self.outside:
            wrong.append("changed something outside")
        if inside != self.inside:
            if domain == "look":
                wrong.append("changed the project")
            if world.runs_later(self.place.project) != self.scene.later:
                wrong.append("left something that runs later")
        if (outside, inside) != (self.outside, self.inside):
            shutil.rmtree(self.place.project)
            shutil.rmtree(self.place.outside)
            self._make()
        return wrong


@pytest.fixture(scope="module")
def lanes(scene: Scene, sandbox: Sandbox) -> list[Lane]:
    return [Lane(scene, sandbox) for _ in range(AT_ONCE)]


async def _attempt(
    lane: Lane, domain: Domain, script: str, ears: world.Listeners, bystander: world.Victim, shared: int
) -> list[str]:
    """What the attempt got at; empty when it got at nothing."""
    place = lane.place
    more = {
        "OUT": str(place.outside),
        "PROJECT": str(place.project),
        "PYTHON": sys.executable,
        "MARK": f"{lane.scene.base.name}-{uuid.uuid4().hex}",  # found again in the environment of what is left
        "PORT": str(ears.tcp),
        "UDP": str(ears.udp),
        "UNIX": str(ears.unix),
        "ABSTRACT": ears.abstract,
        "DATAGRAMS": str(ears.datagrams),
        "SHARED": str(shared),
        "VICTIM": str(bystander.process.pid),
        "WATCHER": str(os.getpid()),
    }
    output = ""
    for part in script.split(NEXT):
        output += (await world.run(lane.jail, domain, place, part, more))[1]
    harm = bystander.harm()
    return [*lane.found(domain, output), *([harm] if harm else [])]


@pytest.mark.parametrize(("group", "domain"), CASES)
async def test_nothing_gets_out(
    scene: Scene, sandbox: Sandbox, lanes: list[Lane], group: dict[str, Any], domain: Domain
) -> None:
    await _nothing_gets_out(scene, lanes, domain, _scripts(group, domain, sandbox))


@pytest.mark.forms(1)
@pytest.mark.parametrize("domain", FIRST)
async def test_nothing_gets_out_by_one_way_of_each_kind(scene: Scene, lanes: list[Lane], domain: Domain) -> None:
    await _nothing_gets_out(scene, lanes, domain, FIRST[domain])


async def _nothing_gets_out(scene: Scene, lanes: list[Lane], domain: Domain, scripts: Sequence[str]) -> None:
    home = world.tree(scene.base / "home")
    free = list(lanes)
    gate = asyncio.Semaphore(len(free))
    seconds = f"31337{os.getpid()}"  # other tests may run the same attempts beside this one
    short = Path("/tmp") / uuid.uuid4().hex[:8]
    short.mkdir()
    try:
        with world.listening(short) as ears, world.victim(short) as bystander, world.shared_memory() as shared:

            async def one(script: str) -> tuple[str, list[str]]:
                async with gate:
                    lane = free.pop()
                    own = script.replace("31337", seconds)
                    wrong = await _attempt(lane, domain, own, ears, bystander, shared)
                    free.append(lane)
                    return script, wrong

            results = await asyncio.gather(*(one(script) for script in scripts))
            assert {script: wrong for script, wrong in results if wrong} == {}
            assert ears.heard == []
            assert world.left_behind(f"{scene.base.name}-", seconds) == []
            assert world.tree(scene.base / "home") == home
    finally:
        with contextlib.suppress(OSError):
            shutil.rmtree(short)
