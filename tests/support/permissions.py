"""Permissions of a project with links and protected files, and what they decide."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from agent_tui.config import PermissionMode, PermissionsConfig
from agent_tui.tools.base import Intent
from agent_tui.tools.permissions.permissions import Permissions
from agent_tui.tools.rules.decision import Decision

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


def maker(root: Path) -> Make:
    def build(mode: PermissionMode = "ask", **more: object) -> Permissions:
        rules = {key: more.pop(key) for key in ("allow", "ask", "deny") if key in more}
        return Permissions(root, root, PermissionsConfig(mode, **rules), **more)  # type: ignore[arg-type]

    return build


def bash(permissions: Permissions, command: str) -> Decision:
    return permissions.decide("bash", Intent("command", command, command=command))


def edit(permissions: Permissions, path: Path) -> Decision:
    return permissions.decide("edit", Intent("edit", "edit", [path.resolve()]))


def read(permissions: Permissions, path: Path) -> Decision:
    return permissions.decide("read", Intent("read", "read", [path.resolve()]))
