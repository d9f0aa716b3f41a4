"""What can be said for one run: the flags of the command line, each with its environment variable, as one table.

The parser and ``--help`` are made of it; the configuration leaves the variables alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from agent_tui.config import MODES_ELSEWHERE, PERMISSION_MODES

Group = Literal["model and session", "what it may do", "instructions", "answers without a screen (-p)", "program"]
Kind = Literal["text", "path", "schema", "number", "dollars", "switch", "texts", "paths"]

_SESSION: Group = "model and session"
_MAY: Group = "what it may do"
_TOLD: Group = "instructions"
_PRINT: Group = "answers without a screen (-p)"
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
        """Whether it is for a run without a screen only."""
        return self.group == _PRINT


FLAGS: tuple[Flag, ...] = (
    Flag("model", "text", _SESSION, "a configured model, demo, or a LiteLLM name", "NAME", "m"),
    Flag("continue", "switch", _SESSION, "go on with this project's newest session", None, "c", "continue_newest"),
    Flag("resume", "text", _SESSION, "go on with a session; no ID: choose", "ID", "r", optional=True),
    Flag("session", "text", _SESSION, "go on with the session of this name, or begin it", "ID"),
    Flag(
        "permission-mode", "text", _MAY, "what the agent may do unasked", choices=PERMISSION_MODES, also=MODES_ELSEWHERE
    ),
    Flag("network", "text", _MAY, "what commands in the sandbox reach", choices=("registries", "allow", "none", "ask")),
    Flag("allow", "texts", _MAY, "calls that need no question, as 'bash(npm test*)'; repeatable", "RULE"),
    Flag("deny", "texts", _MAY, "calls that are never made, as 'read(.env)'; repeatable", "RULE"),
    Flag("add-dir", "paths", _MAY, "may be worked in too; repeatable", "DIR", field="add_dirs"),
    Flag("trust", "switch", _MAY, "trust this folder's config, skills and MCP servers"),
    Flag("max-turns", "number", _MAY, "model calls that a prompt may take; exit code 53 beyond", "N"),
    Flag("append-system-prompt", "text", _TOLD, "added to the system prompt", "TEXT"),
    Flag("system-prompt-file", "path", _TOLD, "instead of the system prompt", "FILE"),
    Flag("mcp-config", "paths", _TOLD, "MCP servers, as in .mcp.json; repeatable", "FILE"),
    Flag("output-format", "text", _PRINT, "default: text", choices=("text", "json", "stream-json")),
    Flag("input-format", "text", _PRINT, "stream-json: a message a line", choices=("text", "stream-json")),
    Flag("output-schema", "schema", _PRINT, "the answer is JSON that fits this JSON Schema", "FILE"),
    Flag("image", "paths", _PRINT, "goes with the prompt; repeatable", "FILE", field="images"),
    Flag("ephemeral", "switch", _PRINT, "keep nothing of the session"),
    Flag("final", "switch", _PRINT, "as text: the last answer alone (default), or all as they come", negatable=True),
    Flag("verbose", "switch", _PRINT, "tell on standard error what happens"),
    Flag("budget", "dollars", _PRINT, "what the run may cost; exit code 54 before the call beyond", "USD"),
    Flag("fail-on-denial", "switch", _PRINT, "exit code 56 where a permission was missing"),
    Flag("config", "path", _PROGRAM, "one more configuration file, over the others", "FILE"),
    Flag("plain", "switch", _PROGRAM, "lines of text instead of a screen", negatable=True),
    Flag("cd", "path", _PROGRAM, "work in DIR, as if started there", "DIR", "C", field="folder"),
)
"""In the order of ``--help``."""

VARIABLES = frozenset(flag.variable for flag in FLAGS)
"""Environment variables that are flags, not settings."""
