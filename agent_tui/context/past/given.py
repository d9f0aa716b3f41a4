"""What the calculator was given for a step: stored with it, and made again of it."""

from __future__ import annotations

from typing import get_args

from agent_tui.context.accounting.budget import compact_at_of
from agent_tui.context.accounting.given.inputs import CompactionSettings, ContextInputs
from agent_tui.models.requests import Effort, ModelInfo, ModelSpec, ReplayRule, Target
from agent_tui.models.steps import Given, Step
from agent_tui.models.usage import Limits, Prices
from agent_tui.providers.catalog import model_family

EFFORTS = frozenset(get_args(Effort))


def given_of(inputs: ContextInputs, head: str | None) -> Given:
    """What is to be stored of these inputs; ``head`` is the id of the conversation's last message."""
    limits, settings = inputs.model.limits, inputs.settings
    return Given(
        head=head,
        ratio=inputs.ratio,
        effort=inputs.effort,
        family=inputs.model.target.family,
        bound=inputs.replay.bound,
        ask_drop=inputs.replay.ask_drop,
        max_input=limits.max_input,
        max_output=limits.max_output,
        limit_source=limits.source,
        learned_at=limits.learned_at,
        compact_at=compact_at_of(inputs.model, settings),
        reserve=settings.max_output_reserve,
        auto_compact=settings.auto_compact,
        paused=settings.paused,
        off=settings.off,
    )


def model_of(step: Step) -> ModelInfo:
    """The model of a step with its limits as they were known then. Its prices are not: they are not stored."""
    given = step.given
    family = given.family if given is not None else model_family(step.model)
    target = Target(step.provider, step.api, step.model, family)
    limits = Limits(step.window)
    if given is not None:
        learned = ("window",) if given.limit_source == "learned" else ()
        limits = Limits(step.window, given.max_input, given.max_output, given.limit_source, learned, given.learned_at)
    return ModelInfo(ModelSpec(step.model_key, step.model), target, limits, Prices())


def settings_of(step: Step, otherwise: CompactionSettings) -> CompactionSettings:
    """When it would have compacted; ``otherwise`` stands in where that is not stored."""
    given = step.given
    if given is None:
        return otherwise
    return CompactionSettings(given.auto_compact, given.compact_at, given.reserve, given.paused, given.off)


def effort_of(step: Step) -> Effort:
    """How much the model was asked to think."""
    asked = step.given.effort if step.given is not None else step.thinking
    return next((effort for effort in EFFORTS if effort == asked), "off")


def rule_of(step: Step) -> ReplayRule:
    """What was known of how the server takes reasoning back."""
    given = step.given
    return ReplayRule() if given is None else ReplayRule(bound=given.bound, ask_drop=given.ask_drop)
