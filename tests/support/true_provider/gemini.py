"""Gemini's streamGenerateContent: thought signatures, pairs of function calls and responses, an input limit."""

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
    digest,
    only,
    words_of,
)

_TOP = words_of("contents systemInstruction tools toolConfig generationConfig safetySettings cachedContent model")
_PARTS = ["text", "thought", "thoughtSignature", "functionCall", "functionResponse", "inlineData"]
_CONFIG = words_of(
    "maxOutputTokens thinkingConfig temperature topP topK stopSequences candidateCount responseMimeType "
    "responseModalities"
)
DUMMY = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
"""What Google tells clients to send in place of a signature they do not have."""

A_CONTENT, A_CALL, A_RESULT, A_TOOL = 3, 6, 9, 7
_UNKNOWN = 'Invalid JSON payload received. Unknown name "{name}": Cannot find field.'


class Gemini:
    """One model behind ``/v1beta/models/NAME``. Its window is a limit on input alone."""

    explicit_cache = False
    strict_output = False

    def __init__(self, tools: Tools) -> None:
        self.tools, self.model = tools, tools.model

    def read(self, body: dict[str, Any], headers: Mapping[str, str], path: str) -> Question:
        if path.endswith(":countTokens"):
            body = body.get("generateContentRequest", body)
        body = _camel(body)
        if self.model.name not in path:
            raise Refused(f"models/{path.rpartition('/')[2]} is not found for API version v1beta", status=404)
        only(body, _TOP, "", _UNKNOWN)
        config = body.get("generationConfig") or {}
        only(config, _CONFIG, "generation_config.", _UNKNOWN)
        limit = config.get("maxOutputTokens")
        if limit is not None and not 1 <= limit <= self.model.max_output:
            raise Refused(
                f"Unable to submit request because it has a maxOutputTokens value of {limit} but the supported range "
                f"is from 1 (inclusive) to {self.model.max_output + 1} (exclusive). Update the value and try again."
            )
        contents = body.get("contents") or []
        self._check(contents)
        declared = [d for tool in body.get("tools") or () for d in tool.get("functionDeclarations") or ()]
        system = "\n".join(p["text"] for p in (body.get("systemInstruction") or {}).get("parts") or ())
        ahead = canonical({k: v for k, v in config.items() if k in ("thinkingConfig", "responseJsonSchema")})
        segments = [Segment("frame", ahead, 0)]
        segments += [Segment("tools", canonical(d), self.tools.count(canonical(d)) + A_TOOL) for d in declared]
        if system:
            segments.append(Segment("system", system, self.tools.count(system) + A_CONTENT))
        segments += self._contents(contents)
        last = next((c for c in reversed(contents) if c["role"] == "user" and _texts(c)), None)
        last_user = "\n".join(_texts(last)) if last else ""
        return Question(
            segments,
            limit,
            self.model.thinks,
            system,
            last_user,
            [d["name"] for d in declared],
            self.tools.count(last_user) + A_CONTENT,
        )

    def _check(self, contents: list[Any]) -> None:
        if not contents:
            raise Refused("GenerateContentRequest.contents: contents is not specified")
        turn = max((n for n, c in enumerate(contents) if c.get("role") == "user" and _texts(c)), default=-1)
        for n, content in enumerate(contents):
            if not content.get("parts"):
                raise Refused(f"GenerateContentRequest.contents[{n}].parts: must not be empty")
            for part in content["parts"]:
                only(part, _PARTS, f"contents[{n}].parts.", _UNKNOWN)
            calls = [p for p in content["parts"] if "functionCall" in p]
            if calls:
                self._check_calls(contents, n, calls, current=n > turn)
            answers = sum("functionResponse" in p for p in content["parts"])
            before = sum("functionCall" in p for p in contents[n - 1]["parts"]) if n else 0
            if answers and answers != before:
                raise Refused(
                    "Please ensure that the number of function response parts is equal to the number of function call "
                    "parts of the function call turn."
                )

    def _check_calls(self, contents: list[Any], n: int, calls: list[Any], current: bool) -> None:
        if n == 0 or contents[n - 1].get("role") != "user":
            raise Refused(
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn."
            )
        following = contents[n + 1]["parts"] if n + 1 < len(contents) else []
        if sum("functionResponse" in p for p in following) != len(calls):
            raise Refused(
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn."
            )
        signature = calls[0].get("thoughtSignature")
        if current and not signature:
            raise Refused(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
                "work correctly, and missing thought_signature may lead to degraded model performance."
            )
        if signature and signature != DUMMY and signature not in self.tools.signer.known:
            raise Refused("Corrupted thought signature.")

    def _contents(self, contents: list[Any]) -> Iterator[Segment]:
        turn = max((n for n, c in enumerate(contents) if c.get("role") == "user" and _texts(c)), default=-1)
        for n, content in enumerate(contents):
            kind = "assistant" if content["role"] == "model" else "user"
            tokens = A_CONTENT if kind == "user" else 0
            for part in content["parts"]:
                thought = self.tools.signer.known.get(part.get("thoughtSignature") or "")
                if thought is not None and n > turn:
                    yield Segment("thinking", part["thoughtSignature"], thought.tokens)
                if "functionCall" in part:
                    tokens += self.call_tokens(part["functionCall"]["name"], part["functionCall"].get("args") or {})
                elif "functionResponse" in part:
                    response = part["functionResponse"]["response"]
                    tokens += self.tools.count(_plain(response)) + A_RESULT
                elif not part.get("thought"):
                    tokens += self.tools.count(part.get("text") or "")
            yield Segment(kind, digest(canonical(content)), tokens)

    def call_tokens(self, name: str, arguments: Any) -> int:
        return self.tools.count(name) + self.tools.count(json.dumps(arguments, sort_keys=True)) + A_CALL

    def output(self, answer: Answer) -> int:
        return self.tools.count(answer.text) + sum(self.call_tokens(c.name, c.arguments) for c in answer.calls)

    def overflow(self, question: Question, asked: int) -> str:
        return (
            f"The input token count ({question.input}) exceeds the maximum number of tokens allowed "
            f"({self.model.window})."
        )

    def error(self, refused: Refused) -> bytes:
        status = "INVALID_ARGUMENT" if refused.status == 400 else "INTERNAL"
        return json.dumps({"error": {"code": refused.status, "message": refused.message, "status": status}}).encode()

    def counted(self, question: Question) -> bytes:
        return json.dumps({"totalTokens": question.input}).encode()

    def answer(self, question: Question, answer: Answer, usage: Usage) -> bytes:
        signature = None
        if answer.reasoning_tokens:
            signature = self.tools.signer.sign("", answer.reasoning_tokens)
        parts: list[dict[str, Any]] = []
        if answer.reasoning:
            parts.append({"text": answer.reasoning[:200], "thought": True})
        if answer.text:
            parts.append({"text": answer.text})
        for call in answer.calls:
            parts.append({"functionCall": {"name": call.name, "args": call.arguments}})
        if signature:
            at = next((p for p in parts if "functionCall" in p), None)
            if at is None:
                at = {"text": ""}
                parts.append(at)
            at["thoughtSignature"] = signature
        meta = _usage(usage)
        base = {"modelVersion": self.model.name, "responseId": "r1"}
        events: list[Any] = [
            {"candidates": [{"content": {"parts": [p], "role": "model"}, "index": 0}], "usageMetadata": meta, **base}
            for p in parts
        ]
        last = {"parts": [{"text": ""}], "role": "model"}
        reason = "MAX_TOKENS" if answer.cut else "STOP"
        events.append(
            {"candidates": [{"content": last, "finishReason": reason, "index": 0}], "usageMetadata": meta, **base}
        )
        return sse(events)


