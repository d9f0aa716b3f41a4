"""The chat in a page of the browser: a server on this machine, and the one chat behind it."""
