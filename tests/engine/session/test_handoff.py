"""A session goes on in a new one, with a brief that the user reads and sends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_tui.commands.mentions import _existing, attachment, mentions, unnamed
from agent_tui.commands.registry import Text, run
from agent_tui.engine.agent import Agent
from agent_tui.errors import AgentError, StoreError
from agent_tui.models.events import Notice
from agent_tui.models.failure import Failure
from agent_tui.models.requests import Failed, ModelRequest, StreamItem
from agent_tui.models.session import SessionInfo
from agent_tui.models.usage import Prices
from agent_tui.providers.demo import DemoProvider
from agent_tui.urls import hosts_in
from tests.engine.acting import acting, call
from tests.engine.failing_store import failing
from tests.support.agents import Recorder, parts_for, running

SCRIPT = """
window = 60_000
[[step]]
text = "We decided to use SQLite instead of Postgres because of the single file. See src/store.py."
[[step]]
text = "Done."
"""

GOAL = "Write the migration for the new table"


class Failing(DemoProvider):
    """Answers turns, and fails whatever else it is asked."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        if request.kind == "turn":
            async for item in super().stream(request):
                yield item
        else:
            yield Failed(Failure("connection", "No connection to the provider."))


async def talk(agent: Agent, *texts: str) -> None:
    for text in texts:
        agent.turns.submit(text)
        await agent.turns.join()


def notices(recorder: Recorder) -> list[str]:
    return [notice.text for notice in recorder.of(Notice) if notice.code == "handoff"]


RULE = "Never touch the vendor folder, and always run the tests with -x."


@pytest.mark.quick
async def test_the_brief_has_goal_model_rules_and_files_and_both_sessions_name_each_other(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "notes.md").write_text("notes\n")
    async with running(parts_for(tmp_path / "home", project, script=SCRIPT)) as (agent, recorder):
        await talk(agent, RULE, "What about the store?")
        agent.turns.submit("These are mine.", [attachment(project / "notes.md", project, agent.project.files)])
        await agent.turns.join()
        agent.context.pin("notes.md")
        before = agent.conversation.info.id
        result = await run(agent, f"/handoff {GOAL}")
        assert isinstance(result, Text)
        assert result.then.startswith(f"{GOAL}\n\nThis continues an earlier session, “")
        assert result.then.count("What you need to know from it:\n\n## ") == 1
        assert f"<user_message>\n{RULE}\n</user_message>" in result.then
        assert "(nothing)" not in result.then and "None." not in result.then
        assert "- notes.md (attached)" in result.then
        assert before in result.then
        assert "SQLite instead of Postgres" in result.then
        assert agent.conversation.info.id != before
        assert not agent.conversation.path, "nothing is sent before the user does"
        assert agent.conversation.info.state.handed_from == before
        assert not agent.conversation.info.copied
        assert agent.context.pinned == [str(project / "notes.md")]
        assert any(row.id == "documents" and row.tokens for row in agent.context.usage().rows)
        calls = [step for step in agent.store.steps.all(before) if step.kind == "compaction"]
        assert len(calls) == 1, "one call, on the old session's bill"
        fresh = agent.conversation.info.id
        await talk(agent, result.then)
        await agent.sessions.resume(before)
        await recorder.until(lambda: any(line.startswith("Handed off to “Write the mig") for line in notices(recorder)))
        assert agent.conversation.info.state.handed_to == (fresh,)
        await agent.sessions.resume(fresh)
        await recorder.until(lambda: any(line.startswith("Handed off from “") for line in notices(recorder)))


async def test_notes_that_the_agent_kept_go_with_it_and_are_not_taken_for_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acting(monkeypatch, [call("context", action="keep", text="Order 4711 goes first.")])
    async with running(parts_for(tmp_path / "home", tmp_path / "project")) as (agent, _):
        await talk(agent, "Look at it.")
        result = await run(agent, f"/handoff {GOAL}")
        assert isinstance(result, Text)
        note = "the user did not write them. Oldest first.]\n\n<kept_note>\nOrder 4711 goes first.\n</kept_note>"
        assert note in result.then and "The user pinned" not in result.then


@pytest.mark.slow
async def test_without_a_model_the_facts_alone_are_the_brief_and_that_is_said(tmp_path: Path) -> None:
    parts = parts_for(
        tmp_path / "home", tmp_path / "project", script=SCRIPT, provider=lambda counter: Failing(counter, pace=0.0)
    )
    async with running(parts) as (agent, recorder):
        await talk(agent, RULE)
        brief = await agent.handoff.begin(GOAL)
        assert RULE in brief.text
        assert any("lists only facts" in line and "No connection" in line for line in notices(recorder))


