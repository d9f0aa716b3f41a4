"""Planning a compaction: what may go, what stays, what a summary must hold, and what users are told of it."""
