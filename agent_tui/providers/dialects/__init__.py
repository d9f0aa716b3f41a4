"""What is known of each provider: one frozen record each. Adding an OpenAI-compatible provider is one record in
``table`` and one recording."""

from agent_tui.providers.dialects.record import Auth, Cache, CallIds, Counting, Dialect, Retention, Thinking, Wire
from agent_tui.providers.dialects.table import DIALECTS, dialect_of, has_record

__all__ = (
    "DIALECTS",
    "Auth",
    "Cache",
    "CallIds",
    "Counting",
    "Dialect",
    "Retention",
    "Thinking",
    "Wire",
    "dialect_of",
    "has_record",
)
