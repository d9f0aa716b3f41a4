"""Which models are given patches to change files with."""

from __future__ import annotations

import pytest

from agent_tui.models.requests import Target
from agent_tui.providers.catalog import model_family, patches_files
from tests.support.every import every

pytestmark = pytest.mark.quick


@every(
    ("model", "patches"),
    [
        ("gpt-5", True),
        ("gpt-5.1-codex-max", True),
        ("openai/gpt-5-mini", True),
        ("gpt-4.1", True),
        ("codex-mini-latest", True),
        ("o3", True),
        ("o4-mini", True),
        ("gpt-oss-120b", True),
        ("gpt-4o", False),
        ("gpt-4-turbo", False),
        ("gpt-3.5-turbo", False),
        ("chatgpt-4o-latest", False),
        ("o1", False),
        ("claude-sonnet-4-6", False),
        ("gemini-2.5-pro", False),
        ("glm-5", False),
        ("some-model", False),
    ],
)
def test_models_trained_on_patches_get_them(model: str, patches: bool) -> None:
    assert patches_files(Target("openai", "chat", model, model_family(model))) is patches
