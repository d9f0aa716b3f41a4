"""The scripted model: what it answers depends on the seed, the turn and the step alone."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tests.support.true_provider.wire import Answer, Call, Question, words_of

_WORDS = words_of(
    "the parser reads every line of this module and keeps what it found in a table that callers may "
    "change later because tests expect order while errors are raised only when something was written "
    "twice or never closed so we should move validation into its own function rename fields measure "
    "memory again and describe limits properly"
)
_HEADING = re.compile(r"^## (.+)$", re.M)
_ASKED = "Answer with exactly these headings"
KINDS = ("talk", "read", "large", "parallel", "grep", "shell", "loop", "huge")
WEIGHTS = (24, 22, 12, 12, 8, 8, 10, 4)


def asks_for_headings(question: Question) -> str:
    """What a request for a summary says from where it asks for headings; empty for any other."""
    return question.system.partition(_ASKED)[2] or question.last_user.partition(_ASKED)[2]


@dataclass(slots=True, frozen=True)
class ProjectFile:
    """A file of the project that the model may read."""

    path: str
    lines: int


@dataclass(slots=True)
class Script:
    """``size`` is what a large tool result should be, in tokens; it grows with the window. ``bad_summaries``: some
    summary calls are answered badly (headings missing, empty, an error)."""

    seed: int
    files: Sequence[ProjectFile]
    window: int
    bad_summaries: bool = True
    line_tokens: int = 16

    def answer(self, question: Question, turn: int, step: int, number: int) -> Answer:
        """The answer of step ``step`` (from 0) of turn ``turn``; ``number`` makes ids unique."""
        plan = random.Random(f"{self.seed}/{turn}")
        kind = plan.choices(KINDS, WEIGHTS)[0]
        steps = {"talk": 0, "read": 1, "large": 1, "parallel": 1, "grep": 1, "shell": 1, "huge": 1}.get(kind)
        if steps is None:
            steps = plan.randint(3, 6)
        elif steps and plan.random() < 0.4:
            steps += 1
        rng = random.Random(f"{self.seed}/{turn}/{step}")
        answer = Answer(reasoning_tokens=0)
        if question.thinking and question.may_think:
            words = rng.choice((20, 40, 80, 160, 400)) * self._scale()
            answer.reasoning = self.says(rng, max(8, int(words)))
        if step < steps and "read" in question.tools:
            answer.text = self.says(rng, rng.randint(4, 20)) if rng.random() < 0.5 else ""
            answer.calls = self._calls(kind, rng, question.tools, number)
        else:
            answer.text = self.says(rng, max(10, int(rng.choice((20, 60, 150, 400)) * self._scale())))
        return answer

    def _scale(self) -> float:
        return min(1.5, max(0.15, self.window / 100_000))

    def _calls(self, kind: str, rng: random.Random, tools: list[str], number: int) -> list[Call]:
        share = {"read": 0.015, "large": 0.07, "parallel": 0.02, "loop": 0.025, "huge": 0.4}.get(kind, 0.03)
        if kind == "grep" and "grep" in tools:
            digit = rng.randint(10, 99)
            return [Call(f"call_{number}_0", "grep", {"pattern": f"value_{digit}\\d* =", "path": "src"})]
        if kind == "shell" and "bash" in tools:
            lines = max(10, int(self.window * share / 12))
            command = f"seq -f 'step %g of the build: compiled and linked' 1 {min(lines, 3_000)}"
            return [Call(f"call_{number}_0", "bash", {"command": command})]
        count = rng.randint(2, 4) if kind == "parallel" else 1
        return [self._read(rng, share, f"call_{number}_{i}") for i in range(count)]

    def _read(self, rng: random.Random, share: float, call_id: str) -> Call:
        file = rng.choice(self.files)
        lines = max(5, int(self.window * share * rng.uniform(0.6, 1.4) / self.line_tokens))
        offset = rng.randint(1, max(1, file.lines - lines))
        return Call(call_id, "read", {"path": file.path, "offset": offset, "limit": lines})

    def summary(self, question: Question, call: int) -> Answer | None:
        """The answer to a request for a summary; None for a call that fails."""
        rng = random.Random(f"{self.seed}/summary/{call}")
        fate = rng.random() if self.bad_summaries else 1.0
        headings = _HEADING.findall(asks_for_headings(question)) or ["Summary"]
        if fate < 0.08:
            return None
        if fate < 0.16:
            return Answer(text=" ")
        if fate < 0.36:
            headings = rng.sample(headings, max(1, len(headings) - 2))
        words = max(12, int(60 * self._scale()))
        return Answer(text="\n\n".join(f"## {name}\n{self.says(rng, words)}" for name in headings))

    def says(self, rng: random.Random, words: int) -> str:
        """Text of about so many words."""
        return self.words(rng, words)

    @staticmethod
    def words(rng: random.Random, count: int) -> str:
        text = " ".join(rng.choices(_WORDS, k=count))
        return text[0].upper() + text[1:] + "."


@dataclass(slots=True)
class BusyScript(Script):
    """A model that works in every turn: ``steps`` answers with ``calls`` tool calls each, of a few lines, before the
    last one."""

    steps: int = 1
    calls: int = 1

    def answer(self, question: Question, turn: int, step: int, number: int) -> Answer:
        rng = random.Random(f"{self.seed}/{turn}/{step}")
        answer = Answer(reasoning_tokens=0)
        if question.thinking and question.may_think:
            answer.reasoning = self.says(rng, 60)
        if step < self.steps:
            answer.calls = [self._read(rng, 0.001, f"call_{number}_{i}") for i in range(self.calls)]
        else:
            answer.text = self.says(rng, 120)
        return answer
