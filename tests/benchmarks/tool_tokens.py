"""Tokens (o200k_base) that each built-in tool costs in every request: ``python -m tests.benchmarks.tool_tokens``."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

from agent_tui.tools.registry import builtin_tools


def encoding() -> Any:
    """tiktoken's o200k_base from the files LiteLLM ships, without importing LiteLLM; None when it cannot be had."""
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"
    if not folder.is_dir():
        return None
    os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(folder))
    import tiktoken

    return tiktoken.get_encoding("o200k_base")


def tool_tokens() -> dict[str, int] | None:
    counter = encoding()
    if counter is None:
        return None
    return {tool.schema.name: len(counter.encode(tool.schema.text)) for tool in builtin_tools()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    counts = tool_tokens()
    arguments = parser.parse_args()
    if counts is None:
        print("no tokenizer: LiteLLM is not installed", file=sys.stderr)
        return 1
    counts["total"] = sum(counts.values())
    if arguments.json:
        print(json.dumps(counts))
    else:
        for name, tokens in counts.items():
            print(f"{name:<10}{tokens:>6}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
