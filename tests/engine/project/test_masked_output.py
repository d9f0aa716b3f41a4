"""The user's keys are taken out of what tools and commands say before it is stored, shown or sent."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from agent_tui.config import PermissionsConfig, Settings
from agent_tui.models.events import ToolOutput
from agent_tui.models.messages import AttachmentPart
from agent_tui.text.secrets import MASK
from tests.support.agents import parts_for, running

pytestmark = pytest.mark.quick

KEY = "sk-test-Zq81Lm93Xx07"
RING = "ring-key-55aa77cc"

SCRIPT = """
[[step]]
tool_calls = [
  { name = "bash", arguments = { command = "printf sk-test-; sleep 0.2; echo Zq81Lm93Xx07; echo ring-key-55aa77cc" } },
  { name = "bash", arguments = { command = "base64 .env; exit 3" } },
  { name = "read", arguments = { path = ".env" } },
  { name = "grep", arguments = { pattern = "KEY" } },
  { name = "edit", arguments = { path = ".env", edits = [{ old_string = "A=1", new_string = "A=2" }] } },
  { name = "edit", arguments = { path = ".env", edits = [{ old_string = "A=2", new_string = "KEY=[secret]" }] } },
  { name = "write", arguments = { path = "other.txt", content = "[secret] is fine here" } },
]
[[step]]
text = "done"
"""


async def test_no_key_reaches_the_store_the_screen_or_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    project = tmp_path / "project"
    project.mkdir()
    (project / ".env").write_text(f"KEY={KEY}\nA=1\n")
    settings = Settings(permissions=PermissionsConfig("auto", allow=["bash(base64 .env)"]))
    parts = parts_for(tmp_path / "home", project, script=SCRIPT, settings=settings, can_ask=False)
    parts.secrets.add(RING)
    async with running(parts) as (agent, recorder):
        attachment = AttachmentPart(".env", "text/plain", text=f"KEY={KEY}")
        agent.turns.submit("go", [attachment])
        await agent.turns.join()
        await agent.shell(f"cat .env; echo {RING}")
        results = [m.tool_result for m in agent.conversation.path if m.tool_result is not None]
        assert len(results) == 7
        stored = json.dumps(parts.store.export(agent.conversation.info.id), default=repr)
        live = "".join(e.text for e in recorder.of(ToolOutput))
        said = stored.replace(f"echo {RING}", "") + live
        for key in (KEY, RING):
            assert key not in said
            # In base64 every third alignment shows other characters; the middle of the key is in one of them.
            assert base64.b64encode(f"KEY={key}".encode()).decode()[8:20] not in said
        assert said.count(MASK) >= 8
        assert [r.is_error for r in results] == [False, True, False, False, False, True, False]
        assert "destroy" in results[5].text and results[1].text.endswith("[exit code 3]")
    assert (project / ".env").read_text() == f"KEY={KEY}\nA=2\n"
