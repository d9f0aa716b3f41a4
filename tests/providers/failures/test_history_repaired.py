"""A server refuses what the conversation holds, whatever its words: the body heals, the turn is answered, what helped
is remembered, and one line says it. The servers here judge bodies, so that nothing but a healed one is answered."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent_tui.config import AgentConfig, ContextConfig, ModelConfig, PermissionsConfig, Settings
from agent_tui.engine.agent import Agent
from agent_tui.models.events import Notice
from agent_tui.providers.client import ModelClient
from tests.providers import responses_stream as responses
from tests.providers.failures.in_process import InProcess
from tests.support import anthropic_stream as anthropic
from tests.support.agents import Recorder, parts_for, say
from tests.support.end_to_end import KEY_VARIABLE, Product, leaves, model
from tests.support.forms import one_of
from tests.support.loopback import Loopback, Recorded, Reply, chat_chunk, json_reply, sse

pytestmark = pytest.mark.asyncio(loop_scope="session")

Judge = Callable[[Any], bool]


def chat_answer(*deltas: dict[str, Any], finish: str = "stop") -> bytes:
    return sse([*map(chat_chunk, deltas), chat_chunk({}, finish), "[DONE]"])


CALL = {"name": "read", "arguments": '{"path": "a.txt"}'}
TOOL_CALL = {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": CALL}]}


def gemini_answer(*parts: dict[str, Any]) -> bytes:
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 1, "totalTokenCount": 11}
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP", "index": 0}
    return sse([{"candidates": [candidate], "usageMetadata": usage}])


def ollama_answer(**message: Any) -> Reply:
    done = {"model": "m", "done": True, "done_reason": "stop", "prompt_eval_count": 9, "eval_count": 2}
    lines = [{"message": {"role": "assistant", "content": "", **message}, "done": False}, {"message": {}, **done}]
    body = "".join(json.dumps(line) + "\n" for line in lines)
    return Reply(body.encode(), content_type="application/x-ndjson")


@dataclass(frozen=True)
class Api:
    """A dialect: the model's name, the address below the server's, and its answers: first thoughts and a call of
    ``read``, then thoughts and a word, then a word."""

    name: str
    path: str
    first: bytes | Reply
    second: bytes | Reply
    fine: bytes | Reply
    error: Callable[[str], Any]


def openai_error(words: str) -> Any:
    return {"error": {"message": words, "type": "invalid_request_error", "param": None, "code": None}}


def anthropic_error(words: str) -> Any:
    return {"type": "error", "error": {"type": "invalid_request_error", "message": words}}


THOUGHT = {"reasoning_content": "Let me see."}
APIS = {
    "chat": Api(
        "openai/local",
        "/v1",
        chat_answer(THOUGHT, TOOL_CALL, finish="tool_calls"),
        chat_answer(THOUGHT, {"content": "Read."}),
        chat_answer({"content": "Fine."}),
        openai_error,
    ),
    "plain": Api(
        "openai/local",
        "/v1",
        chat_answer(TOOL_CALL, finish="tool_calls"),
        chat_answer({"content": "Read."}),
        chat_answer({"content": "Fine."}),
        openai_error,
    ),
    "openrouter": Api(
        "openrouter/moonshotai/kimi-k2",
        "/api/v1",
        chat_answer(
            {"reasoning": "Let me see.", "reasoning_details": [{"type": "reasoning.text", "text": "Let me see."}]},
            TOOL_CALL,
            finish="tool_calls",
        ),
        chat_answer({"reasoning": "Good."}, {"content": "Read."}),
        chat_answer({"content": "Fine."}),
        openai_error,
    ),
    "litellm": Api(
        "litellm_proxy/deepseek-reasoner",
        "",
        chat_answer(TOOL_CALL, finish="tool_calls"),
        chat_answer({"content": "Read."}),
        chat_answer({"content": "Fine."}),
        openai_error,
    ),
    "responses": Api(
        "openai/responses/gpt-5",
        "/v1",
        responses.answer(
            responses.reasoning("rs_1", "hm"),
            (
                [
                    {
                        "type": "response.output_item.done",
                        "item": (
                            item := {
                                "id": "fc_1",
                                "type": "function_call",
                                "status": "completed",
                                "name": "read",
                                "call_id": "call_1",
                                "arguments": CALL["arguments"],
                            }
                        ),
                    },
                ],
                item,
            ),
        ),
        responses.answer(responses.reasoning("rs_2", "hm"), responses.message("msg_2", "Read.")),
        responses.answer(responses.message("msg_3", "Fine.")),
        openai_error,
    ),
    "anthropic": Api(
        "anthropic/claude-sonnet-4-5",
        "",
        anthropic.answer(
            anthropic.thinking("hm", "c2ln"), anthropic.tool_use("toolu_1", "read", CALL["arguments"]), stop="tool_use"
        ),
        anthropic.answer(anthropic.thinking("hm", "c2ln"), anthropic.text("Read.")),
        anthropic.answer(anthropic.text("Fine.")),
        anthropic_error,
    ),
    "gemini": Api(
        "gemini/gemini-3-pro",
        "",
        gemini_answer({"functionCall": {"name": "read", "args": {"path": "a.txt"}}, "thoughtSignature": "c2ln"}),
        gemini_answer({"text": "Read.", "thoughtSignature": "c2ln"}),
        gemini_answer({"text": "Fine."}),
        lambda words: {"error": {"code": 400, "message": words, "status": "INVALID_ARGUMENT"}},
    ),
    "ollama": Api(
        "ollama_chat/qwen3",
        "",
        ollama_answer(thinking="hm", tool_calls=[{"function": {"name": "read", "arguments": {"path": "a.txt"}}}]),
        ollama_answer(thinking="hm", content="Read."),
        ollama_answer(content="Fine."),
        lambda words: {"error": words},
    ),
}


def blocks(body: Any) -> Iterator[dict[str, Any]]:
    """Every object of a body's conversation."""
    todo: list[Any] = [body.get("messages") or body.get("input") or body.get("contents")]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            yield value
            todo += value.values()
        elif isinstance(value, list):
            todo += value


