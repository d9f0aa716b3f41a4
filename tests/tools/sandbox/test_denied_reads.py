"""What a rule denies reading is not read by programs either, by whatever means they are held."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from agent_tui.config import PermissionMode, PermissionsConfig, SandboxConfig
from agent_tui.tools.permissions.permissions import Permissions
from agent_tui.tools.sandbox.box import Sandbox
from agent_tui.tools.sandbox.jail import Jail
from agent_tui.tools.sandbox.policy import Domain
from tests.support import sandbox_world as world
from tests.support.git import git
from tests.support.tool_context import bash, permissions_of

SECRET = "TOKEN-of-the-project"

READERS = {
    "cat": "cat .env",
    "python": '"$PYTHON" -I -c \'print(open(".env").read())\'',
    "node": 'node -e \'console.log(require("fs").readFileSync(".env", "utf8"))\'',
    "make": "printf 'include .env\\n$(info $(PASSWORD))\\nall:\\n\\t@cat .env\\n' | make -f -",
    "perl": "perl -ne print .env",
    "awk": "awk 1 .env",
    "grep": "grep -r TOKEN .",
    "tar": "tar -cf - . | cat",
    "source": "set -a; . ./.env; env",
    "link": "cat link",
    "hard link": "cat src/hard",
    "dd": "dd if=.env",
    "other spelling": "cat src/../.env /proc/self/cwd/.env; head /dev/fd/3 3< .env",
    "git": "git hash-object -w .env && git cat-file blob $(git hash-object .env)",
}
"""Ways to read a file, by the program that does it."""


@pytest.fixture
def base() -> Iterator[Path]:
    base = Path("/var/tmp") / f"agent-tui-test-{uuid.uuid4().hex[:8]}"
    (base / "project" / "src").mkdir(parents=True)
    yield base.resolve()
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
def project(base: Path) -> Path:
    """A repository with a file that is left out of it, a link to that and another name of it."""
    root = base / "project"
    world.make_repository(root)
    (root / ".gitignore").write_text(".env\nlink\nhard\n")
    (root / ".env").write_text(f"PASSWORD={SECRET}\n")
    (root / "link").symlink_to(".env")
    (root / "src" / "hard").hardlink_to(root / ".env")
    return root


def parts(
    project: Path, sandbox: Sandbox, *deny: str, mode: PermissionMode = "auto", readable: Sequence[Path] = ()
) -> tuple[Jail, Permissions]:
    """The jail and the judge of a project, joined as the program joins them."""
    jail = Jail(SandboxConfig(), project, project.parent / "cache", readable=readable, sandbox=sandbox)
    config = PermissionsConfig(mode, deny=list(deny))
    permissions = permissions_of(project, config, holds=jail.holds, sees=jail.sees, shows=jail.shows, masks=jail.masks)
    jail.denied = permissions.denied_below
    return jail, permissions


def masking(sandbox: Sandbox) -> list[Domain]:
    """The domains in which this means keeps files from programs."""
    assert sandbox.backend is not None
    return ["look", "work"] if sandbox.backend.subtracts else ["look"]


async def ran(jail: Jail, domain: Domain, script: str) -> str:
    python = f"PYTHON={shutil.which('python3') or 'python3'}\n"
    return (await world.run_in(jail.root, jail, domain, python + script, seconds=20))[1]


@pytest.mark.parametrize("way", READERS)
async def test_no_program_reads_it(sandbox: Sandbox, project: Path, way: str) -> None:
    jail, permissions = parts(project, sandbox, "read(**/.env)")
    for domain in masking(sandbox):
        assert SECRET not in await ran(jail, domain, READERS[way]), domain
    permissions.rules.forget("read(**/.env)", "deny")
    if way not in ("git", "other spelling"):
        assert SECRET in await ran(jail, masking(sandbox)[-1], READERS[way]), "the way leads there"
