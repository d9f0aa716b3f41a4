"""The inputs of the calculator, and what they say of the past: steps to build on, reasoning, the measured scale."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import NamedTuple

from agent_tui.context.accounting.fixed import (
    Coverage,
    Difference,
    differ,
    estimate_fixed_parts,
    fixed_delta,
    gone_share,
    is_scaled,
    measured_changes,
)
from agent_tui.context.anchor import (
    ResultStates,
    SentPrefixes,
    aligned,
    chain_of,
    edits_since,
    left_out,
    prefixes_of,
)
from agent_tui.context.tokens import Family, MessageEstimate, char_tokens, estimate_message, family_seen
from agent_tui.context.view import is_gone, whole_view
from agent_tui.models.calibration import Calibration, Content
from agent_tui.models.messages import RECALL_TOOL, Message, ReasoningPart
from agent_tui.models.requests import Effort, ModelInfo, ReplayRule, SentMessage, Target
from agent_tui.models.search import searches_go_back, searches_in
from agent_tui.models.steps import CompactionRecord, FixedPart, Step
from agent_tui.providers.catalog import retention
from agent_tui.providers.dialects.shared import ReplayStatus
from agent_tui.providers.reasoning import ANY_RULE, FIXED_CHANGED, plan_replay, turn_is_closed
from agent_tui.records import dataclass

DEFAULT_RESERVE = 32_000


@dataclass(slots=True, frozen=True)
class CompactionSettings:
    """When to compact. ``compact_at`` up to 1.0 is a fraction of the window, above it a number of tokens; a model's
    own ``compact_at`` wins over it. ``paused`` (after an undo) holds back the automatic compaction of this session
    only; ``off`` (after three failures) has it go on without summaries."""

    auto_compact: bool = True
    compact_at: float | None = None
    max_output_reserve: int = DEFAULT_RESERVE
    paused: bool = False
    off: bool = False


@dataclass(slots=True, frozen=True)
class EditedView:
    """A view (``sent``) and the same with what the user dropped in its place (``context.view.whole_view``)."""

    sent: Sequence[SentMessage]
    whole: Sequence[SentMessage]


def edited_view(
    sent: Sequence[SentMessage],
    path: Sequence[Message],
    records: Sequence[CompactionRecord],
    summaries: Mapping[str, Message],
    steps: Sequence[Step],
) -> EditedView | None:
    """That of a conversation of which ``sent`` is the view; None where nothing was edited since its newest answer."""
    if not sent or not edits_since(path, records, steps):
        return None
    return EditedView(sent, whole_view(path, records, summaries))


@dataclass(slots=True, frozen=True)
class ContextInputs:
    """The calculator's only arguments."""

    model: ModelInfo
    view: Sequence[SentMessage]
    """What would be sent now (``context.view.build_view``)."""
    steps: Sequence[Step] = ()
    """All steps of the session, oldest first."""
    records: Sequence[CompactionRecord] = ()
    fixed: Sequence[FixedPart] = ()
    """The prefix parts of the next request."""
    settings: CompactionSettings = field(default_factory=CompactionSettings)
    calibration: Calibration | None = None
    """What was learned of how the model's server counts; None: nothing but what is known of its family."""
    fixed_fingerprint: str = ""
    effort: Effort = "off"
    replay: ReplayRule = field(default_factory=ReplayRule)
    """What was learned of the model's server; what stays out of the prefix is found in the steps."""
    inherited: int = 0
    """Leading steps of the session that this one was forked from: they measure, and cost nothing here."""
    pinned: Sequence[str] = ()
    """Messages whose words a compaction carries: of matter for its plan alone."""
    edited: EditedView | None = None
    """Where messages were dropped or restored since the newest answer."""

    @property
    def compared(self) -> Sequence[SentMessage]:
        """What is compared with what steps sent: ``view``, or that with what was dropped of it."""
        return self.view if self.edited is None or self.edited.sent is not self.view else self.edited.whole

    @property
    def recall(self) -> bool:
        """True where the next request offers the model the tool that brings back what is no longer sent."""
        return any(part.row == "tools" and (part.group, part.label) == ("builtin", RECALL_TOOL) for part in self.fixed)

    def as_now(self) -> ContextInputs:
        """The same, which stays as it is when the session's own lists go on."""
        return replace(self, steps=list(self.steps), records=[replace(record) for record in self.records])


