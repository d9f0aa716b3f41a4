"""What changes of a trusted folder while a session runs: that alone is not used, and the user is told once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_tui.bootstrap import make_agent
from agent_tui.commands import registry
from agent_tui.commands.info import Info
from agent_tui.commands.project import NOT_SHOWN
from agent_tui.commands.registry import Text
from agent_tui.engine.agent import Agent
from agent_tui.models.events import Event, Notice
from agent_tui.options import Options

pytestmark = pytest.mark.quick

HOOKS = [{"hooks": [{"type": "command", "command": f"sh tools/{name}.sh"} for name in ("one", "two")]}]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    root = tmp_path / "project"
    (root / ".claude").mkdir(parents=True)
    (root / "tools").mkdir()
    (root / ".claude" / "settings.json").write_text(json.dumps({"hooks": {"Stop": HOOKS}}))
    for name in ("one", "two"):
        (root / "tools" / f"{name}.sh").write_text("true\n")
    monkeypatch.chdir(root)
    return root


async def opened(trust: bool = False) -> Agent:
    agent = await make_agent(Options(model="demo", trust=trust, ephemeral=True))
    await agent.start()
    return agent


def in_force(agent: Agent) -> list[str]:
    return [text for _, state, _, text in agent.project.hooks() if state == "on"]


async def test_a_changed_script_stops_its_hook_alone_and_is_told_once(root: Path) -> None:
    agent = await opened(trust=True)
    told: list[str] = []

    def heard(event: Event) -> None:
        if isinstance(event, Notice) and event.code == "untrusted":
            told.append(event.text)

    agent.subscribe(heard)
    assert in_force(agent) == ["sh tools/one.sh", "sh tools/two.sh"]
    (root / "tools" / "one.sh").write_text("evil\n")
    for _ in range(3):
        agent.project.user_commands()  # who wants to know what the folder brings has it looked at
        assert in_force(agent) == ["sh tools/two.sh"]
    (line,) = told
    assert "hook Stop in .claude/settings.json changed (tools/one.sh)" in line
    shown = await registry.run(agent, "/trust")
    assert isinstance(shown, Info) and "+ evil" in shown.text and "two.sh" not in shown.text
    assert isinstance(await registry.run(agent, "/trust yes"), Text)
    assert in_force(agent) == ["sh tools/one.sh", "sh tools/two.sh"] and agent.project.trust_state == "trusted"
    await agent.close()


async def test_only_what_was_shown_in_this_session_is_accepted(root: Path) -> None:
    agent = await opened()
    for times in (1, 2):
        (root / "tools" / "one.sh").write_text("echo more\n" * times)
        shown = await registry.run(agent, "/trust yes")
        assert isinstance(shown, Info) and shown.sections[0].title == NOT_SHOWN and in_force(agent) == []
        assert shown.text.count("more") == times
    result = await registry.run(agent, "/trust yes")
    assert result == Text("Trusted: 2 hooks.") and len(in_force(agent)) == 2
    result = await registry.run(agent, "/trust")
    assert isinstance(result, Text) and "already trusted" in result.text
    await agent.close()


async def test_what_cannot_be_trusted_is_said_and_offers_no_key(root: Path) -> None:
    agent = await opened(trust=True)
    (root / "tools" / "one.sh").unlink()
    (root / "tools" / "one.sh").symlink_to("/etc/hostname")
    (root.parent / "two.sh").write_text("evil\n")
    (root / "tools" / "two.sh").unlink()
    (root / "tools" / "two.sh").symlink_to(root.parent / "two.sh")
    agent.project.user_commands()
    shown = await registry.run(agent, "/trust")
    assert isinstance(shown, Info) and "tools/two.sh: it is a link that leads out of the project" in shown.text
    assert "sh tools/two.sh" not in in_force(agent)
    await registry.run(agent, "/trust yes")
    shown = await registry.run(agent, "/trust")
    assert isinstance(shown, Info) and not shown.actions
    await agent.close()
