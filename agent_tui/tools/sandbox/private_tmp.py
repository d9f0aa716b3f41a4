"""The ``/tmp`` that held commands have for themselves: where its files are on this machine, and who is told of it.

File tools and commands mean the same file by the same path: what commands made, and what is new. What only the machine
has stays the machine's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

NAMES = (Path("/tmp"), Path("/var/tmp"))
_NAMED = re.compile(r"(?:(?<![\w./-])|(?<=\bfile://))/(?:var/)?tmp/[\w.+@%,=/-]*[\w+/-]")
_ABSENT = re.compile(r"no such file or directory|\bENOENT\b|not found|cannot find", re.IGNORECASE)
_TAIL = 20_000
_FEW = 3


class PrivateTmp:
    """``folder`` is what commands find in the place of ``/tmp``, and ``bound`` are the places that they see as they
    are, of which some may lie below the machine's."""

    def __init__(self, folder: Path, bound: Callable[[], Sequence[Path]]) -> None:
        self.folder, self._bound = folder, bound
        self._told: set[str] = set()

    def place_of(self, path: Path) -> Path | None:
        """The place on this machine of what commands find, or would make, at an absolute path below ``/tmp``; None for
        what is not theirs."""
        name = next((name for name in NAMES if path.is_relative_to(name)), None)
        if name is None:
            return None
        rest, bound = path.relative_to(name), self._bound()
        if name != NAMES[0] and any(place.is_relative_to(name) for place in bound):
            return None  # it is no link to /tmp then
        if any(path.is_relative_to(place) or place.is_relative_to(path) for place in bound):
            return None
        place = self.folder / rest
        if not rest.parts:
            return place if _holds_something(place) else None
        if os.path.lexists(place):
            return place
        if os.path.lexists(path):
            return None
        # In a folder that only the machine has, or both as one of them leads to what commands see, it is the machine's.
        mounted = any(place.is_relative_to(path.parent) for place in bound)
        theirs = len(rest.parts) == 1 or (place.parent.is_dir() and not mounted)
        return place if theirs or not path.parent.is_dir() else None

    def name_for(self, place: Path) -> Path | None:
        """The path by which commands know a place in the folder; None elsewhere. Its reader knows it then, so that
        ``lines`` does not say it again."""
        if not place.is_relative_to(self.folder):
            return None
        name = NAMES[0] / place.relative_to(self.folder)
        self._told.add(str(name))
        return name

    def lines(self, text: str, since: float, held: bool) -> list[str]:
        """Says where the files are that a command and its output (``text``) name and that it made or changed after
        ``since``, each once; and of what is not there where it was looked for. ``held``: it had the private folder."""
        names = list(dict.fromkeys(_NAMED.findall(text[-_TAIL:])))[:50]
        places = {name: self._place(name) for name in names}
        if not held:
            found = (name for name, place in places.items() if place is not None and os.path.lexists(place))
            if all(map(os.path.lexists, found)):
                return []
            return [
                f"[outside the sandbox /tmp is the machine's own; what commands keep in theirs is in {self.folder}]"
            ]
        new = [name for name, place in places.items() if name not in self._told and _is_newer(place, since)]
        self._told.update(new)
        lines = []
        if new:
            more = f" and {len(new) - _FEW} more" if len(new) > _FEW else ""
            lines.append(
                f"[{', '.join(new[:_FEW])}{more}: /tmp is the commands' own, on this machine {self.folder}, until the "
                "program ends. read, edit and grep find it by the same name]"
            )
        missing = [name for name, place in places.items() if not _is_there(place) and os.path.lexists(name)]
        if missing and _ABSENT.search(text[-_TAIL:]):
            lines.append(f"[sandbox: {missing[0]} of this machine is not in the commands' own /tmp; read can show it]")
        return lines

    def _place(self, name: str) -> Path | None:
        path = Path(os.path.normpath(name))
        below = next((path.relative_to(top) for top in NAMES if path.is_relative_to(top)), None)
        if below is None or not below.parts or any(path.is_relative_to(place) for place in self._bound()):
            return None
        return self.folder / below


def _holds_something(folder: Path) -> bool:
    try:
        return next(iter(os.scandir(folder)), None) is not None
    except OSError:
        return False


def _is_there(place: Path | None) -> bool:
    return place is None or os.path.lexists(place)


def _is_newer(place: Path | None, since: float) -> bool:
    try:
        return place is not None and place.lstat().st_ctime >= since - 0.05
    except OSError:
        return False
