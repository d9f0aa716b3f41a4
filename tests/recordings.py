"""Where the recordings of provider traffic are; tests that need them skip with a reason when they are absent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

RECORDINGS = Path(
    os.environ.get("AGENT_TUI_RECORDINGS") or Path(__file__).resolve().parents[2] / "shared" / "recordings"
)
needs_recordings = pytest.mark.skipif(
    not (RECORDINGS / "replay").is_dir(), reason=f"no recordings at {RECORDINGS} (set AGENT_TUI_RECORDINGS)"
)
