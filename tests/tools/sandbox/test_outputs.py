"""What a command may write though it only looks: folders of builds that git leaves out, and those the user named."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_tui.config import ToolsConfig
from agent_tui.tools.base import ToolOutcome
from agent_tui.tools.builtin.bash import BashTool
from agent_tui.tools.git.repository import OwnGit
from agent_tui.tools.sandbox.box import Sandbox
from agent_tui.tools.sandbox.jail import Jail
from agent_tui.tools.sandbox.outputs import Lent, Outputs
from tests.support.every import every
from tests.support.sandbox_world import Place, jail_for, make_repository
from tests.support.tool_context import make_context

IGNORED = "build/\ntarget/\n__pycache__/\n.venv/\nnode_modules/\nbuild-secrets/\n.env\n*.db\n.vscode/\n"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    make_repository(tmp_path / "repository")
    place = Place(tmp_path / "base")
    place.make(tmp_path / "repository")
    (place.project / ".gitignore").write_text(IGNORED)
    commit(place.project)
    return place


def commit(project: Path) -> None:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    for command in (["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "y"]):
        subprocess.run(["git", *command], cwd=project, env=env, check=True)


@pytest.fixture
def jail(sandbox: Sandbox, place: Place, tmp_path: Path) -> Iterator[Jail]:
    jail = jail_for(sandbox, place, tmp_path / "cache")
    yield jail
    jail.close()


def looked(jail: Jail, command: str, **more: object) -> ToolOutcome:
    """What comes of a command in ``look``, as mode ``ask`` runs it."""
    context = replace(make_context(jail.root), domain="look", first_look=True, jail=jail)
    return asyncio.run(BashTool(config=ToolsConfig()).run({"command": command, **more}, context))


def wanted(outcome: ToolOutcome) -> str:
    return outcome.stopped.what if outcome.stopped is not None else ""


def test_a_first_build_needs_no_question_and_leaves_what_it_made(jail: Jail) -> None:
    for command in (
        "rm -rf build && mkdir -p build folder/target/deep && echo 1 | tee build/app > folder/target/deep/app",
        "rm -rf build && mkdir build && echo 2 > build/app",
        "rm -rf build",
    ):
        outcome = looked(jail, command)
        assert (wanted(outcome), outcome.is_error) == ("", False), f"{command}: {outcome.text}"
    assert (jail.root / "folder/target/deep/app").read_text() == "1\n"
    assert not (jail.root / "build").exists()


@pytest.mark.slow
def test_a_folder_that_is_only_made_for_the_sandbox_does_not_stay(jail: Jail) -> None:
    outcome = looked(jail, "echo 1 > build/app; echo 1 > src-file")
    assert "src-file" in wanted(outcome), "the question is about what is no build's"
    assert not (jail.root / "build").exists() and not (jail.root / "src-file").exists()
    assert wanted(looked(jail, "mkdir build; rmdir build")) == ""
    assert not (jail.root / "build").exists()


@pytest.mark.parametrize("ended", ["cancelled", "raised"])
async def test_a_folder_that_was_lent_to_a_command_that_never_ran_does_not_stay(
    jail: Jail, monkeypatch: pytest.MonkeyPatch, ended: str
) -> None:
    lend, lending = jail.outputs.lent, threading.Event()

    def slowly(*asked: Any) -> Lent:
        lent = lend(*asked)
        assert (jail.root / "build").exists()
        lending.set()
        time.sleep(0.2)
        return lent

    def refused(*asked: object) -> None:
        raise OSError("no sockets are left")

    monkeypatch.setattr(jail.outputs, "lent", slowly)
    if ended == "raised":
        monkeypatch.setattr("agent_tui.tools.sandbox.jail.Attempts", refused)
    looking = asyncio.create_task(jail.look(["true"], jail.root, [jail.root / "build"], False))
    await asyncio.to_thread(lending.wait, 20)
    if ended == "cancelled":
        looking.cancel()
    with pytest.raises((asyncio.CancelledError, OSError)):
        await looking
    async with asyncio.timeout(20):
        while (jail.root / "build").exists():  # noqa: ASYNC110 - the disk tells no event
            await asyncio.sleep(0.02)


def test_all_looks_of_a_command_share_one_time_limit(jail: Jail) -> None:
    outcome = looked(jail, "sleep 0.6; mkdir build", timeout=0.8)
    assert "[timed out after 0.8 s and was ended" in outcome.text and not (jail.root / "build").exists()


def test_a_git_that_takes_too_long_is_asked_again(jail: Jail, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = [jail.root / "folder/target/x"]
    answer = OwnGit.answer
    for late in ("ls-tree", "cat-file", "check-ignore"):

        def slow(git: OwnGit, folder: Path, *words: str, timeout: float, late: str = late) -> bytes | None:
            return answer(git, folder, *words, timeout=0 if late in words else timeout)

        outputs = Outputs(jail.root)
        with monkeypatch.context() as patched:
            patched.setattr(OwnGit, "answer", slow)
            assert not outputs.wanted(tried), late
        assert outputs.wanted(tried), late


def test_the_question_says_what_is_there_already(jail: Jail) -> None:
    outcome = looked(jail, "mkdir build && echo 1 > build/app && echo 2 > src-file")
    assert "src-file" in wanted(outcome) and "has already written in build/" in wanted(outcome)
    assert (jail.root / "build/app").read_text() == "1\n"


@pytest.mark.slow
@every(
    "command",
    [
        "echo x > .env",
        "echo x > data.db",
        "mkdir build-secrets",
        "mkdir .vscode",
        "mkdir out",
        "mkdir .git/build",
        "echo x > file",
    ],
)
def test_what_is_no_build_folder_that_git_leaves_out_is_asked_about(jail: Jail, command: str) -> None:
    before = sorted(path.relative_to(jail.root) for path in jail.root.rglob("*"))
    outcome = looked(jail, command)
    assert wanted(outcome) or outcome.is_error
    assert sorted(path.relative_to(jail.root) for path in jail.root.rglob("*")) == before


def test_a_folder_with_a_file_that_git_knows_is_not_a_builds(jail: Jail) -> None:
    (jail.root / "build").mkdir()
    (jail.root / "build/kept").write_text("kept")
    subprocess.run(["git", "add", "-f", "build/kept"], cwd=jail.root, check=True)
    assert wanted(looked(jail, "echo x > build/kept"))
    assert (jail.root / "build/kept").read_text() == "kept"


def test_rules_that_are_written_during_the_session_do_not_count(jail: Jail) -> None:
    (jail.root / ".gitignore").write_text("out/\n")
    (jail.root / "folder/.gitignore").write_text("dist/\n")
    assert wanted(looked(jail, "mkdir out")) and wanted(looked(jail, "mkdir folder/dist"))
    commit(jail.root)
    assert wanted(looked(jail, "mkdir out")) and wanted(looked(jail, "mkdir folder/dist"))
    assert not Outputs(jail.root).wanted([jail.root / "build/x"])
    assert Outputs(jail.root).wanted([jail.root / "folder/dist/x"])


@pytest.mark.slow
def test_a_folder_that_leads_out_is_not_written(jail: Jail, place: Place) -> None:
    (jail.root / "build").symlink_to(place.outside)
    (jail.root / "target").mkdir()
    (jail.root / "target/out").symlink_to(place.outside)
    os.link(jail.root / "file", jail.root / "target/file")
    os.link(place.outside / "file", jail.root / "target/secret")
    before = (place.outside / "file").read_text()
    looked(jail, "echo x > build/file")
    looked(jail, "echo x > target/out/file")
    looked(jail, "echo x > target/file; echo x > target/secret")
    assert (place.outside / "file").read_text() == before and (jail.root / "file").read_text() == "file\n"


def test_a_way_that_became_a_link_is_noticed(jail: Jail, place: Place) -> None:
    (jail.root / "folder/target").mkdir()
    (place.outside / "target").mkdir()
    attempts = jail.attempts([jail.root / "folder/target"])
    assert list(attempts.lent.places) == [jail.root / "folder/target"]
    (jail.root / "folder").rename(jail.root / "away")
    (jail.root / "folder").symlink_to(place.outside)
    launch = jail.wrapped(
        attempts.wrapped(["bash", "-c", "echo x > folder/target/x"]),
        "look",
        jail.root,
        lent=attempts.lent,
    )
    with launch:
        attempts.begin()
        subprocess.run(launch.argv, cwd=jail.root, env=launch.env, pass_fds=launch.pass_fds, check=False)
    attempts.end()
    assert list((place.outside / "target").iterdir()) == []


def test_what_was_given_by_a_command_of_the_session_cannot_be_linked_in(jail: Jail) -> None:
    (jail.root / "build").mkdir()
    looked(jail, "ln file build/file; ln -s ../file build/link; echo x > build/file; echo x > build/link")
    assert (jail.root / "file").read_text() == "file\n"


@pytest.mark.slow
def test_a_folder_that_a_command_tries_to_make_can_be_named_by_the_user(jail: Jail) -> None:
    for command in ("mkdir node_modules && echo x > node_modules/x", "mkdir -p node_modules/deep/er"):
        outcome = looked(jail, command)
        assert outcome.stopped is not None and outcome.stopped.rules == ("edit(./node_modules/**)",), command
    for command in ("mkdir fresh", "echo x > node_modules", "mkdir .vscode", "mkdir node_modules; mkdir .venv"):
        outcome = looked(jail, command)
        assert outcome.stopped is None or outcome.stopped.rules == (), command
        assert outcome.is_error or outcome.stopped is not None, command


@pytest.mark.parametrize("made", ["build", "folder/Cargo.lock"])
def test_what_was_made_for_a_command_and_is_refused_is_gone(
    made: str, jail: Jail, monkeypatch: pytest.MonkeyPatch
) -> None:
    (jail.root / "folder/Cargo.toml").write_text("")
    commit(jail.root)
    monkeypatch.setattr("agent_tui.tools.sandbox.outputs._is_mounted", lambda path: True)
    lent = jail.outputs.lent([], [jail.root / made])
    assert not lent.places and not (jail.root / made).exists()


@pytest.mark.slow
def test_a_folder_that_the_user_named_is_written_until_the_program_ends(jail: Jail) -> None:
    (jail.root / ".venv").mkdir()
    outcome = looked(jail, "echo x > .venv/x")
    assert outcome.stopped is not None and outcome.stopped.rules == ("edit(./.venv/**)",)
    jail.outputs.granted = lambda: [jail.root / ".venv", jail.root / "folder"]
    assert wanted(looked(jail, "echo x > .venv/x")) == "" and (jail.root / ".venv/x").exists()
    assert wanted(looked(jail, "echo x > folder/x")), "git does not leave it out"


@pytest.mark.slow
def test_a_lock_file_is_made_by_a_first_build_and_changed_by_none(jail: Jail) -> None:
    (jail.root / "folder/Cargo.toml").write_text("")
    commit(jail.root)
    build = "cd folder && echo lock >> Cargo.lock && mkdir targetXY && mv targetXY target; mkdir -p target/debug"
    looked(jail, build)
    assert (jail.root / "folder/Cargo.lock").read_text().startswith("lock\n")
    kept = (jail.root / "folder/Cargo.lock").read_text()
    assert wanted(looked(jail, "echo other > folder/Cargo.lock"))
    assert (jail.root / "folder/Cargo.lock").read_text() == kept


@pytest.mark.slow
def test_a_socket_of_its_own_needs_no_question_where_nobody_listens(
    jail: Jail, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Landlock alone cannot tell its own from those of others."""
    own = "python3 -c \"import os, socket as s; s.socket(s.AF_UNIX).bind(os.environ['TMPDIR'] + '/s')\""
    backend = jail.tried().backend
    assert backend is not None and (wanted(looked(jail, own)) == "") == backend.own_tmp
    with socket.socket(socket.AF_UNIX) as theirs:
        monkeypatch.chdir(jail.root)
        theirs.bind("folder/s")
        theirs.listen()
        assert wanted(looked(jail, own)), "somebody listens in the project"
