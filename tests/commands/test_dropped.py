"""Files that were dropped: their paths in every quoting, and texts that only name files."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from agent_tui.commands.dropped import dropped_files

pytestmark = pytest.mark.quick


def escaped(path: str) -> str:
    return "".join(c if c.isalnum() or c in "/._-" or ord(c) > 127 else f"\\{c}" for c in path)


FORMS: list[Callable[[str], str]] = [
    str,
    shlex.quote,
    escaped,
    lambda path: f'"{path}"',
    lambda path: f"file://{quote(path)}",
    lambda path: f"file://localhost{quote(path)}",
    lambda path: f"file://{path}",
]
NAMES = ("plain.png", "with blank.png", "it's.png", "ü (1) &.png", "100%.png")


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    folder = tmp_path / "a folder"
    folder.mkdir()
    for name in NAMES:
        (folder / name).write_bytes(b"x")
    return [folder / name for name in NAMES]


@pytest.mark.parametrize("form", FORMS)
def test_one_file_in_every_quoting(paths: list[Path], form: Callable[[str], str]) -> None:
    for path in paths:
        if (text := form(str(path))) != f"file://{path}" or "%" not in text:
            assert dropped_files(text) == dropped_files(f"{text} \n") == [path], text


@pytest.mark.parametrize("between", [" ", "\n", "  \n"])
def test_several_at_once(paths: list[Path], between: str) -> None:
    for form in FORMS[1:5]:
        if form is not FORMS[3]:
            assert dropped_files(between.join(form(str(path)) for path in paths)) == paths
    assert dropped_files(f"{escaped(str(paths[1]))}{between}{shlex.quote(str(paths[2]))}") == paths[1:3]
    assert dropped_files(between.join(map(str, paths[:2]))) == paths[:2]


def test_the_home_folder_is_known(paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert dropped_files("~/a\\ folder/it\\'s.png") == dropped_files("~/a folder/it's.png") == [paths[2]]


def test_a_text_that_names_a_file_is_a_text(paths: list[Path]) -> None:
    path = paths[2]
    for text in (
        "",
        f"see {path} and don't",
        f"{path} please",
        f"{path}\nplease",
        str(path.parent),
        path.name,
        "/",
        "'",
    ):
        assert dropped_files(text) == [], text
    assert dropped_files(f"file://elsewhere{path}") == [] and dropped_files(f"{path}\0") == []
    assert dropped_files(f"{path}\n" * 10_000) == []
