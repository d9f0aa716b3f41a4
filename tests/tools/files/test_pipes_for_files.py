"""Where a pipe or a device lies in the place of a file that is read by itself, nobody waits for it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType

import pytest

from agent_tui.context.folder import identity_of
from agent_tui.paths import read_regular
from agent_tui.tools.git.repository import descends, find_repository, git_places, nearest_git
from agent_tui.tools.rules.rule import configuration
from agent_tui.tools.sandbox.network import users_own
from agent_tui.tools.sandbox.places import linked_repository
from agent_tui.tools.sandbox.protected import led_to

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes in the file system")


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    def over(number: int, frame: FrameType | None) -> None:
        raise AssertionError("it waits for a pipe")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    for name in (".gitconfig", ".npmrc", ".cargo/config.toml", ".config/pip/pip.conf"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(home / name)
    return home


READERS: dict[str, Callable[[Path], object]] = {
    "which repository it is": identity_of,
    "the repository": find_repository,
    "the nearest repository": nearest_git,
    "its places": lambda root: git_places(root / ".git"),
    "its submodules": lambda root: descends(root / ".git", root),
    "the worktree": linked_repository,
    "what git's configuration names": led_to,
    "the configuration that was judged": configuration,
    "the user's own registries": lambda root: users_own({}, [root]),
}
PLACES = ("config", "HEAD", "commondir", "index", "../.gitmodules", "../.npmrc", "../included", "..")


@pytest.mark.parametrize("at", PLACES)
@pytest.mark.parametrize("read", READERS.values(), ids=READERS.keys())
def test_nobody_waits_for_a_pipe(home: Path, tmp_path: Path, read: Callable[[Path], object], at: str) -> None:
    root = tmp_path / "project"
    root.mkdir()
    subprocess.run(["git", "init", "-q", root], check=True, env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull})
    with (root / ".git/config").open("a") as config:
        config.write("[include]\n\tpath = ../included\n")
    place = root / ".git" / at
    if at == "..":
        (root / ".git").rename(tmp_path / "elsewhere")
        place = root / ".git"
    place.unlink(missing_ok=True)
    os.mkfifo(place)
    with suppress(ValueError, OSError):
        read(root)


def test_what_is_no_regular_file_is_an_error_and_links_are_followed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    os.close(free := os.dup(0))
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(OSError, match="not a regular file"):
            read_regular(path, 10)
    os.close(again := os.dup(0))
    assert again == free, "a descriptor was left open"
    (tmp_path / "file").write_text("0123456789")
    (tmp_path / "link").symlink_to("file")
    assert (read_regular(tmp_path / "link", 4), read_regular(tmp_path / "link", -1)) == (b"0123", b"0123456789")
