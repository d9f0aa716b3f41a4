"""The strict side of configuration: pydantic models that say what is allowed, and errors that name the place.

Importing this costs as much as pydantic does, so it happens after the first frame.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from agent_tui.config import KEY_ACTIONS
from agent_tui.config.files import Layer, merge
from agent_tui.errors import ConfigError

Positive = Annotated[int, Field(gt=0)]
Seconds = Annotated[float, Field(gt=0)]
Dollars = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]

SMALLEST_LIMIT = 1_024
"""Tokens; a smaller ``compact_at`` that is no fraction is a slip (80 for 80 %, 1.5): nothing could be sent below it."""


def _fraction_or_tokens(value: float) -> float:
    if not (0 < value <= 1 or SMALLEST_LIMIT <= value < float("inf")):
        raise ValueError(
            f"must be a fraction of the window up to 1 (0.8 is 80 %), or tokens, at least {SMALLEST_LIMIT:,}"
        )
    return value


CompactAt = Annotated[float, AfterValidator(_fraction_or_tokens)]


_KEY = re.compile(r"(?:(?:ctrl|alt|shift|super|hyper|meta)\+)*(?:[a-z][a-z0-9_]*|\S)")
_SECRET = frozenset({"env", "headers", "extra"})
"""Tables whose values are not repeated in error lines: keys may be among them."""


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class PricesSchema(Strict):
    input: Price | None = None
    output: Price | None = None
    cache_read: Price | None = None
    cache_write: Price | None = None
    cache_write_1h: Price | None = None

    @model_validator(mode="after")
    def _whole(self) -> PricesSchema:
        if self.model_fields_set and (self.input is None or self.output is None):
            raise ValueError("needs both input and output, in dollars per million tokens")
        return self


class ModelSchema(Strict):
    model: str | None = None
    api_base: str | None = None
    api_key_env: str | None = None
    context_window: Positive | None = None
    max_output: Positive | None = None
    api: Literal["auto", "chat", "responses"] | None = None
    reasoning_effort: Literal["off", "low", "medium", "high"] | None = None
    compact_at: CompactAt | None = None
    via: Literal["auto", "litellm"] | None = None
    cache_ttl: Literal["5m", "1h"] | None = None
    prices: PricesSchema | None = None
    extra: dict[str, Any] | None = None


class ContextSchema(Strict):
    auto_compact: bool | None = None
    compact_at: CompactAt | None = None
    max_output_reserve: Positive | None = None
    exact_counting: Literal["auto", "off"] | None = None
    summary_model: str | None = None


class BudgetSchema(Strict):
    turn_usd: Dollars | None = None
    session_usd: Dollars | None = None
    day_usd: Dollars | None = None
    session_tokens: Positive | None = None


class ToolsSchema(Strict):
    disabled: list[str] | None = None
    bash_timeout: Seconds | None = None
    output_limit: Annotated[int, Field(ge=1_000)] | None = None
    mcp_defer_share: Annotated[float, Field(ge=0, le=1)] | None = None
    env_allow: list[str] | None = None


class SandboxSchema(Strict):
    mode: Literal["auto", "required", "off"] | None = None
    network: Literal["ask", "allow", "deny", "registries"] | None = None
    loopback: Literal["own", "machine", "deny"] | None = None
    readable: list[str] | None = None
    writable: list[str] | None = None


class PermissionsSchema(Strict):
    mode: Literal["ask", "accept-edits", "plan", "auto", "bypass"] | None = None
    allow: list[str] | None = None
    ask: list[str] | None = None
    deny: list[str] | None = None
    mcp_read_only: list[str] | None = None


class McpSchema(Strict):
    command: str | None = None
    args: list[str] | None = None
    env: dict[str, str] | None = None
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] | None = None
    enabled: bool | None = None
    timeout: Seconds | None = None
    call_timeout: Seconds | None = None

    @model_validator(mode="after")
    def _one_transport(self) -> McpSchema:
        if self.command and self.url:
            raise ValueError("has both command and url; a server is reached by one of them")
        return self


class UiSchema(Strict):
    theme: str | None = None
    plain: bool | None = None
    show_reasoning: bool | None = None
    reduced_motion: bool | None = None
    notifications: bool | None = None
    turn_cost: bool | None = None
    vim: bool | None = None
    mouse: bool | None = None
    images: Literal["auto", "off", "kitty", "iterm2", "sixel"] | None = None
    scrollback: bool | None = None
    status_command: str | None = None
    editor: str | None = None


class AgentSchema(Strict):
    step_limit: Positive | None = None
    timeout: Seconds | None = None
    content_timeout: Seconds | None = None
    answer_timeout: Seconds | None = None
    retries: Annotated[int, Field(ge=1, le=20)] | None = None
    development: bool | None = None


class SettingsSchema(Strict):
    default_model: str | None = None
    models: dict[str, ModelSchema] | None = None
    context: ContextSchema | None = None
    budget: BudgetSchema | None = None
    tools: ToolsSchema | None = None
    permissions: PermissionsSchema | None = None
    sandbox: SandboxSchema | None = None
    ui: UiSchema | None = None
    agent: AgentSchema | None = None
    mcp: dict[str, McpSchema] | None = None
    keys: dict[str, str] | None = None


def check(layers: Sequence[Layer]) -> None:
    """Validates each layer, then what only the whole can show. Raises ConfigError: place, key, what is allowed."""
    for layer in layers:
        try:
            SettingsSchema.model_validate(layer.values)
        except ValidationError as error:
            raise ConfigError(_line(layer, error)) from None
    _check_models(layers)
    _check_keys(layers)


def _check_models(layers: Sequence[Layer]) -> None:
    """Every model says which it is, and the names of models elsewhere are those of models."""
    models = merge(layers).get("models") or {}
    complete = {key for key, model in models.items() if isinstance(model, dict) and model.get("model")}
    for key in sorted(models.keys() - complete):
        named = [layer for layer in layers if key in (layer.values.get("models") or {})]
        alone = (
            " The project's table and yours of that name are not mixed." if any(one.brought for one in named) else ""
        )
        raise ConfigError(
            f"{named[-1].place(f'models.{key}')}: models.{key}: needs model, LiteLLM's name, e.g. "
            f'model = "openai/gpt-5".{alone}'
        )
    for table, key in ((None, "default_model"), ("context", "summary_model")):
        for layer in reversed(layers):
            values = layer.values if table is None else layer.values.get(table) or {}
            if (name := values.get(key)) is None:
                continue
            if name not in complete and name != "demo" and "/" not in name:
                dotted = key if table is None else f"{table}.{key}"
                written = layer.name(dotted)
                known = ", ".join([*(f'"{k}"' for k in sorted(complete)), '"demo"'])
                raise ConfigError(
                    f"{layer.place(dotted)}: {written}: no model is called {name!r}; allowed: {known}, or LiteLLM's "
                    'name, e.g. "openai/gpt-5".'
                )
            break


def _check_keys(layers: Sequence[Layer]) -> None:
    for layer in layers:
        for action, key in (layer.values.get("keys") or {}).items():
            written, place = layer.name(f"keys.{action}"), layer.place(f"keys.{action}")
            if action not in KEY_ACTIONS:
                raise ConfigError(f"{place}: unknown key {written}; allowed here: {', '.join(KEY_ACTIONS)}.")
            if not all(_KEY.fullmatch(one.strip()) for one in key.split(",")):
                raise ConfigError(f'{place}: {written}: must be a key such as "ctrl+f" or "f3,alt+x" (not {key!r}).')


def _line(layer: Layer, error: ValidationError) -> str:
    first = error.errors()[0]
    parts = [str(p) for p in first["loc"]]
    key = ".".join(parts)
    name = layer.name(key)
    place = layer.place(key)
    if first["type"] == "extra_forbidden":
        allowed = ", ".join(_keys_at(parts[:-1]))
        return f"{place}: unknown key {name}; allowed here: {allowed}."
    shown = repr(first.get("input"))
    if len(shown) > 60 or "key" in parts[-1] or _SECRET.intersection(parts):
        shown = "this value"
    return f"{place}: {name}: {_allowed(first)} (not {shown})."


def _allowed(error: Any) -> str:
    context = error.get("ctx", {})
    kind = error["type"]
    if kind == "literal_error":
        return f"must be {context['expected']}"
    if kind in ("greater_than", "greater_than_equal", "less_than", "less_than_equal"):
        bound = next(iter(context.values()))
        words = {
            "greater_than": "greater than",
            "greater_than_equal": "at least",
            "less_than": "less than",
            "less_than_equal": "at most",
        }
        return f"must be {words[kind]} {bound}"
    message = str(error["msg"]).removeprefix("Value error, ")
    return message[0].lower() + message[1:].replace("Input should", "should") if message else "is not allowed"


def _keys_at(path: Sequence[str]) -> list[str]:
    model: Any = SettingsSchema
    for part in path:
        field = model.model_fields.get(part)
        if field is None:
            continue
        model = next((m for m in _models_in(field.annotation)), model)
    return sorted(model.model_fields)


def _models_in(annotation: Any) -> list[Any]:
    found = []
    for candidate in (annotation, *getattr(annotation, "__args__", ())):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            found.append(candidate)
        elif candidate is not annotation:
            found += _models_in(candidate)
    return found
