"""Commands about the context: what is in it, compaction, pinned documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_tui.commands.registry import command
from agent_tui.commands.result import CommandResult, Nothing, OpenScreen, Text
from agent_tui.paths import in_project
from agent_tui.text.numbers import plural

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_tui.commands.agent_protocol import CommandAgent


def _context_choices(agent: CommandAgent) -> Iterable[tuple[str, str]]:
    return (("stats", "token counter metrics"), ("stats reset", "starts the metrics anew"))


@command("context", args="[stats]", choices=_context_choices)
async def context(agent: CommandAgent, args: str) -> CommandResult:
    """Shows what fills the context window, to the token, and when it will be compacted."""
    if not args:
        return OpenScreen("context")
    if args == "stats":
        return Text(agent.context_stats())
    if args == "stats reset":
        agent.reset_context_stats()
        return Text("Token counter metrics start anew.")
    return Text("/context takes nothing, stats, or stats reset.", error=True)


def _compact_choices(agent: CommandAgent) -> Iterable[tuple[str, str]]:
    return (
        ("preview", "what would go and what would stay; no model call"),
        ("undo", "puts the newest compaction back as it was"),
    )


@command("compact", args="[focus] | preview | undo", choices=_compact_choices)
async def compact(agent: CommandAgent, args: str) -> CommandResult:
    """Summarises the older part of the conversation to make room.

    A focus text tells the summary what matters most. preview shows what would go and what would stay without a
    model call; undo restores what the newest compaction replaced, exactly.
    """
    if args == "preview":
        return Text(agent.compact_preview())
    if args == "undo":
        await agent.compact_undo()
        return Nothing()
    await agent.compact(args)
    return Nothing()


@command("pin", args="PATH")
async def pin(agent: CommandAgent, args: str) -> CommandResult:
    """Sends a file with every request, read afresh each time."""
    if not args:
        shown = [in_project(path, agent.cwd) for path in agent.pinned]
        return Text("\n".join(["Pinned:", *(f"  {p}" for p in shown)]) if shown else "Nothing is pinned.")
    agent.pin(args)
    return Text(f"Pinned {in_project(args, agent.cwd)} ({plural(len(agent.pinned), 'document')} pinned).")


def _pinned(agent: CommandAgent) -> Iterable[tuple[str, str]]:
    return ((in_project(path, agent.cwd), "pinned") for path in agent.pinned)


@command("unpin", args="PATH", choices=_pinned)
async def unpin(agent: CommandAgent, args: str) -> CommandResult:
    """Stops sending a pinned file."""
    if not args:
        return Text("/unpin needs the path of a pinned file.", error=True)
    agent.unpin(args)
    return Text(f"Unpinned {in_project(args, agent.cwd)}.")
