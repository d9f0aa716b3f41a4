"""Settings: what can be configured, as plain dataclasses whose defaults are the product's defaults.

``config.files`` reads and merges the files, ``config.schema`` says what is wrong with them, after the first frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, NamedTuple

from agent_tui.records import dataclass

PermissionMode = Literal["ask", "accept-edits", "plan", "auto", "bypass"]
OutputForm = Literal["full", "short", "line"]
Images = Literal["auto", "off", "kitty"]
PERMISSION_MODES: tuple[PermissionMode, ...] = ("ask", "accept-edits", "plan", "auto", "bypass")
MODES_ELSEWHERE: dict[str, PermissionMode] = {
    "default": "ask",
    "acceptEdits": "accept-edits",
    "auto_edit": "accept-edits",
    "bypassPermissions": "bypass",
    "yolo": "bypass",
}
"""What other agents call them."""
NEXT_MODES: tuple[PermissionMode, ...] = ("ask", "accept-edits", "plan")
"""What one key goes through. ``auto`` is chosen by name, ``bypass`` only at the start, by whoever starts."""

ANSWER_ACTIONS = ("allow", "always", "deny", "feedback")
"""Answers to a question: they may be on a key that types a character."""

KEY_ACTIONS = (
    *("send", "newline", "steer", "escape", "cancel", "quit", "suspend", "undo", "redo", "editor", "paste", "complete"),
    *("older", "newer", "history", "mode", "tools", "background", "reasoning", "find", "palette", "redraw"),
    *("page_up", "page_down", "start", "end", "previous_question", "next_question"),
    *ANSWER_ACTIONS,
)
"""What can be put on another key in ``[keys]``: the names of the screen's bindings."""


@dataclass(slots=True, frozen=True, kw_only=True)
class ModelSettings:
    """The settings of a model. It travels whole, to where requests are made of it, so that a new setting is added here,
    to the example, and where it is used. ``via``: ``litellm`` calls the model through that library also
    where it could be called directly. ``prices`` are US dollars per million tokens: ``input``, ``output``,
    ``cache_read``, ``cache_write`` (for 5 minutes) and ``cache_write_1h``. ``cache_ttl``: how long the provider is to
    keep prompts, where it sells that; None is its usual."""

    api_base: str | None = None
    api_key_env: str | None = None
    context_window: int | None = None
    max_output: int | None = None
    api: Literal["auto", "chat", "responses"] = "auto"
    reasoning_effort: Literal["off", "low", "medium", "high"] | None = None
    compact_at: float | None = None
    via: Literal["auto", "litellm"] = "auto"
    cache_ttl: Literal["5m", "1h"] | None = None
    prices: dict[str, float] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True, frozen=True)
class ModelConfig(ModelSettings):
    """A model as configured; ``model`` is LiteLLM's name."""

    model: str


@dataclass(slots=True)
class ContextConfig:
    """The limits of the context. ``compact_at`` is a share of the window, ``max_output_reserve`` tokens;
    ``tell_model``: the model is told how full its context is; ``agent_edits``: whether it may tend that."""

    auto_compact: bool = True
    compact_at: float | None = None
    max_output_reserve: int = 32_000
    exact_counting: Literal["auto", "off"] = "auto"
    tell_model: bool = True
    agent_edits: Literal["off", "ask", "auto"] = "auto"
    summary_model: str | None = None


@dataclass(slots=True)
class BudgetConfig:
    """The limits of what may be spent before a call is not made: US dollars of a turn, a session, and a day on this
    machine. None is no limit."""

    turn_usd: float | None = None
    session_usd: float | None = None
    day_usd: float | None = None


@dataclass(slots=True)
class ToolsConfig:
    """``disabled`` are tool names; ``bash_timeout`` is seconds; ``output_limit`` is characters sent to the model;
    ``env_allow`` are environment variables (``*`` and ``?`` allowed) that commands get although they look secret."""

    disabled: list[str] = field(default_factory=list)
    bash_timeout: float = 120.0
    output_limit: int = 30_000
    mcp_defer_share: float = 0.1
    env_allow: list[str] = field(default_factory=list)
    check: dict[str, str] = field(default_factory=dict)
    """By pattern, the command that is run in the sandbox after the model changed such a file."""
    text_calls: bool | None = None
    """Whether tool calls that a model writes as text are run; None: where its server knows no others."""
    web_search: str = "off"
    """``provider`` for that of the model's provider, or an address with ``{query}``, which answers in JSON."""
    web_search_headers: dict[str, str] = field(default_factory=dict)
    """What such a request has besides; ``${NAME}`` stands for an environment variable."""