def typed(*kinds: str) -> Judge:
    return lambda body: any(block.get("type") in kinds for block in blocks(body))


def having(*names: str) -> Judge:
    return lambda body: any(name in block for block in blocks(body) for name in names)


def roles(body: Any) -> list[str]:
    return [m.get("role", "") for m in body.get("messages") or body.get("contents") or []]


def uneven(body: Any) -> bool:
    """What a template refuses that knows the user and the model, in turn, after a system prompt."""
    said = roles(body)
    said = said[1:] if said[:1] == ["system"] else said
    return any(role not in ("user", "assistant")[n % 2] for n, role in enumerate(said)) or having("tool_calls")(body)


def thoughtless(body: Any) -> bool:
    return any(m["role"] == "assistant" and not m.get("reasoning_content") for m in body["messages"])


def thoughtless_calls(body: Any) -> bool:
    return any(m.get("tool_calls") and not m.get("reasoning_content") for m in body["messages"])


def ids(prefix: str) -> Judge:
    return lambda body: any(str(block.get("id", "")).startswith(prefix) for block in blocks(body))


def text_of(body: Any) -> str:
    return " ".join(leaf for leaf in leaves(body) if isinstance(leaf, str))


CASES: list[tuple[str, int, str, Judge]] = [
    # api, status, words, what of the body is refused
    (
        "responses",
        400,
        "The encrypted content gAAA could not be verified. Reason: Encrypted content could not be decrypted or parsed.",
        typed("reasoning"),
    ),
    ("responses", 400, "Item 'rs_1' not found. Items are not persisted when `store` is set to false.", ids("rs_")),
    ("responses", 404, "Item with id 'rs_1' not found.", typed("reasoning")),
    (
        "responses",
        400,
        "Duplicate item found with id msg_2. Remove duplicate items from your input and try again.",
        ids("msg_"),
    ),
    (
        "responses",
        400,
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
        typed("reasoning"),
    ),
    (
        "responses",
        400,
        "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.",
        ids("fc_"),
    ),
    ("responses", 400, "Invalid 'input[2].id': 'x'. Expected an ID that begins with 'fc'.", ids("fc_")),
    ("responses", 400, "Unknown parameter: 'input[1].encrypted_content'.", having("encrypted_content")),
    ("responses", 400, "No tool output found for function call call_1.", typed("function_call")),
    ("responses", 400, "Bad request.", typed("reasoning")),
    ("responses", 400, "请求参数错误", typed("function_call")),
    (
        "anthropic",
        400,
        "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message "
        "cannot be modified. These blocks must remain as they were in the original response.",
        typed("thinking"),
    ),
    ("anthropic", 400, "messages.1.content.0.data: could not be decrypted", typed("thinking")),
    ("anthropic", 400, "messages.1.content.0: Invalid `signature` in `thinking` block", typed("thinking")),
    (
        "anthropic",
        400,
        "messages.3.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`. When "
        "`thinking` is enabled, a final `assistant` message must start with a thinking block.",
        typed("thinking"),
    ),
    (
        "anthropic",
        400,
        "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1.",
        typed("tool_use"),
    ),
    (
        "anthropic",
        400,
        "messages.1.content.1.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
        ids("toolu_"),
    ),
    (
        "anthropic",
        400,
        "messages.1.content.0.tool_use.name: String should have at most 64 characters",
        typed("tool_use"),
    ),
    ("plain", 400, "The `reasoning_content` in the thinking mode must be passed back to the API.", thoughtless),
    (
        "openrouter",
        400,
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
        thoughtless_calls,
    ),
    (
        "litellm",
        400,
        'litellm.BadRequestError: DeepseekException - {"error":{"message":"Missing `reasoning_content` '
        'field in the assistant message at message index 2"}}',
        thoughtless,
    ),
    (
        "chat",
        422,
        "[{'type': 'extra_forbidden', 'loc': ('body', 'messages', 1, 'assistant', 'reasoning_content'), 'msg': "
        "'Extra inputs are not permitted'}]",
        having("reasoning_content"),
    ),
    (
        "chat",
        400,
        "'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property "
        "'reasoning_content' is unsupported)]",
        having("reasoning_content"),
    ),
    (
        "openrouter",
        400,
        "Unknown parameter: 'messages[2].reasoning_details'.",
        having("reasoning_details", "reasoning"),
    ),
    ("chat", 400, "Conversation roles must alternate user/assistant/user/assistant/...", uneven),
    ("chat", 500, "Only user and assistant roles are supported!", lambda body: uneven(body) or "system" in roles(body)),
    ("chat", 400, "Unexpected role 'tool' after role 'assistant'", uneven),
    ("chat", 500, "Value is not callable: null at row 1, column 72:\n{{ raise_exception('x') }}", uneven),
    (
        "chat",
        400,
        "Invalid 'messages[3].tool_calls[0].id': string too long. Expected a string with maximum length 40",
        ids("call_1"),
    ),
    (
        "chat",
        400,
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
        having("tool_calls"),
    ),
    (
        "chat",
        400,
        "Invalid 'messages[1].tool_calls[0].function.name': string does not match pattern.",
        having("tool_calls"),
    ),
    ("chat", 400, "Something went wrong", having("tool_calls")),
    ("gemini", 400, "Function call is missing a thought_signature in functionCall parts.", having("functionCall")),
    (
        "gemini",
        400,
        "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
        having("functionCall"),
    ),
    (
        "gemini",
        400,
        "Request contains an invalid argument.",
        lambda body: any(b.get("thoughtSignature") == "c2ln" for b in blocks(body)),
    ),
    (
        "ollama",
        400,
        "registry.ollama.ai/library/gemma:2b does not support tools",
        lambda body: "tools" in body or having("tool_calls")(body),
    ),
    ("ollama", 400, '"qwen3" does not support thinking', lambda body: "think" in body),
    ("ollama", 500, 'template: :3:12: executing "" at <index .ToolCalls 0>: error calling index', having("tool_calls")),
]


