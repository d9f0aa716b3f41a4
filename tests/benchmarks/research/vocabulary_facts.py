"""Fits the factors of ``context/tokens.py`` to published vocabularies, and says how far each text is off by itself.

    python tests/benchmarks/research/vocabulary_facts.py [NAME …] [--each N] [--folder DIR …]

For each vocabulary: the factors of ``KINDS``, and the standard deviation of what they leave (texts in other languages
left out), which is the family's ``noise``. Over 20 texts of each of 36 kinds on one machine it left 0.015 of cl100k,
Qwen and Llama 3, 0.031 of Tekken, 0.038 of Qwen 3.6, 0.045 of DeepSeek, 0.068 of Gemma and Gemini, 0.086 and 0.105 of
Claude 4.5 and 4.8. Below them what is known where nothing is: the median of the families (Claude 2's, which no server
counts with any more, left out) and their standard deviations from it; and ``OFF``: by how much the tokens of each kind
make a text's own error larger, in that of pieces (the product's table is 1.7 times
that: in the noise of usual text). Made again 2026-11-23 with ``--each 20``, from other files: no factor of a family is
off by more than 0.1 and most by less than 0.03, noises by 0.006, the median by 0.05; of ``OFF`` those of capitals and
scripts come out at a half and three quarters of the table's, the others within 0.15 of it.
Needs numpy, and what ``league/vocabularies.py`` names.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from agent_tui.models.calibration import CAPITALS, KINDS, MORE, OFF, SMALL, raw_total
from agent_tui.providers.counting import by_kind
from agent_tui.providers.litellm_files import VOCABULARIES, place
from tests.benchmarks.league.vocabularies import NAMES, vocabulary
from tests.benchmarks.vocabulary_texts import LANGUAGES, texts

RIDGE = 0.03
"""How strongly a factor that few texts tell of is kept at that of o200k_base."""

LESS = 0.4
"""The weight of texts in other languages."""

MOST = 0.3
"""One odd text counts as off by no more than this share of it."""

FAMILIES: list[tuple[str, ...]] = [("o200k",), ("cl100k",), ("qwen",), ("qwen3.6",), ("llama3",), ("tekken",)]
FAMILIES += [("deepseek",), ("gemma3", "gemini"), ("claude4.5", "claude4.8")]
"""Vocabularies of one maker that are alike count as one."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="vocabularies; all that are there")
    parser.add_argument("--each", type=int, default=10, help="texts of each kind")
    parser.add_argument("--folder", type=Path, nargs="*", default=[], help="more folders to take files from")
    options = parser.parse_args()
    np: Any = importlib.import_module("numpy")
    made = list(texts(1, options.each, tuple(options.folder)))
    counts = [by_kind(text) for _, text in made]
    size = np.array([raw_total(count) + SMALL for count in counts], float)
    spoken = np.array([kind in LANGUAGES for kind, _ in made])
    weight = np.where(spoken, LESS, 1.0) / size
    prior = np.array([float(place not in (CAPITALS, MORE)) for place in range(len(KINDS))])
    terms = np.array(counts, float)
    own = terms @ np.array(OFF) + SMALL
    found: dict[str, Any] = {}
    shares: list[Any] = []
    print(", ".join(KINDS))
    for name in options.names or NAMES:
        try:
            count = vocabulary(name, place(*VOCABULARIES) or Path())
        except ImportError as error:
            print(f"{name}: left out, {error}", file=sys.stderr)
            continue
        true = np.array([count(text) for _, text in made], float)
        rows = np.vstack([terms * weight[:, None], np.diag([RIDGE**0.5] * len(KINDS))])
        factors = np.linalg.lstsq(rows, np.concatenate([true * weight, RIDGE**0.5 * prior]), rcond=None)[0]
        left = np.minimum(np.abs(true - terms @ factors) / size, MOST)
        noise = np.sqrt(np.mean((left * size / own)[~spoken] ** 2))
        print(f"{name:10} {_row(factors)}  noise {noise:.3f}", flush=True)
        found[name] = factors
        if left.mean() > 0:
            shares.append(left / left.mean())
    alike = [[found[name] for name in names if name in found] for names in FAMILIES]
    families = np.array([np.mean(group, axis=0) for group in alike if group])
    middle = np.median(families, axis=0)
    print(f"unknown    {_row(middle)}")
    print(f"deviations {_row(np.sqrt(np.mean((families - middle) ** 2, axis=0)))}")
    if shares:
        parts = terms / size[:, None]
        off = _least_squares(parts, np.mean(shares, axis=0))
        print(f"OFF        {_row(off / off[KINDS.index('pieces')])}")


def _row(numbers: Any) -> str:
    return ", ".join(f"{number:.2f}" for number in numbers)


def _least_squares(rows: Any, values: Any, steps: int = 5_000) -> Any:
    """The solution of least squares without negative numbers, by projected descent."""
    square, right = rows.T @ rows, rows.T @ values
    found, step = right * 0, 1 / abs(square).sum(axis=0).max()
    for _ in range(steps):
        found = (found - step * (square @ found - right)).clip(0)
    return found


if __name__ == "__main__":
    main()
