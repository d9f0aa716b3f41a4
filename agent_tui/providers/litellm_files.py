"""What LiteLLM has in files: its table of models, the names of providers, tiktoken's vocabularies. They are found and
read without importing it (3–6 s, 165 MB)."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

TABLE_FILE = "model_prices_and_context_window_backup.json"
PROVIDERS_FILE = "provider_endpoints_support_backup.json"
VOCABULARIES = ("litellm_core_utils", "tokenizers")
"""The folder of tiktoken's vocabularies that comes with it."""

_NAME = re.compile(rb'^ {0,4}"((?:[^"\\\n]|\\.)+)": \{', re.MULTILINE)
"""How an entry of the table begins: what belongs to a name is indented further."""
_NO_MODEL = "sample_spec"


def place(*parts: str) -> Path | None:
    """A file or folder of the installed package; None where there is none."""
    spec = importlib.util.find_spec("litellm")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (found := Path(folder, *parts)).exists():
            return found
    return None


def data_file(name: str) -> dict[str, Any]:
    """One of its tables in JSON; empty when this version keeps it elsewhere."""
    try:
        data = json.loads(_bytes(name))
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def _bytes(name: str) -> bytes:
    path = place(name)
    try:
        return path.read_bytes() if path is not None else b""
    except OSError:
        return b""


@cache
def model_entry(name: str) -> dict[str, Any] | None:
    """What the table of models has under a name: limits, prices and abilities. None for what it does not have, and
    everything where this LiteLLM keeps it elsewhere.

    The entry is found in the text: to read the whole file at once takes a tenth of a second in which nothing else
    runs, and 20 MB.
    """
    data, key = _bytes(TABLE_FILE), json.dumps(name, ensure_ascii=False).encode() + b": {"
    end = len(data) if name != _NO_MODEL else 0
    while (at := data.rfind(key, 0, end)) >= 0:  # of several the last counts, as everywhere in JSON
        line = data.rfind(b"\n", 0, at) + 1
        if _NAME.match(data, line) is not None and not data[line:at].strip():
            return _entry(data, at + len(key) - 1)
        end = at
    return None


def each_model(fits: Callable[[str], bool] = lambda name: True) -> Iterator[tuple[str, dict[str, Any]]]:
    """The entries of the table whose name ``fits``, one after the other: whoever shares the process has turns between
    them."""
    data = _bytes(TABLE_FILE)
    for found in _NAME.finditer(data):
        name = json.loads(b'"%s"' % found[1])
        if name != _NO_MODEL and fits(name) and (entry := _entry(data, found.end() - 1)) is not None:
            yield name, entry


def _entry(data: bytes, begin: int) -> dict[str, Any] | None:
    """The object that begins somewhere in the table."""
    following = _NAME.search(data, begin)
    whole = data[begin : following.start() if following is not None else None].decode(errors="replace")
    try:
        return dict(json.JSONDecoder().raw_decode(whole)[0])
    except ValueError:
        return None
