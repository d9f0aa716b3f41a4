"""Fits the factors of ``context/tokens.py`` to published vocabularies, and says how far each text is off by itself.

    python tests/benchmarks/vocabulary_facts.py [NAME …] [--each N] [--folder DIR …]

For each vocabulary: the factors of ``KINDS``, and the standard deviation of what they leave (texts in letters beyond
ASCII left out), which is the family's ``noise``. Over 359 texts of 36 kinds on one machine it left 0.011 of cl100k and
of Qwen, 0.009 of Llama 3, 0.022 of Tekken, 0.032 of Qwen 3.6, 0.035 of DeepSeek, 0.065 of Gemma and Gemini, 0.076 and
0.088 of Claude 4.5 and 4.8. Needs numpy, and what ``league/vocabularies.py`` names.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agent_tui.models.calibration import CAPITALS, KINDS, MORE, SMALL, raw_total
from agent_tui.providers.counting import by_kind
from agent_tui.providers.litellm import VOCABULARIES, place
from tests.benchmarks.league.vocabularies import NAMES, vocabulary
from tests.benchmarks.vocabulary_texts import LANGUAGES, texts

RIDGE = 0.03
"""How strongly a factor that few texts tell of is kept at that of o200k_base."""

LESS = 0.4
"""The weight of texts in other languages."""

MOST = 0.3
"""One odd text counts as off by no more than this share of it."""


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
        left = np.clip((true - terms @ factors) / size, -MOST, MOST)[~spoken]
        print(f"{name:10} {', '.join(f'{factor:.2f}' for factor in factors)}  noise {np.sqrt(np.mean(left**2)):.3f}")


if __name__ == "__main__":
    main()
