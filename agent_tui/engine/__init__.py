"""The running agent: turns, steps, tool calls, compaction, and the session facade the UI talks to."""
