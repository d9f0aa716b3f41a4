"""The terminal around the screen: its driver, title and bell, and the clipboards."""
