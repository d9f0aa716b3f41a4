"""Keeping other processes of the same user out of ours: keys are in their memory and environment."""

from __future__ import annotations

import sys

_PR_SET_DUMPABLE = 4


def hide_memory() -> None:
    """Closes this process's memory, environment and open files to other processes of the user; children are not
    concerned. Debuggers then need root. Does nothing where the system has no such thing."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
