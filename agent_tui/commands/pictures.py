"""The command that shows a picture of the conversation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agent_tui.commands.registry import command
from agent_tui.commands.result import CommandResult, OpenScreen, Text
from agent_tui.models.messages import AttachmentPart, base64_size, images_in
from agent_tui.text.clean import one_line

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent
    from agent_tui.models.messages import Message

NONE = "There is no picture in this conversation."


def pictures_of(messages: Sequence[Message]) -> list[AttachmentPart]:
    """All images of a conversation, attached and returned by tools, the oldest first."""
    return [part for message in messages for part in images_in(message.parts)]


def _names(agent: Agent) -> Iterator[tuple[str, str]]:
    known = {one_line(part.name, 100): described(part) for part in pictures_of(agent.conversation.path)}
    yield from reversed(known.items())


def described(part: AttachmentPart) -> str:
    """Its size and kind."""
    size = base64_size(part.data or "")
    kind = one_line(part.media_type, 60)
    return f"{size[0]} × {size[1]}, {kind}" if size is not None else kind


def named_pictures(agent: Agent) -> str:
    """A line for each picture, and where its file is, for whoever cannot be shown it."""
    rows = []
    for part in pictures_of(agent.conversation.path):
        where = f" at {one_line(part.path, 300)}" if part.path else ""
        rows.append(f"{one_line(part.name, 100)} ({described(part)}){where}")
    return "\n".join(rows)


@command("picture", args="[name]", choices=_names)
async def picture(agent: Agent, args: str) -> CommandResult:
    """Shows a picture of the conversation on a screen of its own: the newest, or that one.

    As this terminal can: by kitty's graphics, by iTerm2's protocol, as sixels, else in coarse blocks of colour; /doctor
    says how. ← and → go to the others.
    """
    return OpenScreen("picture", args) if pictures_of(agent.conversation.path) else Text(NONE)
