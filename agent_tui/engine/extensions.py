"""The extensions of a session: what users and projects add to it (memory files, skills, commands, types of subagents,
MCP servers), the project's trust, and the prompt's own blocks of text."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from datetime import date
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from agent_tui.config import Settings
from agent_tui.context.agents import AgentType, AgentTypes
from agent_tui.context.brought import TrustItem
from agent_tui.context.prompt import SYSTEM_PROMPT, GitFacts, MemoryFiles, environment_text, git_facts
from agent_tui.context.skills import FileCommand, Shell, Skill, Skills, UserCommand, UserCommands
from agent_tui.context.trust import FolderTrust, TrustDetail, counted
from agent_tui.engine.notes import newest_note
from agent_tui.engine.request_prefix import RequestPrefix, refused
from agent_tui.errors import AgentError
from agent_tui.models.context import ContextRow
from agent_tui.models.events import Notice
from agent_tui.models.messages import UPDATE, AttachmentPart
from agent_tui.models.requests import OfferedTool, SentMessage, SystemBlock
from agent_tui.models.rows import FIXED_ROWS
from agent_tui.models.usage import Limits
from agent_tui.paths import Paths, shown_path, with_home
from agent_tui.records import dataclass
from agent_tui.text.clean import plain_line
from agent_tui.text.frames import attribute, framed
from agent_tui.text.numbers import plural
from agent_tui.tools.base import Tool
from agent_tui.tools.builtin.conversation import SkillTool
from agent_tui.tools.files.access import BadFile, FileAccess, Stamp
from agent_tui.tools.mcp.manager import McpManager
from agent_tui.tools.mcp.offer import McpPrompt, RememberedOffers
from agent_tui.tools.registry import SessionTools

if TYPE_CHECKING:
    from agent_tui.tools.starter import Starter

ToolRow = tuple[str, str, str, int | None, bool]


class ExtraTools(Protocol):
    """Tools from outside, such as MCP servers; ``offered`` decides which of them are deferred."""

    @property
    def starting(self) -> bool:
        """True when some tools are on their way and may still come."""

    def late(self) -> list[str]:
        """The servers without whose tools the next request goes out because they are still starting; each once."""

    def coming(self, tool: str) -> str:
        """The server that has a tool of this name, while it is starting; else an empty text."""

    def tools(self) -> list[Tool]: ...

    def offered(self, limits: Limits) -> list[OfferedTool]: ...

    def start(self, changed: Callable[[], None]) -> None: ...

    def recall(self) -> bool:
        """Instead of a start: has the tools as they were last seen. False where that is not known of all."""

    async def close(self) -> None: ...


def starter_for(trust: FolderTrust, paths: Paths) -> Starter:
    """What starts the commands of a project, and those of the user's that run in it by themselves."""
    from agent_tui.tools.starter import Starter

    known, git = (lambda: trust.was_accepted), (lambda: trust.lets_git_out)
    return Starter(trust.root, paths.cache / "bytecode", trust.changed_since_accepted, known, git)


