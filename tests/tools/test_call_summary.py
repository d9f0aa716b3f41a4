"""The line of a call says what it was about, whatever became of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_tui.models.events import ToolStarted
from agent_tui.tools.arguments import call_summary
from tests.support.agents import results, running, say
from tests.support.developer import parts
from tests.support.every import every
from tests.support.scripts import step

pytestmark = pytest.mark.quick

PATCH = "*** Begin Patch\n*** Update File: src/a b.py\n@@\n-x\n+y\n*** End Patch"


@every(
    ("arguments", "about"),
    [
        ('{"path": "a.py"}', "a.py"),
        ('{"offset": "x", "path": "a.py"}', "a.py"),
        ('{"filePath": "a.py", "content": "x"}', "a.py"),
        ('{"edits": [{"path": "a.py", "old": "x"}]}', "a.py"),
        ('{"path": "a.py", "content": "cut o', "a.py"),
        ('{\'broken\', "command": "make \\"all\\""', 'make "all"'),
        ('{"url": "https://h.example/x", "method": 3}', "https://h.example/x"),
        ('{"pattern": "x", "path": "src"}', "x in src"),
        ('{"content": "\\"path\\": \\"no\\"", "count": 1}', '{"content": "\\"path\\": \\"no\\"", "count": 1}'),
        (json.dumps({"input": PATCH}), "src/a b.py"),
        (PATCH, "src/a b.py"),
        ('{"action": "status"}', "status"),
        ('{"action": "fold", "names": ["123456", "456789"], "text": "Both read."}', "fold 123456 456789 Both read."),
        ('{"action": "move", "edits": [{"path": "a.py"}], "n": 3}', "a.py"),
        ("nonsense", "nonsense"),
        ("{}", ""),
        ("", ""),
    ],
)
def test_what_a_call_is_about(arguments: str, about: str) -> None:
    assert call_summary("tool", arguments) == f"tool {about}".rstrip()


async def test_a_call_that_never_runs_keeps_what_it_was_about(tmp_path: Path) -> None:
    script = step(frob={"path": "x.py"}, edit={"path": "y.py"}, frob2={"path": "\x1b[2Jz\nDone: all"}) + step("ok")
    async with running(parts(tmp_path, tmp_path, script)) as (agent, seen):
        await say(agent, "go")
        assert all(result.is_error for result in results(agent))
        assert [started.summary for started in seen.of(ToolStarted)] == [
            "frob x.py",
            "edit y.py",
            "frob [2Jz Done: all",
        ]
