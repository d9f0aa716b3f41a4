"""Which models there are, by what name, and where their keys come from."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import fields, replace

from agent_tui.config import ModelConfig, Settings
from agent_tui.errors import ConfigError
from agent_tui.models.requests import ModelSpec
from agent_tui.providers.catalog import dialect_of, needs_no_key, resolve_target, ttl_problem

DEMO = "demo"


class ModelCatalogue:
    """The configured models, what was detected on this machine, and the demo model.

    ``key_from_keyring`` looks up a provider's stored key; it may return None.
    """

    def __init__(
        self, settings: Settings, key_from_keyring: Callable[[str], str | None] = lambda provider: None
    ) -> None:
        self._settings = settings
        self._keyring = key_from_keyring
        self._detected: list[ModelSpec] = []

    def add_detected(self, specs: Sequence[ModelSpec]) -> None:
        """What was found on this machine comes after what is configured."""
        self._detected += specs

    def all(self) -> list[ModelSpec]:
        """Configured first, then detected, the demo model last; no two of the same key."""
        specs = [self._configured(key, model) for key, model in self._settings.models.items()]
        known = {s.key for s in specs}
        specs += [s for s in self._detected if s.key not in known]
        if not any(s.key == DEMO for s in specs):
            specs.append(ModelSpec(DEMO, DEMO))
        return specs

    def find(self, key: str) -> ModelSpec:
        """The model of that name: a configured or detected one, ``demo``, or any LiteLLM name with its provider.

        Raises ConfigError for a name that is neither, and for a setting that its provider does not have.
        """
        for spec in self.all():
            if spec.key == key:
                return self._with_key(spec)
        if "/" in key:
            return self._with_key(ModelSpec(key, key))
        names = ", ".join(s.key for s in self.all())
        raise ConfigError(
            f"Unknown model {key!r}. Known: {names}. Any LiteLLM name with its provider works too, e.g. openai/gpt-5."
        )

    def default(self) -> ModelSpec:
        """What a new session starts with: the configured default, else the first configured, else the first detected,
        else the demo model."""
        if self._settings.default_model:
            return self.find(self._settings.default_model)
        return self._with_key(self.all()[0])

    def _with_key(self, spec: ModelSpec) -> ModelSpec:
        """Adds the key from the keyring where one is needed and the environment has none. Raises ConfigError for a
        setting that the model's provider does not have."""
        if (problem := ttl_problem(spec, resolve_target(spec))) is not None:
            raise ConfigError(problem)
        provider = spec.model.split("/", 1)[0]
        names = (spec.api_key_env,) if spec.api_key_env else dialect_of(provider).keys
        if spec.model == DEMO or needs_no_key(spec, provider) or any(os.environ.get(name) for name in names):
            return spec
        key = self._keyring(provider)
        return replace(spec, api_key=key) if key else spec

    @staticmethod
    def _configured(key: str, model: ModelConfig) -> ModelSpec:
        return ModelSpec(key=key, **{f.name: getattr(model, f.name) for f in fields(model)})