def _usage(usage: Usage) -> dict[str, Any]:
    found: dict[str, Any] = {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": usage.output - usage.reasoning,
        "totalTokenCount": usage.input + usage.output,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": usage.input}],
    }
    if usage.reasoning:
        found["thoughtsTokenCount"] = usage.reasoning
    if usage.cache_read:
        found["cachedContentTokenCount"] = usage.cache_read
    return found


def _texts(content: Any) -> list[str]:
    return [p["text"] for p in content["parts"] if p.get("text") and not p.get("thought")]


def _plain(value: Any) -> str:
    """What the model reads of a function's response."""
    if isinstance(value, dict) and len(value) == 1:
        value = next(iter(value.values()))
    return value if isinstance(value, str) else canonical(value)


def _camel(value: Any) -> Any:
    """The API takes both spellings of its own fields."""
    names = {
        "system_instruction": "systemInstruction",
        "function_declarations": "functionDeclarations",
        "function_call": "functionCall",
        "function_response": "functionResponse",
        "max_output_tokens": "maxOutputTokens",
        "thinking_config": "thinkingConfig",
        "generation_config": "generationConfig",
        "thought_signature": "thoughtSignature",
    }
    if isinstance(value, dict):
        return {names.get(k, k): v if k in ("args", "parameters", "response") else _camel(v) for k, v in value.items()}
    return [_camel(v) for v in value] if isinstance(value, list) else value
