"""What the supervisor puts back, without a command: the states a folder can be in before and after."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_tui.tools.sandbox import watch

pytestmark = pytest.mark.quick

NAMES = (".git/hooks", ".git/config", ".git/info", ".envrc", ".vscode", "deep/er/place")


def before(folder: Path) -> None:
    (folder / ".git" / "hooks").mkdir(parents=True)
    (folder / ".git" / "hooks" / "pre-commit").write_text("mine")
    (folder / ".git" / "hooks" / "pre-commit").chmod(0o755)
    (folder / ".git" / "config").write_text("[core]\n")
    (folder / ".vscode").mkdir()
    (folder / ".vscode" / "tasks.json").write_text("{}")
    (folder / ".vscode" / "link").symlink_to("tasks.json")


def state(folder: Path) -> dict[str, object]:
    def what(path: Path) -> object:
        if path.is_symlink():
            return str(path.readlink())
        return path.read_text() if path.is_file() else "folder", path.stat().st_mode

    return {str(path.relative_to(folder)): what(path) for path in sorted(folder.rglob("*"))}


def rename_git(folder: Path) -> None:
    (folder / ".git").rename(folder / "gone")
    (folder / ".git").symlink_to("gone")


def removed(path: Path) -> Path:
    """The same place with nothing at it."""
    if path.is_dir() and not path.is_symlink():
        for inside in path.iterdir():
            inside.unlink()
        path.rmdir()
    else:
        path.unlink()
    return path


def with_parents(path: Path) -> Path:
    path.parent.mkdir(parents=True)
    return path


def closed(folder: Path, file: Path) -> None:
    """Writes ``file`` and closes the folders around it, up to ``folder``, to their owner."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("evil")
    for place in file.parents:
        place.chmod(0)
        if place == folder:
            return


