"""What a caller may keep between two calculations so that the second costs only what is new."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class ContextCache:
    """Kept by the caller, one a session. Losing it costs time, never a different result."""
