"""Feeds the reader of keys, and what the screen and plain mode make of it, millions of random and damaged sequences: of
kitty's protocol and xterm's, of the mouse in all forms, answers, reports, pastes, cut anywhere, in any time.

Usage: python tests/benchmarks/fuzz_keys.py [--sequences 10000000] [--seed 1]

Prints the rate; ends with the bytes and the error where something fails.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:1] = [str(ROOT)]  # not this folder: its modules have names of the standard library
from tests.benchmarks.key_reader import KeyReader  # noqa: E402
from tests.benchmarks.terminal_sequences import Sequences  # noqa: E402

PAUSES = (0.0, 0.0, 0.0, 0.0, 0.001, 0.03, 0.06, 0.2, 1.5, 12.0)
AT_ONCE = 10
"""Sequences that are cut into pieces together."""


def fuzz(count: int, seed: int) -> dict[str, int]:
    """Feeds so many sequences; returns how many of each kind of input came out. Raises what goes wrong."""
    source, reader, found = Sequences(seed), KeyReader(), dict[str, int]()
    for done in range(0, count, AT_ONCE):
        data = source.several(AT_ONCE)
        try:
            inputs = [one for piece in source.pieces(data) for one in reader.feed(piece)]
            inputs += reader.wait(source.random.choice(PAUSES))
            if done % 1_000 == 0:
                inputs += reader.flush()
        except BaseException:
            print(f"sequence {done} of seed {seed}: {data!r}", file=sys.stderr)
            raise
        for one in inputs:
            found[type(one).__name__] = found.get(type(one).__name__, 0) + 1
    reader.flush()
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--sequences", type=int, default=10_000_000)
    options.add_argument("--seed", type=int, default=1)
    args = options.parse_args()
    begun = time.perf_counter()
    found = fuzz(args.sequences, args.seed)
    seconds = time.perf_counter() - begun
    print(f"{args.sequences:,} sequences in {seconds:,.0f} s, {args.sequences / seconds:,.0f} a second: {found}")


if __name__ == "__main__":
    main()
