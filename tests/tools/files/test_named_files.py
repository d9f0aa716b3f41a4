"""The files that a command names where commands of the model may write, and what is said of them when they change."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_tui.tools.files import named_files as room
from agent_tui.tools.files.beneath import Place
from agent_tui.tools.files.fingerprints import BEING_WRITTEN, changed_files, fingerprint
from agent_tui.tools.files.named_files import named_files
from tests.support.starting import stand_alone

FILES = {
    "hooks/h.py": "import helper\n",
    "hooks/helper.py": "import deep.more\n",
    "hooks/json.py": "",
    "hooks/gone.pyc": "",
    "hooks/deep/more.py": "",
    "hooks/pack/__init__.py": "",
    "run/h.sh": '#!/bin/sh\n. "$(dirname "$0")/lib"\n"$CLAUDE_PROJECT_DIR"/run/other --to out.txt\n',
    "run/lib": "source ./run/deep.sh\n",
    "run/deep.sh": "",
    "run/other": "#!/usr/bin/env node\nrequire('./mod'); require('../conf/x.js')\n",
    "run/mod.js": "",
    "conf/x.js": "",
    "tools/__init__.py": "",
    "tools/check.py": "from pkg import part\n",
    "pkg/part.py": "",
    "top.py": "",
    "Makefile": "all:\n\t./run/deep.sh\n",
    "package.json": '{"scripts": {"test": "node run/mod.js"}}',
    "README.md": "",
    "out.txt": "",
    ".venv/pyvenv.cfg": "",
    ".venv/bin/ruff": "#!/usr/bin/python3\n",
    ".venv/lib/ruff.py": "",
    "node_modules/.bin/x": "#!/usr/bin/env node\n",
}
SCRIPT = ["hooks/gone.pyc", "hooks/h.py", "hooks/helper.py", "hooks/json.py", "hooks/pack/__init__.py"]
SHELL = ["conf/x.js", "run/deep.sh", "run/h.sh", "run/lib", "run/mod.js", "run/other"]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    stand_alone(monkeypatch, tmp_path)
    for name, text in FILES.items():
        path = tmp_path / "p" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if text.startswith("#!"):
            path.chmod(0o755)
    (tmp_path / "own").mkdir()
    (tmp_path / "own/hook.sh").write_text(f"cd '{tmp_path}/p' && python3 hooks/json.py\n")
    monkeypatch.chdir(tmp_path / "p")
    return (tmp_path / "p").resolve()


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("python3 hooks/h.py", [*SCRIPT, "hooks/deep/more.py"]),
        ('"$CLAUDE_PROJECT_DIR"/hooks/h.py', [*SCRIPT, "hooks/deep/more.py"]),
        ("cd hooks && python3 h.py", [*SCRIPT, "hooks/deep/more.py"]),
        (["python3", "{0}/hooks/h.py", "--flag"], [*SCRIPT, "hooks/deep/more.py"]),
        ("bash ./run/h.sh >> out.txt", SHELL),
        ("bash run/lib", ["run/deep.sh", "run/lib"]),
        ("env X=1 run/other", ["conf/x.js", "run/mod.js", "run/other"]),
        ("node -e \"require('./run/mod')\"", ["run/mod.js"]),
        ("python3 -m tools.check", ["pkg/part.py", "tools/__init__.py", "tools/check.py", "top.py"]),
        ("python3 -c 'import json'", []),
        ("make -s", ["Makefile", "run/deep.sh"]),
        ("npm run test", ["package.json", "run/mod.js"]),
        ("cat README.md; git status --short > out.txt", []),
        ("echo done", []),
        ("sh '{1}/own/hook.sh'", ["hooks/gone.pyc", "hooks/h.py", "hooks/helper.py", "hooks/json.py"]),
    ],
)
def test_what_a_command_names_is_found(root: Path, command: str | list[str], files: list[str]) -> None:
    filled = [word.format(root, root.parent) for word in ([command] if isinstance(command, str) else command)]
    found = named_files(filled[0] if isinstance(command, str) else filled, root, root)
    shown = fingerprint(found, root)
    assert not found.problem and set(files) <= set(shown)
    # What has no end of a script, and no other name of one in it, is not among them.
    assert set(shown) - set(files) <= {"hooks/pack/__init__.py", "tools/__init__.py", "pkg/part.py", "tools/check.py"}


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ('bash "{0}/my hooks/a [1].sh"', "a [1].sh"),
        ("bash 'my hooks/a [1].sh' --flag", "a [1].sh"),
        (r"bash my\ hooks/a\ \[1\].sh", "a [1].sh"),
        ('"$CLAUDE_PROJECT_DIR/my hooks/a [1].sh"', "a [1].sh"),
        (["bash", "{0}/my hooks/a [1].sh"], "a [1].sh"),
        (["{0}/my hooks/run it"], "run it"),
        ('sh "my hooks/run it" && true', "run it"),
        ('cd "my hooks" && sh plain.sh', "plain.sh"),
        ("(cd 'my hooks'; ./plain.sh)", "plain.sh"),
    ],
)
def test_names_may_have_blanks_and_signs(root: Path, command: str | list[str], name: str) -> None:
    (root / "my hooks").mkdir()
    for each in ("a [1].sh", "run it", "plain.sh"):
        (root / "my hooks" / each).write_text("")
    filled = [word.format(root) for word in ([command] if isinstance(command, str) else command)]
    found = named_files(filled[0] if isinstance(command, str) else filled, root, root)
    assert [*fingerprint(found, root)] == [f"my hooks/{name}"]


@pytest.mark.parametrize(
    ("command", "tree"), [(".venv/bin/ruff check", ".venv/"), ("node_modules/.bin/x", "node_modules/")]
)
def test_of_an_environment_all_counts(root: Path, command: str, tree: str) -> None:
    before = fingerprint(named_files(command, root, root), root)
    assert [*before] == [tree]
    (root / tree / "planted.py").write_text("")
    assert changed_files(before, fingerprint(named_files(command, root, root), root)) == [tree]


def swap_for_link(path: Path) -> None:
    path.rename(path.with_suffix(".old"))
    path.symlink_to(path.with_suffix(".old").name)


def make_package(folder: Path) -> None:
    folder.mkdir()
    (folder / "__init__.py").touch()


def swap_for_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "its text": (lambda root: (root / "hooks/h.py").write_text("evil"), "hooks/h.py"),
    "what it imports": (lambda root: (root / "hooks/helper.py").write_text("evil"), "hooks/helper.py"),
    "a module that it would now import": (lambda root: (root / "hooks/os.py").write_text(""), "hooks/os.py"),
    "a package": (
        lambda root: make_package(root / "hooks/re"),
        "hooks/re/__init__.py",
    ),
    "bytecode without a source": (lambda root: (root / "hooks/abc.pyc").write_bytes(b""), "hooks/abc.pyc"),
    "a link in its place": (lambda root: swap_for_link(root / "hooks/h.py"), "hooks/h.py"),
    "a pipe in its place": (
        lambda root: swap_for_pipe(root / "hooks/helper.py"),
        "",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_told_by_its_file(root: Path, change: str) -> None:
    accepted = fingerprint(named_files("python3 hooks/h.py", root, root), root)
    assert changed_files(accepted, fingerprint(named_files("python3 hooks/h.py", root, root), root)) == []
    act, told = CHANGES[change]
    act(root)
    now = fingerprint(named_files("python3 hooks/h.py", root, root), root)
    assert (
        told in changed_files(accepted, now) if told else "hooks/helper.py" not in now or changed_files(accepted, now)
    )


@pytest.mark.parametrize("how", ["python3 -I hooks/h.py", "env -i python3 hooks/h.py", "python3 -E hooks/h.py"])
def test_bytecode_counts_where_the_environment_does_not(root: Path, how: str) -> None:
    (root / "hooks/__pycache__").mkdir()
    (root / "hooks/__pycache__/helper.cpython-311.pyc").write_bytes(b"planted")
    planted = "hooks/__pycache__/helper.cpython-311.pyc"
    assert planted in fingerprint(named_files(how, root, root), root)
    assert planted not in fingerprint(named_files("python3 hooks/h.py", root, root), root)


def test_a_link_out_is_told_by_where_it_leads_and_not_read(root: Path) -> None:
    (root / "run/out.sh").symlink_to(root.parent / "own/hook.sh")
    found = fingerprint(named_files("sh run/out.sh", root, root), root)
    assert found["run/out.sh"] == f"leads to {root.parent.resolve()}/own/hook.sh"


def test_what_is_written_just_now_is_not_settled_and_what_was_read_is(root: Path) -> None:
    (root / "run/deep.sh").write_text("new")
    named = named_files("sh run/deep.sh", root, root)
    assert fingerprint(named, root, settled=True) == {"run/deep.sh": BEING_WRITTEN}
    accepted = fingerprint(named, root)
    assert fingerprint(named, root, settled=True) == accepted
    assert changed_files({"run/deep.sh": BEING_WRITTEN}, {"run/deep.sh": BEING_WRITTEN}) == ["run/deep.sh"]


def test_a_file_that_is_as_it_was_is_not_opened(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for it to be opened would know when to put another in its place."""
    named = named_files("sh run/deep.sh", root, root)
    accepted = fingerprint(named, root)
    monkeypatch.setattr(Place, "read", lambda *_: pytest.fail("it was read"))
    assert fingerprint(named, root, settled=True) == accepted


def test_more_than_can_be_looked_at_is_a_problem(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MOST_FILES", 3)
    assert "more than 3 files" in named_files("python3 hooks/h.py", root, root).problem
