"""Calls and files that mean harm: the call fails, the turn goes on, and the terminal is not driven."""

from __future__ import annotations

import json
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from agent_tui.commands.export.readable import ReadableCall as ExportedCall
from agent_tui.engine.transcript import called_as
from agent_tui.errors import ToolError
from agent_tui.headless.output import _arguments as json_arguments
from agent_tui.models.events import ToolOutput, ToolStarted
from agent_tui.models.messages import ToolCallPart
from agent_tui.tools.arguments import call_summary, parse_arguments, short_summary
from tests.support.agents import results, running, say
from tests.support.api_rules import read_strictly
from tests.support.developer import answering, parts
from tests.support.every import every
from tests.support.git import git
from tests.support.hostile_histories import ARGUMENTS, NAMES
from tests.support.lazily import LazyModule
from tests.support.scripts import calls_step, step

acp_updates = LazyModule("agent_tui.acp_updates")


async def test_hostile_arguments_end_the_call_and_never_the_turn(tmp_path: Path, project: Path) -> None:
    paths = [
        "a\0b",
        "x" * 5_000,
        "y/" * 3_000,
        "\ud800",
        "~nobody-at-all/x",
        "",
        "/proc/self/mem",
        "/dev/zero",
        "src",
        "loop",
    ]
    (project / "loop").symlink_to("loop")
    calls: dict[str, Any] = {}
    for number, path in enumerate(paths):
        calls[f"read{number}"] = {"path": path}
        calls[f"write{number}"] = {"path": path, "content": "x"}
        calls[f"edit{number}"] = {"path": path, "edits": [{"old_string": "a", "new_string": "b"}]}
        calls[f"list{number}"] = {"path": path}
        calls[f"grep{number}"] = {"pattern": "a", "path": path}
        calls[f"glob{number}"] = {"pattern": "*", "path": path}
        calls[f"bash{number}"] = {"command": f"cat {path}"}
    calls |= {
        "read": {"path": 3},
        "bash": {"command": ["x"]},
        "fetch": {"url": "file:///etc/passwd"},
        "todo": {"items": 5},
    }
    script = "window = 400_000\n" + step(**calls) + step("Enough.")
    async with running(parts(tmp_path, project, script)) as (agent, seen):
        answering(agent, allow=False)
        await say(agent, "go")
        assert seen.last_end.failure is None and len(results(agent)) == len(calls)
        assert not [r.text for r in results(agent) if "failed: " in r.text]
        assert not any(set(r.text) & set("\x00\x1b") for r in results(agent))
    assert git(project, "status", "--porcelain") == "?? loop"


async def test_file_names_and_output_cannot_drive_the_terminal(tmp_path: Path, project: Path) -> None:
    evil = "\x1b]0;title\x07\x1b[2Jname"
    (project / evil).write_text("\x1b[31mred\x00\x9b2J\n")
    script = step(
        list={"path": "."},
        glob={"pattern": "*name"},
        grep={"pattern": "red"},
        read={"path": evil},
        bash={"command": "cat ./*name; ls"},
        bash1={"command": "printf '\\033]52;c;AAAA\\007\\033[6n\\000x'"},
        write={"path": evil + "2", "content": "\x1b[2J"},
        bash2={"command": "rm \x1b[2K\x1b[1A harmless"},
    ) + step("ok")
    async with running(parts(tmp_path, project, script)) as (agent, seen):
        asked = answering(agent, allow=False)
        await say(agent, "go")
        shown = [r.text for r in results(agent)] + [json.dumps(r.display, ensure_ascii=False) for r in results(agent)]
        shown += [a.summary + json.dumps(a.display, ensure_ascii=False) + a.reason for a in asked]
        shown += [e.summary for e in seen.of(ToolStarted)] + [e.text for e in seen.of(ToolOutput)]
        assert not [text for text in shown if set(text) & set("\x00\x07\x1b\x9b")]


@pytest.mark.slow
async def test_calls_that_no_reader_takes_fail_and_the_turn_goes_on(tmp_path: Path, project: Path) -> None:
    raws = [raw for raw in ARGUMENTS if raw.isascii() and "\ufffd" not in raw]
    calls = list(zip(cycle(("read", "functions.bash", "todo")), raws))
    calls += [(name, "{}") for name in NAMES if "\ud800" not in name]
    script = "window = 4_000_000\n" + calls_step(*calls) + step("Enough.")
    async with running(parts(tmp_path, project, script)) as (agent, seen):
        answering(agent, allow=False)
        await say(agent, "go")
        assert seen.last_end.failure is None and len(results(agent)) == len(calls)
        assert not [r.text for r in results(agent) if "RecursionError" in r.text or "ValueError" in r.text]


@every("raw", ARGUMENTS)
def test_everybody_who_reads_arguments_reads_any(raw: str, tmp_path: Path) -> None:
    call = ToolCallPart("call_1", "todo", raw)
    for told in (json_arguments(raw), called_as("todo", raw, tmp_path)):
        read_strictly(json.dumps(told, ensure_ascii=False).encode("utf-8", "replace"))
    acp_updates._call(call, tmp_path)
    assert all(isinstance(one, str) for one in (call_summary("todo", raw), short_summary(call)))
    assert isinstance(ExportedCall(call, None).arguments(), str)
    try:
        assert isinstance(parse_arguments(raw), dict)
    except ToolError as error:
        assert str(error).startswith("The arguments ") and len(str(error)) < 200
