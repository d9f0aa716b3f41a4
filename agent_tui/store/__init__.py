"""The message store: one SQLite database of sessions, messages, steps and compaction records."""