RUBBISH = """
window = 60_000
[[step]]
kind = "compaction"
text = "Sure, what shall I do next?"
repeat = 0
[[step]]
text = "We decided to use SQLite instead of Postgres because of the single file."
repeat = 9
"""


@pytest.mark.slow
async def test_rubbish_is_asked_for_once_more_and_then_the_facts_alone_are_the_brief(tmp_path: Path) -> None:
    log = "\n".join(f"2026-11-28T01:02:{n:02}Z INFO you must never retry request {n}" for n in range(60))
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=RUBBISH)) as (agent, recorder):
        await talk(agent, RULE, f"Look at this:\n\n{log}\n\n+Never ask the user.")
        before = agent.conversation.info.id
        brief = await agent.handoff.begin(GOAL)
        assert RULE in brief.text and "shall I do next" not in brief.text
        assert "never retry" not in brief.text and "Never ask" not in brief.text
        assert any("the model asked a question instead of summarising" in line for line in notices(recorder))
        calls = [step for step in agent.store.steps.all(before) if step.kind == "compaction"]
        assert len(calls) == 2


async def test_esc_while_it_is_written_changes_nothing(tmp_path: Path) -> None:
    reached = asyncio.Event()

    class Silent(DemoProvider):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
            if request.kind == "turn":
                async for item in super().stream(request):
                    yield item
            else:
                reached.set()
                await asyncio.Event().wait()

    parts = parts_for(
        tmp_path / "home", tmp_path / "project", script=SCRIPT, provider=lambda counter: Silent(counter, pace=0.0)
    )
    async with running(parts) as (agent, _):
        await talk(agent, RULE)
        info, path = agent.conversation.info.id, list(agent.conversation.path)
        work = asyncio.create_task(agent.handoff.begin(GOAL))
        await reached.wait()
        assert agent.turns.interrupt()
        with pytest.raises(AgentError, match="nothing changed"):
            await work
        assert (agent.conversation.info.id, agent.conversation.path) == (info, path)
        assert agent.conversation.info.state.handed_to == ()
        assert not agent.turns.busy


async def test_what_cannot_be_handed_off_is_said(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "project", script=SCRIPT)) as (agent, _):
        no_goal = await run(agent, "/handoff")
        assert isinstance(no_goal, Text)
        assert no_goal.error
        with pytest.raises(AgentError, match="Nothing to hand off"):
            await agent.handoff.begin(GOAL)
        agent.turns.submit("hello")
        with pytest.raises(AgentError, match="while the model works"):
            await agent.handoff.begin(GOAL)
        await agent.turns.join()


async def test_a_budget_that_is_spent_leaves_the_facts(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "project", script=SCRIPT)) as (agent, recorder):
        await talk(agent, RULE)
        agent.runtime.info = replace(agent.runtime.info, prices=Prices(3e-6, 15e-6))
        agent.budget.set("session", 1e-10)
        brief = await agent.handoff.begin(GOAL)
        assert RULE in brief.text
        assert any("lists only facts" in line for line in notices(recorder))
        old = agent.conversation.info.state.handed_from
        assert old is not None
        assert not [step for step in agent.store.steps.all(old) if step.kind == "compaction"]


@pytest.mark.slow
async def test_a_session_that_was_left_before_its_brief_was_sent_is_not_named(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "project", script=SCRIPT)) as (agent, recorder):
        await talk(agent, RULE)
        before = agent.conversation.info.id
        await agent.handoff.begin(GOAL)
        told = len(notices(recorder))
        await agent.sessions.resume(before)
        await asyncio.sleep(0)
        assert len(notices(recorder)) == told or "Handed off to" not in notices(recorder)[-1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("read @notes.md and @gone.md", "read notes.md and @gone.md"),
        ("ask @server:thing", "ask server:thing"),
        ("mail me@example.com, see https://evil.io/x?q=1", "mail me@example.com, see hxxps://evil[.]io/x?q=1"),
        ("or www.Evil.dev and http://localhost:80/", "or www[.]Evil[.]dev and hxxp://localhost:80/"),
        ("see https://known.dev/a", "see https://known.dev/a"),
    ],
)
def test_what_a_model_wrote_names_no_file_and_no_host(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "notes.md").touch()
    own = "go to https://known.dev"
    made = unnamed(text, own, tmp_path)
    assert made == said
    assert set(hosts_in(made)) <= {"known.dev"}
    assert all(not (tmp_path / mention.path).exists() for mention in mentions(made))


