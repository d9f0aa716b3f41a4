"""What runs later stays as it is, whatever a held command does in the project, under every means."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent_tui.config import PermissionsConfig, SandboxConfig
from agent_tui.errors import ToolError
from agent_tui.tools.base import Intent
from agent_tui.tools.sandbox import places
from agent_tui.tools.sandbox.box import Sandbox
from agent_tui.tools.sandbox.jail import Jail
from agent_tui.tools.sandbox.protected import FOLDERS, root_places
from tests.support import sandbox_world as world
from tests.support.tool_context import permissions_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="tried on Linux only")

NAMES = sorted({*root_places(), "mise.local.toml", "mise.test.toml", "a.code-workspace"} - {".git", ".hg", ".svn"})


def _jail(sandbox: Sandbox, place: world.Place, base: Path) -> Jail:
    return Jail(SandboxConfig(), place.project, base / "cache", sandbox=sandbox)


@pytest.fixture
def place(tmp_path: Path) -> world.Place:
    place = world.Place(tmp_path / "place")
    place.project.mkdir(parents=True)
    _git(place.project, "init", "-q", ".")
    return place


def _git(folder: Path, *arguments: str) -> None:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *arguments], cwd=folder, env=env, check=True)


async def test_all_protected_names_stay(place: world.Place, sandbox: Sandbox, tmp_path: Path) -> None:
    for name in NAMES:
        path = place.project / name
        if name in FOLDERS or "." not in path.name:
            path.mkdir(parents=True, exist_ok=True)
            path = path / "inside"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    before = world.tree(place.project, times=False)
    script = "\n".join(f"rm -rf '{name}'; echo evil > '{name}'; echo evil > '{name}/inside'" for name in NAMES)
    await world.run(_jail(sandbox, place, tmp_path), "work", place, script, {})
    assert world.tree(place.project, times=False) == before


async def test_none_of_them_goes_with_a_folder_around_it(place: world.Place, sandbox: Sandbox, tmp_path: Path) -> None:
    """A folder above a place that is kept may be moved away with it, and another one made in its stead."""
    module = place.project / ".git" / "modules" / "deep" / "sub"
    deep = [place.project / name for name in root_places() if "/" in name]
    deep += [module / name / "inside" for name in ("hooks", "info")]
    for path in deep:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    (module / "HEAD").write_text("ref: refs/heads/main\n")
    (module / "config").write_text("[core]\n")
    deep.append(module / "config")
    script = "\n".join(
        f"mv '{way}' '{way}-moved' 2> /dev/null"
        for path in deep
        for way in path.relative_to(place.project).parents[:-1]
    )
    script += "\n" + "\n".join(f"mkdir -p '{path.parent}'; echo evil > '{path}'" for path in deep)
    script += f"\n[ -e '{module}/HEAD' ] || echo ref: x > '{module}/HEAD'"
    await world.run(_jail(sandbox, place, tmp_path), "work", place, script, {})
    assert {path: path.read_text() for path in deep} == {
        path: "[core]\n" if path.name == "config" and path.parent == module else "mine" for path in deep
    }


async def test_a_secret_stays_masked_when_a_folder_around_it_is_moved(
    place: world.Place, sandbox: Sandbox, tmp_path: Path
) -> None:
    secret = place.project / "around" / "it" / "secret"
    secret.mkdir(parents=True)
    (secret / "key").write_text(world.SECRET)
    jail = Jail(SandboxConfig(), place.project, tmp_path / "cache", hidden=[secret], sandbox=sandbox)
    await world.run(jail, "work", place, "mv around other; mv around/it around/other", {})
    code, output = await world.run(jail, "work", place, "grep -r SECRET- . || echo none", {})
    assert world.SECRET not in output, (code, output)


async def test_none_of_them_is_made(place: world.Place, sandbox: Sandbox, tmp_path: Path) -> None:
    made = [name for name in NAMES if name in root_places()]
    script = "\n".join(f"mkdir -p '{Path(name).parent}'; echo evil > '{name}'" for name in made)
    await world.run(_jail(sandbox, place, tmp_path), "work", place, script, {})
    assert [name for name in made if (place.project / name).exists()] == []


@pytest.mark.forms(1)
@pytest.mark.parametrize("spelled", ["tools/hooks", '"tools/hooks" ; ours', "./tools/../tools/hooks/"])
async def test_hooks_stay_where_the_configuration_has_them(
    spelled: str, place: world.Place, sandbox: Sandbox, tmp_path: Path
) -> None:
    hook = place.project / "tools" / "hooks" / "pre-commit"
    hook.parent.mkdir(parents=True)
    hook.write_text("#!/bin/sh\nexit 0\n")
    with (place.project / ".git" / "config").open("a") as config:
        config.write(f"[core]\n\thooksPath = {spelled}\n[include]\n\tpath = ../more\n")
    (place.project / "more").write_text("[user]\n\tname = a\n")
    before = world.tree(place.project / "tools", times=False)
    script = "cd tools/hooks; echo evil > pre-commit; echo evil > post-merge; rm pre-commit; cd ../..; echo evil > more"
    await world.run(_jail(sandbox, place, tmp_path), "work", place, script, {})
    assert world.tree(place.project / "tools", times=False) == before
    assert (place.project / "more").read_text() == "[user]\n\tname = a\n"
    permissions = permissions_of(place.project, PermissionsConfig("auto"))
    assert permissions.decide("write", Intent("edit", "write", [hook])).action == "ask"
    assert permissions.decide("write", Intent("edit", "write", [place.project / "tools" / "a"])).action == "allow"


async def test_hooks_stay_that_the_users_own_configuration_has(
    place: world.Place, sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[core] hookspath = ci-hooks\n")
    monkeypatch.setenv("HOME", str(home))
    await world.run(
        _jail(sandbox, place, tmp_path), "work", place, "mkdir ci-hooks && echo evil > ci-hooks/pre-commit", {}
    )
    assert not (place.project / "ci-hooks").exists()


async def test_too_many_folders_of_git_are_said_and_nothing_runs(
    place: world.Place, sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "_GIT_FOLDERS", 3)
    for number in range(4):
        (place.project / ".git" / "modules" / f"{number}").mkdir(parents=True)
    with pytest.raises(ToolError, match="more than 3 folders"):
        _jail(sandbox, place, tmp_path).wrapped(["true"], "work", place.project)


async def test_too_much_to_put_back_is_said_and_nothing_runs(
    place: world.Place, sandbox: Sandbox, tmp_path: Path
) -> None:
    """Where a part of a writable folder cannot be kept read-only; elsewhere there is nothing to put back."""
    (place.project / ".vscode").mkdir()
    with (place.project / ".vscode" / "large").open("wb") as file:
        file.truncate(65_000_000)
    jail = _jail(sandbox, place, tmp_path)
    if sandbox.backend is not None and sandbox.backend.subtracts:
        assert (await world.run(jail, "work", place, "touch new", {}))[0] == 0
    else:
        with pytest.raises(ToolError, match="hold more than can be put back"):
            await world.run(jail, "work", place, "touch new", {})
    assert (place.project / "new").exists() is (sandbox.backend is not None and sandbox.backend.subtracts)
