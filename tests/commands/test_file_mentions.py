from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from agent_tui.commands.mentions import MAX_TEXT, expand_mentions, mentions, named_files, outside, quote_path
from agent_tui.config import PermissionsConfig
from agent_tui.tools.files.access import FileAccess
from tests.support.every import every
from tests.support.tool_context import permissions_of

pytestmark = [pytest.mark.quick, pytest.mark.versions]

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8


def expand(text: str, cwd: Path) -> tuple[list[tuple[str, str | None]], list[str]]:
    parts, problems = expand_mentions(text, cwd, FileAccess([cwd, Path("/dev")]))
    return [(p.name, p.text) for p in parts], problems


def test_words_after_an_at_sign_are_paths() -> None:
    text = 'see @a.py, (@b/c.py) and @"my file.txt"; me@host.org `@d` @a.py @e:3-9 @f:7. @g: it @srv:uri://x @h:1a'
    assert [str(m) for m in mentions(text)] == ["a.py", "b/c.py", "my file.txt", "d", "e:3-9", "f:7", "g"]


@every("path", ["a.py", "a b.py", "a:1", "x,y", "src/", "(odd)"])
def test_a_quoted_path_is_read_back_as_itself(path: str) -> None:
    (found,) = mentions(f"see {quote_path(path)} please")
    assert (found.path, found.first) == (path, None)


def test_files_folders_and_lines_are_attached(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1\n2\n3\n4\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x").touch()
    parts, problems = expand("@a.py @a.py:2-3 @a.py:4-99 @sub @nobody @a.py:3", tmp_path)
    assert parts == [
        ("a.py", "1\n2\n3\n4\n"),
        ("a.py:2-3", "2\n3\n"),
        ("a.py:4-4", "4\n"),
        ("sub/", "x"),
        ("a.py:3-3", "3\n"),
    ]
    assert problems == []


def test_images_are_told_by_their_content(tmp_path: Path) -> None:
    (tmp_path / "shot.jpg").write_bytes(PNG)
    (tmp_path / "fake.png").write_text("hello")
    parts, problems = expand_mentions("@shot.jpg @fake.png", tmp_path, FileAccess([tmp_path]))
    assert [(p.media_type, p.data) for p in parts] == [("image/png", base64.b64encode(PNG).decode())]
    assert problems == ["fake.png: not an image, in spite of its name (.png)"]


def test_what_cannot_be_attached_is_said_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "bin").write_bytes(b"a\0b")
    (tmp_path / "big").write_text("x" * (MAX_TEXT + 1))
    (tmp_path / "short").write_text("one\n")
    os.mkfifo(tmp_path / "pipe")
    parts, problems = expand("@bin @big @short:5-6 @pipe @/dev/zero", tmp_path)
    assert parts == []
    assert [p.split()[0].rstrip(":") for p in problems] == ["bin", "big", "short:5-6", "pipe", "/dev/zero"]
    assert "neither text nor an image" in problems[0] and "name lines" in problems[1]
    assert "it has 1" in problems[2] and "regular file" in problems[3] and "regular file" in problems[4]


def test_what_leads_out_of_the_project_is_not_attached(tmp_path: Path) -> None:
    project, added = tmp_path / "project", tmp_path / "added"
    for folder in (project / "sub", added):
        folder.mkdir(parents=True)
    secret = tmp_path / "id_rsa"
    for file in (secret, project / "a.py", added / "b.py"):
        file.write_text(file.name)
    (project / "link").symlink_to(secret)
    (project / "folder").symlink_to(tmp_path)
    text = f"@a.py @link @folder/id_rsa @../id_rsa @{secret} @../added/b.py @sub/../../id_rsa:1-2 @folder @nobody"
    real = secret.resolve()
    assert outside(text, project, FileAccess([project, added])) == [real, tmp_path.resolve()]
    parts, problems = expand_mentions(text, project, FileAccess([project, added]))
    assert [p.text for p in parts] == ["a.py", "b.py"]
    assert len(problems) == 6 and all("outside the project" in p and "--add-dir" in p for p in problems)
    parts, problems = expand_mentions("@link @../id_rsa:1", project, FileAccess([project]), {real})
    assert [(p.name, p.text) for p in parts] == [("link", "id_rsa"), ("../id_rsa:1-1", "id_rsa")]
    assert problems == []


def test_what_a_rule_denies_is_neither_asked_about_nor_attached_nor_counted(tmp_path: Path) -> None:
    for name in (".env", "a.py"):
        (tmp_path / name).write_text(name)
    (tmp_path / "link").symlink_to(".env")
    (tmp_path.parent / "outer.env").write_text("outer")
    files = permissions_of(tmp_path, PermissionsConfig(deny=["read(*.env)", "read(//**/outer.env)"])).files
    text = "@.env @link @.env:1 @../outer.env @a.py"
    assert outside(text, tmp_path, files) == []
    parts, problems = expand_mentions(text, tmp_path, files, {tmp_path.parent / "outer.env"})
    assert [p.text for p in parts] == ["a.py"]
    names = (".env", "link", ".env:1", "../outer.env")
    assert problems == [f"{name} is kept from being read by a deny rule" for name in names]
    assert len(named_files(text, tmp_path, files)) == 1
