"""A hundred turns in a small window, two hundred in the long form, through the whole agent: compactions, their numbers,
and the way back."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agent_tui.config import ContextConfig, PermissionsConfig, Settings
from agent_tui.context.accounting.usage import calculate_context_usage
from agent_tui.context.compaction.answers import parse_sections
from agent_tui.context.compaction.summary import USER_MESSAGES
from agent_tui.context.view import build_view
from agent_tui.engine.agent import Agent
from agent_tui.engine.compaction.auto import AutoCompaction, CompactNow, Decision
from agent_tui.models.calibration import Calibration
from agent_tui.models.context import ContextRow, ContextUsage
from agent_tui.models.events import CompactionEnded, CompactionStarted, Event, StepEnded, TurnEnded
from agent_tui.models.messages import Message, SummaryPart
from agent_tui.models.requests import SentMessage
from tests.support.agents import TokenCounter, parts_for, running
from tests.support.compaction_world import assert_valid
from tests.support.forms import examples

TURNS = examples(100, 200)
RULE = "Always answer in English and never touch generated.py."


def questions() -> list[str]:
    """What a user might ask: most of it short, some long, some that needs tools."""
    asked = [f"Please port the billing module. {RULE}"]
    for number in range(1, TURNS):
        match number % 5:
            case 0:
                asked.append(f"Turn {number}: tell me a lot about step {number}.")
            case 1:
                asked.append(f"Turn {number}: read src/module{number % 12}.py please")
            case 2:
                asked.append(f"Turn {number}: what about ünïcode 日本語 and {'detail ' * (number % 40)}?")
            case 3:
                asked.append(f"Turn {number}: list the files")
            case _:
                asked.append(f"Turn {number}: why?")
    return asked


def make_project(folder: Path) -> Path:
    (folder / "src").mkdir(parents=True)
    for number in range(12):
        lines = "\n".join(f"def f{i}(x: int) -> int:\n    return x * {i * number}" for i in range(20 + 15 * number))
        (folder / "src" / f"module{number}.py").write_text(lines)
    return folder


@dataclass
class Stage:
    """What was true when a compaction began; an undo at this head has to bring it back."""

    head: str | None
    view: list[SentMessage]
    usage: ContextUsage
    calibration: Calibration | None
    operation: str = ""


@dataclass
class Watch:
    """Looks on: every decision of the trigger, every step, every compaction."""

    agent: Agent
    stages: list[Stage] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    decisions: int = 0
    turns: int = 0

    def decided(self, usage: ContextUsage, decision: Decision) -> None:
        """The trigger was asked about ``usage``: the screen says the same, with and without what it remembers."""
        self.decisions += 1
        runtime = self.agent.runtime
        assert runtime is not None
        shown = self.agent.context.usage()
        recounted = calculate_context_usage(runtime.inputs())
        assert usage.total == shown.total == recounted.total
        assert usage.limit == shown.limit == recounted.limit
        assert rows(shown) == rows(recounted)
        assert not usage.pending
        assert usage.limit is not None
        assert isinstance(decision, CompactNow) == shown.would_compact == (usage.total > usage.limit)
        self.check(shown)

    def check(self, usage: ContextUsage) -> None:
        assert_valid(self.agent.conversation.view())
        assert sum(r.tokens for r in usage.rows) == usage.total
        assert all(r.tokens == sum(c.tokens for c in r.children) for r in every(usage.rows) if r.children)
        assert all(r.tokens >= 0 for r in every(usage.rows))
        assert usage.free is not None and usage.reserve is not None and usage.over is not None
        assert usage.total + usage.free + usage.reserve - usage.over == usage.window

    def __call__(self, event: Event) -> None:
        match event:
            case CompactionStarted(before, _):
                view = list(self.agent.conversation.view())
                usage = self.agent.context.usage()
                assert before == usage.total
                learned = self.agent.runtime.calibration if self.agent.runtime is not None else None
                self.stages.append(Stage(self.agent.conversation.info.head_id, view, usage, learned))
                self.log.append("compaction")
            case CompactionEnded("done", _, records):
                self.stages[-1].operation = records[0].operation_id
                after = self.agent.context.usage().total
                assert all(r.after_tokens == after for r in records)
                assert after < self.stages[-1].usage.total
            case StepEnded(step, _):
                assert step.status == "complete"
                self.log.append("reply")
                self.check(self.agent.context.usage())
            case TurnEnded(reason, _):
                assert reason == "end"
                self.turns += 1
            case _:
                pass


def every(found: Sequence[ContextRow]) -> list[ContextRow]:
    return [r for row in found for r in (row, *every(row.children))]


def rows(usage: ContextUsage) -> list[tuple[str, int, str, int]]:
    return [(r.id, r.tokens, r.basis, r.estimated_tokens) for r in every(usage.rows)]


UNTOLD = Settings(permissions=PermissionsConfig(mode="auto"), context=ContextConfig(tell_model=False))
"""What the model is told of its context stays with the message that it was told with, whatever is undone."""


def contents(view: Sequence[SentMessage]) -> list[tuple[str, object]]:
    """What is sent, whether it has been counted or not."""
    return [(s.key, s.message.parts) for s in view]


def numbers(usage: ContextUsage) -> tuple[object, ...]:
    calculation, anchor = usage.calculation, usage.anchor_step
    return usage.total, usage.limit, usage.free, usage.over, usage.basis, calculation, anchor, rows(usage)


def sizes(usage: ContextUsage) -> tuple[object, ...]:
    """The tokens alone: what was an estimate before a compaction has been measured since."""
    terms = usage.calculation
    named = terms.last_input, terms.last_output, terms.dropped_reasoning, terms.removed, terms.new_messages
    return usage.total, usage.limit, usage.free, usage.over, named, [(r.id, r.tokens) for r in every(usage.rows)]


def watch_trigger(watches: list[Watch], monkeypatch: pytest.MonkeyPatch) -> None:
    decide = AutoCompaction.before_step

    def watched(policy: AutoCompaction, usage: ContextUsage) -> Decision:
        decision = decide(policy, usage)
        watches[-1].decided(usage, decision)
        return decision

    monkeypatch.setattr(AutoCompaction, "before_step", watched)


@pytest.mark.slow
async def test_many_turns_and_all_the_way_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, project = tmp_path / "home", make_project(tmp_path / "project")
    watches: list[Watch] = []
    watch_trigger(watches, monkeypatch)
    asked = questions()
    session: str | None = None
    for part in (asked[: TURNS // 2], asked[TURNS // 2 :]):
        async with running(parts_for(home, project, settings=UNTOLD, counter=TokenCounter(), resume=session)) as (
            agent,
            _,
        ):
            watches.append(Watch(agent, *(() if not watches else (watches[-1].stages, watches[-1].log))))
            agent.subscribe(watches[-1])
            session = agent.conversation.info.id
            for text in part:
                agent.turns.submit(text)
                await agent.turns.join()
            await agent.context.ready()
            left = numbers(agent.context.usage())
            conversation = agent.conversation
            final, messages = list(conversation.view()), list(agent.conversation.path)
    stages, log = watches[-1].stages, watches[-1].log
    assert sum(w.turns for w in watches) == TURNS
    assert sum(w.decisions for w in watches) >= TURNS
    print(f"{TURNS} turns, {sum(w.decisions for w in watches)} steps, {len(stages)} compactions")
    assert len(stages) >= TURNS // 20 and all(s.operation for s in stages)
    # Never two compactions without an answer of the model between them.
    assert "compaction,compaction" not in ",".join(log)
    check_what_is_sent(final, messages, stages[-1].usage.limit or 0)

    copy = Path(shutil.copytree(home, tmp_path / "copy"))
    async with running(parts_for(home, project, settings=UNTOLD, counter=TokenCounter(), resume=session)) as (agent, _):
        await agent.context.ready()
        assert agent.conversation.view() == final
        assert numbers(agent.context.usage()) == left
        stored = set(agent.store.messages.all(agent.conversation.info.id))
        assert len(stored) == len(messages)
        await undo_stage_by_stage(agent, list(stages))
        assert set(agent.store.messages.all(agent.conversation.info.id)) == stored
    async with running(parts_for(copy, project, settings=UNTOLD, counter=TokenCounter(), resume=session)) as (agent, _):
        await agent.context.ready()
        await undo_without_rewinding(agent, [s.operation for s in stages])


async def undo_stage_by_stage(agent: Agent, stages: list[Stage]) -> None:
    """At the place where each compaction happened, its undo brings back what was there before, number by number."""
    conversation = agent.conversation
    while stages:
        stage = stages.pop()
        conversation.go_to(stage.head)
        await agent.compaction.undo()
        assert contents(conversation.view()) == contents(stage.view)
        if agent.runtime is not None:
            # What was learned since is of the tokenizer, not of the conversation.
            agent.runtime.calibration = stage.calibration
        assert sizes(agent.context.usage()) == sizes(stage.usage)
    assert not any(r.active for r in conversation.records)


async def undo_without_rewinding(agent: Agent, operations: list[str]) -> None:
    """At the end of the conversation, one after the other, until all of it is sent again."""
    conversation, messages = agent.conversation, agent.conversation.path
    while operations:
        await agent.compaction.undo()
        undone = {r.operation_id for r in conversation.records if not r.active}
        assert operations.pop() in undone and not undone & set(operations)
        assert conversation.view() == build_view(messages, conversation.records, conversation.summaries)
        assert_valid(conversation.view())
    assert [s.message.id for s in conversation.view()] == [m.id for m in messages]


def check_what_is_sent(view: Sequence[SentMessage], messages: Sequence[Message], limit: int) -> None:
    (summary,) = [p for s in view for p in s.message.parts if isinstance(p, SummaryPart)]
    sections = parse_sections(summary.text)
    assert RULE in sections["Instructions and constraints"]
    for number in range(12):
        assert f"src/module{number}.py (read" in sections["Files"]
    quoted = re.findall(r"<user_message>\n(.*?)\n</user_message>", summary.text, re.S)
    sent = {s.message.id for s in view}
    summarised = [m.text for m in messages if m.role == "user" and m.id not in sent]
    assert len(quoted) >= 10
    whole = [q for q in quoted if "characters left out" not in q]
    rest = iter(summarised)
    assert all(q in rest for q in whole), "in their order"
    # The small ones first: nothing left out is much smaller than something kept.
    left_out = [len(t) for t in summarised if t not in quoted]
    assert max(map(len, whole)) <= 2 * (min(left_out, default=limit) + 16)
    assert USER_MESSAGES in sections
    assert sum(len(q) for q in quoted) <= limit * 0.10 * 4
