"""A search that runs at the provider: what of it is stored goes back as it came, to its maker alone and whole."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from agent_tui.models.messages import Message, SearchPart, TextPart
from agent_tui.models.requests import Finished, ModelSpec, ToolSchema, UsageReport
from agent_tui.models.search import search_calls
from agent_tui.models.usage import Prices, PriceTier, Rates, TokenUsage
from agent_tui.providers.accumulate import Accumulator
from agent_tui.providers.catalog import DIALECTS, resolve_target, web_search
from agent_tui.providers.limits import describe
from tests.support import anthropic_stream as anthropic
from tests.support import recorded, vendor_schemas, wire
from tests.support.every import every
from tests.support.loopback import sse
from tests.support.real_talks import body_of

pytestmark = pytest.mark.quick

CLAUDE = wire.spec("anthropic/claude-sonnet-4-6")
OTHER_CLAUDE = wire.spec("anthropic/claude-opus-4-7")
GPT = wire.spec("openai/gpt-5", api="responses")
GEMINI = wire.spec("gemini/gemini-3-flash-preview")
ROUTER = wire.spec("openrouter/deepseek/deepseek-chat")
GROK = wire.spec("xai/grok-4.3", api="responses")

CALL = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
PAGE = {"type": "web_search_result", "url": "https://a.example/", "title": "A", "encrypted_content": "e" * 1_000}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [PAGE]}
CITED: dict[str, Any] = {
    "type": "web_search_result_location",
    "cited_text": "c",
    "url": "https://a.example/",
    "title": "A",
}
CITED["encrypted_index"] = "i"
SEARCHED = {"input_tokens": 9_000, "output_tokens": 50, "server_tool_use": {"web_search_requests": 2}}


def claude_call(query: str = "x") -> anthropic.Block:
    written = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", '{"query": ', f'"{query}"', "}")]
    return {**CALL, "input": {}}, written


def cited(text: str) -> anthropic.Block:
    quoted = {"type": "citations_delta", "citation": CITED}
    return {"type": "text", "text": "", "citations": []}, [quoted, {"type": "text_delta", "text": text}]


def read(spec: ModelSpec, body: bytes, name: str = "a") -> tuple[Message, UsageReport, str]:
    target = resolve_target(spec)
    accumulator = Accumulator(target, 200_000, describe(spec).prices)
    accumulator.tap.begin("text/event-stream")
    accumulator.tap.feed(body)
    items = accumulator.finish()
    answer = recorded.assemble(items, Message(name, "assistant", origin=wire.origin(target)))
    usage = [item for item in items if isinstance(item, UsageReport)]
    return answer, usage[-1], next(item.reason for item in items if isinstance(item, Finished))


def sent(spec: ModelSpec, *messages: Message, offered: bool = True) -> dict[str, Any]:
    own = web_search(spec, resolve_target(spec))
    assert own is not None
    tools = [ToolSchema("web_search", "", {}, dict(own.tool))] if offered else []
    body = body_of(recorded.request_for(spec, list(messages), tools=[wire.TOOL, *tools]))
    assert isinstance(body, dict)
    return body


def content(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [block for message in body["messages"] if message["role"] == "assistant" for block in message["content"]]


def unmarked(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in block.items() if name != "cache_control"} for block in blocks]


def accepted(body: dict[str, Any], schema: str) -> None:
    if vendor_schemas.missing() is None:
        assert not vendor_schemas.checker(schema)(body)


ANSWER = anthropic.answer(
    anthropic.text("I search."),
    claude_call(),
    (FOUND, []),
    anthropic.text("It is "),
    cited("found"),
    anthropic.text(". "),
    usage=SEARCHED,
)


def test_claudes_blocks_go_back_as_they_came() -> None:
    answer, report, _ = read(CLAUDE, ANSWER)
    assert [part.type for part in answer.parts] == ["text", "search", "search", "text"]
    assert answer.text == "I search.It is found. ", "the text that citations cut up is one again"
    body = sent(CLAUDE, wire.user("u", "?"), answer, wire.user("v", "And?"))
    assert unmarked(content(body)) == [
        {"type": "text", "text": "I search."},
        CALL,
        FOUND,
        {"type": "text", "text": "It is "},
        {"type": "text", "text": "found", "citations": [CITED]},
        {"type": "text", "text": ". "},
    ]
    assert body["tools"][-1] == {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}
    accepted(body, "anthropic")
    assert not report.usage.context and report.usage.searches == 2


def test_people_see_a_call_and_its_sources() -> None:
    ((call, result),) = search_calls(read(CLAUDE, ANSWER)[0].parts)
    assert (call.name, json.loads(call.arguments)) == ("web_search", {"query": "x"})
    assert result is not None and result.text == "A · https://a.example/"
    assert result.display == {"kind": "text", "summary": "1 source"}


def test_a_failed_search_says_so() -> None:
    wrong = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
    body = anthropic.answer(claude_call(), ({**FOUND, "content": wrong}, []), anthropic.text("Sorry."))
    ((_, result),) = search_calls(read(CLAUDE, body)[0].parts)
    assert result is not None and result.is_error and result.text == "The search failed: max uses exceeded"


@pytest.mark.parametrize(
    ("spec", "offered"), [(OTHER_CLAUDE, True), (CLAUDE, False)], ids=["other model", "not offered"]
)
def test_to_others_only_the_words_go(spec: ModelSpec, offered: bool) -> None:
    answer, _, _ = read(CLAUDE, ANSWER)
    body = sent(spec, wire.user("u", "?"), answer, wire.user("v", "And?"), offered=offered)
    assert [block["text"] for block in content(body)] == ["I search.", "It is found. "]
    assert not any("citations" in block for block in content(body))
    accepted(body, "anthropic")


def test_a_paused_answer_goes_on_where_it_was() -> None:
    first, _, end = read(CLAUDE, anthropic.answer(claude_call(), stop="pause_turn"))
    assert end == "paused"
    assert unmarked(content(sent(CLAUDE, wire.user("u", "?"), first))) == [CALL]
    second, _, _ = read(CLAUDE, anthropic.answer((FOUND, []), anthropic.text("Found.")), "b")
    body = sent(CLAUDE, wire.user("u", "?"), first, second, wire.user("v", "And?"))
    assert unmarked(content(body)) == [CALL, FOUND, {"type": "text", "text": "Found."}]
    accepted(body, "anthropic")


def test_a_call_runs_while_nothing_but_results_of_tools_follow_it() -> None:
    running, _, _ = read(CLAUDE, anthropic.answer(claude_call(), anthropic.tool_use("toolu_1")))
    results = recorded.tool_results(running)
    body = sent(CLAUDE, wire.user("u", "?"), running, *results)
    assert [block["type"] for block in content(body)] == ["server_tool_use", "tool_use"]
    later = sent(CLAUDE, wire.user("u", "?"), running, *results, wire.user("v", "Stop."))
    assert [block["type"] for block in content(later)] == ["tool_use"], "it never came: the API refuses it alone"
    alone, _, _ = read(CLAUDE, anthropic.answer((FOUND, []), anthropic.text("Found.")), "b")
    without = sent(CLAUDE, wire.user("u", "?"), alone, wire.user("v", "And?"))
    assert [block["type"] for block in content(without)] == ["text"], "nothing asked for it any more"


def item(kind: str, id: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "id": id, **fields}


def responses(*output: dict[str, Any]) -> bytes:
    events: list[dict[str, Any]] = []
    for index, one in enumerate(output):
        begun = {name: one[name] for name in ("type", "id")} | {"status": "in_progress"}
        events.append({"type": "response.output_item.added", "output_index": index, "item": begun})
        events.append({"type": "response.output_item.done", "output_index": index, "item": one})
    usage = {"input_tokens": 9_000, "input_tokens_details": {}, "output_tokens": 90, "total_tokens": 9_090}
    events.append({"type": "response.completed", "response": {"status": "completed", "output": output, "usage": usage}})
    return sse(events)


SOURCES = [{"type": "url", "url": "https://a.example/"}]
SEARCH = {"type": "search", "query": "x"}
LOOK = {"type": "open_page", "url": "https://a.example/"}
CITES = [{"type": "url_citation", "start_index": 0, "end_index": 5, "url": "https://a.example/", "title": "A"}]
MESSAGE = item("message", "msg_1", role="assistant", status="completed")


def gpt_answer(cipher: str | None = "secret") -> bytes:
    thought = [item("reasoning", f"rs_{n}", summary=[], encrypted_content=cipher) for n in (1, 2, 3)]
    return responses(
        thought[0],
        item("web_search_call", "ws_1", status="completed", action={**SEARCH, "sources": SOURCES}),
        thought[1],
        item("web_search_call", "ws_2", status="completed", action=LOOK),
        thought[2],
        {**MESSAGE, "content": [{"type": "output_text", "text": "Found.", "annotations": CITES}]},
    )


def test_items_of_responses_go_back_without_what_was_only_asked_for() -> None:
    answer, report, _ = read(GPT, gpt_answer())
    body = sent(GPT, wire.user("u", "?"), answer, wire.user("v", "And?"))
    own = [one for one in body["input"] if one.get("id")]
    assert [one["id"] for one in own] == ["rs_1", "ws_1", "rs_2", "ws_2", "rs_3", "msg_1"]
    assert own[1] == item("web_search_call", "ws_1", status="completed", action=SEARCH)
    assert own[3]["action"] == LOOK and own[5]["content"][0]["annotations"] == CITES
    assert body["tools"][-1] == {"type": "web_search"}
    assert body["include"] == ["reasoning.encrypted_content", "web_search_call.action.sources"]
    accepted(body, "responses")
    assert not report.usage.context and report.usage.searches == 1, "a look into a page is no search"


def test_an_item_does_not_go_without_its_reasoning() -> None:
    answer, _, _ = read(GPT, gpt_answer(None))
    body = sent(GPT, wire.user("u", "?"), answer, wire.user("v", "And?"))
    assert [one.get("type") for one in body["input"]] == [None, "message", None]
    accepted(body, "responses")


def test_grok_has_arguments_for_an_action() -> None:
    call = item("web_search_call", "ws_1", status="completed", name="web_search", arguments='{"query": "x"}')
    answer, _, _ = read(GROK, responses(call, {**MESSAGE, "content": [{"type": "output_text", "text": "Found."}]}))
    ((asked, _),) = search_calls(answer.parts)
    assert json.loads(asked.arguments) == {"query": "x"}
    assert call in sent(GROK, wire.user("u", "?"), answer, wire.user("v", "And?"))["input"]


THERE = {
    "toolCall": {"id": "g1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["x", "y"]}},
    "thoughtSignature": "S1",
}
BACK = {"toolResponse": {"id": "g1", "toolType": "GOOGLE_SEARCH_WEB", "response": {}}, "thoughtSignature": "S2"}
GROUNDS = {"groundingChunks": [{"web": {"uri": "https://a.example/", "title": "A"}}], "webSearchQueries": ["x", "y"]}


def google(*parts: dict[str, Any], **more: Any) -> bytes:
    candidate = {"content": {"parts": list(parts)}, "finishReason": "STOP", **more}
    return sse([{"candidates": [candidate], "usageMetadata": {"promptTokenCount": 9, "totalTokenCount": 20}}])


def test_googles_parts_go_back_as_they_came() -> None:
    here = {"functionCall": {"name": "read", "args": {"path": "a"}, "id": "c1"}, "thoughtSignature": "S0"}
    answer, report, _ = read(GEMINI, google(here, THERE, BACK))
    body = sent(GEMINI, wire.user("u", "?"), answer, *recorded.tool_results(answer))
    parts = next(one["parts"] for one in body["contents"] if one["role"] == "model")
    assert [part for part in parts if "functionCall" not in part] == [THERE, BACK]
    assert body["toolConfig"] == {"includeServerSideToolInvocations": True}
    assert body["tools"][-1] == {"googleSearch": {}}
    accepted(body, "gemini")
    assert report.usage.searches == 2 and not report.usage.context


def test_what_google_grounds_an_answer_on_is_what_the_search_found() -> None:
    answer, _, _ = read(GEMINI, google(THERE, BACK, {"text": "Found."}, groundingMetadata=GROUNDS))
    ((call, result),) = search_calls(answer.parts)
    assert json.loads(call.arguments) == {"query": "x; y"} and result is not None
    assert result.text == "A · https://a.example/"
    body = sent(GEMINI, wire.user("u", "?"), answer, wire.user("v", "And?"))
    assert [one["parts"] for one in body["contents"] if one["role"] == "model"] == [[THERE, BACK, {"text": "Found."}]]


def test_a_gateway_says_what_it_cites_and_what_all_of_it_cost() -> None:
    note = {"type": "url_citation", "url_citation": {"url": "https://a.example/", "title": "A", "content": "…"}}
    usage = {"prompt_tokens": 2_000, "completion_tokens": 5, "cost": 0.0076}
    body = sse(
        [
            {"choices": [{"index": 0, "delta": {"content": "", "annotations": [note]}}]},
            {"choices": [{"index": 0, "delta": {"content": "Found."}, "finish_reason": "stop"}]},
            {"choices": [], "usage": {**usage, "server_tool_use_details": {"web_search_requests": 1}}},
        ]
    )
    answer, report, _ = read(ROUTER, body)
    ((_, result),) = search_calls(answer.parts)
    assert result is not None and result.text == "A · https://a.example/"
    assert (report.usage.searches, report.cost_usd) == (1, 0.0076)
    after = sent(ROUTER, wire.user("u", "?"), answer, wire.user("v", "And?"))
    assert after["tools"][-1] == {"type": "openrouter:web_search"}
    assert after["messages"][-2] == {"role": "assistant", "content": "Found."}


def test_a_search_is_paid_for_and_one_without_a_price_leaves_the_cost_open() -> None:
    _, report, _ = read(CLAUDE, ANSWER)
    prices = describe(CLAUDE).prices
    plain = Prices(prices.input, prices.output).cost
    assert report.usage.searches == 2 and report.cost_usd is not None
    assert plain(report.usage) is None, "no price of a search is known"
    free = replace(report.usage, searches=None)
    assert report.cost_usd == pytest.approx((plain(free) or 0.0) + 2 * 0.01)


def test_of_summed_rounds_it_is_not_known_which_were_long() -> None:
    prices = Prices(1e-6, 1e-6, tiers=(PriceTier(200_000, Rates(2e-6, 2e-6)),), search=0.01)
    assert prices.cost(TokenUsage(300_000, 0)) == pytest.approx(0.6)
    assert prices.cost(TokenUsage(150_000, 0, context=False, searches=1)) == pytest.approx(0.16)
    assert prices.cost(TokenUsage(300_000, 0, context=False, searches=1)) is None


@every(
    ("model", "api", "has"),
    [
        ("anthropic/claude-sonnet-4-6", "chat", True),
        ("openai/gpt-5", "responses", True),
        ("openai/gpt-4o", "chat", False),
        ("gemini/gemini-3-pro-preview", "chat", True),
        ("gemini/gemini-2.5-pro", "chat", False),
        ("xai/grok-4.3", "responses", True),
        ("xai/grok-4", "chat", False),
        ("openrouter/qwen/qwen3-max", "chat", True),
        ("mistral/mistral-medium-latest", "chat", False),
        ("ollama/qwen3", "chat", False),
    ],
)
def test_who_has_a_search_beside_other_tools(model: str, api: Any, has: bool) -> None:
    spec = ModelSpec("m", model, api=api, api_key="k")
    assert (web_search(spec, resolve_target(spec)) is not None) is has
    assert web_search(ModelSpec("m", model, api=api, via="litellm"), resolve_target(spec)) is None


def test_each_record_has_its_page() -> None:
    searches = [dialect.search for dialect in DIALECTS.values() if dialect.search is not None]
    assert searches and all(search.source is not None for search in searches)


@pytest.mark.parametrize("spec", [CLAUDE, GPT, GEMINI], ids=lambda spec: spec.model)
def test_metadata_of_no_form_do_no_harm(spec: ModelSpec) -> None:
    odd = SearchPart({"id": 7, "query": None, "sources": [["t", None], []], "item": {"type": 3, "action": "x"}})
    answer = wire.answer("a", spec, odd, SearchPart(None), SearchPart({"item": "x"}), TextPart("Found."))
    assert sent(spec, wire.user("u", "?"), answer, wire.user("v", "And?"))
    assert search_calls(answer.parts)
