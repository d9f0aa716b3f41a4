"""From our request to what goes over the wire, in the format of every provider."""
