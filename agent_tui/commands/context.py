"""Commands about the context: what is in it, compaction, pinned documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_tui.commands.registry import command
from agent_tui.commands.result import CommandResult, Nothing, OpenScreen, Text
from agent_tui.context.tokens import format_metrics
from agent_tui.paths import in_project
from agent_tui.text.numbers import plural

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_tui.engine.agent import Agent


_CONTEXT_PARTS = {
    "rows": "every row as a sentence, numbered, with the sum",
    "row": "one row by its number: what is known of it, and the text that is sent",
    "why": "how the number was made, the proof, why it compacts or not",
    "step": "as it was before an earlier step",
    "cache": "what each call read from the cache, and why not more",
    "exact": "asks the provider for the exact count",
    "export": "the numbers as JSON, or those of a step, into a new file",
    "stats": "token counter metrics",
    "stats reset": "starts the metrics anew",
}


def _context_choices(agent: Agent) -> Iterable[tuple[str, str]]:
    return ((f"{name} " if name in ("row", "step") else name, what) for name, what in _CONTEXT_PARTS.items())


@command("context", args="[rows | row N | why | step N | cache | exact | export | stats]", choices=_context_choices)
async def context(agent: Agent, args: str) -> CommandResult:
    """Shows what fills the context window, to the token, and when it will be compacted.

    With a word it answers with that part as text: rows, row 3.2, why, step 12 (or step 12 4 to compare), cache, exact,
    export (or export 12, export FILE), stats.
    """
    from agent_tui.commands import context_parts as parts

    what, _, rest = args.partition(" ")
    rest = rest.strip()
    match what:
        case "":
            return OpenScreen("context")
        case "rows" if not rest:
            return Text(parts.rows_text(agent))
        case "row":
            return Text(parts.row_text(agent, rest))
        case "why" if not rest:
            return Text(parts.why_text(agent))
        case "step":
            return Text(parts.step_text(agent, rest))
        case "cache" if not rest:
            return Text(parts.cache_text(agent))
        case "exact" if not rest:
            return Text(await parts.exact_line(agent))
        case "export":
            return Text(await parts.export_line(agent, rest, agent.cwd))
        case "stats" if not rest:
            return Text(format_metrics(agent.context.metrics))
        case "stats" if rest == "reset":
            agent.context.metrics.reset()
            return Text("Token counter metrics start anew.")
    return Text(f"/context takes nothing, or {', '.join(_CONTEXT_PARTS)}.", error=True)


def _compact_choices(agent: Agent) -> Iterable[tuple[str, str]]:
    return (
        ("preview", "what would go and what would stay; no model call"),
        ("undo", "puts the newest compaction back as it was"),
    )


@command("compact", args="[focus] | preview | undo", choices=_compact_choices)
async def compact(agent: Agent, args: str) -> CommandResult:
    """Summarises the older part of the conversation to make room.

    A focus text tells the summary what matters most. preview shows what would go and what would stay without a
    model call; undo restores what the newest compaction replaced, exactly.
    """
    if args == "preview":
        return Text(agent.compaction.preview())
    if args == "undo":
        await agent.compaction.undo()
        return Nothing()
    await agent.compaction.now(args)
    return Nothing()


@command("pin", args="PATH")
async def pin(agent: Agent, args: str) -> CommandResult:
    """Sends a file with every request, read afresh each time."""
    if not args:
        shown = [in_project(path, agent.cwd) for path in agent.context.pinned]
        return Text("\n".join(["Pinned:", *(f"  {p}" for p in shown)]) if shown else "Nothing is pinned.")
    agent.context.pin(args)
    return Text(f"Pinned {in_project(args, agent.cwd)} ({plural(len(agent.context.pinned), 'document')} pinned).")


def _pinned(agent: Agent) -> Iterable[tuple[str, str]]:
    return ((in_project(path, agent.cwd), "pinned") for path in agent.context.pinned)


@command("unpin", args="PATH", choices=_pinned)
async def unpin(agent: Agent, args: str) -> CommandResult:
    """Stops sending a pinned file."""
    if not args:
        return Text("/unpin needs the path of a pinned file.", error=True)
    agent.context.unpin(args)
    return Text(f"Unpinned {in_project(args, agent.cwd)}.")
