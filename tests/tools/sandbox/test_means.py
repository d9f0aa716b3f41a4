"""What the other tests of the sandbox are run by, and each means entered: what it lets a command do, and what not."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_tui.tools.sandbox.policy import Domain
from tests.support import sandbox_world as world

pytestmark = [pytest.mark.quick, pytest.mark.skipif(sys.platform != "linux", reason="the means of Linux")]

ATTEMPTS = """
write() { echo x > "$1"; }
try() { name=$1; shift; ("$@") > /dev/null 2>&1 && echo "$name"; }
try "reads the project" cat file folder/inner
try "reads a key" grep -r . "$HOME/.ssh" "$HOME/.aws" "$HOME/.config/gh"
try "reads outside" cat "$OUT/file"
try "reads outside by a link" cat link-to-file
try "reads our environment" grep -z . "/proc/$WATCHER/environ"
try "writes the project" write new
try "writes outside" write "$OUT/new"
try "writes the home" write "$HOME/.profile"
try "writes temporary files" write "$TMPDIR/new"
try "reaches a port" py -c 'import os, socket; socket.create_connection(("127.0.0.1", int(os.environ["PORT"])), 5)'
write .git/hooks/pre-commit 2> /dev/null
(mkdir .vscode && write .vscode/tasks.json) 2> /dev/null
sleep 31337 > /dev/null 2>&1 &
"""
WORKS = {"reads the project", "writes temporary files"}
MAY: dict[Domain, set[str]] = {"look": WORKS, "work": WORKS | {"writes the project"}}


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    base = Path("/var/tmp") / f"agent-tui-test-{uuid.uuid4().hex[:8]}"
    world.make_home(base / "home")
    world.make_repository(base / "repository")
    monkeypatch.setenv("HOME", str(base / "home"))
    yield base
    shutil.rmtree(base, ignore_errors=True)


@pytest.mark.parametrize("name", world.MEANS)
async def test_every_means_holds_a_command_to_its_domain_or_is_said_to_be_missing(name: str, base: Path) -> None:
    sandbox = world.held_by(name)
    assert sandbox.holds("look") and sandbox.holds("work") and not sandbox.failed
    seconds = f"31337{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as server:
        more = {"PYTHON": sys.executable, "WATCHER": str(os.getpid()), "PORT": str(server.getsockname()[1])}
        for domain, may in MAY.items():
            place = world.Place(base / domain)
            place.make(base / "repository")
            jail = world.jail_for(sandbox, place, place.base / "cache")
            script = ATTEMPTS.replace("31337", seconds)
            _, said = await world.run(jail, domain, place, script, {**more, "OUT": str(place.outside)})
            assert set(said.splitlines()) == may, domain
            assert (place.project / "new").exists() is (domain == "work")
            assert not (place.project / ".git/hooks/pre-commit").exists()
            assert not (place.project / ".vscode").exists()
            assert world.left_behind("nothing has this mark", seconds) == []
