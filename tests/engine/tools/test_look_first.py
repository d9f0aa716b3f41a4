"""Commands that look before anybody is asked: what is asked then, what an answer does; nothing is done twice."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from agent_tui.commands.tool_words import result_facts
from agent_tui.config import PermissionsConfig, SandboxConfig
from agent_tui.models.events import Event, MessageAdded, PermissionAsked, RuleOffer, ToolOutput
from agent_tui.tools.base import Intent
from agent_tui.tools.builtin.bash import LOOKS_ON
from agent_tui.tools.permissions.permissions import Permissions
from agent_tui.tools.rules.decision import Decision
from agent_tui.tools.sandbox.box import Sandbox
from agent_tui.tools.sandbox.jail import Jail
from tests.support.agents import results, running, say
from tests.support.developer import answering, parts
from tests.support.forms import one_of
from tests.support.git import git
from tests.support.scripts import step
from tests.support.tool_context import permissions_of

# A clone of these tests below /tmp is in the commands' /tmp, too: no name here is one that somebody gives a folder.
COUNTS = "echo ran >> $TMPDIR/look-first-runs; "


@pytest.fixture(autouse=True)
def judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command may look, and asks when it was stopped, as it is judged in ``ask`` where a sandbox holds."""

    def look(self: Permissions, intent: Intent) -> Decision:
        if self.mode == "plan":
            return Decision("allow")
        if self.mode != "ask":
            return Decision("allow", domain="work")
        question = Decision("ask", "runs it", domain="work", patterns=["bash(make *)"])
        return Decision("allow", domain="look", if_stopped=question)

    monkeypatch.setattr(Permissions, "_command", look)


def held(tmp_path: Path, project: Path, script: str, sandbox: Sandbox, **more: Any) -> Any:
    made = parts(tmp_path, project, script, **more)
    made.jail = Jail(SandboxConfig(), project, tmp_path / "cache", sandbox=sandbox)
    made.permissions.holds = made.jail.holds
    made.jail.policy().prepare()
    # What is new there is gone before a command runs once more.
    (made.jail.policy().temporary / "look-first-runs").touch()
    return made


def runs(made: Any) -> int:
    return len((made.jail.policy().temporary / "look-first-runs").read_text().split())


STOPPED = {
    "touch new": "wants to write new",
    "mkdir -p out/a 2>/dev/null; test -d out": "wants to write out/",
    "cp src/calc.py copy.py 2>&1 | tail -3": "wants to write copy.py",
    "LANG=de_DE.UTF-8 touch new": "wants to write new",
    "git stash -q || git tag new": "wants to write .git/",
    "git hash-object -w src/calc.py": "wants to write .git/ ",
    "python3 -c \"open('made','w')\" || true": "wants to write made",
    "sed -i s/a/b/ src/calc.py": "wants to write src/",
    "cd src && mv calc.py was.py": "wants to write src/",
    "rm -rf src": "wants to write src/",
    "ln -s look-first-l $TMPDIR/look-first-l; : > $TMPDIR/look-first-l/a; touch new": "wants to write new",
    "python3 -c 'import ctypes; ctypes.CDLL(None).open(ctypes.c_void_p(-16), 1)'; touch new": "wants to write new",
}


def each(commands: Iterable[str]) -> str:
    """The script of a model that runs one after the other."""
    return "".join(step(bash={"command": COUNTS + command}) for command in commands) + step("ok")


@pytest.mark.forms(1)
@pytest.mark.parametrize("third", one_of(range(3)))
async def test_what_was_stopped_is_asked_about_however_it_was_said(
    tmp_path: Path, project: Path, sandbox: Sandbox, third: int
) -> None:
    stopped = dict([*STOPPED.items()][third::3])
    made = held(tmp_path, project, each(stopped), sandbox)
    async with running(made) as (agent, _):
        asked = answering(agent, allow=False)
        await say(agent, "go")
        assert len(asked) == len(results(agent)) == len(stopped)
        wrong = []
        for (command, wants), question, result in zip(stopped.items(), asked, results(agent), strict=True):
            said = question.reason.split(" · ")[0]
            well = question.reason.startswith(wants) and "runs again in the sandbox" in question.reason
            well = well and f"[It {said.replace('wants', 'wanted')}." in result.text and result.is_error
            if not well or next(iter(result_facts(result))) != "refused":
                wrong.append((command, question.reason, result.text))
        assert wrong == []
        assert runs(made) == len(stopped)
    assert git(project, "status", "--porcelain") == ""


