"""The vocabulary: plain dataclasses for messages, usage, steps, requests and events."""
