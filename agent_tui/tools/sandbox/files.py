"""Files without a name, to hand bytes to a child."""

from __future__ import annotations

import os
import sys
import tempfile


def as_file(data: bytes) -> int:
    """A descriptor that reads ``data`` from its beginning. The caller closes it."""
    if sys.platform == "linux":
        fd = os.memfd_create("agent-tui")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
