"""Commands about sessions: new, resume, rename, rewind, fork, export."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui.commands.branch_words import moved_text
from agent_tui.commands.registry import command
from agent_tui.commands.result import CommandResult, Nothing, OpenScreen, Text
from agent_tui.commands.writing import write_export, write_told
from agent_tui.context.accounting.lost import lost_text
from agent_tui.errors import AgentError, StoreError
from agent_tui.store.export_text import FORMATS, render
from agent_tui.text.clean import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_tui.engine.agent import Agent


@command("clear", aliases=("new",))
async def clear(agent: Agent, args: str) -> CommandResult:
    """Starts a new conversation; /resume brings this one back."""
    lost = lost_text(await agent.sessions.clear())
    return Text(f"New session. {lost}") if lost else Nothing()


@command("resume", args="[id or search]")
async def resume(agent: Agent, args: str) -> CommandResult:
    """Opens an earlier session, found by what was said in it."""
    if args and " " not in args:
        try:
            found = agent.store.sessions.get(args)
        except StoreError:
            return OpenScreen("sessions", args)
        await agent.sessions.resume(found.id)
        return Nothing()
    return OpenScreen("sessions", args)


@command("rename", args="TITLE")
async def rename(agent: Agent, args: str) -> CommandResult:
    """Gives this session a title."""
    title = one_line(args, 200)
    if not title:
        return Text("/rename needs a title.", error=True)
    agent.sessions.rename(title)
    return Text(f"Renamed to “{title}”.")


NOTHING_TO_REWIND = "There is no message to go back to."

_WAYS = {"back": "return to the branch that was left last", "back files": "the same, with its files"}


def _ways(agent: Agent) -> Iterable[tuple[str, str]]:
    return _WAYS.items() if agent.conversation.info.state.back is not None else ()


@command("rewind", aliases=("undo",), args="[back [files]]", choices=_ways)
async def rewind(agent: Agent, args: str) -> CommandResult:
    """Goes back to a message or to a branch; files too if wanted.

    Nothing is deleted: what leaves the conversation stays as a branch, which the list shows where it forked. `back`
    returns to the branch that was left last.
    """
    words = args.split()
    if words:
        if words not in (["back"], ["back", "files"]):
            return Text("/rewind takes nothing, `back`, or `back files`.", error=True)
        return Text(moved_text(await agent.branches.back("files" in words), agent.root))
    if not any(m.role == "user" for m in agent.conversation.path) and not agent.branches.all():
        return Text(NOTHING_TO_REWIND, error=True)
    return OpenScreen("rewind")


@command("fork")
async def fork(agent: Agent, args: str) -> CommandResult:
    """Continues in a copy; this session stays as it is."""
    before = agent.conversation.info.title or agent.conversation.info.id
    await agent.sessions.fork()
    return Text(
        f"Now in a copy of “{one_line(before, 80)}”; the original is unchanged (/resume). Costs count from here."
    )


EXPORTS = {
    "json": "everything, with provider metadata, steps and compactions",
    "md": "the conversation as Markdown",
    "html": "the conversation as one HTML page",
}


def _formats(agent: Agent) -> Iterable[tuple[str, str]]:
    return ((name, EXPORTS[name]) for name in FORMATS)


@command("export", args="[json|md|html] [PATH]", choices=_formats)
async def export(agent: Agent, args: str) -> CommandResult:
    """Writes this session to a file: JSON is complete, Markdown and HTML are for reading.

    Without a path it goes into the folder of exports. No file that is there already is written over.
    """
    words = args.split(maxsplit=1)
    fmt = words[0].lower() if words and words[0].lower() in FORMATS else "md"
    rest = args[len(words[0]) :].strip() if words and words[0].lower() in FORMATS else args.strip()
    if rest and (not words or words[0].lower() not in FORMATS):
        fmt = {".json": "json", ".html": "html", ".htm": "html"}.get(Path(rest).suffix.lower(), "md")
    data = agent.store.export(agent.conversation.info.id)
    text = await asyncio.to_thread(render, data, fmt)
    try:
        if rest:
            written = await write_told(text, agent.cwd / Path(rest).expanduser())
        else:
            written = await write_export(text, agent.paths.exports, agent.conversation.info.id, f".{fmt}")
    except AgentError as error:
        return Text(str(error), error=True)
    return Text(f"Exported to {written}.")