async def test_what_a_file_is_said_to_be_is_a_change_of_it(tmp_path: Path, project: Path, sandbox: Sandbox) -> None:
    """Tools of builds set the times of their folders, and fail in words of their own."""
    assert sandbox.backend is not None
    if not sandbox.backend.own_tmp:
        pytest.skip("the filter that refuses it here comes before the one that tells of it")
    command = f"{COUNTS}{sys.executable} -c 'import os; os.utime(\"src\")' 2>/dev/null || exit 1"
    made = held(tmp_path, project, step(bash={"command": command}) + step("ok"), sandbox)
    async with running(made) as (agent, _):
        asked = answering(agent)
        await say(agent, "go")
        assert [a.reason.split(" · ")[0] for a in asked] == ["wants to write src/"] and not results(agent)[0].is_error


@pytest.mark.forms(1)
async def test_a_yes_runs_it_again_and_only_that_result_is_sent(
    tmp_path: Path, project: Path, sandbox: Sandbox
) -> None:
    command = (
        COUNTS
        + "mkdir $TMPDIR/look-first-new && echo x > $TMPDIR/look-first-x && mkdir out && echo made > out/x && cat out/x"
    )
    made = held(tmp_path, project, step(bash={"command": command}) + step("ok"), sandbox)
    async with running(made) as (agent, seen):
        asked = answering(agent)
        await say(agent, "go")
        assert len(asked) == 1 and asked[0].reason.startswith("wants to write out/")
        assert [(r.text, r.is_error) for r in results(agent)] == [("made", False)]
        assert runs(made) == 2 and seen.of(ToolOutput)


HARMLESS = (
    "cat src/calc.py",
    "python3 src/check.py",
    "git status --short; git log --oneline",
    "mkdir -p src; rm -f nothing; echo x > $TMPDIR/look-first-x",
    "python3 -c 'import sys; sys.path.insert(0, \"src\"); import calc'",
    "touch .pytest_cache 2>/dev/null; true",
    "echo 1 passed; mkdir .benchmarks 2>/dev/null; true",
    "echo 1 failed; python3 -c 'import os; os.mkdir(\".benchmarks\")' 2>/dev/null; exit 1",
    "echo 3 passed; touch .coverage .testmondata 2>/dev/null; true",
    "mkdir .tool_cache 2>/dev/null; echo 'Warning: .tool_cache: Read-only file system'; exit 1",
    "grep -rn nothing src | tail -1; exit 3",
    "echo 'touch: cannot touch x: Read-only file system'",
    "git config user.name x",
)
PASSES = f"{sys.executable} -m pytest -q -W error -p no:randomly passes.py"


@pytest.mark.slow
@pytest.mark.parametrize(
    "commands",
    one_of([(HARMLESS[::3],), (HARMLESS[1::3],), (HARMLESS[2::3],), ((PASSES,),)]),
    ids=["first", "second", "third", "pytest"],
)
async def test_what_only_looks_or_fails_by_itself_asks_nothing(
    tmp_path: Path, project: Path, sandbox: Sandbox, commands: tuple[str, ...]
) -> None:
    (project / "passes.py").write_text("def test_passes():\n    pass\n")
    made = held(tmp_path, project, each(commands), sandbox)
    async with running(made) as (agent, _):
        asked = answering(agent)
        await say(agent, "go")
        assert [question.summary for question in asked] == [] and runs(made) == len(commands)
        assert PASSES not in commands or "1 passed" in results(agent)[0].text, results(agent)[0].text


