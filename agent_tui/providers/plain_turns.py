"""A conversation for servers that know no tool calls: calls and results as text, the user and the model in turn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from agent_tui.models.messages import AttachmentPart, Message, Part, SummaryPart, TextPart, ToolCallPart
from agent_tui.models.requests import SentMessage
from agent_tui.providers.dialects.conversation import EMPTY_RESULT, object_arguments
from agent_tui.text.clean import encodable
from agent_tui.text.frames import framed

_BETWEEN = "Go on."
"""What stands between two answers, where nothing was said between them."""


def plain_turns(items: Sequence[SentMessage]) -> list[SentMessage]:
    """The conversation without tool calls: each is text of the answer that made it, its result text of the user, and
    messages of one side in a row are one. Pure; no stored message is changed."""
    turns: list[Message] = []
    for item in items:
        message = _spoken(item.message)
        if not message.parts:
            continue
        before = turns[-1] if turns else None
        if before is not None and before.role == message.role:
            turns[-1] = replace(before, parts=[*before.parts, *_apart(message)])
        else:
            if before is None and message.role == "assistant":
                turns.append(Message(f"{message.id}#begun", "user", [TextPart(_BETWEEN)]))
            turns.append(message)
    return [SentMessage(message, message.id) for message in turns]


def _apart(message: Message) -> list[Part]:
    """The parts of a message that goes on where another one of its side ended. Texts of an answer are joined as they
    stand, so what divides them is theirs."""
    first, *rest = message.parts
    if message.role == "assistant" and isinstance(first, TextPart):
        return [TextPart(f"\n\n{first.text}"), *rest]
    return list(message.parts)


def _spoken(message: Message) -> Message:
    if message.role == "tool":
        return replace(message, role="user", parts=_result(message))
    if message.role != "assistant":
        return message
    texts = [encodable(p.text) for p in message.parts if isinstance(p, TextPart) and p.text.strip()]
    text = "\n\n".join([*texts, *(_call(p) for p in message.parts if isinstance(p, ToolCallPart))])
    return replace(message, parts=[TextPart(text)] if text else [], provider_metadata=None)


def _call(part: ToolCallPart) -> str:
    """A call in the form that most open models write it in."""
    name = json.dumps(encodable(part.name), ensure_ascii=False)
    return f'<tool_call>\n{{"name": {name}, "arguments": {object_arguments(part.arguments)}}}\n</tool_call>'


def _result(message: Message) -> list[Part]:
    result = message.tool_result
    said = encodable(result.text) if result is not None else ""
    shown = [part for part in message.parts if isinstance(part, (AttachmentPart, SummaryPart))]
    return [TextPart(framed("tool_response", said if said.strip() else EMPTY_RESULT)), *shown]
