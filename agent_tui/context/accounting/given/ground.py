"""What the formula stands on: what follows from the inputs before anything is summed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agent_tui.context.accounting.given.accuracy import clamp_ratio, coarse_ratio
from agent_tui.context.accounting.given.coverage import Coverage
from agent_tui.context.accounting.given.fixed_scale import fixed_scale_of
from agent_tui.context.accounting.given.inputs import ContextInputs
from agent_tui.context.accounting.given.reasoning import ReasoningNow, reasoning_now
from agent_tui.context.sent.anchor import SentPrefixes, chain_of, prefixes_of
from agent_tui.context.sent.reasoning_runs import left_out
from agent_tui.context.sent.result_states import ResultStates
from agent_tui.context.tokens.estimate import MessageEstimate, estimate_message
from agent_tui.context.tokens.families import Family, family_of
from agent_tui.models.messages import Message
from agent_tui.models.requests import ReplayRule, SentMessage, Target
from agent_tui.models.steps import Step

Estimate = Callable[[Message, str, bool], MessageEstimate]
"""The estimate of a message with a key (which says as what it is sent), and whether it is the first result."""


@dataclass(slots=True, frozen=True)
class Ground:
    """The inputs, and what they say of the past and of the next request.

    ``chain`` are the steps that can be built on, ascending; ``answered`` the step of each answer; ``measured_scale``
    how the provider's tokens of the ephemeral parts compare with their estimate, where that was measured; ``rule`` what
    the next request does with old reasoning, and ``reasoning`` what of it counts. ``ratio`` is the calibration of what
    is new, ``coarse_ratio`` of estimates within what was measured: those do not move with every step.
    """

    inputs: ContextInputs
    family: Family
    prefixes: SentPrefixes
    chain: Sequence[Step]
    answered: Mapping[str, Step]
    measured_scale: float | None
    results: ResultStates
    rule: ReplayRule
    reasoning: ReasoningNow
    estimate: Estimate
    ratio: float = field(init=False)
    coarse_ratio: float = field(init=False)
    coverage: Coverage = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ratio", clamp_ratio(self.inputs.ratio))
        object.__setattr__(self, "coarse_ratio", coarse_ratio(self.inputs.ratio))
        object.__setattr__(self, "coverage", Coverage(self.chain))

    @property
    def view(self) -> Sequence[SentMessage]:
        return self.inputs.view

    @property
    def target(self) -> Target:
        return self.inputs.model.target

    @property
    def anchor(self) -> Step | None:
        """The newest step that can be built on."""
        return self.chain[-1] if self.chain else None

    @property
    def head(self) -> int:
        """Messages before the first measured answer."""
        return self.chain[0].sent_count if self.chain else 0

    @property
    def measured(self) -> int:
        """Messages up to the anchor, its own answer included."""
        return end_of(self.chain[-1]) if self.chain else 0

    @property
    def fixed_scale(self) -> float:
        return self.measured_scale or 1.0


def ground_of(inputs: ContextInputs) -> Ground:
    """The ground of one calculation, from nothing."""
    model, view, steps = inputs.model, inputs.view, inputs.steps
    target, family = model.target, family_of(model.target)
    prefixes, results = prefixes_of(view), ResultStates(inputs.records)
    rule = rule_of(inputs, prefixes, results)

    def estimate(message: Message, key: str, first: bool) -> MessageEstimate:
        return estimate_message(message, family, first)

    return Ground(
        inputs=inputs,
        family=family,
        prefixes=prefixes,
        chain=chain_of(steps, prefixes, target, model.limits.window),
        answered={s.message_id: s for s in steps if s.message_id is not None},
        measured_scale=fixed_scale_of(steps, target, family, view, inputs.records),
        results=results,
        rule=rule,
        reasoning=reasoning_now(view, target, inputs.fixed_fingerprint, inputs.effort, rule),
        estimate=estimate,
    )


def rule_of(inputs: ContextInputs, prefixes: SentPrefixes, results: ResultStates) -> ReplayRule:
    """The rule the next request is sent with: what was learned of the server, and what stays out of the prefix."""
    out = left_out(inputs.view, inputs.steps, prefixes, results, inputs.model.target)
    return replace(inputs.replay, left_out=out) if out else inputs.replay


def end_of(step: Step) -> int:
    """Index after the step's own answer."""
    return step.sent_count + (1 if step.kind == "turn" else 0)
