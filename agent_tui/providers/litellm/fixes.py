"""Corrections of LiteLLM, each only where it is needed: what is wrong is tried first, not read from a version."""

from __future__ import annotations

from typing import Any

from agent_tui.providers.streams import tap


def install() -> None:
    """Apply all of them. Idempotent; imports LiteLLM."""
    tap.install()
    _bedrock_redacted()


def _bedrock_redacted() -> None:
    """LiteLLM up to 1.106 sends redacted thinking to Bedrock as empty text; Bedrock wants the data back."""
    from litellm.litellm_core_utils.prompt_templates import factory

    processor = getattr(factory, "BedrockConverseMessagesProcessor", None)
    convert = getattr(processor, "translate_thinking_blocks_to_reasoning_content_blocks", None)
    if processor is None or convert is None:
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

    processor.translate_thinking_blocks_to_reasoning_content_blocks = staticmethod(with_redacted)
