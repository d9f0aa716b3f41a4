"""One model call: which way it goes, how long it may be silent or long, and how it ends."""