async def test_ports_are_opened_unasked_and_those_of_a_server_in_the_background_asked_about(
    tmp_path: Path, project: Path, sandbox: Sandbox
) -> None:
    """A command that looks has ports for itself alone: what it cannot reach another one may have open."""
    if not sandbox.has_ports("own") or not sandbox.shares:
        pytest.skip("commands share no ports here")
    (project / "own.py").write_text(
        "import socket\nserver = socket.create_server(('127.0.0.1', 0))\n"
        "socket.create_connection(server.getsockname()).close()\nprint('connected')\n"
    )
    (project / "reach.py").write_text(
        "import pathlib, socket\nport = int(pathlib.Path('port').read_text())\n"
        "print('it says', socket.create_connection(('127.0.0.1', port)).recv(9).decode())\n"
    )
    (project / "serve.py").write_text(
        "import pathlib, socket\nserver = socket.create_server(('127.0.0.1', 0))\n"
        "pathlib.Path('part').write_text(str(server.getsockname()[1]))\npathlib.Path('part').rename('port')\n"
        "while True:\n    server.accept()[0].sendall(b'served')\n"
    )
    script = step(bash={"command": f"{COUNTS}{sys.executable} own.py"})
    script += step(bash={"command": f"{sys.executable} serve.py", "background": True})
    script += step(bash={"command": "while ! test -f port; do :; done; echo it is up"})
    script += step(bash={"command": f"{sys.executable} reach.py"}) + step("ok")
    made = held(tmp_path, project, script, sandbox)
    async with running(made) as (agent, _):
        asked = answering(agent)
        await say(agent, "go")
        said = [result.text for result in results(agent)]
        assert said[0] == "connected" and "it is up" in said[2] and said[3] == "it says served", said
        assert [a.reason.split(" · ")[0] for a in asked] == ["runs it", "wants to reach a port"]
        assert runs(made) == 1


@pytest.mark.forms(1)
@pytest.mark.parametrize("more", [{"timeout": 0.5}, {"background": True}])
async def test_what_was_ended_or_goes_on_never_runs_again(
    tmp_path: Path, project: Path, sandbox: Sandbox, more: dict[str, object]
) -> None:
    call: dict[str, Any] = {"command": COUNTS + "touch new; sleep 600", **more}
    made = held(tmp_path, project, step(bash=call) + step("ok"), sandbox)
    async with running(made) as (agent, _):
        asked = answering(agent, allow=False)
        await say(agent, "go")
        # What goes on is asked about before it begins, as it cannot begin again.
        assert [a.reason.split(" · ")[0] for a in asked] == (["runs it"] if "background" in more else [])
        if "background" not in more:
            assert "timed out" in results(agent)[0].text and runs(made) == 1


@pytest.mark.quick
async def test_an_interrupt_at_the_question_keeps_what_was_said(
    tmp_path: Path, project: Path, sandbox: Sandbox
) -> None:
    made = held(tmp_path, project, step(bash={"command": COUNTS + "echo said; touch new"}) + step("ok"), sandbox)
    async with running(made) as (agent, seen):
        saying = asyncio.ensure_future(say(agent, "go"))
        await seen.until(lambda: seen.of(PermissionAsked))
        agent.turns.interrupt()
        await saying
        assert "interrupted" in results(agent)[0].text and "said" in results(agent)[0].text
        assert runs(made) == 1 and not (project / "new").exists()


@pytest.mark.forms(1)
@pytest.mark.parametrize(
    ("mode", "text", "times"), [("accept-edits", "made", 2), ("plan", "plan mode is read-only", 1)]
)
async def test_a_change_of_the_mode_answers_the_question(
    tmp_path: Path, project: Path, sandbox: Sandbox, mode: Any, text: str, times: int
) -> None:
    made = held(tmp_path, project, step(bash={"command": COUNTS + "touch new && echo made"}) + step("ok"), sandbox)
    async with running(made) as (agent, _):

        def change(event: Event) -> None:
            if isinstance(event, PermissionAsked):
                agent.mode.set(mode)

        agent.subscribe(change)
        await say(agent, "go")
        assert text in results(agent)[0].text and runs(made) == times


@pytest.mark.forms(1)
async def test_where_nobody_can_be_asked_the_result_says_what_would_allow_it(
    tmp_path: Path, project: Path, sandbox: Sandbox
) -> None:
    script = step(bash={"command": COUNTS + "echo said; touch new"}) + step("ok")
    made = held(tmp_path, project, script, sandbox, can_ask=False)
    async with running(made) as (agent, seen):
        await say(agent, "go")
        text = results(agent)[0].text
        assert (
            text.startswith("Refused")
            and "[It wanted to write new. Its output while it could only look:]\nsaid" in text
        )
        assert "--allow 'bash(make *)'" in text and "--permission-mode accept-edits" in text
        assert runs(made) == 1 and seen.of(MessageAdded)


