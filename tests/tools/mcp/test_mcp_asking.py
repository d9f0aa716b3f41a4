"""What servers ask, over stdio and HTTP: forms, addresses, roots; and those that mean ill."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_tui.config import ToolsConfig
from agent_tui.errors import ToolError
from agent_tui.models.usage import Limits
from agent_tui.tools.base import ToolOutcome
from agent_tui.tools.mcp.config import ProjectServers
from agent_tui.tools.mcp.manager import McpManager
from agent_tui.tools.mcp.patience import Patience
from agent_tui.tools.mcp.protocol import Elicit, Elicited
from tests.support import mcp_asking as asking
from tests.support.mcp_managers import call, detail, running, serve_http, state, states
from tests.support.mcp_servers import ASKING, HOSTILE, stdio
from tests.support.starting import accepting
from tests.support.tool_context import make_context
from tests.support.waiting import PATIENCE

ROME = {"city": "Rome", "days": 4, "train": True, "seat": "aisle"}

LIMITS = Limits(None, None, None, "unknown")

pytestmark = pytest.mark.usefixtures("forked_host", "forked_servers")


class Answers:
    """Answers what servers ask, and keeps it."""

    def __init__(self, form: Elicited | None = None) -> None:
        self.form = form
        self.asked: list[Elicit] = []
        self.open = self.most = 0
        self.came = asyncio.Event()
        self.gone, self.go = asyncio.Event(), asyncio.Event()

    async def __call__(self, question: Elicit) -> object:
        self.asked.append(question)
        self.came.set()
        if self.form is None:
            self.open += 1
            self.most = max(self.most, self.open)
            try:
                await self.go.wait()
                return Elicited("decline")
            except asyncio.CancelledError:
                self.gone.set()
                raise
            finally:
                self.open -= 1
        return self.form


@asynccontextmanager
async def connected(
    root: Path, answers: Callable[[Elicit], Any], script: str = ASKING, **fields: Any
) -> AsyncIterator[McpManager]:
    server = stdio(script=script, **{"timeout": PATIENCE, **fields})
    async with running(root, {"asks": server}) as manager:
        manager.answers_by(answers)
        await manager.settled()
        assert states(manager) == {"asks": "connected"}, detail(manager, "asks")
        yield manager


async def used(manager: McpManager, root: Path, name: str, **arguments: object) -> str:
    """The answer of a tool. The first that asks by a request of its own has the server connected anew for that."""
    context = make_context(root / "p")
    try:
        return (await call(manager, context, f"mcp__asks__{name}", **arguments)).text
    except ToolError as error:
        if "call it again" not in str(error):
            raise
    return (await call(manager, context, f"mcp__asks__{name}", **arguments)).text


@pytest.fixture(params=["stdio", "http"])
async def fields(request: pytest.FixtureRequest) -> AsyncIterator[dict[str, Any]]:
    """What connects to the server that asks, by either transport."""
    if request.param == "stdio":
        yield {}
        return
    server, port = await serve_http(script=ASKING)
    yield {"command": None, "args": [], "url": f"http://127.0.0.1:{port}/mcp"}
    server.kill()
    await server.wait()


@pytest.mark.slow
async def test_a_server_gets_what_it_asks_for(tmp_path: Path, fields: dict[str, Any]) -> None:
    answers = Answers(Elicited("accept", ROME))
    async with connected(tmp_path, answers, **fields) as manager:
        # The newer protocol's way first: by a result that asks.
        assert await used(manager, tmp_path, "plan_again") == f"accept {ROME}"
        form = answers.asked[-1]
        assert isinstance(form, Elicit) and (form.server, form.text) == ("asks", "Where do you want to go?")
        assert list(form.schema["properties"]) == list(ROME) and form.schema["required"] == ["city"]
        assert "city='Rome' days=4 train=True seat='aisle'" in await used(manager, tmp_path, "plan")
        assert await used(manager, tmp_path, "pay") == "accept"
        assert answers.asked[-1] == Elicit("asks", "Pay there.", {}, asking.PAGE)
        assert await used(manager, tmp_path, "where") == f'["{tmp_path.as_uri()}"]'
        answers.form = Elicited("cancel")
        assert await used(manager, tmp_path, "plan") == "cancel None"
        answers.form = Elicited("decline")
        assert await used(manager, tmp_path, "pay") == "decline"


async def test_a_page_that_has_to_be_opened_first_is_asked_about(tmp_path: Path) -> None:
    answers = Answers(Elicited("accept"))
    async with connected(tmp_path, answers) as manager:
        with pytest.raises(ToolError, match="asked to open an address first, and agreed"):
            await used(manager, tmp_path, "needs_page")
        assert answers.asked == [Elicit("asks", "Log in there.", {}, asking.PAGE)]
        answers.form = Elicited("decline")
        with pytest.raises(ToolError, match="did not want to"):
            await used(manager, tmp_path, "needs_page")


async def test_a_request_that_is_answered_with_questions_alone_is_given_up(tmp_path: Path) -> None:
    answers = Answers(Elicited("accept"))
    async with connected(tmp_path, answers) as manager:
        with pytest.raises(ToolError, match="asks asked again and again, and was given up"):
            await used(manager, tmp_path, "never_again")
        assert 1 < len(answers.asked) <= 20
        assert states(manager) == {"asks": "connected"}


async def test_a_server_that_asks_for_a_call_of_the_model_is_refused(tmp_path: Path) -> None:
    answers = Answers()
    async with connected(tmp_path, answers) as manager:
        with pytest.raises(ToolError, match=r"does not support sampling|[Ss]ampling"):
            await used(manager, tmp_path, "think", text="hello")
        assert answers.asked == []


@pytest.mark.forms(1)
@pytest.mark.parametrize("tool", ["die_asking", "give_up_asking"])
async def test_a_server_that_dies_or_gives_up_takes_its_question_along(tmp_path: Path, tool: str) -> None:
    answers = Answers()
    async with connected(tmp_path, answers) as manager:
        assert await used(manager, tmp_path, "where"), "by now it is connected as one that asks"
        task = asyncio.create_task(used(manager, tmp_path, tool))
        await answers.came.wait()
        await asyncio.gather(used(manager, tmp_path, "let_go"), return_exceptions=True)
        await answers.gone.wait()
        if tool == "give_up_asking":
            assert await task == "went on"
            return
        with pytest.raises(ToolError, match="the server exited"):
            await task
        assert "embedded words" in await used(manager, tmp_path, "found"), "it is connected again"


async def test_the_time_that_the_user_takes_is_not_the_servers() -> None:
    patience = Patience()
    async with patience.limit(60):
        (outer,) = patience._left
        with patience.paused(), patience.paused():
            assert outer.when() is None
            async with patience.limit(0.0):
                # It begins when the user has answered.
                assert all(limit.when() is None for limit in patience._left)
        assert outer.when() is not None and patience.waited >= 0
    with pytest.raises(TimeoutError):
        async with patience.limit(0.0):
            with patience.paused():
                pass
            await asyncio.Event().wait()


async def test_changed_roots_are_told(tmp_path: Path) -> None:
    added: list[Path] = []
    server = stdio(script=HOSTILE, timeout=PATIENCE)
    (tmp_path / "root").mkdir()
    root = tmp_path / "root"
    root.mkdir(exist_ok=True)
    manager = McpManager(
        {"asks": server}, ToolsConfig(), root, ProjectServers(), added=added, starter=lambda: accepting(root)
    )
    manager.start(lambda: None)
    try:
        async with asyncio.timeout(PATIENCE):
            await manager.settled()
            heard, task = begun(manager, tmp_path, "roots")
            await heard.wait()
            added.append(tmp_path / "more")
            manager.reload({"asks": server}, ProjectServers())
            assert json.loads((await task).text) == [["root"], ["root", "more"]]
    finally:
        await manager.close()


def begun(manager: McpManager, root: Path, name: str) -> tuple[asyncio.Event, asyncio.Task[ToolOutcome]]:
    """A call, and what happens when its server says that it waits."""
    heard = asyncio.Event()
    context = replace(make_context(root / "p"), emit=lambda text: heard.set())
    return heard, asyncio.create_task(call(manager, context, f"mcp__asks__{name}"))


async def test_what_a_result_links_to_can_be_read(tmp_path: Path) -> None:
    context = make_context(tmp_path / "p")
    async with connected(tmp_path, Answers()) as manager:
        text = await used(manager, tmp_path, "found")
        assert text.splitlines() == [
            "[resource report test://report: all of it]",
            "[resource test://inside]",
            "embedded words",
            "[audio, audio/wav, 3 bytes, not shown]",
        ]
        assert "mcp_read" in [tool.schema.name for tool in manager.offered(LIMITS)]
        for server in ("asks", "mcp__asks"):
            assert (await call(manager, context, "mcp_read", server=server, uri="test://report")).text == (
                "the whole report"
            )
        with pytest.raises(ToolError, match="There is no MCP server other"):
            await call(manager, context, "mcp_read", server="other", uri="x:y")
        with pytest.raises(ToolError, match="asks: "):
            await call(manager, context, "mcp_read", server="asks", uri="test://nothing")


async def test_a_server_without_resources_has_nothing_to_read(tmp_path: Path) -> None:
    async with connected(tmp_path, Answers(), HOSTILE) as manager:
        assert "mcp_read" not in [tool.schema.name for tool in manager.offered(LIMITS)]
        assert "mcp_read" not in [tool.schema.name for tool in manager.tools()]


async def test_a_server_that_asks_without_end_loses_its_connection(tmp_path: Path) -> None:
    answers = Answers(Elicited("decline"))
    async with connected(tmp_path, answers, HOSTILE) as manager:
        with pytest.raises(ToolError, match="asked more than 200 questions"):
            await used(manager, tmp_path, "ask_forever")
        assert len(answers.asked) == 200
        await state(manager, "asks", "connected")
        assert await used(manager, tmp_path, "twice") == "first"


async def test_many_questions_at_once_are_refused_but_for_a_few(tmp_path: Path) -> None:
    answers = Answers()
    async with connected(tmp_path, answers, HOSTILE) as manager:
        task = asyncio.create_task(used(manager, tmp_path, "ask_at_once"))
        async with asyncio.timeout(PATIENCE):
            while len(answers.asked) < 5:
                answers.came.clear()
                await answers.came.wait()
        answers.go.set()
        # What came while five waited was declined unasked.
        assert await task == "30" and answers.most == 5


@pytest.mark.slow
async def test_a_server_that_breaks_everything_harms_nothing(tmp_path: Path) -> None:
    heard: list[str] = []
    answers = Answers(Elicited("accept", {"a": "b"}))
    async with connected(tmp_path, answers, HOSTILE) as manager:
        assert await used(manager, tmp_path, "twice") == "first"
        assert await used(manager, tmp_path, "garbage") == "fine"
        assert (await used(manager, tmp_path, "lie")).startswith("[a part that cannot be read]")
        said = (await used(manager, tmp_path, "ask_badly")).split()
        assert said[:2] == ["error", "error"] and len(said) == 8
        context = replace(make_context(tmp_path / "p"), emit=heard.append)
        assert (await call(manager, context, "mcp__asks__flood")).text == "flooded"
        assert 0 < len(heard) < 2_000 and all(len(line) < 3_000 for line in heard)
        with pytest.raises(ToolError, match="it sent a message of more than 64 MB"):
            await used(manager, tmp_path, "huge")
        await state(manager, "asks", "connected")
        assert await used(manager, tmp_path, "twice") == "first"


@pytest.mark.forms(1)
@pytest.mark.parametrize("how", ["interrupted", "too late"])
async def test_a_server_is_told_that_nobody_waits_any_more(tmp_path: Path, how: str) -> None:
    told = tmp_path / "told"
    more = {"call_timeout": 0.3} if how == "too late" else {}
    async with connected(tmp_path, Answers(), HOSTILE, env={"TOLD": str(told)}, **more) as manager:
        heard, task = begun(manager, tmp_path, "wait")
        await heard.wait()
        if how == "interrupted":
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        # The next answer comes only after the server has left its wait.
        assert await used(manager, tmp_path, "twice") == "first"
        assert told.read_text() == "True"
