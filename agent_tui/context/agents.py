"""Types of subagents: Markdown files with a head, ours and those that were written for Claude Code, read in place."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from agent_tui.context.skills import SKILL_NAME, Accepted, BadHead, SkillFolder, markdown_files, split_head
from agent_tui.errors import ConfigError
from agent_tui.models.messages import Metadata
from agent_tui.records import dataclass
from agent_tui.text.clean import plain_line
from agent_tui.tools.files.access import BadFile, FileAccess, Reach, Stamp

AGENTS_FOLDERS = (Path(".agent-tui") / "agents", Path(".claude") / "agents")
"""Below a project or the home, ours first. Those of ours in the home are in the configuration folder."""

DESCRIPTION = 300
"""Characters of a description that the model is told."""
TEXT_LIMIT = 60_000

_EXAMPLES = re.compile(r"\s*(?:Examples?:)?\s*(?:\\n|<example).*", re.DOTALL)
"""What follows the description in files that were made for Claude Code: long, and told with every request."""

_USED = frozenset({"name", "description", "tools", "disallowedTools", "model"})
"""What is used of a head."""


@dataclass(slots=True, frozen=True)
class AgentType:
    """``tools`` are those it may have, by our names (with ``*`` for all of an MCP server), None for all there are;
    ``without`` are taken from these. ``model`` is empty for the session's own. ``unused`` is what of its head means
    nothing here."""

    name: str
    description: str
    prompt: str
    path: Path
    tools: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    model: str = ""
    unused: tuple[str, ...] = ()

    @property
    def restricted(self) -> bool:
        """True where it may not have every tool."""
        return self.tools is not None or bool(self.without)

    def settings(self) -> list[str]:
        """What it sets besides its prompt, in words."""
        found = [] if self.tools is None else [f"tools: {', '.join(self.tools) or 'none'}"]
        found += [f"not: {', '.join(self.without)}"] if self.without else []
        found += [f"model: {self.model}"] if self.model else []
        return found + ([f"not used: {', '.join(self.unused)}"] if self.unused else [])

    def allows(self, tool: str) -> bool:
        """Returns whether it may have a tool: it never has one that the session has not."""
        if any(fnmatchcase(tool, name) for name in self.without):
            return False
        return self.tools is None or any(fnmatchcase(tool, name) for name in self.tools)


def load_types(files: FileAccess, sources: Sequence[SkillFolder]) -> tuple[list[AgentType], list[str]]:
    """All types by name, and a line for each that is broken. The first source that has a name wins."""
    loaded: dict[str, AgentType] = {}
    failed: list[str] = []
    for source in sources:
        for path in source.only(type_files(source.folder)):
            try:
                found = _load(files, path, source.reach)
            except (BadFile, BadHead) as error:
                failed.append(f"{path}: {error}")
                continue
            loaded.setdefault(found.name, found)
    return [loaded[name] for name in sorted(loaded)], failed


def type_files(folder: Path) -> list[Path]:
    """The files of types in a folder."""
    return [path for path in markdown_files(folder) if path.stem.lower() != "readme"]


def _load(files: FileAccess, path: Path, reach: Reach) -> AgentType:
    whole = files.read_beginning(path, TEXT_LIMIT, reach)
    if len(whole) > TEXT_LIMIT:
        raise BadFile(f"has more than {TEXT_LIMIT:,} characters")
    head, text = split_head(whole)
    name = head.get("name") or path.stem
    if SKILL_NAME.fullmatch(name) is None:
        raise BadHead("its name may have letters, digits, '.', '_' and '-', at most 64")
    description = plain_line(_EXAMPLES.sub("", head.get("description", "")), DESCRIPTION)
    if not description:
        raise BadHead("its front matter has no description")
    if not text.strip():
        raise BadHead("has no text")
    tools, strange = _tools(head.get("tools", ""))
    without, unknown = _tools(head.get("disallowedTools", ""), taken=True)
    model = head.get("model", "").strip()
    unused = [*(key for key in head if key not in _USED), *strange, *unknown]
    return AgentType(
        name,
        description,
        text,
        path,
        tools if head.get("tools") else None,
        without or (),
        "" if model == "inherit" else model,
        tuple(unused),
    )


def type_of(name: str, said: Metadata) -> AgentType:
    """The type of subagent that a program describes as the SDK of Claude Code does. Raises ConfigError."""
    what = f"agents: {plain_line(name, 60)}"
    if SKILL_NAME.fullmatch(name) is None:
        raise ConfigError(f"{what}: its name may have letters, digits, '.', '_' and '-', at most 64.")
    for key, value in said.items():
        if key not in _USED | {"prompt"} and value not in (None, [], ""):
            raise ConfigError(f"{what}: {key} is not taken; description, prompt, tools, disallowedTools and model are.")
    description, prompt, model = (said.get(key) or "" for key in ("description", "prompt", "model"))
    if not all(isinstance(text, str) for text in (description, prompt, model)) or not prompt.strip():
        raise ConfigError(
            f"{what}: its description, prompt and model must be texts, and the prompt must say something."
        )
    lists = [said.get(key) for key in ("tools", "disallowedTools")]
    if not all(each is None or (isinstance(each, list) and all(isinstance(t, str) for t in each)) for each in lists):
        raise ConfigError(f"{what}: tools and disallowedTools must be lists of names.")
    tools, strange = _tools(",".join(lists[0] or ()))
    without, unknown = _tools(",".join(lists[1] or ()), taken=True)
    if odd := [*strange, *unknown]:
        raise ConfigError(f"{what}: there is no {odd[0]} here.")
    own_model = "" if model == "inherit" else model
    about = plain_line(description, DESCRIPTION)
    return AgentType(name, about, prompt, Path(), None if lists[0] is None else tools, without or (), own_model)


def _tools(listed: str, taken: bool = False) -> tuple[tuple[str, ...] | None, list[str]]:
    """The tools of a list, by our names (None: all), and what in it is none. A tool that is only given for some calls
    (``Bash(git *)``) is not given at all, and one that is ``taken`` for some is taken whole: nothing here holds it to
    these."""
    from agent_tui.tools.aliases import own_name  # most sessions have no such list
    from agent_tui.tools.mcp.tool import READ_RESOURCE
    from agent_tui.tools.mcp_names import is_mcp_name, name_pattern, with_all_tools
    from agent_tui.tools.rules.foreign import parts_of
    from agent_tui.tools.rules.rule import KNOWN

    found: dict[str, None] = {}
    strange: list[str] = []
    for part in parts_of(re.sub(r"[\[\]\"']", " ", listed)):
        name, bracket, _ = part.partition("(")
        if part == "*":
            return ("*",) if taken else None, strange
        if part == "-":
            continue
        if name == "mcp":
            own, bracket = name_pattern(part[len("mcp(") : -1] if bracket else "*"), ""
        elif is_mcp_name(name):
            own = with_all_tools(name)
        elif (own := own_name(name)) not in KNOWN:
            strange.append(f"tool {part}")
            continue
        if bracket and not taken:
            strange.append(f"tool {part}")
            continue
        found[own] = None
        if own == "edit" or (taken and own == "write"):
            found["apply_patch"] = None  # it creates files, too
        if taken and is_mcp_name(own) and own.endswith(("*", f"__{READ_RESOURCE}")):
            found["mcp_read"] = None  # it reads from every server
    return tuple(found), strange


class AgentTypes:
    """The types of a session. Those of the project's files that are ``accepted`` now win over the user's of the same
    name. Files are read again when they changed."""

    def __init__(self, config_dir: Path, home: Path, files: FileAccess, accepted: Accepted) -> None:
        self._files = files
        self._accepted = accepted
        self._own = [SkillFolder(config_dir / "agents"), SkillFolder(home / AGENTS_FOLDERS[1])]
        self._state: list[tuple[Path, Stamp | None]] | None = None
        self._brought: list[AgentType] = []
        self.loaded: list[AgentType] = []
        self.failed: list[str] = []

    def bring(self, types: Sequence[AgentType]) -> None:
        """Has these too, whoever is named alike."""
        self._brought = list(types)
        self._state = None

    def refresh(self) -> None:
        """Reads what changed."""
        accepted = self._accepted()
        brought = [SkillFolder(self._files.root / folder, "project", accepted) for folder in AGENTS_FOLDERS]
        sources = [*brought, *self._own]
        listed = [path for source in sources for path in source.only(type_files(source.folder))]
        state = [(path, self._files.stamp(path)) for path in listed]
        if state != self._state:
            self._state = state
            loaded, self.failed = load_types(self._files, sources)
            names = {one.name for one in self._brought}
            self.loaded = [*self._brought, *(one for one in loaded if one.name not in names)]

    def find(self, name: str) -> AgentType | None:
        """The type of that name; None where there is none."""
        self.refresh()
        return next((one for one in self.loaded if one.name == name), None)

    def told(self) -> Mapping[str, str]:
        """The descriptions by name, as the model is told them: those of the last look, as this is asked for often."""
        return {one.name: one.description for one in self.loaded}
