"""Heights of many things stacked on each other: quick to change one, to sum those before one, to find who is at y."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate


class Heights:
    """A list of heights in rows with sums of them (a Fenwick tree), so that nothing looks at more of ``n`` than
    ``log2(n)``; but for ``reset``."""

    __slots__ = ("_rows", "_sums", "total")

    def __init__(self, rows: Iterable[int] = ()) -> None:
        self.reset(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> int:
        return self._rows[index]

    def reset(self, rows: Iterable[int]) -> None:
        """Replaces all heights."""
        self._rows = list(rows)
        before = list(accumulate(self._rows, initial=0))
        # Sum number k is of the ``k & -k`` heights that end with the k-th.
        self._sums = [before[k] - before[k & (k - 1)] for k in range(len(before))]
        self.total = before[-1]

    def append(self, height: int) -> None:
        count = len(self._rows) + 1
        self._rows.append(height)
        self._sums.append(self.before(count - 1) - self.before(count & (count - 1)) + height)
        self.total += height

    def set(self, index: int, height: int) -> None:
        change = height - self._rows[index]
        if change:
            self._rows[index] = height
            self.total += change
            k, sums = index + 1, self._sums
            while k < len(sums):
                sums[k] += change
                k += k & -k

    def before(self, index: int) -> int:
        """The sum of all heights before ``index``."""
        total, sums = 0, self._sums
        while index:
            total += sums[index]
            index &= index - 1
        return total

    def find(self, y: int) -> tuple[int, int]:
        """The index of what covers row ``y`` and the row within it; the last one for rows beyond the end."""
        y = max(0, y)
        if y >= self.total:
            return max(0, len(self._rows) - 1), max(0, self._rows[-1] - 1 if self._rows else 0)
        index, sums = 0, self._sums
        step = 1 << len(self._rows).bit_length()
        while step := step >> 1:
            after = index + step
            if after < len(sums) and sums[after] <= y:
                index, y = after, y - sums[after]
        return index, y
