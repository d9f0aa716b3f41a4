"""What a model's server was seen to take: a measured input that was answered is a lower bound of the window, whatever
a table, a setting or an assumption says.

Which source of a window wins: the configuration; what a running server says of itself; LiteLLM's table; a provider's
own list of models, asked where the table does not know the model; an assumption by the model's family. A refusal may
make that smaller (``engine.models.learn``), and what was taken is never above it.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from agent_tui.errors import StoreError
from agent_tui.models.requests import ModelInfo, Target
from agent_tui.models.steps import Step
from agent_tui.models.usage import LearnedLimit, Limits, LimitSource, TokenUsage
from agent_tui.providers.catalog import dialect_of, model_family
from agent_tui.providers.dialects.record import least
from agent_tui.providers.limits import entry, table_limits
from agent_tui.providers.listing import listed_models
from agent_tui.store.store import Store

log = logging.getLogger(__name__)

NEAR = 0.999
"""Servers name their own window a token or so off; what is this close to the known one is no news."""

_ROOM, _ROOM_SHARE = 32_000, 4
"""The room for an answer that a window has beside what was taken: so many tokens, at most one part in so many."""


def outgrown(store: Store, info: ModelInfo, step: Step) -> ModelInfo | None:
    """The model with the limits that its server's report of a step shows to be larger than was thought; None where it
    shows nothing.

    The report has to be believed and the call answered. A server that leaves out what does not fit, and was told how
    much that is, may count before it does so: its reports show nothing.
    """
    usage, limits = step.usage, info.limits
    if usage is None or not _shows(info, step, usage):
        return None
    spec = info.spec
    try:
        before = store.learned.limit(spec.model, spec.api_base or "")
        row = before or LearnedLimit(spec.model, spec.api_base or "")
        if row.window is not None and usage.input > row.window / NEAR:
            row = replace(row, window=None)
        if row.max_input is not None and usage.input > row.max_input / NEAR:
            row = replace(row, max_input=None)
        row = _with_accepted(row, info, usage)
        if row == (before or LearnedLimit(spec.model, spec.api_base or "")):
            return None
        row = replace(
            row,
            believed=stated_window(limits, before),
            configured_window=spec.context_window,
            configured_output=spec.max_output,
            learned_at=time.time(),
        )
        store.learned.put_limit(row)
    except StoreError as error:
        log.warning("What %s was seen to take cannot be stored: %s", spec.key, error)
        return None
    log.info("%s took %d tokens and gave %d: %s", spec.key, usage.input, usage.output, row)
    source: LimitSource = "config" if spec.context_window else "server" if limits.source == "learned" else limits.source
    known = replace(limits, window=row.believed, source=source, learned=(), learned_at=None)
    # All else that is known of it is asked for again before the next step.
    return replace(info, limits=with_taught(known, row), silent=True)


def _shows(info: ModelInfo, step: Step, usage: TokenUsage) -> bool:
    believed = step.doubt is None and usage.anchors and step.status == "complete" and usage.output > 0
    return believed and step.kind == "turn" and not dialect_of(info.target.provider).pins_context


def _with_accepted(row: LearnedLimit, info: ModelInfo, usage: TokenUsage) -> LearnedLimit:
    """What was learned, with what a report shows to be more than is stated or was seen before."""
    limits, total = info.limits, usage.input + usage.output
    stated = stated_window(limits, row)
    known = max(stated or 0, row.raised or 0)
    if stated and total > known / NEAR:
        row = replace(row, accepted=total, raised=larger_window(info, total))
    if limits.max_input is not None and usage.input > max(limits.max_input, row.accepted_input or 0) / NEAR:
        row = replace(row, accepted_input=usage.input)
    spoken = usage.output - (usage.reasoning or 0)
    if info.spec.max_output is None and limits.max_output and spoken > max(limits.max_output, row.accepted_output or 0):
        row = replace(row, accepted_output=spoken)
    return row


def stated_window(limits: Limits, row: LearnedLimit | None) -> int | None:
    """The window as it was stated before a server taught another one."""
    taught = limits.source == "accepted" or "window" in limits.learned
    return row.believed if taught and row is not None else limits.window


def with_taught(limits: Limits, row: LearnedLimit) -> Limits:
    """Limits with what a server taught on top: by what it took, and by what it refused."""
    raised = row.raised is not None and row.raised > (limits.window or 0)
    window = least(row.raised if raised else limits.window, row.window)
    largest = None if row.accepted_input and row.accepted_input > (limits.max_input or 0) else limits.max_input
    max_input = least(largest, row.max_input)
    longest = limits.max_output
    if longest is not None and row.accepted_output is not None and row.configured_output is None:
        longest = max(longest, row.accepted_output)
    longest = least(longest, row.max_output)
    max_output = longest if longest is None else least(longest, window)
    if max_input is not None and window is not None and max_input >= window:
        max_input = None
    said = {"window": row.window, "max_input": row.max_input, "max_output": row.max_output}
    values = {"window": window, "max_input": max_input, "max_output": max_output}
    learned = tuple(name for name, value in said.items() if value is not None and values[name] == value)
    source: LimitSource = limits.source
    if "window" in learned or "max_input" in learned:
        source = "learned"
    elif raised:
        source = "accepted"
    taught = learned or source == "accepted" or values != {name: getattr(limits, name) for name in values}
    accepted = row.accepted if source == "accepted" else None
    return Limits(window, max_input, max_output, source, learned, row.learned_at if taught else None, accepted)


def larger_window(info: ModelInfo, taken: int) -> int:
    """The window that a model which took so many tokens is assumed to have: the smallest that has room for an answer
    beside them, of the table's for the model, of those that its family has, and of powers of two."""
    target = info.target
    stated = table_limits(target, *entry(info.spec.model, target)).window
    sizes = _family_windows(target)
    for size in (stated, *sizes):
        if size is not None and _has_room(size, taken):
            return size
    size = 4_096
    while not _has_room(size, taken):
        size *= 2
    return size


def _has_room(window: int, taken: int) -> bool:
    return window - min(_ROOM, window // _ROOM_SHARE) >= taken


def _family_windows(target: Target) -> list[int]:
    """The windows of a provider's models of a family, the smallest first; none where whoever serves them chooses."""
    dialect = dialect_of(target.provider)
    if dialect.local or dialect.compatible or target.family == "unknown":
        return []
    own = [model for model in listed_models().values() if model.provider == target.provider and model.window]
    return sorted({model.window or 0 for model in own if model_family(model.plain) == target.family})
