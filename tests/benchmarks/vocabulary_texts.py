"""Texts of every kind that a conversation holds, to compare vocabularies by: files of the machine this runs on, and
what commands print, made from a seed."""

from __future__ import annotations

import base64
import gettext
import random
import re
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

FILES = {
    "python": ".py",
    "markdown": ".md",
    "javascript": ".js",
    "json": ".json",
    "c": ".h",
    "html": ".html",
    "css": ".css",
    "text": ".txt",
    "typescript": ".ts",
    "rust": ".rs",
    "toml": ".toml",
    "yaml": ".yaml",
}
LANGUAGES = ("ru", "zh_CN", "ja", "ko", "ar", "de", "fr", "el", "he", "hi")
SIZES = (300, 1_000, 3_000, 8_000, 20_000)
WORDS = (
    "error",
    "session",
    "request",
    "cache",
    "model",
    "token",
    "stream",
    "parse",
    "worker",
    "timeout",
    "update",
    "merge",
)


def texts(seed: int, each: int = 10, folders: tuple[Path, ...] = ()) -> Iterator[tuple[str, str]]:
    """So many texts of every kind, with its name."""
    rng = random.Random(seed)
    for kind, files in _files((*folders, *map(Path, sys.path), Path("/usr/share"))).items():
        rng.shuffle(files)
        yield from ((kind, text) for text in islice(_cuts(rng, files), each))
    for language in LANGUAGES:
        spoken = _spoken(language)
        for _ in range(min(each, len(spoken) // 400)):
            start = rng.randrange(len(spoken))
            yield language, spoken[start : start + rng.choice(SIZES)]
    for kind, line in LINES.items():
        for _ in range(each):
            size, rows = rng.choice(SIZES), [line(rng, 0)]
            while sum(map(len, rows)) < size:
                rows.append(line(rng, len(rows)))
            yield kind, "\n".join(rows)


def _files(folders: tuple[Path, ...]) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {kind: [] for kind in FILES}
    kinds = {suffix: kind for kind, suffix in FILES.items()}
    for folder in folders:
        for path in islice(folder.rglob("*.*"), 60_000):
            kind = kinds.get(path.suffix)
            if kind is not None and path.is_file() and 300 < path.stat().st_size < 400_000:
                found[kind].append(path)
    for paths in found.values():
        paths.sort()
    return found


def _cuts(rng: random.Random, files: list[Path]) -> Iterator[str]:
    for path in files:
        text = path.read_text("utf-8", "replace")
        size = rng.choice(SIZES)
        start = rng.randrange(max(1, len(text) - size))
        cut = text[start : start + size]
        if path.suffix == ".py" and rng.random() < 0.4:
            # As a tool that reads a file shows it.
            first = rng.randrange(1, 900)
            cut = "\n".join(f"{first + n:6}\t{line}" for n, line in enumerate(cut.splitlines()))
        elif path.suffix == ".py" and rng.random() < 0.2:
            cut = "\n".join(rng.choice(("+", "-", " ", " ")) + line for line in cut.splitlines())
        if cut.strip():
            yield cut


def _spoken(language: str) -> str:
    """Translations that programs on this machine bring along."""
    said: list[str] = []
    folders = [Path("/usr/share/locale"), *(p / "pycountry" / "locales" for p in map(Path, sys.path))]
    for path in sorted(mo for folder in folders for mo in folder.glob(f"{language}/LC_MESSAGES/*.mo")):
        try:
            with path.open("rb") as file:
                catalog = getattr(gettext.GNUTranslations(file), "_catalog", {})
        except UnicodeDecodeError:
            continue
        said += [text for key, text in catalog.items() if key and isinstance(text, str)]
    catalog_file = Path(f"/usr/lib/systemd/catalog/systemd.{language}.catalog")
    if catalog_file.exists():
        said.append(catalog_file.read_text("utf-8"))
    return "\n".join(said)


Line = Callable[[random.Random, int], str]


def _filled(form: str) -> Line:
    """A line of this form: ``{w}`` is any word, ``{n}`` the line's number, ``{d3}`` a number of up to three digits,
    ``{f2}`` one with decimals, ``{h4}`` four bytes in hexadecimal, ``{t}`` a time."""

    def line(rng: random.Random, number: int) -> str:
        def value(match: re.Match[str]) -> str:
            kind, size = match[1], int(match[2] or 1)
            if kind in "wn":
                return rng.choice(WORDS) if kind == "w" else str(number)
            if kind == "t":
                return f"2026-11-{1 + number // 900 % 28:02} {number // 60 % 24:02}:{number % 60:02}:09"
            if kind == "f":
                return f"{rng.uniform(-90, 900):.{size}f}"
            return str(rng.randrange(10**size)) if kind == "d" else rng.randbytes(size).hex()

        return re.sub(r"\{([a-z])(\d*)\}", value, form)

    return line


LINES: dict[str, Line] = {
    **{
        kind: _filled(form)
        for kind, form in {
            "csv": "{n},{d6},{f2},{w},{f6}",
            "columns of digits": "  {d8}  {d4}  {d7}  {d2}  {d6}  {d5}",
            "timings": "[{t}.{d3}] {w} took {f3} ms ({n})",
            "ps": "root  {d5}  {f1}  {f1}  {d6}  {d5} ?   Ssl  09:{d2}   0:00 /usr/bin/{w} --{w}",
            "log": "{t} INFO [{w}-{d2}] {w}.{w}: {w} id={d5}",
            "hashes": "{h20}  src/{w}/{w}_{n}.py",
            "ids": "{h4}-{h2}-{h2}-{h2}-{h6}",
            "json rows": '{"id": {n}, "name": "{w}", "value": {f4}, "ok": true}',
            "tests": "tests/{w}/test_{w}.py::test_{w}_{w} PASSED  [ {d2}%]",
            "minified": "function a{d1}(t,n){return t?n.{w}({d2}):void 0}var e={{w}:!0};",
            "listing": "-rw-r--r-- 1 root root   {d6} Nov {d1} 09:{d2} {w}_{w}.json",
            "prose": "The {w} of a {w} is kept until the next {w} comes, and then the {w} begins again.",
        }.items()
    },
    "base64": lambda rng, number: base64.b64encode(rng.randbytes(57)).decode(),
    "hex dump": lambda rng, number: f"{16 * number:08x}  {rng.randbytes(16).hex(' ')}",
}
