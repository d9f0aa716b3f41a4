"""The options of the command line, as one value."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from agent_tui.config import FLAGS, PermissionMode
from agent_tui.records import dataclass

if TYPE_CHECKING:
    from agent_tui.driver_options import DriverOptions

OutputFormat = Literal["text", "json", "stream-json", "claude-json"]
STREAMS: tuple[OutputFormat, ...] = ("stream-json", "claude-json")
"""Those that print a line for all that happens."""
InputFormat = Literal["text", "stream-json"]

SESSION_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
"""What a session may be called by its user: it becomes part of file names."""


SERVED = "AGENT_TUI_SERVED"
"""Environment variable by which the server tells a chat that it serves about its page; it is taken out at once."""


class Served(NamedTuple):
    """A chat that is shown in a page of so many ``columns`` and ``lines``. ``resume`` is the session that it showed
    before; empty at first."""

    columns: int
    lines: int
    resume: str = ""


@dataclass(slots=True)
class Options:
    """Flags of the chat and of headless mode, described in ``config.FLAGS``. ``resume`` is a session id, "" to
    choose one. ``final``: of text only the last answer is printed. ``wait_for_input``: standard input is read to its
    end, however long that takes. ``plain``: lines of text instead of the screen; None where the configuration and the
    environment say. ``budget`` is in dollars. ``output_schema`` is a file, or as text the schema itself.
    ``permission_prompt_tool``: questions go out as lines of stream-json, and so come the answers.
    ``editor``: someone chats in an editor. ``driver``: what the Claude Agent SDK says besides.
    ``instructions``: what the run itself adds to the system prompt. ``variables``: of each field how many of its values
    came from its environment variable; those are the first."""

    prompt: str = ""
    headless: bool = False
    wait_for_input: bool = False
    output_format: OutputFormat = "text"
    input_format: InputFormat = "text"
    permission_prompt_tool: str | None = None
    output_schema: Path | str | None = None
    images: list[Path] = field(default_factory=list)
    final: bool = True
    verbose: bool = False
    fail_on_denial: bool = False
    model: str | None = None
    continue_newest: bool = False
    resume: str | None = None
    session: str | None = None
    ephemeral: bool = False
    config: Path | None = None
    folder: Path | None = None
    plain: bool | None = None
    add_dirs: list[Path] = field(default_factory=list)
    permission_mode: PermissionMode | None = None
    network: Literal["registries", "allow", "none", "ask"] | None = None
    allow: list[str] = field(default_factory=list)
    deny: list[str] = field(default_factory=list)
    max_turns: int | None = None
    budget: float | None = None
    append_system_prompt: str | None = None
    system_prompt: str | None = None
    system_prompt_file: Path | None = None
    mcp_config: list[Path] = field(default_factory=list)
    trust: bool = False
    can_ask: bool = True
    editor: bool = False
    driver: DriverOptions | None = None
    instructions: list[str] = field(default_factory=list)
    variables: dict[str, int] = field(default_factory=dict)

    def written(self, name: str, index: int = 0) -> str:
        """Returns how the user gave a field: its flag, or the environment variable that stands for it."""
        flag = next(flag for flag in FLAGS if flag.dest == name)
        return f"environment: {flag.variable}" if index < self.variables.get(name, 0) else f"--{flag.name}"
