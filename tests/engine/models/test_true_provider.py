"""The scripted providers are as strict as the real ones: they take what was recorded, and refuse what is broken."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.recordings import needs_recordings
from tests.support import recorded
from tests.support.every import every
from tests.support.true_provider import Model, Script
from tests.support.true_provider.cache import PrefixCache
from tests.support.true_provider.server import DIALECTS
from tests.support.true_provider.tokens import Tokenizer
from tests.support.true_provider.wire import Answer, Call, Question, Refused, Segment, Signer, Thought, Tools, Usage

pytestmark = pytest.mark.quick

HEADERS = {"anthropic-version": "2023-06-01"}
RECORDED = {
    "anthropic-sonnet46-agent-parallel-tools-cached.step2": "anthropic",
    "anthropic-sonnet4-thinking-tool-cache.step2": "anthropic",
    "anthropic-opus47-adaptive-signature-only.step2": "anthropic",
    "openai-chat-gpt5-parallel-tools.step2": "chat",
    "openai-chat-gpt5-parallel-tools.step3": "chat",
    "azure-responses-gpt5mini-encrypted-tool.step2": "responses",
    "openai-responses-gpt55-phase-tool.step2": "responses",
    "gemini3pro-thoughtsig-tool.step2": "gemini",
}


def dialect(kind: str, name: str, **more: Any) -> Any:
    model = Model(name, 200_000, 128_000, **more)
    return DIALECTS[kind](Tools(model, Tokenizer(), Signer(name)))


def known(value: Any) -> Iterator[tuple[str, Thought]]:
    """The signatures of a recorded request, as if this provider had made them."""
    if isinstance(value, dict):
        if value.get("signature"):
            yield value["signature"], Thought(value["thinking"], 180, "", ())
        if value.get("encrypted_content"):
            yield value["encrypted_content"], Thought(value["id"], 20, "", ())
        if value.get("thoughtSignature"):
            yield value["thoughtSignature"], Thought("", 202, "", ())
        for inner in value.values():
            yield from known(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from known(inner)


def read(kind: str, provider: Any, body: dict[str, Any], path: str = "") -> Question:
    found: Question = provider.read(body, HEADERS, path or f"/models/{provider.model.name}:streamGenerateContent")
    return found


@needs_recordings
@pytest.mark.parametrize("name", RECORDED)
def test_what_a_real_client_sent_is_taken_and_counted_about_right(name: str) -> None:
    recording = recorded.load(name)
    body = copy.deepcopy(recording["request"])
    factor = 1.2 if RECORDED[name] == "anthropic" else 1.0
    provider = dialect(RECORDED[name], body.get("model", recording["model"]), factor=factor)
    provider.tools.signer.known.update(known(body))
    question = read(RECORDED[name], provider, body, recording["path"])
    actual = recording["expected"]["usage"]["input"]
    assert 0.6 * actual <= question.input <= 1.4 * actual + 50


def anthropic_body() -> dict[str, Any]:
    return {
        "model": "claude-sonnet-4-5",
        "max_tokens": 4_000,
        "thinking": {"type": "enabled", "budget_tokens": 2_000},
        "tools": [{"name": "read", "description": "Reads.", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "Read it."},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "tool_use", "id": "c1", "name": "read", "input": {}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "text"}]},
        ],
    }


@every(
    ("path", "value", "words"),
    [
        (("messages", 2, "content", 0, "tool_use_id"), "c2", "without `tool_result` blocks"),
        (("messages", 1, "content", 0, "signature"), "other", "Invalid `signature`"),
        (("messages", 1, "content", 0, "thinking"), "hmm", "Invalid `signature`"),
        (("messages", 1, "content", 0), {"type": "text", "text": "a"}, "Expected `thinking`"),
        (("messages", 1, "content", 0), {"type": "text", "text": " "}, "non-whitespace"),
        (("messages", 1, "content", 1, "index"), 0, "Extra inputs"),
        (("messages", 0, "role"), "assistant", "first message"),
        (("max_tokens",), 2_000, "must be greater than `thinking.budget_tokens`"),
        (("max_tokens",), 500_000, "maximum allowed number of output tokens"),
        (("thinking", "block_binding"), {}, "Extra inputs"),
        (("tools",), [], "must define tools"),
        (("stream_options",), {}, "Extra inputs"),
    ],
)
def test_anthropic_refuses_what_is_broken(path: tuple[Any, ...], value: Any, words: str) -> None:
    provider = dialect("anthropic", "claude-sonnet-4-5")
    provider.tools.signer.known["s"] = Thought("hm", 20, "", ())
    assert read("anthropic", provider, anthropic_body()).input > 500
    body = anthropic_body()
    holder: Any = body
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    with pytest.raises(Refused, match=words):
        read("anthropic", provider, body)


@pytest.mark.parametrize("within", [False, True])
def test_anthropic_takes_four_markers_wherever_they_are(within: bool) -> None:
    provider, marker = dialect("anthropic", "claude-sonnet-4-5"), {"cache_control": {"type": "ephemeral"}}
    provider.tools.signer.known["s"] = Thought("hm", 20, "", ())
    body = anthropic_body()
    body["system"] = [{"type": "text", "text": text, **marker} for text in ("a", "b")]
    body["tools"][0].update(marker)
    result = body["messages"][2]["content"][0]
    result["content"] = [{"type": "text", "text": "text", **(marker if within else {})}]
    if not within:
        result.update(marker)
    read("anthropic", provider, body)
    body["messages"][1]["content"][1].update(marker)
    with pytest.raises(Refused, match=r"maximum of 4 blocks.*Found 5"):
        read("anthropic", provider, body)


def ask(provider: Any, messages: list[Any], **more: Any) -> Question:
    body = {"model": provider.model.name, "max_tokens": 4_000, "thinking": {"type": "adaptive"}, "messages": messages}
    headers = {**HEADERS, "anthropic-beta": "thinking-binding-controls-2026-08-01"} if more else HEADERS
    body["thinking"] = {"type": "adaptive", **more}
    found: Question = provider.read(copy.deepcopy(body), headers, "/v1/messages")
    return found


def thought_of(provider: Any, question: Question) -> dict[str, Any]:
    """A thinking block as the provider made it in answer to a question."""
    data = provider.answer(question, Answer("Yes.", "hm", 700), Usage(1, 1, 700, 0, 0)).decode()
    events = [json.loads(line[6:]) for line in data.splitlines() if line.startswith("data: ")]
    [signature] = [e["delta"]["signature"] for e in events if e.get("delta", {}).get("type") == "signature_delta"]
    return {"type": "thinking", "thinking": "hm", "signature": signature}


@pytest.mark.parametrize(("name", "kept"), [("claude-sonnet-4-5", 0), ("claude-sonnet-4-6", 700)])
def test_thinking_before_a_user_turn_is_dropped_or_kept(name: str, kept: int) -> None:
    provider = dialect("anthropic", name)
    start = [{"role": "user", "content": "Hello."}]
    body = {"model": name, "max_tokens": 4_000, "messages": start}
    block = thought_of(provider, provider.read(copy.deepcopy(body), HEADERS, "/v1/messages"))
    body["messages"] = [
        *start,
        {"role": "assistant", "content": [block, {"type": "text", "text": "Yes."}]},
        {"role": "user", "content": "Go on."},
    ]
    kind = {"type": "adaptive"} if kept else {"type": "enabled", "budget_tokens": 1_024}
    body["thinking"] = kind
    assert provider.read(body, HEADERS, "/v1/messages").of("thinking") == kept


def test_a_bound_block_is_refused_behind_another_prefix_or_dropped_with_all_later_ones_when_asked() -> None:
    provider = dialect("anthropic", "claude-fable-5-1")
    first = [{"role": "user", "content": "Hello."}]
    one = thought_of(provider, ask(provider, first))
    second = [*first, {"role": "assistant", "content": [one, {"type": "text", "text": "Yes."}]}]
    second.append({"role": "user", "content": "Go on."})
    two = thought_of(provider, ask(provider, second))
    third = [*second, {"role": "assistant", "content": [two, {"type": "text", "text": "Yes."}]}]
    third.append({"role": "user", "content": "More."})
    assert ask(provider, third).of("thinking") == 1_400
    changed = [{"role": "user", "content": "Goodbye."}, *third[1:]]
    with pytest.raises(Refused, match="bound to a different conversation"):
        ask(provider, changed)
    drop = {"prefix_mismatch_behavior": "drop_block"}
    with pytest.raises(Refused, match="Extra inputs"):
        provider.read(
            {"model": "claude-fable-5-1", "max_tokens": 9, "messages": first,
             "thinking": {"type": "adaptive", "block_binding": drop}}, HEADERS, "/v1/messages",
        )  # fmt: skip
    question = ask(provider, changed, block_binding=drop)
    assert question.of("thinking") == 0
    assert [d["path"] for d in question.dropped] == ["messages.1.content.0", "messages.3.content.0"]
    without = [third[0], {"role": "assistant", "content": [{"type": "text", "text": "Yes."}]}, *third[2:]]
    assert ask(provider, without).of("thinking") == 700, "removing a block leaves the later ones valid"


def test_what_is_answered_costs_the_same_when_it_comes_back() -> None:
    provider = dialect("chat", "qwen3", templates=True)
    answer = Answer("I look.", calls=[Call("c1", "read", {"path": "a.py"})])
    start = [{"role": "user", "content": "Read it."}]
    body = {"model": "qwen3", "messages": start}
    before = provider.read(body, {}, "").input
    function = {"name": "read", "arguments": '{"path": "a.py"}'}
    calls = [{"id": "c1", "type": "function", "function": function}]
    body["messages"] = [
        *start,
        {"role": "assistant", "content": "I look.", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": "x = 1"},
    ]
    grown = provider.read(body, {}, "").input - before
    assert 0 <= grown - provider.output(answer) - Tokenizer().count("x = 1") < 10


def test_a_template_refuses_two_user_messages_in_a_row() -> None:
    twice = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
    with pytest.raises(Refused, match="must alternate"):
        dialect("chat", "devstral", alternates=True).read({"model": "devstral", "messages": twice}, {}, "")


def segments(*sizes: int, mark: int | None = None, first: str = "0") -> list[Segment]:
    return [Segment("user", f"{first if n == 0 else n}", size, n == mark) for n, size in enumerate(sizes)]


def test_the_cache_knows_a_prefix_up_to_the_first_difference() -> None:
    cache = PrefixCache(explicit=True)
    assert cache.use(segments(2_000, 500, mark=1)) == (0, 2_500)
    assert cache.use(segments(2_000, 500, 300, mark=2)) == (2_500, 300)
    assert cache.use(segments(2_000, 500, 300, mark=2, first="x")) == (0, 2_800)
    assert cache.use(segments(2_000, 500)) == (0, 0), "nothing was marked"
    automatic = PrefixCache(explicit=False)
    assert automatic.use(segments(2_000, 500)) == (0, 0)
    assert automatic.use(segments(2_000, 500, 300)) == (2_432, 0)


@pytest.mark.parametrize(("blocks", "read"), [(19, 2_000), (20, 0)])
def test_the_cache_looks_at_twenty_blocks_of_which_the_marked_one_is_the_first(blocks: int, read: int) -> None:
    cache = PrefixCache(explicit=True)
    cache.use(segments(2_000, mark=0))
    assert cache.use(segments(2_000, *[100] * blocks, mark=blocks))[0] == read


def test_the_script_says_the_same_for_the_same_seed() -> None:
    question = Question([], None, True, "", "", ["read", "grep", "bash"])
    said = [Script(7, [], 50_000).answer(question, 1, 9, 0).text for _ in range(2)]
    assert said[0] == said[1]
    assert said[0] != Script(8, [], 50_000).answer(question, 1, 9, 0).text
