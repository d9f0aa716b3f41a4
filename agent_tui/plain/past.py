"""Messages of the past as lines: what was said, what was attached, what tools did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agent_tui.commands.tool_words import call_label, call_summary
from agent_tui.models.messages import OWN_OUTPUT, TOLD_MODE, AttachmentPart, Message, ToolResultPart, own_output
from agent_tui.plain.result_words import result_lines
from agent_tui.text.clean import program_output, spelled
from agent_tui.text.numbers import age

if TYPE_CHECKING:
    from agent_tui.plain.voice import Voice


def ago(then: float) -> str:
    """``just now``, ``5 min ago``."""
    said = age(then)
    return "just now" if said == "now" else f"{said} ago"


def earlier(messages: Sequence[Message], exchanges: int | None) -> int:
    """How many messages are before the newest so many of the user's; none where that is None."""
    if exchanges is None:
        return 0
    mine = [at for at, message in enumerate(messages) if message.role == "user"]
    return mine[-exchanges] if len(mine) >= exchanges else 0


def attached(message: Message) -> Iterator[str]:
    """A line for each attachment that the user knows of."""
    known = (TOLD_MODE,) if own_output(message) is None else (TOLD_MODE, OWN_OUTPUT)
    for part in message.parts:
        if isinstance(part, AttachmentPart) and part.name not in known:
            yield f"attached: {spelled(part.name, line=True)}"


def printed(message: Message) -> str | None:
    """What the user's own command printed, to be said; None where the message is none."""
    output = own_output(message)
    return None if output is None else program_output(output).strip("\n")


def tell_messages(voice: Voice, messages: Sequence[Message]) -> None:
    """Says messages as they were said when they came."""
    calls: dict[str, str] = {}
    for message in messages:
        if message.role == "user":
            if message.text:
                voice.quote(message.text, "You")
            if output := printed(message):
                voice.quote(output, indent="  ")
            for line in attached(message):
                voice.quote(line, "Note")
        elif message.role == "assistant":
            if message.text.strip():
                voice.answer(message.text)
                voice.end_answer()
            for call in message.tool_calls:
                calls[call.call_id] = call_label(call.name, call_summary(call.name, call.arguments))
        elif message.tool_result is not None:
            result = message.tool_result
            tell_result(voice, calls.get(result.call_id, result.name), result)


def tell_result(voice: Voice, label: str, result: ToolResultPart) -> None:
    """What came of a tool call."""
    first, *rest = result_lines(label, result)
    voice.quote(first)
    for line in rest:
        voice.quote(line, indent="  ")
