"""A developer with an agent in a real repository: what they say, what they are asked, and what the tools answer."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

from agent_tui.config import PermissionMode, PermissionsConfig, Settings, ToolsConfig
from agent_tui.engine.agent import Agent
from agent_tui.engine.state import AgentParts
from agent_tui.models.context import ContextRow
from agent_tui.models.events import Event, PermissionAsked
from tests.support.agents import parts_for
from tests.support.git import git
from tests.support.tool_context import permissions_of

TEST = "from calc import add\n\nassert add(1, 2) == 3\nprint('all tests passed')\n"


def make_repository(root: Path) -> Path:
    """A repository with a bug in it, and a test that finds it."""
    (root / "src").mkdir(parents=True)
    (root / "src" / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    # Python takes what it compiled for current while the source has the same size and second.
    os.utime(root / "src" / "calc.py", (1, 1))
    (root / "src" / "check.py").write_text(TEST)
    (root / ".gitignore").write_text("build/\n__pycache__/\n")
    (root / "build").mkdir()
    (root / "build" / "old.py").write_text("def add(a, b): ...\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "start")
    return root


def parts(
    tmp_path: Path,
    project: Path,
    script: str,
    mode: PermissionMode = "ask",
    *,
    can_ask: bool = True,
    tools: ToolsConfig | None = None,
    resume: str | None = None,
    rules: PermissionsConfig | None = None,
) -> AgentParts:
    """Parts with permissions as they are wired for users: remembered rules, saved output readable."""
    settings = Settings(permissions=rules or PermissionsConfig(mode=mode), tools=tools or ToolsConfig())
    settings.permissions.mode = mode
    made = parts_for(tmp_path / "home", project, script=script, settings=settings, resume=resume)
    made.permissions = permissions_of(
        project,
        settings.permissions,
        readable=[made.paths.cache / "output"],
        protected=[made.paths.config, made.paths.data],
        remembered=[rule for _, rule in made.store.rules.of(project, made.trust.identity)],
        save=lambda rule: made.store.rules.add(project, made.trust.identity, rule),
        can_ask=can_ask,
    )
    return made


def answering(agent: Agent, allow: bool = True, always: bool = False, feedback: str = "") -> list[PermissionAsked]:
    """Answers every question alike; returns the list that questions are added to."""
    asked: list[PermissionAsked] = []

    def answer(event: Event) -> None:
        if isinstance(event, PermissionAsked):
            asked.append(event)
            offer = event.offers[0] if always and event.offers else None
            agent.permissions.answer(event.request_id, allow, offer, feedback)

    agent.subscribe(answer)
    return asked


def row(agent: Agent, name: str) -> ContextRow:
    rows = agent.context.usage().rows
    found = {r.id: r for one in rows for r in (one, *one.children)}
    return found[name]


async def until(event: asyncio.Event) -> None:
    async with asyncio.timeout(60):
        await event.wait()


def once(agent: Agent, wanted: Callable[[Event], bool]) -> asyncio.Event:
    """Set as soon as an event is the wanted one."""
    seen = asyncio.Event()
    agent.subscribe(lambda event: seen.set() if wanted(event) else None)
    return seen


CHECK = f"cd src && {sys.executable} check.py"
FIX = {"path": "src/calc.py", "edits": [{"old_string": "a - b", "new_string": "a + b"}]}
