"""The project around a session: prompt, tools, permissions, extensions, health."""
