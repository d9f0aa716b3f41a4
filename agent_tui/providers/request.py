"""From our request to a call of its model's API: what of the conversation goes out, and all that is asked for beside
it. Each API's file in ``dialects`` makes its body of that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import replace

from agent_tui.models.messages import Metadata
from agent_tui.models.requests import ModelInfo, ModelRequest, SentMessage, SystemBlock, ToolSchema
from agent_tui.models.tool_schemas import sound_schema
from agent_tui.providers.catalog import dialect_of, family_record, forgets, images_of, limits_in, sees
from agent_tui.providers.dialects.conversation import AssistantTurn, ToolNames, is_summary
from agent_tui.providers.dialects.outgoing import CacheMarks, OutgoingRequest
from agent_tui.providers.dialects.record import ModelFamily
from agent_tui.providers.dialects.shared import ReplayPlan, Thinking
from agent_tui.providers.images import sendable, within_bytes
from agent_tui.providers.plain_turns import plain_turns
from agent_tui.providers.reasoning import decide, text_before
from agent_tui.providers.schemas import output_arguments
from agent_tui.text.clean import encodable

_MOST_UNASKED = 32_000
"""Tokens of output that are asked for at most where nothing says how many."""
_ANY: Metadata = {"type": "object", "properties": {}}


def build_call(request: ModelRequest, info: ModelInfo) -> OutgoingRequest:
    """Everything of a call but the connection (key, address, timeouts). Never raises for a valid conversation.

    The same request gives the same bytes, and a longer conversation begins with the bytes of the shorter one, apart
    from cache markers, which move.
    """
    plan, thinking = decide(request, info)
    request = replace(request, messages=shown(request, info))
    if as_text := text_before(request.messages, request.replay):
        spoken = [*plain_turns(request.messages[:as_text]), *request.messages[as_text:]]
        request = replace(request, messages=spoken, sent_before=0)
    return outgoing(request, info, plan, thinking)


def shown(request: ModelRequest, info: ModelInfo) -> list[SentMessage]:
    """The messages of a request with a line in the place of each picture and file that is not taken."""
    items = sendable(request.messages, images_of(info.target)) if info.images is not False else request.messages
    most = request.replay.most_media
    return items if most is None else within_bytes(items, most)


def outgoing(request: ModelRequest, info: ModelInfo, plan: ReplayPlan, thinking: Thinking) -> OutgoingRequest:
    """The request as it goes out, all messages as they are."""
    target, texts = info.target, _texts(request.system)
    dialect = dialect_of(target.provider)
    names = ToolNames((tool.name for tool in request.tools if not tool.provider), dialect.tool_names)
    made = OutgoingRequest(target, dialect, family_record(target.family), request.messages, plan, names, sees(info))
    made.rule, made.notes = request.replay, thinking.notes
    made.system = (*texts, *_texts(request.documents))
    if made.marked:
        summary = bool(request.messages) and is_summary(request.messages[0].message)
        made.marks = CacheMarks(request.spec.cache_ttl, len(texts), summary, forgets(target), request.sent_before)
    arguments = (_responses if target.api == "responses" else _chat)(made, request, info)
    arguments.update(thinking.kwargs)
    _hold_to(arguments, request, info)
    for name, value in deepcopy(request.spec.extra).items():
        if isinstance(value, dict) and isinstance(arguments.get(name), dict):
            arguments[name] = {**arguments[name], **value}
        else:
            arguments[name] = value
    if request.capped and (most := request.max_output) is not None:
        for place, name in limits_in(arguments, target):
            own = place[name]
            place[name] = min(int(own), most) if isinstance(own, (int, float)) and own > 0 else most
    made.arguments = arguments
    return made


def _hold_to(arguments: Metadata, request: ModelRequest, info: ModelInfo) -> None:
    """Adds what holds the answer to its schema. What the user configured under the same name stands alone."""
    if request.output_schema is None:
        return
    tools = bool(arguments.get("tools")) and not dialect_of(info.target.provider).no_tools
    wanted = output_arguments(request, info, tools)
    if not wanted or wanted.keys() & (request.spec.extra.keys() | request.spec.extra.get("extra_body", {}).keys()):
        return
    if "output_config" in wanted and (effort := arguments.pop("reasoning_effort", None)) is not None:
        # Said in full: LiteLLM would put its own in place of the whole field.
        arguments["thinking"] = {"type": "adaptive", "display": "summarized"}
        arguments["output_config"] = {"effort": effort}
    for name, value in wanted.items():
        known = arguments.get(name)
        arguments[name] = {**known, **value} if isinstance(known, dict) and isinstance(value, dict) else value


def _chat(made: OutgoingRequest, request: ModelRequest, info: ModelInfo) -> Metadata:
    """The arguments that every API but Responses takes, by the names of chat completions."""
    dialect, family = made.dialect, made.family
    arguments: Metadata = {}
    tools = [
        tool.provider or {"type": "function", "function": _declared(tool, made.names, family)} for tool in request.tools
    ]
    stand_in = not tools and made.signed
    if stand_in:
        # A conversation with calls is refused when no tool is declared, as in a request for a summary.
        used = sorted(set(_called(made)))
        tools = [{"type": "function", "function": {"name": n, "description": "", "parameters": _ANY}} for n in used]
    if tools:
        arguments["tools"] = tools
    if stand_in and tools and dialect.wire is not None and dialect.wire.chooses_none:
        arguments["tool_choice"] = "none"
    if request.max_output is not None:
        arguments["max_tokens"] = request.max_output
    elif output := (family.output if made.marked else None) or (dialect.wire and dialect.wire.output):
        arguments["max_tokens"] = min(info.limits.max_output or output, _MOST_UNASKED)
    if dialect.cache == family.cache == "key":
        arguments["prompt_cache_key"] = request.session_id
    if dialect.pins_context and info.limits.window:
        # Else it loads the model anew with its own small default, and cuts the prompt off silently.
        arguments["num_ctx"] = info.limits.window
    if dialect.usage_field:
        arguments["extra_body"] = {"usage": {"include": True}}
    return arguments


def _called(made: OutgoingRequest) -> Iterator[str]:
    for turn in made.turns():
        if isinstance(turn, AssistantTurn):
            yield from (call.name for call in turn.calls.values())


def _declared(tool: ToolSchema, names: ToolNames, family: ModelFamily) -> Metadata:
    return {
        "name": names.sent(tool.name),
        "description": encodable(tool.description),
        "parameters": sound_schema(tool.parameters, family.properties),
    }


def _texts(blocks: Sequence[SystemBlock]) -> list[str]:
    return [encodable(block.text) for block in blocks if block.text.strip()]


def _responses(made: OutgoingRequest, request: ModelRequest, info: ModelInfo) -> Metadata:
    """The arguments that the Responses API takes."""
    arguments: Metadata = {"store": False}
    if info.reasoning is not False and not request.replay.needs("no reasoning"):
        arguments["include"] = ["reasoning.encrypted_content"]
    if made.system:
        arguments["instructions"] = "\n\n".join(made.system)
    if request.tools:
        own = made.dialect.search
        if own is not None and own.include and any(tool.provider for tool in request.tools):
            arguments["include"] = [*arguments.get("include", ()), *own.include]
        arguments["tools"] = [
            tool.provider or {"type": "function", **_declared(tool, made.names, made.family), "strict": False}
            for tool in request.tools
        ]
    if request.max_output is not None:
        arguments["max_output_tokens"] = request.max_output
    if made.dialect.cache == "key":
        arguments["prompt_cache_key"] = request.session_id
    return arguments
