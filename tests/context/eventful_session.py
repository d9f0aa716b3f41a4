"""A session to which everything happens, with a provider that counts truly: how far each number was off, by what had
happened since the step before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from agent_tui.models.calibration import Calibration
from agent_tui.models.requests import Target
from agent_tui.models.steps import CompactionRecord
from tests.context.counting_model import Session
from tests.support.contexts import fixed_part, usual

EVENTS = ("clear", "summary", "undo", "drop", "tools", "group", "effort", "switch", "restart")
EVERY = 0.45
"""Share of the turns that something happens after."""


@dataclass
class Miss:
    """One step: by how many tokens its number was off, and its interval."""

    off: int
    spread: int

    @property
    def held(self) -> bool:
        return abs(self.off) <= self.spread


@dataclass
class EventfulSession(Session):
    """``others``: the models that it switches to and back from, each of which takes ``times`` what is known of its
    family."""

    others: tuple[Target, ...] = ()
    times: float = 1.0
    event: str = "first"
    misses: dict[str, list[Miss]] = field(default_factory=lambda: defaultdict(list))
    learned: dict[Target, Calibration | None] = field(default_factory=dict)

    def run(self, turns: int) -> None:
        for _ in range(turns):
            self.turn(self.random.choice([0, 1, 3, 6]))
            name = self.random.choice(EVENTS) if self.random.random() < EVERY else ""
            if self.usage().total > 0.6 * self.window:
                name = "summary"
            before = self._state()
            if name:
                getattr(self, f"do_{name}")()
            if name == "restart" or self._state() != before:
                self.event = name

    def step(self, calls: tuple[str, ...]) -> None:
        super().step(calls)
        made = self.outcomes[-1]
        self.misses[self.event].append(Miss(made.usage.total - made.actual, made.usage.spread))
        self.event = "plain"

    def _state(self) -> object:
        active = [(record.id, record.active) for record in self.conversation.records]
        return active, self.conversation.fixed_fingerprint, self.effort, self.target

    # What happens

    def do_clear(self) -> None:
        self.prune()

    def do_summary(self) -> None:
        self.summarise()

    def do_undo(self) -> None:
        self.undo()

    def do_drop(self) -> None:
        """The user drops a turn of before."""
        view = self.conversation.view()
        starts = [n for n, item in enumerate(view) if item.message.role == "user"]
        if len(starts) < 4:
            return
        at = self.random.randrange(1, len(starts) - 1)
        ids = [item.message.id for item in view[starts[at] : starts[at + 1]]]
        name = f"drop_{len(self.conversation.records)}"
        self.conversation.records.append(
            CompactionRecord(name, name, "drop", ids, created=float(len(self.conversation.path)), reason="edit")
        )

    def do_tools(self) -> None:
        self.use_tools(self.random.choice([2, 3, 5]))

    def do_group(self) -> None:
        """Tools of a server come, or go."""
        own = [part for part in self.conversation.fixed if part.group != "mcp:far"]
        if len(own) == len(self.conversation.fixed):
            own += [fixed_part("tools", 150 + 90 * n, f"far{n}", "mcp:far") for n in range(6)]
        self.conversation.fixed = own
        self.conversation.fixed_fingerprint = "fixed" + "".join(part.fingerprint for part in own)

    def do_effort(self) -> None:
        self.effort = "off" if self.effort != "off" else "medium"

    def do_switch(self) -> None:
        if not self.others:
            return
        self.learned[self.target] = self.calibration
        mine = [target for target in (*self.others, *self.learned) if target != self.target]
        self.target = self.conversation.target = self.random.choice(sorted(set(mine), key=str))
        self.factor = self.times * usual(self.target)
        self.calibration = self.learned.get(self.target)

    def do_restart(self) -> None:
        """All that was kept in memory is gone."""
        self.accounts = type(self.accounts)()
        if hasattr(self.conversation, "calculator"):
            self.conversation.calculator = self.accounts
        self.conversation.steps = [replace(step) for step in self.conversation.steps]


def figures(misses: list[Miss]) -> tuple[int, int, int]:
    """The median and the 95th percentile of the errors, in tokens, and how many percent of the intervals held."""
    off = sorted(abs(miss.off) for miss in misses)
    held = sum(miss.held for miss in misses)
    return off[len(off) // 2], off[min(len(off) - 1, int(0.95 * len(off)))], 100 * held // len(off)


def many_sessions(
    targets: Sequence[Target], factors: Sequence[float], counted: bool, turns: int, seed: int
) -> dict[str, list[Miss]]:
    """The misses of a session for each of these models and factors, by what had happened before."""
    found: dict[str, list[Miss]] = defaultdict(list)
    for number, target in enumerate(targets):
        others = targets[(number + 1) % len(targets)], targets[(number + 3) % len(targets)]
        for times in factors:
            session = EventfulSession(target, seed, times * usual(target), counted, others=others, times=times)
            session.run(turns)
            for event, misses in session.misses.items():
                found[event] += misses
    return found
