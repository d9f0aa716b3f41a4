"""The example on the page about hooks does what it says."""

from __future__ import annotations

import re
import sys

import pytest

from tests.support.cli import REPOSITORY, Cli, answers
from tests.support.starting import stand_alone


@pytest.mark.slow
def test_the_hook_on_the_page_blocks_a_push_and_the_other_adds_a_row(cli: Cli) -> None:
    page = (REPOSITORY / "docs" / "hooks.md").read_text("utf-8")
    script, config = (re.search(rf"```{kind}\n(.*?)```", page, re.DOTALL) for kind in ("python", "toml"))
    assert script is not None and config is not None
    stand_alone(cli.monkeypatch, cli.home)
    file = cli.home / "no-push.py"
    cli.config(
        config[1]
        .replace("python3 ~/no-push.py", f"{sys.executable} {file}")
        .replace("git log -1 --format=%s", "echo Newest.")
    )
    file.write_text(script[1], "utf-8")
    calls = ", ".join(f'{{ name = "bash", arguments = {{ command = "{c}" }} }}' for c in ("git push", "echo fine"))
    cli.script(f"[[step]]\ntool_calls = [{calls}]\n" + answers("Done."))
    run = cli.run("-p", "go", "-m", "demo", "--output-format", "stream-json")
    results = [entry["text"] for entry in run.lines if entry["type"] == "tool_result"]
    assert "Pushing is for people." in results[0] and "fine" in results[1]
    rows = str(cli.run("context", "--session", run.lines[-1]["session_id"], "--json").json["rows"])
    assert "UserPromptSubmit hook" in rows