@asynccontextmanager
async def chat(
    home: Path, server: Loopback, api: Api, resume: str | None = None
) -> AsyncIterator[tuple[Agent, Recorder]]:
    settings = Settings(
        default_model="m",
        models={"m": ModelConfig(api.name, api_base=server.url + api.path, api_key_env=KEY_VARIABLE)},
        context=ContextConfig(exact_counting="off"),
        permissions=PermissionsConfig(mode="auto"),
        agent=AgentConfig(retries=1, timeout=30.0),
    )
    project = home / "project"
    project.mkdir(parents=True, exist_ok=True)
    (project / "a.txt").write_text("alpha")
    parts = parts_for(home, project, settings=settings, provider=lambda counter: InProcess(), resume=resume)
    agent, heard = Agent(parts), Recorder()
    agent.subscribe(heard)
    await agent.start()
    try:
        yield agent, heard
    finally:
        await agent.close()


@dataclass
class Strict:
    """Answers with what is next, and refuses what ``bad`` finds in a body once ``awake``."""

    api: Api
    refusal: Reply
    bad: Judge
    awake: bool = False
    refused: int = 0
    answered: int = 0

    def __call__(self, request: Recorded) -> Reply | bytes:
        if self.awake and self.bad(request.json):
            self.refused += 1
            return self.refusal
        self.answered += 1
        return (self.api.first, self.api.second)[self.answered - 1] if self.answered < 3 else self.api.fine


