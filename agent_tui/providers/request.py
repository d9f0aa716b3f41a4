"""From our request to the arguments of a call: the conversation in the chat-completion format, with what each provider
wants back of its answers. LiteLLM takes it so, and the dialects make their bodies of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import field, replace

from agent_tui.models.messages import (
    AttachmentPart,
    Message,
    Metadata,
    Part,
    ReasoningPart,
    SearchPart,
    SummaryPart,
    TextPart,
    ToolCallPart,
)
from agent_tui.models.requests import (
    ALL_MEDIA,
    Media,
    ModelInfo,
    ModelRequest,
    ReplayRule,
    SentMessage,
    SystemBlock,
    Target,
    ToolSchema,
)
from agent_tui.models.search import search_item
from agent_tui.models.tool_schemas import sound_schema
from agent_tui.providers.catalog import dialect_of, family_record, forgets, images_of, limits_in, sees, takes_markers
from agent_tui.providers.dialects.claude import add_breakpoints
from agent_tui.providers.dialects.conversation import (
    EMPTY_USER,
    AnswerCall,
    AssistantTurn,
    Result,
    ToolNames,
    attachment_block,
    entries,
    is_summary,
    objects_in,
    stricter,
    text_in,
)
from agent_tui.providers.dialects.record import CallIds, Dialect, Fields, ModelFamily
from agent_tui.providers.dialects.responses import response_input
from agent_tui.providers.dialects.search import cited_blocks, is_sendable
from agent_tui.providers.dialects.shared import ReplayPlan, Thinking
from agent_tui.providers.dialects.thoughts import is_tagged, with_tags
from agent_tui.providers.images import sendable, within_bytes
from agent_tui.providers.plain_turns import plain_turns
from agent_tui.providers.reasoning import ANY_RULE, decide, text_before
from agent_tui.providers.schemas import output_arguments
from agent_tui.records import dataclass
from agent_tui.text.clean import encodable


@dataclass(slots=True, frozen=True)
class ChatForm:
    """The form in which one model takes a conversation, as the records of its provider and family say. ``blocks``:
    reasoning goes back as ``thinking_blocks``; ``lists``: text is sent as content blocks, so that cache markers can be
    put on them without changing anything else; ``media``: what the model is shown; ``alternating``: no user
    message follows another, or a result, because the model's chat template may refuse it; ``named``: a tool's result
    carries its name; ``ids``: the form of a call's id."""

    dialect: Dialect
    blocks: bool
    lists: bool
    alternating: bool
    named: bool
    ids: CallIds
    media: Media = ALL_MEDIA

    @staticmethod
    def of(target: Target, media: Media = ALL_MEDIA, rule: ReplayRule = ANY_RULE) -> ChatForm:
        dialect, family = dialect_of(target.provider), family_record(target.family)
        return ChatForm(
            dialect,
            blocks=dialect.thinking_blocks and family.signed_blocks,
            lists=takes_markers(target),
            alternating=family.alternates and not dialect.merging,
            named=dialect.named_results or family.named_results,
            ids="short" if rule.needs("short call ids") else stricter(dialect.call_ids, family.call_ids),
            media=media,
        )

    def block(self, part: AttachmentPart) -> Metadata:
        """An attachment as this model takes it."""
        return attachment_block(part, self.media)


def tool_names(request: ModelRequest, target: Target) -> ToolNames:
    """The names of the tools that a request offers, as its API takes them."""
    return ToolNames((tool.name for tool in request.tools if not tool.provider), dialect_of(target.provider).tool_names)


def chat_messages(
    items: Sequence[SentMessage], plan: ReplayPlan, form: ChatForm, names: ToolNames, system: Sequence[str] = ()
) -> list[Metadata]:
    """All messages of a request, the blocks of the system prompt before them."""
    messages: list[Metadata] = []
    if system:
        blocks = [{"type": "text", "text": text} for text in system]
        messages.append({"role": "system", "content": blocks if form.lists else "\n\n".join(system)})
    seen: list[AttachmentPart] = []
    for entry in entries(items, names, ids=form.ids, own=plan.same_origin):
        if isinstance(entry, Result):
            messages.append(_result(entry, form))
            if not form.blocks:
                seen.extend(entry.attachments)
            continue
        _show(messages, seen, form)
        if isinstance(entry, AssistantTurn):
            messages.extend(_answer(entry, plan, form))
        else:
            messages.append({"role": "user", "content": _user_content(entry, form)})
    _show(messages, seen, form)
    return _alternating(messages) if form.alternating else messages


