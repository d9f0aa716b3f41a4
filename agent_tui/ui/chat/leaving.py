"""The lines for the terminal once the screen is gone: the conversation, where that is wanted, and the way back."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agent_tui.models.messages import TOLD, AttachmentPart, Message, SummaryPart, TextPart, ToolCallPart, ToolResultPart
from agent_tui.text.clean import clean, one_line
from agent_tui.tools.arguments import call_summary
from agent_tui.ui.flow.layout import chop, wrap

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent

MOST_LINES = 5_000
"""Of a conversation: what most terminals keep is not much more."""

_FENCES = ("```", "~~~")


def way_back(agent: Agent, again: Sequence[str]) -> list[str]:
    """A line with the command that goes on with the session, where there is one of ours to go on with. ``again`` is how
    the program was called, as far as that has to be said anew."""
    if not agent.conversation.path or agent.conversation.read_only:
        return []
    return [f"Resume this session with: {shlex.join([*again, '--resume', agent.conversation.info.id])}"]


def scrollback(agent: Agent, width: int) -> list[str]:
    """The conversation in lines of ``width`` cells: at most its last ``MOST_LINES``, below a line that says so."""
    newest: list[list[str]] = []
    room = MOST_LINES
    for message in reversed(agent.conversation.path):
        if room <= 0:
            break
        lines = list(_message(message, max(20, width)))
        newest.append(lines[-room:])
        room -= len(lines)
    found = [line for lines in reversed(newest) for line in lines]
    if room >= 0 and len(newest) == len(agent.conversation.path):
        return found
    return [f"[beginning omitted; for all of it: agent-tui export {agent.conversation.info.id} --format md]", *found]


def _message(message: Message, width: int) -> Iterator[str]:
    # A blank line before whatever is said; what a tool did stands below the words that led to it.
    for part in message.parts:
        match part:
            case TextPart(text) if text.strip():
                yield ""
                yield from _user(text, width) if message.role == "user" else _markdown(text, width)
            case SummaryPart(text):
                yield from ("", "[Summary of earlier messages]")
                yield from _markdown(text, width)
            case AttachmentPart() if part.name not in TOLD:
                yield from _prose(f"[attached: {one_line(part.name)}]", width)
            case ToolCallPart():
                yield from _prose(f"• {one_line(call_summary(part.name, part.arguments), 200)}", width)
            case ToolResultPart() if part.is_error:
                yield from _prose(f"  failed: {one_line(part.text, 200)}", width)


def _user(text: str, width: int) -> Iterator[str]:
    for number, line in enumerate(_prose(text.strip("\n"), width - 2)):
        yield f"{'>' if number == 0 else ' '} {line}".rstrip()


def _markdown(text: str, width: int) -> Iterator[str]:
    """As it was written, code unbroken where it fits and cut nowhere else than at the edge."""
    fenced = False
    for line in clean(text).strip("\n").expandtabs(4).split("\n"):
        is_fence = line.lstrip().startswith(_FENCES)
        fenced = fenced != is_fence
        yield from _broken(line, chop(line, width) if fenced or is_fence else wrap(line, width))


def _prose(text: str, width: int) -> Iterator[str]:
    for line in clean(text).expandtabs(4).split("\n"):
        yield from _broken(line, wrap(line, width))


def _broken(line: str, ranges: Sequence[tuple[int, int]]) -> Iterator[str]:
    return (line[start:end].rstrip() for start, end in ranges)
