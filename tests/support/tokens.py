"""o200k_base counts for tests and benchmarks, offline: the tokenizer's file comes with the client library."""

from __future__ import annotations

import importlib.util
import os
from functools import cache
from pathlib import Path
from typing import Any


@cache
def _encoding() -> Any:
    spec = importlib.util.find_spec("litellm")
    if spec is not None and spec.origin is not None:
        folder = Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(folder))
    import tiktoken

    return tiktoken.get_encoding("o200k_base")


@cache
def count_tokens(text: str) -> int:
    """o200k_base tokens of a text; special tokens in it count as plain text."""
    return len(_encoding().encode(text, disallowed_special=())) if text else 0
