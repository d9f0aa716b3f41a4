"""What is written and not sent yet is counted as it will be counted once it is sent."""

from __future__ import annotations

import asyncio
import base64
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from agent_tui.commands.mentions import collect, named_files
from agent_tui.context.accounting.next_input import PAUSED, draft_warning
from agent_tui.engine.agent import Agent
from agent_tui.engine.draft import NamedFile, PromptText, Weight, characters
from agent_tui.models.calibration import KINDS
from agent_tui.models.context import Draft
from agent_tui.models.events import CompactionStarted, DraftChanged, Event, TurnEnded
from agent_tui.models.messages import AttachmentPart
from agent_tui.text.clean import common_start
from tests.support.agents import Recorder, TokenCounter, parts_for, running, words_only
from tests.support.usages import sample_usage

SCRIPT = """
window = 200_000

[[step]]
text = "Understood."
"""


def picture(width: int, height: int) -> bytes:
    made = io.BytesIO()
    Image.new("RGB", (width, height), (90, 30, 200)).save(made, "PNG")
    return made.getvalue()


def image(width: int, height: int) -> AttachmentPart:
    return AttachmentPart("clipboard.png", "image/png", data=base64.b64encode(picture(width, height)).decode())


def write(agent: Agent, text: str, pastes: Sequence[str] = (), images: Sequence[AttachmentPart] = ()) -> Draft | None:
    async def find() -> list[NamedFile]:
        # As the prompt does: pastes stand where they were pasted.
        return named_files(text + "".join(pastes), agent.cwd, agent.project.files)

    return agent.draft.typed(text, pastes, images, find)


async def known(agent: Agent) -> Draft:
    """The draft, once all of it is counted."""
    await agent.events.settled()
    draft = agent.draft.now
    assert draft is not None
    return draft


async def send(agent: Agent, text: str, images: Sequence[AttachmentPart] = ()) -> None:
    """As the screen does: empties the prompt, attaches what is named, hands it over."""

    async def never(path: Path) -> bool:
        return False

    agent.draft.typed("")
    attached = await collect(agent, text, images, lambda level, line: None, never)
    agent.turns.submit(text, attached)


def files_of(project: Path) -> None:
    project.mkdir(parents=True, exist_ok=True)
    (project / "code.py").write_text("def add(a, b):\n    return a + b  # sums two\n" * 40)
    (project / "notes.md").write_text("説明書を読んでください。 " * 60)
    (project / "wide.png").write_bytes(picture(3_000, 900))
    (project / "blob.bin").write_bytes(b"\0\1\2" * 500)
    (project / "folder").mkdir()
    (project / "folder" / "a.txt").touch()


WORDS = st.one_of(
    st.text(max_size=400),
    st.sampled_from(
        ["look at this", "これは何ですか", "fix @code.py", "see @code.py:3-9 and @notes.md", "@wide.png @folder"]
    ),
    st.sampled_from(["@blob.bin @gone.txt @code.py", "me@host.org", "@notes.md " * 3, "a\n" * 300, "\u202e\x1b[31m"]),
)


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(WORDS, WORDS, st.booleans()), min_size=1, max_size=2))
async def test_the_draft_and_the_total_before_are_the_total_after(
    tmp_path_factory: pytest.TempPathFactory, messages: list[tuple[str, str, bool]]
) -> None:
    folder = tmp_path_factory.mktemp("draft")
    files_of(folder / "project")
    parts = parts_for(folder / "home", folder / "project", script=SCRIPT, counter=TokenCounter())
    async with running(parts) as (agent, _):
        for text, paste, shown in messages:
            text = (text + paste).strip("\n") or "hello"
            if text.startswith("!"):
                continue
            images = [image(900, 700)] if shown else []
            write(agent, text.removesuffix(paste), [paste] if text.endswith(paste) else [], images)
            if not text.endswith(paste):
                write(agent, text, [], images)
            draft, before = await known(agent), agent.context.usage().total
            assert not draft.approximate
            measured: list[int] = []

            def heard(event: object, measured: list[int] = measured) -> None:
                """The request of the message is the first one that is made after it."""
                if type(event).__name__ == "StepStarted" and not measured:
                    measured.append(agent.conversation.steps[-1].estimated_input or 0)

            stop = agent.subscribe(heard)
            await send(agent, text, images)
            await agent.turns.join()
            await agent.events.settled()
            stop()
            # A paste and the text around it are counted apart: a token more or less where they meet.
            assert abs(before + draft.tokens - measured[0]) <= 4, (before, draft, measured)


