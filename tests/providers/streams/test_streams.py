"""Streams in the providers' own protocols that the recordings do not show."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

import pytest

from agent_tui.models.messages import Message, ReasoningPart, TextPart, ToolCallPart
from agent_tui.models.requests import Finished, StreamItem, Target, UsageReport
from agent_tui.models.usage import Prices, TokenUsage
from agent_tui.providers.accumulate import Accumulator
from tests.support import recorded, wire
from tests.support.loopback import Reply, sse
from tests.support.recorded import assemble

pytestmark = [pytest.mark.quick, pytest.mark.versions]


def accumulate(data: bytes, provider: str = "openai", content_type: str = "text/event-stream") -> Accumulated:
    accumulator = Accumulator(Target(provider, "chat", "model", "unknown"), 200_000)
    accumulator.tap.begin(content_type)
    accumulator.tap.feed(data)
    items = accumulator.finish()
    return Accumulated(accumulator, items)


class Accumulated:
    def __init__(self, accumulator: Accumulator, items: list[StreamItem]) -> None:
        self.accumulator = accumulator
        self.items = items
        self.message = assemble(items, Message("msg_1", "assistant"))
        report = [item for item in items if isinstance(item, UsageReport)][-1]
        self.usage, self.believed = report.usage, report.believed
        end = next((item for item in items if isinstance(item, Finished)), None)
        self.reason = None if end is None else end.reason
        self.end_words = "" if end is None else end.words

    @property
    def parts(self) -> list[tuple[Any, ...]]:
        """Kind, text and metadata of every part; of calls the name, arguments and metadata."""
        found: list[tuple[Any, ...]] = []
        for part in self.message.parts:
            if isinstance(part, ToolCallPart):
                found.append(("call", part.name, part.arguments, part.provider_metadata))
            elif isinstance(part, (TextPart, ReasoningPart)):
                found.append((part.type, part.text, part.provider_metadata))
        return found


def chat(*deltas: dict[str, Any], finish: str | None = "stop", **last: Any) -> bytes:
    events: list[Any] = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], **last})
    return sse([*events, "[DONE]"])


def frames(*events: tuple[str, dict[str, Any]]) -> bytes:
    """An AWS event stream."""
    out = b""
    for kind, payload in events:
        header = b"".join(
            bytes([len(name)]) + name + b"\x07" + struct.pack(">H", len(value)) + value
            for name, value in ((b":event-type", kind.encode()), (b":message-type", b"event"))
        )
        body = json.dumps(payload).encode()
        prelude = struct.pack(">II", 16 + len(header) + len(body), len(header))
        prelude += struct.pack(">I", zlib.crc32(prelude))
        out += prelude + header + body + struct.pack(">I", zlib.crc32(prelude + header + body))
    return out


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def claude(*blocks: list[dict[str, Any]], stop: str = "end_turn", usage: dict[str, Any] | None = None) -> bytes:
    counted = usage or {"input_tokens": 10, "output_tokens": 5}
    events = [{"type": "message_start", "message": {"usage": {"input_tokens": 10, "output_tokens": 1}}}]
    events += [event for one in blocks for event in one]
    events += [{"type": "message_delta", "delta": {"stop_reason": stop}, "usage": counted}, {"type": "message_stop"}]
    return sse(events, named=True)


def test_interleaved_thinking_keeps_its_order() -> None:
    thinking = [{"type": "thinking_delta", "thinking": "a"}, {"type": "signature_delta", "signature": "S1"}]
    again = [{"type": "thinking_delta", "thinking": "b"}, {"type": "signature_delta", "signature": "S2"}]
    arguments = [
        {"type": "input_json_delta", "partial_json": '{"x":'},
        {"type": "input_json_delta", "partial_json": "1}"},
    ]
    got = accumulate(
        claude(
            block(0, {"type": "thinking", "thinking": "", "signature": ""}, *thinking),
            block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "hi"}),
            block(2, {"type": "thinking", "thinking": ""}, *again),
            block(3, {"type": "tool_use", "id": "t1", "name": "read", "input": {}}, *arguments),
            block(4, {"type": "tool_use", "id": "t2", "name": "list", "input": {"given": True}}),
            stop="tool_use",
        )
    )
    assert got.parts == [
        ("reasoning", "a", {"type": "thinking", "signature": "S1"}),
        ("text", "hi", None),
        ("reasoning", "b", {"type": "thinking", "signature": "S2"}),
        ("call", "read", '{"x":1}', None),
        ("call", "list", '{"given": true}', None),
    ]
    assert got.reason == "tool_calls"


def test_a_block_without_text_or_signature_is_no_part() -> None:
    got = accumulate(claude(block(0, {"type": "thinking", "thinking": ""}), block(1, {"type": "text", "text": "x"})))
    assert got.parts == [("text", "x", None)]


def test_tools_at_the_provider_spoil_the_usage_as_a_context_size() -> None:
    search = block(0, {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}})
    got = accumulate(claude(search, block(1, {"type": "text", "text": "found"})))
    assert got.parts == [("text", "found", None)]
    assert not got.usage.anchors


@pytest.mark.parametrize(
    ("stop", "reason"), [("max_tokens", "length"), ("refusal", "refused"), ("new_word", "unknown")]
)
def test_how_an_answer_ended(stop: str, reason: str) -> None:
    assert accumulate(claude(block(0, {"type": "text", "text": "x"}), stop=stop)).reason == reason


def test_a_broken_stream_keeps_its_parts_and_the_usage_of_its_start() -> None:
    whole = claude(block(0, {"type": "thinking", "thinking": "so far"}))
    cut = whole[: whole.index(b"event: content_block_stop")]
    got = accumulate(cut)
    assert got.parts == [("reasoning", "so far", None)]
    assert got.reason is None and not got.accumulator.complete
    assert (got.usage.input, got.usage.source) == (10, "provider")


def test_an_error_inside_the_stream_is_seen() -> None:
    data = sse([{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}], named=True)
    error = accumulate(data).accumulator.raw_error
    assert error is not None and "Overloaded" in json.dumps(error)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_bedrock_with_redacted_thinking_tools_and_cache() -> None:
    reasoning = [{"text": "a"}, {"text": "b"}, {"signature": "S"}]
    data = frames(
        ("messageStart", {"role": "assistant"}),
        *(("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": r}}) for r in reasoning),
        ("contentBlockStop", {"contentBlockIndex": 0}),
        ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"reasoningContent": {"redactedContent": "UkVE"}}}),
        ("contentBlockStop", {"contentBlockIndex": 1}),
        ("contentBlockStart", {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "t1", "name": "read"}}}),
        ("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"toolUse": {"input": '{"x":1}'}}}),
        ("contentBlockStop", {"contentBlockIndex": 2}),
        ("messageStop", {"stopReason": "tool_use"}),
        (
            "metadata",
            {
                "usage": {"inputTokens": 5, "outputTokens": 7, "totalTokens": 112, "cacheReadInputTokens": 100},
                "metrics": {"latencyMs": 1},
            },
        ),
    )
    spec = wire.spec("bedrock/us.anthropic.claude-sonnet-4-20250514-v1:0")
    reply = Reply(data, content_type="application/vnd.amazon.eventstream")
    got = recorded.stream(recorded.request_for(spec, [wire.user("u", "hi")]), recorded.info_for(spec), reply)
    thought, hidden, call = got.message.parts
    assert isinstance(thought, ReasoningPart) and isinstance(hidden, ReasoningPart) and isinstance(call, ToolCallPart)
    assert (thought.text, thought.provider_metadata) == ("ab", {"type": "thinking", "signature": "S"})
    assert (hidden.text, hidden.provider_metadata) == ("", {"type": "redacted_thinking", "data": "UkVE"})
    assert (call.name, call.arguments) == ("read", '{"x":1}')
    assert (got.usage.input, got.usage.output, got.usage.cache_read) == (105, 7, 100)
    assert got.finished is not None and got.finished.reason == "tool_calls"


def test_gemini_with_signatures_on_text_and_on_the_first_of_parallel_calls() -> None:
    def event(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"candidates": [{"content": {"parts": list(parts)}, **more}]}

    usage = {"promptTokenCount": 9, "candidatesTokenCount": 4, "thoughtsTokenCount": 6, "totalTokenCount": 19}
    data = sse(
        [
            event({"text": "Plan", "thought": True}),
            event({"text": "ning", "thought": True}),
            event({"text": "Let me "}),
            event({"text": "see."}, {"text": "", "thoughtSignature": "T"}),
            event({"functionCall": {"name": "read", "args": {"x": 1}}, "thoughtSignature": "C"}),
            event({"functionCall": {"name": "read", "args": {"x": 2}, "id": "given"}}),
            {**event(finishReason="STOP"), "usageMetadata": usage},
        ]
    )
    got = accumulate(data, "gemini")
    assert got.parts == [
        ("reasoning", "Planning", None),
        ("text", "Let me see.", {"thought_signature": "T"}),
        ("call", "read", '{"x": 1}', {"thought_signature": "C"}),
        ("call", "read", '{"x": 2}', {"id": "given"}),
    ]
    ids = [call.call_id for call in got.message.tool_calls]
    assert ids[0] and ids[1] == "given"
    assert got.usage == TokenUsage(9, 10, 6)
    assert got.reason == "tool_calls"


def test_a_blocked_prompt_is_a_refusal() -> None:
    assert accumulate(sse([{"promptFeedback": {"blockReason": "SAFETY"}}]), "gemini").reason == "refused"


def test_openrouter_details_only_chunks_keep_their_signature() -> None:
    detail = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
    got = accumulate(
        chat(
            {"reasoning": "Thin", "reasoning_details": [{**detail, "text": "Thin"}]},
            {"reasoning": "king", "reasoning_details": [{**detail, "text": "king"}]},
            {"reasoning_details": [{**detail, "signature": "SIG"}]},
            {"content": "Done"},
        ),
        "openrouter",
    )
    merged = [{**detail, "text": "Thinking", "signature": "SIG"}]
    assert got.parts == [
        ("reasoning", "Thinking", {"field": "reasoning", "reasoning_details": merged}),
        ("text", "Done", None),
    ]


def test_openrouter_encrypted_details_after_the_call_are_a_part_of_their_own() -> None:
    detail = {"type": "reasoning.encrypted", "data": "ENC", "id": "rs_1", "format": "openai-responses-v1", "index": 0}
    call = {"index": 0, "id": "c1", "function": {"name": "read", "arguments": "{}"}}
    got = accumulate(chat({"tool_calls": [call]}, {"reasoning_details": [detail]}, finish="tool_calls"), "openrouter")
    assert got.parts == [("call", "read", "{}", None), ("reasoning", "", {"reasoning_details": [detail]})]


def test_calls_that_all_have_index_zero_are_told_apart_by_their_ids() -> None:
    def call(call_id: str | None, text: str) -> dict[str, Any]:
        return {"tool_calls": [{"index": 0, "id": call_id, "function": {"name": "read", "arguments": text}}]}

    got = accumulate(chat(call("c1", '{"a"'), call(None, ":1}"), call("c2", "{}"), finish="stop"))
    assert [(c.call_id, c.arguments) for c in got.message.tool_calls] == [("c1", '{"a":1}'), ("c2", "{}")]
    assert got.reason == "tool_calls"


def test_groq_says_usage_only_in_its_own_field() -> None:
    usage = {"prompt_tokens": 30, "completion_tokens": 5, "total_tokens": 35}
    got = accumulate(chat({"reasoning": "hm"}, {"content": "ok"}, x_groq={"usage": usage}), "groq")
    assert got.usage == TokenUsage(30, 5)


def test_mistral_blocks_are_reasoning_and_text() -> None:
    thinking = {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "So"}]}]}
    got = accumulate(
        chat(thinking, thinking, {"content": "Well"}, {"content": [{"type": "text", "text": "!"}]}), "mistral"
    )
    assert got.parts == [("reasoning", "SoSo", {"field": "content"}), ("text", "Well!", None)]


def test_google_signatures_through_its_openai_compatible_endpoint() -> None:
    extra = {"google": {"thought_signature": "SIG"}}
    call = {"index": 0, "id": "c1", "function": {"name": "read", "arguments": "{}"}, "extra_content": extra}
    assert accumulate(chat({"tool_calls": [call]})).parts == [("call", "read", "{}", {"thought_signature": "SIG"})]


def test_usage_in_the_choice_and_a_chunk_without_choices() -> None:
    usage = {"prompt_tokens": 30, "completion_tokens": 5}
    events = [
        {"choices": [], "prompt_filter_results": []},
        {"choices": [{"delta": {"content": "x"}, "finish_reason": "stop", "usage": usage}]},
        {"choices": [], "usage": None},
    ]
    got = accumulate(sse(events))
    assert got.parts == [("text", "x", None)] and got.usage == TokenUsage(30, 5)


def test_a_refusal_is_text_and_a_reason() -> None:
    got = accumulate(chat({"refusal": "I cannot"}))
    assert got.parts == [("text", "I cannot", None)] and got.reason == "refused"


def test_responses_with_two_summaries_a_phase_and_an_id() -> None:
    item = {"id": "rs_1", "type": "reasoning", "summary": []}
    done = {**item, "summary": [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}]}
    message = {"id": "msg_1", "type": "message", "phase": "final_answer", "status": "completed", "content": []}
    final = {**done, "encrypted_content": "ENC"}
    events = [
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "one"},
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 1, "delta": "two"},
        {"type": "response.output_item.done", "output_index": 0, "item": {**done, "encrypted_content": "EARLY"}},
        {"type": "response.output_item.added", "output_index": 1, "item": message},
        {"type": "response.output_text.delta", "output_index": 1, "delta": "hello"},
        {"type": "response.output_item.done", "output_index": 1, "item": message},
        {
            "type": "response.completed",
            "response": {
                "output": [final, message],
                "usage": {"input_tokens": 8, "output_tokens": 9, "total_tokens": 17},
            },
        },
    ]
    got = accumulate(sse(events, named=True))
    assert got.parts == [
        ("reasoning", "one\n\ntwo", final),
        ("text", "hello", {"type": "message", "id": "msg_1", "phase": "final_answer", "status": "completed"}),
    ]
    assert got.usage == TokenUsage(8, 9) and got.reason == "stop"


def test_a_response_without_deltas_is_read_from_its_end() -> None:
    output = [
        {"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": "all at once"}]},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "read", "arguments": "{}"},
    ]
    got = accumulate(sse([{"type": "response.completed", "response": {"output": output}}]))
    assert [part[:2] for part in got.parts] == [("text", "all at once"), ("call", "read")]
    assert got.message.tool_calls[0].arguments == "{}"
    assert got.reason == "tool_calls"


@pytest.mark.parametrize(
    ("why", "reason"), [("max_output_tokens", "length"), ("content_filter", "refused"), (None, "length")]
)
def test_an_incomplete_response(why: str | None, reason: str) -> None:
    event = {"type": "response.incomplete", "response": {"incomplete_details": {"reason": why}}}
    assert accumulate(sse([event])).reason == reason


def test_a_failed_response_is_an_error() -> None:
    got = accumulate(
        sse([{"type": "response.failed", "response": {"error": {"code": "server_error", "message": "x"}}}])
    )
    assert got.accumulator.raw_error == {"code": "server_error", "message": "x"}
    assert got.reason is None


def test_cohere_plan_thinking_text_and_call() -> None:
    def event(kind: str, index: int = 0, **message: Any) -> dict[str, Any]:
        return {"type": kind, "index": index, "delta": {"message": message}}

    usage = {
        "billed_units": {"input_tokens": 1, "output_tokens": 1},
        "tokens": {"input_tokens": 50, "output_tokens": 9},
    }
    events = [
        {"type": "message-start", "delta": {"message": {"role": "assistant"}}},
        event("content-start", content={"type": "thinking", "thinking": ""}),
        event("content-delta", content={"thinking": "hm"}),
        event("content-end"),
        event("content-start", 1, content={"type": "text", "text": ""}),
        event("content-delta", 1, content={"text": "ok"}),
        event("content-end", 1),
        event("tool-plan-delta", tool_plan="I will "),
        event("tool-plan-delta", tool_plan="read."),
        event("tool-call-start", tool_calls={"id": "c1", "function": {"name": "read", "arguments": ""}}),
        event("tool-call-delta", tool_calls={"function": {"arguments": "{}"}}),
        {"type": "tool-call-end", "index": 0},
        {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL", "usage": usage}},
    ]
    got = accumulate(sse(events, named=True), "cohere_chat")
    assert got.parts == [
        ("reasoning", "hm", {"field": "content"}),
        ("text", "ok", None),
        ("reasoning", "I will read.", {"field": "tool_plan"}),
        ("call", "read", "{}", None),
    ]
    assert got.usage == TokenUsage(50, 9) and got.reason == "tool_calls"


def test_ollama_lines() -> None:
    lines: list[dict[str, Any]] = [
        {"message": {"role": "assistant", "thinking": "hm"}, "done": False},
        {"message": {"content": "ok"}, "done": False},
        {"message": {"tool_calls": [{"function": {"name": "read", "arguments": {"x": 1}}}]}, "done": False},
        {"message": {"content": ""}, "done": True, "done_reason": "stop", "prompt_eval_count": 7, "eval_count": 3},
    ]
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    got = accumulate(data, "ollama_chat", "application/x-ndjson")
    assert got.parts == [("reasoning", "hm", None), ("text", "ok", None), ("call", "read", '{"x": 1}', None)]
    assert got.usage == TokenUsage(7, 3) and got.reason == "tool_calls"


def test_crlf_comments_split_characters_and_a_missing_last_newline() -> None:
    event = json.dumps({"choices": [{"delta": {"content": "é✓"}, "finish_reason": "stop"}]}, ensure_ascii=False)
    data = b": comment\r\n\r\ndata:" + event.encode()
    accumulator = Accumulator(Target("openai", "chat", "m", "unknown"))
    accumulator.tap.begin("text/event-stream")
    for n in range(len(data)):
        accumulator.tap.feed(data[n : n + 1])
    items = accumulator.finish()
    assert assemble(items, Message("m", "assistant")).text == "é✓"


def test_without_usage_it_is_an_estimate_that_never_anchors() -> None:
    got = accumulate(chat({"content": "four"}))
    assert got.usage == TokenUsage(0, 1, source="estimated", reasoning_source="estimated")
    absurd = accumulate(chat({"content": "four"}, usage={"prompt_tokens": 10**7, "completion_tokens": 1}))
    assert absurd.usage == TokenUsage(10**7, 1), "what was reported stays, beside what is believed"
    assert absurd.believed is not None and not absurd.believed.anchors


def test_cost_is_what_the_provider_says_else_computed_else_unknown() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "cost": 0.25}

    def cost(data: bytes, prices: Prices | None) -> float | None:
        accumulator = Accumulator(Target("openrouter", "chat", "m", "unknown"), None, prices)
        accumulator.tap.begin("text/event-stream")
        accumulator.tap.feed(data)
        return [item for item in accumulator.finish() if isinstance(item, UsageReport)][-1].cost_usd

    del_cost = {k: v for k, v in usage.items() if k != "cost"}
    assert cost(chat({"content": "x"}, usage=usage), Prices(1.0, 1.0)) == 0.25
    assert cost(chat({"content": "x"}, usage=del_cost), Prices(0.01, 0.1)) == pytest.approx(2.0)
    assert cost(chat({"content": "x"}, usage=del_cost), None) is None
