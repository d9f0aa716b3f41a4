"""What the program said of each step's cache, held against what the provider knows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from agent_tui.context.cache_misses import LEAST_SHARE, LEAST_TOKENS
from tests.support.true_provider.cache import Verdict


@dataclass(slots=True)
class Seen:
    """One step: what the program expected and said, what the provider knows, and what was done before it."""

    turn: int
    done: tuple[str, ...]
    expected: int | None
    read: int | None
    cause: str
    what: str
    cost: float | None
    truth: Verdict

    @property
    def missed(self) -> bool:
        """Whether the provider knows of a miss that is worth a word."""
        return self.truth.missed >= max(LEAST_TOKENS, LEAST_SHARE * self.truth.input)


NAMES: dict[str, tuple[str, ...]] = {
    "tool went": ("tools changed: grep removed",),
    "tool came": ("tools changed: grep added",),
    "server came": ("tools changed: MCP server github added",),
    "server went": ("tools changed: MCP server github removed",),
    "memory": ("AGENTS.md edited", "AGENTS.md added"),
    "compacted": ("compacted", "old results cleared"),
    "undone": ("compaction undone",),
    "pruned": ("old results cleared",),
    "rewound": ("rewound",),
    "taken out": ("you dropped part of the context",),
    "put back": ("you restored part of the context",),
    "edit undone": ("you undid an edit",),
    "model": ("model switched: m → n",),
    "model back": ("model switched: n → m",),
    "thinking": ("thinking switched",),
    "thinking back": ("thinking switched",),
    "schema": ("answer schema changed",),
    "schema off": ("answer schema changed",),
}
"""What is to be said of what was done."""
UNCHANGED = {"waited", "expired", "dropped", "evicted", "resumed", "forked", "a day", "there and back", "edited"}
"""What is done without changing what is sent."""
CAUSES = {"differs": "ours", "expired": "expired", "dropped": "unknown"}


@dataclass(slots=True)
class Outcome:
    """What a run showed; ``wrong`` holds a line for each step that was misnamed."""

    forgets: bool = False
    seen: list[Seen] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    named: dict[str, int] = field(default_factory=dict)
    heard: set[str] = field(default_factory=set)

    def judge(self, seen: Seen) -> None:
        self.seen.append(seen)
        problem = self._problem(seen)
        if problem:
            truth = seen.truth
            done, said = ", ".join(seen.done) or "nothing", f"{seen.cause or 'nothing'} ({seen.what})"
            self.wrong.append(
                f"turn {seen.turn} after {done}: {problem}; said {said} at {seen.read} of {seen.expected}, was {truth}"
            )
        elif seen.cause:
            self.named[seen.cause] = self.named.get(seen.cause, 0) + 1
            self.heard |= {one for one in seen.done if seen.cause != "ours" or seen.what.startswith(NAMES.get(one, ()))}

    def _problem(self, seen: Seen) -> str:
        if self.forgets and not {*seen.done} - UNCHANGED:
            # Nothing was changed by anybody but the provider, which documents that.
            truth = seen.truth
            seen.truth = replace(truth, repeated=truth.repeated - truth.differ, differ=0)
        wanted = CAUSES.get(seen.truth.why, "") if seen.missed else ""
        if seen.cause and not seen.missed:
            # Our own tokens are estimates where a part of what was sent before is gone: at the threshold it may differ.
            near = seen.truth.missed >= 0.8 * max(LEAST_TOKENS, LEAST_SHARE * seen.truth.input)
            return "" if near and seen.cause == CAUSES.get(seen.truth.why) else "a false alarm"
        if wanted and not seen.cause:
            least = max(LEAST_TOKENS, LEAST_SHARE * seen.truth.input)
            return "" if seen.truth.missed < 1.25 * least else "a miss that nobody named"
        if wanted != seen.cause:
            return f"it was {wanted}"
        if seen.cause != "ours":
            return ""
        allowed = {name for one in seen.done for name in NAMES.get(one, ())}
        return "" if any(seen.what.startswith(name) for name in allowed) else "other words"

    def predicted(self) -> tuple[int, int, int]:
        """Over the steps without a miss: how many there were, tokens expected, tokens read."""
        plain = [s for s in self.seen if not s.cause and s.expected is not None and s.read is not None]
        return len(plain), sum(s.expected or 0 for s in plain), sum(s.read or 0 for s in plain)
