"""Commands about the chat itself: help, copying, what waits or runs beside it, pictures, leaving."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agent_tui.commands.registry import CommandResult, Copy, OpenScreen, Quit, Text, command
from agent_tui.models.image_headers import base64_size
from agent_tui.models.messages import AttachmentPart, images_in
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import money, plural, tokens

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_tui.engine.agent import Agent
    from agent_tui.models.events import JobInfo, SubagentFacts
    from agent_tui.models.messages import Message


@command("help")
async def help_(agent: Agent, args: str) -> CommandResult:
    """Show commands and keys."""
    return OpenScreen("help", args)


@command("copy", args="[n]")
async def copy(agent: Agent, args: str) -> CommandResult:
    """Copy the last answer; /copy 2 copies the one before.

    The Markdown goes to the terminal's clipboard (OSC 52), and to the system's where there is one.
    """
    try:
        back = int(args) if args else 1
    except ValueError:
        return Text("Usage: /copy [n], where 1 is the newest answer and 2 the one before.", error=True)
    answers = [m for m in agent.conversation.path if m.role == "assistant" and m.text.strip()]
    if not 1 <= back <= len(answers):
        few = f"No answer {back}: this conversation has {plural(len(answers), 'answer')}."
        return Text(few if answers else "Nothing to copy.", error=True)
    text = answers[-back].text
    return Copy(text, "the last answer" if back == 1 else f"answer {back} from the end")


@command("exit", aliases=("quit",))
async def exit_(agent: Agent, args: str) -> CommandResult:
    """Quit; agent-tui -c continues this session."""
    return Quit()


@command("queue")
async def queue(agent: Agent, args: str) -> CommandResult:
    """Edit, reorder, send or drop queued messages.

    Tab on the prompt does the same while messages are queued.
    """
    if args:
        return Text("/queue takes no arguments.", error=True)
    return OpenScreen("queue") if agent.waiting.listed else Text("Nothing is queued.")


def _choices(agent: Agent) -> Iterable[tuple[str, str]]:
    for job in agent.background.infos():
        line = one_line(job_line(job), 60)
        yield f"output {job.id}", line
        if job.state == "running":
            yield f"stop {job.id}", line
        if job.state == "running" and job.agent is None:
            yield (f"end {job.id}", f"kept: {line}") if job.kept else (f"keep {job.id}", f"running: {line}")


def state_word(job: JobInfo) -> str:
    """Returns how a job is doing, in a word or two."""
    if job.state == "running":
        return "kept" if job.kept else "running"
    if job.state == "stopped":
        return "stopped"
    code = job.code or 0
    if job.agent is not None:
        return "failed" if code else "done"
    return f"signal {-code}" if code < 0 else f"exit {code}"


def job_line(job: JobInfo) -> str:
    """What it does: the command, or the type and task of a subagent."""
    return job.command if job.agent is None else f"{job.agent.type}: {job.command}"


def subagent_facts(facts: SubagentFacts, whole: bool = True) -> str:
    """``5 steps · 12.3k of 200k · $0.02``: how far a subagent is, with its context now (and, where the ``whole`` is to
    be told, its window) and its cost."""
    of = f" of {tokens(facts.window, False)}" if facts.window and whole else ""
    return f"{plural(facts.steps, 'step')} · {tokens(facts.tokens, True)}{of} · {money(facts.cost)}"


@command("jobs", args="[output ID | stop ID | keep ID | end ID]", choices=_choices)
async def jobs(agent: Agent, args: str) -> CommandResult:
    """Show, stop or keep what runs in the background.

    Commands and subagents end with the session. /jobs keep ID lets a command continue and says how to end it later;
    /jobs end ID undoes that.
    """
    what, _, id = args.partition(" ")
    id = id.strip()
    if not args:
        return OpenScreen("jobs") if agent.background.infos() else Text("Nothing runs in the background.")
    if not id or what not in ("output", "stop", "keep", "end"):
        return Text("Usage: /jobs [output ID | stop ID | keep ID | end ID]", error=True)
    if what == "output":
        output = agent.background.output(id)
        return Text(output, foreign=True) if output else Text("No output yet.")
    if what == "stop":
        return Text(await agent.background.stop(id))
    return Text(agent.background.keep(id, what == "keep"))


NONE = "No pictures in this conversation."


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
    """Show a picture of the conversation.

    The newest, or one by name: by kitty's graphics, or in coarse blocks of colour; /doctor says which. ← and → show the
    others, o opens it in a viewer.
    """
    return OpenScreen("picture", args) if pictures_of(agent.conversation.path) else Text(NONE)
