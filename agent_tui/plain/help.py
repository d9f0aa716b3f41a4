"""What works in plain mode, as lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agent_tui.commands.registry import find, load

if TYPE_CHECKING:
    from agent_tui.engine.agent import Agent

TYPING = (
    ("Enter", "sends; while the model works, the message waits for its turn"),
    ("a backslash at the end of a line", "the message goes on with the next line; a paste of lines is one message"),
    ("an empty line", "sends what waits"),
    ("Ctrl+C", "interrupts; drops the line; twice on an empty line leaves"),
    ("Ctrl+D", "on an empty line leaves"),
    ("a number", "answers a question; m says the rest of a long change or plan"),
    ("@file", "attaches a file, @file:10-40 lines of it; Tab completes"),
    ("!command", "runs a command of yours; the model sees its output with the next message"),
    ("Up and Down", "earlier lines; Ctrl+R searches them"),
)
INSTEAD = {
    "copy": "Copies the last answer as Markdown.",
    "picture": "Says which pictures the conversation has, and where their files are.",
    "theme": "Colours of the screen: no effect in plain mode.",
    "vim": "Vim's keys on the prompt of the screen: no effect in plain mode.",
}
"""What commands do otherwise here."""


def help_lines(agent: Agent, own: Sequence[tuple[str, str]], topic: str = "") -> Iterator[str]:
    """Everything there is to know; of a ``topic`` that command alone, with all its help. ``own`` are the commands that
    only plain mode has, or has otherwise."""
    mine = {usage.partition(" ")[0]: (usage, what) for usage, what in own}
    if (named := mine.get(f"/{topic.lstrip('/').lower()}")) is not None:
        yield f"{named[0]}: {named[1]}"
        return
    command = find(topic.lstrip("/")) if topic else None
    if command is not None:
        yield f"{command.usage}: {INSTEAD.get(command.name, command.doc)}"
        return
    rows = [("Typing", ""), *TYPING, ("Commands", "")]
    rows += [(c.usage, INSTEAD.get(c.name, c.summary)) for c in load().values() if f"/{c.name}" not in mine]
    rows += [(f"/{c.name}", c.description) for c in agent.project.user_commands()]
    rows += [("Commands that are keys on the screen", ""), *own]
    wanted = topic.lower().split()
    for name, what in rows:
        if not what and not wanted:
            yield f"{name}:"
        elif what and all(word in f"{name} {what}".lower() for word in wanted):
            yield f"  {name}: {what}"
