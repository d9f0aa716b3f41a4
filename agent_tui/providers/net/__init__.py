"""The network below the calls: addresses, bounds on what is read, guards, one plain question."""