def _alternating(messages: list[Metadata]) -> list[Metadata]:
    """User messages in a row as one: a summary and what the user said after it, or what was said before an answer
    came; a word of the model's before one that follows a result, and of the user's between two answers. What is before
    them stays the same bytes."""
    found: list[Metadata] = []
    for message in messages:
        before = found[-1]["role"] if found and message["role"] == "user" else ""
        if found and found[-1]["role"] == message["role"] == "assistant":
            found.append({"role": "user", "content": EMPTY_USER})
        if before == "user":
            first, second = found[-1]["content"], message["content"]
            both = f"{first}\n\n{second}" if isinstance(first, str) and isinstance(second, str) else None
            found[-1] = {"role": "user", "content": both or [*_blocks(first), *_blocks(second)]}
        else:
            found += [{"role": "assistant", "content": "OK."}] * (before == "tool") + [message]
    return found


def _blocks(content: str | list[Metadata]) -> list[Metadata]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _show(messages: list[Metadata], seen: list[AttachmentPart], form: ChatForm) -> None:
    """Images of tool results, for providers whose tool messages are only text: as a user message after all results."""
    if seen:
        messages.append({"role": "user", "content": [form.block(part) for part in seen]})
        seen.clear()


def _user_content(message: Message, form: ChatForm) -> str | list[Metadata]:
    blocks: list[Metadata] = []
    for part in message.parts:
        if isinstance(part, AttachmentPart):
            blocks.append(form.block(part))
        elif isinstance(part, (TextPart, SummaryPart)) and part.text.strip():
            blocks.append({"type": "text", "text": encodable(part.text)})
    blocks = blocks or [{"type": "text", "text": EMPTY_USER}]
    if form.lists or any(block["type"] != "text" for block in blocks):
        return blocks
    return "\n\n".join(block["text"] for block in blocks)


def _result(result: Result, form: ChatForm) -> Metadata:
    content: str | list[Metadata] = result.text
    if form.lists:
        shown = [form.block(part) for part in result.attachments] if form.blocks else []
        content = [{"type": "text", "text": result.text}, *shown]
    name = {"name": result.call.name} if form.named else {}
    return {"role": "tool", "tool_call_id": result.call.id, "content": content, **name}


def _answer(answer: AssistantTurn, plan: ReplayPlan, form: ChatForm) -> Iterator[Metadata]:
    """One assistant message, or several where its order would be lost in one."""
    parts = list(enumerate(answer.message.parts))
    for group in _groups(parts) if form.dialect.merging else [parts]:
        if (message := _piece(answer, group, plan, form)) is not None:
            yield message


def _groups(parts: list[tuple[int, Part]]) -> Iterator[list[tuple[int, Part]]]:
    """Runs in the order that one chat message keeps: reasoning, then one text, then tool calls. Only one part of
    each may have a thought signature of its own, so reasoning with one stands alone."""
    group: list[tuple[int, Part]] = []
    rank = 0
    for n, part in parts:
        if isinstance(part, SearchPart):
            yield group
            yield [(n, part)]
            group, rank = [], 0
            continue
        mine = 0 if isinstance(part, ReasoningPart) else 1 if isinstance(part, TextPart) else 2
        signed = rank == 0 and group and (group[-1][1].provider_metadata or {}).get("thought_signature")
        if mine < rank or (mine == rank == 1 and group) or signed:
            yield group
            group, rank = [], 0
        group.append((n, part))
        rank = mine
    if group:
        yield group


def _piece(answer: AssistantTurn, group: list[tuple[int, Part]], plan: ReplayPlan, form: ChatForm) -> Metadata | None:
    message_id = answer.message.id
    own = plan.same_origin(message_id)
    message: Metadata = {"role": "assistant", "content": None}
    text = ""
    reasoning: list[ReasoningPart] = []
    calls: list[Metadata] = []
    signatures: list[str] = []
    for n, part in group:
        signature = _signature(part) if own else None
        if isinstance(part, ToolCallPart):
            calls.append(_call(answer.calls[n], signature, form))
        elif isinstance(part, TextPart):
            text += encodable(part.text)
        elif isinstance(part, ReasoningPart) and plan.resent(message_id, n):
            reasoning.append(part)
        elif isinstance(part, SearchPart) and plan.resent(message_id, n) and form.dialect.merging:
            if (item := search_item(part)) is not None and is_sendable(item, form.dialect.own_signatures):
                message["own_items"] = [item]
        else:
            continue
        if signature and not isinstance(part, ToolCallPart):
            signatures.append(signature)
    if text.strip() or (text and form.dialect.merging is False and not calls):
        message["content"] = (own and form.blocks and plan.searches and _cited(group)) or text
    if calls:
        message["tool_calls"] = calls
    if signatures and form.dialect.own_signatures:
        message["content"] = text
        message["provider_specific_fields"] = {"thought_signatures": signatures}
    elif signatures:
        message["extra_content"] = {"google": {"thought_signature": signatures[-1]}}
    _add_reasoning(message, reasoning, text, form)
    # Thoughts alone are no message where it stands for itself.
    says = message["content"] or "tool_calls" in message or (form.dialect.merging and len(message) > 2)
    return message if says else None


