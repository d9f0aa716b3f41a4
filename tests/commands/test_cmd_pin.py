"""Pinned files are named by their path in the project, whatever was typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_tui.commands import registry
from agent_tui.commands.info import Info
from agent_tui.commands.registry import Text
from tests.support.fake_agent import FakeAgent

pytestmark = pytest.mark.quick


async def test_pin_and_unpin_name_a_file_alike(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    said = []
    for line in (f"/pin {tmp_path}/docs/spec.md", "/pins", f"/pin {tmp_path}/docs/spec.md", "/pin /etc/hosts"):
        result = await registry.run(agent, line)
        assert isinstance(result, Info) or (isinstance(result, Text) and not result.error)
        said.append(result.text.splitlines()[0])
    assert said == [
        "Pinned docs/spec.md (1 document pinned).",
        "  docs/spec.md  ~0 tokens  sent with every request",
        "Unpinned docs/spec.md.",
        "Pinned /etc/hosts (1 document pinned).",
    ]


async def test_queue_says_where_nothing_waits(tmp_path: Path) -> None:
    result = await registry.run(FakeAgent(tmp_path), "/queue")
    assert result == Text("Nothing is queued.")
