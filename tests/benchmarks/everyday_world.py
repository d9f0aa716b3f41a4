"""A small real project in three languages, and the commands of real work that are run in it."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import zipfile
from dataclasses import dataclass
from pathlib import Path

from tests.support.commands import DATA

_FILES = {
    "README.md": "# Everyday\n\nA sum, in three languages.\n",
    ".gitignore": ".venv/\nnode_modules/\n__pycache__/\nbuild/\ndist/\ntarget/\n*.egg-info/\n",
    "pyproject.toml": '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n\n'
    '[project]\nname = "everyday"\nversion = "1.0"\nscripts = { everyday = "everyday.__main__:main" }\n\n'
    '[tool.setuptools.packages.find]\nwhere = ["src"]\n\n[tool.pytest.ini_options]\npythonpath = ["src"]\n',
    "src/everyday/__init__.py": "def add(*numbers: int) -> int:\n    return sum(numbers)\n",
    "src/everyday/__main__.py": "from everyday import add\n\n\ndef main() -> None:\n"
    '    print("sum", add(1, 2, 3))\n\n\nif __name__ == "__main__":\n    main()\n',
    "tests/test_sum.py": "from everyday import add\n\n\ndef test_none():\n    assert add() == 0\n\n\n"
    "def test_some():\n    assert add(1, 2, 3) == 6\n",
    "tests/test_pool.py": "from multiprocessing import Pool\n\n\ndef test_pool():\n    with Pool(2) as pool:\n"
    "        assert sum(pool.map(abs, [-1, -2])) == 3\n",
    "tests/test_files.py": "def test_files(tmp_path):\n    (tmp_path / 'a').write_text('x')\n"
    "    assert (tmp_path / 'a').read_text() == 'x'\n",
    "Makefile": "all: build/app.pyz\n\nbuild/app.pyz: src/everyday/*.py\n\tmkdir -p build\n"
    "\tpython3 -m zipapp src -m everyday.__main__:main -o build/app.pyz\n\ndocs:\n\tmkdir -p build\n"
    "\tpython3 -c 'import html; print(html.escape(open(\"README.md\").read()))' > build/docs.html\n\n"
    "test:\n\t.venv/bin/python -m pytest -q\n\nclean:\n\trm -rf build\n\n.PHONY: all docs test clean\n",
    "package.json": '{\n  "name": "everyday",\n  "version": "1.0.0",\n  "private": true,\n  "scripts": {\n'
    '    "build": "node scripts/build.js",\n    "test": "node --test scripts/",\n    "lint": "everyday-lint"\n  },\n'
    '  "dependencies": { "everyday-part": "file:part" }\n}\n',
    "part/package.json": '{ "name": "everyday-part", "version": "1.0.0", "main": "index.js" }\n',
    "part/index.js": "exports.part = () => 'a part';\n",
    "node_modules/.bin/everyday-lint": "#!/bin/sh\necho lint ok\n",
    "scripts/build.js": "const fs = require('fs');\nfs.mkdirSync('dist', { recursive: true });\n"
    "fs.writeFileSync('dist/index.js', 'console.log(\"sum\", 1 + 2 + 3);\\n');\n",
    "scripts/sum.test.js": "const test = require('node:test');\nconst assert = require('node:assert');\n"
    "test('sum', () => assert.strictEqual(1 + 2 + 3, 6));\n",
    "scripts/serve.js": "require('http').createServer((_, answer) => answer.end('from node\\n'))"
    ".listen(8732, '127.0.0.1');\n",
    "scripts/sockets.py": "import os, socket, tempfile, threading\n\nplace = os.path.join(tempfile.mkdtemp(), 's')\n"
    "with socket.socket(socket.AF_UNIX) as server:\n    server.bind(place)\n    server.listen()\n\n"
    "    def answer():\n        one, _ = server.accept()\n        with one:\n"
    "            one.sendall(b'over a unix socket')\n\n    threading.Thread(target=answer).start()\n"
    "    with socket.socket(socket.AF_UNIX) as client:\n        client.connect(place)\n"
    "        print(client.recv(100).decode())\n",
    "scripts/run.sh": "#!/bin/sh\necho ran it\n",
    "rust/Cargo.toml": '[package]\nname = "everyday"\nversion = "1.0.0"\nedition = "2021"\n\n[workspace]\n',
    "rust/src/main.rs": 'fn sum() -> i32 {\n    1 + 2 + 3\n}\n\nfn main() {\n    println!("sum {}", sum());\n}\n\n'
    "#[test]\nfn six() {\n    assert_eq!(sum(), 6);\n}\n",
}

_NEEDED = ("pytest", "pluggy", "iniconfig", "packaging", "pygments")
"""Packages that are copied into the project's virtual environment: nothing is downloaded."""


