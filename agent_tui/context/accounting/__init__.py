"""The one calculator: what the next request costs, of what it is made, and where its limit is."""
