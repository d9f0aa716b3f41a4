"""The JSON Schema of an answer, as the provider is asked to hold the model to it: where it can, and as far as it can.

Whether the answer fits is checked in any case; this makes it likelier. It is the same in all requests of a run, where
the provider's cache would otherwise begin anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_tui.models.messages import Metadata
from agent_tui.models.requests import ModelInfo, ModelRequest
from agent_tui.providers.catalog import Called, dialect_of, variable_base, wire_of
from agent_tui.providers.dialects.openai import STRICT
from agent_tui.providers.dialects.record import OWN_SCHEMAS, Beside, Dialect, Schemas, Subset

NAME = "answer"
"""What the schema is called where it needs a name."""

_TABLES = frozenset({"properties", "$defs", "definitions"})
_LISTS = frozenset({"anyOf", "oneOf", "prefixItems"})
_SAYS = frozenset({"type", "enum", "const", "anyOf", "$ref"})
_LARGEST = 4_000
"""Schemas below one schema; OpenAI takes 5,000 properties."""


def output_arguments(request: ModelRequest, info: ModelInfo, tools: bool) -> Metadata:
    """Arguments of a call that ask for the schema; none where the provider is better left alone. ``tools``: whether
    the call declares any."""
    target, schema = info.target, request.output_schema
    dialect = dialect_of(target.provider)
    found = _schemas(request, info, dialect)
    if schema is None or found is None:
        return {}
    when, known = found
    if tools and (when == "without tools" or (when == "at the end" and not request.output_due)):
        return {}
    fitted, strict = _fitted_to(schema, known)
    if fitted is None:
        return {}
    form = {"name": NAME, "schema": fitted, "strict": strict}
    wire = wire_of(target)
    if wire is not None and wire.output_config:
        return {"output_config": {"format": {"type": "json_schema", "schema": fitted}}}
    choice: Metadata = {}
    if tools and when == "at the end" and wire is not None and wire.chooses_none:
        # Beside a grammar no tool can be called; servers that look at the choice first would drop the grammar.
        choice = {"tool_choice": "none"}
    if target.api == "responses":
        return {"text": {"format": {"type": "json_schema", **form}}, **choice}
    return {"response_format": {"type": "json_schema", "json_schema": form}, **choice}


def _schemas(request: ModelRequest, info: ModelInfo, dialect: Dialect) -> tuple[Beside, Schemas] | None:
    """When the schema may be sent to this model, and what of it."""
    spec, known = request.spec, dialect.schemas
    if known is None:
        return None
    if Called(info.target.provider, spec.api_base or variable_base(dialect)).own:
        # A server of the user's own, of which nothing is known but its language.
        known = OWN_SCHEMAS
    if known.models is None or known.models.search(info.target.model.lower()):
        return known.when, known
    return (known.otherwise, known) if known.otherwise is not None else None


def _fitted_to(schema: Metadata, known: Schemas) -> tuple[Metadata | None, bool]:
    """The schema as it is sent, and whether it is to be kept to the letter."""
    if known.subset is None:
        return schema, fitted(schema, STRICT) is not None
    found = fitted(schema, known.subset)
    if found is not None:
        return found, True
    loose = known.loose and schema.get("type") == "object"
    return (schema if loose else None), False


class _UnfitError(Exception):
    """The schema says something that the subset has no words for."""


def fitted(schema: Metadata, subset: Subset) -> Metadata | None:
    """A schema in the words of a subset, None where that cannot be. Whatever fits the schema fits the result, but for
    objects that say nothing of further properties where ``subset.closes``."""
    try:
        if schema.get("type") != "object" or "anyOf" in schema:
            return None
        _refuse_circles(schema)
        return _Fitting(subset).fit(schema, 1)
    except (_UnfitError, RecursionError):
        return None


class _Fitting:
    def __init__(self, subset: Subset) -> None:
        self._subset, self._left = subset, _LARGEST

    def fit(self, schema: Any, depth: int) -> Metadata:
        subset = self._subset
        self._left -= 1
        if not isinstance(schema, dict) or depth > subset.deepest or not self._left:
            raise _UnfitError
        made: Metadata = {}
        for name, value in schema.items():
            name = subset.renamed.get(name, name)
            if name == "const" and name not in subset.kept:
                name, value = "enum", [value]
            if name in made:
                raise _UnfitError
            if name in subset.kept:
                made[name] = self._value(name, value, depth)
            elif name not in subset.dropped:
                raise _UnfitError
        if not _SAYS & made.keys():
            raise _UnfitError
        types = made.get("type")
        if types == "object" or (isinstance(types, list) and "object" in types) or "properties" in made:
            self._object(made)
        return made

    def _value(self, name: str, value: Any, depth: int) -> Any:
        if (name in _TABLES and not isinstance(value, dict)) or (name in _LISTS and not isinstance(value, list)):
            raise _UnfitError
        if name in _TABLES:
            return {key: self.fit(one, depth + 1) for key, one in value.items()}
        if name in _LISTS:
            return [self.fit(one, depth) for one in value]
        if name == "items" or (name == "additionalProperties" and not isinstance(value, bool)):
            return self.fit(value, depth + 1)
        return value

    def _object(self, made: Metadata) -> None:
        subset, properties = self._subset, made.get("properties")
        if subset.closes and properties:
            made.setdefault("additionalProperties", False)
        open_to_others = subset.closed and made.get("additionalProperties") is not False
        if not properties or open_to_others or (subset.complete and set(made.get("required") or ()) != set(properties)):
            raise _UnfitError


def _refuse_circles(schema: Metadata) -> None:
    """Raises _UnfitError for references that are none to a definition of the schema, or that lead back to it."""
    tables = {table: one for table in ("$defs", "definitions") if isinstance(one := schema.get(table), Mapping)}
    places = {f"#/{table}/{name}": one for table, found in tables.items() for name, one in found.items()}
    done: set[str] = set()

    def follow(place: str, above: tuple[str, ...]) -> None:
        if place in above or place not in places:
            raise _UnfitError
        if place not in done:
            for further in _references(places[place]):
                follow(further, (*above, place))
            done.add(place)

    for place in _references({name: value for name, value in schema.items() if name not in ("$defs", "definitions")}):
        follow(place, ())


def _references(value: Any) -> list[str]:
    found: list[str] = []
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            place = one.get("$ref")
            found += [place] if isinstance(place, str) else []
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return found