@dataclass(slots=True, frozen=True)
class ReasoningNow:
    """The replay status of each answer if the view were sent now. ``turn_start`` is the index of the last user message:
    messages before it belong to closed turns. ``turn_closed``: the model has finished its turn, so that the next
    request begins with a new user message."""

    statuses: Mapping[str, ReplayStatus]
    turn_start: int
    turn_closed: bool

    def status(self, message_id: str) -> ReplayStatus | None:
        return self.statuses.get(message_id)

    def counted(self, message_id: str) -> float:
        """Share of that answer's reasoning tokens that the next input contains."""
        status = self.statuses.get(message_id)
        return status.counted if status else 0.0

    def counted_then(self, message_id: str, target: Target, *, turn_open: bool) -> float:
        """The same share at an earlier request of this conversation, made with the prompt and tools of that time."""
        status = self.statuses.get(message_id)
        if status is None or not (status.resent or status.reason == FIXED_CHANGED):
            return 0.0
        inside, after = retention(target)
        return inside if turn_open else after


def reasoning_now(
    view: Sequence[SentMessage], target: Target, fixed_fingerprint: str, effort: Effort, rule: ReplayRule = ANY_RULE
) -> ReasoningNow:
    """The statuses of a view. Where the open tool loop makes the step run without thinking, so do the accounts."""
    plan = plan_replay(view, target, fixed_fingerprint, _asked(effort), rule)
    if plan.thinking_off is not None:
        plan = plan_replay(view, target, fixed_fingerprint, "off", rule)
    statuses = {
        item.message.id: status
        for item in view
        if item.message.role == "assistant" and (status := plan.message_status(item.message.id)) is not None
    }
    users = (i for i in range(len(view) - 1, -1, -1) if view[i].message.role == "user")
    return ReasoningNow(statuses, next(users, 0), turn_is_closed(view))


def reasoning_tokens(message: Message, step: Step | None, spoken: Callable[[Message], float]) -> tuple[int, bool]:
    """Reasoning tokens of an answer, and whether the provider said so: its number where there is one, else what is left
    of the output of its ``step``.

    ``spoken`` estimates an answer's text and calls. A text of reasoning is often only a summary of what was thought,
    so it says little about its size: output less everything else does. Where a model thought, that is never 0.
    """
    usage = step.counted if step is not None else None
    parts = [p for p in message.parts if isinstance(p, ReasoningPart)]
    shown = any(p.text for p in parts)
    said = usage.reasoning if usage is not None and usage.reasoning_source == "provider" else None
    if usage is not None and said is not None and (said or not shown):
        return min(said, usage.output), True
    if not parts:
        made_up = usage.reasoning if usage is not None else None
        return (min(made_up, usage.output), False) if usage is not None and made_up else (0, True)
    written = round(sum(char_tokens(p.text) for p in parts))
    if usage is None:
        return written, False
    left = round(usage.output - spoken(message))
    return max(min(1, usage.output), left if left > 0 else min(written, usage.output)), False


def counted_at(view: Sequence[SentMessage], target: Target, fixed_fingerprint: str, effort: Effort) -> dict[str, float]:
    """Shares of all answers of a request as it was sent then. Goes through the whole view: only for when the prompt,
    the tools or the cleared results changed since."""
    plan = plan_replay(view, target, fixed_fingerprint, _asked(effort))
    return {i.message.id: plan.counted(i.message.id) for i in view if i.message.role == "assistant"}


def _asked(effort: Effort) -> Effort | None:
    """Returns the effort that the replay rule is asked with: whether a step thinks matters to it, not how long."""
    return effort if effort == "off" else None


LOW, HIGH = 0.5, 2.0
"""Beyond these the measurement is of something else."""

MOST_MESSAGES = 1.0
"""Messages of a step that measures, as a share of the prefix parts: their error is taken for the parts'."""


MOST_GONE = 0.2
"""Share of the measured parts that may be gone."""


class FixedScale(NamedTuple):
    """One measurement: ``share`` is what was sent beside the parts, relative to them, ``age`` how long ago it was made
    in steps (negative: the newer the less), ``scale`` measured / estimated tokens of the parts. They sort by how good
    they are, the best first."""

    share: float
    age: int
    scale: float
    step: Step