def _cited(group: list[tuple[int, Part]]) -> list[Metadata] | None:
    """The text as blocks with what they cite: where what was found goes back, so does that."""
    texts = [part for _, part in group if isinstance(part, TextPart)]
    return cited_blocks(texts[0].text, texts[0].provider_metadata) if len(texts) == 1 else None


def _signature(part: Part) -> str | None:
    """A part's thought signature: base64, whatever a server has sent."""
    signature = text_in(part.provider_metadata or {}, "thought_signature")
    return signature if signature.isascii() and signature.isprintable() else None


def _call(call: AnswerCall, signature: str | None, form: ChatForm) -> Metadata:
    made: Metadata = {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }
    if signature and form.dialect.own_signatures:
        made["provider_specific_fields"] = {"thought_signature": signature}
    elif signature:
        # Google's OpenAI-compatible endpoint.
        made["extra_content"] = {"google": {"thought_signature": signature}}
    return made


_THOUGHT_FIELDS = ("reasoning_content", "reasoning", "reasoning_text", "content", "tool_plan")
"""The fields that thoughts come in."""


def _add_reasoning(message: Metadata, parts: list[ReasoningPart], text: str, form: ChatForm) -> None:
    """Reasoning in the field and form in which this provider sent it. ``text`` is the answer's, blanks included."""
    if not parts:
        return
    if form.blocks:
        if blocks := [block for part in parts if (block := _thinking_block(part)) is not None]:
            message["thinking_blocks"] = blocks
        return
    if tagged := [part for part in parts if is_tagged(part.provider_metadata)]:
        message["content"] = "".join(with_tags(encodable(p.text), p.provider_metadata or {}) for p in tagged) + text
        parts = [part for part in parts if part not in tagged]
    metadata = [part.provider_metadata or {} for part in parts]
    fields: defaultdict[str, str] = defaultdict(str)
    for part, kept in zip(parts, metadata, strict=True):
        came_in = text_in(kept, "field")
        named = came_in in _THOUGHT_FIELDS and not form.dialect.own_signatures
        fields[came_in if named else _THOUGHT_FIELDS[0]] += encodable(part.text)
    if details := [detail for kept in metadata for detail in objects_in(kept, "reasoning_details")]:
        message["reasoning_details"] = details
    if thoughts := fields.pop("content", ""):
        inner = thoughts if form.dialect.bare_thoughts else [{"type": "text", "text": thoughts}]
        spoken = [{"type": "text", "text": message["content"]}] if message["content"] else []
        message["content"] = [{"type": "thinking", "thinking": inner}, *spoken]
    message.update({name: thought for name, thought in fields.items() if thought})
    if opaque := [found for kept in metadata if (found := text_in(kept, "reasoning_opaque"))]:
        message["reasoning_opaque"] = opaque[-1]


def has_content_thinking(messages: Sequence[Metadata]) -> bool:
    """Returns whether some answer goes back with thinking among its content blocks, as Mistral wants it."""
    return any(isinstance(m["content"], list) and any(b["type"] == "thinking" for b in m["content"]) for m in messages)


def _thinking_block(part: ReasoningPart) -> Metadata | None:
    """The block as it came; None for one without what the provider checks."""
    metadata = part.provider_metadata or {}
    if metadata.get("type") == "redacted_thinking":
        data = text_in(metadata, "data")
        return {"type": "redacted_thinking", "data": data} if data else None
    signature = text_in(metadata, "signature")
    return {"type": "thinking", "thinking": encodable(part.text), "signature": signature} if signature else None


_MOST_UNASKED = 32_000
"""Tokens of output that are asked for at most where nothing says how many."""

_ANY: Metadata = {"type": "object", "properties": {}}
_BEGUN = "[The conversation began earlier.]"
"""What the user is to have said where what is left of a conversation begins with an answer."""


