"""The message store: one SQLite database of sessions, messages, steps and compaction records."""

from agent_tui.store.facts import Snapshot
from agent_tui.store.locks import SessionLock
from agent_tui.store.messages import walk
from agent_tui.store.store import Store

__all__ = ["SessionLock", "Snapshot", "Store", "walk"]
