from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_tui.context.prompt import LIMIT, MemoryFiles


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path, Path]:
    config, root = tmp_path / "config", tmp_path / "project"
    cwd = root / "src" / "deep"
    config.mkdir()
    cwd.mkdir(parents=True)
    return config, root, cwd


def test_files_come_from_the_user_then_from_the_root_down(places: tuple[Path, Path, Path]) -> None:
    config, root, cwd = places
    (config / "AGENTS.md").write_text("be brief")
    (root / "AGENTS.md").write_text("use tabs")
    (root / "CLAUDE.md").write_text("not this one")
    (cwd.parent / "CLAUDE.md").write_text("this one")
    (cwd / "AGENTS.md").write_text("and here")
    blocks = MemoryFiles(config, root, cwd).blocks()
    assert [b.label for b in blocks] == [str(config / "AGENTS.md"), "AGENTS.md", "src/CLAUDE.md", "src/deep/AGENTS.md"]
    assert all(b.row == "memory" and b.path for b in blocks)
    assert len({b.group for b in blocks}) == 4
    assert "be brief" in blocks[0].text and "the user's own" in blocks[0].text
    assert "this one" in blocks[2].text and "not this one" not in "".join(b.text for b in blocks)


def test_a_changed_file_is_read_again_and_an_unchanged_one_is_not(
    places: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    config, root, cwd = places
    file = root / "AGENTS.md"
    file.write_text("one")
    memory = MemoryFiles(config, root, cwd)
    first = memory.blocks()
    monkeypatch.setattr("agent_tui.context.prompt.read_text", lambda *a: pytest.fail("read again"))
    assert memory.blocks() == first
    monkeypatch.undo()
    file.write_text("two")
    os.utime(file, ns=(1, 1))
    assert "two" in memory.blocks()[0].text
    file.unlink()
    assert memory.blocks() == []


def test_a_long_file_is_cut_visibly(places: tuple[Path, Path, Path]) -> None:
    config, root, cwd = places
    (root / "AGENTS.md").write_text("é" * (LIMIT + 1))
    (block,) = MemoryFiles(config, root, cwd).blocks()
    assert "cut here" in block.text and block.text.count("é") == LIMIT


def test_a_project_cannot_have_other_files_sent(places: tuple[Path, Path, Path], tmp_path: Path) -> None:
    config, root, cwd = places
    secret = tmp_path / "id_rsa"
    secret.write_text("PRIVATE")
    (root / "AGENTS.md").symlink_to(secret)
    (cwd / "AGENTS.md").write_bytes(b"\0binary")
    os.mkfifo(root / "src" / "AGENTS.md")
    memory = MemoryFiles(config, root, cwd)
    assert memory.blocks() == []
    assert len(memory.problems) == 3
    assert "leads out of the project" in memory.problems[0] and "regular file" in memory.problems[1]
    (config / "AGENTS.md").symlink_to(secret)
    assert len(memory.blocks()) == 1


def test_a_link_inside_the_project_is_followed(places: tuple[Path, Path, Path]) -> None:
    config, root, cwd = places
    (root / "docs.md").write_text("linked")
    (root / "AGENTS.md").symlink_to(root / "docs.md")
    assert "linked" in MemoryFiles(config, root, cwd).blocks()[0].text
