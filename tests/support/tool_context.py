"""What tools run in: a context, the permissions of a temporary project, and tools made for a test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import pytest

from agent_tui.config import PermissionMode, PermissionsConfig, ToolsConfig
from agent_tui.models.requests import OfferedTool, ToolSchema
from agent_tui.models.usage import Limits
from agent_tui.tools.base import Intent, Tool, ToolContext
from agent_tui.tools.permissions.permissions import Permissions
from agent_tui.tools.rules.decision import Decision
from agent_tui.tools.rules.standing import GivenRules, Holding, WorkFolders

Part = TypeVar("Part")


def make_context(root: Path, *, output_limit: int = 30_000, bash_timeout: float = 120.0) -> ToolContext:
    """A context whose project is ``root``; spilled output goes beside it."""
    root.mkdir(parents=True, exist_ok=True)
    config = ToolsConfig(output_limit=output_limit, bash_timeout=bash_timeout)
    return ToolContext(root, root, "ses_test", config, root.parent / "spill")


def fill_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on new files can be made, and what is written to them finds no room."""
    opened = Path.open

    def full(path: Path, mode: str = "r", **more: Any) -> Any:
        if "x" in mode:
            opened(path, mode).close()
            path, mode = Path("/dev/full"), mode.replace("x", "w")
        return opened(path, mode, **more)

    monkeypatch.setattr(Path, "open", full)


SEARCH = ToolSchema("search_tickets", "Searches tickets. " * 20, {"type": "object", "properties": {}})


class Tickets:
    """A server whose one tool is offered while ``on``, and can come while the model works."""

    def __init__(self, *, on: bool) -> None:
        self.on = on
        self.changed: Callable[[], None] = lambda: None
        self.starting = False

    def coming(self, tool: str) -> str:
        return ""

    def late(self) -> list[str]:
        return []

    def tools(self) -> list[Tool]:
        return []

    def offered(self, limits: Limits) -> list[OfferedTool]:
        return [OfferedTool(SEARCH, "mcp:tickets")] if self.on else []

    def start(self, changed: Callable[[], None]) -> None:
        self.changed = changed

    def recall(self) -> bool:
        return False

    async def close(self) -> None:
        return None

    def come(self) -> None:
        self.on = True
        self.changed()


Make = Callable[..., Permissions]
"""Called with a mode, rules as ``allow``, ``ask`` and ``deny``, and whatever else permissions take."""


def make_project(base: Path) -> Path:
    """A project with links that lead out of it and into ``.git``, beside a folder with a secret."""
    root = base / "project"
    for folder in (root / "src/deep", root / ".git/hooks", base / "outside/inner", root / ".agent-tui"):
        folder.mkdir(parents=True)
    (root / "src/a.py").write_text("")
    (root / ".env").write_text("")
    (base / "outside/secret").write_text("")
    (root / "link").symlink_to(base / "outside")
    (root / "file-link").symlink_to(base / "outside/secret")
    (root / "deep-link").symlink_to(root / "src/deep")
    (root / "git-link").symlink_to(root / ".git")
    return root


def permissions_of(root: Path, config: PermissionsConfig, **more: Any) -> Permissions:
    """Those of a session in ``root``; ``more`` is whatever they take, in any of their parts. ``remembered`` are rules
    that allow, and ``save`` takes the text of one."""
    if "remembered" in more:
        more["remembered"] = [("allow", rule) for rule in more["remembered"]]
    if save := more.pop("save", None):
        more["save"] = lambda rule, _: save(rule)

    def part(kind: type[Part], **first: object) -> Part:
        given = {field.name: more.pop(field.name) for field in fields(kind) if field.name in more}  # type: ignore[arg-type]
        return kind(**first | given)

    return Permissions(part(WorkFolders, root=root, cwd=root), part(GivenRules, config=config), part(Holding), **more)


def maker(root: Path) -> Make:
    def build(mode: PermissionMode = "ask", **more: Any) -> Permissions:
        rules = {key: more.pop(key) for key in ("allow", "ask", "deny") if key in more}
        return permissions_of(root, PermissionsConfig(mode, **rules), **more)

    return build


def bash(permissions: Permissions, command: str) -> Decision:
    return permissions.decide("bash", Intent("command", command, command=command))


def edit(permissions: Permissions, path: Path) -> Decision:
    return permissions.decide("edit", Intent("edit", "edit", [path.resolve()]))


def read(permissions: Permissions, path: Path) -> Decision:
    return permissions.decide("read", Intent("read", "read", [path.resolve()]))
