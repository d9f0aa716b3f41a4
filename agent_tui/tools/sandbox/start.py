"""How our own small starters are run: an isolated interpreter that loads one file and nothing of the program."""

from __future__ import annotations

import marshal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def starter(module: str, spec: Mapping[str, object], command: Sequence[str]) -> list[str]:
    """The command line that runs ``main`` of ``module``, a file beside this one, with ``spec`` and then ``command``.

    Appended to the path, the folder cannot supply what the standard library has.
    """
    code = f"import sys;sys.path.append(sys.argv.pop(1));import {module};{module}.main()"
    return [sys.executable, "-I", "-S", "-c", code, str(FOLDER), marshal.dumps(dict(spec)).hex(), *command]


def confined(spec: Mapping[str, object], command: Sequence[str]) -> list[str]:
    """``command`` under the restrictions of ``spec``."""
    return starter("confine", spec, command)
