"""Hypothesis strategies over the whole vocabulary: any text a model may emit, any metadata a provider may send."""

from __future__ import annotations

import dataclasses
import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from agent_tui.models.messages import PART_TYPES, Message, Part
from agent_tui.models.session import BUDGETS, SessionState
from agent_tui.models.steps import CompactionRecord, Step

TEXT = st.text(st.characters(exclude_categories=()), max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
METADATA = st.dictionaries(TEXT, JSON, max_size=3)


def value(hint: Any) -> st.SearchStrategy[Any]:
    """A strategy for a field's type."""
    if hint == Part:
        return st.one_of([instances(cls) for cls in PART_TYPES.values()])
    if hint is Any:
        return JSON
    origin = get_origin(hint)
    if origin is Literal:
        return st.sampled_from(get_args(hint))
    if origin in (Union, types.UnionType):
        return st.one_of([value(option) for option in get_args(hint)])
    if origin is list:
        return st.lists(value(get_args(hint)[0]), max_size=3)
    if origin is tuple and get_args(hint)[1:] == (Ellipsis,):
        return st.lists(value(get_args(hint)[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(value, get_args(hint)))
    if origin is dict:
        key, item = get_args(hint)
        return st.dictionaries(value(key), value(item), max_size=3)
    if dataclasses.is_dataclass(hint):
        return instances(hint)
    simple: dict[Any, st.SearchStrategy[Any]] = {
        type(None): st.none(),
        str: TEXT,
        int: st.integers(-(2**62), 2**62),
        float: st.floats(allow_nan=False, allow_infinity=False),
        bool: st.booleans(),
    }
    return simple[hint]


def instances(cls: Any, **fixed: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Instances of a dataclass with any values its type hints allow."""
    hints = get_type_hints(cls)
    fields = {f.name: fixed[f.name] if f.name in fixed else value(hints[f.name]) for f in dataclasses.fields(cls)}
    return st.builds(cls, **fields)


IDS = st.text("abcdefghij0123456789_", min_size=1, max_size=12)
MESSAGES: st.SearchStrategy[Message] = instances(
    Message, id=IDS, parent_id=st.none(), raw_tokens=st.none() | st.integers(0, 2**40), step_id=st.none() | IDS
)
STEPS: st.SearchStrategy[Step] = instances(Step, id=IDS, message_id=st.none() | IDS)
RECORDS: st.SearchStrategy[CompactionRecord] = instances(CompactionRecord, id=IDS, operation_id=IDS)
_KEYS = {f.name for f in dataclasses.fields(SessionState)}
STATES: st.SearchStrategy[SessionState] = instances(
    SessionState,
    compaction_failures=st.integers(0, 2**40),
    drops_waiting=st.dictionaries(IDS, st.floats(0, 1e10), max_size=3),
    budget=st.dictionaries(st.sampled_from(BUDGETS), st.none() | st.floats(0.01, 1e9), max_size=3),
    newer=st.dictionaries(TEXT.filter(lambda key: key not in _KEYS), JSON, max_size=3),
)
