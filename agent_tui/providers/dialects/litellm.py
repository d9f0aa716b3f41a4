"""LiteLLM's form of a request: chat completions with fields of its own for what that API has none for, joined or taken
apart again for the provider behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent_tui.models.messages import Metadata, ReasoningPart, TextPart
from agent_tui.models.requests import ModelSpec, Target
from agent_tui.providers.dialects import anthropic, chat, cohere, gemini, responses
from agent_tui.providers.dialects.chat import answer_message, chat_messages
from agent_tui.providers.dialects.claude import thinking_block
from agent_tui.providers.dialects.conversation import AssistantTurn, runs
from agent_tui.providers.dialects.outgoing import OutgoingRequest
from agent_tui.providers.dialects.record import Dialect
from agent_tui.records import dataclass


@dataclass(slots=True, frozen=True)
class LibraryCall:
    """Asks for what a method of the library streams."""

    method: str
    arguments: Metadata


def arguments(made: OutgoingRequest, spec: ModelSpec) -> tuple[str, Metadata]:
    """LiteLLM's method for a request, and what it is called with. Its names are those of chat completions, with fields
    of its own for what that API has none for."""
    target, dialect = made.target, made.dialect
    asked: Metadata = {"model": model_name(target, spec.model)}
    tools = made.tools
    asked["input" if target.api == "responses" else "messages"] = messages_for_litellm(made, tools)
    if target.api != "responses":
        asked["stream_options"] = {"include_usage": True}
        if tools:
            asked["tools"] = tools
        if dialect.thoughts_past_litellm and _has_content_thinking(asked["messages"]):
            # Its Mistral conversion (1.105–1.109) flattens content to text and drops thinking; its OpenAI one sends
            # the same body untouched.
            asked |= {"model": f"openai/{target.model}", "api_base": dialect.base}
            if dialect.no_usage_option:
                asked.pop("stream_options")
    method = "aresponses" if target.api == "responses" else "acompletion"
    return method, {**made.arguments, **asked, "drop_params": True, "max_retries": 0, "stream": True}


def messages_for_litellm(made: OutgoingRequest, tools: list[Metadata]) -> list[Metadata]:
    """The messages of a conversation as LiteLLM takes them."""
    if made.target.api == "responses":
        return list(responses.WIRE.body(made)["input"])
    if not made.dialect.merging:
        return chat_messages(made, tools)
    return chat_messages(made, tools, _answers)


def model_name(target: Target, configured: str) -> str:
    """LiteLLM's name of the model without an API route: the API is chosen by the method that is called."""
    provider, slash, rest = configured.partition("/")
    return f"{provider}/{rest.removeprefix('responses/')}" if slash else f"{target.provider}/{configured}"


def _has_content_thinking(messages: Sequence[Metadata]) -> bool:
    """Returns whether some answer goes back with thinking among its content blocks, as Mistral wants it."""
    return any(isinstance(m["content"], list) and any(b["type"] == "thinking" for b in m["content"]) for m in messages)


def _answers(answer: AssistantTurn, made: OutgoingRequest) -> Iterator[Metadata]:
    """An answer in several messages, which LiteLLM joins again: so it keeps its order."""
    for run in runs(answer.message.parts):
        thoughts = [
            part for n, part in run if isinstance(part, ReasoningPart) and made.plan.resent(answer.message.id, n)
        ]
        signed = made.family.signed_blocks
        message = answer_message(
            answer, [(n, p) for n, p in run if not (signed and isinstance(p, ReasoningPart))], made
        )
        if isinstance(message["content"], str) and not message["content"].strip():
            message["content"] = None
        if made.signed and (blocks := [block for part in thoughts if (block := thinking_block(part)) is not None]):
            message["thinking_blocks"] = blocks
        if made.dialect.own_signatures:
            if signature := _signature(message):
                message["content"] = message["content"] or "".join(p.text for _, p in run if isinstance(p, TextPart))
                message[_OTHERS] = {"thought_signatures": [signature]}
            for call in message.get("tool_calls") or ():
                if signature := _signature(call):
                    call[_OTHERS] = {"thought_signature": signature}
        if message["content"] or len(message) > 2:
            yield message


_OTHERS = "provider_specific_fields"


def _signature(place: Metadata) -> str | None:
    """Takes a thought signature from where Google's OpenAI-compatible endpoint has it."""
    found = place.pop("extra_content", None)
    return found["google"]["thought_signature"] if found is not None else None


def path_for_litellm(path: str, target: Target, dialect: Dialect) -> str:
    """The path of a configured address without what LiteLLM appends to it."""
    reader = dialect.wire.stream if dialect.wire is not None else None
    if reader is anthropic.AnthropicStream:
        return path.removesuffix("/v1/messages").removesuffix("/v1")
    if reader is gemini.GeminiStream:
        return path.partition("/models")[0] if path else dialect.host_path
    if reader is cohere.CohereStream:
        return cohere.path_of_call(path)
    if dialect.deployments:
        return chat.AZURE_PATH.sub("", path)
    return path.removesuffix("/responses" if target.api == "responses" else "/chat/completions") or dialect.host_path
