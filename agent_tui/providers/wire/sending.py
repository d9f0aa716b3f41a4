"""What of the reasoning goes into one request, and whether the model thinks in it: decided once, for all who ask."""

from __future__ import annotations

from agent_tui.models.requests import ModelInfo, ModelRequest
from agent_tui.providers.wire.replay import ReplayPlan, plan_replay
from agent_tui.providers.wire.thinking import Thinking, thinking_for


def decide(request: ModelRequest, info: ModelInfo) -> tuple[ReplayPlan, Thinking]:
    """The replay rule applied to a request and the way its thinking is asked for, each knowing of the other."""
    messages, fixed, rule = request.messages, request.fixed_fingerprint, request.replay
    plan = plan_replay(messages, info.target, fixed, request.effort, rule)
    thinking = thinking_for(request, info, forced_off=plan.thinking_off)
    if thinking.off and request.effort != "off":
        # Without thinking, Claude's old blocks are of no use in this step.
        plan = plan_replay(messages, info.target, fixed, "off", rule)
    return plan, thinking
