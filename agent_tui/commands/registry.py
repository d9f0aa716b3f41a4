"""The one list of slash commands, which help, completion, the palette and running them all read; and what they answer.

Whoever ran a command, the screen or a script, decides how to show its answer.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Literal, TypeAlias

from agent_tui.commands.info import Info
from agent_tui.records import dataclass

if TYPE_CHECKING:
    from agent_tui.context.skills import UserCommand
    from agent_tui.engine.agent import Agent


ScreenName: TypeAlias = Literal[
    "context", "compact", "tidy", "sessions", "models", "rewind", "help", "themes", "jobs", "queue", "vim", "efforts",
    "picture", "key",
]  # fmt: skip
"""``vim`` is none: it changes the keys of the main one."""


@dataclass(slots=True, frozen=True)
class Text:
    """Something to read. It never becomes part of the conversation. ``error`` says the command did not work; of what
    is ``foreign``, others wrote the words: where lines are all there is, it must not look like the program's own."""

    text: str
    error: bool = False
    foreign: bool = False
    then: str = ""
    """What the user may want to send next: put into an empty prompt, so that Enter does it."""


@dataclass(slots=True, frozen=True)
class OpenScreen:
    """A screen to open, by name. ``data`` is what the screen wants to know, e.g. a search text."""

    name: ScreenName
    data: str = ""


@dataclass(slots=True, frozen=True)
class Submit:
    """A message to send as if the user had typed it; ``typed`` is what of it they did (``TextPart.typed``)."""

    text: str
    typed: tuple[list[int], ...] = ()


@dataclass(slots=True, frozen=True)
class Copy:
    """Text for the clipboard, and what it is, for the line that says so."""

    text: str
    what: str


@dataclass(slots=True, frozen=True)
class Quit:
    """The user wants to leave."""


@dataclass(slots=True, frozen=True)
class Nothing:
    """Done; what there is to see arrives as events."""


CommandResult: TypeAlias = Text | Info | OpenScreen | Submit | Copy | Quit | Nothing


Handler: TypeAlias = "Callable[[Agent, str], Awaitable[CommandResult]]"
Choices: TypeAlias = "Callable[[Agent], Iterable[tuple[str, str]]]"

_MODULES = ("chat", "sessions", "context", "model", "usage", "project", "tidy")


@dataclass(slots=True, frozen=True)
class Command:
    """A slash command. The help is the handler's docstring."""

    name: str
    handler: Handler
    aliases: tuple[str, ...] = ()
    args: str = ""
    """How it is used: ``[focus] | preview | undo``."""
    choices: Choices | None = None
    """Gives its arguments and what each means."""

    @property
    def doc(self) -> str:
        return inspect.cleandoc(self.handler.__doc__ or "")

    @property
    def summary(self) -> str:
        """The first line of the help, as a row of a list shows it."""
        return self.doc.partition("\n")[0].removesuffix(".")

    @property
    def usage(self) -> str:
        return f"/{self.name} {self.args}".rstrip()


@dataclass(slots=True, frozen=True)
class Completion:
    """A proposal: ``insert`` replaces what was typed, ``label`` and ``detail`` are shown."""

    insert: str
    label: str
    detail: str = ""