class Extensions:
    """Cheap to make: files are read with the first request, servers started by ``tools.start``.

    ``trust`` says whether the project may bring skills, commands, types of subagents and MCP servers; its memory files
    are read anyway. ``offers`` keeps what servers offer for a look at a session that starts none; they are told of
    ``added`` folders.
    """

    def __init__(
        self,
        settings: Settings,
        paths: Paths,
        files: FileAccess,
        cwd: Path,
        trust: FolderTrust,
        home: Path | None = None,
        offers: RememberedOffers | None = None,
    ) -> None:
        self._root, added = files.root, files.folders[1:]
        self._trust = trust
        self._configured, self._brought = settings.mcp, trust.configured_servers()
        self.memory = MemoryFiles(paths.config, files, cwd, home or Path.home())
        self.skills = Skills(paths.config, home or Path.home(), files, trust.files)
        self.agents = AgentTypes(paths.config, home or Path.home(), files, trust.files)
        self.mcp = McpManager(
            settings.mcp,
            settings.tools,
            self._root,
            trust.servers(),
            log_file=paths.log_file,
            remembered=offers,
            added=added,
            starter=lambda: starter_for(trust, paths),
        )
        self._shell: Shell | None = None
        self.commands = UserCommands(
            paths.config, home or Path.home(), files, trust.files, self._prompts, self._output_of
        )
        self.tools = SessionTools(self.mcp, SkillTool(self.skills.find, self.skills.names))

    def notices(self) -> list[Notice]:
        """Returns what the user should know at the start: what is ignored, and which of their files are broken."""
        line = self._trust.line()
        self.memory.blocks()
        broken = [*self.memory.problems, *self.broken()]
        notices = [Notice("info", line, "untrusted")] if line else []
        return notices + [Notice("warning", plain_line(text, 300), "bad_file") for text in broken]

    def reload_servers(self, settings: Settings | None = None) -> None:
        """Something else of the project is accepted now: servers start, and end. ``settings`` are new ones."""
        now = self._trust.configured_servers()
        if settings is not None:
            self._configured, self._brought = settings.mcp, now
        gone = self._brought - now
        servers = {name: server for name, server in self._configured.items() if name not in gone}
        self.mcp.reload(servers, self._trust.servers())

    async def ready(self) -> None:
        """Waits for the MCP servers that a run cannot do without; others never delay a request. Raises
        RequiredServerError."""
        await self.mcp.need_required()

    async def command_ready(self, name: str) -> None:
        """Waits for the MCP server whose prompt a command ``server:prompt`` is, where it is still starting."""
        if ":" in name:
            await self.mcp.settled(name.partition(":")[0])

    def skill_rows(self) -> list[tuple[str, str, str]]:
        """Name, description and path of each skill."""
        self.skills.refresh()
        return [(s.name, s.description, str(s.path)) for s in self.skills.loaded]

    def agent_rows(self) -> list[tuple[str, str, str]]:
        """Name, description with what else is set, and folder of each type of subagent; the broken ones last."""
        self.agents.refresh()
        rows: list[tuple[str, str, str]] = []
        for kind in self.agents.loaded:
            folder = shown_path(_folder_of(kind.path, ("agents",)), self._root)
            rows.append((kind.name, " · ".join([kind.description, *kind.settings()]), folder))
        return [*sorted(rows, key=itemgetter(2)), *(("", line, "Broken") for line in self.agents.failed)]

    def user_commands(self) -> list[UserCommand]:
        """Commands from files, prompts of MCP servers as ``server:prompt``, then skills."""
        found = self.commands.all()
        self.skills.refresh()
        known = {command.name for command in found}
        return [*found, *(_as_command(s) for s in self.skills.loaded if s.typed and s.name not in known)]

    def run_commands_with(self, shell: Shell) -> None:
        """What runs the commands that stand in the user's slash commands."""
        self._shell = shell

    async def _output_of(self, command: str) -> str:
        if self._shell is None:
            raise AgentError("The session is still opening.")
        return await self._shell(command)

    def broken(self) -> list[str]:
        """A line for each skill, command and type of subagent that cannot be used."""
        self.skills.refresh()
        self.agents.refresh()
        self.commands.all()
        return [*self.skills.failed, *self.commands.failed, *self.agents.failed]

    def brought(self) -> list[tuple[str, str]]:
        """The folders that commands, skills and types of subagents are from, each with how many it has and what of
        their heads means nothing here."""
        self.commands.all()
        self.skills.refresh()
        self.agents.refresh()
        found: dict[Path, list[FileCommand | Skill | AgentType]] = {}
        for command in self.commands.loaded:
            found.setdefault(_folder_of(command.path, ("commands", "prompts")), []).append(command)
        for skill in self.skills.loaded:
            found.setdefault(skill.path.parent.parent, []).append(skill)
        for kind in self.agents.loaded:
            found.setdefault(_folder_of(kind.path, ("agents",)), []).append(kind)
        return [(shown_path(folder, self._root), _counted(each)) for folder, each in sorted(found.items())]

    def _prompts(self) -> list[UserCommand]:
        return [PromptCommand(self.mcp, prompt) for prompt in self.mcp.prompts()]


@dataclass(slots=True, frozen=True)
class PromptCommand:
    """A prompt of an MCP server as a command: arguments in order, the last one takes the rest, or ``name=value``."""

    manager: McpManager
    prompt: McpPrompt

    @property
    def name(self) -> str:
        return f"{self.prompt.server}:{self.prompt.name}"

    @property
    def description(self) -> str:
        usage = " ".join(f"<{a}>" if a in self.prompt.required else f"[{a}]" for a in self.prompt.arguments)
        return plain_line(f"{usage} {self.prompt.description}".strip(), 160)

    async def expand(self, args: str) -> str:
        """The prompt's text. Raises AgentError for missing arguments, ToolError when the server fails."""
        arguments = _arguments(self.prompt.arguments, args)
        missing = [a for a in self.prompt.arguments if a in self.prompt.required and a not in arguments]
        if missing:
            raise AgentError(f"Usage: /{self.name} needs {', '.join(missing)}.")
        return await self.manager.get_prompt(self.prompt.server, self.prompt.name, arguments)


def _as_command(skill: Skill) -> FileCommand:
    text = f"{skill.text.strip()}\n\n(The files of this skill are in {skill.path.parent}.)"
    return FileCommand(skill.name, plain_line(skill.description, 120), text, skill.path)