@dataclass(slots=True)
class SandboxConfig:
    """The limits that commands are held to. ``network`` is that of commands that may write, ``loopback`` their ports on
    127.0.0.1 and ::1 while it is closed: their ``own``, those of the ``machine`` (macOS), or none (``deny``);
    ``readable`` and ``writable`` are folders besides the project."""

    mode: Literal["auto", "required", "off"] = "auto"
    network: Literal["ask", "allow", "deny", "registries"] = "ask"
    loopback: Literal["own", "machine", "deny"] = "own"
    readable: list[str] = field(default_factory=list)
    writable: list[str] = field(default_factory=list)


@dataclass(slots=True)
class PermissionsConfig:
    """``mode`` at start; rules are ``tool`` or ``tool(pattern)``, e.g. ``bash(git status*)``, ``edit(src/**)``.
    ``mcp_read_only`` are tools of MCP servers that only look, by name: plan mode may use them."""

    mode: PermissionMode = "ask"
    allow: list[str] = field(default_factory=list)
    ask: list[str] = field(default_factory=list)
    deny: list[str] = field(default_factory=list)
    mcp_read_only: list[str] = field(default_factory=list)


@dataclass(slots=True)
class McpServer:
    """One MCP server: ``command`` (stdio) or ``url``, which is spoken to by streamable HTTP or the older ``sse``
    (``type``; empty: what the server knows). ``timeout`` is seconds for connecting and listing, ``call_timeout``
    seconds for one call. A run without a screen does not begin without a ``required`` one.

    ``client_id`` and ``client_secret``: how the sign-in of a server knows us that lets no program register itself; or
    the https address of a document about us. ``callback_port``: that of ``http://127.0.0.1:PORT/callback``, where it
    needs a certain one."""

    command: str | None = None
    args: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    enabled: bool = True
    timeout: float = 30.0
    call_timeout: float = 300.0
    type: Literal["", "stdio", "http", "sse"] = ""
    required: bool = False
    client_id: str = ""
    client_secret: str = ""
    callback_port: int = 0


HOOK_EVENTS = (
    *("SessionStart", "SessionEnd", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PermissionRequest"),
    *("Notification", "PreCompact", "PostCompact", "Stop", "SubagentStop"),
)
"""When hooks run, by the names that Claude Code gives these events."""


@dataclass(slots=True)
class HookConfig:
    """A command of the shell at an event; ``matcher`` names the tools, or whatever else tells one event from another,
    that it is for. ``timeout`` is seconds."""

    command: str
    matcher: str = ""
    timeout: float | None = None


AUTO_THEME = "auto"
"""Instead of a theme's name: the one that was chosen last, else what suits the terminal's background."""


@dataclass(slots=True)
class UiConfig:
    """The settings of the screen, its looks and its use. ``editor`` and ``status_command`` are commands, the second one
    of a shell; ``vim``: its keys on the prompt; ``mouse``: whether the screen takes it from the terminal;
    ``tool_output``: what is seen of a tool call before it is opened; ``plain``: lines of text instead of the screen,
    None where the environment says whether; ``images``: how pictures are shown."""

    theme: str = AUTO_THEME
    plain: bool | None = None
    show_reasoning: bool = False
    tool_output: OutputForm = "short"
    reduced_motion: bool = False
    notifications: bool = True
    vim: bool = False
    mouse: bool = True
    images: Images = "auto"
    status_command: str | None = None
    editor: str | None = None


@dataclass(slots=True)
class AgentConfig:
    """``step_limit`` is steps a turn; ``timeout`` is seconds without a byte from the provider,
    ``content_timeout`` seconds in which it sends something but nothing of the answer, ``answer_timeout`` seconds for
    all of one answer where nobody watches it come (0: as long as it takes); ``retries`` attempts. Subagents start
    others ``subagent_depth`` deep (1: none of them does), at most ``subagents_at_once`` run at a time.
    ``private_file``: keys that are entered go to a file that only the user can read, and not to the system's
    keyring."""

    step_limit: int = 100
    timeout: float = 120.0
    content_timeout: float = 600.0
    answer_timeout: float = 3_600.0
    retries: int = 5
    subagent_depth: int = 1
    subagents_at_once: int = 8
    development: bool = False
    private_file: bool = False


@dataclass(slots=True)
class Settings:
    """Everything configurable, merged from default, user file, project file, environment and flags."""

    default_model: str | None = None
    models: dict[str, ModelConfig] = field(default_factory=dict)
    context: ContextConfig = field(default_factory=ContextConfig)
    budget: BudgetConfig = field(default_factory=BudgetConfig)
    tools: ToolsConfig = field(default_factory=ToolsConfig)
    permissions: PermissionsConfig = field(default_factory=PermissionsConfig)
    sandbox: SandboxConfig = field(default_factory=SandboxConfig)
    ui: UiConfig = field(default_factory=UiConfig)
    agent: AgentConfig = field(default_factory=AgentConfig)
    mcp: dict[str, McpServer] = field(default_factory=dict)
    hooks: dict[str, list[HookConfig]] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)