async def test_what_waits_counts_too_and_the_prompt_beside_it(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "project", script=SCRIPT)) as (agent, recorder):
        assert write(agent, "") is None
        write(agent, "a" * 400)
        alone = await known(agent)
        assert alone.waiting == 0
        agent.turns.submit("b" * 4_000)
        agent.turns.submit("c" * 4_000)
        both = agent.draft.now
        assert both is not None
        assert both.waiting == 1
        assert both.tokens == pytest.approx(alone.tokens + 1_000, abs=200)
        await agent.turns.join()
        await recorder.until(lambda: (agent.draft.now or both).waiting == 0)
        agent.draft.typed("")
        assert agent.draft.now is None
        assert agent.context.usage().draft is None


async def test_a_file_that_changes_or_vanishes_is_looked_at_again(tmp_path: Path) -> None:
    project = tmp_path / "project"
    files_of(project)
    async with running(parts_for(tmp_path / "home", project, script=SCRIPT)) as (agent, _):
        write(agent, "read @code.py")
        with_file = await known(agent)
        (project / "code.py").unlink()
        agent.draft.look()
        without = await known(agent)
        assert without.tokens < with_file.tokens - 300
        (project / "code.py").write_text("x = 1\n" * 4_000)
        agent.draft.look()
        assert (await known(agent)).tokens > with_file.tokens


async def test_a_file_outside_is_not_read_before_the_user_allows_it(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("word " * 1_000)
    async with running(parts_for(tmp_path / "home", tmp_path / "project", script=SCRIPT)) as (agent, _):
        found = named_files(f"see @{secret}", agent.cwd, agent.project.files)
        assert [(file.chars, file.read) for file in found] == [(5_000, None)]
        write(agent, f"see @{secret}")
        draft = await known(agent)
        assert draft.approximate
        assert draft.tokens > 1_000


async def test_a_picture_for_a_model_that_cannot_see_is_a_line(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "project", script=SCRIPT)) as (agent, _):
        write(agent, "look", images=[image(1_500, 1_500)])
        seen = await known(agent)
        agent.runtime.info.images = False
        blind = agent.draft.now
        assert blind is not None
        assert blind.tokens < seen.tokens - 500


async def test_without_a_tokenizer_the_characters_stand_in(tmp_path: Path) -> None:
    from agent_tui.errors import WorkerError

    class Broken:
        running = True

        async def count(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
            raise WorkerError("no tokenizer")

    async with running(parts_for(tmp_path / "home", tmp_path / "project", script=SCRIPT, counter=Broken())) as (
        agent,
        _,
    ):
        write(agent, "a" * 4_000)
        draft = await known(agent)
        assert draft.approximate
        assert draft.tokens >= 1_000


async def test_it_is_told_when_it_is_counted_and_only_then(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "project", script=SCRIPT)) as (agent, recorder):
        first = write(agent, "説明" * 2_000)
        assert first is not None
        assert first.approximate
        await agent.events.settled()
        told = recorder.of(DraftChanged)
        assert told
        assert told[-1].draft == agent.draft.now
        count = len(told)
        agent.draft.look()
        await agent.events.settled()
        assert len(recorder.of(DraftChanged)) == count


async def test_another_session_keeps_the_prompt_and_its_size(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "project", script=SCRIPT)) as (agent, _):
        agent.turns.submit("hello")
        await agent.turns.join()
        write(agent, "x" * 8_000)
        before = await known(agent)
        await agent.sessions.clear()
        after = await known(agent)
        assert after.tokens == pytest.approx(before.tokens, abs=250)


