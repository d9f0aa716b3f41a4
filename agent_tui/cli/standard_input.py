"""What is piped into a run without a screen: read where it is there, never waited for without being asked."""

from __future__ import annotations

import select
import sys

from agent_tui import door
from agent_tui.errors import AgentError

PATIENCE = 0.5
"""Seconds in which an open pipe has to bring something: schedulers and CI runners hand down pipes that never end."""


def piped_in(wait: bool) -> str:
    """Standard input to its end, as text; empty where it is a terminal, or, unless it is to be ``wait``ed for, a pipe
    that brings nothing at first: stderr then says so, and nothing is taken from it. Raises AgentError."""
    if sys.stdin.isatty():
        return ""
    if not wait and not _brings_something():
        door.complain("standard input is an open pipe that brought nothing; to wait for it: agent-tui -p PROMPT -")
        return ""
    try:
        data = sys.stdin.buffer.read()
    except OSError as error:
        raise AgentError(f"Standard input cannot be read: {error.strerror or error}.") from error
    return decoded(data).strip("\n")


def decoded(data: bytes) -> str:
    """Bytes as text. What is not UTF-8 is replaced, and stderr says so."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        door.complain(f"standard input is not UTF-8 (byte {error.start}); what is not was replaced")
        return data.decode("utf-8-sig", "replace")


def _brings_something() -> bool:
    """Whether there is something to read, or the end, before ``PATIENCE`` is over."""
    try:
        return bool(select.select([sys.stdin.fileno()], [], [], PATIENCE)[0])
    except (OSError, ValueError):
        return True
