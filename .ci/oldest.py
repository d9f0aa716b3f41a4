"""Prints what `pyproject.toml` allows at least.

Without an argument: every lower bound as ``name==version``, constraints for pip. ``python``: the lowest Python.
``tests``: the names of what the tests run with.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[[^\]]*\])?(?P<bounds>[^;]*)")
RUNS_TESTS = ("pytest", "hypothesis")


def lower(text: str) -> str:
    """The lower bound in ``>=8.2,<9``."""
    found = [bound.strip()[2:].strip() for bound in text.split(",") if bound.strip().startswith(">=")]
    if len(found) != 1:
        raise SystemExit(f"has no lower bound: {text}")
    return found[0]


def bounds(requirements: list[str]) -> Iterator[tuple[str, str]]:
    """Name and lower bound of each requirement but those that name one version only."""
    for requirement in requirements:
        found = REQUIREMENT.fullmatch(requirement.strip())
        if found is None:
            raise SystemExit(f"not understood: {requirement}")
        if "==" not in found["bounds"]:
            yield found["name"], lower(found["bounds"])


def main() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    match sys.argv[1:]:
        case ["python"]:
            print(lower(project["requires-python"]))
        case ["tests"]:
            print(*(name for name, _ in bounds(extras["dev"]) if name.startswith(RUNS_TESTS)))
        case []:
            for name, version in bounds(
                [*project["dependencies"], *(one for extra in extras.values() for one in extra)]
            ):
                print(f"{name}=={version}")
        case other:
            raise SystemExit(f"not known: {' '.join(other)}")


if __name__ == "__main__":
    main()
