"""Pure context accounting: what is sent, what it costs, when and what to compact."""
