"""What users and projects add to a session: memory files, skills, commands and MCP servers, behind one object."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent_tui.config import Settings
from agent_tui.context.prompt import MemoryFiles
from agent_tui.context.skills import Skills, UserCommand, UserCommands
from agent_tui.context.trust import FolderTrust, places
from agent_tui.engine.project.prelude import Prelude
from agent_tui.engine.project.toolbox import Toolbox
from agent_tui.errors import AgentError
from agent_tui.models.context import ContextRow
from agent_tui.models.events import Notice
from agent_tui.models.requests import ModelInfo
from agent_tui.paths import Paths
from agent_tui.text.clean import plain_line
from agent_tui.tools.builtin.conversation import SkillTool
from agent_tui.tools.mcp.manager import McpManager
from agent_tui.tools.mcp.offer import McpPrompt
from agent_tui.tools.mcp.remembered import RememberedOffers
from agent_tui.tools.registry import SessionTools

ToolRow = tuple[str, str, str, int | None, bool]


class Extensions:
    """Cheap to make: files are read with the first request, servers started by ``tools.start``.

    ``trust`` says whether the project may bring skills, commands and MCP servers; its memory files are read anyway.
    ``offers`` keeps what servers offer for a look at a session that starts none.
    """

    def __init__(
        self,
        settings: Settings,
        paths: Paths,
        root: Path,
        cwd: Path,
        trust: FolderTrust,
        home: Path | None = None,
        offers: RememberedOffers | None = None,
    ) -> None:
        self._root = root
        self._trust = trust
        trusted = trust.trusted
        self.memory = MemoryFiles(paths.config, root, cwd)
        self.skills = Skills(paths.config, home or Path.home(), root, trusted, trust.holds)
        self.mcp = McpManager(settings.mcp, settings.tools, root, trusted, log_file=paths.log_file, remembered=offers)
        self._commands = UserCommands(paths.config, root, trusted, self._prompts, trust.holds)
        self.tools = SessionTools(self.mcp, SkillTool(self.skills.find, self.skills.names))

    def notices(self) -> list[Notice]:
        """What the user should know at the start: what is ignored, and which of their files are broken."""
        line = self._trust.line()
        notices = [Notice("info", line, "untrusted")] if line else []
        return notices + [Notice("warning", text, "bad_file") for text in self.problems()]

    def problems(self) -> list[str]:
        """A line for each memory file, skill and command that cannot be used."""
        self.memory.blocks()
        self.skills.refresh()
        self._commands.all()
        found = [*self.memory.problems, *self.skills.failed, *self._commands.failed]
        return [plain_line(text, 300) for text in found]

    def trusted(self, settings: Settings) -> str:
        """The folder is trusted now: reads what was ignored, with the settings as they are in a trusted folder;
        returns a line saying what."""
        self.skills.trust()
        self._commands.trust()
        self.mcp.reload(settings.mcp, True)
        self.skills.refresh()
        read = places(self._root)
        return f"{self._root} is trusted." + (
            f" Now read: {', '.join(read)}." if read else " It holds nothing that was ignored."
        )

    async def ready(self) -> None:
        """Waits until every MCP server is connected or has failed, as long as the slowest of them may take: for a run
        of one message, which could not use a server that comes later."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.mcp.patience):
                await self.mcp.settled()

    def skill_rows(self) -> list[tuple[str, str, str]]:
        """Name, description and path of each skill."""
        self.skills.refresh()
        return [(s.name, s.description, str(s.path)) for s in self.skills.loaded]

    def user_commands(self) -> list[UserCommand]:
        """Commands from files, then prompts of MCP servers as ``server:prompt``."""
        return self._commands.all()

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
            raise AgentError(f"/{self.name} needs {', '.join(missing)}.")
        return await self.manager.get_prompt(self.prompt.server, self.prompt.name, arguments)


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
    toolbox: Toolbox, prelude: Prelude, model: ModelInfo, disabled: Sequence[str], rows_now: Sequence[ContextRow]
) -> list[ToolRow]:
    """For ``/tools``: name, group, first line of the description, tokens as ``rows_now`` of ``/context`` has them (of a
    deferred tool what it would cost), and whether it is sent. Tools a small window has no room for, and those that are
    switched off, come last."""
    counts = {
        leaf.label: leaf.tokens if leaf.deferred_tokens is None else leaf.deferred_tokens
        for row in rows_now
        if row.id == "tools"
        for leaf in _leaves(row)
    }
    sent = {tool.schema.name for tool in prelude.offered}
    rows: list[ToolRow] = []
    left_out: list[ToolRow] = []
    for tool in toolbox.offered(model):
        name, first = tool.schema.name, tool.schema.description.partition("\n")[0]
        if name in sent:
            rows.append((name, tool.group, f"(deferred) {first}" if tool.deferred else first, counts.get(name), True))
        else:
            left_out.append((name, "left out", f"no room in a small window: {first}", None, False))
    return rows + left_out + [(name, "disabled", "switched off in the configuration", None, False) for name in disabled]


def _leaves(row: ContextRow) -> Iterator[ContextRow]:
    if not row.children:
        yield row
    for child in row.children:
        yield from _leaves(child)
