"""What the calculator is given: everything it may look at, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from agent_tui.models.requests import Effort, ModelInfo, ReplayRule, SentMessage
from agent_tui.models.steps import CompactionRecord, FixedPart, Step

DEFAULT_RESERVE = 32_000


@dataclass(slots=True, frozen=True)
class CompactionSettings:
    """When to compact. ``compact_at`` up to 1.0 is a fraction of the window, above it a number of tokens; a model's
    own ``compact_at`` wins over it. ``paused`` (after an undo) and ``off`` (after three failures) hold back the
    automatic compaction of this session only."""

    auto_compact: bool = True
    compact_at: float | None = None
    max_output_reserve: int = DEFAULT_RESERVE
    paused: bool = False
    off: bool = False


@dataclass(slots=True, frozen=True)
class ContextInputs:
    """The calculator's only arguments.

    ``view`` is what would be sent now (``context.sent.view.build_view``); ``steps`` are all steps of the session,
    oldest first; ``fixed`` are the ephemeral parts of the next request. ``ratio`` is the model's measured calibration
    (``accounting.accuracy``), applied to all text that is estimated. ``replay`` is what was learned of the model's
    server; what stays out of the prefix is found in the steps. So many leading steps are ``inherited`` from the session
    this one was forked from: they measure, and cost nothing here.
    """

    model: ModelInfo
    view: Sequence[SentMessage]
    steps: Sequence[Step] = ()
    records: Sequence[CompactionRecord] = ()
    fixed: Sequence[FixedPart] = ()
    settings: CompactionSettings = field(default_factory=CompactionSettings)
    ratio: float = 1.0
    fixed_fingerprint: str = ""
    effort: Effort = "off"
    replay: ReplayRule = field(default_factory=ReplayRule)
    inherited: int = 0

    def as_now(self) -> ContextInputs:
        """The same, which stays as it is when the session's own lists go on."""
        return replace(self, steps=list(self.steps), records=[replace(record) for record in self.records])
