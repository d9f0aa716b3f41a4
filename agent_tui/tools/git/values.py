"""The few values of a git configuration that change what files mean, and cannot start anything."""

from __future__ import annotations

import re

_SECTION = re.compile(r'\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_VALUE = re.compile(r'([A-Za-z][\w-]*)\s*=\s*("?)([^"\\]*?)\2\s*')
_COMMENT = re.compile(r"\s[;#][^\"]*$")
_BOOLEAN = re.compile(r"true|false|yes|no|on|off|1|0")
_SAFE = {
    "core.filemode": _BOOLEAN,
    "core.ignorecase": _BOOLEAN,
    "core.symlinks": _BOOLEAN,
    "core.precomposeunicode": _BOOLEAN,
    "core.autocrlf": re.compile(r"true|false|input"),
    "core.eol": re.compile(r"lf|crlf|native"),
    "extensions.objectformat": re.compile(r"sha1|sha256"),
}


def read_values(text: str) -> dict[str, str]:
    """``section.key`` (in small letters) and value of each plain line; sections with a name of their own, values over
    several lines or with escapes, and includes are left out."""
    found: dict[str, str] = {}
    section = ""
    for raw in text.splitlines():
        line = raw.strip()
        while match := _SECTION.match(line):
            section = "" if match.group(2) is not None else match.group(1).lower()
            line = line[match.end() :].strip()
        value = _VALUE.fullmatch(_COMMENT.sub("", line))
        if section and value is not None:
            found[f"{section}.{value.group(1).lower()}"] = value.group(3).strip()
    return found


def harmless(values: dict[str, str]) -> dict[str, str]:
    """Those that say how files and objects are to be read, with a value that can mean nothing else."""
    return {key: value for key, value in values.items() if key in _SAFE and _SAFE[key].fullmatch(value.lower())}


def written(values: dict[str, str]) -> str:
    """A configuration with these values and nothing else."""
    lines: list[str] = []
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        quoted = value.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'[{section}]\n\t{name} = "{quoted}"\n')
    return "".join(lines)
