"""Screens opened on demand; each module is imported when its screen is first shown."""
