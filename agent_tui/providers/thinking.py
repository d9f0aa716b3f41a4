"""From our four effort levels to every provider's own parameter."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from agent_tui.models.messages import Metadata
from agent_tui.models.requests import Effort, ModelInfo, ModelRequest
from agent_tui.providers.catalog import dialect_of, family_record
from agent_tui.providers.replay import ReplayPlan, adaptive_thinking, asks_to_drop, plan_replay
from agent_tui.providers.versions import claude_version, gemini_major, is_openai_reasoning

# Tokens of thinking that are asked for where a provider wants a number.
BUDGETS: dict[Effort, int] = {"off": 0, "low": 2_048, "medium": 8_192, "high": 24_576}
# The smallest budget Anthropic accepts.
MIN_BUDGET = 1_024
_LADDER = (MIN_BUDGET, 2_048, 4_096, 8_192, 16_384, 24_576)
LEAST_KEPT, MOST_KEPT = 512, 4_096
"""Tokens of the output that thinking leaves for the answer: a quarter of it within these bounds."""

_RESERVE_SHARE, _RESERVE_MOST = 0.25, 32_000
"""The reserve for the answer: what is asked for as output when the window is nearly full, less a margin."""

BINDING_BETA = "thinking-binding-controls-2026-08-01"
"""Without this header Anthropic's API refuses ``block_binding``."""
_ALWAYS_THINKS = re.compile(
    r"gpt-5(?!\.\d)|gpt-oss|(?:^|/)o[134](?:-|$)|gemini-(?:2\.5|3\S*)-pro|grok-4(?!-fast|\.)|deepseek-r1|thinking|minimax-m"
)
"""Models that refuse to be switched off; they are asked for the least instead (openrouter.ai/docs, reasoning)."""
_ALWAYS_THINKS_OPENAI = re.compile(r"codex|-pro|gpt-oss")
_OLLAMA_THINKS = re.compile(r"qwen3|deepseek-(?:r1|v3\.1)|gpt-oss|magistral|glm-4|kimi-k2-thinking|nemotron")
_NO_ROOM = "thinking off for one step: no room for it below the maximum output"


@dataclass(slots=True, frozen=True)
class Thinking:
    """Arguments for LiteLLM, whether thinking is off, and what the user should be told."""

    kwargs: Metadata = field(default_factory=dict)
    off: bool = False
    notes: tuple[str, ...] = ()


