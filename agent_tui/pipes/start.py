"""Starting a child process of the program's own. Imports next to nothing, so that it can be done before anything
else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_ROOT = str(Path(__file__).resolve().parents[2])


def command(module: str) -> tuple[str, ...]:
    """The command that runs ``main`` of a module, as ``python -m`` would, but never importing from the current folder:
    it may hold anything."""
    code = f"import sys; sys.path.append(sys.argv.pop()); from {module} import main; main()"
    return (sys.executable, "-P", "-c", code, _ROOT)


def isolated(module: str, *arguments: str, bare: bool = False) -> list[str]:
    """The command that runs ``main(arguments)`` of a module of ours in a Python that takes nothing from its environment
    and its folder, where ``bare`` not even what is installed beside it."""
    code = f"import sys; sys.path.append(sys.argv.pop(1)); from {module} import main; sys.exit(main(*sys.argv[1:]))"
    return [sys.executable, "-IS" if bare else "-I", "-c", code, _ROOT, *arguments]


def start(command: Sequence[str], variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Starts a child in a process group of its own. Raises OSError when it cannot be started."""
    return subprocess.Popen(
        command,
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=dict(variables),
        start_new_session=True,
    )
