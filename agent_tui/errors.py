"""The one family of errors whose text is meant for the user."""

from __future__ import annotations

EXIT_OK = 0
EXIT_ERROR = 1
EXIT_USAGE = 2
EXIT_STEP_LIMIT = 53
EXIT_BUDGET = 54
EXIT_REFUSED = 55
"""The model refused, or answered nothing."""
EXIT_DENIED = 56
"""With ``--fail-on-denial``: something needed a permission that nobody could give."""
EXIT_SERVER = 57
"""An MCP server with ``required = true`` was not there."""
EXIT_RETRYABLE = 75
EXIT_INTERRUPTED = 130
EXIT_PIPE = 141
"""Nobody reads standard output any more: what shells report of a program that SIGPIPE ended."""


class AgentError(Exception):
    """A failure with one clear line for the user: what happened and what to do about it."""

    exit_code = EXIT_ERROR


class ConfigError(AgentError):
    """Bad command line, configuration file, environment variable or theme."""

    exit_code = EXIT_USAGE


class StoreError(AgentError):
    """The session database cannot be opened, read or written."""


class StoreLockedError(StoreError):
    """Another program writes to the session database; the same write may succeed a moment later."""


class StoreUnwritableError(StoreError):
    """The session database or its folder cannot be written; what is in it may still be read."""


class StoreOlderError(StoreError):
    """The session database is of an earlier development version; it is moved aside where that is possible."""


class StoreDamagedError(StoreError):
    """The session database is damaged; ``agent-tui sessions repair`` makes a sound one of what is left and of the last
    backup. ``what`` of it is damaged, in a few words."""

    def __init__(self, text: str, what: str = "") -> None:
        super().__init__(text)
        self.what = what or text


OPEN_ELSEWHERE = "open in another window"
READ_ONLY = f"This session is {OPEN_ELSEWHERE}; it is read-only here. /fork continues a copy."
"""What users read of a session whose lock another process holds."""


class NoSessionError(StoreError):
    """A session was asked for by a name that none has."""

    exit_code = EXIT_USAGE


class SessionBusyError(StoreError):
    """The session is open in another process; it can be read but not continued here."""


class RequiredServerError(AgentError):
    """A run needs an MCP server that did not come."""

    exit_code = EXIT_SERVER


class ToolError(AgentError):
    """A tool could not do what was asked; its text goes to the model as the tool's result."""


class WorkerError(AgentError):
    """The provider worker died or does not answer."""

    exit_code = EXIT_RETRYABLE