@pytest.mark.forms(1)
async def test_what_the_network_kept_from_it_is_asked_with_what_grants_it(
    tmp_path: Path, project: Path, sandbox: Sandbox
) -> None:
    command = COUNTS + "echo 'curl: (6) Could not resolve host: pypi.org'; exit 6"
    made = held(tmp_path, project, step(bash={"command": command}) + step("ok"), sandbox)
    async with running(made) as (agent, _):
        asked = answering(agent, allow=False)
        await say(agent, "go")
        assert asked[0].reason == (
            "wants the network (pypi.org) · runs again, with the network: any host, as hosts cannot be told apart here"
        )
        assert RuleOffer(("network(registries)",)) in asked[0].offers
        assert asked[0].offers[-1] == RuleOffer(("network(registries)",), "session")


@pytest.mark.quick
def test_a_file_that_the_user_cannot_write_is_not_what_stopped_it(tmp_path: Path) -> None:
    """It would fail in ``work`` just so: asking would be for nothing."""
    if os.geteuid() == 0:
        pytest.skip("root can write everything")
    from agent_tui.tools.sandbox.attempts import Attempts

    (tmp_path / "fixed").write_text("")
    (tmp_path / "fixed").chmod(0o444)
    attempts = Attempts([tmp_path])
    argv = attempts.wrapped(["/bin/sh", "-c", f"echo x > {tmp_path}/fixed; echo x > {tmp_path}/new"])
    fd = attempts.begin()
    subprocess.run(argv, pass_fds=[fd], check=False, capture_output=True)
    os.close(fd)
    assert list(attempts.end()) == [tmp_path / "new"]


@pytest.mark.quick
def test_rules_of_the_network_are_rules(tmp_path: Path) -> None:
    rules = ["network(registries)", "network(*.example.com)"]
    made = permissions_of(tmp_path, PermissionsConfig(allow=rules, deny=["network(bad.example.com)"]))
    assert made.grants("pypi.org", True) and made.grants("a.example.com", False)
    assert not made.grants("bad.example.com", False) and not made.grants("example.org", False)
    assert made.rules.forget("network(registries)") and not made.grants("pypi.org", True)


@pytest.mark.forms(1)
async def test_a_grant_for_the_session_is_listed_and_can_be_taken_back(
    tmp_path: Path, project: Path, sandbox: Sandbox
) -> None:
    command = COUNTS + "echo 'curl: (6) Could not resolve host: pypi.org'; exit 6"
    made = held(tmp_path, project, step(bash={"command": command}) + step("ok"), sandbox)
    async with running(made) as (agent, _):

        def grant(event: Event) -> None:
            if isinstance(event, PermissionAsked):
                agent.permissions.answer(event.request_id, True, event.offers[-1], "")

        agent.subscribe(grant)
        await say(agent, "go")
        assert ("allow", "network(registries)", "this session") in agent.project.permission_rules()
        assert made.permissions.grants("pypi.org", True) and not made.permissions.grants("example.com", False)
        assert agent.project.remove_permission_rule("network(registries)") and agent.project.permission_rules() == []
        assert not made.permissions.grants("pypi.org", True)


@pytest.mark.forms(1)
async def test_one_that_is_moved_to_the_background_is_listened_to_until_its_end(
    tmp_path: Path, project: Path, sandbox: Sandbox
) -> None:
    """Its calls would fail in ways of their own once nobody hears of them."""
    command = "echo begun; while [ ! -e src/go ]; do :; done; touch new; echo over"
    made = held(tmp_path, project, step(bash={"command": command}) + step("ok"), sandbox)
    begun = asyncio.Event()
    async with running(made) as (agent, _):
        agent.events.subscribe(lambda event: begun.set() if isinstance(event, ToolOutput) else None)
        turn = asyncio.create_task(say(agent, "go"))
        await begun.wait()
        assert agent.background.move()
        await turn
        text = results(agent)[0].text
        assert text.startswith("Runs in the background as b1;") and f"\n{LOOKS_ON}\n" in text
        (project / "src/go").touch()
        job = agent.background.jobs.get("b1")
        assert await job.ended(60)
        assert "new" in job.shown and job.shown.endswith("over\n") and not (project / "new").exists()
