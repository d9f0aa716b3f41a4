"""Everything of LiteLLM's that it does not promise: patched, replaced, or read where its interface says nothing.

The one place to look at when a new version changes. Importing this does not import LiteLLM.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import json
import sys
import types
from pathlib import Path
from typing import Any

TABLE_FILE = "model_prices_and_context_window_backup.json"
PROVIDERS_FILE = "provider_endpoints_support_backup.json"
VOCABULARIES = ("litellm_core_utils", "tokenizers")
"""The folder of tiktoken's vocabularies that comes with it."""

DEFAULT_ENCODING = "litellm.litellm_core_utils.default_encoding"

FINISH_REASONS = ("received_finish_reason", "intermittent_finish_reason")
CHUNKS = "chunks"
SKIP_MCP = "_skip_mcp_handler"
BEDROCK = ("BedrockConverseMessagesProcessor", "translate_thinking_blocks_to_reasoning_content_blocks")


def place(*parts: str) -> Path | None:
    """A file or folder of the installed package; None where there is none."""
    spec = importlib.util.find_spec("litellm")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (found := Path(folder, *parts)).exists():
            return found
    return None


def data_file(name: str) -> dict[str, Any]:
    """One of its tables in JSON; empty when this version keeps it elsewhere."""
    path = place(name)
    try:
        data = json.loads(path.read_text(encoding="utf-8")) if path is not None else {}
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def kept_chunks(stream: Any) -> Any:
    """The chunks as the provider sent them: usage in one of them is no invention of LiteLLM's."""
    return getattr(stream, CHUNKS, None) or ()


def said_why(stream: Any) -> bool:
    """Whether the provider said why its answer ended; LiteLLM makes up a reason where none came."""
    return any(getattr(stream, name, None) for name in FINISH_REASONS)


@functools.cache
def lean_arguments(litellm: Any) -> dict[str, Any]:
    """Arguments that spare a chat call what it does not need: its gateway to MCP servers costs 20 MB as soon as there
    are tools. Empty for versions that do not know them (they would be sent to the provider)."""
    code = getattr(inspect.unwrap(litellm.completion), "__code__", None)
    known = code is not None and SKIP_MCP in code.co_consts
    return {SKIP_MCP: True} if known else {}


def share_the_tokenizer(encoding: Any) -> None:
    """LiteLLM loads a vocabulary of its own (39 MB) to guess usage, which is never believed. It gets ours. To be called
    before anything is counted."""
    if DEFAULT_ENCODING not in sys.modules:
        shared = types.ModuleType(DEFAULT_ENCODING)
        shared.encoding = encoding  # type: ignore[attr-defined]
        sys.modules[DEFAULT_ENCODING] = shared


def shorten_the_end(litellm: Any) -> None:
    """At the end of every stream LiteLLM rebuilds the whole answer from its chunks, for logging that is off here:
    80 µs a chunk. Only usage is of interest there, so it gets the few chunks that carry it. Idempotent."""
    original = litellm.stream_chunk_builder
    if getattr(original, "_shortened", False):
        return

    def build(chunks: list[Any], *args: Any, **kwargs: Any) -> Any:
        with_usage = [chunk for chunk in chunks[:-1] if getattr(chunk, "usage", None) is not None]
        return original([*chunks[:1], *with_usage, *chunks[-1:]] if len(chunks) > 2 else chunks, *args, **kwargs)

    build._shortened = True  # type: ignore[attr-defined]
    litellm.stream_chunk_builder = build


def mend_bedrock_redacted() -> None:
    """LiteLLM up to 1.106 sends redacted thinking to Bedrock as empty text; Bedrock wants the data back. Whether it
    does is tried, not read from a version. Idempotent."""
    processor, convert = bedrock_converter()
    if convert is None:
        return
    probe = convert([{"type": "redacted_thinking", "data": "eA=="}])
    if "redactedContent" in str(probe):
        return

    def with_redacted(thinking_blocks: list[dict[str, Any]]) -> list[Any]:
        blocks: list[Any] = []
        for block in thinking_blocks:
            if block.get("type") == "redacted_thinking":
                blocks.append({"reasoningContent": {"redactedContent": block.get("data") or ""}})
            else:
                blocks.extend(convert([block]))
        return blocks

    setattr(processor, BEDROCK[1], staticmethod(with_redacted))


def bedrock_converter() -> tuple[Any, Any]:
    """The class that writes messages for Bedrock, and its function for thinking; None where this version has none."""
    from litellm.litellm_core_utils.prompt_templates import factory

    processor = getattr(factory, BEDROCK[0], None)
    return processor, getattr(processor, BEDROCK[1], None)
