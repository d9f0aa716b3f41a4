"""OpenAI's Responses API without server-side state: items, encrypted reasoning, its pairing rules."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.loopback import sse
from tests.support.true_provider.wire import (
    Answer,
    Question,
    Refused,
    Segment,
    Tools,
    Usage,
    canonical,
    declared,
    digest,
    only,
    words_of,
)

_TOP = words_of(
    "model input instructions tools tool_choice stream store include reasoning max_output_tokens "
    "prompt_cache_key text parallel_tool_calls temperature top_p metadata truncation service_tier"
)
_ITEMS = {
    "message": ("type", "id", "role", "content", "status", "phase"),
    "reasoning": ("type", "id", "summary", "encrypted_content", "content", "status"),
    "function_call": ("type", "id", "call_id", "name", "arguments", "status"),
    "function_call_output": ("type", "id", "call_id", "output", "status"),
}
_UNKNOWN = "Unknown parameter: '{name}'."
A_MESSAGE, A_CALL, A_TOOL, PRIMING = 4, 8, 8, 4


class Responses:
    """One model behind ``/v1/responses``. It refuses an input over the window; an answer that does not fit is cut."""

    explicit_cache = False
    strict_output = False

    def __init__(self, tools: Tools) -> None:
        self.tools, self.model = tools, tools.model
        self._belongs: dict[str, str] = {}
        self._numbers = 0

    def read(self, body: dict[str, Any], headers: Mapping[str, str], path: str) -> Question:
        only(body, _TOP, "", _UNKNOWN)
        if body.get("model") != self.model.name:
            raise Refused(f"The model '{body.get('model')}' does not exist.", status=404, code="model_not_found")
        limit = body.get("max_output_tokens")
        if limit is not None and limit < 16:
            raise Refused(
                f"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got {limit} "
                "instead."
            )
        if limit is not None and limit > self.model.max_output:
            raise Refused(
                f"Invalid 'max_output_tokens': integer above maximum value. "
                f"Expected a value <= {self.model.max_output}, but got {limit} instead."
            )
        items = [{"type": "message", **item} if "role" in item else item for item in body.get("input") or []]
        if not items:
            raise Refused('One of "input" or "previous_response_id" must be provided.')
        self._check(items)
        tools = body.get("tools") or []
        ahead = canonical([body.get("reasoning"), body.get("text")])
        segments = [Segment("frame", ahead, 0), *self._fixed(body, tools), *self._items(items)]
        effort = (body.get("reasoning") or {}).get("effort", "medium")
        users = [_text(item) for item in items if item.get("role") == "user"]
        last = users[-1] if users else ""
        return Question(
            segments,
            limit,
            self.model.thinks and effort not in ("none", "minimal"),
            body.get("instructions") or "",
            last,
            [tool["name"] for tool in tools],
            self.tools.count(last) + A_MESSAGE,
        )

    def _check(self, items: list[Any]) -> None:
        calls = {i["call_id"] for i in items if i["type"] == "function_call"}
        outputs = {i["call_id"] for i in items if i["type"] == "function_call_output"}
        ids: set[str] = set()
        for n, item in enumerate(items):
            kind = item.get("type")
            if kind not in _ITEMS:
                raise Refused(f"Invalid value: '{kind}'. (input[{n}])")
            only(item, _ITEMS[kind], f"input[{n}].", _UNKNOWN)
            if (own := item.get("id")) is not None:
                if own in ids:
                    raise Refused(
                        f"Duplicate item found with id {own}. Remove duplicate items from your input and try again."
                    )
                ids.add(own)
            if kind == "function_call_output" and item["call_id"] not in calls:
                raise Refused(f"No tool call found for function call output with call_id {item['call_id']}.")
            if kind == "function_call" and item["call_id"] not in outputs:
                raise Refused(f"No tool output found for function call {item['call_id']}.")
            if kind == "reasoning":
                self._check_thought(items, n)
            partner = self._belongs.get(item.get("id") or "")
            if partner is not None and partner not in ids:
                raise Refused(
                    f"Item '{item['id']}' of type '{kind}' was provided without its required 'reasoning' item: "
                    f"'{partner}'."
                )

    def _check_thought(self, items: list[Any], n: int) -> None:
        item = items[n]
        thought = self.tools.signer.known.get(item.get("encrypted_content") or "")
        if thought is None or thought.text != item["id"]:
            raise Refused(
                f"The encrypted content for item {item['id']} could not be verified.", code="invalid_encrypted_content"
            )
        if (
            n + 1 == len(items)
            or items[n + 1]["type"] not in ("message", "function_call", "reasoning")
            or (items[n + 1].get("role") == "user")
        ):
            raise Refused(f"Item '{item['id']}' of type 'reasoning' was provided without its required following item.")

    def _fixed(self, body: dict[str, Any], tools: list[Any]) -> Iterator[Segment]:
        for tool in tools:
            only(tool, ("type", "name", "description", "parameters", "strict"), "tools[].", _UNKNOWN)
            text = declared(tool["name"], tool["description"], tool["parameters"])
            yield Segment("tools", text, self.tools.count(text) + A_TOOL)
        if instructions := body.get("instructions"):
            yield Segment("system", instructions, self.tools.count(instructions) + A_MESSAGE)

    def _items(self, items: list[Any]) -> Iterator[Segment]:
        last_user = max((n for n, i in enumerate(items) if i.get("role") == "user"), default=-1)
        for n, item in enumerate(items):
            kind = item["type"]
            if kind == "reasoning":
                if n > last_user:
                    yield Segment("thinking", item["id"], self.tools.signer.known[item["encrypted_content"]].tokens)
            elif kind == "function_call":
                yield Segment("assistant", digest(canonical(item)), self.call_tokens(item["name"], item["arguments"]))
            elif kind == "function_call_output":
                output = item["output"]
                text = output if isinstance(output, str) else "\n".join(b.get("text", "") for b in output)
                yield Segment("result", digest(canonical(item)), self.tools.count(text) + 6)
            else:
                role = "user" if item["role"] == "user" else item["role"]
                yield Segment(role, digest(canonical(item)), self.tools.count(_text(item)) + A_MESSAGE)
        yield Segment("frame", str(len(items)), PRIMING)

    def call_tokens(self, name: str, arguments: str) -> int:
        return self.tools.count(name) + self.tools.count(arguments) + A_CALL

    def output(self, answer: Answer) -> int:
        text = self.tools.count(answer.text) + A_MESSAGE if answer.text else 0
        return text + sum(self.call_tokens(c.name, c.text) for c in answer.calls)

    def overflow(self, question: Question, asked: int) -> str:
        return "Your input exceeds the context window of this model. Please adjust your input and try again."

    def error(self, refused: Refused) -> bytes:
        kind = "server_error" if refused.status >= 500 else "invalid_request_error"
        inner = {"message": refused.message, "type": kind, "param": "input", "code": refused.code or None}
        return json.dumps({"error": inner}).encode()

    def counted(self, question: Question) -> bytes:
        return json.dumps({"object": "response.input_tokens", "input_tokens": question.input}).encode()

    def answer(self, question: Question, answer: Answer, usage: Usage) -> bytes:
        response = {"id": "resp_1", "object": "response", "created_at": 1, "model": self.model.name, "tools": []}
        events: list[Any] = [
            {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}
        ]
        output: list[dict[str, Any]] = []
        for index, (item, own) in enumerate(self._output_items(answer)):
            events += [{**event, "output_index": index} for event in own]
            output.append(item)
        status = "incomplete" if answer.cut else "completed"
        end: dict[str, Any] = {**response, "status": status, "usage": _usage(usage), "output": output}
        if answer.cut:
            end["incomplete_details"] = {"reason": "max_output_tokens"}
        events.append({"type": f"response.{status}", "response": end})
        return sse([{**event, "sequence_number": n} for n, event in enumerate(events)], named=True)

    def _output_items(self, answer: Answer) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
        thought = ""
        if answer.reasoning_tokens:
            thought = self._id("rs")
            secret = self.tools.signer.sign(thought, answer.reasoning_tokens)
            item: dict[str, Any] = {"id": thought, "type": "reasoning", "summary": [], "encrypted_content": secret}
            added = {**item, "encrypted_content": "unfinished"}
            yield (
                item,
                [
                    {"type": "response.output_item.added", "item": added},
                    {"type": "response.output_item.done", "item": item},
                ],
            )
        if answer.text:
            item = {"id": self._id("msg"), "type": "message", "role": "assistant", "status": "completed"}
            item["content"] = [{"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}]
            self._bind(item["id"], thought)
            delta = {"item_id": item["id"], "content_index": 0, "delta": answer.text, "logprobs": []}
            yield (
                item,
                [
                    {"type": "response.output_item.added", "item": {**item, "content": [], "status": "in_progress"}},
                    {"type": "response.output_text.delta", **delta},
                    {"type": "response.output_item.done", "item": item},
                ],
            )
        for call in answer.calls:
            item = {"id": self._id("fc"), "type": "function_call", "status": "completed", "name": call.name}
            item |= {"call_id": call.id, "arguments": call.text}
            self._bind(item["id"], thought)
            yield (
                item,
                [
                    {"type": "response.output_item.added", "item": {**item, "arguments": "", "status": "in_progress"}},
                    {"type": "response.function_call_arguments.delta", "item_id": item["id"], "delta": call.text},
                    {"type": "response.output_item.done", "item": item},
                ],
            )

    def _id(self, prefix: str) -> str:
        self._numbers += 1
        return f"{prefix}_{self._numbers:04d}"

    def _bind(self, item_id: str, thought: str) -> None:
        if thought:
            self._belongs[item_id] = thought


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }


def _text(item: dict[str, Any]) -> str:
    content = item.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content or ())