@dataclass(slots=True, frozen=True)
class WireCall:
    """``method`` of LiteLLM to call with ``kwargs``; ``notes`` are for the user. ``names`` are the tools that go under
    another name than their own, by that."""

    method: str
    kwargs: Metadata
    notes: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)


_NOT_OF_A_BODY = frozenset(
    {"model", "messages", "tools", "stream", "stream_options", "drop_params", "max_retries", "num_retries"}
    | {"extra_body", "extra_headers", "api_key", "api_base", "base_url", "timeout", "api_version"}
    | {"custom_llm_provider"}
)
"""Arguments of a call that are not fields of its body, or have a place of their own."""


def fields_of(kwargs: Metadata) -> Fields:
    return Fields(
        list(kwargs.get("messages") or ()),
        list(kwargs.get("tools") or ()),
        {name: value for name, value in kwargs.items() if name not in _NOT_OF_A_BODY},
        dict(kwargs.get("extra_body") or {}),
        {str(name): str(value) for name, value in (kwargs.get("extra_headers") or {}).items()},
    )


def build_call(request: ModelRequest, info: ModelInfo) -> WireCall:
    """Everything LiteLLM needs but the connection (key, address, timeouts). Never raises for a valid conversation.

    The same request gives the same bytes, and a longer conversation begins with the bytes of the shorter one, apart
    from cache markers, which move.
    """
    plan, thinking = decide(request, info)
    request = replace(request, messages=shown(request, info))
    if as_text := text_before(request.messages, request.replay):
        spoken = [*plain_turns(request.messages[:as_text]), *request.messages[as_text:]]
        request = replace(request, messages=spoken, sent_before=0)
    names = tool_names(request, info.target)
    method, kwargs = call_arguments(request, info, plan, thinking, names)
    arguments = kwargs | {"drop_params": True, "max_retries": 0, "stream": True}
    return WireCall(method, arguments, thinking.notes, names.replaced)


def shown(request: ModelRequest, info: ModelInfo) -> list[SentMessage]:
    """The messages of a request with a line in the place of each picture and file that is not taken."""
    items = sendable(request.messages, images_of(info.target)) if info.images is not False else request.messages
    most = request.replay.most_media
    return items if most is None else within_bytes(items, most)


def call_arguments(
    request: ModelRequest, info: ModelInfo, plan: ReplayPlan, thinking: Thinking, names: ToolNames
) -> tuple[str, Metadata]:
    """LiteLLM's method and what the request asks of it, all messages as they are."""
    build = _responses if info.target.api == "responses" else _chat
    method, kwargs = build(request, info, plan, names)
    kwargs.update(thinking.kwargs)
    _hold_to(kwargs, request, info)
    for name, value in deepcopy(request.spec.extra).items():
        if isinstance(value, dict) and isinstance(kwargs.get(name), dict):
            kwargs[name] = {**kwargs[name], **value}
        else:
            kwargs[name] = value
    if request.replay.needs("reasoning everywhere"):
        _add_thoughts(kwargs.get("messages") or ())
    if request.replay.needs("system as text"):
        _say_system(kwargs.get("messages") or [])
    if request.capped and (most := request.max_output) is not None:
        for place, name in limits_in(kwargs, info.target):
            own = place[name]
            place[name] = min(int(own), most) if isinstance(own, (int, float)) and own > 0 else most
    return method, kwargs


def _add_thoughts(messages: Sequence[Metadata]) -> None:
    """Gives every answer the field that thinking models want with each: its own thoughts where they go back under
    another name, else a blank, which all of them take."""
    for message in messages:
        if message["role"] == "assistant" and not message.get("reasoning_content"):
            thoughts = next((message[name] for name in ("reasoning", "reasoning_text") if message.get(name)), " ")
            message["reasoning_content"] = thoughts


def _say_system(messages: list[Metadata]) -> None:
    """Has the user's first message begin with the system prompt, for a server that knows no such role."""
    if not messages or messages[0]["role"] != "system":
        return
    system = messages.pop(0)
    if not messages or messages[0]["role"] != "user":
        messages.insert(0, {"role": "user", "content": system["content"]})
        return
    before, said = system["content"], messages[0]["content"]
    both = f"{before}\n\n{said}" if isinstance(before, str) and isinstance(said, str) else None
    messages[0] = {**messages[0], "content": both or [*_blocks(before), *_blocks(said)]}


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
    return f"{provider}/{rest.removeprefix('responses/')}" if slash else f"{target.provider}/{configured}"


