"""OpenAI's chat completions, in two flavours: OpenAI's own with hidden reasoning, and a local server's (vLLM),
which shows its reasoning and keeps what comes back of it inside a tool loop, and whose template may want roles to
alternate."""

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
    only,
    words_of,
)

_TOP = words_of(
    "model messages max_tokens max_completion_tokens tools tool_choice stream stream_options temperature "
    "top_p stop prompt_cache_key reasoning_effort parallel_tool_calls seed user store metadata n thinking "
    "response_format"
)
_FIELDS = {
    "system": ("role", "content", "name"),
    "developer": ("role", "content", "name"),
    "user": ("role", "content", "name"),
    "assistant": ("role", "content", "name", "tool_calls", "refusal", "reasoning_content", "reasoning"),
    "tool": ("role", "content", "tool_call_id"),
}
A_MESSAGE, A_CALL, A_TOOL, PRIMING = 4, 9, 8, 3


class Chat:
    """One model behind ``/v1/chat/completions``."""

    explicit_cache = False
    strict_output = True

    def __init__(self, tools: Tools) -> None:
        self.tools, self.model = tools, tools.model
        self.hidden = not tools.model.templates
        self._count = 0

    def read(self, body: dict[str, Any], headers: Mapping[str, str], path: str) -> Question:
        unknown = "Unrecognized request argument supplied: {name}"
        only(body, _TOP, "", unknown)
        if body.get("model") != self.model.name:
            raise Refused(f"The model `{body.get('model')}` does not exist", status=404, code="model_not_found")
        if self.hidden and self.model.thinks and "max_tokens" in body:
            raise Refused(
                "Unsupported parameter: 'max_tokens' is not supported with this model. "
                "Use 'max_completion_tokens' instead."
            )
        limit = body.get("max_completion_tokens", body.get("max_tokens"))
        if limit is not None and limit < 1:
            raise Refused(f"max_tokens must be at least 1, got {limit}.")
        if limit is not None and limit > self.model.max_output:
            raise Refused(
                f"max_tokens is too large: {limit}. This model supports at most {self.model.max_output} completion "
                f"tokens, whereas you provided {limit}."
            )
        messages = body.get("messages") or []
        self._check(messages)
        tools = body.get("tools") or []
        effort = body.get("reasoning_effort")
        # How hard to think, and into which form, is said to these models before all else.
        ahead = canonical([effort, body.get("thinking"), body.get("response_format")])
        segments = [Segment("frame", ahead, 0), *self._tools(tools), *self._messages(messages)]
        thinking = self.model.thinks and (effort not in ("none", "minimal") if self.hidden else True)
        users = [m for m in messages if m["role"] == "user"]
        last = _text(users[-1]["content"]) if users else ""
        system = "\n".join(_text(m["content"]) for m in messages if m["role"] in ("system", "developer"))
        names = [t["function"]["name"] for t in tools]
        newest = self.tools.count(last) + A_MESSAGE
        return Question(segments, limit, thinking, system, last, names, newest)

    def _check(self, messages: list[Any]) -> None:
        if not messages:
            raise Refused("Invalid 'messages': empty array. Expected an array with minimum length 1.")
        open_calls: list[str] = []
        previous = ""
        for n, message in enumerate(messages):
            role = message.get("role")
            if role not in _FIELDS:
                raise Refused(f"Invalid value: '{role}'. Supported values are: {', '.join(_FIELDS)}.")
            only(message, _FIELDS[role], f"messages[{n}].", "Unrecognized key in message: {name}")
            if role == "tool":
                if message.get("tool_call_id") not in open_calls:
                    raise Refused(
                        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                        "'tool_calls'."
                    )
                open_calls.remove(message["tool_call_id"])
            elif open_calls:
                raise Refused(
                    "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                    "'tool_call_id'. The following tool_call_ids did not have response messages: "
                    + ", ".join(open_calls)
                )
            if role == "assistant":
                open_calls = self._check_answer(message, n)
            if role != "assistant" and message.get("content") is None:
                raise Refused(f"Invalid value for 'content': expected a string, got null. (messages[{n}])")
            if self.model.alternates:
                self._check_template(role, previous, n)
            previous = role
        if open_calls:
            raise Refused(f"The following tool_call_ids did not have response messages: {', '.join(open_calls)}")

    def _check_answer(self, message: dict[str, Any], n: int) -> list[str]:
        calls = message.get("tool_calls")
        if calls is not None and not calls:
            raise Refused(f"Invalid 'messages[{n}].tool_calls': empty array.")
        if not calls and message.get("content") is None:
            raise Refused(f"Invalid value for 'content': expected a string, got null. (messages[{n}])")
        for call in calls or ():
            only(call, ("id", "type", "function"), f"messages[{n}].tool_calls.", "Unrecognized key in message: {name}")
            try:
                if not isinstance(json.loads(call["function"]["arguments"]), dict):
                    raise ValueError
            except ValueError:
                raise Refused("Can only get item pairs from a mapping.") from None
        return [call["id"] for call in calls or ()]

    def _check_template(self, role: str, previous: str, n: int) -> None:
        if role == "system" and n:
            raise Refused("System message must be at the beginning.")
        after = {"user": ("", "system", "assistant"), "assistant": ("user", "tool"), "tool": ("assistant", "tool")}
        if role in after and previous not in after[role]:
            raise Refused("Conversation roles must alternate user/assistant/user/assistant/...")

    def _tools(self, tools: list[Any]) -> Iterator[Segment]:
        for tool in tools:
            own = tool["function"]
            text = canonical(tool)
            if self.hidden:
                text = declared(own["name"], own.get("description", ""), own.get("parameters") or {})
            yield Segment("tools", text, self.tools.count(text) + A_TOOL)

    def _messages(self, messages: list[Any]) -> Iterator[Segment]:
        last_user = max((n for n, m in enumerate(messages) if m["role"] == "user"), default=-1)
        for n, message in enumerate(messages):
            role = message["role"]
            text = _text(message.get("content"))
            kind = "system" if role in ("system", "developer") else "result" if role == "tool" else role
            thought = message.get("reasoning_content") or message.get("reasoning") or ""
            if role == "assistant" and thought and not self.hidden and n > last_user:
                yield Segment("thinking", thought, self.tools.count(thought))
            if role == "assistant":
                calls = sum(
                    self.call_tokens(c["function"]["name"], c["function"]["arguments"]) for c in _calls(message)
                )
                yield Segment(kind, canonical(message), self.tools.count(text) + calls + A_MESSAGE)
            else:
                yield Segment(kind, canonical(message), self.tools.count(text) + A_MESSAGE)
        yield Segment("frame", str(len(messages)), PRIMING)

    def call_tokens(self, name: str, arguments: str) -> int:
        return self.tools.count(name) + self.tools.count(arguments) + A_CALL

    def output(self, answer: Answer) -> int:
        return self.tools.count(answer.text) + sum(self.call_tokens(c.name, c.text) for c in answer.calls) + 1

    def overflow(self, question: Question, asked: int) -> str:
        window, size, functions = self.model.window, question.input, question.of("tools")
        if not self.hidden and size > window:
            return (
                f"This model's maximum context length is {window} tokens. However, your request has {size} input "
                "tokens. Please reduce the length of the input messages."
            )
        if not self.hidden and self._count % 2:
            self._count += 1
            return (
                f"'max_tokens' or 'max_completion_tokens' is too large: {asked}. This model's maximum context length "
                f"is {window} tokens and your request has {size} input tokens ({asked} > {window} - {size})."
            )
        self._count += 1
        if functions and self.hidden:
            return (
                f"This model's maximum context length is {window} tokens. However, you requested {size + asked} tokens "
                f"({size - functions} in the messages, {functions} in the functions, and {asked} in the completion). "
                "Please reduce the length of the messages, functions, or completion."
            )
        return (
            f"This model's maximum context length is {window} tokens. However, you requested {size + asked} tokens "
            f"({size} in the messages, {asked} in the completion). Please reduce the length of the messages or "
            "completion."
        )

    def error(self, refused: Refused) -> bytes:
        if not self.hidden:
            value: dict[str, Any] = {"object": "error", "message": refused.message, "type": "BadRequestError"}
            return json.dumps({**value, "param": None, "code": refused.status}).encode()
        kind = "server_error" if refused.status >= 500 else "invalid_request_error"
        inner = {"message": refused.message, "type": kind, "param": "messages", "code": refused.code or None}
        return json.dumps({"error": inner}).encode()

    def counted(self, question: Question) -> bytes:
        raise Refused("Not Found", status=404)

    def answer(self, question: Question, answer: Answer, usage: Usage) -> bytes:
        base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": self.model.name}
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        if answer.reasoning and not self.hidden:
            deltas.append({"reasoning_content": answer.reasoning})
        if answer.text:
            half = len(answer.text) // 2
            deltas += [{"content": piece} for piece in (answer.text[:half], answer.text[half:]) if piece]
        for n, call in enumerate(answer.calls):
            function = {"name": call.name, "arguments": ""}
            deltas.append({"tool_calls": [{"index": n, "id": call.id, "type": "function", "function": function}]})
            deltas.append({"tool_calls": [{"index": n, "function": {"arguments": call.text}}]})
        finish = "length" if answer.cut else "tool_calls" if answer.calls else "stop"
        events: list[Any] = [
            {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
        ]
        events.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        events.append({**base, "choices": [], "usage": self._usage(usage)})
        events.append("[DONE]")
        return sse(events)

    def _usage(self, usage: Usage) -> dict[str, Any]:
        found: dict[str, Any] = {
            "prompt_tokens": usage.input,
            "completion_tokens": usage.output,
            "total_tokens": usage.input + usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        }
        if self.model.hits:
            found |= {
                "prompt_cache_hit_tokens": usage.cache_read,
                "prompt_cache_miss_tokens": usage.input - usage.cache_read,
            }
        if self.model.details:
            found["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning}
        return found


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(block.get("text", "") for block in content)
    return content or ""


def _calls(message: dict[str, Any]) -> list[dict[str, Any]]:
    return message.get("tool_calls") or []
