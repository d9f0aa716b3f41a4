"""``from agent_tui import Session``: a session that a Python program drives."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys

import pytest

from agent_tui import Question, Session
from agent_tui.errors import AgentError, ConfigError
from agent_tui.headless.incoming import image_part
from agent_tui.models.events import Notice, PartDelta, QuestionClosed, StepStarted, ToolOutput, ToolStarted, TurnEnded
from agent_tui.models.messages import attachments_of, texts_below
from agent_tui.options import Options
from agent_tui.tools.mcp.protocol import Elicit, Elicited
from tests.support.cli import REPOSITORY, Cli, answers, environment
from tests.support.forms import one_of
from tests.support.mcp_servers import ASKING
from tests.support.pixel import PIXEL_BASE64

WRITE = """
[[step]]
text = "I write it."
tool_calls = [{ name = "write", arguments = { path = "hello.txt", content = "hello" } }]
[[step]]
text = "Done."
"""


@pytest.mark.slow
def test_the_program_in_the_docs_does_what_it_says(cli: Cli) -> None:
    cli.script(WRITE)
    code = re.search(r"```python\n(.*?)```", (REPOSITORY / "docs" / "python.md").read_text("utf-8"), re.DOTALL)
    assert code is not None
    command = [sys.executable, "-c", code[1]]
    run = subprocess.run(
        command, cwd=cli.project, env=environment(cli.env), capture_output=True, text=True, timeout=60, check=True
    )
    assert run.stdout.startswith("I write it.Done.") and run.stdout.endswith(" tokens\n")
    assert (cli.project / "hello.txt").read_text() == "hello"


@pytest.mark.quick
def test_importing_the_package_loads_none_of_it() -> None:
    code = "import sys, agent_tui; print([n for n in sys.modules if n.startswith('agent_tui')])"
    run = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert run.stdout == "['agent_tui']\n"


@pytest.mark.quick
async def test_a_question_that_is_passed_over_is_declined(cli: Cli) -> None:
    cli.script(WRITE)
    async with Session(cli.project, "demo") as session:
        events = [event async for event in session.send("write")]
        question = next(event for event in events if isinstance(event, Question))
        assert any(isinstance(event, TurnEnded) for event in events)
        assert session.text == "Done." and not (cli.project / "hello.txt").exists()
        with pytest.raises(AgentError, match="This question is closed"):
            question.allow()


HALVES = """
[[step]]
tool_calls = [{ name = "bash", arguments = { command = "touch made && rm -rf gone" } }]
[[step]]
text = "Done."
"""


@pytest.mark.parametrize(
    ("option", "kind"), one_of([("y", "allow_once"), ("a", "allow_always"), ("s", "allow_always")])
)
async def test_the_options_of_a_question_are_once_or_rules_for_all_of_it(cli: Cli, option: str, kind: str) -> None:
    cli.script(HALVES + HALVES)
    asked: list[Question] = []

    async def answer(question: Question) -> None:
        asked.append(question)
        question.answer(option)

    async with Session(cli.project, "demo", on_question=answer) as session:
        for _ in range(2):
            async for _event in session.send("go"):
                pass
    lasting = [each.label for each in asked[0].options if each.kind == "allow_always"]
    assert lasting and all("bash(touch *) and bash(rm -rf gone)" in label for label in lasting)
    assert {each.id: each.kind for each in asked[0].options}[option] == kind
    assert len(asked) == (2 if option == "y" else 1) and (cli.project / "made").exists()


@pytest.mark.quick
async def test_a_callback_answers_and_what_it_raises_is_raised(cli: Cli) -> None:
    cli.script(WRITE + WRITE)
    asked: list[str] = []

    async def answer(question: Question) -> None:
        asked.append(question.tool)
        if len(asked) > 1:
            raise LookupError("no idea")
        question.allow()

    async with Session(cli.project, "demo", on_question=answer) as session:
        async for _ in session.send("write"):
            pass
        assert (asked, (cli.project / "hello.txt").read_text()) == (["write"], "hello")
        (cli.project / "hello.txt").unlink()
        with pytest.raises(LookupError):
            async for _ in session.send("again"):
                pass
        assert not (cli.project / "hello.txt").exists()


async def test_output_comes_while_a_command_runs_and_leaving_ends_the_turn(cli: Cli) -> None:
    command = "echo early; until test -e go; do :; done"
    cli.script(
        f'[[step]]\ntool_calls = [{{ name = "bash", arguments = {{ command = "{command}" }} }}]\n' + answers("On.")
    )
    async with Session(cli.project, "demo") as session:
        sending = session.send("run")
        async for event in sending:
            if isinstance(event, Question):
                event.allow()
            if isinstance(event, ToolOutput):
                assert "early" in event.text
                break
        await sending.aclose()
        assert await session.interrupt() is False
        (cli.project / "go").touch()


async def test_a_session_is_changed_and_resumed(cli: Cli) -> None:
    cli.script(answers("First.", "Second."))
    async with Session(cli.project, "demo") as session:
        said = [e.delta.text async for e in session.send("one") if isinstance(e, PartDelta)]
        assert "".join(said) == "First."
        before = (await session.context())["total"]
        first = session.agent.conversation.path[0].id
        assert await session.edit_context("drop", first)
        assert (await session.context())["total"] < before
        await session.set_mode("plan")
        with pytest.raises(AgentError):
            await session.set_mode("bypass")
        with pytest.raises(AgentError):
            await session.steer("faster")
        name = session.id
    async with Session(cli.project, "demo", resume=name) as session:
        assert session.text == "First."
        assert session.agent.conversation.info.kind == "run", "the chat's -c passes over it"
    with pytest.raises(AgentError, match="not open"):
        await session.context()
    with pytest.raises(ConfigError, match="no such folder"):
        async with Session(cli.project / "none", "demo"):
            pass


async def test_what_is_said_at_the_start_comes_with_the_first_message(cli: Cli) -> None:
    (cli.project / ".claude/commands").mkdir(parents=True)
    (cli.project / ".claude/commands/hi.md").write_text("Say hi")
    cli.script(answers("First.", "Second."))
    async with Session(cli.project, "demo") as session:
        for times in (1, 0):
            told = [event.code async for event in session.send("one") if isinstance(event, Notice)]
            assert told.count("untrusted") == times


@pytest.mark.slow
async def test_a_question_that_closes_ends_who_answers_it(cli: Cli) -> None:
    cli.script(WRITE)
    ended = asyncio.Event()

    async def answer(question: Question) -> None:
        try:
            await session.set_mode("accept-edits")  # answers it
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with Session(cli.project, "demo", on_question=answer) as session:
        events = [event async for event in session.send("write")]
        await ended.wait()
        assert sum(isinstance(event, QuestionClosed) for event in events) == 1
        assert (cli.project / "hello.txt").exists() and session.text == "Done."


async def test_what_answering_raises_while_nothing_is_sent_comes_with_the_next_message(cli: Cli) -> None:
    cli.script(answers("First."))

    async def answer(question: Question) -> None:
        raise RuntimeError("nobody is there")

    async with Session(cli.project, "demo", on_question=answer) as session:
        said = await session.agent.servers.reply(Elicit("docs", "Look there.", url="https://docs.example/"))
        assert said == Elicited("decline")
        with pytest.raises(RuntimeError, match="nobody is there"):
            await anext(session.send("one"))
        assert session.agent.conversation.path == []
        assert [event async for event in session.send("one")] and session.text == "First."


async def test_what_answering_raises_as_the_loop_is_left_comes_with_the_next_message(cli: Cli) -> None:
    cli.script(WRITE)
    go_on = asyncio.Event()

    async def answer(question: Question) -> None:
        session.agent.events.publish(Notice("info", "It is asked.", "asked"))
        await go_on.wait()
        raise RuntimeError("nobody is there")

    async with Session(cli.project, "demo", on_question=answer) as session:
        sending = session.send("write")
        async for event in sending:
            if isinstance(event, Notice) and event.code == "asked":
                go_on.set()
                await asyncio.sleep(0)
                break
        await sending.aclose()
        with pytest.raises(RuntimeError, match="nobody is there"):
            await anext(session.send("again"))


async def test_an_interrupt_before_a_message_is_sent_keeps_it(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.script(answers("Never."))
    async with Session(cli.project, "demo") as session:
        assert session.agent.parts.extensions is not None
        reached = asyncio.Event()

        async def never() -> None:
            reached.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(session.agent.parts.extensions, "ready", never)
        sending = asyncio.create_task(anext(session.send("one")))
        await reached.wait()
        assert await session.interrupt()
        assert await sending == TurnEnded("interrupted")
        assert session.agent.conversation.path == []


@pytest.mark.slow
async def test_files_named_in_a_message_and_pictures_steered_go_along(cli: Cli) -> None:
    (cli.project / "a.txt").write_text("in the file")
    cli.script(
        '[[step]]\ntext = "Looking."\ntool_calls = [{ name = "list", arguments = { path = "." } }]\n'
        + answers("Seen.", "Seen, too.")
    )
    async with Session(cli.project, "demo") as session:
        async for event in session.send("see @a.txt"):
            if isinstance(event, ToolStarted):
                await session.steer("and this", [image_part(PIXEL_BASE64, 1)])
        sent = [part.name for m in session.agent.conversation.path if m.role == "user" for part in attachments_of(m)]
        assert [name for name in sent if name in ("a.txt", "image 1")] == ["a.txt", "image 1"]


BUDGET = """
default_model = "paid"
[models.paid]
model = "demo"
prices = { input = 3.0, output = 15.0 }
[budget]
turn_usd = 0.000001
"""


@pytest.mark.forms(1)
@pytest.mark.parametrize(("amount", "reasons"), [("1", ["budget", "end"]), ("banana", ["budget"]), ("", ["budget"])])
async def test_a_budget_is_a_question_that_only_an_amount_raises(cli: Cli, amount: str, reasons: list[str]) -> None:
    cli.config(BUDGET)
    cli.script(answers("Good."))
    events = []
    async with Session(cli.project) as session:
        async for event in session.send("one"):
            events.append(event)
            if isinstance(event, Question):
                assert event.kind == "stop" and "budget" in event.text
                with pytest.raises(AgentError, match="no such answer"):
                    event.allow()
                if amount:
                    event.answer("o", text=amount)
        assert [event.stop_reason for event in events if isinstance(event, TurnEnded)] == reasons
        assert session.text == ("Good." if amount == "1" else "")
        told = [event.text for event in events if isinstance(event, Notice) and event.level == "error"]
        assert ("Not an amount" in "".join(told)) == (amount == "banana")


async def test_a_stop_that_was_left_open_does_not_go_on_by_itself(cli: Cli) -> None:
    cli.config(BUDGET + '[models.free]\nmodel = "demo"\n')
    cli.script(answers("Good."))
    async with Session(cli.project) as session:
        async for event in session.send("one"):
            if isinstance(event, Question):
                break
        await session.set_model("free")
        assert not session.agent.turns.busy and session.text == ""
        assert [event async for event in session.send("two") if isinstance(event, TurnEnded)]
        assert session.text == "Good."


@pytest.mark.slow
async def test_a_memory_file_below_comes_with_the_first_file_that_is_touched_there(cli: Cli) -> None:
    for name, text in (("sub/AGENTS.md", "Tabs only."), ("sub/deep/a.txt", "a"), ("b.txt", "b")):
        (cli.project / name).parent.mkdir(parents=True, exist_ok=True)
        (cli.project / name).write_text(text, "utf-8")
    reads = "".join(
        f'[[step]]\ntool_calls = [{{ name = "read", arguments = {{ {key} = "{path}" }} }}]\n'
        for key, path in (("path", "b.txt"), ("file_path", "sub/deep/a.txt"), ("path", "sub/deep/a.txt"))
    )
    cli.script(reads + '[[step]]\nmatch = "Tabs only"\ntext = "Never."\n' + answers("Done."))
    async with Session(cli.project, "demo") as session:
        notices = [event.text async for event in session.send("look") if isinstance(event, Notice)]
        results = [message for message in session.agent.conversation.path if message.role == "tool"]
        assert [["Tabs only." in text for text in texts_below(message)] for message in results] == [[], [True], []]
        assert [text for text in notices if "sub/AGENTS.md is sent too" in text] == [notices[0]]
        rows = {row["label"]: row for row in (await session.context())["rows"]}
        messages = str(rows)
        assert "instructions from sub/AGENTS.md" in messages


ASKS = """
[[step]]
tool_calls = [{ name = "mcp__asks__plan_again", arguments = {} }]
[[step]]
text = "Done."
"""
"""A tool whose server asks for input with a form."""


@pytest.mark.slow
async def test_a_form_of_a_server_is_a_question_with_a_schema(cli: Cli) -> None:
    cli.config(f"[mcp.asks]\ncommand = {json.dumps(sys.executable)}\nargs = [{json.dumps(ASKING)}]\nrequired = true\n")
    cli.script(ASKS + ASKS + ASKS)
    told: list[str] = []
    options = Options(allow=["mcp(asks.*)"])
    async with Session(cli.project, "demo", options=options) as session:
        for values in ({"city": "Rome", "days": 2}, {"city": "R"}, None):
            async for event in session.send("plan"):
                if isinstance(event, Question):
                    assert (event.kind, event.server) == ("server", "asks")
                    assert event.schema["properties"]["city"]["minLength"] == 2 and event.schema["required"] == ["city"]
                    if values == {"city": "R"}:
                        with pytest.raises(AgentError, match="City: must be at least 2 characters"):
                            event.allow(**values)
                    elif values is not None:
                        event.allow(**values)
            results = [m.tool_result.text for m in session.agent.conversation.path if m.tool_result is not None]
            told.append(results[-1])
    assert told == [
        "accept {'days': 2, 'train': False, 'seat': 'window', 'city': 'Rome'}",
        "decline None",
        "decline None",
    ]


async def test_after_a_task_that_left_its_loop_and_is_over_another_sends(cli: Cli) -> None:
    """A server has a task for each request."""
    cli.script('[[step]]\nmatch = "one"\nhang = true\n' + answers("Second."))

    async def leave() -> object:
        stream = session.send("one")
        async for event in stream:
            if isinstance(event, StepStarted):
                break
        return stream

    async with Session(cli.project, "demo") as session:
        stream = await asyncio.create_task(leave())
        assert [event async for event in session.send("two")] and session.text == "Second."
        del stream


@pytest.mark.forms(1)
@pytest.mark.parametrize("held", [False, True], ids=["let go", "still named"])
async def test_after_a_loop_that_was_left_the_next_message_is_sent(cli: Cli, held: bool) -> None:
    cli.script('[[step]]\nmatch = "one"\nhang = true\n' + answers("Second.", "Third."))
    async with Session(cli.project, "demo") as session:
        if held:
            stream = session.send("one")
            async for event in stream:
                if isinstance(event, StepStarted):
                    break
        else:
            async for event in session.send("one"):
                if isinstance(event, StepStarted):
                    break
        ends = [event.stop_reason async for event in session.send("two") if isinstance(event, TurnEnded)]
        assert (ends, session.text) == (["end"], "Second.")
        async for _ in session.send("three"):
            break
        assert [e.stop_reason async for e in session.send("four") if isinstance(e, TurnEnded)] == ["end"]


async def test_another_task_cannot_end_a_turn_by_sending(cli: Cli) -> None:
    cli.script("[[step]]\nhang = true\n" + answers("Second."))
    async with Session(cli.project, "demo") as session:

        async def meanwhile() -> None:
            async for _ in session.send("two"):
                pass

        async for event in session.send("one"):
            if isinstance(event, StepStarted):
                with pytest.raises(AgentError, match="already running"):
                    await asyncio.create_task(meanwhile())
                break
