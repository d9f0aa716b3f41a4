"""Stands for what the user accepted of a project."""

from __future__ import annotations


class Accepting:
    """Finds the accepted files of a project: all of them once ``all`` is set, before that none."""

    def __init__(self, all: bool = True) -> None:
        self.all = all

    def __call__(self) -> Accepting:
        return self

    def __contains__(self, path: object) -> bool:
        return self.all
