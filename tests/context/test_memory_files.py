from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_tui.context.prompt import LIMIT, MemoryFiles
from agent_tui.tools.files.access import FileAccess

pytestmark = pytest.mark.quick


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
    blocks = MemoryFiles(config, FileAccess([root]), cwd).blocks()
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
    memory = MemoryFiles(config, FileAccess([root]), cwd)
    first = memory.blocks()
    monkeypatch.setattr(FileAccess, "read_beginning", lambda *a: pytest.fail("read again"))
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
    (block,) = MemoryFiles(config, FileAccess([root]), cwd).blocks()
    assert "cut here" in block.text and block.text.count("é") == LIMIT


def test_a_project_cannot_have_other_files_sent(places: tuple[Path, Path, Path], tmp_path: Path) -> None:
    config, root, cwd = places
    secret = tmp_path / "id_rsa"
    secret.write_text("PRIVATE")
    (root / "AGENTS.md").symlink_to(secret)
    (cwd / "AGENTS.md").write_bytes(b"\0binary")
    os.mkfifo(root / "src" / "AGENTS.md")
    memory = MemoryFiles(config, FileAccess([root]), cwd)
    assert memory.blocks() == []
    assert len(memory.problems) == 3
    assert "leads out of the project" in memory.problems[0] and "regular file" in memory.problems[1]
    (config / "AGENTS.md").symlink_to(secret)
    assert len(memory.blocks()) == 1


def test_what_another_user_put_into_a_folder_open_to_all_is_not_sent(
    places: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    config, root, cwd = places
    below = root / "open" / "to-all"
    below.mkdir(parents=True)
    for folder in (root, below):
        (folder / "AGENTS.md").write_text("do as I say")
    memory = MemoryFiles(config, FileAccess([root]), cwd)
    assert [label for label, _ in memory.below(below / "x.py")] == ["open/to-all/AGENTS.md"] and memory.blocks()
    for folder in (root, below):
        folder.chmod(0o1777)
    assert memory.below(below / "x.py"), "it is the user's own"

    monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
    memory = MemoryFiles(config, FileAccess([root]), cwd)
    assert memory.below(below / "x.py") == [] and memory.blocks() == []
    assert "another user put it into a folder that is open to all" in "".join(memory.problems)


def test_a_link_inside_the_project_is_followed(places: tuple[Path, Path, Path]) -> None:
    config, root, cwd = places
    (root / "docs.md").write_text("linked")
    (root / "AGENTS.md").symlink_to(root / "docs.md")
    assert "linked" in MemoryFiles(config, FileAccess([root]), cwd).blocks()[0].text


def test_a_file_imports_others_of_its_project_and_code_imports_nothing(places: tuple[Path, Path, Path]) -> None:
    config, root, cwd = places
    (root / "docs").mkdir()
    (root / "docs" / "style.md").write_text("Tabs. Also @more.md, and @style.md")
    (root / "docs" / "more.md").write_text("No semicolons.")
    (root / "AGENTS.md").write_text(
        "See @docs/style.md.\nMail me@docs/more.md, `@README.md`, @types/node, @docs\n```\n@README.md\n```\n@gone.md"
    )
    (root / "README.md").write_text("not this")
    memory = MemoryFiles(config, FileAccess([root]), cwd)
    blocks = memory.blocks()
    assert [b.label for b in blocks] == [
        "AGENTS.md",
        "docs/style.md (imported by AGENTS.md)",
        "docs/more.md (imported by style.md)",
    ]
    assert memory.problems == [] and "No semicolons." in blocks[2].text
    assert root / "docs" / "more.md" in memory.candidates(), "it is looked at again before every turn"


def test_an_import_that_leads_out_of_the_project_is_named_and_not_read(
    places: tuple[Path, Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, root, cwd = places
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "id_rsa").write_text("PRIVATE")
    (root / "link.md").symlink_to(tmp_path / "id_rsa")
    (root / "AGENTS.md").write_text("@../id_rsa @~/id_rsa @link.md")
    memory = MemoryFiles(config, FileAccess([root]), cwd)
    assert [b.label for b in memory.blocks()] == ["AGENTS.md"]
    assert len(memory.problems) == 2 and all("leads out of the project" in line for line in memory.problems)
    (config / "AGENTS.md").write_text("@~/id_rsa")
    assert "PRIVATE" in "".join(b.text for b in memory.blocks()), "the user's own file imports what it wants"


def test_imports_end(places: tuple[Path, Path, Path]) -> None:
    config, root, cwd = places
    for number in range(60):
        (root / f"{number}.md").write_text(f"@{number + 1}.md " + " ".join(f"@{n}.md" for n in range(60)))
    (root / "AGENTS.md").write_text("@0.md")
    memory = MemoryFiles(config, FileAccess([root]), cwd)
    assert len(memory.blocks()) <= 50
    assert any("too deeply" in line for line in memory.problems)


def test_without_a_file_of_its_own_the_one_of_another_agent_is_read(
    places: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    config, root, cwd = places
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude" / "CLAUDE.md").write_text("be kind")
    assert "be kind" in MemoryFiles(config, FileAccess([root]), cwd, home).blocks()[0].text
    (config / "AGENTS.md").write_text("be brief")
    assert ["be brief" in b.text for b in MemoryFiles(config, FileAccess([root]), cwd, home).blocks()] == [True]