CHANGES: dict[str, Callable[[Path], object]] = {
    "content": lambda f: (f / ".git" / "config").write_text("[core]\n\tpager = evil\n"),
    "mode": lambda f: (f / ".git" / "hooks" / "pre-commit").chmod(0o644),
    "removed": lambda f: (f / ".git" / "config").unlink(),
    "new inside": lambda f: (f / ".git" / "hooks" / "post-merge").write_text("evil"),
    "new outright": lambda f: (f / ".envrc").write_text("evil"),
    "a link instead": lambda f: removed(f / ".git" / "config").symlink_to("/etc/passwd"),
    "a link elsewhere": lambda f: removed(f / ".vscode" / "link").symlink_to("/etc"),
    "a folder instead": lambda f: removed(f / ".git" / "config").mkdir(),
    "a file instead": lambda f: removed(f / ".vscode").write_text("evil"),
    "closed": lambda f: (f / ".vscode").chmod(0),
    "closed with more in it": lambda f: closed(f / ".vscode", f / ".vscode" / "more"),
    "a closed folder in a closed folder": lambda f: closed(f / ".envrc", f / ".envrc" / "x" / "y"),
    "the way closed": lambda f: closed(f / ".git", f / ".git" / "info" / "attributes"),
    "the project closed": lambda f: closed(f, f / ".envrc"),
    "a new parent": lambda f: with_parents(f / "deep" / "er" / "place").write_text("x"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changed_is_undone_and_said(change: str, tmp_path: Path) -> None:
    folder, held = tmp_path / "project", tmp_path / "held"
    before(folder)
    was, mode = state(folder), folder.stat().st_mode
    keeper = watch.Keeper(str(folder), NAMES, str(held))
    CHANGES[change](folder)
    words = keeper.put_back()
    assert folder.stat().st_mode == mode
    now = {name: what for name, what in state(folder).items() if not name.startswith("deep") or "place" in name}
    assert now == was
    assert words and all(word in ("kept", "held") for word, _ in words)
    assert keeper.put_back() == []
    watch.Keeper(str(folder), NAMES, str(held))  # the next command starts


def test_a_folder_that_was_closed_before_stays_so(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    before(folder)
    (folder / ".vscode").chmod(0)
    keeper = watch.Keeper(str(folder), NAMES, str(tmp_path / "held"))
    assert keeper.put_back() == [] and (folder / ".vscode").stat().st_mode & 0o777 == 0
    (folder / ".vscode").chmod(0o700)
    assert ("kept", str(folder / ".vscode")) in keeper.put_back()
    assert (folder / ".vscode").stat().st_mode & 0o777 == 0
    (folder / ".vscode").chmod(0o700)


def test_a_repository_that_was_moved_away_does_not_lead_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    before(folder)
    keeper = watch.Keeper(str(folder), NAMES, str(tmp_path / "held"))
    rename_git(folder)
    assert ("held", str(folder / ".git")) in keeper.put_back()
    assert not (folder / ".git").is_symlink()
    assert (folder / ".git" / "hooks" / "pre-commit").read_text() == "mine"


@pytest.mark.parametrize("remembered", [False, True])
def test_a_link_that_is_put_in_the_way_meanwhile_is_not_followed(
    remembered: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By another command, which runs on: what is outside is neither taken away nor made."""
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    place, theirs = folder / "deep" / "er" / "place", outside / "er" / "place"
    place.parent.mkdir(parents=True)
    theirs.parent.mkdir(parents=True)
    (place if remembered else theirs).write_text("mine")
    keeper = watch.Keeper(str(folder), ("deep/er/place",), str(tmp_path / "held"))
    removed(place) if remembered else place.write_text("evil")
    looked = watch.Keeper._through_link

    def late(self: watch.Keeper, path: str) -> bool:
        found = looked(self, path)
        if path == str(place) and not (folder / "deep").is_symlink():
            (folder / "deep").rename(folder / "gone")
            (folder / "deep").symlink_to(outside)
        return found

    monkeypatch.setattr(watch.Keeper, "_through_link", late)
    assert ("changed", str(place)) in keeper.put_back()
    assert theirs.exists() != remembered


def test_what_git_makes_itself_may_stay(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    keeper = watch.Keeper(str(folder), NAMES, str(tmp_path / "held"))
    (folder / ".git" / "hooks").mkdir(parents=True)
    (folder / ".git" / "hooks" / "pre-push.sample").write_text("sample")
    (folder / ".git" / "hooks" / "pre-push").write_text("evil")
    (folder / ".git" / "config").write_text('[core]\n\tbare = false\n[remote "origin"]\n\turl = x\n')
    assert keeper.put_back() == [("held", str(folder / ".git" / "hooks" / "pre-push"))]
    assert (folder / ".git" / "hooks" / "pre-push.sample").exists() and (folder / ".git" / "config").exists()


@pytest.mark.parametrize(
    "config",
    [
        "[core]\n\tfsmonitor = ./x\n",
        "[core] pager = x\n",
        "[alias]\n\tst = !x\n",
        "[include]\n\tpath = x\n",
        "[core]\n\tbare = false\\\n\tpager = x\n",
        '[filter "x"]\n\tclean = x\n',
        "[core]\n\tsshCommand = x\n",
        "[user]\n\tname = a\n[credential]\n\thelper = !x\n",
    ],
)
def test_a_new_configuration_that_names_programs_goes(config: str, tmp_path: Path) -> None:
    keeper = watch.Keeper(str(tmp_path), NAMES, str(tmp_path / "held"))
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text(config)
    assert keeper.put_back() == [("held", str(tmp_path / ".git" / "config"))]


@pytest.mark.parametrize("limit", ["MAX_BYTES", "MAX_ENTRIES"])
def test_what_is_too_much_to_remember_is_not_begun(limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before(tmp_path)
    monkeypatch.setattr(watch, limit, 3)
    with pytest.raises(watch.TooLarge) as refused:
        watch.Keeper(str(tmp_path), NAMES, str(tmp_path / "held"))
    assert refused.value.args[0].startswith(str(tmp_path))


@pytest.mark.parametrize("name", [".vscode", "deep/er/place"])
def test_what_a_command_makes_too_much_of_goes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "project"
    before(folder)
    was = state(folder)
    keeper = watch.Keeper(str(folder), NAMES, str(tmp_path / "held"))
    monkeypatch.setattr(watch, "MAX_ENTRIES", 8)
    (folder / name).mkdir(parents=True, exist_ok=True)
    for number in range(9):
        (folder / name / f"{number}").write_text("evil")
    keeper.put_back()
    assert {path: what for path, what in state(folder).items() if not path.startswith("deep")} == was
    assert not (folder / "deep" / "er" / "place").exists()


def test_starters_import_nothing_of_the_program() -> None:
    """They run by themselves, in an interpreter that knows the standard library and this folder."""
    import subprocess

    from agent_tui.tools.sandbox.start import FOLDER

    code = (
        "import sys; sys.path.append(sys.argv[1]); import supervise, watch, confine; "
        "print(sorted(m for m in sys.modules if m.startswith('agent_tui') or m in ('json', 're', 'subprocess')))"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code, str(FOLDER)], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr
