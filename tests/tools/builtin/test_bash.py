from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from agent_tui.config import ToolsConfig
from agent_tui.errors import ToolError
from agent_tui.tools.base import ToolContext, ToolOutcome
from agent_tui.tools.builtin.bash import BashTool
from agent_tui.tools.builtin.find import GrepTool
from agent_tui.tools.builtin.read import ReadTool
from agent_tui.tools.sandbox.processes import descendants
from tests.support.tool_context import make_context

pytestmark = pytest.mark.quick


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return make_context(tmp_path / "project", output_limit=2_000)


async def bash(context: ToolContext, command: str, timeout: float | None = None) -> ToolOutcome:
    return await BashTool().run({"command": command, "timeout": timeout}, context)


async def end_of(pipe: int) -> bytes:
    """Everything written to a pipe until the last process that holds it is gone."""

    def read() -> bytes:
        with os.fdopen(pipe, "rb") as file:
            return file.read()

    return await asyncio.to_thread(read)


async def test_output_errors_and_exit_code(context: ToolContext) -> None:
    outcome = await bash(context, "echo out; echo err >&2; exit 3")
    assert (outcome.text, outcome.is_error) == ("out\nerr\n[exit code 3]", True)
    assert outcome.display is not None and outcome.display["exit_code"] == 3
    assert (await bash(context, "true")).text == "[no output]"
    assert (await bash(context, "kill -TERM $$")).text == "[ended by SIGTERM]"
    assert (await bash(context, "cat; tty; pwd")).text == f"not a tty\n{context.root}"
    assert (await bash(context, "exec >&- 2>&-; exit 4")).text == "[exit code 4]"


async def test_output_is_made_harmless(context: ToolContext) -> None:
    command = r"printf '\033]0;title\007\033]52;c;eA==\033\\\033[31mred\033[0m\0\b \377 10%%\r20%%\n[b]bold[/b]\r\n'"
    assert (await bash(context, command)).text == "20%\n[b]bold[/b]"


async def test_live_output_comes_before_the_end(context: ToolContext) -> None:
    lines: asyncio.Queue[str] = asyncio.Queue()
    context.emit = lines.put_nowait
    os.mkfifo(context.root / "go")
    task = asyncio.ensure_future(bash(context, "echo first; cat go; echo last"))
    assert await lines.get() == "first\n"
    await asyncio.to_thread((context.root / "go").write_text, "middle\n")
    assert (await task).text == "first\nmiddle\nlast"


async def test_long_output_keeps_both_ends_and_the_rest_can_be_read(context: ToolContext) -> None:
    text = (await bash(context, "echo start; seq 1 3000; echo end")).text
    assert text.startswith("start\n1\n") and text.endswith("\n3000\nend")
    assert len(text) < 2_400
    (spilled,) = context.spill_dir.iterdir()
    assert str(spilled) in text
    assert spilled.stat().st_mode & 0o077 == 0
    assert "1500\t1499" in (await ReadTool().run({"path": str(spilled), "offset": 1500, "limit": 1}, context)).text


async def test_what_is_counted_are_the_lines_of_everything(context: ToolContext) -> None:
    display = (await bash(context, "seq 1 200000")).display
    assert display is not None and display["lines"] == 200_000 and 100 < display["sent"] < 1_000
    display = (await bash(context, "seq 1 20; printf end")).display
    assert display is not None and "lines" not in display, "all of it was sent"


async def test_an_interrupted_command_hands_over_what_it_said(context: ToolContext) -> None:
    kept: list[str] = []
    context.keep = kept.append
    begun = asyncio.Event()
    context.emit = lambda text: begun.set()
    os.mkfifo(context.root / "hold")
    task = asyncio.ensure_future(bash(context, r"seq 1 3000; printf '\033[31mred\033[0m without end'; cat hold"))
    async with asyncio.timeout(60):
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    (text,) = kept
    assert text.startswith("1\n2\n") and len(text) < 2_400 and "\x1b" not in text