def budget_below(effort: Effort, max_output: int | None, window: int | None = None) -> int:
    """Thinking tokens for ``effort`` that leave at least a quarter of the output, or ``MOST_KEPT``, for the answer; 0
    when there is no room.

    One of ``_LADDER``, and chosen by the output that is still asked for when the ``window`` is nearly full, not by
    what is free now: Anthropic drops the messages from its cache whenever the budget is another one.
    """
    want = BUDGETS[effort]
    if max_output is None:
        return want
    full = max_output
    if window:
        reserve = min(int(window * _RESERVE_SHARE), _RESERVE_MOST)
        full = min(max_output, reserve - max(reserve // 16, window // 200))
    budget = _step_below(min(want, _room(full)))
    if budget:
        return budget
    return MIN_BUDGET if _room(max_output) >= MIN_BUDGET else 0


def _room(output: int) -> int:
    return output - max(LEAST_KEPT, min(output // 4, MOST_KEPT))


def _step_below(tokens: int) -> int:
    return max((step for step in _LADDER if step <= tokens), default=0)


def thinking_for(request: ModelRequest, info: ModelInfo, forced_off: str | None = None) -> Thinking:
    """How to ask this model to think as hard as the request says. ``forced_off`` is the replay rule's note when its
    open tool loop forbids thinking. Models that are not known to reason are asked for nothing."""
    effort: Effort = "off" if forced_off else request.effort
    notes = (forced_off,) if forced_off and request.effort != "off" else ()
    target, model = info.target, info.target.model.lower()
    family, style = family_record(target.family), dialect_of(target.provider).thinking
    if family.thinking == "budget or effort":
        return _claude(request, info, effort, notes)
    if target.api == "responses":
        return _responses(info, effort, model)
    if style == "object":
        return _openrouter(info, effort)
    if info.reasoning is False:
        return Thinking(off=effort == "off")
    known = info.reasoning is True
    if family.thinking == "budget or level":
        return _gemini(request, effort, model, known)
    levels = family.thinking == "levels"
    switch: Metadata = {"thinking": {"type": "disabled" if effort == "off" else "enabled"}}
    match style:
        case "effort" if levels or is_openai_reasoning(model):
            return Thinking({"reasoning_effort": openai_effort(model, effort)}, effort == "off")
        case "grok":
            # Only grok-3-mini takes it; the others refuse it.
            level = "low" if effort in ("off", "low") else "high"
            return Thinking({"reasoning_effort": level} if "grok-3-mini" in model else {}, False)
        case "levels" if levels:
            return Thinking({"reasoning_effort": "low" if effort == "off" else effort})
        case "switch" if known:
            return Thinking(switch, effort == "off")
        case "extra switch" if known:
            return Thinking({"extra_body": switch}, effort == "off")
        case "think" if known or _OLLAMA_THINKS.search(model):
            return Thinking({"reasoning_effort": "none" if effort == "off" else effort}, effort == "off")
    return Thinking(off=effort == "off")


def openai_effort(model: str, effort: Effort) -> str:
    """OpenAI's word for it. Off is ``none`` from GPT-5.1 on, ``minimal`` for GPT-5, ``low`` where it cannot be off."""
    if effort != "off":
        return effort
    name = model.lower()
    match = re.search(r"gpt-(\d+)(?:\.(\d+))?", name)
    if match is None or _ALWAYS_THINKS_OPENAI.search(name):
        return "low"
    return "none" if (int(match[1]), int(match[2] or 0)) >= (5, 1) else "minimal"


def _claude(request: ModelRequest, info: ModelInfo, effort: Effort, notes: tuple[str, ...]) -> Thinking:
    if info.reasoning is False or effort == "off" or _too_old_to_think(info):
        return Thinking(off=True, notes=notes)
    if dialect_of(info.target.provider).thinking == "object":
        return Thinking(_openrouter(info, effort).kwargs, notes=notes)
    if asks_to_drop(info.target, request.replay):
        wanted: Metadata = {
            "type": "adaptive",
            "display": "summarized",
            "block_binding": {"prefix_mismatch_behavior": "drop_block"},
        }
        headers = {"anthropic-beta": BINDING_BETA}
        return Thinking(
            {"thinking": wanted, "output_config": {"effort": effort}, "extra_headers": headers}, notes=notes
        )
    if adaptive_thinking(info.target):
        return Thinking({"reasoning_effort": effort}, notes=notes)
    budget = budget_below(effort, request.max_output, info.limits.window)
    if not budget:
        return Thinking(off=True, notes=(*notes, _NO_ROOM))
    return Thinking({"thinking": {"type": "enabled", "budget_tokens": budget}}, notes=notes)


def _too_old_to_think(info: ModelInfo) -> bool:
    """Models below a certain version refuse to be asked for thinking; one without a version is taken for new."""
    known, floor = claude_version(info.target.model), family_record(info.target.family).thinks_from
    return known is not None and floor is not None and known[1] < floor


def _responses(info: ModelInfo, effort: Effort, model: str) -> Thinking:
    if is_openai_reasoning(model):
        return Thinking({"reasoning": {"effort": openai_effort(model, effort), "summary": "auto"}}, effort == "off")
    if "grok-3-mini" in model:
        return Thinking({"reasoning": {"effort": "low" if effort in ("off", "low") else "high"}})
    if info.reasoning is True and "grok" not in model:
        return Thinking({"reasoning": {"effort": "low" if effort == "off" else effort, "summary": "auto"}})
    return Thinking(off=effort == "off")


def _openrouter(info: ModelInfo, effort: Effort) -> Thinking:
    if info.reasoning is False:
        return Thinking(off=effort == "off")
    wanted: Metadata = {"effort": effort}
    if effort == "off":
        wanted = {"effort": "low"} if _ALWAYS_THINKS.search(info.target.model.lower()) else {"enabled": False}
    if effort == "off" and info.reasoning is None:
        return Thinking(off=True)
    return Thinking({"extra_body": {"reasoning": wanted, "usage": {"include": True}}}, effort == "off")


def _gemini(request: ModelRequest, effort: Effort, model: str, known: bool) -> Thinking:
    major = gemini_major(model) or 0
    if major < 2 or not (known or major >= 3 or "2.5" in model):
        return Thinking(off=effort == "off")
    if major >= 3:
        # Pro models know no ``minimal`` (ai.google.dev/gemini-api/docs/thinking).
        least = "low" if "pro" in model else "minimal"
        return Thinking({"reasoning_effort": least if effort == "off" else effort}, effort == "off")
    if effort == "off":
        # 2.5 Pro cannot be switched off; 128 is the least it takes (ai.google.dev/gemini-api/docs/thinking).
        smallest = 128 if "pro" in model else 0
        return Thinking({"thinking": {"type": "enabled", "budget_tokens": smallest}}, True)
    budget = budget_below(effort, request.max_output)
    if not budget:
        return Thinking(off=True, notes=(_NO_ROOM,))
    return Thinking({"thinking": {"type": "enabled", "budget_tokens": budget}})


def decide(request: ModelRequest, info: ModelInfo) -> tuple[ReplayPlan, Thinking]:
    """The replay rule applied to a request and the way its thinking is asked for, each knowing of the other."""
    messages, fixed, rule = request.messages, request.fixed_fingerprint, request.replay
    plan = plan_replay(messages, info.target, fixed, request.effort, rule)
    thinking = thinking_for(request, info, forced_off=plan.thinking_off)
    if thinking.off and request.effort != "off":
        # Without thinking, Claude's old blocks are of no use in this step.
        plan = plan_replay(messages, info.target, fixed, "off", rule)
    return plan, thinking
