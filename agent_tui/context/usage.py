"""The one calculator."""

from __future__ import annotations

from agent_tui.context.inputs import CompactPolicy, ContextInputs
from agent_tui.context.policy import max_output_for
from agent_tui.models.context import ContextUsage

__all__ = ["CompactPolicy", "ContextInputs", "calculate_context_usage", "max_output_for"]


def calculate_context_usage(inputs: ContextInputs) -> ContextUsage:
    """What the next request will cost in input tokens, of what it is made, and whether it would compact."""
    raise NotImplementedError
