"""What results are to the agent: cut and kept whole, attached, counted, interrupted."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_tui.commands.mentions import expand_mentions
from agent_tui.config import ToolsConfig
from agent_tui.engine.runtime import RESULT_CHARS
from agent_tui.models.events import PermissionAsked, ToolOutput
from agent_tui.models.messages import INTERRUPTED_RESULT, AttachmentPart
from agent_tui.tools.files.access import FileAccess
from tests.support.agents import results, running, say
from tests.support.developer import answering, once, parts, row, until
from tests.support.pixel import PIXEL, PIXEL_BASE64
from tests.support.scripts import calls_step, step

pytestmark = pytest.mark.quick


async def test_an_interrupt_kills_a_command_with_everything_it_started(tmp_path: Path, project: Path) -> None:
    command = (
        "echo $$ > pids; sleep 600 & echo $! >> pids; setsid sleep 600 & echo $! >> pids; trap '' TERM; echo up; wait"
    )
    async with running(parts(tmp_path, project, step(bash={"command": command}), "auto")) as (agent, seen):
        answering(agent)
        up = once(agent, lambda e: isinstance(e, ToolOutput) and "up" in e.text)
        agent.turns.submit("go")
        await until(up)
        agent.turns.interrupt()
        await agent.turns.join()
        assert seen.last_end.stop_reason == "interrupted" and results(agent)[0].text == (
            f"{INTERRUPTED_RESULT} by the user. Its output until then:\nup"
        )
        pids = (project / "pids").read_text().split()
        assert len(pids) == 3 and not [pid for pid in pids if _runs(pid)]


def _runs(pid: str) -> bool:
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


async def test_long_output_is_saved_where_read_reaches_it_without_asking(tmp_path: Path, project: Path) -> None:
    tools = ToolsConfig(output_limit=2_000)
    script = step(bash={"command": "seq 1 5000"}) + step("Long.")
    async with running(parts(tmp_path, project, script, tools=tools)) as (agent, _):
        await say(agent, "count")
        text = results(agent)[0].text
        assert len(text) < 2_500 and text.startswith("1\n") and text.endswith("5000")
        saved = text.partition("everything is in ")[2].partition(": read or grep it")[0]
        session = agent.conversation.info.id
    script = step(read={"path": saved, "offset": 2500, "limit": 1}, grep={"pattern": "^4711$", "path": saved}) + step(
        "ok"
    )
    async with running(parts(tmp_path, project, script, tools=tools, resume=session)) as (agent, seen):
        await say(agent, "look")
        read, grep = results(agent)[1:]
        assert read.text.startswith("2500\t2500\n") and grep.text.endswith(":4711:4711")
        assert not seen.of(PermissionAsked)


async def test_a_read_image_is_an_attachment_and_counts(tmp_path: Path, project: Path) -> None:
    (project / "pixel.dat").write_bytes(PIXEL)
    (project / "fake.png").write_text("no image")
    script = step(read={"path": "pixel.dat"}, read1={"path": "fake.png"}) + step("I see a pixel.")
    async with running(parts(tmp_path, project, script)) as (agent, _):
        await say(agent, "look")
        image, fake = [m for m in agent.conversation.path if m.role == "tool"]
        (part,) = [p for p in image.parts if isinstance(p, AttachmentPart)]
        assert part.media_type == "image/png" and part.data == PIXEL_BASE64
        assert fake.tool_result is not None and "1\tno image" in fake.tool_result.text
        assert row(agent, "attachments").tokens > 0
        usage = agent.context.usage()
        assert sum(r.tokens for r in usage.rows) == usage.total


async def test_own_commands_and_mentioned_files_have_their_rows(tmp_path: Path, project: Path) -> None:
    async with running(parts(tmp_path, project, step("I see."), "plan")) as (agent, _):
        before = agent.context.usage().total
        await agent.shell("cat src/check.py")
        shell = agent.context.usage().total
        assert shell > before
        found, problems = expand_mentions(
            "what is @src/calc.py and @src/check.py:3 for?", project, FileAccess([project])
        )
        assert [p.name for p in found] == ["src/calc.py", "src/check.py:3-3"] and problems == []
        await say(agent, "what is @src/calc.py for?", tuple(found))
        attached = row(agent, "attachments")
        assert attached.tokens > 0 and [c.label for c in attached.children]
        usage = agent.context.usage()
        assert sum(r.tokens for r in usage.rows) == usage.total


async def test_what_a_tool_does_not_know_is_passed_over_with_a_note(tmp_path: Path, project: Path) -> None:
    script = (
        step(read={"path": "src/calc.py", "limit": None, "encoding": "to \x1b[31m look", "offset": "2"})
        + step(todo={"items": [{"text": "a", "status": "pending", "due": 7}]})
        + step("Done.")
    )
    async with running(parts(tmp_path, project, script)) as (agent, _):
        await say(agent, "go")
        read, todo = results(agent)
        assert not read.is_error and not todo.is_error
        assert read.text == (
            "2\t    return a - b\n[read has no argument encoding: ignored. It takes: path, offset, limit]"
        )
        assert todo.text.endswith("[todo has no argument items.due: ignored. It takes: items]")


async def test_results_that_are_made_at_once_share_what_is_left_of_the_context(tmp_path: Path, project: Path) -> None:
    names = [f"big{number}.txt" for number in range(4)]
    for name in names:
        (project / name).write_text("one more line of it\n" * 4_000)
    script = calls_step(*(("read", f'{{"path": "{name}"}}') for name in names)) + step("Long.")
    async with running(parts(tmp_path, project, script)) as (agent, _):
        await agent.context.ready()
        usage = agent.context.usage()
        room = (usage.limit - usage.total) * RESULT_CHARS if usage.limit else None
        await say(agent, "read them")
        read = [result.text for result in results(agent)]
        assert room is not None and len(read) == 4 and all(len(text) > 1_000 for text in read)
        assert sum(map(len, read)) <= room + 4 * 500  # what says how to read on
