"""Commands about sessions: new, resume, rename, rewind, fork, export; and the words about their branches."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui.commands.registry import CommandResult, Nothing, OpenScreen, Text, command
from agent_tui.context.accounting.lost import lost_text
from agent_tui.errors import AgentError, StoreError
from agent_tui.models.session import Branch
from agent_tui.paths import private_dir, with_home, write_new
from agent_tui.text.cells import shorten
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import plural, tokens

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_tui.engine.agent import Agent
    from agent_tui.models.messages import Message
    from agent_tui.models.session import ConversationChange, FilesMoved


NAMED = 3
"""Files that are named; more are counted."""


def moved_text(moved: ConversationChange, root: Path) -> str:
    """One line that confirms: what left the conversation, what became of the files, and how to return."""
    parts = []
    if moved.left:
        parts.append(f"{plural(moved.left, 'message')} moved to a branch")
    if moved.came:
        parts.append(f"{plural(moved.came, 'message')} restored from the other branch")
    text = f"{', '.join(parts) or 'No messages moved'}."
    if moved.files is not None:
        put = moved.files.put
        text += f" Restored {plural(len(put), 'file')}: {_names(put, root)}." if put else " No files restored."
    back = "/rewind back files" if moved.files is not None and moved.files.put else "/rewind back"
    return f"{text} {back} undoes this."


def tree(path: Sequence[Message], branches: Sequence[Branch]) -> Iterator[Message | Branch]:
    """Yields the places that one can go back to, from the newest on: the user's messages, and below the message that
    took its place each branch."""
    at: dict[str | None, list[Branch]] = {}
    fork: str | None = None
    for branch in branches:
        fork = branch.fork if branch.under is None else fork
        at.setdefault(fork, []).append(branch)
    for message in reversed(path):
        yield from at.get(message.id, ())
        if message.role == "user":
            yield message
    yield from at.get(None, ())


def head_of(entry: Message | Branch) -> str | None:
    """Returns the id of the message that the conversation ends with once the entry is chosen."""
    return entry.end if isinstance(entry, Branch) else entry.parent_id


def first_words(message: Message) -> str:
    """A message as a row of a list."""
    return one_line(message.text, 300) or "(attachment)"


def words_of(branch: Branch, width: int) -> str:
    """The first words of a branch, and its newest: often it begins like the message it took the place of. The first
    get no more than half of so many cells."""
    said = [message for message in branch.own if message.role == "user"]
    first = first_words(branch.first)
    if len(said) < 2:
        return first
    return f"{shorten(first, width // 2 - 2)} … {first_words(said[-1])}"


def files_text(files: FilesMoved, root: Path, key: str = "Ctrl+R") -> str:
    """Returns words for what ``key`` would do beside going there; empty where no file differs."""
    text = f"{key} also restores {plural(len(files.put), 'file')}: {_names(files.put, root)}." if files.put else ""
    if files.left:
        lines = [one_line(line, 200).replace(f"{root}/", "") for line in files.left[:2]]
        more = f"; {plural(len(files.left) - 2, 'more file')} left" if len(files.left) > 2 else ""
        text = f"{text} {'; '.join(lines)}{more}.".strip()
    return text


def leaves_text(count: int) -> str:
    """Returns words for what going back takes out of the conversation."""
    return f"Moves {plural(count, 'message')} to a branch, listed here."


def branch_text(branch: Branch) -> str:
    """The size of a branch, and where it forks."""
    own = f"{plural(len(branch.own), 'message')}, {tokens(branch.tokens, True)} tokens"
    where = f"after {plural(branch.shared, 'message')}" if branch.shared else "at the start"
    return f"Branch of {own}, forked {where}."


def _names(files: Sequence[Path], root: Path) -> str:
    names = [one_line(str(path.relative_to(root) if path.is_relative_to(root) else path), 80) for path in files]
    more = [plural(len(names) - NAMED, "more file")] if len(names) > NAMED else []
    return ", ".join([*names[:NAMED], *more])


async def write_export(text: str, folder: Path, name: str, suffix: str) -> Path:
    """Writes a new file into the folder of exports; a name that is taken gets a number. Raises AgentError."""
    try:
        return await asyncio.to_thread(lambda: write_new(private_dir(folder), name, suffix, text))
    except OSError as error:
        raise AgentError(f"Cannot write to {folder}: {error.strerror or error}.") from None


async def write_told(agent: Agent, text: str, name: str) -> Path:
    """Writes a new file where the user said. Raises AgentError, also where there is one already."""
    path = agent.cwd / with_home(name)
    try:
        await asyncio.to_thread(agent.project.files.write, path, text.encode("utf-8", "replace"))
    except FileExistsError:
        raise AgentError(f"{path} already exists. Name another file or remove it first.") from None
    return path


@command("clear", aliases=("new",))
async def clear(agent: Agent, args: str) -> CommandResult:
    """Start a new session; /resume returns to this one."""
    lost = lost_text(await agent.sessions.clear())
    return Text(f"New session. {lost}") if lost else Nothing()


@command("resume", args="[id or search]")
async def resume(agent: Agent, args: str) -> CommandResult:
    """Open an earlier session, or search what was said."""
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
    """Rename this session."""
    title = one_line(args, 200)
    if not title:
        return Text("Usage: /rename TITLE", error=True)
    agent.sessions.rename(title)
    return Text(f"Renamed to “{title}”.")


NOTHING_TO_REWIND = "Nothing to rewind."

_WAYS = {"back": "return to the branch you left last", "back files": "the same, with its files"}


def _ways(agent: Agent) -> Iterable[tuple[str, str]]:
    return _WAYS.items() if agent.conversation.info.state.back is not None else ()


@command("rewind", aliases=("undo",), args="[back [files]]", choices=_ways)
async def rewind(agent: Agent, args: str) -> CommandResult:
    """Go back to an earlier message, files too if you like.

    Nothing is deleted: what you rewind stays as a branch, listed where it forked. `back` returns to the branch you
    left last.
    """
    words = args.split()
    if words:
        if words not in (["back"], ["back", "files"]):
            return Text("Usage: /rewind [back [files]]", error=True)
        return Text(moved_text(await agent.branches.back("files" in words), agent.root))
    if not any(m.role == "user" for m in agent.conversation.path) and not agent.branches.all():
        return Text(NOTHING_TO_REWIND, error=True)
    return OpenScreen("rewind")


@command("fork")
async def fork(agent: Agent, args: str) -> CommandResult:
    """Continue in a copy; this session stays unchanged."""
    before = agent.conversation.info.title or agent.conversation.info.id
    await agent.sessions.fork()
    return Text(f"Now in a copy of “{one_line(before, 80)}”. /resume returns to the original. Costs count from here.")


@command("handoff", args="GOAL")
async def handoff(agent: Agent, args: str) -> CommandResult:
    """Continue in a new session, with a brief of this one.

    The model writes what the goal needs; your rules, the decisions and the files used are added from the
    conversation. You review and send the brief; this session stays unchanged.
    """
    from agent_tui.commands.mentions import unnamed

    if not args:
        return Text("Usage: /handoff GOAL, where GOAL is what the new session is for.", error=True)
    # Not what stands in messages of the user: that may be of a command's file, too.
    named = agent.parts.permissions.reach.kept(agent.conversation.info.state).named_hosts
    own = "\n".join([args, *(f"https://{host}" for host in named)])
    brief = await agent.handoff.begin(args)
    text = args + await asyncio.to_thread(unnamed, brief.text.removeprefix(args), own, agent.cwd)
    return Text(brief.line, then=text)


EXPORTS = {
    "json": "everything, with provider metadata, steps and compactions",
    "md": "the conversation as Markdown",
    "html": "the conversation as one HTML page",
}


@command("export", args="[json|md|html] [PATH]", choices=lambda agent: EXPORTS.items())
async def export(agent: Agent, args: str) -> CommandResult:
    """Export this session as JSON, Markdown or HTML.

    Without a path it goes to the exports folder. Existing files are never overwritten.
    """
    from agent_tui.commands.export import render

    first, _, rest = args.partition(" ")
    fmt, rest = first.lower(), rest.strip()
    if fmt not in EXPORTS:
        rest = args
        fmt = {".json": "json", ".html": "html", ".htm": "html"}.get(Path(rest).suffix.lower(), "md")
    info, content = agent.store.whole(agent.conversation.info.id)
    text = await asyncio.to_thread(render, info, content, fmt, agent.models.known_keys)
    try:
        if rest:
            written = await write_told(agent, text, rest)
        else:
            written = await write_export(text, agent.paths.exports, agent.conversation.info.id, f".{fmt}")
    except AgentError as error:
        return Text(str(error), error=True)
    return Text(f"Exported to {written}.")
