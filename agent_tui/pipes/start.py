"""Starts every process of this program. Imports next to nothing, so that a child of our own can be started before
anything else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncio.subprocess import Process

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


def spawn(command: Sequence[str], env: Mapping[str, str] | None = None, **how: Any) -> subprocess.Popen[bytes]:
    """Starts a program that ``find_program`` found, or our own interpreter. Without ``env`` it gets what no command of
    the model can have a say in; without ``stdin`` it reads nothing. Raises OSError when it cannot be started."""
    return subprocess.Popen(_checked(command), env=_environment(env), **{"stdin": subprocess.DEVNULL, **how})


def run(command: Sequence[str], env: Mapping[str, str] | None = None, **how: Any) -> subprocess.CompletedProcess[bytes]:
    """The same, until it ends; raises TimeoutExpired where that takes longer than ``timeout``."""
    how = how if "input" in how else {"stdin": subprocess.DEVNULL, **how}
    return subprocess.run(_checked(command), env=_environment(env), check=False, **how)


async def spawn_in_loop(command: Sequence[str], env: Mapping[str, str], **how: Any) -> Process:
    """The same, as asyncio knows a process."""
    import asyncio

    return await asyncio.create_subprocess_exec(*_checked(command), env=dict(env), **how)


def _checked(command: Sequence[str]) -> list[str]:
    if not os.path.isabs(command[0]):  # noqa: PTH117
        raise FileNotFoundError(f"{command[0]}: only a program that was found before is started")
    return list(command)


def _environment(env: Mapping[str, str] | None) -> dict[str, str]:
    if env is not None:
        return dict(env)
    from agent_tui.pipes.programs import program_environment

    return program_environment()


def start(command: Sequence[str], variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Starts a child of our own in a process group of its own. Raises OSError when it cannot be started."""
    return spawn(
        command,
        variables,
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
