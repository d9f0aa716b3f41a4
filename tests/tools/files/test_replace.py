"""A file gets other content whole or not at all, and keeps everything else that it has."""

from __future__ import annotations

import os
import resource
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from agent_tui.tools.files.beneath import at
from agent_tui.tools.files.text import replace

pytestmark = pytest.mark.quick

OLD, NEW = b"old\n" * 50_000, b"new\n" * 200_000


def put(path: Path, data: bytes, mode: int | None = None) -> None:
    with at(path, make=True) as place:
        replace(place, data, mode)


@contextmanager
def no_more_than(size: int) -> Iterator[None]:
    """Writes beyond so many bytes of a file fail, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def nothing(size: int) -> Iterator[None]:
    """Writes fail after ``size`` bytes altogether, and what was written over stays writable."""
    real, written = os.write, [0]

    def failing(descriptor: int, data: bytes) -> int:
        if written[0] >= size:
            written[0] = -1_000_000_000  # the disk is full once: what is put back needs no room
            raise OSError(28, "No space left on device")
        done = real(descriptor, bytes(data[: max(1, min(len(data), size - max(written[0], 0)))]))
        written[0] += done
        return done

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", failing)
        patch.delattr(os, "posix_fallocate")
        yield


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("full", [no_more_than, nothing])
def test_a_file_is_whole_when_the_disk_is_full(
    tmp_path: Path, linked: bool, full: Callable[[int], AbstractContextManager[None]]
) -> None:
    path = tmp_path / "file"
    path.write_bytes(OLD)
    if linked:
        (tmp_path / "other").hardlink_to(path)
    with full(len(OLD) + 4096), pytest.raises(OSError, match=r"large|space"):
        put(path, NEW)
    assert path.read_bytes() == OLD
    assert {entry.name for entry in tmp_path.iterdir()} == ({"file", "other"} if linked else {"file"})
    put(path, NEW)
    assert path.read_bytes() == NEW
    assert not linked or (tmp_path / "other").read_bytes() == NEW


def test_what_a_file_has_stays(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(OLD)
    path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(path, 1234, 2345)
    before = path.stat()
    names = {"user.origin": b"here"} if _takes_attributes(path) else {}
    for name, value in names.items():
        os.setxattr(path, name, value)
    put(path, b"x")
    after = path.stat()
    assert (after.st_uid, after.st_gid, after.st_mode) == (before.st_uid, before.st_gid, before.st_mode)
    assert {name: os.getxattr(path, name) for name in names} == names
    put(path, b"y", 0o755)
    assert stat.S_IMODE(path.stat().st_mode) == 0o755


def test_access_lists_stay_and_none_is_added(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(OLD)
    # Version 2: owner rw-, user 4711 r--, group ---, mask r--, others ---
    entry = [(1, 6, 0xFFFFFFFF), (2, 4, 4711), (4, 0, 0xFFFFFFFF), (16, 4, 0xFFFFFFFF), (32, 0, 0xFFFFFFFF)]
    acl = b"\2\0\0\0" + b"".join(
        tag.to_bytes(2, "little") + bits.to_bytes(2, "little") + id.to_bytes(4, "little") for tag, bits, id in entry
    )
    try:
        os.setxattr(path, "system.posix_acl_access", acl)
    except (OSError, AttributeError):
        pytest.skip("this file system has no access lists")
    put(path, b"x")
    assert os.getxattr(path, "system.posix_acl_access") == acl
    (tmp_path / "plain").write_bytes(OLD)
    os.setxattr(tmp_path, "system.posix_acl_default", acl)
    put(tmp_path / "plain", b"x")
    assert "system.posix_acl_access" not in os.listxattr(tmp_path / "plain")


def test_a_file_in_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    folder = tmp_path / "closed"
    folder.mkdir()
    (folder / "file").write_bytes(OLD)
    folder.chmod(0o500)
    try:
        put(folder / "file", NEW)
        assert (folder / "file").read_bytes() == NEW
        with nothing(len(OLD) + 4096), pytest.raises(OSError, match="space"):
            put(folder / "file", OLD + NEW)
        assert (folder / "file").read_bytes() == NEW
    finally:
        folder.chmod(0o700)


def _takes_attributes(path: Path) -> bool:
    try:
        os.setxattr(path, "user.try", b"")
        os.removexattr(path, "user.try")
    except (OSError, AttributeError):
        return False
    return True
