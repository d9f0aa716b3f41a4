"""Facts say where they are from, and when somebody looked; a provider has one record."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import date, timedelta
from types import ModuleType

import pytest

from agent_tui.models.requests import Target
from agent_tui.providers.catalog import DIALECTS, MODEL_FAMILIES, by_name, wire_of
from agent_tui.providers.dialects import gemini, table
from agent_tui.providers.dialects.record import (
    OWN_IMAGES,
    UNSAID,
    USUAL_IMAGES,
    Caching,
    Dialect,
    ImageLimits,
    Schemas,
    Source,
)

FRESH = timedelta(days=180)
ASSUMED = (UNSAID, USUAL_IMAGES, OWN_IMAGES)
"""What stands where nobody says anything."""


def facts(record: object, place: str) -> Iterator[tuple[str, object]]:
    """Every record in a record that has a source, with its place."""
    if not is_dataclass(record):
        return
    for field in fields(record):
        value = getattr(record, field.name)
        if hasattr(value, "source"):
            yield f"{place}.{field.name}", value
        yield from facts(value, f"{place}.{field.name}")


def all_facts() -> list[tuple[str, object]]:
    records: list[object] = [*DIALECTS.values(), *MODEL_FAMILIES.values()]
    records += [wire_of(Target(name, api, "m", "")) for name in DIALECTS for api in ("chat", "responses")]
    return [found for record in records for found in facts(record, getattr(record, "name", "wire"))]


def sources() -> dict[Source, str]:
    found = {
        source: place for place, fact in all_facts() if isinstance(source := getattr(fact, "source", None), Source)
    }
    return found | {family.source: name for name, family in MODEL_FAMILIES.items() if family.source is not None}


def test_what_is_said_of_a_provider_has_a_source() -> None:
    said = [(place, fact) for place, fact in all_facts() if isinstance(fact, (Caching, ImageLimits, Schemas))]
    assert len(said) > len(DIALECTS)
    assert [place for place, fact in said if fact not in ASSUMED and getattr(fact, "source", None) is None] == []


def test_sources_are_pages_with_a_day() -> None:
    for source, place in sources().items():
        assert re.match(r"[a-z0-9.-]+\.[a-z]{2,}/", source.page), place
        assert date.fromisoformat(source.checked) <= date.today() + timedelta(days=1), place


def test_facts_are_fresh() -> None:
    """Warns only: that nobody looked for long makes nothing wrong."""
    old = [
        f"{place}: {source.page} was last read on {source.checked}"
        for source, place in sources().items()
        if date.today() - date.fromisoformat(source.checked) > FRESH
    ]
    if old:
        warnings.warn("\n".join(["facts older than 180 days", *sorted(old)]), stacklevel=1)


def test_a_provider_that_is_recorded_twice_is_told_with_both_places() -> None:
    again = ModuleType("again")
    again.RECORDS = (Dialect("gemini"),)  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=r"gemini is recorded twice: in \S+\.gemini and again"):
        by_name((gemini, table, again))
