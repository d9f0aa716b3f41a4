"""What our own processes may take of the machine."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.quick

BOUND = "from agent_tui.hardening import bound_memory; bound_memory(); "
LIMIT = "import resource; print(resource.getrlimit(resource.RLIMIT_DATA)[0])"


@pytest.mark.skipif(sys.platform != "linux", reason="no such limit elsewhere")
def test_a_helper_that_takes_too_much_ends_itself_and_so_does_what_it_starts() -> None:
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {LIMIT!r}])"
    said = subprocess.run([sys.executable, "-c", BOUND + child], capture_output=True, text=True, check=True).stdout
    limit = int(said)
    assert limit >= 2_000_000_000
    taken = subprocess.run(
        [sys.executable, "-c", f"{BOUND}bytearray({limit})"], capture_output=True, text=True, check=False
    )
    assert "MemoryError" in taken.stderr
