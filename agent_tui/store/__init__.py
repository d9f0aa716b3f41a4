"""The message store: one SQLite database of sessions, messages, steps and compaction records."""

from agent_tui.store.lock import SessionLock
from agent_tui.store.store import Store
from agent_tui.store.tables.facts import Snapshot
from agent_tui.store.tables.messages import walk

__all__ = ["SessionLock", "Snapshot", "Store", "walk"]
