"""From our request to the arguments of a LiteLLM call, for every provider."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agent_tui.models.messages import Metadata
from agent_tui.models.requests import ModelInfo, ModelRequest, Target
from agent_tui.providers.catalog import dialect_of, family_record, forgets, images_of
from agent_tui.providers.chat_form import ChatForm, chat_messages, has_content_thinking
from agent_tui.providers.dialects.anthropic import add_breakpoints
from agent_tui.providers.dialects.encoding import is_summary
from agent_tui.providers.dialects.image_limits import sendable
from agent_tui.providers.dialects.record import Dialect
from agent_tui.providers.dialects.responses import response_input
from agent_tui.providers.replay import ReplayPlan
from agent_tui.providers.schemas import output_arguments
from agent_tui.providers.thinking import Thinking, decide
from agent_tui.text.clean import encodable

_MOST_UNASKED = 32_000
"""Tokens of output that are asked for at most where nothing says how many."""

_ANY: Metadata = {"type": "object", "properties": {}}


@dataclass(slots=True, frozen=True)
class WireCall:
    """``method`` of LiteLLM to call with ``kwargs``; ``notes`` are for the user."""

    method: str
    kwargs: Metadata
    notes: tuple[str, ...] = ()


def build_call(request: ModelRequest, info: ModelInfo) -> WireCall:
    """Everything LiteLLM needs but the connection (key, address, timeouts). Never raises for a valid conversation.

    The same request gives the same bytes, and a longer conversation begins with the bytes of the shorter one, apart
    from cache markers, which move.
    """
    plan, thinking = decide(request, info)
    if info.images is not False:
        request = replace(request, messages=sendable(request.messages, images_of(info.target)))
    method, kwargs = call_arguments(request, info, plan, thinking)
    kwargs.update(drop_params=True, max_retries=0, stream=True)
    return WireCall(method, kwargs, thinking.notes)


def call_arguments(
    request: ModelRequest, info: ModelInfo, plan: ReplayPlan, thinking: Thinking
) -> tuple[str, Metadata]:
    """LiteLLM's method and what the request asks of it, all messages as they are."""
    build = _responses if info.target.api == "responses" else _chat
    method, kwargs = build(request, info, thinking, plan)
    kwargs.update(thinking.kwargs)
    _hold_to(kwargs, request, info)
    for name, value in request.spec.extra.items():
        if isinstance(value, dict) and isinstance(kwargs.get(name), dict):
            kwargs[name] = {**kwargs[name], **value}
        else:
            kwargs[name] = value
    return method, kwargs


def _hold_to(kwargs: Metadata, request: ModelRequest, info: ModelInfo) -> None:
    """Adds what holds the answer to its schema. What the user configured under the same name stands alone."""
    tools = bool(kwargs.get("tools")) and not dialect_of(info.target.provider).no_tools
    wanted = output_arguments(request, info, tools)
    if not wanted or wanted.keys() & (request.spec.extra.keys() | request.spec.extra.get("extra_body", {}).keys()):
        return
    if "output_config" in wanted and (effort := kwargs.pop("reasoning_effort", None)) is not None:
        # Said in full: LiteLLM would put its own in place of the whole field.
        kwargs["thinking"] = {"type": "adaptive", "display": "summarized"}
        kwargs["output_config"] = {"effort": effort}
    for name, value in wanted.items():
        known = kwargs.get(name)
        kwargs[name] = {**known, **value} if isinstance(known, dict) and isinstance(value, dict) else value


def model_name(target: Target, configured: str) -> str:
    """LiteLLM's name of the model without an API route: the API is chosen by the method that is called."""
    provider, slash, rest = configured.partition("/")
    if slash and rest.startswith("responses/"):
        return f"{provider}/{rest.removeprefix('responses/')}"
    return configured if slash else f"{target.provider}/{configured}"


def _chat(request: ModelRequest, info: ModelInfo, thinking: Thinking, plan: ReplayPlan) -> tuple[str, Metadata]:
    target = info.target
    dialect, family = dialect_of(target.provider), family_record(target.family)
    form = ChatForm.of(target, info.images)
    texts = [encodable(block.text) for block in request.system if block.text.strip()]
    documents = [encodable(block.text) for block in request.documents if block.text.strip()]
    messages = chat_messages(request.messages, plan, form, texts, documents)
    tools = [
        {
            "type": "function",
            "function": {"name": tool.name, "description": encodable(tool.description), "parameters": tool.parameters},
        }
        for tool in request.tools
    ]
    used = sorted({call["function"]["name"] for m in messages for call in m.get("tool_calls") or ()})
    stand_in = bool(used) and not tools and form.blocks
    if stand_in:
        # A conversation with calls is refused when no tool is declared, as in a request for a summary.
        tools = [{"type": "function", "function": {"name": n, "description": "", "parameters": _ANY}} for n in used]
    if form.lists:
        summary = bool(request.messages) and is_summary(request.messages[0].message)
        add_breakpoints(messages, tools, len(texts), summary, forgets(target), ttl=request.spec.cache_ttl)
    kwargs: Metadata = {
        "model": model_name(target, request.spec.model),
        "messages": messages,
        "stream_options": {"include_usage": True},
    }
    if tools:
        kwargs["tools"] = tools
    if stand_in and dialect.wire == "anthropic":
        kwargs["tool_choice"] = "none"
    limit = request.max_output
    if limit is None and form.lists and family.output is not None:
        limit = min(info.limits.max_output or family.output, _MOST_UNASKED)
    if limit is not None:
        kwargs["max_tokens"] = limit
    if dialect.cache == family.cache == "key":
        kwargs["prompt_cache_key"] = request.session_id
    if dialect.pins_context and info.limits.window:
        # Else it loads the model anew with its own small default, and cuts the prompt off silently.
        kwargs["num_ctx"] = info.limits.window
    if dialect.thoughts_past_litellm and has_content_thinking(messages):
        _past_litellm(kwargs, target, dialect)
    if dialect.usage_field:
        kwargs["extra_body"] = {"usage": {"include": True}}
    return "acompletion", kwargs


def _past_litellm(kwargs: Metadata, target: Target, dialect: Dialect) -> None:
    """LiteLLM's Mistral conversion (1.105–1.109) flattens content to text and drops thinking; its OpenAI one sends
    the same body untouched."""
    kwargs["model"] = f"openai/{target.model}"
    kwargs["api_base"] = dialect.base
    if dialect.no_usage_option:
        kwargs.pop("stream_options")


def _responses(request: ModelRequest, info: ModelInfo, thinking: Thinking, plan: ReplayPlan) -> tuple[str, Metadata]:
    target = info.target
    kwargs: Metadata = {
        "model": model_name(target, request.spec.model),
        "input": response_input(request.messages, plan, info.images),
        "store": False,
    }
    if info.reasoning is not False:
        kwargs["include"] = ["reasoning.encrypted_content"]
    blocks = [encodable(block.text) for block in (*request.system, *request.documents) if block.text.strip()]
    if blocks:
        kwargs["instructions"] = "\n\n".join(blocks)
    if request.tools:
        kwargs["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": encodable(tool.description),
                "parameters": tool.parameters,
                "strict": False,
            }
            for tool in request.tools
        ]
    if request.max_output is not None:
        kwargs["max_output_tokens"] = request.max_output
    if dialect_of(target.provider).cache == "key":
        kwargs["prompt_cache_key"] = request.session_id
    return "aresponses", kwargs