def test_the_limits_are_said() -> None:
    schema = BashTool(config=ToolsConfig(bash_timeout=45.0, output_limit=9_000)).schema
    assert "over 9000 characters" in schema.description
    assert schema.parameters["properties"]["timeout"]["description"] == "seconds, default 45, at most 3600"


async def test_a_ten_megabyte_line_does_not_fill_memory_or_answer(context: ToolContext) -> None:
    text = (await bash(context, "head -c 10000000 /dev/zero | tr '\\0' x; echo; echo end")).text
    assert len(text) < 2_400 and text.endswith("x\nend")


proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


@proc
@pytest.mark.parametrize("child", ["cat hold", "trap '' TERM; cat hold", "setsid cat hold", "(cat hold &) ; cat hold"])
async def test_cancelling_ends_children_of_children(context: ToolContext, child: str) -> None:
    read_end, write_end = os.pipe()
    os.set_inheritable(write_end, True)
    os.mkfifo(context.root / "hold")
    started = asyncio.Event()
    context.emit = lambda text: started.set()
    # Each process in the tree holds the pipe open through a file of its own; it ends when all of them are gone.
    command = f'exec 9>/proc/{os.getpid()}/fd/{write_end}; echo started; bash -c "{child}; true"; true'
    task = asyncio.ensure_future(bash(context, command))
    await started.wait()
    os.close(write_end)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await end_of(read_end) == b""


async def test_a_timeout_ends_the_group_and_keeps_the_output(context: ToolContext) -> None:
    os.mkfifo(context.root / "hold")
    outcome = await bash(context, "echo before; bash -c 'cat hold'; true", timeout=0.3)
    # The outer shell may have the time to say what became of the inner one.
    first, *_, last = outcome.text.splitlines()
    assert (first, last) == ("before", "[timed out after 0.3 s and was ended]")
    assert outcome.display is not None and outcome.display["summary"] == "timed out after 0.3 s"
    assert outcome.is_error


async def test_one_that_says_too_much_is_ended(context: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_tui.tools.children.command.MAX_BYTES", 100_000)
    monkeypatch.setattr("agent_tui.tools.builtin.bash.MAX_BYTES", 100_000)
    outcome = await bash(context, "yes")
    assert outcome.text.endswith("\n[ended: more than 100,000 bytes of output]") and outcome.is_error


@proc
async def test_processes_left_in_the_background_are_ended(context: ToolContext) -> None:
    os.mkfifo(context.root / "hold")
    outcome = await bash(context, "cat hold & echo $!")
    pid, note = outcome.text.splitlines()
    assert note == "[processes left in the background were ended]"
    assert not outcome.is_error
    stat = Path("/proc", pid, "stat")
    assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] in "ZX"


async def test_the_last_words_of_a_process_substitution_are_kept(context: ToolContext) -> None:
    assert (await bash(context, "echo hi > >(cat)")).text == "hi"


@pytest.mark.parametrize("turns", [1, 2, 3, 5, 20])
async def test_a_search_that_takes_forever_can_be_cancelled(context: ToolContext, turns: int) -> None:
    (context.root / "a").write_text("a" * 60 + "\n")
    before = set(descendants(os.getpid()))
    task = asyncio.ensure_future(GrepTool("").run({"pattern": "(a+)+$b"}, context))
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert set(descendants(os.getpid())) <= before


@pytest.mark.parametrize("command", ["", "  ", "a\0b", "\ud83d"])
async def test_commands_that_cannot_be(context: ToolContext, command: str) -> None:
    with pytest.raises(ToolError):
        await bash(context, command)
    with pytest.raises(ToolError, match="more than 0"):
        await bash(context, "true", timeout=-1)


def test_the_intent_shows_the_whole_command(context: ToolContext) -> None:
    intent = BashTool().intent({"command": "ls \\\n  -la\x1b[2K\n" + "x" * 200}, context)
    assert intent.command == "ls \\\n  -la\x1b[2K\n" + "x" * 200
    assert intent.display == {"kind": "command", "text": "ls \\\n  -la␛[2K\n" + "x" * 200}
    assert len(intent.summary) == 100 and "\n" not in intent.summary
