"""An edited memory file or pinned document is told with the next message; the bytes before it stay as they were."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from agent_tui.config import ContextConfig, ModelConfig, PermissionsConfig, Settings
from agent_tui.context.prompt import MemoryFiles
from agent_tui.engine import request_prefix as prefix
from agent_tui.engine.extensions import Workspace
from agent_tui.engine.state import AgentParts
from agent_tui.models.messages import CHANGE, AttachmentPart
from agent_tui.models.requests import Counter, ModelRequest, StreamItem
from agent_tui.providers.demo import DemoProvider
from agent_tui.tools.files.access import FileAccess
from tests.support.agents import parts_for, running
from tests.support.contexts import assert_identities, row

SPEC = "".join(f"rule {n}: keep it short\n" for n in range(60))


class Listening(DemoProvider):
    """The demo model; keeps the turn requests it was sent."""

    def __init__(self, counter: Counter) -> None:
        super().__init__(counter, None, pace=0.0)
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        if request.kind == "turn":
            self.requests.append(request)
        async for item in super().stream(request):
            yield item


def world(tmp_path: Path, heard: list[Listening], resume: str | None = None) -> AgentParts:
    home, project = tmp_path / "home", tmp_path / "p"
    project.mkdir(exist_ok=True)
    memory = MemoryFiles(home / "config", FileAccess([project]), project)
    workspace = Workspace(FileAccess([project]), project, brought=[memory.blocks], watched=memory.candidates)
    settings = Settings(
        default_model="demo",
        models={name: ModelConfig(model="demo") for name in ("demo", "other")},
        permissions=PermissionsConfig(mode="auto"),
        context=ContextConfig(exact_counting="off"),
    )

    def provider(counter: Counter) -> Listening:
        heard.append(Listening(counter))
        return heard[-1]

    return parts_for(home, project, workspace=workspace, settings=settings, provider=provider, resume=resume)


def beginning(request: ModelRequest) -> list[str]:
    return [block.text for block in (*request.system, *request.documents)]


def told(request: ModelRequest) -> list[str]:
    """The changes in the newest user message."""
    message = next(s.message for s in reversed(request.messages) if s.message.role == "user")
    return [p.text or "" for p in message.parts if isinstance(p, AttachmentPart) and p.name == CHANGE]


@pytest.mark.quick
async def test_an_edit_is_told_with_the_next_message_and_the_beginning_stays(tmp_path: Path) -> None:
    heard: list[Listening] = []
    async with running(world(tmp_path, heard)) as (agent, _):
        spec, notes = agent.root / "spec.md", agent.root / "AGENTS.md"
        spec.write_text(SPEC)
        notes.write_text("Be brief.\n")
        agent.context.pin("spec.md")
        for text in ("one", "two"):
            agent.turns.submit(text)
            await agent.turns.join()
        spec.write_text(SPEC + "rule 99: name the file\n")
        notes.write_text("Be thorough.\n")
        agent.turns.submit("three")
        await agent.turns.join()
        agent.turns.submit("four")
        await agent.turns.join()
        first, second, third, fourth = heard[0].requests
        assert beginning(first) == beginning(second) == beginning(third) == beginning(fourth)
        assert [told(first), told(second), told(fourth)] == [[], [], []]
        memory, document = told(third)
        assert "AGENTS.md has changed" in memory and "Be thorough." in memory
        # A difference, being shorter.
        assert "+rule 99: name the file" in document and "rule 10:" not in document
        assert first.fixed_fingerprint == fourth.fixed_fingerprint
        # Each request begins with the one before it.
        keys = [[s.key for s in request.messages] for request in (second, third, fourth)]
        assert keys[1][: len(keys[0])] == keys[0] and keys[2][: len(keys[1])] == keys[1]


@pytest.mark.slow
async def test_the_numbers_have_it_before_it_is_sent_and_after(tmp_path: Path) -> None:
    heard: list[Listening] = []
    async with running(world(tmp_path, heard)) as (agent, _):
        spec = agent.root / "spec.md"
        spec.write_text("short\n")
        agent.context.pin("spec.md")
        agent.turns.submit("one")
        await agent.turns.join()
        await agent.context.ready()
        before = agent.context.usage()
        spec.write_text(SPEC)
        assert await agent.context.refresh()
        await agent.context.ready()
        waiting = agent.context.usage()
        documents = row(waiting, "documents")
        assert documents.label == "Documents (1)"
        assert [child.detail for child in documents.children] == [
            "edited; the old text and the change are sent until the next compaction",
            "edited; the change is sent with your next message",
        ]
        assert waiting.total > before.total + 200
        assert waiting.calculation.fixed_delta == waiting.total - before.total
        assert agent.context.usage().total == waiting.total
        assert_identities(waiting)
        agent.turns.submit("two")
        await agent.turns.join()
        await agent.context.ready()
        after = agent.context.usage()
        assert after.calculation.fixed_delta == 0
        assert row(after, "documents").tokens < documents.tokens - 200
        assert row(after, "messages").tokens > row(before, "messages").tokens + 200
        assert_identities(after)
        assert not await agent.context.refresh()


@pytest.mark.slow
async def test_back_and_gone_are_told_too(tmp_path: Path) -> None:
    heard: list[Listening] = []
    async with running(world(tmp_path, heard)) as (agent, _):
        notes = agent.root / "AGENTS.md"
        notes.write_text("Be brief.\n")
        for now in (None, "Be thorough.\n", "Be brief.\n", ""):
            if now is not None:
                notes.write_text(now) if now else notes.unlink()
            agent.turns.submit("go on")
            await agent.turns.join()
        news = [told(request) for request in heard[0].requests]
        assert news[0] == []
        assert "Be thorough." in news[1][0]
        assert "as it stands at the beginning" in news[2][0]
        assert "no longer given" in news[3][0]
        assert len({tuple(beginning(request)) for request in heard[0].requests}) == 1


@pytest.mark.slow
async def test_a_rewind_takes_back_what_was_told(tmp_path: Path) -> None:
    heard: list[Listening] = []
    async with running(world(tmp_path, heard)) as (agent, _):
        notes = agent.root / "AGENTS.md"
        notes.write_text("Be brief.\n")
        agent.turns.submit("one")
        await agent.turns.join()
        notes.write_text("Be thorough.\n")
        agent.turns.submit("two")
        await agent.turns.join()
        await agent.branches.rewind(agent.conversation.path[2].id)
        agent.turns.submit("three")
        await agent.turns.join()
        assert "Be thorough." in told(heard[0].requests[-1])[0]
        assert beginning(heard[0].requests[-1]) == beginning(heard[0].requests[0])


async def test_cold_moments_take_the_files_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Listening] = []
    async with running(world(tmp_path, heard)) as (agent, _):
        notes = agent.root / "AGENTS.md"
        notes.write_text("First.\n")
        agent.turns.submit("one")
        await agent.turns.join()
        notes.write_text("Second.\n")
        # An hour without a request.
        monkeypatch.setattr(prefix, "COLD_SECONDS", -1.0)
        agent.turns.submit("two")
        await agent.turns.join()
        monkeypatch.undo()
        assert "Second." in "".join(beginning(heard[0].requests[-1])) and not told(heard[0].requests[-1])
        notes.write_text("Third.\n")
        # Another model: nothing is in its cache.
        await agent.models.switch("other")
        agent.turns.submit("three")
        await agent.turns.join()
        assert "Third." in "".join(beginning(heard[0].requests[-1])) and not told(heard[0].requests[-1])
        notes.write_text("Fourth.\n")
        agent.turns.submit("four")
        await agent.turns.join()
        assert "Third." in "".join(beginning(heard[0].requests[-1])) and told(heard[0].requests[-1])
        # What the first model has in its cache is what it was sent.
        await agent.models.switch("demo")
        agent.turns.submit("five")
        await agent.turns.join()
        assert "Second." in "".join(beginning(heard[0].requests[-1])) and not told(heard[0].requests[-1])


@pytest.mark.slow
async def test_a_restart_begins_as_was_sent_and_tells_what_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Listening] = []
    async with running(world(tmp_path, heard)) as (agent, _):
        notes, spec = agent.root / "AGENTS.md", agent.root / "spec.md"
        notes.write_text("First.\n")
        spec.write_text(SPEC)
        agent.context.pin("spec.md")
        agent.turns.submit("one")
        await agent.turns.join()
        sent = beginning(heard[0].requests[-1])
        notes.write_text("Second.\n")
        agent.turns.submit("two")
        await agent.turns.join()
        session = agent.conversation.info.id
    notes.write_text("Third.\n")
    spec.write_text(SPEC + "rule 99: name the file\n")
    async with running(world(tmp_path, heard, session)) as (agent, _):
        assert len(row(agent.context.usage(), "memory").children) == 2
        agent.turns.submit("three")
        await agent.turns.join()
        (request,) = heard[-1].requests
        assert beginning(request) == sent
        memory, document = told(request)
        assert "Third." in memory and "told of it since is out of date" in memory
        assert "rule 99" in document and "out of date" not in document and len(document) < len(SPEC)
    notes.write_text("Fourth.\n")
    monkeypatch.setattr(prefix, "COLD_SECONDS", -1.0)
    async with running(world(tmp_path, heard, session)) as (agent, _):
        agent.turns.submit("four")
        await agent.turns.join()
        (request,) = heard[-1].requests
        assert "Fourth." in "".join(beginning(request))
        # The older news is still in the conversation, so it is said that it is out of date.
        assert "out of date" in told(request)[0]
        monkeypatch.undo()
        agent.turns.submit("five")
        await agent.turns.join()
        assert told(heard[-1].requests[-1]) == []


@pytest.mark.slow
async def test_after_a_compaction_the_beginning_is_new(tmp_path: Path) -> None:
    heard: list[Listening] = []
    async with running(world(tmp_path, heard)) as (agent, _):
        notes = agent.root / "AGENTS.md"
        notes.write_text("First.\n")
        for n in range(8):
            agent.turns.submit(f"{n} " + "tell me about the weather in the mountains " * 100)
            await agent.turns.join()
        notes.write_text("Second.\n")
        await agent.compaction.now()
        assert [r for r in agent.conversation.own_records if r.active]
        agent.turns.submit("and on")
        await agent.turns.join()
        assert "Second." in "".join(beginning(heard[0].requests[-1]))
        assert told(heard[0].requests[-1]) == []


@pytest.mark.slow
async def test_what_could_not_be_sent_is_told_when_it_can(tmp_path: Path) -> None:
    heard: list[Listening] = []
    async with running(world(tmp_path, heard)) as (agent, _):
        notes = agent.root / "AGENTS.md"
        notes.write_text("First.\n")
        agent.turns.submit("one")
        await agent.turns.join()
        notes.write_text("Second.\n")
        agent.turns.submit("two")
        await agent.turns.join()
        assert len(told(heard[0].requests[-1])) == 1


@pytest.mark.slow
async def test_an_undo_brings_back_the_beginning_with_the_messages(tmp_path: Path) -> None:
    """Also in another process, and also where the file changed once more: what a message told as a difference to the
    beginning of after the compaction is told anew, as a difference to this one."""
    heard: list[Listening] = []
    async with running(world(tmp_path, heard)) as (agent, _):
        spec = agent.root / "spec.md"
        spec.write_text(SPEC)
        agent.context.pin("spec.md")
        for number in range(4):
            agent.turns.submit(f"{number}: tell me a lot")
            await agent.turns.join()
        first = beginning(heard[0].requests[-1])
        spec.write_text(SPEC + "rule 98: be kind\n")
        await agent.compaction.now()
        agent.turns.submit("after the compaction")
        await agent.turns.join()
        compacted = heard[0].requests[-1]
        assert beginning(compacted) != first and "be kind" in "".join(beginning(compacted))
        spec.write_text(SPEC + "rule 98: be kind\nrule 99: name the file\n")
        agent.turns.submit("told")
        await agent.turns.join()
        assert "+rule 99" in told(heard[0].requests[-1])[0] and "+rule 98" not in told(heard[0].requests[-1])[0]
        session = agent.conversation.info.id
    async with running(world(tmp_path, heard, session)) as (agent, _):
        await agent.compaction.undo()
        row_now = row(agent.context.usage(), "documents")
        agent.turns.submit("after the undo")
        await agent.turns.join()
        undone = heard[1].requests[-1]
        assert beginning(undone) == first
        (difference,) = told(undone)
        assert "+rule 98" in difference and "+rule 99" in difference
        assert [c.detail for c in row_now.children] == [
            "edited; the old text and the change are sent until the next compaction",
            "edited; the change is sent with your next message",
        ]
        agent.turns.submit("and on")
        await agent.turns.join()
        assert beginning(heard[1].requests[-1]) == first and not told(heard[1].requests[-1])


@pytest.mark.slow
async def test_a_rewind_to_before_a_compaction_brings_back_its_beginning(tmp_path: Path) -> None:
    heard: list[Listening] = []
    async with running(world(tmp_path, heard)) as (agent, _):
        notes = agent.root / "AGENTS.md"
        notes.write_text("Be brief.\n")
        for number in range(4):
            agent.turns.submit(f"{number}: tell me a lot")
            await agent.turns.join()
        first = beginning(heard[0].requests[-1])
        users = [m for m in agent.conversation.path if m.role == "user"]
        notes.write_text("Be thorough.\n")
        await agent.compaction.now()
        agent.turns.submit("after the compaction")
        await agent.turns.join()
        assert beginning(heard[0].requests[-1]) != first
        await agent.branches.rewind(users[2].id)
        agent.turns.submit("instead of that")
        await agent.turns.join()
        request = heard[0].requests[-1]
        assert beginning(request) == first and "Be thorough." in told(request)[0]
        await agent.branches.back()
        agent.turns.submit("back again")
        await agent.turns.join()
        request = heard[0].requests[-1]
        assert "Be thorough." in "".join(beginning(request)) and not told(request)
