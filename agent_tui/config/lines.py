"""Where in a TOML file a setting stands, for lines about what is wrong with it."""

from __future__ import annotations

import re

_HEADER = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(?:#.*)?")
_KEY = re.compile(r"\s*([\w\"'. -]+?)\s*=")


def line_number(text: str, key: str, entry: str = "") -> int:
    """The line of a TOML text, from 1, on which a dotted key, or its table, is set; with ``entry`` the one that holds
    that text below it. 0 where it is not certain."""
    table, keys, entries = "", [], []
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.fullmatch(line):
            table, inside = _dotted(header[1]), False
            keys += [number] if table == key else []
            continue
        if written := _KEY.match(line):
            inside = _dotted(f"{table}.{written[1]}" if table else written[1]) == key
            keys += [number] if inside else []
        if inside and entry and any(quote + entry + quote in line for quote in "\"'"):
            entries.append(number)
    found = entries if entry and entries else keys
    return found[0] if len(found) == 1 else 0


def _dotted(written: str) -> str:
    return ".".join(part.strip(" \"'") for part in written.split("."))
