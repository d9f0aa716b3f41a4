"""Anthropic's Messages API: its checks, its counts, what it keeps of thinking, its words.

``claude-…-4-5`` and older drop thinking after a user turn and want a budget; from 4.6 on it is kept and adaptive; from
5.1 on a block is bound to everything before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.loopback import sse
from tests.support.true_provider.anthropic_checks import EXTRA, check_marks, check_messages
from tests.support.true_provider.wire import (
    Answer,
    Question,
    Refused,
    Segment,
    Tools,
    Usage,
    canonical,
    digest,
    only,
    words_of,
)

PATHS = ("/v1/messages", "/v1/messages/count_tokens")
BINDING_BETA = "thinking-binding-controls-2026-08-01"
INTERLEAVED_BETA = "interleaved-thinking-2025-05-14"
_TOP = words_of(
    "model messages max_tokens system tools tool_choice thinking stream metadata stop_sequences "
    "temperature top_k top_p output_config service_tier"
)
# What the API adds around the text it is given, in its tokens.
ANY_TOOL, A_TOOL, A_CALL, FIRST_RESULT, NEXT_RESULT, A_MESSAGE = 470, 9, 31, 12, 50, 3


def version(model: str) -> tuple[int, int]:
    match = re.search(r"-(\d+)-(\d+)", model)
    return (int(match[1]), int(match[2])) if match else (4, 0)


class Anthropic:
    """One model behind the Messages API."""

    explicit_cache = True
    strict_output = True

    def __init__(self, tools: Tools) -> None:
        self.tools, self.model = tools, tools.model
        self.version = version(tools.model.name)
        self.keeps = self.version >= (4, 6)
        self.bound = self.version >= (5, 1)
        self._bound = ""
        self._answers = 0

    def read(self, body: dict[str, Any], headers: Mapping[str, str], path: str) -> Question:
        counting = path.endswith("count_tokens")
        if "anthropic-version" not in headers:
            raise Refused("anthropic-version: header is required")
        only(body, _TOP, "", EXTRA)
        if body.get("model") != self.model.name:
            raise Refused(f"model: {body.get('model')}", status=404, code="not_found_error")
        limit = body.get("max_tokens")
        if not counting:
            self._check_limit(limit)
        thinking = self._thinking(body, headers, limit)
        messages = body.get("messages") or []
        check_messages(messages, bool(body.get("tools")), prefill=not self.keeps)
        check_marks([*(body.get("tools") or ()), *_system(body)], messages)
        segments, names = list(self._fixed(body)), [t["name"] for t in body.get("tools") or ()]
        dropped: list[dict[str, str]] = []
        segments += self._conversation(body, messages, thinking, dropped)
        loop = _loop(messages)
        if thinking == "enabled" and loop and loop[0]["content"][0]["type"] not in ("thinking", "redacted_thinking"):
            at = messages.index(loop[0])
            raise Refused(
                f"messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
                f"`{loop[0]['content'][0]['type']}`. When `thinking` is enabled, a final `assistant` message must "
                "start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
            )
        self._bound = _before(body, messages)
        may = thinking == "adaptive" or not loop or INTERLEAVED_BETA in headers.get("anthropic-beta", "")
        system = "\n".join(b["text"] for b in _system(body))
        last = next(m for m in reversed(messages) if m["role"] == "user")
        texts = [b["text"] for b in last["content"] if b["type"] == "text"]
        newest = next(
            (m for m in reversed(messages) if m["role"] == "user" and any(b["type"] == "text" for b in m["content"])),
            last,
        )
        newest_tokens = A_MESSAGE + sum(self.tools.count(b["text"]) for b in newest["content"] if b["type"] == "text")
        return Question(
            segments, limit, bool(thinking), system, "\n".join(texts), names, newest_tokens, dropped, may_think=may
        )

    def _check_limit(self, limit: Any) -> None:
        if not isinstance(limit, int):
            raise Refused("max_tokens: Field required")
        if limit < 1:
            raise Refused("max_tokens: Input should be greater than or equal to 1")
        if limit > self.model.max_output:
            raise Refused(
                f"max_tokens: {limit} > {self.model.max_output}, which is the maximum allowed number of output tokens "
                f"for {self.model.name}"
            )

    def _thinking(self, body: dict[str, Any], headers: Mapping[str, str], limit: Any) -> str:
        asked = body.get("thinking") or {}
        kind = asked.get("type", "disabled")
        allowed = ["type", "display", *(["budget_tokens"] if kind == "enabled" else [])]
        if self.bound and BINDING_BETA in headers.get("anthropic-beta", ""):
            allowed.append("block_binding")
        only(asked, allowed, "thinking.", EXTRA)
        only(body.get("output_config") or {}, ("effort", "format"), "output_config.", EXTRA)
        if kind == "disabled":
            return ""
        if kind == "adaptive" and not self.keeps:
            raise Refused("thinking.type: adaptive thinking is not supported on this model")
        if kind == "enabled" and self.bound:
            raise Refused('thinking.type: "thinking.type.enabled" is not supported for this model.')
        if kind == "enabled":
            budget = asked.get("budget_tokens", 0)
            if budget < 1024:
                raise Refused("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
            if limit is not None and budget >= limit:
                raise Refused("`max_tokens` must be greater than `thinking.budget_tokens`.")
        if (body.get("tool_choice") or {}).get("type") in ("any", "tool"):
            raise Refused("Thinking may not be enabled when tool_choice forces tool use.")
        if body.get("temperature", 1) != 1:
            raise Refused("`temperature` may only be set to 1 when thinking is enabled.")
        return str(kind)

    def _fixed(self, body: dict[str, Any]) -> Iterator[Segment]:
        tools = body.get("tools") or []
        if form := (body.get("output_config") or {}).get("format"):
            yield Segment("schema", canonical(form), 0, block=False)
        if tools:
            yield Segment("tools", "tools", ANY_TOOL, block=False)
        for n, tool in enumerate(tools):
            only(tool, ("name", "input_schema", "description", "type", "cache_control"), f"tools.{n}.", EXTRA)
            text = canonical(tool)
            shown = f"{tool['name']} {tool.get('description', '')} {canonical(tool['input_schema'])}"
            yield Segment("tools", text, self.tools.count(shown) + A_TOOL, "cache_control" in tool)
        for block in _system(body):
            if not block["text"].strip():
                raise Refused("system: text content blocks must be non-empty")
            yield Segment("system", "s" + block["text"], self.tools.count(block["text"]), "cache_control" in block)

    def _conversation(
        self, body: dict[str, Any], messages: list[Any], thinking: str, dropped: list[dict[str, str]]
    ) -> Iterator[Segment]:
        asked = [body.get("thinking") or {}, (body.get("output_config") or {}).get("effort"), body.get("tool_choice")]
        yield Segment("frame", canonical(asked), 0, block=False)
        turn = _turn_start(messages)
        drop = ((body.get("thinking") or {}).get("block_binding") or {}).get("prefix_mismatch_behavior") == "drop_block"
        broken = False
        for n, message in enumerate(messages):
            kind = "assistant" if message["role"] == "assistant" else "user"
            if kind == "user" or n == 0:
                yield Segment(kind, message["role"], A_MESSAGE, block=False)
            results = 0
            for i, block in enumerate(message["content"]):
                marked = "cache_control" in block
                if block["type"] in ("thinking", "redacted_thinking"):
                    broken = self._check_thought(body, messages, n, i, drop, broken, dropped)
                    kept = thinking and not broken and (self.keeps or n >= turn)
                    if kept:
                        yield Segment(
                            "thinking", block["signature"], self.tools.signer.known[block["signature"]].tokens
                        )
                elif block["type"] == "text":
                    yield Segment(kind, "t" + block["text"], self.tools.count(block["text"]), marked)
                elif block["type"] == "tool_use":
                    yield Segment(
                        "assistant", canonical(block), self.call_tokens(block["name"], block["input"]), marked
                    )
                else:
                    frame = NEXT_RESULT if results else FIRST_RESULT
                    results += 1
                    content = block.get("content") or []
                    text = content if isinstance(content, str) else "\n".join(b["text"] for b in content)
                    yield Segment("result", canonical(block), self.tools.count(text) + frame, marked)

    def _check_thought(
        self,
        body: dict[str, Any],
        messages: list[Any],
        n: int,
        i: int,
        drop: bool,
        broken: bool,
        dropped: list[dict[str, str]],
    ) -> bool:
        """Whether this block, and with it every later one, is dropped."""
        block, where = messages[n]["content"][i], f"messages.{n}.content.{i}"
        thought = self.tools.signer.known.get(block.get("signature", ""))
        if thought is None or thought.text != block.get("thinking"):
            raise Refused(f"{where}: Invalid `signature` in `thinking` block")
        if not self.bound:
            return False
        if not broken and thought.bound == _before(body, messages[:n]):
            return False
        if not drop:
            raise Refused(
                f"{where}: Invalid `signature` in `thinking` block. The block is bound to a different conversation"
            )
        dropped.append({"type": "thinking_dropped", "path": where, "reason": "prefix_binding_mismatch"})
        return True

    def call_tokens(self, name: str, arguments: Any) -> int:
        return self.tools.count(name) + self.tools.count(json.dumps(arguments, sort_keys=True)) + A_CALL

    def output(self, answer: Answer) -> int:
        """Visible tokens of an answer, as they are counted in the next input."""
        return self.tools.count(answer.text) + sum(self.call_tokens(c.name, c.arguments) for c in answer.calls)

    def overflow(self, question: Question, asked: int) -> str:
        window = self.model.window
        if question.input > window:
            return f"prompt is too long: {question.input} tokens > {window} maximum"
        return (
            f"input length and `max_tokens` exceed context limit: {question.input} + {asked} > {window}, "
            "decrease input length or `max_tokens` and try again"
        )

    def error(self, refused: Refused) -> bytes:
        kind = refused.code or ("invalid_request_error" if refused.status < 500 else "api_error")
        value = {"type": "error", "error": {"type": kind, "message": refused.message}, "request_id": "req_1"}
        return json.dumps(value).encode()

    def counted(self, question: Question) -> bytes:
        return json.dumps({"input_tokens": question.input}).encode()

    def answer(self, question: Question, answer: Answer, usage: Usage) -> bytes:
        start = {
            "input_tokens": usage.input - usage.cache_read - usage.cache_write,
            "cache_creation_input_tokens": usage.cache_write,
            "cache_read_input_tokens": usage.cache_read,
        }
        more = {"input_transformations": question.dropped} if question.dropped else {}
        message = {"type": "message", "role": "assistant", "model": self.model.name, "content": []}
        self._answers += 1
        message["id"] = f"msg_{self._answers}"
        events: list[Any] = [
            {"type": "message_start", "message": {**message, **more, "usage": {**start, "output_tokens": 1}}},
            {"type": "ping"},
        ]
        for index, (block, deltas) in enumerate(self._blocks(answer)):
            events.append({"type": "content_block_start", "index": index, "content_block": block})
            events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
            events.append({"type": "content_block_stop", "index": index})
        stop = "max_tokens" if answer.cut else "tool_use" if answer.calls else "end_turn"
        stop = "refusal" if answer.refused else stop
        end: dict[str, Any] = {**start, "output_tokens": usage.output}
        if self.model.details:
            end["output_tokens_details"] = {"thinking_tokens": usage.reasoning}
        events += [
            {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, **more, "usage": end},
            {"type": "message_stop"},
        ]
        return sse(events, named=True)

    def _blocks(self, answer: Answer) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
        if answer.reasoning_tokens:
            signature = self.tools.signer.sign(answer.reasoning, answer.reasoning_tokens, self._bound)
            deltas = [{"type": "thinking_delta", "thinking": answer.reasoning}] if answer.reasoning else []
            yield (
                {"type": "thinking", "thinking": "", "signature": ""},
                [*deltas, {"type": "signature_delta", "signature": signature}],
            )
        if answer.text:
            half = len(answer.text) // 2
            pieces = [p for p in (answer.text[:half], answer.text[half:]) if p]
            yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": p} for p in pieces]
        for call in answer.calls:
            yield (
                {"type": "tool_use", "id": call.id, "name": call.name, "input": {}},
                [{"type": "input_json_delta", "partial_json": p} for p in ("", call.text)],
            )


def _system(body: dict[str, Any]) -> list[dict[str, Any]]:
    system = body.get("system") or []
    return [{"type": "text", "text": system}] if isinstance(system, str) else list(system)


def _turn_start(messages: list[Any]) -> int:
    """Index of the newest user message that is not only tool results."""
    return max(
        (n for n, m in enumerate(messages) if m["role"] == "user" and any(b["type"] == "text" for b in m["content"])),
        default=0,
    )


def _loop(messages: list[Any]) -> list[Any]:
    """The answers of an open tool loop."""
    if not any(b["type"] == "tool_result" for b in messages[-1]["content"]):
        return []
    return [m for m in messages[_turn_start(messages) :] if m["role"] == "assistant"]


def _before(body: dict[str, Any], messages: list[Any]) -> str:
    """What a thought is bound to: system, tools and every message before it; thinking blocks may be removed."""
    parts = [canonical(body.get("system") or []), canonical(body.get("tools") or [])]
    for message in messages:
        for block in message["content"]:
            if block["type"] not in ("thinking", "redacted_thinking"):
                parts.append(message["role"] + canonical(block))
    return digest(*parts)
