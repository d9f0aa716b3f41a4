"""Folders of a process that was killed are removed by the next one, and nobody else's."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from agent_tui.store.locks import PREFIX, PassingFolder, remove_left_behind
from agent_tui.store.store import Store

LIVES = """
import sys, time
from pathlib import Path
from agent_tui.store.store import Store
store = Store.ephemeral(Path(sys.argv[1]))
print(store.sessions.create("/p", "demo").id, flush=True)
time.sleep(60)
"""


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made."""
    folder = tmp_path / "there"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_what_a_killed_process_left_is_removed_with_its_saved_output(there: Path, tmp_path: Path) -> None:
    saved = tmp_path / "output"
    with subprocess.Popen(
        [sys.executable, "-c", LIVES, str(tmp_path / "sessions.db")], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        session = process.stdout.readline().strip()
        assert session.startswith("ses_")
        (saved / session).mkdir(parents=True)
        (saved / "ses_other").mkdir()
        assert remove_left_behind(saved) == 0 and len(list(there.iterdir())) == 1, "it is in use"
        process.send_signal(signal.SIGKILL)
    assert remove_left_behind(saved) == 1
    assert list(there.iterdir()) == []
    assert [entry.name for entry in saved.iterdir()] == ["ses_other"]
    assert remove_left_behind(saved) == 0


def test_a_store_that_is_closed_leaves_nothing(there: Path, tmp_path: Path) -> None:
    store = Store.ephemeral(tmp_path / "sessions.db")
    assert remove_left_behind(tmp_path) == 0
    store.close()
    assert list(there.iterdir()) == []


def test_a_copy_of_sessions_takes_none_of_their_output_along(there: Path, tmp_path: Path) -> None:
    """It is left by a process that only looked: its sessions live on elsewhere."""
    folder = PassingFolder()
    with Store.open(folder.path / "sessions.db") as store:
        session = store.sessions.create("/p", "demo").id
    (tmp_path / "output" / session).mkdir(parents=True)
    left = there / f"{PREFIX}left"
    folder.path.rename(left)
    folder.cleanup()
    assert remove_left_behind(tmp_path / "output") == 1
    assert not left.exists() and (tmp_path / "output" / session).exists()


def test_what_is_not_proven_ours_stays(there: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (elsewhere / "in-use.lock").touch()
    unmarked = there / f"{PREFIX}unmarked"
    unmarked.mkdir(mode=0o700)
    open_to_all = there / f"{PREFIX}open"
    open_to_all.mkdir()
    open_to_all.chmod(0o755)
    (open_to_all / "in-use.lock").touch()
    linked_mark = there / f"{PREFIX}linked"
    linked_mark.mkdir(mode=0o700)
    (linked_mark / "in-use.lock").symlink_to(elsewhere / "in-use.lock")
    (there / f"{PREFIX}link").symlink_to(elsewhere)
    (there / "agent-tui-other").mkdir(mode=0o700)
    assert remove_left_behind(tmp_path) == 0
    assert len(list(there.iterdir())) == 5 and elsewhere.exists()
