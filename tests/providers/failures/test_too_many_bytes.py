"""A request with too many bytes: that says nothing of tokens, so pictures stay out, and nothing is compacted."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from agent_tui.models.events import CompactionEnded, CompactionStarted, Notice
from agent_tui.models.messages import AttachmentPart, Message
from agent_tui.models.requests import SentMessage
from agent_tui.providers.catalog import Called
from agent_tui.providers.direct import HttpError
from agent_tui.providers.errors import classify
from agent_tui.providers.images import within_bytes
from tests.providers.failures.test_history_repaired import APIS, chat, ended, text_of
from tests.support.agents import say
from tests.support.every import every
from tests.support.forms import one_of
from tests.support.loopback import Loopback, Recorded, Reply, json_reply

pytestmark = pytest.mark.asyncio(loop_scope="session")

NGINX = (
    "<html>\r\n<head><title>413 Request Entity Too Large</title></head>\r\n<body>\r\n<center><h1>413 Request Entity "
    "Too Large</h1></center>\r\n<hr><center>nginx/1.27</center>\r\n</body>\r\n</html>\r\n"
)
ANTHROPIC = {"type": "error", "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}
GOOGLE = {"error": {"code": 400, "message": "Request payload size exceeds the limit: 20971520 bytes.", "status": "X"}}
TOO_LARGE: list[tuple[int, Any]] = [
    (413, NGINX),
    (413, ANTHROPIC),
    (413, "error code: 413"),
    (413, {"error": {"message": "request entity too large", "type": "entity.too.large"}}),
    (413, {"message": "Payload Too Large"}),
    (400, GOOGLE),
]


@every(("status", "body"), TOO_LARGE)
async def test_it_is_told_apart_from_an_input_that_is_too_long(status: int, body: Any) -> None:
    found = classify(HttpError(status, {}, body), Called("openai"), "m", False)
    assert (found.kind, found.overflow, found.retryable) == ("too_large", None, False)


async def test_a_status_413_that_speaks_of_tokens_is_one_of_tokens() -> None:
    body = {"error": {"message": "prompt is too long: 250000 tokens > 200000 maximum"}}
    assert classify(HttpError(413, {}, body), Called("openai"), "m", False).kind == "context_overflow"


def picture(name: str, size: int) -> AttachmentPart:
    return AttachmentPart(name, "image/png", data=base64.b64encode(name.encode() * (size // len(name))).decode())


async def test_the_largest_go_first_then_the_oldest() -> None:
    parts = [picture("a", 300), picture("huge", 3_000), picture("b", 300), picture("c", 300)]
    items = [SentMessage(Message("u", "user", list(parts)), "u")]
    for most, left in ((10_000, ["a", "huge", "b", "c"]), (1_300, ["a", "b", "c"]), (900, ["b", "c"]), (100, [])):
        sent = within_bytes(items, most)[0].message.parts
        assert [part.name for part in sent if isinstance(part, AttachmentPart) and part.data] == left
        assert len(sent) == len(parts), "a line stands for each"
    assert items[0].message.parts == parts, "what is stored stays"


@pytest.mark.forms(1)
@pytest.mark.parametrize("name", one_of(["chat", "responses", "anthropic", "gemini", "ollama"], 2))
async def test_pictures_stay_out_until_it_is_taken_and_nothing_is_compacted(
    name: str, tmp_path: Path, server: Loopback
) -> None:
    api = APIS[name]

    def judge(request: Recorded) -> Reply | bytes:
        return Reply(NGINX.encode(), 413, "text/html") if len(request.body) > 120_000 else api.fine

    server.answer_by(judge)
    async with chat(tmp_path, server, api) as (agent, heard):
        shots = [picture(f"shot{n}.png", size) for n, size in enumerate((20_000, 60_000, 30_000))]
        await say(agent, "look", tuple(shots))
        assert ended(heard) == ("end", "")
        (line,) = [n.text for n in heard.of(Notice) if n.code == "media_left_out"]
        assert "shot1.png" in line and "Remembered" in line
        sent = text_of(server.requests[-1].json)
        assert "shot1.png" in sent and "not sent" in sent, "the model is told"
        before = len(server.requests)
        await say(agent, "and now?")
        assert (ended(heard), len(server.requests)) == (("end", ""), before + 1)
        assert not heard.of(CompactionStarted) and not heard.of(CompactionEnded)
        assert agent.context.usage().window == 200_000, "no window was learned"


@pytest.mark.slow
async def test_without_pictures_the_line_says_what_is_large(tmp_path: Path, server: Loopback) -> None:
    api = APIS["chat"]
    refusal = Reply(NGINX.encode(), 413, "text/html")
    server.answer_by(lambda request: refusal if len(request.body) > 200_000 else api.fine)
    async with chat(tmp_path, server, api) as (agent, heard):
        await say(agent, "hello")
        await say(agent, "word " * 40_000)
        reason, line = ended(heard)
        assert reason == "error" and "200 kB" in line and "your message" in line and "Nothing was left out" in line
        assert not heard.of(CompactionStarted) and len(server.requests) == 2
        await agent.branches.rewind(agent.conversation.path[-1].id)
        await say(agent, "something shorter")
        assert ended(heard) == ("end", "")


@pytest.mark.slow
async def test_what_says_overflow_far_below_the_window_summarises_nothing(tmp_path: Path, server: Loopback) -> None:
    api = APIS["chat"]
    words = "This model's maximum context length has been exceeded."
    bad = [True]
    server.answer_by(lambda request: json_reply(api.error(words), 400) if bad[0] else api.fine)
    async with chat(tmp_path, server, api) as (agent, heard):
        bad[0] = False
        for number in range(3):
            await say(agent, f"{number} " + "word " * 300)
        bad[0] = True
        await say(agent, "and now?")
        reason, line = ended(heard)
        assert reason == "error" and "By our own count" in line and "nothing was summarised or left out" in line
        assert not heard.of(CompactionStarted)
        bad[0] = False
        await say(agent, "again")
        assert ended(heard) == ("end", "")
        assert "0 word" in text_of(server.requests[-1].json)
