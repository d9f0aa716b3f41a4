"""One recorded tool loop through the real command line: separate processes, a configuration file, keys from the
environment, no shared worker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.recordings import needs_recordings
from tests.support import recorded
from tests.support.end_to_end import calls, chain, export_differences, reply, resent_differences
from tests.support.loopback import Loopback
from tests.support.model_calls import KEY

pytestmark = needs_recordings

ROOT = Path(__file__).resolve().parents[2]


def agent_tui(home: Path, *arguments: str) -> Any:
    """Runs the program and reads the JSON it printed."""
    project = home / "project"
    project.mkdir(exist_ok=True)
    keep = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY") and not k.startswith("AGENT_TUI")}
    environment = {**keep, "AGENT_TUI_HOME": str(home), "PYTHONPATH": str(ROOT), "MY_KEY": KEY}
    command = [sys.executable, "-m", "agent_tui", *arguments]
    run = subprocess.run(
        command, cwd=project, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert run.returncode in (0, 53), run.stderr
    return json.loads(run.stdout)


@pytest.mark.slow
def test_a_tool_loop_from_the_shell(tmp_path: Path) -> None:
    names = chain("anthropic-sonnet4-thinking-tool-cache")
    with Loopback(posts_only=True) as server:
        server.serve("*", *map(reply, names), reply(names[-1]))
        config = tmp_path / "test.toml"
        config.write_text(
            f'default_model = "x"\n[models.x]\nmodel = "anthropic/claude-sonnet-4-20250514"\n'
            f'api_base = "{server.url}/v1"\napi_key_env = "MY_KEY"\n'
        )
        ask = ("--output-format", "json", "--config", str(config))
        first = agent_tui(tmp_path, "-p", "What's the weather in Florence?", *ask)
        assert first["text"] == recorded.load(names[-1])["expected"]["text"]
        assert len(first["tool_calls"]) == 1
        again = agent_tui(tmp_path, "-c", "-p", "And tomorrow?", *ask)
        assert again["session_id"] == first["session_id"]
        exported = agent_tui(tmp_path, "export", first["session_id"], "--format", "json")
        context = agent_tui(tmp_path, "context", "--session", first["session_id"], "--json", "--config", str(config))
        bodies = [request.json for request in calls(server)]
    answers = [m for m in exported["messages"] if m["role"] == "assistant"]
    steps = [s for s in exported["steps"] if s["kind"] == "turn"]
    assert len(bodies) == len(answers) == len(steps) == len(names) + 1
    for n, step_name in enumerate(names):
        assert export_differences(step_name, answers[n], steps[n]) == []
        assert resent_differences(step_name, bodies[n + 1]) == []
    assert context["calculation"]["last_input_tokens"] == steps[-1]["usage"]["input_tokens"]
    assert KEY not in json.dumps(exported)
