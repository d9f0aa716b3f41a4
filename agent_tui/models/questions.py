"""What the model puts to the user, and what the user says to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ApprovedMode = Literal["ask", "accept-edits", "auto"]
"""The permission mode that a plan is carried out in."""

APPROVED_MODES: tuple[ApprovedMode, ...] = ("ask", "accept-edits", "auto")


@dataclass(slots=True, frozen=True)
class PlanAnswer:
    """``mode`` None: the plan is declined, with ``feedback`` or without a word. ``plan`` is its text as the user left
    it."""

    mode: ApprovedMode | None
    plan: str
    feedback: str = ""


@dataclass(slots=True, frozen=True)
class QuestionAnswer:
    """The ``chosen`` ones of the choices, and what the user wrote instead or besides. Neither: declined."""

    chosen: tuple[str, ...] = ()
    text: str = ""

    @property
    def declined(self) -> bool:
        return not self.chosen and not self.text.strip()