def ended(heard: Recorder) -> tuple[str, str]:
    last = heard.last_end
    return last.stop_reason, last.failure.message if last.failure is not None else ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "status", "words", "bad"), one_of(CASES, 6), ids=[f"{c[0]} {c[2][:40]}" for c in CASES]
)
async def test_what_is_refused_in_the_history_is_sent_otherwise(
    name: str, status: int, words: str, bad: Judge, tmp_path: Path, server: Loopback
) -> None:
    api = APIS[name]
    strict = Strict(api, json_reply(api.error(words), status), bad)
    server.answer_by(strict)
    async with chat(tmp_path, server, api) as (agent, heard):
        await say(agent, "look")
        assert ended(heard) == ("end", ""), "it was taken as it came"
        assert strict.answered == 2
        strict.awake = True
        await say(agent, "and now?")
        assert ended(heard) == ("end", "")
        assert 1 <= strict.refused <= 8
        told = [n for n in heard.of(Notice) if "Sent again, now" in n.text]
        assert len(told) == 1, [n.text for n in heard.of(Notice)]
        assert "alpha" in text_of(server.requests[-1].json), "what was said before is still sent"
        before, strict.refused = strict.answered, 0
        await say(agent, "thanks")
        assert (ended(heard), strict.answered, strict.refused) == (("end", ""), before + 1, 0), "remembered"
        session = agent.conversation.info.id
    async with chat(tmp_path, server, api, session) as (agent, heard):
        await say(agent, "hello again")
        assert (ended(heard), strict.refused) == (("end", ""), 0), "another process knows it, too"


@pytest.mark.slow
async def test_errors_inside_a_stream_heal_it_too(tmp_path: Path, server: Loopback) -> None:
    api = APIS["anthropic"]
    words = "messages.1.content.0: `thinking` blocks cannot be modified."
    event = {"type": "error", "error": {"type": "invalid_request_error", "message": words}}
    strict = Strict(api, Reply(sse([event], named=True)), typed("thinking"))
    server.answer_by(strict)
    async with chat(tmp_path, server, api) as (agent, heard):
        await say(agent, "look")
        strict.awake = True
        await say(agent, "and now?")
        assert (ended(heard), strict.refused) == (("end", ""), 1)


NOT_THE_HISTORY = [
    (401, "Incorrect API key provided"),
    (402, "Insufficient credits"),
    (403, "You do not have access to this model"),
    (404, "The model `local` does not exist"),
    (400, "local is not a valid model ID"),
    (400, "Your credit balance is too low to access the API."),
    (400, "temperature: must be below 2"),
    (400, "Unsupported parameter: 'max_tokens' is not supported with this model."),
]


