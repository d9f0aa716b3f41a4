"""Fits the constants of ``context.families`` on recorded pairs and says how well such a fit carries over.

    python tests/benchmarks/fit_families.py FILE.jsonl

The split is by provenance: each repository of recordings is left out once, the constants are fitted on the others and
scored on it. Fit: medians, a record weighing 1 / sqrt(records of its repository), because recordings of one repository
resemble each other. The factor is fitted only for families whose tokenizer is known to differ (``FREE_FACTOR``).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agent_tui.context.tokens import FAMILIES, UNKNOWN, Family, family_of, message_text_for_count
from tests.benchmarks.next_input import Score, calculation, new_messages, plain_estimate, report, target_of
from tests.support.tokens import count_tokens

FREE_FACTOR = ("claude", "kimi")
LONG = 150
FEW = 3


@dataclass
class Sample:
    """One pair: ``grown`` is what the new messages really cost; the rest is what they consist of."""

    score: Score
    family: str
    repository: str
    grown: int
    raw: int
    first: int
    further: int
    users: int

    def cost(self, family: Family) -> float:
        parts = family.first_result * self.first + family.further_result * self.further + family.user * self.users
        return family.kappa * self.raw + parts


def samples(path: Path) -> list[Sample]:
    found: list[Sample] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if not record.get("steady", True):
            continue
        messages = new_messages(record)
        roles = [m.role for m in messages]
        first = sum(r == "tool" and (i == 0 or roles[i - 1] != "tool") for i, r in enumerate(roles))
        usage = calculation(record)
        actual = record["actual_input_tokens"]
        constants = family_of(target_of(record["provider"], record["wire"], record["model"]))
        found.append(
            Sample(
                Score(record, actual, usage.total, plain_estimate(record)),
                next((key for key, value in FAMILIES.items() if value == constants), constants.name),
                record["provenance"]["repo"],
                actual - (usage.total - usage.calculation.new_messages),
                sum(count_tokens(message_text_for_count(m)) for m in messages),
                first,
                roles.count("tool") - first,
                roles.count("user"),
            )
        )
    return found


def fit(name: str, group: list[Sample]) -> Family:
    """The constants of one family, or those of ``unknown`` where there are too few records to see them."""
    count = Counter(s.repository for s in group)
    kappa, first, further, user = 1.0, UNKNOWN.first_result, UNKNOWN.further_result, UNKNOWN.user
    for _ in range(8 if name in FREE_FACTOR else 1):
        left = [(s, s.grown - kappa * s.raw, 1 / math.sqrt(count[s.repository])) for s in group if s.raw < 10 * LONG]
        first = median(((r, w) for s, r, w in left if s.first == 1 and not s.further and not s.users), 1, first)
        user = median(((r / s.users, w) for s, r, w in left if s.users and not s.first), FEW, user)
        rest = ((r - first * s.first - user * s.users, s.further, w) for s, r, w in left if s.further)
        further = median(((r / n, w) for r, n, w in rest), FEW, first)
        if name in FREE_FACTOR:
            constants = Family(name, 0.0, first, further, user)
            long = [s for s in group if s.raw >= LONG]
            ratios = (((s.grown - s.cost(constants)) / s.raw, s.raw / math.sqrt(count[s.repository])) for s in long)
            kappa = median(ratios, 1, kappa)
    return Family(name, round(kappa, 2), max(0, round(first)), max(0, round(further)), max(0, round(user)))


def median(values: Iterable[tuple[float, float]], least: int, otherwise: float) -> float:
    """Weighted median, or ``otherwise`` when there are fewer than ``least`` values."""
    ordered = sorted(values)
    if len(ordered) < least:
        return otherwise
    half, seen = sum(w for _, w in ordered) / 2, 0.0
    for value, weight in ordered:
        seen += weight
        if seen >= half:
            return value
    return otherwise


def scored(sample: Sample, family: Family) -> Score:
    score = sample.score
    base = score.actual - sample.grown
    return Score(score.record, score.actual, base + max(0, math.ceil(sample.cost(family) - 1e-9)), score.plain)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    groups: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples(parser.parse_args().file):
        groups[sample.family].append(sample)
    fitted: list[Score] = []
    left_out: list[Score] = []
    for name, group in sorted(groups.items()):
        whole = fit(name, group)
        repositories = {s.repository for s in group}
        print(
            f"{name:14} n {len(group):4}  repositories {len(repositories):2}  factor {whole.kappa:.2f}  first result"
            f" {whole.first_result:3}  further {whole.further_result:3}  user {whole.user:3}"
        )
        fitted += [scored(s, whole) for s in group]
        for repository in repositories:
            others = fit(name, [s for s in group if s.repository != repository])
            left_out += [scored(s, others) for s in group if s.repository == repository]
    for title, scores in (("fitted on all", fitted), ("each repository left out once", left_out)):
        for part in ("steady", "steady_3000"):
            numbers = report(scores)["ours"][part]
            print(f"{title}, {part}: " + ", ".join(f"{k} {v:.3f}" for k, v in numbers.items()))


if __name__ == "__main__":
    main()
