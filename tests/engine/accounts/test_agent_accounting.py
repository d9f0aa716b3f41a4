"""The numbers a user sees, through the whole agent: what moves them, what is measured, what is only estimated."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from agent_tui.context.accounting.next_input import calculation_text
from agent_tui.engine.extensions import Workspace
from agent_tui.models.context import ContextUsage
from agent_tui.models.events import ContextChanged, Notice, PartDelta, StepEnded
from agent_tui.models.requests import SystemBlock
from agent_tui.tools.files.access import FileAccess
from tests.support.agents import TokenCounter, parts_for, running
from tests.support.contexts import assert_identities, leaves, row
from tests.support.tool_context import Tickets

pytestmark = pytest.mark.quick


def delta(usage: ContextUsage) -> int:
    return usage.calculation.fixed_delta


async def test_a_pinned_document_moves_the_number_at_once_and_is_no_message(tmp_path: Path) -> None:
    project = tmp_path / "p"
    project.mkdir()
    (project / "spec.md").write_text("a line of the specification\n" * 40)
    async with running(parts_for(tmp_path / "home", project, counter=TokenCounter())) as (agent, seen):
        agent.turns.submit("hello")
        await agent.turns.join()
        await agent.context.ready()
        before = agent.context.usage()
        assert row(before, "documents").tokens == 0
        seen.events.clear()
        agent.context.pin("spec.md")
        now = seen.of(ContextChanged)[-1].usage
        assert now.total > before.total + 150
        await agent.context.ready()
        usage = agent.context.usage()
        document = row(usage, "documents")
        assert 200 < delta(usage) == usage.total - before.total
        assert abs(document.tokens - delta(usage)) <= 0.1 * delta(usage)
        assert row(usage, "messages").tokens == row(before, "messages").tokens
        assert_identities(usage)
        agent.turns.submit("and now?")
        await agent.turns.join()
        await agent.context.ready()
        sent = agent.context.usage()
        assert delta(sent) == 0 and abs(row(sent, "documents").tokens - document.tokens) <= 0.1 * document.tokens
        assert all("specification" not in m.text for m in agent.conversation.path)
        agent.context.unpin("spec.md")
        assert row(agent.context.usage(), "documents").tokens == 0 and delta(agent.context.usage()) < -200
        assert agent.context.usage().total < sent.total - 200


async def test_a_changed_memory_file_is_seen_at_the_next_turn(tmp_path: Path) -> None:
    text = ["Be brief."]

    def memory() -> list[SystemBlock]:
        return [SystemBlock("memory", text[-1], "AGENTS.md", "AGENTS.md")]

    workspace = Workspace(FileAccess([tmp_path]), tmp_path, brought=[memory])
    parts = parts_for(tmp_path / "home", tmp_path / "p", counter=TokenCounter(), workspace=workspace)
    async with running(parts) as (agent, _):
        agent.turns.submit("hello")
        await agent.turns.join()
        before = agent.context.usage()
        text.append("Write tests first, then code, then documentation. " * 30)
        agent.turns.submit("hello again")
        await agent.turns.join()
        # Told with the message: what was sent stays as it was.
        after = agent.context.usage()
        assert row(after, "memory").tokens == row(before, "memory").tokens
        assert row(after, "memory").children[0].detail.startswith("edited; the old text and the change are sent")
        assert row(after, "messages").tokens > row(before, "messages").tokens + 200
        step = agent.conversation.steps[-1]
        assert step.estimated_input is not None and step.actual_input is not None
        assert abs(step.estimated_input - step.actual_input) <= 0.02 * step.actual_input
        assert_identities(agent.context.usage())


async def test_a_tool_that_goes_takes_its_tokens_with_it(tmp_path: Path) -> None:
    tickets = Tickets(on=True)
    parts = parts_for(tmp_path / "home", tmp_path / "p", counter=TokenCounter())
    parts.extra_tools = tickets
    async with running(parts) as (agent, _):
        agent.turns.submit("hello")
        await agent.turns.join()
        await agent.context.ready()
        before = agent.context.usage()
        cost = row(before, "tools", "mcp:tickets").tokens
        assert cost > 60
        tickets.on = False
        tickets.changed()
        without = agent.context.usage()
        assert delta(without) == without.total - before.total
        assert abs(-delta(without) - cost) <= 0.1 * cost
        assert_identities(without)
        tickets.on = True
        tickets.changed()
        assert agent.context.usage().total == before.total
        assert delta(agent.context.usage()) == 0


async def test_changing_the_effort_keeps_the_identities_and_the_session(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with running(parts_for(home, tmp_path / "p", counter=TokenCounter())) as (agent, seen):
        agent.turns.submit("hello")
        await agent.turns.join()
        await agent.context.ready()
        before = agent.context.usage()
        seen.events.clear()
        agent.models.set_effort("off")
        now = seen.of(ContextChanged)[-1].usage
        assert_identities(now)
        assert now.total <= before.total and now.anchor_step == before.anchor_step
        session = agent.conversation.info.id
    async with running(parts_for(home, tmp_path / "p", counter=TokenCounter(), resume=session)) as (agent, _):
        assert agent.models.effort == "off"


BAD_USAGE = {
    "missing": "usage = false",
    "zero": "usage = { input = 0, output = 0 }",
    "absurd": "usage = { input = 900000, output = 10 }",
    "negative": "usage = { input = -5, output = 3 }",
    "several times too much": "usage = { input = 48000, output = 10 }",
}


@pytest.mark.parametrize("name", BAD_USAGE)
async def test_usage_that_cannot_be_true_is_not_built_on(tmp_path: Path, name: str) -> None:
    script = f'[[step]]\nmatch = "odd"\ntext = "fine"\n{BAD_USAGE[name]}\n'
    parts = parts_for(tmp_path / "home", tmp_path / "p", script=script, counter=TokenCounter())
    async with running(parts) as (agent, _):
        agent.turns.submit("odd")
        await agent.turns.join()
        await agent.context.ready()
        usage = agent.context.usage()
        assert usage.anchor_step is None and usage.basis == "estimated"
        assert usage.estimated_tokens == usage.total > 500
        assert usage.calculation.last_input is None and usage.calculation.new_messages == usage.total
        assert "estimated" in usage.why
        assert_identities(usage)
        agent.turns.submit("even")
        await agent.turns.join()
        await agent.context.ready()
        after = agent.context.usage()
        assert after.anchor_step == agent.conversation.steps[-1].id and after.basis == "derived"
        assert_identities(after)
        # A later one that is wrong again: the one before it is built on.
        assert after.calculation.last_input == agent.conversation.steps[-1].actual_input


async def test_one_bad_report_is_one_line_and_all_of_them_one_notice(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    script = '[[step]]\nmatch = "odd"\ntext = "fine"\nrepeat = 0\nusage = { input = 48000, output = 10 }\n'
    parts = parts_for(tmp_path / "home", tmp_path / "p", script=script, counter=TokenCounter())
    caplog.set_level(logging.WARNING)
    async with running(parts) as (agent, seen):
        for number in (1, 2):
            agent.turns.submit("odd")
            await agent.turns.join()
            step = agent.conversation.steps[-1]
            assert step.usage is not None and (step.usage.input, step.usage.source) == (48_000, "provider")
            assert step.believed is not None and step.believed.source == "estimated" and not step.believed.anchors
            assert step.believed.input == step.estimated_input
            lines = [r.getMessage() for r in caplog.records if "sage" in r.getMessage()]
            assert len(lines) == number and "48,000" in lines[-1] and step.id in lines[-1]
        told = [n.text for n in seen.of(Notice) if n.code == "usage"]
        assert len(told) == 1 and "48,000" in told[0]
        usage = agent.context.usage()
        assert usage.total < 30_000, "the context is what is believed"
        assert usage.session.usage is not None and usage.session.usage.input == 96_000, "the bill is what was reported"
        assert usage.session.doubted == 2


async def test_no_output_beside_a_full_answer_is_estimated_and_says_so(tmp_path: Path) -> None:
    script = '[[step]]\nmatch = "odd"\ntext = "%s"\nusage = { output = 0, reasoning = 0 }\n' % ("word " * 80)
    parts = parts_for(tmp_path / "home", tmp_path / "p", script=script, counter=TokenCounter())
    async with running(parts) as (agent, _):
        agent.turns.submit("odd")
        await agent.turns.join()
        await agent.context.ready()
        usage = agent.context.usage()
        assert usage.anchor_step == agent.conversation.steps[-1].id, "its input is the provider's number"
        assert usage.calculation.last_output == 100 and usage.calculation.output_estimated
        assert usage.estimated_tokens >= 100 and usage.basis == "derived"
        assert "last output 100 ± " in calculation_text(usage)
        assert_identities(usage)


async def test_what_is_added_between_two_steps_is_measured_by_difference(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "notes.txt").write_text("one line of notes\n" * 50)
    async with running(parts_for(tmp_path / "home", tmp_path / "p", counter=TokenCounter())) as (agent, _):
        agent.turns.submit("read notes.txt")
        await agent.turns.join()
        agent.turns.submit("thanks")
        await agent.turns.join()
        await agent.context.ready()
        usage = agent.context.usage()
        by_message = {r.message_id: r for r in leaves(usage.rows) if r.message_id and r.id == r.message_id}
        first, call, result, answer, thanks, _ = agent.conversation.path
        steps = {s.message_id: s for s in agent.conversation.steps}
        one, two = steps[call.id].usage, steps[answer.id].usage
        assert one is not None and two is not None
        assert by_message[result.id].basis == by_message[thanks.id].basis == "derived"
        assert by_message[result.id].tokens == two.input - one.input - one.output
        assert by_message[first.id].basis == "estimated"
        assert row(usage, "messages", "tool_results").basis == "derived"


@pytest.mark.parametrize("edited", [False, True])
async def test_what_is_shown_last_is_the_number_wherever_its_counts_come_from(tmp_path: Path, edited: bool) -> None:
    """At a start the first number is by the rule of characters: those that were stored by an earlier start change it as
    those do that are counted now."""
    (project := tmp_path / "p").mkdir()
    (project / "AGENTS.md").write_text("{}[]();:,." * 200)
    for start in ("first", "second"):
        if edited and start == "second":
            (project / "AGENTS.md").write_text("{}[]();:,." * 300)
        async with running(parts_for(tmp_path / "home", project, counter=TokenCounter())) as (agent, seen):
            await agent.context.ready()
            told = [event.usage.total for event in seen.of(ContextChanged)]
            assert told[-1] == agent.context.usage().total != told[0], start


async def test_the_warning_at_80_percent_comes_once(tmp_path: Path) -> None:
    script = "window = 8000\nmax_output = 2000\n"
    parts = parts_for(tmp_path / "home", tmp_path / "p", script=script, counter=TokenCounter())
    async with running(parts) as (agent, seen):
        await agent.context.ready()
        while agent.context.usage().total <= (agent.context.usage().limit or 0):
            agent.turns.submit("tell me a lot")
            await agent.turns.join()
        told = [n for n in seen.of(Notice) if n.code == "context_80"]
        assert len(told) == 1 and "of the limit" in told[0].text and "compacts at 6k" in told[0].text


async def test_what_streams_moves_the_number_until_it_is_measured(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "p", counter=TokenCounter())) as (agent, seen):
        agent.turns.submit("tell me a lot")
        await agent.turns.join()
        kinds = [e for e in seen.events if isinstance(e, (ContextChanged, PartDelta, StepEnded))]
        first, end = next(i for i, e in enumerate(kinds) if isinstance(e, PartDelta)), len(kinds)
        end = next(i for i, e in enumerate(kinds) if isinstance(e, StepEnded))
        flying = [e.in_flight for e in kinds[first:end] if isinstance(e, ContextChanged)]
        assert flying and all(flying)
        settled = [e for e in kinds[end:] if isinstance(e, ContextChanged)]
        assert settled and all(e.in_flight == 0 for e in settled)
        assert settled[-1].usage.anchor_step == agent.conversation.steps[-1].id