PARTS: dict[str, tuple[str, ...]] = {
    "Conversation": (*("clear", "resume", "rename", "rewind", "fork", "handoff", "export", "copy", "queue", "jobs"),),
    "Context": ("context", "compact", "tidy", "pin", "pins"),
    "Model and cost": ("model", "thinking", "usage", "budget"),
    "Project and permissions": ("permissions", "trust", "init", "mcp", "skills", "agents", "hooks", "tools"),
    "Program": ("help", "status", "doctor", "theme", "exit"),
}
"""The commands by the part of the help they stand in."""
UNLISTED = ("picture", "vim")
"""Commands that work and stand in no list: the chat leads to them by itself, or the configuration does."""
LEADING = ("context", "compact", "model", "resume")
"""What ``/`` alone proposes first."""
ORDER = (*chain.from_iterable(PARTS.values()), *UNLISTED)
"""The names in the order of the help."""

ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(("allowed-tools", "approvals"), "permissions"),
    **dict.fromkeys(("bashes", "ps", "tasks"), "jobs"),
    **dict.fromkeys(("checkpoint", "restore"), "rewind"),
    **dict.fromkeys(("chat", "continue"), "resume"),
    "about": "status",
    "compress": "compact",
    "effort": "thinking",
    "reset": "clear",
    "settings": "doctor",
    "stats": "usage",
}
"""What other agents call our commands. Not listed anywhere: who types one gets what it means."""
_REVIEW = "Ask for it: review my changes. A file .agent-tui/commands/review.md makes it a command."
_UPDATE = "Update with what installed agent-tui, e.g. pipx; CHANGELOG.md lists the changes."
_PLUGINS = "There are no plugins; see /skills, /hooks and /mcp."
INSTEAD: Mapping[str, str] = {
    "add-dir": "Start with --add-dir DIR, or allow the folder when you are asked.",
    "bug": "/doctor shows what a report needs; c copies it.",
    "diff": "Run !git diff.",
    "extensions": _PLUGINS,
    "feedback": "/doctor shows what a report needs; c copies it.",
    "ide": "agent-tui acp connects Zed and other editors.",
    "keybindings": "? on an empty prompt lists the keys; set yours under [keys] in the configuration.",
    "login": "Choose a model with /model: it asks for the key. agent-tui auth set PROVIDER stores one.",
    "logout": "agent-tui auth remove PROVIDER removes a stored key.",
    "memory": "Edit AGENTS.md (or CLAUDE.md); /init has the model write it, /context shows what is sent.",
    "mention": "Type @ and part of a file's name.",
    "output-style": "Describe the style in AGENTS.md, or start with --append-system-prompt.",
    "plan": "Press Shift+Tab, or run /permissions plan.",
    "plugin": _PLUGINS,
    "release-notes": _UPDATE,
    "review": _REVIEW,
    "sandbox": "/status shows the sandbox; set it under [sandbox] in the configuration.",
    "security-review": _REVIEW,
    "statusline": "Set status_command under [ui] in the configuration.",
    "terminal-setup": "/doctor lists the keys this terminal can send, and how to add the others.",
    "update": _UPDATE,
    "upgrade": _UPDATE,
}
"""Commands of other agents that have no equal here, and what to do instead."""

COMMANDS: dict[str, Command] = {}
_ALIASES: dict[str, str] = {}


def command(
    name: str, *, aliases: tuple[str, ...] = (), args: str = "", choices: Choices | None = None
) -> Callable[[Handler], Handler]:
    """Registers ``async def handler(agent, args)`` as ``/name``. Raises ``ValueError`` for a name taken twice."""

    def register(handler: Handler) -> Handler:
        for taken in (name, *aliases):
            if taken in COMMANDS or taken in _ALIASES:
                raise ValueError(f"command /{taken} is registered twice")
        COMMANDS[name] = Command(name, handler, aliases, args, choices)
        _ALIASES.update(dict.fromkeys(aliases, name))
        return handler

    return register


def load() -> dict[str, Command]:
    """All commands by name, in the order help shows them. Importing them is put off until someone asks."""
    for module in _MODULES:
        importlib.import_module(f"agent_tui.commands.{module}")
    if tuple(COMMANDS) != ORDER:
        ordered = {name: COMMANDS[name] for name in ORDER} | COMMANDS
        COMMANDS.clear()
        COMMANDS.update(ordered)
    return COMMANDS


def listed() -> list[Command]:
    """The commands that lists show, in the order of the help."""
    return [command for name, command in load().items() if name not in UNLISTED]


def find(name: str) -> Command | None:
    """The command of that name or alias, upper and lower case alike."""
    name = name.lower()
    return load().get(_ALIASES.get(name, name))


def own(name: str, agent: Agent | None) -> UserCommand | None:
    """The user's own command of that name. Claude Code writes ``/dev:review`` for what is ``/dev/review`` here."""
    all_own = agent.project.user_commands() if agent is not None else ()
    return next((one for one in all_own if name in (one.name, one.name.replace("/", ":"))), None)


def _own_names(agent: Agent | None) -> list[str]:
    return [command.name for command in agent.project.user_commands()] if agent is not None else []


def nearest(name: str, agent: Agent | None = None) -> list[str]:
    """At most three names, those most like an unknown one, best first."""
    names = [*load(), *_ALIASES, *_own_names(agent)]
    name = name.lower()
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    starts = [n for n in names if n.startswith(name) and n not in close] if name else []
    return [*starts, *close][:3]


def instead(name: str, agent: Agent | None = None) -> str:
    """What to do instead of running a command that does not exist; empty where nothing comes near."""
    if said := INSTEAD.get(name.lower()):
        return said
    close = nearest(name, agent)
    return f"Did you mean {', '.join('/' + n for n in close)}?" if close else ""


