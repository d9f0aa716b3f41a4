"""What is read and written without a call: links, deny rules, what takes a name between the look and the opening."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent_tui.config import PermissionsConfig
from agent_tui.errors import AgentError
from agent_tui.tools.files import access
from agent_tui.tools.files.access import BadFile, FileAccess, Reach, follow
from agent_tui.tools.permissions.permissions import Permissions
from tests.support.tool_context import permissions_of

pytestmark = pytest.mark.quick

SECRET = "out" + "side-key"


@dataclass
class Here:
    """A project with ``docs/a.md`` and ``.env``, and a key outside of it."""

    root: Path
    key: Path
    permissions: Permissions

    @property
    def files(self) -> FileAccess:
        return self.permissions.files

    def link(self, name: str, to: Path | str) -> Path:
        (self.root / name).symlink_to(to)
        return self.root / name


Make = Callable[..., Here]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def build(*deny: str) -> Here:
        root, key = tmp_path / "project", tmp_path / "keys" / "id_rsa"
        for file, text in ((root / "docs" / "a.md", "harmless"), (root / ".env", SECRET), (key, SECRET)):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return Here(root, key, permissions_of(root, PermissionsConfig(deny=list(deny))))

    return build


def test_links_are_followed_one_by_one(make: Make, tmp_path: Path) -> None:
    here = make()
    one = here.link("one", "docs/../two")
    two = here.link("two", here.key.parent)
    assert follow(one / "id_rsa") == (here.key, [one, two])
    assert follow(here.root / "gone" / "x") == (here.root / "gone" / "x", [])
    with pytest.raises(OSError, match="symbolic links"):
        follow(here.link("self", "self"))


WAYS: list[tuple[str, Callable[[Here], Path], str]] = [
    ("itself", lambda h: h.root / "docs/a.md", "project own exact"),
    ("a link inside", lambda h: h.link("l", "docs/a.md"), "project own"),
    ("a link to a key", lambda h: h.link("l", h.key), ""),
    ("a linked folder", lambda h: h.link("l", h.key.parent) / "id_rsa", ""),
    ("a link over a link", lambda h: (h.link("k", h.key), h.link("l", "k"))[1], ""),
    ("upwards", lambda h: h.root / "docs/../../keys/id_rsa", "own exact"),
    ("the key itself", lambda h: h.key, "own exact"),
    ("a user's link", lambda h: _linked(h.key.parent / "mine", h.key), "own"),
    ("a user's link into the project, which leads out", lambda h: _linked(h.key.parent / "in", h.link("l", h.key)), ""),
    ("a folder", lambda h: h.root / "docs", ""),
    ("nothing", lambda h: h.root / "gone", ""),
    ("a device by a link", lambda h: h.link("l", "/dev/zero"), ""),
    ("a device", lambda h: Path("/dev/zero"), ""),
    ("the environment", lambda h: Path("/proc/self/environ"), ""),
    ("a pipe", lambda h: _pipe(h.root / "pipe"), ""),
]


def _linked(place: Path, to: Path) -> Path:
    place.symlink_to(to)
    return place


def _pipe(place: Path) -> Path:
    os.mkfifo(place)
    return place


@pytest.mark.parametrize("reach", ["project", "own", "exact"])
@pytest.mark.parametrize(("way", "reaches"), [each[1:] for each in WAYS], ids=[each[0] for each in WAYS])
def test_each_reach_has_its_border(make: Make, way: Callable[[Here], Path], reaches: str, reach: Reach) -> None:
    here = make()
    path = way(here)
    if reach in reaches.split():
        assert here.files.read_beginning(path, 100, reach) in ("harmless", SECRET)
    else:
        with pytest.raises(BadFile):
            here.files.read(path, 100, reach)


DENIED: list[tuple[str, Callable[[Here], Path], str]] = [
    ("by its name", lambda h: h.root / ".env", "read(.env)"),
    ("by another spelling", lambda h: h.root / "docs" / ".." / ".env", "read(.env)"),
    ("by a link", lambda h: h.link("l", ".env"), "read(.env)"),
    ("by the link's own name", lambda h: h.link("l", "docs/a.md"), "read(l)"),
    ("by a link on the way", lambda h: (h.link("k", "docs/a.md"), h.link("l", "k"))[1], "read(k)"),
    ("by a hard link", lambda h: _other_name(h.root / "x", h.root / ".env"), "read(.env)"),
    ("by a hard link to outside", lambda h: _other_name(h.root / "x", h.key), "read({key})"),
    ("by its folder", lambda h: h.root / "docs/a.md", "read(docs/**)"),
    ("outside", lambda h: h.key, "read({key})"),
]


def _other_name(place: Path, of: Path) -> Path:
    place.hardlink_to(of)
    return place


@pytest.mark.parametrize(("way", "rule"), [each[1:] for each in DENIED], ids=[each[0] for each in DENIED])
def test_what_a_rule_denies_is_not_read_however_it_is_named(make: Make, way: Callable[[Here], Path], rule: str) -> None:
    here = make()
    path = way(here)
    reach: Reach = "own"
    before = here.files.stamp(path)
    assert here.files.read(path, 100, reach).data
    here.permissions.rules.remember([rule.replace("{key}", str(here.key))], "deny")
    with pytest.raises(BadFile, match="deny rule"):
        here.files.read(path, 100, reach)
    assert here.files.stamp(path) != before, "what was read of it has to be looked at again"


@pytest.mark.parametrize("swapped", ["the file", "its folder", "a hard link"])
def test_what_takes_its_place_after_the_look_is_not_read(
    make: Make, monkeypatch: pytest.MonkeyPatch, swapped: str
) -> None:
    here = make("read(.env)")
    file, folder = here.root / "docs" / "a.md", here.root / "docs"
    (here.key.parent / "a.md").write_text(SECRET)

    def swap(path: Path) -> tuple[Path, list[Path]]:
        looked = follow(path)
        match swapped:
            case "the file":
                file.unlink()
                file.symlink_to(here.key)
            case "its folder":
                folder.rename(here.root / "aside")
                folder.symlink_to(here.key.parent)
            case _:
                file.unlink()
                file.hardlink_to(here.root / ".env")
        return looked

    monkeypatch.setattr(access, "follow", swap)
    with pytest.raises(BadFile):
        here.files.read(file, 100, "project")


def test_only_so_much_is_read_and_the_cut_is_seen(make: Make) -> None:
    here = make()
    (here.root / "long").write_text("é" * 1_000)
    assert here.files.read_beginning(here.root / "long", 10, "project").startswith("é" * 10 + "\n[… cut here")
    with pytest.raises(BadFile, match="larger than"):
        here.files.read_whole(here.root / "long", 100, "project")


def test_what_the_user_gave_at_the_start_may_be_a_pipe_of_their_shell_and_counts_as_read(make: Make) -> None:
    here = make()
    reading, writing = os.pipe()
    os.write(writing, b"from the shell")
    os.close(writing)
    assert here.files.read_given(Path(f"/dev/fd/{reading}"), 100) == b"from the shell"
    os.close(reading)
    assert here.files.read_given(here.root / "docs/a.md", 100) and here.permissions.reach.since() == ""
    assert here.files.read_given(here.key, 100)
    assert here.permissions.reach.since() == f"reading {here.key} from outside the project"


def test_a_new_file_is_written_and_none_over_another(make: Make) -> None:
    here = make()
    target = here.root / "new" / "run.sh"
    with pytest.raises(AgentError, match="No such file"):
        here.files.write(target, b"one")
    here.files.write(target, b"one", make=True, mode=0o755)
    assert target.read_bytes() == b"one" and os.access(target, os.X_OK)
    with pytest.raises(FileExistsError):
        here.files.write(target, b"two")
    assert target.read_bytes() == b"one"


def test_what_is_written_over_keeps_its_mode_and_changes_no_other_name(make: Make) -> None:
    here = make()
    target = _other_name(here.root / "x", here.key)
    here.key.chmod(0o640)
    here.files.write(target, b"export", over=True)
    assert (target.read_text(), here.key.read_text()) == ("export", SECRET)
    assert target.stat().st_mode & 0o777 == 0o640


OVER: list[tuple[str, Callable[[Here], Path]]] = [
    ("a link", lambda h: h.link("x", h.key)),
    ("a link to nothing", lambda h: h.link("x", h.key.parent / "new")),
    ("a linked folder", lambda h: h.link("d", h.key.parent) / "new"),
    ("a linked folder inside", lambda h: h.link("d", "docs") / "new"),
    ("a pipe", lambda h: _pipe(h.root / "pipe")),
]


@pytest.mark.parametrize("over", [True, False])
@pytest.mark.parametrize("way", [each[1] for each in OVER], ids=[each[0] for each in OVER])
def test_nothing_is_written_over_a_projects_link(make: Make, way: Callable[[Here], Path], over: bool) -> None:
    here = make()
    path = way(here)
    with pytest.raises((AgentError, FileExistsError), match=r"is a link|regular|exists"):
        here.files.write(path, b"export", over=over, make=True)
    assert sorted(path.name for path in here.key.parent.iterdir()) == ["id_rsa"] and here.key.read_text() == SECRET
    assert [path.name for path in (here.root / "docs").iterdir()] == ["a.md"]


def test_a_users_own_link_outside_the_project_is_followed_to_write(make: Make) -> None:
    here = make()
    _linked(here.key.parent / "mine", here.key.parent)
    here.files.write(here.key.parent / "mine" / "new", b"export")
    assert (here.key.parent / "new").read_bytes() == b"export"
