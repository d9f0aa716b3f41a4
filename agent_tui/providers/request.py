"""From our request to the arguments of a call: the conversation in the chat-completion format, with what each provider
wants back of its answers. LiteLLM takes it so, and the dialects make their bodies of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from agent_tui.models.messages import (
    AttachmentPart,
    Message,
    Metadata,
    Part,
    ReasoningPart,
    SummaryPart,
    TextPart,
    ToolCallPart,
)
from agent_tui.models.requests import ModelInfo, ModelRequest, SentMessage, Target
from agent_tui.providers.catalog import dialect_of, family_record, forgets, images_of, takes_markers
from agent_tui.providers.dialects.anthropic import add_breakpoints
from agent_tui.providers.dialects.decoding import is_tagged, with_tags
from agent_tui.providers.dialects.encoding import (
    EMPTY_USER,
    Answer,
    ReplayPlan,
    Result,
    Thinking,
    attachment_block,
    entries,
    is_summary,
    object_arguments,
    sendable,
)
from agent_tui.providers.dialects.record import Dialect
from agent_tui.providers.dialects.responses import response_input
from agent_tui.providers.reasoning import decide
from agent_tui.providers.schemas import output_arguments
from agent_tui.records import dataclass
from agent_tui.text.clean import encodable


@dataclass(slots=True, frozen=True)
class ChatForm:
    """The form in which one model takes a conversation, as the records of its provider and family say. ``blocks``:
    reasoning goes back as ``thinking_blocks``; ``lists``: text is sent as content blocks, so that cache markers can be
    put on them without changing anything else; ``images`` False: the model cannot see; ``joined``: user messages in a
    row are sent as one, because the model's chat template may refuse them; ``named``: a tool's result carries its
    name."""

    dialect: Dialect
    blocks: bool
    lists: bool
    joined: bool
    named: bool
    images: bool | None = None

    @staticmethod
    def of(target: Target, images: bool | None = None) -> ChatForm:
        dialect, family = dialect_of(target.provider), family_record(target.family)
        return ChatForm(
            dialect,
            blocks=dialect.thinking_blocks and family.signed_blocks,
            lists=takes_markers(target),
            joined=family.alternates and not dialect.merging,
            named=dialect.named_results or family.named_results,
            images=images,
        )


def chat_messages(
    items: Sequence[SentMessage],
    plan: ReplayPlan,
    form: ChatForm,
    system: Sequence[str] = (),
    documents: Sequence[str] = (),
) -> list[Metadata]:
    """All messages of a request. Documents come after the system prompt, which is the more stable of the two."""
    messages = _system(form, [*system, *documents])
    seen: list[AttachmentPart] = []
    for entry in entries(items, ids=form.dialect.call_ids):
        if isinstance(entry, Result):
            messages.append(_result(entry, form))
            if not form.blocks:
                seen.extend(entry.attachments)
            continue
        _show(messages, seen, form)
        if isinstance(entry, Answer):
            messages.extend(_answer(entry, plan, form))
        else:
            messages.append({"role": "user", "content": _user_content(entry, form)})
    _show(messages, seen, form)
    return _joined(messages) if form.joined else messages


def _joined(messages: list[Metadata]) -> list[Metadata]:
    """User messages in a row as one: a summary and what the user said after it, or what was said before an answer
    came. What is before them stays the same bytes."""
    found: list[Metadata] = []
    for message in messages:
        if message["role"] == "user" and found and found[-1]["role"] == "user":
            first, second = found[-1]["content"], message["content"]
            both = f"{first}\n\n{second}" if isinstance(first, str) and isinstance(second, str) else None
            found[-1] = {"role": "user", "content": both or [*_blocks(first), *_blocks(second)]}
        else:
            found.append(message)
    return found


def _blocks(content: str | list[Metadata]) -> list[Metadata]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _system(form: ChatForm, blocks: list[str]) -> list[Metadata]:
    if not blocks:
        return []
    if form.lists:
        return [{"role": "system", "content": [{"type": "text", "text": text} for text in blocks]}]
    return [{"role": "system", "content": "\n\n".join(blocks)}]


def _show(messages: list[Metadata], seen: list[AttachmentPart], form: ChatForm) -> None:
    """Images of tool results, for providers whose tool messages are only text: as a user message after all results."""
    if seen:
        messages.append({"role": "user", "content": [attachment_block(part, form.images) for part in seen]})
        seen.clear()


def _user_content(message: Message, form: ChatForm) -> str | list[Metadata]:
    blocks: list[Metadata] = []
    for part in message.parts:
        if isinstance(part, AttachmentPart):
            blocks.append(attachment_block(part, form.images))
        elif isinstance(part, (TextPart, SummaryPart)) and part.text.strip():
            blocks.append({"type": "text", "text": encodable(part.text)})
    if not blocks:
        blocks.append({"type": "text", "text": EMPTY_USER})
    if not form.lists and all(block["type"] == "text" for block in blocks):
        return "\n\n".join(block["text"] for block in blocks)
    return blocks


def _result(result: Result, form: ChatForm) -> Metadata:
    content: str | list[Metadata] = result.text
    if form.lists:
        content = [{"type": "text", "text": result.text}]
        if form.blocks:
            content += [attachment_block(part, form.images) for part in result.attachments]
    message: Metadata = {"role": "tool", "tool_call_id": result.call.id, "content": content}
    if form.named:
        message["name"] = result.call.part.name
    return message


def _answer(answer: Answer, plan: ReplayPlan, form: ChatForm) -> Iterator[Metadata]:
    """One assistant message, or several where its order would be lost in one."""
    parts = list(enumerate(answer.message.parts))
    groups = _groups(parts) if form.dialect.merging else [parts]
    for group in groups:
        message = _piece(answer, group, plan, form)
        if message is not None:
            yield message


def _groups(parts: list[tuple[int, Part]]) -> Iterator[list[tuple[int, Part]]]:
    """Runs in the order that one chat message keeps: reasoning, then one text, then tool calls. Only one part of
    each may have a thought signature of its own, so reasoning with one stands alone."""
    group: list[tuple[int, Part]] = []
    rank = 0
    for n, part in parts:
        mine = 0 if isinstance(part, ReasoningPart) else 1 if isinstance(part, TextPart) else 2
        signed = rank == 0 and group and (group[-1][1].provider_metadata or {}).get("thought_signature")
        if mine < rank or (mine == rank == 1 and group) or signed:
            yield group
            group, rank = [], 0
        group.append((n, part))
        rank = mine
    if group:
        yield group


def _piece(answer: Answer, group: list[tuple[int, Part]], plan: ReplayPlan, form: ChatForm) -> Metadata | None:
    message_id = answer.message.id
    own = plan.same_origin(message_id)
    message: Metadata = {"role": "assistant", "content": None}
    texts: list[str] = []
    reasoning: list[ReasoningPart] = []
    calls: list[Metadata] = []
    signatures: list[str] = []
    for n, part in group:
        metadata = (part.provider_metadata or {}) if own else {}
        signature = metadata.get("thought_signature")
        if isinstance(part, ReasoningPart):
            if plan.resent(message_id, n):
                reasoning.append(part)
                signatures.extend([signature] if signature else [])
        elif isinstance(part, TextPart):
            texts.append(encodable(part.text))
            signatures.extend([signature] if signature else [])
        elif isinstance(part, ToolCallPart):
            calls.append(_call(answer, n, part, signature, form))
    text = "".join(texts)
    if text.strip() or (text and form.dialect.merging is False and not calls):
        message["content"] = text
    if calls:
        message["tool_calls"] = calls
    if signatures and form.dialect.own_signatures:
        message["content"] = text
        message["provider_specific_fields"] = {"thought_signatures": signatures}
    elif signatures:
        message["extra_content"] = {"google": {"thought_signature": signatures[-1]}}
    _add_reasoning(message, reasoning, text, form)
    return message if len(message) > 2 or message["content"] else None


def _call(answer: Answer, index: int, part: ToolCallPart, signature: str | None, form: ChatForm) -> Metadata:
    raw = encodable(part.arguments)
    arguments = raw if raw and form.dialect.raw_arguments else object_arguments(raw)
    call: Metadata = {
        "id": answer.calls[index].id,
        "type": "function",
        "function": {"name": part.name, "arguments": arguments},
    }
    if signature and form.dialect.own_signatures:
        call["provider_specific_fields"] = {"thought_signature": signature}
    elif signature:
        # Google's OpenAI-compatible endpoint.
        call["extra_content"] = {"google": {"thought_signature": signature}}
    return call


def _add_reasoning(message: Metadata, parts: list[ReasoningPart], text: str, form: ChatForm) -> None:
    """Reasoning in the field and form in which this provider sent it. ``text`` is the answer's, blanks included."""
    if not parts:
        return
    if form.blocks:
        message["thinking_blocks"] = [_thinking_block(part) for part in parts]
        return
    tagged = [part for part in parts if is_tagged(part.provider_metadata)]
    if tagged:
        before = "".join(with_tags(encodable(part.text), part.provider_metadata or {}) for part in tagged)
        message["content"] = before + text
        parts = [part for part in parts if part not in tagged]
    metadata = [part.provider_metadata or {} for part in parts]
    fields: dict[str, str] = {}
    for part, kept in zip(parts, metadata, strict=True):
        name = str(kept.get("field") or "reasoning_content")
        fields[name] = fields.get(name, "") + encodable(part.text)
    if details := [detail for kept in metadata for detail in kept.get("reasoning_details") or []]:
        message["reasoning_details"] = details
    thoughts = fields.pop("content", "")
    if thoughts:
        inner = thoughts if form.dialect.bare_thoughts else [{"type": "text", "text": thoughts}]
        spoken = [{"type": "text", "text": message["content"]}] if message["content"] else []
        message["content"] = [{"type": "thinking", "thinking": inner}, *spoken]
    message.update({name: thought for name, thought in fields.items() if thought})
    opaque = next((m["reasoning_opaque"] for m in reversed(metadata) if m.get("reasoning_opaque")), None)
    if opaque:
        message["reasoning_opaque"] = opaque


def has_content_thinking(messages: Sequence[Metadata]) -> bool:
    """Returns whether some answer goes back with thinking among its content blocks, as Mistral wants it."""
    return any(isinstance(m["content"], list) and any(b["type"] == "thinking" for b in m["content"]) for m in messages)


def _thinking_block(part: ReasoningPart) -> Metadata:
    metadata = part.provider_metadata or {}
    if metadata.get("type") == "redacted_thinking":
        return {"type": "redacted_thinking", "data": metadata.get("data") or ""}
    return {"type": "thinking", "thinking": encodable(part.text), "signature": metadata.get("signature") or ""}


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
    if request.output_schema is None:
        return
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
    if stand_in and dialect.wire is not None and dialect.wire.chooses_none:
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
