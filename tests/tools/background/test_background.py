"""Commands in the background: what the model is told of them, and that nothing of them stays that should not."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_tui.errors import ToolError
from agent_tui.models.events import PlanAnswer, QuestionAnswer
from agent_tui.tools import output as outputs
from agent_tui.tools.base import ToolContext, ToolOutcome
from agent_tui.tools.builtin.bash import BashTool, JobsTool
from agent_tui.tools.children.command_output import TAIL
from agent_tui.tools.children.jobs import Jobs
from agent_tui.tools.sandbox.processes import descendants
from tests.support.cli import REPOSITORY
from tests.support.forms import one_of
from tests.support.tool_context import fill_disk, make_context
from tests.support.waiting import PATIENCE, ended

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


class Nobody:
    """A user who answers nothing."""

    async def approve(self, plan: str) -> PlanAnswer | None:
        raise NotImplementedError

    async def choose(self, question: str, choices: tuple[str, ...], several: bool) -> QuestionAnswer:
        raise NotImplementedError


@pytest.fixture
async def held() -> AsyncIterator[Jobs]:
    made = Jobs()
    yield made
    await made.close()


@pytest.fixture
def context(tmp_path: Path, held: Jobs) -> ToolContext:
    made = make_context(tmp_path / "project", output_limit=2_000)
    made.jobs = held
    made.user = Nobody()
    return made


async def background(context: ToolContext, command: str, **more: Any) -> str:
    """Starts a command; its id."""
    outcome = await BashTool().run({"command": command, "background": True, **more}, context)
    assert not outcome.is_error and context.jobs is not None
    newest = context.jobs.all()[-1].id
    assert newest in outcome.text
    return newest


async def jobs(context: ToolContext, id: str | None = None, **more: Any) -> ToolOutcome:
    return await JobsTool().run({"id": id, **more}, context)


@pytest.mark.quick
async def test_it_answers_at_once_and_each_look_has_what_is_new(context: ToolContext) -> None:
    os.mkfifo(context.root / "go")
    id = await background(context, "echo one; cat go; echo two; exit 3")
    said = ""
    while "one" not in said:
        look = await jobs(context, id, wait=0.01)
        said += look.text
    assert not look.is_error and f"[{id} has been running for" in look.text
    assert "[no new output]" in (await jobs(context, id)).text
    await asyncio.to_thread((context.root / "go").write_text, "middle\n")
    last = await jobs(context, id, wait=PATIENCE)
    assert last.text.startswith("middle\ntwo\n") and last.text.endswith(": exit code 3]") and last.is_error
    assert context.jobs is not None and Path(context.jobs.get(id).info.log).read_text() == "one\nmiddle\ntwo\n"


@pytest.mark.quick
async def test_what_it_says_is_harmless_masked_and_capped(context: ToolContext) -> None:
    context.secrets.add("sk-abcdefghijklmnopqrstuvwxyz0123456789")
    command = r"printf '\033]0;title\007\033[31mred\033[0m sk-abcdefghijklmnopqrstuvwxyz0123456789\n'"
    command += "; seq 3000; echo end"
    id = await background(context, command)
    text = (await jobs(context, id, wait=PATIENCE)).text
    assert "\x1b" not in text and "title" not in text and "sk-abc" not in text
    assert text.startswith("red ") and "\n3000\nend\n" in text and len(text) < 2_600
    assert context.jobs is not None
    log = context.jobs.get(id).info.log
    assert log in text and "\n1500\n" in Path(log).read_text() and "sk-abc" not in Path(log).read_text()
    assert Path(log).stat().st_mode & 0o077 == 0


async def test_a_line_that_is_not_finished_is_seen(context: ToolContext) -> None:
    os.mkfifo(context.root / "go")
    id = await background(context, "printf 'Really? [y/N] '; cat go")
    while "Really?" not in (await jobs(context, id, wait=0.01)).text:
        pass
    await jobs(context, id, stop=True)


@pytest.mark.quick
async def test_a_stop_ends_all_of_it(context: ToolContext) -> None:
    os.mkfifo(context.root / "hold")
    before = set(descendants(os.getpid()))
    id = await background(context, "setsid cat hold & echo pid=$!; (trap '' TERM; cat hold) & echo pid=$!; cat hold")
    pids: list[str] = []
    while len(pids) < 2:
        pids += re.findall(r"pid=(\d+)", (await jobs(context, id, wait=0.01)).text)
    outcome = await jobs(context, id, stop=True)
    assert "was stopped after" in outcome.text and not outcome.is_error
    await ended(*map(int, pids[:2]))
    assert set(descendants(os.getpid())) <= before
    assert "was stopped" in (await jobs(context, id, stop=True)).text


async def test_the_list_and_wrong_ids(context: ToolContext) -> None:
    assert (await jobs(context)).text == "Nothing runs in the background."
    first = await background(context, "echo done")
    await jobs(context, first, wait=PATIENCE)
    os.mkfifo(context.root / "hold")
    second = await background(context, "cat hold")
    lines = (await jobs(context)).text.splitlines()
    assert "exit code 0" in lines[0] and "echo done" in lines[0] and "running" in lines[1] and "cat hold" in lines[1]
    with pytest.raises(ToolError, match=f"There are: .*{second}"):
        await jobs(context, "b99")
    with pytest.raises(ToolError, match="which one"):
        await jobs(context, stop=True)
    with pytest.raises(ToolError, match="wait"):
        await jobs(context, second, wait=-1)


async def test_a_time_limit_holds(context: ToolContext) -> None:
    os.mkfifo(context.root / "hold")
    id = await background(context, "cat hold", timeout=0.1)
    assert "by its time limit]" in (await jobs(context, id, wait=PATIENCE)).text


async def test_a_command_that_took_too_long_is_told_of_the_background(context: ToolContext) -> None:
    os.mkfifo(context.root / "hold")
    outcome = await BashTool().run({"command": "cat hold", "timeout": 0.1}, context)
    assert outcome.text == "[timed out after 0.1 s and was ended; background: true has no limit]"


async def test_one_that_is_waited_for_is_moved_there_and_runs_on(context: ToolContext) -> None:
    assert context.jobs is not None and not context.jobs.move()
    os.mkfifo(context.root / "go")
    begun = asyncio.Event()
    context.emit = lambda _: begun.set()
    command = "echo one; printf 'Really? '; cat go; echo two; exit 3"
    call = asyncio.create_task(BashTool().run({"command": command, "timeout": PATIENCE}, context))
    await asyncio.wait_for(begun.wait(), PATIENCE)
    assert context.jobs.move()
    outcome = await call
    (job,) = context.jobs.all()
    lines = outcome.text.splitlines()
    assert lines[0] == f"Runs in the background as {job.id}; you will be told when it ends. It ends with the session."
    assert lines[-2:] == ["[the user moved it there; its output so far:]", "one"] and not outcome.is_error
    assert context.jobs.keep(job.id).kept and not context.jobs.keep(job.id, False).kept
    assert not context.jobs.move(), "it is waited for no more"
    await asyncio.to_thread((context.root / "go").write_text, "middle\n")
    last = await jobs(context, job.id, wait=PATIENCE)
    assert last.text.startswith("Really? middle\ntwo\n") and last.text.endswith(": exit code 3]")
    assert Path(job.info.log).read_text() == "one\nReally? middle\ntwo\n" == job.shown


@pytest.mark.quick
@pytest.mark.parametrize(
    "command",
    [
        "printf 'a\\nb'; exit 3",
        "echo out; echo err >&2; kill -TERM $$",
        "seq 3000",
        "cat hold & echo left",
        "exec >&- 2>&-; exit 4",
        "printf '\\033[31mred\\033[0m sk-abcdefghijklmnopqrstuvwxyz0123456789'",
    ],
)
async def test_whether_somebody_waits_makes_no_difference_to_what_it_says(context: ToolContext, command: str) -> None:
    context.secrets.add("sk-abcdefghijklmnopqrstuvwxyz0123456789")
    os.mkfifo(context.root / "hold")
    waited = await BashTool().run({"command": command}, context)
    id = await background(context, command)
    assert context.jobs is not None and await context.jobs.get(id).ended(PATIENCE)
    outcome = await jobs(context, id)

    def plain(text: str) -> list[str]:
        lines = [re.sub(r"\S*/spill/\S*", "FILE", line) for line in text.split("\n")]
        return [line for line in lines if not re.fullmatch(r"\[(exit code|ended by|b1 ended|no new).*\]", line)]

    assert plain(waited.text) == plain(outcome.text)
    assert waited.is_error == outcome.is_error and context.jobs.get(id).ending() in outcome.text
    assert waited.is_error is False or f"[{context.jobs.get(id).ending()}]" in waited.text


async def test_that_of_a_subagent_is_not_moved_and_not_told(context: ToolContext) -> None:
    subagents = replace(context, user=None, session_id="ses_child")
    call = await held_up(subagents, "echo one")
    assert context.jobs is not None and not context.jobs.move()
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    started = {"command": "cat hold", "background": True}
    outcome = await BashTool().run(started, subagents)
    assert outcome.text.startswith("Runs in the background as b1; wait for its end with jobs, nobody tells you of it.")
    assert "you will be told when it ends" in (await BashTool().run(started, context)).text


async def test_a_subagent_sees_and_stops_only_what_it_started(context: ToolContext) -> None:
    os.mkfifo(context.root / "hold")
    subagents = replace(context, user=None, session_id="ses_child")
    first, over = await background(context, "cat hold"), await background(context, "true")
    its = await background(subagents, "cat hold")
    assert context.jobs is not None and await context.jobs.get(over).ended(PATIENCE)
    assert its in (listed := (await jobs(subagents)).text) and first not in listed
    for id in (first, over):
        for more in ({}, {"stop": True}, {"wait": PATIENCE}):
            with pytest.raises(ToolError, match=rf"There are: {its}\."):
                await jobs(subagents, id, **more)
    assert context.jobs.get(first).running and not context.jobs.get(over).told
    assert "was stopped" in (await jobs(subagents, its, stop=True)).text
    assert its in (await jobs(context)).text and "was stopped" in (await jobs(context, its)).text


async def test_one_that_cannot_be_moved_is_ended(context: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    assert context.jobs is not None
    before = set(descendants(os.getpid()))
    os.mkfifo(context.root / "hold")
    begun = asyncio.Event()
    context.emit = lambda _: begun.set()
    context.spill_dir = context.root / "hold"
    call = asyncio.create_task(BashTool().run({"command": "echo one; cat hold"}, context))
    await asyncio.wait_for(begun.wait(), PATIENCE)
    assert context.jobs.move()
    with pytest.raises(ToolError, match="could not be saved"):
        await call
    assert set(descendants(os.getpid())) <= before and context.jobs.all() == []


async def held_up(context: ToolContext, command: str) -> asyncio.Task[ToolOutcome]:
    """A call of a command that has said something and holds."""
    os.mkfifo(context.root / "hold")
    begun = asyncio.Event()
    context.emit = lambda _: begun.set()
    call = asyncio.create_task(BashTool().run({"command": f"{command}; cat hold"}, context))
    await asyncio.wait_for(begun.wait(), PATIENCE)
    return call


@pytest.mark.forms(1)
@pytest.mark.parametrize("later", range(6))
async def test_an_interrupt_right_after_the_move_leaves_none_without_an_owner(context: ToolContext, later: int) -> None:
    before, kept = set(descendants(os.getpid())), list[str]()
    context.keep = kept.append
    call = await held_up(context, "echo one")
    assert context.jobs is not None and context.jobs.move()
    for _ in range(later):
        await asyncio.sleep(0)
    call.cancel()
    (ended_as,) = await asyncio.gather(call, return_exceptions=True)
    if jobs := context.jobs.running():
        assert isinstance(ended_as, ToolOutcome) and len(jobs) == 1
    else:
        assert isinstance(ended_as, asyncio.CancelledError) and kept == ["one"]
        assert set(descendants(os.getpid())) <= before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("moved", [True, False])
async def test_on_a_full_disk_it_is_ended_and_said(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch, moved: bool
) -> None:
    before = set(descendants(os.getpid()))
    fill_disk(monkeypatch)
    call = await held_up(context, "seq 1000")
    if moved:
        assert context.jobs is not None and context.jobs.move()
        with pytest.raises(ToolError, match="No space"):
            await call
        assert context.jobs.all() == []
    else:
        kept = list[str]()
        context.keep = kept.append
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert "No space" in kept[0]
    assert set(descendants(os.getpid())) <= before


async def test_there_is_an_end_to_how_many_run(context: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_tui.tools.children.jobs.MAX_RUNNING", 2)
    os.mkfifo(context.root / "hold")
    assert context.jobs is not None
    for _ in range(2):
        await background(context, "cat hold")
    with pytest.raises(ToolError, match="already"):
        await background(context, "cat hold")


@pytest.mark.quick
async def test_where_nothing_can_run_in_the_background_it_says_so(context: ToolContext) -> None:
    context.jobs = None
    for tool, arguments in ((BashTool(), {"command": "true", "background": True}), (JobsTool(), {})):
        with pytest.raises(ToolError, match="nothing can run in the background"):
            await tool.run(arguments, context)


async def test_a_command_that_talks_without_end_fills_neither_memory_nor_disk(
    context: ToolContext, held: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "LOG_BYTES", 300_000)
    id = await background(context, "yes 'a line that comes again and again'")
    job = held.get(id)
    log = Path(job.info.log)
    async with asyncio.timeout(PATIENCE):
        while log.stat().st_size < 300_000:
            await job.ended(0.01)
    await jobs(context, id, stop=True)
    assert log.stat().st_size < 301_000 and "the log is full" in log.read_text()[-100:]
    assert len(job.shown) <= TAIL + 100 and "again" in job.info.last_line


@pytest.mark.quick
def test_what_is_new_keeps_both_ends(tmp_path: Path) -> None:
    output = outputs.Collector(1_000, tmp_path, "x")
    output.open()
    for number in range(2_000):
        output.feed(f"{number}\n")
    text = output.take().text
    assert text.startswith("0\n1\n") and text.endswith("1998\n1999\n") and len(text) < 1_300
    assert output.take().text == ""
    output.feed("more\n")
    assert output.take().text == "more\n"
    output.close()


async def test_another_session_ends_them_but_those_that_are_kept(context: ToolContext, held: Jobs) -> None:
    os.mkfifo(context.root / "hold")
    before = set(descendants(os.getpid()))
    first, second = await background(context, "cat hold"), await background(context, "cat hold")
    pids = {id: held.get(id).info.pid for id in (first, second)}
    held.keep(second)
    assert [job.id for job in held.session_ended()] == [first]
    assert [job.id for job in held.all()] == [second]
    await ended(pids[first])
    held.keep(second, False)
    assert await held.close() == []
    await ended(pids[second])
    assert set(descendants(os.getpid())) <= before


# The program's end, in whatever way

PROGRAM = """
import asyncio, os, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from agent_tui.tools.children.jobs import Jobs
from agent_tui.tools.builtin.bash import BashTool
from tests.support.tool_context import make_context

