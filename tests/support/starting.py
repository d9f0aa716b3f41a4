"""What tests start as if the user had accepted it, and programs that lie in a temporary folder."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from agent_tui.config import McpServer
from agent_tui.pipes import programs
from agent_tui.tools.mcp.protocol import ServerStart
from agent_tui.tools.starter import Starter

_COMPILED = Path(tempfile.gettempdir()) / f"agent-tui-compiled-{os.getpid()}"


def accepting(root: Path) -> Starter:
    """Starts what it is told in a trusted folder, whatever the files are that it names."""
    return Starter(root, _COMPILED, lambda files: [], lambda: True)


def may_start(server: McpServer, root: Path) -> Callable[[object], Awaitable[object]]:
    """The answer of a program that lets ``server`` start."""

    async def answer(_: object) -> object:
        return ServerStart(*accepting(root).server(server.command or "", server.args, server.env, server.cwd))

    return answer


def use_programs_in(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Programs of a test's ``folder`` are found first, although everybody may write in the folder above it."""
    stand_alone(monkeypatch, folder)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def stand_alone(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """That the folders above a test's ``folder`` are everybody's does not count, nor what other tests told of."""
    shared = tuple(place for place in programs._SHARED if not folder.resolve().is_relative_to(place))
    monkeypatch.setattr(programs, "_SHARED", shared)
    for name in ("_written", "_spared"):
        monkeypatch.setattr(programs, name, set[str]())
    monkeypatch.setattr(programs, "_held", False)
