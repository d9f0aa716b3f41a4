"""``kill -9`` of the whole program while it streams, at random moments: nothing is lost, nothing is left running."""

from __future__ import annotations

import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pytest

from agent_tui.engine.agent import Agent
from agent_tui.engine.conversation import Conversation
from agent_tui.models.codec import dumps
from agent_tui.models.messages import INTERRUPTED_RESULT, Message, ToolCallPart, ToolResultPart, user_message
from agent_tui.tools.sandbox.processes import descendants
from tests.support.agents import TokenCounter, parts_for, results, running
from tests.support.cli import REPOSITORY
from tests.support.compaction_world import assert_valid
from tests.support.contexts import assert_identities
from tests.support.forms import examples

KILLS = examples(6, 100)
PATIENCE = 30.0
"""Seconds a process may take to end after the kill; it takes milliseconds."""

WORDS = "the answer has several words and goes on for a while, " * 12
SCRIPT = f"""
window = 6000
max_output = 1500
[[step]]
reasoning = "{WORDS}"
text = "{WORDS}"
tool_calls = [
    {{ name = "list", arguments = {{ path = "." }} }},
    {{ name = "bash", arguments = {{ command = "cat notes.txt" }} }},
]
chunk = 8
delay = 0.001
[[step]]
reasoning = "{WORDS}"
text = "{WORDS}"
chunk = 8
delay = 0.001
"""


@dataclass
class Life:
    """One run of the program on a session, ended by force after a number of its events."""

    home: Path
    project: Path
    script: Path
    events: list[dict[str, object]] = field(default_factory=list)

    def run(self, session: str | None, lines: int) -> int:
        """Returns how many processes it had started."""
        arguments = ["-p", "and on", "-m", "demo", "--output-format", "stream-json", "--permission-mode", "auto"]
        environment = {
            **os.environ,
            "AGENT_TUI_HOME": str(self.home),
            "AGENT_TUI_DEMO_SCRIPT": str(self.script),
            "PYTHONPATH": str(REPOSITORY),
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "agent_tui", *arguments, *(["-r", session] if session else [])],
            cwd=self.project,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout is not None and process.stderr is not None
        try:
            self._read(process.stdout, lines)
        finally:
            left = kill(process)
        self._read(process.stdout, 1_000_000)
        said = process.stderr.read()
        process.stdout.close()
        process.stderr.close()
        assert "Traceback" not in said, said
        return left

    def _read(self, out: IO[str], lines: int) -> None:
        for _ in range(lines):
            line = out.readline()
            if not line:
                return
            if line.endswith("\n"):
                self.events.append(json.loads(line))

    def seen(self, kind: str) -> list[dict[str, object]]:
        return [e for e in self.events if e["type"] == kind]


def kill(process: subprocess.Popen[str]) -> int:
    """Ends the program and waits until everything that it started has ended too. Returns how many that were."""
    if process.poll() is None:
        process.send_signal(signal.SIGSTOP)
    watched = []
    for pid in descendants(process.pid):
        try:
            watched.append(os.pidfd_open(pid))
        except ProcessLookupError:
            continue
    process.kill()
    process.wait(PATIENCE)
    for descriptor in watched:
        ended, _, _ = select.select([descriptor], [], [], PATIENCE)
        os.close(descriptor)
        assert ended, "a process was left behind"
    return len(watched)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs pidfd_open, to wait for processes of others")