def _folder_of(path: Path, names: Sequence[str]) -> Path:
    return next((parent for parent in path.parents if parent.name in names), path.parent)


def _counted(each: Sequence[FileCommand | Skill | AgentType]) -> str:
    names = {Skill: "skill", AgentType: "subagent type"}
    what = plural(len(each), names.get(type(each[0]), "command"))
    unused = Counter(key for one in each for key in one.unused)
    keys = ", ".join(f"{plain_line(key, 30)} ({count})" for key, count in unused.most_common(8))
    return f"{what}; not used: {keys}" if keys else what


def _arguments(names: Sequence[str], args: str) -> dict[str, str]:
    try:
        words = shlex.split(args)
    except ValueError:
        words = args.split()
    found: dict[str, str] = {}
    rest: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        if equals and name in names and name not in found:
            found[name] = value
        else:
            rest.append(word)
    free = [name for name in names if name not in found]
    if free and len(rest) > len(free):
        rest[len(free) - 1 :] = [" ".join(rest[len(free) - 1 :])]
    found.update(zip(free, rest, strict=False))
    return found


def tool_rows(
    offered: Sequence[OfferedTool],
    request_prefix: RequestPrefix,
    disabled: Sequence[str],
    rows_now: Sequence[ContextRow],
    left_out_by: Collection[str],
    *,
    takes_tools: bool = True,
) -> list[ToolRow]:
    """For ``/tools``: name, group, first line of the description, tokens as ``rows_now`` of ``/context`` has them (of a
    deferred tool what it would cost), and whether it is sent. Tools that the server refuses (``left_out_by`` are their
    fingerprints), those a small window has no room for, all where the model ``takes_tools`` not at all, and those that
    are switched off, come last."""
    counts = {
        leaf.label: leaf.tokens if leaf.deferred_tokens is None else leaf.deferred_tokens
        for row in rows_now
        if row.id == "tools"
        for leaf in row.leaves()
    }
    sent = {tool.schema.name for tool in request_prefix.offered}
    rows: list[ToolRow] = []
    left_out: list[ToolRow] = []
    for tool in offered:
        name, first = tool.schema.name, tool.schema.description.partition("\n")[0]
        if name in sent:
            rows.append((name, tool.group, f"(deferred) {first}" if tool.deferred else first, counts.get(name), True))
        else:
            why = "the model's server refuses it" if refused(tool, left_out_by) else "no room in a small window"
            why = why if takes_tools else "this model cannot call tools"
            left_out.append((name, "left out", f"{why}: {first}", None, False))
    return rows + left_out + [(name, "disabled", "switched off in the configuration", None, False) for name in disabled]


class Trusting:
    """Follows a folder's trust: what changes in the folder waits for the user, and that is told once."""

    def __init__(self, folder: FolderTrust) -> None:
        self.folder = folder
        self._asked: tuple[TrustItem, ...] | None = None
        self._accepted, self._waiting = self._now()

    def _now(self) -> tuple[frozenset[str], frozenset[str]]:
        folder = self.folder
        waiting = [*(item.digest for item in folder.waiting), *(f"gone {one.digest}" for one in folder.gone)]
        return frozenset(item.digest for item in folder.accepted), frozenset(waiting)

    def look(self) -> tuple[bool, str]:
        """Looks at the folder: whether something else is accepted now, and the line for the user where something waits
        that did not before."""
        self.folder.look()
        accepted, waiting = self._accepted, self._waiting
        self._accepted, self._waiting = self._now()
        return accepted != self._accepted, self.folder.line() if self.folder.trusted and self._waiting - waiting else ""

    def question(self) -> list[TrustDetail]:
        """Returns what is to be shown before it is accepted."""
        shown = self.folder.question()
        self._asked = self.folder.brought.items
        return shown

    def accept(self) -> str:
        """Trusts what was shown; one line on what that was. Empty where it was not shown, or is no longer that."""
        folder = self.folder
        if self._asked != folder.brought.items:
            return ""
        waited = [*folder.waiting]
        if not folder.accept():
            return ""
        self._accepted, self._waiting = self._now()
        return f"Trusted: {counted(waited)}." if waited else f"{folder.root} is trusted."


MAX_DOCUMENT_BYTES = 2_000_000


