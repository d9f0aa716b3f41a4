"""recall: what a compaction took out of the conversation comes back, by words or by id, and nothing else does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent_tui.context.view import build_view
from agent_tui.errors import ToolError
from agent_tui.models.messages import (
    CLEARED_RESULT,
    TOLD_MODE,
    AttachmentPart,
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    recall_id,
)
from agent_tui.models.steps import CompactionRecord, FixedPart
from agent_tui.text.secrets import MASK
from agent_tui.tools.base import Past, ToolContext, ToolOutcome
from agent_tui.tools.builtin.read import ReadTool
from agent_tui.tools.builtin.recall import HITS, TEXT_CHARS, RecallTool
from tests.support.compaction_world import World, sent_text
from tests.support.tool_context import make_context

pytestmark = pytest.mark.quick


class Talk:
    """A conversation of which all is gone, but for what is ``kept``."""

    def __init__(self, root: Path) -> None:
        self.path: list[Message] = []
        self.kept: set[str] = set()
        self.context = make_context(root)
        self.context.past = lambda: Past(self.path, frozenset(m.id for m in self.path if m.id not in self.kept))

    def add(self, role: str, *parts: Part) -> str:
        message = Message(f"msg_{len(self.path):022x}", role, list(parts))  # type: ignore[arg-type]
        self.path.append(message)
        return message.id

    def user(self, text: str) -> str:
        return self.add("user", TextPart(text))

    def call(self, name: str, result: str, **arguments: object) -> str:
        call_id = f"call{len(self.path)}"
        self.add("assistant", ToolCallPart(call_id, name, json.dumps(arguments)))
        return self.add("tool", ToolResultPart(call_id, name, result))

    async def recall(self, **arguments: object) -> ToolOutcome:
        return await RecallTool().run(arguments, self.context)


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return Talk(tmp_path / "project")


async def test_a_hit_says_what_it_is_how_old_and_how_large(talk: Talk) -> None:
    said = talk.user("The port is 5433, never 5432.")
    result = talk.call("bash", "port 5433 is open\n" + "x" * 5_000, command="nmap localhost")
    talk.user("and now?")
    talk.add("assistant", TextPart("Something else."))
    outcome = await talk.recall(query="PORT 5433")
    first, *hits = outcome.text.split("\n\n")
    assert first.startswith("2 hits in 5 messages that are no longer in view")
    assert f"[{recall_id(result)} · result of bash nmap localhost · 1 turn ago · 5,018 characters" in hits[0]
    assert "port 5433 is open" in hits[0] and len(hits[0]) < 1_000
    assert hits[1] == f"[{recall_id(said)} · the user · 1 turn ago · 29 characters]\nThe port is 5433, never 5432."
    assert outcome.display is not None and outcome.display["recalled"] == [result, said]


async def test_what_is_still_sent_is_no_hit(talk: Talk) -> None:
    talk.user("the zebra")
    talk.kept.add(talk.user("a zebra here"))
    outcome = await talk.recall(query="zebra")
    assert "the zebra" in outcome.text and "a zebra here" not in outcome.text
    talk.kept.update(m.id for m in talk.path)
    assert "all of it is above" in (await talk.recall(query="zebra")).text


async def test_reasoning_and_what_the_program_told_are_never_found(talk: Talk) -> None:
    note = AttachmentPart(TOLD_MODE, "text/plain", text="zebra mode")
    message = talk.add("user", note, TextPart("hello"))
    thought = talk.add("assistant", ReasoningPart("zebra thought"), TextPart("hi"))
    assert "No hit" in (await talk.recall(query="zebra")).text
    for name in (message, thought):
        assert "zebra" not in (await talk.recall(id=recall_id(name))).text


@pytest.mark.parametrize("by", ["short", "long", "call", "words", "number", "#"])
async def test_an_id_brings_all_of_it_in_pieces(talk: Talk, by: str) -> None:
    text = "".join(f"line {n}\n" for n in range(3_000))
    name = talk.call("bash", text, command="seq")
    short = recall_id(name)
    forms: dict[str, dict[str, object]] = {
        "short": {"id": short}, "long": {"id": name}, "call": {"id": "call0"}, "words": {"query": short},
        "number": {"id": int(short)}, "#": {"id": f"#{short}"},
    }  # fmt: skip
    given = forms[by]
    came = ""
    while len(came) < len(text):
        outcome = await talk.recall(**given, offset=len(came))
        head, note, *lines = outcome.text.split("\n")
        assert short in head and f"{len(text):,}" in note
        came += "\n".join(lines)
        assert len(outcome.text) < TEXT_CHARS + 300
    assert came == text
    with pytest.raises(ToolError, match="only"):
        await talk.recall(id=short, offset=len(text))


async def test_an_id_of_nothing_here_and_a_call_without_words_are_refused(talk: Talk) -> None:
    talk.user("hello")
    with pytest.raises(ToolError, match="nothing in this conversation has the id"):
        await talk.recall(id="msg_elsewhere")
    for empty in ({}, {"query": "  "}, {"id": ""}):
        with pytest.raises(ToolError, match="give words"):
            await talk.recall(**empty)


async def test_two_messages_of_one_id_are_told_apart(talk: Talk) -> None:
    names = [f"msg_{n:022x}" for n in range(10_000)]
    by_id: dict[str, str] = {}
    pair = next((by_id[i], n) for n in names if (i := recall_id(n)) in by_id or by_id.update({i: n}))
    talk.path = [Message(name, "user", [TextPart(f"text of {name}")]) for name in pair]
    outcome = await talk.recall(id=recall_id(pair[0]))
    assert all(name in outcome.text for name in pair)
    assert f"text of {pair[1]}" in (await talk.recall(id=pair[1])).text


async def test_what_was_recalled_before_is_found_where_it_stood_first(talk: Talk) -> None:
    first = talk.call("bash", "the answer is quokka", command="a")
    talk.call("recall", "[…]\nthe answer is quokka", query="quokka")
    outcome = await talk.recall(query="quokka")
    assert outcome.text.startswith("1 hit ") and recall_id(first) in outcome.text


async def test_a_text_that_came_twice_is_one_hit_and_the_rarest_words_count_most(talk: Talk) -> None:
    for _ in range(3):
        talk.call("bash", "the build is green", command="make")
    for number in range(HITS + 3):
        talk.user(f"the the the {number}")
    talk.user("the quokka")
    outcome = await talk.recall(query="the quokka")
    assert outcome.text.startswith("1 hit "), "what has only the common word is none"
    again = await talk.recall(query="build green")
    assert again.text.startswith("1 hit ") and "the same later" not in again.text


async def test_what_a_call_gave_is_found_by_the_words_of_the_call(talk: Talk) -> None:
    ran = talk.call("bash", "0.125 became 0.13\n[exit code 93]", command="sh check.sh rounding")
    other = talk.call("bash", "0.125 became 0.13\n[exit code 93]", command="sh check.sh amounts")
    outcome = await talk.recall(query="check rounding")
    assert outcome.display is not None and outcome.display["recalled"][0] == ran
    assert "exit code 93" in outcome.text.split("\n\n")[1]
    outcome = await talk.recall(query="check amounts")
    assert outcome.display is not None and outcome.display["recalled"][0] == other


async def test_whole_words_come_before_parts_of_longer_ones(talk: Talk) -> None:
    wanted = talk.user("The bank's form lies in the drawer.")
    for number in range(HITS + 3):
        talk.user(f"The banking format {number}")
    outcome = await talk.recall(query="bank form")
    assert outcome.display is not None and outcome.display["recalled"][0] == wanted


async def test_hits_beyond_the_first_few_are_named(talk: Talk) -> None:
    names = [talk.user(f"quokka {number} {'y' * 3_000}") for number in range(HITS + 4)]
    outcome = await talk.recall(query="quokka")
    assert all(recall_id(name) in outcome.text for name in names)
    assert len(outcome.text) < 6_000, "a few hundred tokens a hit"


async def test_a_long_text_is_shown_where_the_words_are(talk: Talk) -> None:
    name = talk.user("a\n" * 20_000 + "the quokka sleeps\n" + "b\n" * 20_000)
    outcome = await talk.recall(query="quokka")
    assert "the quokka sleeps" in outcome.text and "from " in outcome.text and recall_id(name) in outcome.text


async def test_a_file_that_was_read_and_has_changed_is_said_to_have(talk: Talk) -> None:
    file = talk.context.root / "app.py"
    file.write_text("one\nquokka\nthree\n")
    read = (await ReadTool().run({"path": "app.py"}, talk.context)).text
    talk.call("read", f"{read}\n\n[Permission mode: ask.]", path="app.py")
    known = dict(talk.context.memory.files)
    assert "the file is the same now" in (await talk.recall(query="quokka")).text
    file.write_text("one\nquokka\nfour\n")
    assert "the file has changed since" in (await talk.recall(query="quokka")).text
    assert talk.context.memory.files == known, "the model has not read it again"
    file.unlink()
    assert "the file has changed since" in (await talk.recall(query="quokka")).text
    talk.context.hidden = lambda path: True
    assert "the file" not in (await talk.recall(query="quokka")).text.partition("\n\n")[2]


async def test_a_key_in_a_file_does_not_make_it_another(talk: Talk) -> None:
    talk.context.secrets.add("sk-verysecretvalue123")
    (talk.context.root / "env").write_text("quokka=sk-verysecretvalue123\n")
    read = (await ReadTool().run({"path": "env"}, talk.context)).text
    talk.call("read", talk.context.secrets.mask(read), path="env")
    outcome = await talk.recall(query="quokka")
    assert "the file is the same now" in outcome.text and MASK in outcome.text


async def test_a_call_made_again_with_another_result_says_so(talk: Talk) -> None:
    talk.call("bash", "quokka: 3 failed", command="make test")
    newer = talk.call("bash", "all green", command="make test")
    assert f"newer: {recall_id(newer)}" in (await talk.recall(query="quokka")).text


async def test_images_come_back_with_their_message(talk: Talk) -> None:
    image = AttachmentPart("a.png", "image/png", data="iVBORw0KGgo=")
    name = talk.add("user", image, TextPart("look"))
    assert (await talk.recall(id=recall_id(name))).attachments == [image]
    assert (await talk.recall(query="look")).attachments == []


def past_of(world: World) -> Past:
    whole = {s.message.id for s in world.view() if s.stored is None}
    return Past(world.path, frozenset(m.id for m in world.path if m.id not in whole))


def offered(world: World) -> World:
    world.fixed.append(FixedPart("tools", "builtin", "recall", 200, "r", 65))
    return world


def long_talk(world: World, steps: int = 13) -> None:
    world.user("Read all files.")
    for number in range(steps):
        world.tool_step(f"f{number}.py", 1_000)
    world.says("Done.")
    world.user("Go on.")


def context_of(world: World, root: Path) -> ToolContext:
    context = make_context(root)
    context.past = lambda: past_of(world)
    return context


async def test_every_cleared_result_comes_back_by_what_stands_in_its_place(tmp_path: Path) -> None:
    world = offered(World())
    long_talk(world)
    result = await world.compact()
    assert result.done and result.records[0].recall
    cleared = result.records[0].message_ids
    context = context_of(world, tmp_path / "p")
    for sent in world.view():
        if sent.message.id in cleared:
            text = sent.message.tool_result.text if sent.message.tool_result is not None else ""
            stored = world.messages[sent.message.id].tool_result
            assert stored is not None and f"{len(stored.text):,} characters" in text
            id = text.rstrip("]").rpartition(" ")[2]
            outcome = await RecallTool().run({"id": id}, context)
            assert stored.text in outcome.text
    assert CLEARED_RESULT not in sent_text(world.view())


async def test_where_recall_is_not_offered_nothing_speaks_of_it(tmp_path: Path) -> None:
    world = World()
    long_talk(world)
    result = await world.compact()
    assert result.done and not result.records[0].recall
    assert CLEARED_RESULT in sent_text(world.view())
    summary = await world.compact("manual")
    assert summary.done and summary.summary is not None
    assert "recall" not in sent_text(world.view())


async def test_a_summary_says_what_can_be_recalled_and_names_what_was_read(tmp_path: Path) -> None:
    world = offered(World())
    long_talk(world)
    result = await world.compact("manual")
    assert result.done and result.summary is not None
    text = sent_text(world.view())
    assert "The tool recall finds what it leaves out" in text
    gone = [m for m in world.path if m.id in result.records[-1].message_ids and m.role == "tool"]
    assert gone and all(f"recall {recall_id(m.id)}: 4,000 characters)" in text for m in gone)
    outcome = await RecallTool().run({"query": "f3.py"}, context_of(world, tmp_path / "p"))
    assert (
        recall_id(next(m.id for m in gone if "f3.py" in (m.tool_result.text if m.tool_result else ""))) in outcome.text
    )


async def test_a_clipped_result_says_where_the_rest_begins(tmp_path: Path) -> None:
    world = offered(World())
    long_talk(world, 2)
    big = next(m for m in world.path if m.role == "tool")
    world.records.append(CompactionRecord("r", "o", "prune", [big.id], clips={big.id: 1_000}, recall=True))
    stored = big.tool_result
    assert stored is not None
    sent = next(s.message.tool_result for s in world.view() if s.message.id == big.id)
    assert sent is not None and len(sent.text) <= 1_000
    note = next(line for line in sent.text.split("\n") if line.startswith("[clipped: "))
    id, offset = note.partition("; recall id ")[2].rstrip("]").split(" offset ")
    rest = (await RecallTool().run({"id": id, "offset": int(offset)}, context_of(world, tmp_path / "p"))).text
    assert sent.text.startswith(stored.text[: int(offset)]) and stored.text[int(offset) : int(offset) + 500] in rest


def sent_results(records: Sequence[CompactionRecord], world: World) -> list[str]:
    return [
        s.message.tool_result.text for s in build_view(world.path, records, {}) if s.message.tool_result is not None
    ]


def test_what_earlier_versions_cleared_is_sent_as_it_was() -> None:
    """A record of theirs says nothing of ``recall``; one of ours beside it does not change its bytes."""
    world = World()
    long_talk(world, 3)
    first, second, _ = (m.id for m in world.path if m.role == "tool")
    old = CompactionRecord("r1", "o1", "prune", [first])
    new = CompactionRecord("r2", "o2", "prune", [first, second], recall=True)
    assert sent_results([old], world)[0] == CLEARED_RESULT
    both = sent_results([old, new], world)
    assert both[0] == CLEARED_RESULT and recall_id(second) in both[1]
    keys = [s.key for s in build_view(world.path, [new], {}) if s.stored is not None]
    assert keys == [f"{first}#cleared+recall", f"{second}#cleared+recall"], "another text has another key"