Group = Literal["model and session", "permissions and limits", "instructions", "only with -p", "program"]
Kind = Literal["text", "path", "schema", "number", "dollars", "switch", "texts", "paths"]

_SESSION: Group = "model and session"
_MAY: Group = "permissions and limits"
_TOLD: Group = "instructions"
_PRINT: Group = "only with -p"
_PROGRAM: Group = "program"


class Flag(NamedTuple):
    """``name`` is the long spelling without dashes, ``field`` its field in ``Options``. ``optional``: its value may be
    left out, which is an empty one. ``also``: what choices are called elsewhere. ``negatable``: a switch that can be
    said to be off, too (``--no-…``)."""

    name: str
    kind: Kind
    group: Group
    help: str
    metavar: str | None = None
    short: str = ""
    field: str = ""
    choices: tuple[str, ...] = ()
    also: Mapping[str, str] = {}
    optional: bool = False
    negatable: bool = False

    @property
    def spellings(self) -> tuple[str, ...]:
        return (*((f"-{self.short}",) if self.short else ()), f"--{self.name}")

    @property
    def dest(self) -> str:
        return self.field or self.name.replace("-", "_")

    @property
    def variable(self) -> str:
        """The environment variable that stands for the flag; the flag wins, lists are joined."""
        return "AGENT_TUI_" + self.name.replace("-", "_").upper()

    @property
    def headless(self) -> bool:
        """True when the flag is for a run without a screen only."""
        return self.group == _PRINT


FLAGS: tuple[Flag, ...] = (
    Flag("model", "text", _SESSION, "a configured model, demo, or a name such as openai/gpt-5", "NAME", "m"),
    Flag("continue", "switch", _SESSION, "continue this project's last chat", None, "c", "continue_newest"),
    Flag("resume", "text", _SESSION, "resume a session; without ID, pick one from a list", "ID", "r", optional=True),
    Flag("session", "text", _SESSION, "continue the session with this ID, or start it", "ID"),
    Flag(
        "permission-mode",
        "text",
        _MAY,
        "what the agent may do without asking",
        choices=PERMISSION_MODES,
        also=MODES_ELSEWHERE,
    ),
    Flag(
        "network",
        "text",
        _MAY,
        "what commands in the sandbox can reach",
        choices=("registries", "allow", "none", "ask"),
    ),
    Flag("allow", "texts", _MAY, "allow without asking, e.g. 'bash(npm test*)'; repeatable", "RULE"),
    Flag("deny", "texts", _MAY, "never allow, e.g. 'read(.env)'; repeatable", "RULE"),
    Flag("add-dir", "paths", _MAY, "let the agent work in DIR, too; repeatable", "DIR", field="add_dirs"),
    Flag("trust", "switch", _MAY, "trust this folder's config, skills and MCP servers"),
    Flag("max-turns", "number", _MAY, "stop after N model calls per prompt (exit code 53)", "N"),
    Flag("append-system-prompt", "text", _TOLD, "add TEXT to the system prompt", "TEXT"),
    Flag("system-prompt", "text", _TOLD, "replace the system prompt", "TEXT"),
    Flag("system-prompt-file", "path", _TOLD, "replace the system prompt", "FILE"),
    Flag("mcp-config", "paths", _TOLD, "add MCP servers, in the format of .mcp.json; repeatable", "FILE"),
    Flag(
        "output-format",
        "text",
        _PRINT,
        "default: text; claude-json: the lines of Claude Code",
        choices=("text", "json", "stream-json", "claude-json"),
    ),
    Flag("input-format", "text", _PRINT, "stream-json: one message per line", choices=("text", "stream-json")),
    Flag(
        "permission-prompt-tool",
        "text",
        _PRINT,
        "ask in stream-json and read the answers from standard input",
        choices=("stdio",),
    ),
    Flag("output-schema", "schema", _PRINT, "answer in JSON that matches this JSON Schema", "FILE"),
    Flag("image", "paths", _PRINT, "attach an image to the prompt; repeatable", "FILE", field="images"),
    Flag("ephemeral", "switch", _PRINT, "don't save the session"),
    Flag("final", "switch", _PRINT, "print only the last answer (default), or all text as it arrives", negatable=True),
    Flag("verbose", "switch", _PRINT, "show progress on standard error"),
    Flag("budget", "dollars", _PRINT, "stop before a call that would exceed USD (exit code 54)", "USD"),
    Flag("fail-on-denial", "switch", _PRINT, "exit with code 56 if a permission was missing"),
    Flag("config", "path", _PROGRAM, "read one more configuration file, over the others", "FILE"),
    Flag("plain", "switch", _PROGRAM, "plain lines of text instead of the full screen", negatable=True),
    Flag("cd", "path", _PROGRAM, "run as if started in DIR", "DIR", "C", field="folder"),
)
"""In the order of ``--help``."""

VARIABLES = frozenset(flag.variable for flag in FLAGS)
"""Environment variables that are flags, not settings."""
