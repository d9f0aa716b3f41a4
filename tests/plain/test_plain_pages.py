"""What has to be read to its end is said page by page where there are only lines; a yes for all of it says what was not
said."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent_tui.commands import registry
from agent_tui.commands.info import Info
from agent_tui.plain.commands import PAGE, Lists
from tests.support.fake_agent import FakeAgent

pytestmark = pytest.mark.quick

MORE, YES, NO = f"Show the next {PAGE}", "Trust all of it", "Leave it"
UNSEEN = "Trust it unseen"


async def answered(tmp_path: Path, lines: int, *answers: str) -> tuple[bool, list[str], list[str]]:
    """Whether the folder is trusted after these answers, what was said, and the titles of what was asked."""
    agent = FakeAgent(tmp_path)
    agent.project.brings = tuple(f"step {number}" for number in range(lines))
    said: list[str] = []
    asked: list[str] = []
    left = [*answers]

    async def pick(title: str, rows: list[str]) -> int | None:
        asked.append(title)
        return rows.index(left.pop(0)) if left else None

    writer = SimpleNamespace(say=lambda text, mark=None: said.append(text), quote=lambda text: said.append(text))
    lists = Lists(agent, writer, None, SimpleNamespace(pick=pick))  # type: ignore[arg-type]
    info: Any = await registry.run(agent, "/trust")
    assert isinstance(info, Info)
    await lists.page(info)
    assert not left
    return agent.project.trust_state == "trusted", "\n".join(said).split("\n"), asked


@pytest.mark.parametrize(
    ("lines", "answers", "trusted"),
    [
        (5, (YES,), True),
        (5, (NO,), False),
        (5, (), False),
        (60, (YES, NO), False),
        (60, (YES,), False),
        (60, (YES, UNSEEN), True),
        (60, (MORE, NO), False),
        (60, (MORE, MORE, MORE, YES), True),
        (60, (MORE, YES, UNSEEN), True),
    ],
)
async def test_all_is_said_or_said_to_be_unseen(
    tmp_path: Path, lines: int, answers: tuple[str, ...], trusted: bool
) -> None:
    done, said, asked = await answered(tmp_path, lines, *answers)
    assert done == trusted
    pages = 1 + answers.count(MORE)
    seen = sum("step " in line for line in said)
    assert seen <= pages * PAGE and (UNSEEN in answers or not trusted or seen == lines)
    assert (UNSEEN in answers or answers[:2] == (YES, NO)) <= any(
        "lines further down were not shown." in title for title in asked
    )
