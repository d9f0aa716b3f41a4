"""The head of a Markdown file: ``key: value`` lines between two ``---`` lines. The small part of YAML people use there.

Values are texts: plain, quoted, on following indented lines, or as a block after ``|`` or ``>``. Lists and tables are
kept as the text they are.
"""

from __future__ import annotations

import json

FENCE = "---"


class BadHead(ValueError):
    """The head cannot be read; the text says where and why."""


def split_head(text: str) -> tuple[dict[str, str], str]:
    """The head's values and the text after it; a file without a head has no values. Raises BadHead."""
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != FENCE:
        return {}, text
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() in (FENCE, "...")), None)
    if end is None:
        raise BadHead("line 1: the head that begins with --- has no end")
    return _values(lines[:end]), "\n".join(lines[end + 1 :]).strip("\n")


def _values(lines: list[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    number = 1
    while number < len(lines):
        line = lines[number]
        number += 1
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, colon, rest = line.partition(":")
        if line[0].isspace() or not colon or not key.strip():
            raise BadHead(f"line {number}: expected `key: value`")
        block: list[str] = []
        while number < len(lines) and (not lines[number].strip() or lines[number][0] in " \t-"):
            block.append(lines[number])
            number += 1
        name = key.strip()
        if name in values:
            raise BadHead(f"line {number}: {name} is given twice")
        values[name] = _value(rest.strip(), block, number)
    return values


def _value(first: str, block: list[str], number: int) -> str:
    kept = [line.strip() for line in block]
    if first[:1] in ("|", ">") and first.rstrip("+-") in ("|", ">"):
        return ("\n" if first[0] == "|" else " ").join(kept).strip()
    if first[:1] == '"':
        try:
            return str(json.loads(" ".join([first, *kept]).strip()))
        except ValueError:
            raise BadHead(f"line {number}: the quoted value does not end, or holds an unknown escape") from None
    if first[:1] == "'":
        whole = " ".join([first, *kept]).strip()
        if len(whole) < 2 or not whole.endswith("'"):
            raise BadHead(f"line {number}: the quoted value does not end")
        return whole[1:-1].replace("''", "'")
    plain = first.split(" #")[0].rstrip()
    return " ".join(part for part in (plain, *kept) if part)