@pytest.mark.slow
async def test_ten_megabytes_are_counted_in_pieces(tmp_path: Path) -> None:
    sizes: list[int] = []

    class Counter:
        running = True

        async def count(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
            sizes.extend(map(len, texts))
            return [words_only(-(-len(text) // 4)) for text in texts]

    async with running(parts_for(tmp_path / "home", tmp_path / "project", script=SCRIPT, counter=Counter())) as (
        agent,
        _,
    ):
        first = write(agent, "and this", ["0123456789\n" * 1_000_000])
        assert first is not None
        assert first.tokens > 2_000_000
        assert (await known(agent)).tokens > 2_000_000
        assert max(sizes) <= 250_000


@given(st.text(alphabet="ab é漢\n"), st.text(alphabet="ab é漢\n"))
def test_common_start_is_the_longest(one: str, other: str) -> None:
    length = common_start(one, other)
    assert one[:length] == other[:length]
    assert length in (len(one), len(other)) or one[length] != other[length]


@pytest.mark.slow
@given(st.text(alphabet="ab é漢\n", max_size=60), st.text(alphabet="ab é漢\n", max_size=60))
def test_what_is_typed_is_never_less_than_nothing_nor_more_than_both(before: str, after: str) -> None:
    typed = PromptText()
    typed.become(before)
    typed.count(before, words_only(len(before)))
    typed.become(after)
    weight = Weight()
    typed.weigh(weight)
    assert all(count >= 0 for count in weight.counts)
    assert 0 <= weight.rest <= characters(after) + 1e-9
    assert sum(weight.counts) <= len(before)
    assert len(weight.counts) == len(KINDS)


def test_the_warning_says_what_enter_leads_to() -> None:
    usage = replace(sample_usage(), window=200_000, limit=168_000, total=100_000, spread=0, max_input=None, held="")
    fixed = sum(row.tokens for row in usage.rows if row.id != "messages")
    rest = usage.total - sum(row.tokens for row in usage.rows if row.id == "messages")
    assert fixed <= rest
    assert draft_warning(usage, None) == ""
    assert draft_warning(usage, Draft(5_000)) == ""
    assert draft_warning(usage, Draft(70_000)).startswith("Sending this compacts first: 170k is over the limit of 168k")
    assert draft_warning(usage, Draft(250_000)).startswith("Too large to send: 250k, ")
    held = replace(usage, held="automatic compaction is off")
    assert "run /compact to make room" in draft_warning(held, Draft(70_000))
    assert draft_warning(held, Draft(105_000)).startswith("Does not fit: 105k on top of 100k, ")
    paused = replace(usage, held=PAUSED)
    assert "run /compact to make room" in draft_warning(paused, Draft(70_000))
    assert draft_warning(paused, Draft(105_000)).startswith("Sending this compacts first: ")
    assert draft_warning(replace(usage, window=None, limit=None), Draft(10**9)) == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "warning", "happens"),
    [
        (500, "", TurnEnded),
        (6_000, "Sending this compacts first: ", CompactionStarted),
        (17_000, "Too large to send: ", TurnEnded),
    ],
)
async def test_what_the_warning_says_is_what_happens(
    tmp_path: Path, words: int, warning: str, happens: type[Event]
) -> None:
    script = "window = 16_000\n" + '[[step]]\ntext = "Understood."\nusage = { reasoning = 0 }\nrepeat = 20\n'
    parts = parts_for(tmp_path / "home", tmp_path / "project", script=script)
    async with running(parts) as (agent, recorder):
        for number in range(5):
            await send(agent, f"turn {number} " + "talk " * 1_000)
            await agent.turns.join()
        text = "word " * words
        write(agent, text)
        await known(agent)
        usage = agent.context.usage()
        said = draft_warning(usage, usage.draft)
        assert said.startswith(warning) if warning else said == "", said
        recorder.events.clear()
        await send(agent, text)
        await agent.turns.join()
        assert recorder.of(happens)
        assert bool(recorder.of(CompactionStarted)) == (words == 6_000)
        refused = recorder.last_end.stop_reason == "error"
        assert refused == (words == 17_000), recorder.events


async def test_a_draft_never_outlives_its_agent(tmp_path: Path) -> None:
    async with running(parts_for(tmp_path / "home", tmp_path / "project", script=SCRIPT)) as (agent, _):
        write(agent, "half a thought")
    await asyncio.sleep(0)
    assert isinstance(Recorder(), Recorder)