def split(line: str) -> tuple[str, str]:
    """Name and arguments of ``/name args``."""
    name, _, args = line.strip().removeprefix("/").partition(" ")
    return name, args.strip()


_SERVERS = {"login": "Signing in to", "logout": "Signing out of", "reconnect": "Reconnecting"}


def waits_for_server(line: str) -> str:
    """Returns what a command waits for where that is an MCP server, which may never answer; else an empty text."""
    from agent_tui.text.clean import one_line

    name, args = split(line)
    what, _, server = args.partition(" ")
    waits = name.lower() == "mcp" and what in _SERVERS and server.strip()
    return f"{_SERVERS[what]} {one_line(server.split()[0], 40)}" if waits else ""


def is_command(text: str, agent: Agent | None = None) -> bool:
    """Returns whether a message is a command: one that starts with ``/word``, and not a path such as ``/usr/bin``."""
    if not text.startswith("/"):
        return False
    name = text[1:].split(maxsplit=1)[0] if text[1:].strip() else ""
    if not name or text[1].isspace():
        return False
    return find(name) is not None or own(name, agent) is not None or ("/" not in name and "\n" not in text.strip())


async def run(agent: Agent, line: str) -> CommandResult:
    """Runs a slash command. An unknown one is answered with the nearest names; AgentError goes through."""
    name, args = split(line)
    known = find(name)
    if known is not None:
        return await known.handler(agent, args)
    if (theirs := own(name, agent)) is not None:
        text = theirs.expand(args)
        text = text if isinstance(text, str) else await text
        from agent_tui.models.messages import range_of

        return Submit(text, tuple(range_of(args, text)))
    if (same := ELSEWHERE.get(name.lower())) is not None:
        return await COMMANDS[same].handler(agent, args)
    return Text(f"Unknown command /{name}. {instead(name, agent) or 'Run /help to list them.'}", error=True)


def complete(agent: Agent | None, line: str) -> list[Completion]:
    """Proposals for what was typed after ``/``: names first, then the arguments of the command."""
    name, space, args = line.removeprefix("/").partition(" ")
    if not space:
        return _names(agent, name)
    known = find(name)
    if known is None or known.choices is None or agent is None:
        return []
    from agent_tui.text.search import match

    details = dict(known.choices(agent))
    found = match(args, list(details), letters=False)
    return [Completion(f"/{name} {value}", value, details[value]) for value in found]


def _names(agent: Agent | None, typed: str) -> list[Completion]:
    # What stands in no list is proposed where it is typed whole: Enter runs nothing else then.
    there = [c for c in load().values() if c.name not in UNLISTED or c.name == typed.lower()]
    known = sorted(there, key=lambda c: LEADING.index(c.name) if c.name in LEADING else len(LEADING))
    entries = [(c.name, c.aliases, c.args, c.summary) for c in known]
    if agent is not None:
        entries += [
            (one.name, (), "", one.description) for one in agent.project.user_commands() if one.name not in COMMANDS
        ]
    ranked: list[tuple[tuple[int, int], Completion]] = []
    whole = typed.lower()
    if (whole in ELSEWHERE or whole in INSTEAD) and all(name != whole for name, *_ in entries):
        # Typed whole it is meant: Enter runs no other that its letters are in.
        said = COMMANDS[ELSEWHERE[whole]].summary if whole in ELSEWHERE else INSTEAD[whole]
        ranked.append(((0, 0), Completion(f"/{whole}", f"/{whole}", said)))
    for order, (name, aliases, args, summary) in enumerate(entries):
        rank = min((_rank(typed, word) for word in (name, *aliases)), default=9)
        if rank < 9:
            label = f"/{name} {args}".rstrip()
            # An alias that was typed whole stays: Enter runs it.
            word = typed.lower() if typed.lower() in aliases else name
            insert = f"/{word} " if args and not args.startswith("[") else f"/{word}"
            ranked.append(((rank, order), Completion(insert, label, summary)))
    return [c for _, c in sorted(ranked, key=lambda item: item[0])]


def _rank(typed: str, name: str) -> int:
    """Returns how well a name matches: 0 exact, 1 start, 2 inside, 3 letters in order, 9 not at all."""
    typed = typed.lower()
    if typed == name:
        return 0
    if name.startswith(typed):
        return 1
    if typed in name:
        return 2
    letters = iter(name)
    return 3 if all(c in letters for c in typed) else 9