@pytest.mark.forms(1)
@pytest.mark.parametrize(("status", "words"), one_of(NOT_THE_HISTORY, 3), ids=[w[:30] for _, w in NOT_THE_HISTORY])
async def test_what_is_plainly_not_for_the_history_is_not_tried_with_less(
    status: int, words: str, tmp_path: Path, server: Loopback
) -> None:
    api = APIS["chat"]
    strict = Strict(api, json_reply(api.error(words), status), lambda body: True)
    server.answer_by(strict)
    async with chat(tmp_path, server, api) as (agent, heard):
        await say(agent, "look")
        strict.awake = True
        await say(agent, "and now?")
        assert (ended(heard)[0], strict.refused) == ("error", 1)


@pytest.mark.forms(1)
@pytest.mark.parametrize("name", one_of([name for name in APIS if name != "litellm"], 3))
async def test_what_nothing_helps_against_is_tried_a_few_times_and_changes_nothing(
    name: str, tmp_path: Path, server: Loopback
) -> None:
    """And behind what is refused the session goes on, with all that it had."""
    api = APIS[name]
    words = "Something is wrong with this."
    strict = Strict(api, json_reply(api.error(words), 400), lambda body: "and now?" in text_of(body))
    server.answer_by(strict)
    async with chat(tmp_path, server, api) as (agent, heard):
        await say(agent, "look")
        rule = agent.conversation and agent._state.runtime.replay
        strict.awake = True
        await say(agent, "and now?")
        reason, line = ended(heard)
        assert reason == "error" and words in line and "/rewind" in line
        assert 2 <= strict.refused <= 9
        assert agent._state.runtime.replay == rule, "nothing was thrown away"
        assert not agent._state.parts.store.learned.forget_all(), "nor learned"
        question = next(m for m in agent.conversation.path if m.text == "and now?")
        await agent.branches.rewind(question.id)
        before, strict.refused = len(server.requests), 0
        await say(agent, "go on")
        assert (ended(heard), strict.refused, len(server.requests)) == (("end", ""), 0, before + 1)
        first = server.requests[before].json
        assert "and now?" not in text_of(first) and "alpha" in text_of(first)


