"""The transcript: one scroll view over line blocks, drawing only what is visible."""

from agent_tui.ui.transcript.find import FindState
from agent_tui.ui.transcript.widget import Transcript

__all__ = ["FindState", "Transcript"]
