"""The demo model: offline, deterministic, scriptable; an independent witness of the accounting."""