REFUSALS: dict[str, bytes | Reply] = {
    "chat": chat_answer({"content": "I"}, finish="content_filter"),
    "responses": responses.answer(
        responses.message("msg_9", "I"), status="incomplete", incomplete_details={"reason": "content_filter"}
    ),
    "anthropic": anthropic.answer(anthropic.text("I"), stop="refusal"),
    "gemini": sse([{"candidates": [{"content": {"parts": []}, "finishReason": "SAFETY", "index": 0}]}]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSALS)
async def test_an_exchange_that_was_refused_is_not_sent_again(name: str, tmp_path: Path, server: Loopback) -> None:
    api = APIS[name]

    def judge(request: Recorded) -> Reply | bytes:
        return REFUSALS[name] if "forbidden" in text_of(request.json) else api.fine

    server.answer_by(judge)
    async with chat(tmp_path, server, api) as (agent, heard):
        await say(agent, "hello")
        await say(agent, "forbidden")
        assert heard.last_end.stop_reason == "refused"
        (line,) = [n.text for n in heard.of(Notice) if n.code == "refused_left_out"]
        assert "Ask in another way" in line
        await say(agent, "something else")
        assert ended(heard) == ("end", "")
        assert "hello" in text_of(server.requests[-1].json), "what was answered before stays"


async def test_a_refusal_of_a_prompt_by_status_poisons_nothing(tmp_path: Path, server: Loopback) -> None:
    """As Azure does it."""
    api = APIS["chat"]
    words = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."

    def judge(request: Recorded) -> Reply | bytes:
        return json_reply(api.error(words), 400) if "forbidden" in text_of(request.json) else api.fine

    server.answer_by(judge)
    async with chat(tmp_path, server, api) as (agent, heard):
        await say(agent, "forbidden")
        assert heard.last_end.stop_reason == "refused" and len(server.requests) == 1
        await say(agent, "something else")
        assert ended(heard) == ("end", "")


@pytest.mark.slow
async def test_a_result_that_was_refused_takes_only_itself_along_and_if_need_be_its_turn(
    tmp_path: Path, server: Loopback
) -> None:
    api = APIS["chat"]
    bad = "alpha"

    def judge(request: Recorded) -> Reply | bytes:
        if bad in text_of(request.json):
            return REFUSALS["chat"]
        return api.first if len(server.requests) == 1 else api.fine

    server.answer_by(judge)
    async with chat(tmp_path, server, api) as (agent, heard):
        await say(agent, "look")
        assert heard.last_end.stop_reason == "refused"
        await say(agent, "go on")
        assert ended(heard) == ("end", "")
        sent = text_of(server.requests[-1].json)
        assert "look" in sent and "alpha" not in sent, "the work before stays"


@pytest.mark.slow
async def test_a_template_without_tools_is_met_in_the_middle_of_a_tool_loop(tmp_path: Path, server: Loopback) -> None:
    api = APIS["plain"]
    strict = Strict(api, json_reply(api.error("Conversation roles must alternate user/assistant"), 500), uneven, True)
    server.answer_by(strict)
    async with chat(tmp_path, server, api) as (agent, heard):
        await say(agent, "look")
        assert (ended(heard), strict.answered) == (("end", ""), 2)
        sent = server.requests[-1].json
        assert roles(sent)[-2:] == ["assistant", "user"] and "<tool_call>" in text_of(sent)
        # What was learned is forgotten with all the rest, and learned again.
        await agent.models.forget_limits()
        strict.refused = 0
        await say(agent, "and now?")
        assert ended(heard) == ("end", "") and strict.refused == 1


@pytest.mark.slow
async def test_two_things_that_one_refusal_stands_for_go_together(tmp_path: Path, server: Loopback) -> None:
    api = APIS["responses"]

    def bad(body: Any) -> bool:
        return typed("reasoning")(body) or typed("function_call")(body)

    strict = Strict(api, json_reply(api.error("Bad request."), 400), bad)
    server.answer_by(strict)
    async with chat(tmp_path, server, api) as (agent, heard):
        await say(agent, "look")
        strict.awake = True
        await say(agent, "and now?")
        assert ended(heard) == ("end", "") and strict.refused <= 9
        strict.refused = 0
        await say(agent, "thanks")
        assert (ended(heard), strict.refused) == (("end", ""), 0)


@pytest.mark.slow
async def test_only_what_was_there_is_left_out_where_single_blocks_are_wrong(tmp_path: Path, server: Loopback) -> None:
    """Claude goes on to think with blocks of its own: one bad block is no cause to lose all later ones."""
    api = APIS["anthropic"]
    words = "messages.1.content.0: `thinking` blocks cannot be modified."
    strict = Strict(api, json_reply(api.error(words), 400), lambda body: text_of(body).count("c2ln") > 1)
    server.answer_by(strict)
    async with chat(tmp_path, server, api) as (agent, heard):
        await say(agent, "look")
        strict.awake = True
        await say(agent, "and now?")
        assert (ended(heard), strict.refused) == (("end", ""), 1)
        strict.answered = 1
        await say(agent, "think")
        await say(agent, "again")
        assert "c2ln" in text_of(server.requests[-1].json) and strict.refused == 1


@pytest.mark.slow
async def test_a_script_gets_its_answer_and_one_line(worker: ModelClient, tmp_path: Path, server: Loopback) -> None:
    api = APIS["responses"]
    strict = Strict(api, json_reply(api.error("The encrypted content could not be verified."), 400), typed("reasoning"))
    server.answer_by(strict)
    product = Product(tmp_path, worker, {"m": model("openai/responses/gpt-5", server, "/v1")}, step_limit=5)
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("alpha")
    await product.run("look")
    strict.awake = True
    summary = await product.run("and now?")
    assert (product.code, summary["text"], strict.refused) == (0, "Fine.", 1)
    assert sum("Sent again, now" in note["text"] for note in summary["notices"]) == 1
    await product.run("thanks")
    assert (product.code, strict.refused) == (0, 1)
