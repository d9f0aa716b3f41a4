"""Commands about the chat itself: help, copying, what waits or runs beside it, pictures, leaving."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agent_tui.commands.registry import CommandResult, Copy, OpenScreen, Quit, Text, command
from agent_tui.models.messages import AttachmentPart, base64_size, images_in
from agent_tui.text.clean import one_line
from agent_tui.text.numbers import plural

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_tui.engine.agent import Agent
    from agent_tui.models.events import JobInfo
    from agent_tui.models.messages import Message


@command("help")
async def help_(agent: Agent, args: str) -> CommandResult:
    """Shows commands and keys."""
    return OpenScreen("help", args)


@command("copy", args="[n]")
async def copy(agent: Agent, args: str) -> CommandResult:
    """Copies the last answer as Markdown; /copy 2 the one before it.

    The text goes through the terminal (OSC 52) and to the platform's own clipboard where there is one.
    """
    try:
        back = int(args) if args else 1
    except ValueError:
        return Text("/copy takes a number: 1 is the newest answer, 2 the one before it.", error=True)
    answers = [m for m in agent.conversation.path if m.role == "assistant" and m.text.strip()]
    if not 1 <= back <= len(answers):
        return Text(
            f"There {'is' if len(answers) == 1 else 'are'} {plural(len(answers), 'answer')} to copy.", error=True
        )
    text = answers[-back].text
    return Copy(text, "the last answer" if back == 1 else f"answer {back} from the end")


@command("exit", aliases=("quit",))
async def exit_(agent: Agent, args: str) -> CommandResult:
    """Leaves; agent-tui -c continues here."""
    return Quit()


@command("queue")
async def queue(agent: Agent, args: str) -> CommandResult:
    """Messages that wait to be sent: edit, order, send or drop them.

    Tab on the prompt does the same while something waits.
    """
    if args:
        return Text("/queue takes nothing.", error=True)
    return OpenScreen("queue") if agent.waiting.listed else Text("Nothing waits to be sent.")


def _choices(agent: Agent) -> Iterable[tuple[str, str]]:
    for job in agent.background.infos():
        yield f"output {job.id}", one_line(job.command, 60)
        if job.state == "running":
            line = one_line(job.command, 60)
            yield f"stop {job.id}", line
            yield (f"end {job.id}", f"with the session: {line}") if job.kept else (f"keep {job.id}", f"running: {line}")


def state_word(job: JobInfo) -> str:
    """Returns how a job is doing, in a word or two."""
    if job.state == "running":
        return "kept" if job.kept else "running"
    if job.state == "stopped":
        return "stopped"
    code = job.code or 0
    return f"signal {-code}" if code < 0 else f"exit {code}"


@command("jobs", args="[output ID | stop ID | keep ID | end ID]", choices=_choices)
async def jobs(agent: Agent, args: str) -> CommandResult:
    """Commands in the background: output, stop, keep beyond the end.

    They end with the session. /jobs keep ID lets one go on, and says how to end it then; /jobs end ID takes that back.
    """
    what, _, id = args.partition(" ")
    id = id.strip()
    if not args:
        return OpenScreen("jobs") if agent.background.infos() else Text("No commands run in the background.")
    if not id or what not in ("output", "stop", "keep", "end"):
        return Text("/jobs takes nothing, or output, stop, keep or end with an id.", error=True)
    if what == "output":
        output = agent.background.output(id)
        return Text(output, foreign=True) if output else Text("No output yet.")
    if what == "stop":
        return Text(await agent.background.stop(id))
    return Text(agent.background.keep(id, what == "keep"))


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
