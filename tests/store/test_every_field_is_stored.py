"""Every message part, step and record, with every field other than its default, comes back from the file as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_tui.models.codec import from_dict, to_dict
from agent_tui.models.messages import PART_TYPES, Message
from agent_tui.models.steps import CompactionRecord, Step
from agent_tui.store import rows
from tests.support.filled import every_field, filled


@pytest.mark.parametrize("cls", [*PART_TYPES.values(), Message, Step, CompactionRecord])
def test_the_codec_loses_nothing(cls: type[Any]) -> None:
    for value in filled(cls):
        assert every_field(from_dict(cls, json.loads(json.dumps(to_dict(value))))) == every_field(value)


@pytest.mark.parametrize("kind", sorted(PART_TYPES))
def test_a_part_loses_nothing(kind: str) -> None:
    for part in filled(PART_TYPES[kind]):
        assert every_field(rows.load_part(json.loads(json.dumps(to_dict(part))))) == every_field(part)