async def main():
    context = make_context(Path.cwd())
    context.jobs = jobs = Jobs()
    await BashTool().run({{"command": sys.argv[1], "background": True}}, context)
    job = jobs.all()[0]
    if sys.argv[2] == "keep":
        jobs.keep(job.id)
    while "ready" not in job.info.last_line:
        await job.ended(0.01)
    print(job.info.pid, job.info.log, flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    for info in await jobs.close():
        print("left", info.id, flush=True)

asyncio.run(main())
"""


class Program:
    """A process with one command in the background that says "ready", and a word for every line that ``tell`` gives."""

    def __init__(self, folder: Path, keep: bool) -> None:
        folder.mkdir()
        self.fifo = folder / "words"
        os.mkfifo(self.fifo)
        command = "exec 8<>words; echo ready; while read -r word <&8; do echo $word; [ $word = exit ] && exit 0; done"
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.format(root=str(REPOSITORY)), command, "keep" if keep else "end"],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        pid, log = self.process.stdout.readline().split()
        self.pid, self.log = int(pid), Path(log)
        self.family = descendants(self.pid)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def leave(self) -> str:
        """The end of the program that was asked for; what it says."""
        return self.process.communicate("\n")[0]

    def tell(self, word: str) -> None:
        self.fifo.open("a").write(f"{word}\n")


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[list[Program]]:
    made: list[Program] = []
    yield made
    for program in made:
        program.process.kill()
        program.process.communicate()
        with contextlib.suppress(ProcessLookupError):
            os.kill(program.pid, signal.SIGTERM)


@pytest.mark.quick
@pytest.mark.parametrize("way", one_of(["kill", "leave"]))
async def test_with_the_program_it_ends(way: str, tmp_path: Path, programs: list[Program]) -> None:
    program = Program(tmp_path / "p", keep=False)
    programs.append(program)
    getattr(program, way)()
    await ended(program.pid, *program.family)


@pytest.mark.slow
@pytest.mark.parametrize("way", one_of(["leave", "kill"]))
async def test_one_that_is_kept_goes_on_and_its_words_go_to_the_log(
    way: str, tmp_path: Path, programs: list[Program]
) -> None:
    program = Program(tmp_path / "p", keep=True)
    programs.append(program)
    said = getattr(program, way)()
    assert said is None or "left b1" in said
    program.tell("afterwards")
    program.tell("exit")
    await ended(program.pid, *program.family)
    assert program.log.read_text().split() == ["ready", "afterwards", "exit", "[exit", "code", "0]"]


async def test_one_that_was_left_ends_with_the_process_that_is_named(tmp_path: Path, programs: list[Program]) -> None:
    program = Program(tmp_path / "p", keep=True)
    programs.append(program)
    program.kill()
    os.kill(program.pid, signal.SIGTERM)
    await ended(program.pid, *program.family)
