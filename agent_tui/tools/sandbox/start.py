"""How our own small starters are run: an isolated interpreter that loads one file and nothing of the program."""

from __future__ import annotations

import marshal
import sys
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def starter(module: str, spec: Mapping[str, object], command: Sequence[str]) -> list[str]:
    """The command line that runs ``main`` of ``module``, a file beside this one, with ``spec`` and then ``command``.

    Appended to the path, the folder cannot supply what the standard library has.
    """
    code = f"import sys;sys.path.append(sys.argv.pop(1));import {module};{module}.main()"
    # One argument may have 128 KiB.
    packed = zlib.compress(marshal.dumps(dict(spec)), 1).hex()
    return [sys.executable, "-I", "-S", "-c", code, str(FOLDER), packed, *command]


def confined(spec: Mapping[str, object], command: Sequence[str]) -> list[str]:
    """``command`` under the restrictions of ``spec``."""
    return starter("confine", spec, command)