class Workspace:
    """The blocks that a request begins with. What is ``brought`` (memory files, skills, what MCP servers say) is asked
    for before every turn, so that a changed file counts at once, while prompt and environment stay the same bytes for
    the whole session, restarts included. What became of the environment since is told with a message
    (``environment_update``). ``watched`` names the paths that memory blocks are made of; ``appended`` is said after the
    system prompt."""

    def __init__(
        self,
        files: FileAccess,
        cwd: Path,
        brought: Sequence[Callable[[], list[SystemBlock]]] = (),
        today: Callable[[], date] = date.today,
        watched: Callable[[], list[Path]] = list,
        system: str = SYSTEM_PROMPT,
        appended: Sequence[str] = (),
    ) -> None:
        self.files, self._root, self._added = files, files.root, files.folders[1:]
        self.cwd = cwd
        self._brought = brought
        self._today = today
        self._watched = watched
        self._system = system
        self._appended = list(appended)
        self._kept: str | None = None
        self._looked = False
        self.git = GitFacts()

    def look(self) -> None:
        """Asks git for the facts of now. Starts processes: to be called in a thread."""
        self.git = git_facts(self._root)
        self._looked = True

    def adopt(self, environment: str | None) -> None:
        """Takes over the environment as a session was told of it; None for a session that begins."""
        self._kept = environment

    @property
    def environment(self) -> str:
        """The environment as the session is told of it."""
        if self._kept is None:
            self._kept = self._now()
        return self._kept

    def environment_update(self, view: Sequence[SentMessage]) -> AttachmentPart | None:
        """Returns what is different now from what the session was told at its start and in the messages that are sent;
        None when the model knows."""
        told = newest_note(view, UPDATE)
        text = update_text(self.environment, self._now())
        if not text and told is not None:
            text = "The environment is again as at the start of the session."
        return None if text == (told or "") else AttachmentPart(UPDATE, "text/plain", text=text)

    def folder_told(self, view: Sequence[SentMessage]) -> str | None:
        """Returns the working directory that the model was told of last; None where it was told of none yet."""
        if self._kept is None:
            return None
        facts = [*_facts(newest_note(view, UPDATE) or ""), *_facts(self._kept)]
        return next((fact.removeprefix(_FOLDER) for fact in facts if fact.startswith(_FOLDER)), None)

    def _now(self) -> str:
        if not self._looked:
            self.look()
        return environment_text(self.cwd, self._root, self._added, self._today(), self.git)

    def blocks(self) -> list[SystemBlock]:
        """Everything but the documents, in the order it is sent."""
        blocks = [
            SystemBlock("system", self._system, "system", "System prompt"),
            *(SystemBlock("system", text, "appended", "Appended instructions") for text in self._appended),
            SystemBlock("environment", framed("environment", self.environment), "environment", "Environment"),
            *(block for brought in self._brought for block in brought()),
        ]
        return sorted(blocks, key=lambda block: FIXED_ROWS[block.row].sent)

    def resolve(self, path: str) -> str:
        """The absolute path of a document named relative to the working directory."""
        return str((self.cwd / with_home(path)).resolve())

    def pinnable(self, path: str) -> str:
        """The absolute path of a file that can be pinned. Raises AgentError when it cannot."""
        try:
            return str(self.files.read_whole(self.cwd / with_home(path), MAX_DOCUMENT_BYTES, "own").path)
        except BadFile as error:
            raise AgentError(f"Cannot pin {path}: it {error}.") from None

    def stamps(self, pinned: Sequence[str]) -> dict[Path, Stamp | None]:
        """The stamps that tell whether memory files and pinned files are as they were. May be called in a thread."""
        return {path: self.files.stamp(path) for path in (*self._watched(), *map(Path, pinned))}

    def documents(self, pinned: Sequence[str]) -> tuple[list[SystemBlock], list[str]]:
        """The pinned files as they are now, and one line for each that cannot be read any more. Those from outside the
        project count as read from now on."""
        blocks: list[SystemBlock] = []
        problems: list[str] = []
        for path in pinned:
            try:
                data = self.files.read_whole(Path(path), MAX_DOCUMENT_BYTES, "exact").data
            except BadFile as error:
                problems.append(f"Not sent: the pinned {path} {error}.")
                continue
            self.files.note(Path(path))
            text = data.decode("utf-8", "replace")
            name = str(Path(path).relative_to(self._root)) if Path(path).is_relative_to(self._root) else path
            block = framed("document", text, attribute("path", name))
            blocks.append(SystemBlock("documents", block, name, name, path))
        return blocks, problems


_FOLDER = "- working directory: "


def update_text(then: str, now: str) -> str:
    """The facts that are new or different, after a line that says so; empty when there are none."""
    known = set(_facts(then))
    changed = [fact for fact in _facts(now) if fact not in known]
    return "\n".join(["The environment has changed since the session began. Now:", *changed]) if changed else ""


def _facts(environment: str) -> list[str]:
    """The entries of an environment text; an entry may have several lines."""
    return ["- " + entry for entry in environment.split("\n- ")[1:]]
