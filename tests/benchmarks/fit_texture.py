"""Whether what a tool result consists of says more of its tokens than the family's factor. For Claude it does not.

    python -m tests.benchmarks.fit_texture FILE.jsonl

One number about the text (a share of its characters, or characters for each o200k_base token) moves the factor:
``factor = a + b × number``, least squares on one half, scored on the other, then the other way round. The halves are
fixed by a hash of how a text begins, so that a file that was read again stays on one side. Results of at least 150
tokens in agent sessions.

Measured on the 71 results of the development half (one session, one model; 4 of them with numbered lines). Sum of the
errors in tokens where the first or the second half is left out: 754 and 1,419 with the factor of today; characters a
token 758 and 1,333, punctuation 672 and 1,558, letters 671 and 1,465, digits 925 and 1,684, line numbers 818 and 1,584,
white space 778 and 1,761. No number does better on both, most do worse in all, and the slopes of digits and line
numbers change their sign. With each text left out once the best (characters a token) takes 1 % off the sum. So the
factor stays one number: what is left is taken by the model's own calibration, which learns from every call.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from agent_tui.context.tokens import FAMILIES, message_text_for_count
from tests.benchmarks.fit_families import LONG, samples
from tests.benchmarks.next_input import nearest_rank, new_messages

BEGINNING = 24
_NUMBERED = re.compile(r"(?m)^\s*\d+[:\t|→-]")


@dataclass(slots=True, frozen=True)
class Result:
    """``tokens`` are what the text really cost without overheads, ``grown`` with them, ``raw`` its o200k_base count."""

    text: str
    raw: int
    tokens: float
    grown: int

    @property
    def half(self) -> int:
        return hashlib.sha256(self.text[:BEGINNING].encode()).digest()[-1] % 2

    def share(self, holds: Callable[[str], bool]) -> float:
        return sum(map(holds, self.text)) / len(self.text)


NUMBERS: dict[str, Callable[[Result], float]] = {
    "characters a token": lambda r: len(r.text) / r.raw,
    "punctuation": lambda r: r.share(lambda c: not (c.isalnum() or c.isspace())),
    "digits": lambda r: r.share(str.isdigit),
    "letters": lambda r: r.share(str.isalpha),
    "white space": lambda r: r.share(str.isspace),
    "line numbers": lambda r: len(_NUMBERED.findall(r.text)) / (r.text.count("\n") + 1),
}


def results(path: Path, family: str) -> list[Result]:
    """Large tool results of agent sessions with a model of the family."""
    found: list[Result] = []
    constants = FAMILIES[family]
    for sample in samples(path):
        if sample.family != family or sample.raw < LONG or sample.score.record.get("source") != "agent-session":
            continue
        messages = new_messages(sample.score.record)
        text = "\n".join(map(message_text_for_count, messages))
        of_tools = sum(len(message_text_for_count(m)) for m in messages if m.role == "tool")
        if of_tools > len(text) / 2:
            overheads = sample.cost(constants) - constants.kappa * sample.raw
            found.append(Result(text, sample.raw, sample.grown - overheads, sample.grown))
    return found


def fitted(known: Sequence[Result], number: Callable[[Result], float]) -> tuple[float, float]:
    """``a`` and ``b``, a result weighing the root of its size."""
    weights = [r.raw**0.5 for r in known]
    x, y = [number(r) for r in known], [r.tokens / r.raw for r in known]
    whole = sum(weights)
    mean_x = sum(w * v for w, v in zip(weights, x, strict=True)) / whole
    mean_y = sum(w * v for w, v in zip(weights, y, strict=True)) / whole
    spread = sum(w * (v - mean_x) ** 2 for w, v in zip(weights, x, strict=True))
    slope = sum(w * (v - mean_x) * (u - mean_y) for w, v, u in zip(weights, x, y, strict=True)) / spread
    return mean_y - slope * mean_x, slope


def told(title: str, unseen: Sequence[Result], factor: Callable[[Result], float]) -> str:
    errors = [abs(factor(r) * r.raw - r.tokens) for r in unseen]
    shares = [100 * e / r.grown for e, r in zip(errors, unseen, strict=True)]
    numbers = f"median {median(shares):5.2f} %  p95 {nearest_rank(shares, 95):5.1f} %  sum {sum(errors):7.0f}"
    return f"  {title:22}{numbers}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--family", default="claude", choices=sorted(FAMILIES))
    arguments = parser.parse_args()
    found = results(arguments.file, arguments.family)
    kappa = FAMILIES[arguments.family].kappa
    for half in (0, 1):
        known = [r for r in found if r.half != half]
        unseen = [r for r in found if r.half == half]
        print(f"left out: half {half}, {len(unseen)} results, {sum(r.grown for r in unseen):,} tokens")
        print(told("the factor of today", unseen, lambda r: kappa))
        for name, number in NUMBERS.items():
            a, b = fitted(known, number)
            line = told(name, unseen, lambda r, a=a, b=b, number=number: a + b * number(r))  # type: ignore[misc]
            print(f"{line}  factor {a:.2f} {b:+.2f} × it")


if __name__ == "__main__":
    main()