async def test_kill_nine_at_random_moments(tmp_path: Path) -> None:
    home, project, script = tmp_path / "home", tmp_path / "project", tmp_path / "script.toml"
    project.mkdir()
    (project / "notes.txt").write_text("a note\n" * 150)
    script.write_text(SCRIPT)
    chance = random.Random(9)
    session: str | None = None
    known: dict[str, str] = {}
    children = compactions = cut = 0
    for _ in range(KILLS):
        life = Life(home, project, script)
        children += life.run(session, chance.randrange(1, 420))
        started = life.seen("session")
        if session is None and started:
            session = str(started[0]["session_id"])
        if session is None:
            continue
        compactions += bool(life.seen("compaction"))
        # No script here: the demo answers by itself, in a window of its own.
        look = Agent(parts_for(home, project, counter=TokenCounter(), resume=session))
        looked = await look.inspect()
        await look.close()
        parts = parts_for(home, project, counter=TokenCounter(), resume=session)
        async with running(parts) as (agent, seen):
            await agent.context.ready()
            assert agent.context.usage().total == looked.total
            assert not agent.conversation.read_only
            stored = {i: dumps(m) for i, m in agent.store.messages.all(agent.conversation.info.id).items()}
            assert {i: stored.get(i) for i in known} == known
            assert_valid(agent.conversation.view())
            assert_identities(agent.context.usage())
            assert all(s.status != "running" for s in agent.conversation.steps)
            assert all(
                r.summary_id in agent.conversation.summaries
                for r in agent.conversation.own_records
                if r.kind == "summary"
            )
            new = [m for m in agent.conversation.path if m.id not in known]
            if life.seen("step_start"):
                assert new and new[0].role == "user" and new[0].text == "and on"
            results = [m.tool_result for m in new if m.tool_result is not None]
            finished = [r for r in results if not r.text.startswith(INTERRUPTED_RESULT)]
            assert len(finished) >= len(life.seen("tool_result"))
            answers = [m for m in new if m.role == "assistant"]
            assert all(WORDS.startswith(m.text) and WORDS.startswith(m.reasoning) for m in answers)
            cut += any(m.status == "stopped" for m in answers)
            agent.turns.submit("what is in it?")
            await agent.turns.join()
            await agent.context.ready()
            assert seen.last_end.stop_reason == "end"
            assert_valid(agent.conversation.view())
            known = {i: dumps(m) for i, m in agent.store.messages.all(agent.conversation.info.id).items()}
    print(f"{KILLS} kills, {cut} cut answers, {compactions} with a compaction, {children} processes ended with it")
    assert cut >= KILLS // 4
    assert children >= KILLS // 2


async def test_calls_that_ran_when_the_program_was_killed_say_so(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    parts = parts_for(home, project)
    session = parts.store.sessions.create(str(project), "demo")
    before = Conversation(parts.store, session)
    before.append(user_message("look"))
    calls = [ToolCallPart(f"call{n}", "bash", '{"command": "make"}') for n in range(2)]
    before.append(Message("answer", "assistant", [*calls]))
    before.append(Message("done", "tool", [ToolResultPart("call0", "bash", "made")]))
    parts.store.close()
    look = Agent(parts_for(home, project, resume=session.id))
    looked = await look.inspect()
    await look.close()
    for _ in range(2):
        async with running(parts_for(home, project, resume=session.id)) as (agent, _):
            await agent.context.ready()
            made, cut = results(agent)
            assert made.text == "made"
            assert (cut.call_id, cut.is_error) == ("call1", True)
            assert cut.text.startswith(INTERRUPTED_RESULT) and "outcome is unknown" in cut.text
            assert agent.context.usage().total == looked.total
            assert_valid(agent.conversation.view())


@pytest.mark.slow
async def test_a_compaction_killed_at_any_statement_is_whole_or_not_there(tmp_path: Path) -> None:
    """What the disk holds before each statement is what a kill there would leave."""
    home, project, moments = tmp_path / "home", tmp_path / "p", list[Path]()

    def keep(statement: str) -> None:
        moments.append(tmp_path / f"moment-{len(moments)}")
        shutil.copytree(home, moments[-1])

    async with running(parts_for(home, project)) as (agent, _):
        for number in range(5):
            agent.turns.submit(f"{number}: never forget rule {number}; tell me a lot")
            await agent.turns.join()
        await agent.context.ready()
        session, before = agent.conversation.info.id, [sent.key for sent in agent.conversation.view()]
        agent.store.database.connection.set_trace_callback(keep)
        await agent.compaction.now()
        agent.store.database.connection.set_trace_callback(None)
        keep("the end")
        after = [sent.key for sent in agent.conversation.view()]
        assert before != after
    found = []
    for moment in moments:
        async with running(parts_for(moment, project, resume=session)) as (agent, _):
            view = agent.conversation.view()
            assert_valid(view)
            found.append([sent.key for sent in view])
            paid = [step for step in agent.conversation.steps if step.kind == "compaction"]
            assert all(step.status != "running" for step in paid)
            if found[-1] == after:
                assert paid and paid[-1].cost_usd is not None
                await agent.compaction.undo()
            assert [sent.key for sent in agent.conversation.view()] == before
    assert before in found and found[-1] == after
    assert found == [before] * found.index(after) + [after] * (len(found) - found.index(after))
