"""A window that is full, through the whole agent: failing summaries, restart, fork, export, small windows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from agent_tui.config import ContextConfig, PermissionsConfig, Settings
from agent_tui.context.accounting.next_input import fits_to_send
from agent_tui.engine.agent import Agent
from agent_tui.engine.compaction.auto import MAX_FAILURES
from agent_tui.engine.extensions import Workspace
from agent_tui.engine.request_prefix import fitting_tools
from agent_tui.models.events import CompactionEnded, Notice, TurnEnded
from agent_tui.models.messages import SummaryPart
from agent_tui.models.requests import OfferedTool, SentMessage, SystemBlock, ToolSchema
from agent_tui.store.content import SessionContent
from agent_tui.store.export_data import export_session
from agent_tui.tools.files.access import FileAccess
from agent_tui.tools.registry import builtin_tools
from tests.support.agents import Recorder, TokenCounter, parts_for, running
from tests.support.compaction_world import assert_valid

WORKS = "window = %d\nmax_output = 1000\n"
FAILS = WORKS + '[[step]]\nkind = "compaction"\nrepeat = 0\nerror = { kind = "auth", message = "No key." }\n'


def opened(
    folder: Path, script: str, resume: str | None = None, auto: bool = True, workspace: Workspace | None = None
) -> AbstractAsyncContextManager[tuple[Agent, Recorder]]:
    settings = Settings(permissions=PermissionsConfig(mode="auto"), context=ContextConfig(auto_compact=auto))
    return running(
        parts_for(
            folder / "home",
            folder / "p",
            script=script,
            settings=settings,
            counter=TokenCounter(),
            resume=resume,
            workspace=workspace,
        )
    )


async def turn(agent: Agent, text: str, seen: Recorder) -> TurnEnded:
    agent.turns.submit(text)
    await agent.turns.join()
    await agent.context.ready()
    assert_valid(agent.conversation.view())
    return seen.last_end


def said(tokens: int) -> str:
    return "look at this " + "word " * tokens


def contents(view: Sequence[SentMessage]) -> list[tuple[str, object]]:
    return [(s.key, s.message.parts) for s in view]


@pytest.mark.slow
async def test_a_failing_summary_ends_no_session_and_what_made_room_is_kept_in_the_store(tmp_path: Path) -> None:
    script = FAILS % 8_000
    async with opened(tmp_path, script) as (agent, seen):
        await agent.context.ready()
        ends = [(await turn(agent, f"{number}: " + said(500), seen)).stop_reason for number in range(40)]
        assert ends.count("error") <= MAX_FAILURES and set(ends) == {"end", "error"}, "then it goes on without"
        assert ends[-20:] == ["end"] * 20
        done = [e for e in seen.of(CompactionEnded) if e.outcome == "done"]
        assert any("left out" in e.text for e in done)
        assert {n.code for n in seen.of(Notice)} >= {"compaction_off"}
        record = next(r for r in reversed(agent.conversation.own_records) if r.left_out)
        assert record.model is None
        summary = agent.conversation.summaries[record.summary_id or ""]
        text = "".join(p.text for p in summary.parts if isinstance(p, SummaryPart))
        assert f"{record.left_out} older messages left out here" in text
        view, usage, session = list(agent.conversation.view()), agent.context.usage(), agent.conversation.info.id
        conversation = agent.conversation
        exported = export_session(
            agent.conversation.info,
            SessionContent(
                conversation.messages, conversation.summaries, conversation.steps, list(conversation.own_records)
            ),
        )
        rows = [row for row in exported["compactions"] if row["left_out"]]
        assert record.id in [row["id"] for row in rows]
    async with opened(tmp_path, script, resume=session) as (agent, seen):
        await agent.context.ready()
        assert contents(agent.conversation.view()) == contents(view)
        assert agent.context.usage().total == usage.total
        await agent.sessions.fork()
        await agent.context.ready()
        assert contents(agent.conversation.view()) == contents(view)
        assert (await turn(agent, "and on", seen)).stop_reason == "end"
        while agent.conversation.view()[0].message.role == "user" and any(
            r.active for r in agent.conversation.own_records
        ):
            await agent.compaction.undo()
        assert [s.message.id for s in agent.conversation.view()] == [m.id for m in agent.conversation.path]
        # The pause after the undo holds nothing back that would end the session.
        assert (await turn(agent, "still there?", seen)).stop_reason == "end"


async def test_the_preview_is_what_is_carried_out(tmp_path: Path) -> None:
    async with opened(tmp_path, WORKS % 8_000) as (agent, seen):
        await agent.context.ready()
        for number in range(6):
            await turn(agent, f"{number}: " + said(300), seen)
        preview = (await agent.compaction.preview()).say
        await agent.compaction.now()
        (ended,) = [e for e in seen.of(CompactionEnded) if e.outcome == "done"][-1:]
        kept = ended.records[-1].kept_messages
        assert f"the newest {kept} message" in preview
        own = preview.split(" of your ")[0].split(" ")[-1]
        view = agent.conversation.view()
        text = "".join(p.text for s in view for p in s.message.parts if isinstance(p, SummaryPart))
        assert text.count("<user_message>") == int(own)


@pytest.mark.slow
async def test_a_message_that_is_too_large_itself_is_stopped_with_words_and_the_next_one_goes_through(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, WORKS % 8_000) as (agent, seen):
        await agent.context.ready()
        for number in range(8):
            assert (await turn(agent, f"{number}: " + said(300), seen)).stop_reason == "end"
        ended = await turn(agent, said(9_000), seen)
        assert ended.stop_reason == "error" and ended.failure is not None
        for word in ("your newest message is too large", "8,000", "smaller parts", "/model", "/clear"):
            assert word in ended.failure.message
        assert not any("even then" in n.text for n in seen.of(Notice))
        assert (await turn(agent, "never mind", seen)).stop_reason == "end"
        assert (await turn(agent, "and on", seen)).stop_reason == "end"


@pytest.mark.slow
async def test_without_automatic_compaction_a_full_window_stops_and_compact_makes_room(tmp_path: Path) -> None:
    async with opened(tmp_path, WORKS % 8_000, auto=False) as (agent, seen):
        await agent.context.ready()
        for _ in range(40):
            if (await turn(agent, said(500), seen)).stop_reason == "error":
                break
        assert not fits_to_send(agent.context.usage())
        assert not seen.of(CompactionEnded)
        await agent.compaction.now()
        assert [e.outcome for e in seen.of(CompactionEnded)] == ["done"]
        assert (await turn(agent, "and on", seen)).stop_reason == "end"


@pytest.mark.slow
async def test_the_smallest_window_works_with_fewer_tools_and_says_so(tmp_path: Path) -> None:
    workspace = Workspace(
        FileAccess([tmp_path]), tmp_path, brought=[lambda: [SystemBlock("memory", "Mind the gap. " * 330)]]
    )
    async with opened(tmp_path, WORKS % 4_096, workspace=workspace) as (agent, seen):
        await agent.context.ready()
        (notice,) = [n for n in seen.of(Notice) if n.code == "fewer_tools"]
        assert "4,096" in notice.text and "subagent" in notice.text
        listed = {name: enabled for name, _, _, _, enabled in agent.project.tools()}
        assert listed["read"] and not listed["subagent"]
        for number in range(12):
            assert (await turn(agent, f"{number}: " + said(150), seen)).stop_reason == "end"
        assert len([n for n in seen.of(Notice) if n.code == "fewer_tools"]) == 1


def tool(name: str, size: int, group: str = "builtin", deferred: bool = False) -> OfferedTool:
    return OfferedTool(ToolSchema(name, "x" * size, {}), group, deferred)


def test_small_windows_get_the_core_first_and_large_ones_everything() -> None:
    builtin = [t for t in builtin_tools() if t.schema.name != "apply_patch"]  # a model gets one of the two
    tools = [OfferedTool(t.schema, t.group) for t in builtin] + [tool("big", 4_000, "mcp:hub")]
    block = SystemBlock("system", "s" * 4_000)
    assert fitting_tools([block], tools, 200_000) == tools
    assert fitting_tools([block], tools, None) == tools
    names = [t.schema.name for t in fitting_tools([block], tools, 4_096)]
    assert names[:4] == ["read", "write", "edit", "list"] and "bash" in names, "in the order in which they are sent"
    assert "big" not in names
    crowded = [t.schema.name for t in fitting_tools([SystemBlock("memory", "m" * 40_000)], tools, 4_096)]
    assert {"read", "bash", "edit"} <= set(crowded) and not {"subagent", "fetch", "big"} & set(crowded)


@pytest.mark.parametrize("window", [4_096, 8_192, 16_384])
def test_what_is_deferred_costs_nothing_and_stays(window: int) -> None:
    tools = [tool("read", 100), tool("other", 50_000, "mcp:hub", deferred=True)]
    assert fitting_tools([], tools, window) == tools