def _chat(request: ModelRequest, info: ModelInfo, plan: ReplayPlan, names: ToolNames) -> tuple[str, Metadata]:
    target, form = info.target, ChatForm.of(info.target, sees(info), request.replay)
    dialect, family = dialect_of(target.provider), family_record(target.family)
    texts, documents = _texts(request.system), _texts(request.documents)
    messages = chat_messages(request.messages, plan, form, names, (*texts, *documents))
    tools = [
        tool.provider or {"type": "function", "function": _declared(tool, names, family)} for tool in request.tools
    ]
    used = sorted({call["function"]["name"] for m in messages for call in m.get("tool_calls") or ()})
    stand_in = bool(used) and not tools and form.blocks
    if stand_in:
        # A conversation with calls is refused when no tool is declared, as in a request for a summary.
        tools = [{"type": "function", "function": {"name": n, "description": "", "parameters": _ANY}} for n in used]
    if form.lists:
        summary = bool(request.messages) and is_summary(request.messages[0].message)
        sent = len(chat_messages(request.messages[: request.sent_before], plan, form, names))
        add_breakpoints(messages, tools, len(texts), summary, forgets(target), request.spec.cache_ttl, sent)
    _begin_with_user(messages, form)
    kwargs: Metadata = {"model": model_name(target, request.spec.model), "messages": messages}
    kwargs["stream_options"] = {"include_usage": True}
    if tools:
        kwargs["tools"] = tools
    if stand_in and dialect.wire is not None and dialect.wire.chooses_none:
        kwargs["tool_choice"] = "none"
    if request.max_output is not None:
        kwargs["max_tokens"] = request.max_output
    elif output := (family.output if form.lists else None) or (dialect.wire and dialect.wire.output):
        kwargs["max_tokens"] = min(info.limits.max_output or output, _MOST_UNASKED)
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


def _declared(tool: ToolSchema, names: ToolNames, family: ModelFamily) -> Metadata:
    return {
        "name": names.sent(tool.name),
        "description": encodable(tool.description),
        "parameters": sound_schema(tool.parameters, family.properties),
    }


def _begin_with_user(messages: list[Metadata], form: ChatForm) -> None:
    """No API takes a conversation without a message, and many none that begins with an answer."""
    begin = next((n for n, message in enumerate(messages) if message["role"] != "system"), len(messages))
    if begin < len(messages) and messages[begin]["role"] == "user":
        return
    text = _BEGUN if begin < len(messages) else EMPTY_USER
    messages.insert(begin, {"role": "user", "content": _blocks(text) if form.lists else text})


def _texts(blocks: Sequence[SystemBlock]) -> list[str]:
    return [encodable(block.text) for block in blocks if block.text.strip()]


def _past_litellm(kwargs: Metadata, target: Target, dialect: Dialect) -> None:
    """LiteLLM's Mistral conversion (1.105–1.109) flattens content to text and drops thinking; its OpenAI one sends
    the same body untouched."""
    kwargs["model"] = f"openai/{target.model}"
    kwargs["api_base"] = dialect.base
    if dialect.no_usage_option:
        kwargs.pop("stream_options")


def _responses(request: ModelRequest, info: ModelInfo, plan: ReplayPlan, names: ToolNames) -> tuple[str, Metadata]:
    target, family = info.target, family_record(info.target.family)
    items = response_input(request.messages, plan, sees(info), names, request.replay)
    if not items or items[0].get("role") != "user":
        items.insert(0, {"role": "user", "content": [{"type": "input_text", "text": _BEGUN if items else EMPTY_USER}]})
    kwargs: Metadata = {"model": model_name(target, request.spec.model), "input": items, "store": False}
    if info.reasoning is not False and not request.replay.needs("no reasoning"):
        kwargs["include"] = ["reasoning.encrypted_content"]
    if blocks := _texts((*request.system, *request.documents)):
        kwargs["instructions"] = "\n\n".join(blocks)
    if request.tools:
        own = dialect_of(target.provider).search
        if own is not None and own.include and any(tool.provider for tool in request.tools):
            kwargs["include"] = [*kwargs.get("include", ()), *own.include]
        kwargs["tools"] = [
            tool.provider or {"type": "function", **_declared(tool, names, family), "strict": False}
            for tool in request.tools
        ]
    if request.max_output is not None:
        kwargs["max_output_tokens"] = request.max_output
    if dialect_of(target.provider).cache == "key":
        kwargs["prompt_cache_key"] = request.session_id
    return "aresponses", kwargs
