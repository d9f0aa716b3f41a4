"""Heights of many things stacked on each other: quick to change one, to sum those before one, to find who is at y."""

from __future__ import annotations

from collections.abc import Iterable

_GROUP = 256


class Heights:
    """A list of heights in rows with sums by group, so that nothing costs more than a few hundred additions in C."""

    __slots__ = ("_groups", "_rows", "total")

    def __init__(self, rows: Iterable[int] = ()) -> None:
        self.reset(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> int:
        return self._rows[index]

    def reset(self, rows: Iterable[int]) -> None:
        """Replaces all heights."""
        self._rows = list(rows)
        self._groups = [sum(self._rows[k : k + _GROUP]) for k in range(0, len(self._rows), _GROUP)]
        self.total = sum(self._groups)

    def append(self, height: int) -> None:
        if len(self._rows) % _GROUP == 0:
            self._groups.append(0)
        self._rows.append(height)
        self._groups[-1] += height
        self.total += height

    def set(self, index: int, height: int) -> None:
        change = height - self._rows[index]
        if change:
            self._rows[index] = height
            self._groups[index // _GROUP] += change
            self.total += change

    def before(self, index: int) -> int:
        """The sum of all heights before ``index``."""
        group = index // _GROUP
        return sum(self._groups[:group]) + sum(self._rows[group * _GROUP : index])

    def find(self, y: int) -> tuple[int, int]:
        """The index of what covers row ``y`` and the row within it; the last one for rows beyond the end."""
        y = max(0, y)
        group = 0
        for size in self._groups:
            if y < size:
                break
            y -= size
            group += 1
        else:
            return max(0, len(self._rows) - 1), max(0, self._rows[-1] - 1 if self._rows else 0)
        index = group * _GROUP
        for height in self._rows[index:]:
            if y < height:
                break
            y -= height
            index += 1
        return index, y