@dataclass(slots=True, frozen=True)
class Case:
    """``heading`` and ``list`` say where it stands. ``check`` is what must hold afterwards; empty: a command that is
    only judged."""

    list: str
    heading: str
    command: str
    check: str = ""


def cases() -> list[Case]:
    """The commands of ``everyday_run.txt``: a line is a command (``\\n`` is a line break where a here-document
    follows), ``=> `` below it says in bash what must hold afterwards; ``$OUT`` is a file with what it said."""
    found: list[Case] = []
    which = heading = ""
    for line in (DATA / "everyday_run.txt").read_text("utf-8").splitlines():
        if line.startswith("## "):
            heading = line[3:]
        elif line.startswith("# "):
            which = line[2:]
        elif line.startswith("=> "):
            last = found[-1]
            found[-1] = Case(last.list, last.heading, last.command, line[3:])
        elif line.strip():
            found.append(Case(which, heading, line.replace("\\n", "\n") if "<<'" in line else line))
    return found


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


class Project:
    """The project in ``base``, with a remote beside it, as often as new as is asked."""

    def __init__(self, base: Path) -> None:
        self.base, self.root = base, base / "project"
        self._kept = base / "kept"
        for name, text in _FILES.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
            if text.startswith("#!"):
                path.chmod(0o755)
        self._venv()
        self._wheel()
        remote = self.base / "remote.git"
        self._git("init", "-q", "-b", "main")
        for key, value in (("user.name", "A Developer"), ("user.email", "developer@example.org")):
            self._git("config", key, value)
        self._git("add", ".")
        self._git("commit", "-q", "-m", "Start")
        self._git("init", "-q", "--bare", "-b", "main", str(remote))
        self._git("remote", "add", "origin", str(remote))
        self._git("push", "-q", "-u", "origin", "main")
        self._kept.mkdir()
        for place in (self.root, remote):
            shutil.copytree(place, self._kept / place.name, symlinks=True)

    def refresh(self, after: str = "pip install") -> None:
        """Everything as new; the virtual environment where the command ``after`` may have changed it."""
        whole = "pip install" in after
        for path in self.root.iterdir():
            if whole or path.name != ".venv":
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        for path in (self._kept / "project").iterdir():
            if whole or path.name != ".venv":
                self._copy(path, self.root / path.name)
        shutil.rmtree(self.base / "remote.git")
        self._copy(self._kept / "remote.git", self.base / "remote.git")
        for left in (self.base / "beside.txt", Path("/tmp/everyday.diff")):
            left.unlink(missing_ok=True)

    def holds(self, case: Case, said: str) -> bool:
        """Whether what must hold after a command does."""
        out = self.base / "said.txt"
        out.write_text(said, "utf-8", errors="replace")
        done = subprocess.run(
            ["bash", "-c", case.check], cwd=self.root, env={**_environment(), "OUT": str(out)}, capture_output=True
        )
        return done.returncode == 0

    def works_without(self, case: Case, seconds: float = 120) -> bool:
        """Whether a command works in bash alone: what does not work without us says nothing about us."""
        self.refresh(case.command)
        try:
            done = subprocess.run(
                ["bash", "-c", case.command],
                cwd=self.root,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0 and self.holds(case, done.stdout.decode("utf-8", "replace"))

    def _venv(self) -> None:
        python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else "python3"
        subprocess.run([python, "-m", "venv", str(self.root / ".venv")], check=True)
        target = next((self.root / ".venv/lib").glob("python*/site-packages"))
        for name in _NEEDED:
            for file in importlib.metadata.files(name) or ():
                if ".." not in file.parts and file.suffix != ".pyc":
                    (target / file).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(str(file.locate()), target / file)
        script = self.root / ".venv/bin/pytest"
        script.write_text(f"#!{self.root}/.venv/bin/python\nimport sys, pytest\nsys.exit(pytest.main())\n")
        script.chmod(0o755)

    def _wheel(self) -> None:
        """A package that can be installed without a registry."""
        info = "everyday_wheel-1.0.dist-info"
        members = {
            "everyday_wheel/__init__.py": "",
            "everyday_wheel/__main__.py": "print('from a wheel')\n",
            f"{info}/METADATA": "Metadata-Version: 2.1\nName: everyday-wheel\nVersion: 1.0\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        members[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in (*members, f"{info}/RECORD"))
        (self.root / "vendor").mkdir()
        with zipfile.ZipFile(self.root / "vendor/everyday_wheel-1.0-py3-none-any.whl", "w") as wheel:
            for name, text in members.items():
                wheel.writestr(name, text)

    def _git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.root, check=True, capture_output=True)

    @staticmethod
    def _copy(source: Path, target: Path) -> None:
        if source.is_dir() and not source.is_symlink():
            shutil.copytree(source, target, symlinks=True)
        else:
            shutil.copy2(source, target, follow_symlinks=False)
