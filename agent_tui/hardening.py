"""Keeping other processes of the same user out of ours, whose memory and environment hold keys, and ours from taking
the machine's memory."""

from __future__ import annotations

import contextlib
import os
import sys

_PR_SET_DUMPABLE = 4


def hide_memory() -> None:
    """Closes this process's memory, environment and open files to other processes of the user; children are not
    concerned. Debuggers then need root. Does nothing where the system has no such thing."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def bound_memory() -> None:
    """Leaves this process, and each that it starts, half of the machine's memory for its data, at least 2 GB: what a
    provider or a server sends can then end this process, which is started again, and not the machine. What is only
    reserved does not count. Does nothing where the system has no such limit."""
    if sys.platform != "linux":
        return
    import resource

    most = max(2_000_000_000, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    lowest = min(limit for limit in (most, soft, hard) if limit != resource.RLIM_INFINITY)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (lowest, hard))
