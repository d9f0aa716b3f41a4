"""A long session: its newest messages are drawn first, and the older ones join without anything moving."""

from __future__ import annotations

import pytest

from agent_tui.models.messages import Message, ToolCallPart, ToolResultPart, user_message
from agent_tui.models.steps import CompactionRecord
from agent_tui.ui.transcript.content import NEWEST
from tests.ui.transcripts import Holder, answer, screen


def conversation(count: int) -> list[Message]:
    """Questions, calls with their results, and answers."""
    out: list[Message] = []
    for n in range(count // 4):
        out.append(user_message(f"question {n}"))
        out.append(answer("", f"c{n}", ToolCallPart(f"call{n}", "read", "{}")))
        out.append(Message(f"t{n}", "tool", [ToolResultPart(f"call{n}", "read", f"result {n}")]))
        out.append(answer(f"answer {n}\n\nwith **more** of it", f"a{n}"))
    for at, message in enumerate(out):
        message.created = 10.0 + at
    return out


def shown(app: Holder) -> list[str]:
    """What each entry is: the id of its message, or what it says beside them."""
    entries = app.transcript.document.entries
    assert [entry.index for entry in entries] == list(range(len(entries)))
    return [entry.message.id if entry.message is not None else "a record" for entry in entries]


@pytest.mark.forms(1)
@pytest.mark.parametrize("count", [NEWEST - 4, NEWEST + 4, 3 * NEWEST])
@pytest.mark.parametrize("first_created", [0.0, 20.5])
async def test_all_of_it_is_there_in_order_once_it_was_drawn(count: int, first_created: float) -> None:
    messages = conversation(count)
    records = [
        CompactionRecord("r1", "o1", "prune", ["t0"], created=first_created),
        CompactionRecord("r2", "o2", "prune", ["t1"], created=messages[-3].created + 0.5),
    ]
    app = Holder()
    app.transcript.load(messages, records)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        whole = shown(app)
        app.transcript.load(messages, records)
        assert len(shown(app)) <= NEWEST + 4
        first = screen(app.transcript)
        await pilot.pause()
        assert shown(app) == whole
        assert (screen(app.transcript), app.transcript.follow) == (first, True)


@pytest.mark.parametrize("key", ["home", "find"])
async def test_what_is_asked_for_before_that_is_not_missed(key: str) -> None:
    app = Holder()
    async with app.run_test(size=(80, 24)) as pilot:
        app.transcript.load(conversation(3 * NEWEST))
        await pilot.pause()
        app.transcript.load(conversation(3 * NEWEST))
        app.transcript.settle()
        if key == "home":
            app.transcript.scroll_home(animate=False)
        else:
            assert app.transcript.find_in("a0", "answer 0", ["answer"]).total
        assert "question 0" in "\n".join(screen(app.transcript))
        await pilot.pause()
        assert "question 0" in "\n".join(screen(app.transcript))
