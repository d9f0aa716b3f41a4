"""Command lines kept as data, and a project to judge them in."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from agent_tui.config import PermissionMode
from agent_tui.tools.base import Intent
from agent_tui.tools.permissions.permissions import Permissions
from agent_tui.tools.rules.decision import Decision
from agent_tui.tools.sandbox.policy import Network
from tests.support.git import git
from tests.support.tool_context import maker

DATA = Path(__file__).resolve().parent.parent / "tools" / "judge" / "data"

_FILES = {
    "README.md": "# Project\nTODO: a, b\n",
    "src/app.py": "import os\n\n\ndef main():\n    return 1\n",
    "src/util.py": "import os.path\n",
    "tests/test_app.py": "def test_main():\n    pass\n",
    "package.json": '{"scripts": {"test": "true"}, "dependencies": {}}\n',
    "requirements.txt": "requests\n",
    "fix.patch": "",
    "run.sh": "true\n",
    "Makefile": "all:\n\ttrue\n",
    "a": "x\n",
    "node_modules/.bin/eslint": "#!/bin/sh\n",
    "node_modules/.bin/jest": "#!/bin/sh\n",
    "node_modules/.bin/tsc": "#!/bin/sh\n",
    "gradlew": "#!/bin/sh\n",
    ".env": "TOKEN=of-the-project\n",
    ".venv/bin/activate": "VIRTUAL_ENV=x\n",
    ".venv/bin/pytest": "#!/bin/sh\n",
}


MODES: tuple[PermissionMode, ...] = ("ask", "accept-edits", "plan", "auto")


def lines(name: str) -> list[str]:
    """The commands of a data file, without headings; ``\\n`` stands for a line break where a here-document follows."""
    return [command for _, command in sections(name)]


def sections(name: str) -> list[tuple[str, str]]:
    """(heading, command) in order."""
    found: list[tuple[str, str]] = []
    heading = ""
    for line in (DATA / name).read_text("utf-8").splitlines():
        if line.startswith("# "):
            heading = line[2:]
        elif line.strip():
            found.append((heading, unescaped(line)))
    return found


def unescaped(line: str) -> str:
    """What a line of the file stands for: control characters and line breaks are written ``%0a``; the ``\\n`` behind a
    here-document's mark is one too."""
    for code in ("%0a", "%1b", "%07", "%c2%a0", "%0d", "%09", "%e2%80%ae", "%00"):
        line = line.replace(code, bytes.fromhex(code.replace("%", "")).decode("utf-8"))
    return line.replace("\\n", "\n") if "<<" in line and "<<<" not in line else line


@dataclass(slots=True, frozen=True)
class World:
    """A project with what lies around it: ``outside`` holds a secret that links in the project lead to."""

    root: Path
    outside: Path


def make_world(base: Path) -> World:
    """A git repository with a commit, sources, a virtual environment whose interpreter is a link, and links that lead
    out of it."""
    root, outside = base / "project", base / "outside"
    outside.mkdir(parents=True)
    (outside / "secret").write_text("SECRET-OF-THE-USER\n")
    for name, text in _FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if "/bin" in name or text.startswith("#!"):
            path.chmod(0o755)
    (root / ".venv/bin/python").symlink_to(Path(sys.executable).resolve())
    (root / ".gitignore").write_text(".venv/\nnode_modules/\n.env\nlinks/\n")
    (root / "links").mkdir()
    (root / "links/out").symlink_to(outside)
    (root / "links/file").symlink_to(outside / "secret")
    for arguments in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "start"]):
        git(root, *arguments)
    return World(root, outside)


def judged(world: World, command: str, mode: PermissionMode, **more: Any) -> Decision:
    options = {name: tuple(value) if isinstance(value, list) else value for name, value in more.items()}
    permissions = _permissions(world, mode, tuple(options.items()))
    return permissions.decide("bash", Intent("command", command, command=command))


def held(world: World, command: str, mode: PermissionMode, network: Network = "ask", **more: Any) -> Decision:
    """Judged as where a sandbox holds everything, and gives commands ports of their own."""
    return judged(world, command, mode, holds=_always, network=network, has_ports=_always, **more)


@lru_cache(8)
def _permissions(world: World, mode: PermissionMode, options: tuple[tuple[str, Any], ...]) -> Permissions:
    """The same for the same question: to check hundreds of rules takes longer than to judge a command by them."""
    return maker(world.root)(mode, **{n: list(value) if isinstance(value, tuple) else value for n, value in options})


def _always(*asked: object) -> bool:
    return True
