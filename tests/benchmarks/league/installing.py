"""Installs what the league runs into a folder outside the repository, once."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from tests.benchmarks.league import versions
from tests.benchmarks.league.driving import say

SECONDS = 900


class NotInstalled(Exception):
    """A package did not install; the last line of what its installer said."""


def vocabularies(cache: Path) -> Path:
    """The Python that has the vocabularies. Raises NotInstalled."""
    return _environment(cache / "vocabularies", sys.executable, list(versions.VOCABULARIES))


def node(cache: Path) -> Path:
    """The folder of Node's program. Raises NotInstalled."""
    return _npm(cache, versions.NODE, ()) / "node_modules" / ".bin"


def agent(cache: Path, name: str) -> Path:
    """The folder of an agent's packages. Raises NotInstalled."""
    registry, _, spec = versions.AGENTS[name].partition(":")
    if registry == "npm":
        return _npm(cache, spec, (spec.rpartition("@")[0],))
    wanted, *packages = spec.split()
    python = shutil.which(wanted)
    if python is None:
        raise NotInstalled(f"needs {wanted}, which is not on the PATH")
    return _environment(cache / packages[0].replace("==", "-"), python, packages).parent


def _npm(cache: Path, spec: str, may_run: tuple[str, ...]) -> Path:
    folder = cache / spec.strip("@").replace("/", "-")
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        package = {"private": True, "allowScripts": dict.fromkeys(may_run, True)}
        (folder / "package.json").write_text(json.dumps(package))
        _run(["npm", "install", "--no-audit", "--no-fund", "--omit=dev", spec], folder)
        (folder / "done").touch()
    return folder


def _environment(folder: Path, python: str, packages: list[str]) -> Path:
    own = folder / "bin" / "python"
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        _run([python, "-m", "venv", str(folder)], folder.parent)
        _run([str(own), "-m", "pip", "install", "-q", *packages], folder)
        (folder / "done").touch()
    return own


def _run(command: list[str], folder: Path) -> None:
    say(f"installing: {' '.join(command[-4:])}")
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(str(error)) from error
    if done.returncode:
        said = [line.strip() for line in done.stderr.splitlines() if "rror" in line]
        raise NotInstalled((said or [f"exit code {done.returncode}"])[0][:200])
