"""What is watched is seen by whatever way it is named; where nothing can be watched, that is known."""

from __future__ import annotations

import ctypes
import errno
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent_tui.tools.files.file_watch import FileWatch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="watches on Linux only")


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "c/b").mkdir(),
        lambda root: (root / "real").rename(root / "old"),
        lambda root: (root / "link").unlink(),
        lambda root: (root / "real/x").write_text("other"),
    ],
    ids=["a folder that was not there", "the folder", "the link to it", "the file"],
)
def test_each_way_to_a_file_is_watched(tmp_path: Path, change: Callable[[Path], object]) -> None:
    for name in ("a", "c", "real"):
        (tmp_path / name).mkdir()
    (tmp_path / "real/x").write_text("")
    (tmp_path / "link").symlink_to("real")
    watch = FileWatch([f"{tmp_path}/{name}" for name in ("a/b/x", "c/b/x", "link/x", "real/x")], str(tmp_path))
    assert not watch.look()
    change(tmp_path)
    assert watch.look()
    watch.close()


def test_where_no_watch_is_left_it_sees_nothing_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    libc = ctypes.CDLL(None, use_errno=True)

    def none_left(*_: object) -> int:
        ctypes.set_errno(errno.ENOSPC)
        return -1

    fake = SimpleNamespace(inotify_init1=libc.inotify_init1, inotify_add_watch=none_left)
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: fake)
    watch = FileWatch([str(tmp_path / "x")], str(tmp_path))
    assert not watch.sees and not watch.look()
