"""LiteLLM, imported when the first call needs it, with our tokenizer and listened in on."""

from __future__ import annotations

from typing import Any

from agent_tui.errors import WorkerError
from agent_tui.providers.counting import encoding
from agent_tui.providers.litellm import setup
from agent_tui.providers.streams import tap


def load() -> Any:
    """Imports LiteLLM. Blocks for seconds; run it in a thread. Raises ImportError."""
    try:
        tokenizer = encoding()
    except WorkerError:
        tokenizer = None
    litellm = setup.load(tokenizer)
    tap.install()
    return litellm