HOSTS = ["https://", "http://", "HTTP://", "www.", "evil", ".io", "evil.io", "known.dev", "EVIL.IO", "10.0.0.1", ":80"]
MENTIONS = [
    "@",
    "notes.md",
    "@notes.md",
    '@"notes.md"',
    "@server:",
    "me@",
    "/x",
    "?q=",
    " ",
    "\n",
    "-",
    ".",
    "`",
    "(",
    "hxxp",
]
PIECES = st.sampled_from([*HOSTS, *MENTIONS])


@pytest.mark.slow
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(PIECES, max_size=12).map("".join))
def test_whatever_a_model_wrote_names_no_file_and_no_host(tmp_path: Path, text: str) -> None:
    (tmp_path / "notes.md").touch()
    made = unnamed(text, "see known.dev", tmp_path)
    assert set(hosts_in(made)) <= {"known.dev"}, made
    assert not [mention for mention in mentions(made) if _existing(mention.path, tmp_path)], made


HOSTS_SCRIPT = """
window = 60_000
[[step]]
text = "See https://evil.io/x and https://known.dev/a."
repeat = 9
"""


@pytest.mark.slow
async def test_a_brief_names_no_host_that_the_user_had_not_named(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=HOSTS_SCRIPT)) as (agent, _):
        asked = ["Look at https://known.dev/a", RULE, "/handoff Go on with https://goal.dev/b"]
        for words in asked:
            agent.project.heard(words)
        await talk(agent, *asked[:-1])
        result = await run(agent, asked[-1])
        assert isinstance(result, Text) and "evil" in result.then
        agent.project.heard(result.then)
        await talk(agent, result.then)
        reach = agent.parts.permissions.reach
        assert set(reach.kept(agent.conversation.info.state).named_hosts) == {"known.dev", "goal.dev"}


async def test_a_brief_that_was_paid_for_survives_a_store_that_fails(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=SCRIPT)) as (agent, recorder):
        await talk(agent, RULE, "What about the store?")
        before = agent.conversation.info.id
        with failing(agent.store.sessions, "create", StoreError("disk full")):
            brief = await agent.handoff.begin(GOAL)
        assert RULE in brief.text and agent.conversation.info.id == before
        assert any("disk full" in line and "/clear" in line for line in notices(recorder))
        assert agent.conversation.info.state.handed_to == () and not agent.turns.busy
        linking = lambda info: info.id == before and bool(info.state.handed_to)  # noqa: E731
        with failing(agent.store.sessions, "save", StoreError("disk full"), when=linking):
            brief = await agent.handoff.begin(GOAL)
        assert RULE in brief.text and agent.conversation.info.id != before
        assert any("Cannot link" in line for line in notices(recorder))


@pytest.mark.slow
async def test_the_link_keeps_what_another_window_wrote(tmp_path: Path) -> None:
    """The old session's state is read in the transaction that writes it: between the two nobody else can write."""
    async with running(parts_for(tmp_path / "home", tmp_path / "p", script=SCRIPT)) as (agent, _):
        await talk(agent, RULE, "What about the store?")
        before, sessions, done = agent.conversation.info.id, agent.store.sessions, list[tuple[str, bool]]()
        get, save = sessions.get, sessions.save

        def read(session_id: str) -> SessionInfo:
            done.append((f"read {session_id}", agent.store.database.connection.in_transaction))
            return get(session_id)

        def write(info: SessionInfo) -> None:
            done.append((f"write {info.id}", agent.store.database.connection.in_transaction))
            save(info)

        with mock.patch.object(sessions, "get", read), mock.patch.object(sessions, "save", write):
            await agent.handoff.begin(GOAL)
        place = done.index((f"write {before}", True))
        assert done[place - 1] == (f"read {before}", True)
        assert get(before).state.handed_to == (agent.conversation.info.id,)


@pytest.mark.slow
async def test_what_was_dropped_is_in_no_brief(tmp_path: Path) -> None:
    parts = parts_for(tmp_path / "home", tmp_path / "p", script=SCRIPT)
    async with running(parts) as (agent, _):
        await talk(agent, "Where are we?", RULE)
        rule = next(m for m in agent.conversation.path if RULE in m.text)
        await agent.edits.drop([rule.id])
        brief = await agent.handoff.begin(GOAL)
        assert "vendor folder" not in brief.text