def fixed_scale_of(
    steps: Sequence[Step],
    target: Target,
    family: Family,
    view: Sequence[SentMessage],
    records: Sequence[CompactionRecord],
    fixed: Sequence[FixedPart] = (),
    added: float = 0.0,
) -> float | None:
    """Measured / estimated tokens of the prefix parts; None where nothing was measured. What the server ``added`` is
    none of them.

    A step that had nothing to build on measures them: what was sent, less the estimate of its messages. The one with
    the least beside the parts counts, of those whose answer is in the conversation: a copy of it has the same steps,
    and must show the same numbers.
    """
    made = [fixed_scale_at(number, step, target, family, added) for number, step in enumerate(ended(steps))]
    return best_scale(sorted((m for m in made if m is not None), key=order), view, records, fixed)


def ended(steps: Sequence[Step]) -> Iterable[Step]:
    """The steps before the first that still runs."""
    for step in steps:
        if step.status == "running":
            return
        yield step


def order(measured: FixedScale) -> tuple[float, int]:
    """The best measurement first; the newer one where two have as little beside the parts."""
    return measured.share, measured.age


def best_scale(
    measured: Iterable[FixedScale],
    view: Sequence[SentMessage],
    records: Sequence[CompactionRecord],
    fixed: Sequence[FixedPart],
) -> float | None:
    """Of measurements in their order the first whose answer is in the conversation. It says nothing of other parts than
    those that were sent: most of them have to be among those of now."""
    alike = (m for m in measured if gone_share(fixed, m.step.fixed) <= MOST_GONE)
    return next((m.scale for m in alike if _in_conversation(m.step, view, records)), None)


def fixed_scale_at(number: int, step: Step, target: Target, family: Family, added: float) -> FixedScale | None:
    """Returns the scale of the prefix parts that the step at ``number`` measured; None where it did not measure
    them."""
    usage, messages = step.counted, step.estimated_messages
    if messages is None or usage is None or not usage.anchors or step.status != "complete":
        return None
    if (step.model, step.provider, step.api) != (target.model, target.provider, target.api):
        return None
    parts = estimate_fixed_parts(step.fixed, family)
    scaled = sum(size for part, size in zip(parts.parts, parts.tokens, strict=True) if is_scaled(part))
    if not scaled or any(parts.approximate):
        return None
    beside = messages + parts.total - scaled
    share, scale = beside / scaled, (usage.input - beside - added) / scaled
    return FixedScale(share, -number, scale, step) if share <= MOST_MESSAGES and LOW <= scale <= HIGH else None


def _in_conversation(step: Step, view: Sequence[SentMessage], records: Sequence[CompactionRecord]) -> bool:
    at, answer = step.sent_count, step.message_id
    if step.kind == "count":
        return True
    if at < len(view) and view[at].message.id == answer:
        return True
    if any(r.active and r.kind == "summary" and answer in r.message_ids for r in records):
        return True
    return any(item.message.id == answer for item in view)


Estimate = Callable[[Message, str, bool], MessageEstimate]
"""The estimate of a message with a key (which says as what it is sent), and whether it is the first result."""


