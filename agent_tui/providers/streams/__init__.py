"""From the bytes of a streamed answer to parts, and their usage."""