@dataclass(frozen=True)
class Ground:
    """The inputs, and what they say of the past and of the next request.

    ``chain`` are the steps that can be built on, ascending; ``answered`` the step of each answer; ``measured_scale``
    how the provider's tokens of the prefix parts compare with their estimate, where that was measured; ``rule`` what
    the next request does with old reasoning, and ``reasoning`` what of it counts. ``calibration`` is that of what
    is new, ``coarse`` of estimates within what was measured: those do not move with every step.
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

    @cached_property
    def calibration(self) -> Calibration:
        return self.inputs.calibration or self.family.beginning

    @property
    def added(self) -> float:
        """Tokens that the server adds to each request."""
        return self.calibration.added

    @cached_property
    def coarse(self) -> Calibration:
        return self.calibration.coarse(self.family.beginning)

    @cached_property
    def changes(self) -> list[Difference]:
        """What reports measured of parts that came or went."""
        return _changes(self.inputs)

    @cached_property
    def coverage(self) -> Coverage:
        return Coverage(self.chain)

    @property
    def view(self) -> Sequence[SentMessage]:
        return self.inputs.compared

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
    def heads(self) -> int:
        """Those of them that are sent."""
        return sum(not is_gone(item.key) for item in self.view[: self.head])

    @property
    def measured(self) -> int:
        """Messages up to the anchor, its own answer included."""
        return end_of(self.chain[-1]) if self.chain else 0


def _changes(inputs: ContextInputs) -> list[Difference]:
    """What reports measured of parts that came or went, by steps of this conversation: a copy of it must show the same
    numbers."""
    view, records = inputs.compared, inputs.records
    if not [s for s in inputs.steps if s.estimated_change is not None]:
        return []
    steps = [s for s in inputs.steps if s.estimated_change is None or _in_conversation(s, view, records)]
    return measured_changes(steps, inputs.model.target)


WORTH_LEAVING = 100
"""Standard deviation, in tokens, up to which the newest step is built on whatever prefix parts came or went since."""


def surest(inputs: ContextInputs, chain: Sequence[Step], family: Family, estimate: Estimate) -> Sequence[Step]:
    """The chain up to the step that the next input is built on: the newest, unless prefix parts came or went since
    whose size nobody measured. Then an older one may be surer, with more messages to estimate, or none at all."""
    now, view, known = inputs.fixed, inputs.compared, inputs.calibration or family.beginning
    target, searches = inputs.model.target, family.target is not None
    turned = bool(chain) and searches_go_back(target, chain[-1].fixed) != searches
    if turned and any(searches_in(item.message.parts) for item in view):
        # With the searches in it a request measures nothing of one without them, nor the other way round.
        chain = [step for step in chain if searches_go_back(target, step.fixed) == searches]
    if not chain or not differ(now, chain[-1].fixed):
        return chain
    changes = _changes(inputs)
    if fixed_delta(now, chain[-1].fixed, family, known, None, changes)[1]:
        # How sure an estimate is shows once everything is counted.
        return chain

    def unsure(step: Step) -> float:
        return known.variance(fixed_delta(now, step.fixed, family, known, None, changes)[2])

    def add(content: Content, start: int, end: int) -> None:
        for index in range(start, end):
            first = view[index].message.role != "tool" or index == 0 or view[index - 1].message.role != "tool"
            content.add(estimate(view[index].message, view[index].key, first).content)

    best, least, between = len(chain), unsure(chain[-1]), Content()
    if least <= WORTH_LEAVING**2:
        return chain
    for number in range(len(chain) - 1, 0, -1):
        add(between, end_of(chain[number - 1]), end_of(chain[number]))
        own = known.variance(between)
        if own >= least:
            break
        if (variance := own + unsure(chain[number - 1])) < least:
            best, least = number, variance
    whole = estimate_fixed_parts(now, family, known).content
    add(whole, 0, end_of(chain[-1]))
    return [] if known.variance(whole) < least else chain[:best]


def ground_of(inputs: ContextInputs) -> Ground:
    """The ground of one calculation, from nothing."""
    model, view, steps = inputs.model, inputs.compared, inputs.steps
    target, family, whole = model.target, family_seen(model, inputs.fixed), view is not inputs.view
    prefixes, results = prefixes_of(view), ResultStates(inputs.records, view)
    rule = rule_of(inputs, prefixes_of(inputs.view) if whole else prefixes, results)
    comparable = aligned(steps, prefixes, results) if whole else steps
    chain = results.measuring(chain_of(comparable, prefixes, target, model.limits.window), prefixes.ids)
    reasoning = reasoning_now(inputs.view, target, inputs.fixed_fingerprint, inputs.effort, rule)
    if whole:
        asked = (place for place in range(len(view) - 1, -1, -1) if view[place].message.role == "user")
        reasoning = replace(reasoning, turn_start=next((p for p in asked if not is_gone(view[p].key)), 0))

    def estimate(message: Message, key: str, first: bool) -> MessageEstimate:
        return estimate_message(message, family, first)

    added = inputs.calibration.added if inputs.calibration is not None else 0.0
    return Ground(
        inputs=inputs,
        family=family,
        prefixes=prefixes,
        chain=surest(inputs, chain, family, estimate),
        answered={s.message_id: s for s in steps if s.message_id is not None},
        measured_scale=fixed_scale_of(steps, target, family, view, inputs.records, inputs.fixed, added),
        results=results,
        rule=rule,
        reasoning=reasoning,
        estimate=estimate,
    )


def rule_of(inputs: ContextInputs, prefixes: SentPrefixes, results: ResultStates) -> ReplayRule:
    """The rule the next request is sent with: what was learned of the server, and what stays out of the prefix."""
    out = left_out(inputs.view, inputs.steps, prefixes, results, inputs.model.target)
    return replace(inputs.replay, left_out=out) if out else inputs.replay


def end_of(step: Step) -> int:
    """Index after the step's own answer."""
    return step.sent_count + (1 if step.kind == "turn" else 0)
