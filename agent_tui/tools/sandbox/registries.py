"""The hosts of package registries: those that everybody knows, and those that the user's own settings name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from agent_tui.tools.word_sets import word_set

KNOWN = word_set(
    "pypi.org files.pythonhosted.org conda.anaconda.org repo.anaconda.com "
    "registry.npmjs.org registry.yarnpkg.com repo.yarnpkg.com nodejs.org jsr.io npm.jsr.io deno.land "
    "index.crates.io static.crates.io crates.io static.rust-lang.org proxy.golang.org sum.golang.org "
    "rubygems.org index.rubygems.org repo.maven.apache.org repo1.maven.org plugins.gradle.org services.gradle.org "
    "packagist.org repo.packagist.org api.nuget.org hex.pm repo.hex.pm builds.hex.pm pub.dev "
    "cpan.metacpan.org fastapi.metacpan.org www.cpan.org cran.r-project.org cloud.r-project.org "
    "hackage.haskell.org opam.ocaml.org pkg.julialang.org"
)
"""They hand out packages under names that everybody sees. What takes uploads, hosts code or files of anybody is not
among them."""

_NAMES = re.compile(
    r"(?i:PIP|UV|PDM|POETRY|CONDA|NPM_CONFIG|YARN|PNPM|BUN|CARGO|GEM|BUNDLE|MAVEN|NUGET|COMPOSER|HEX|PUB|GOPROXY)"
    r"(?:_\w+)?"
)
_WHAT = re.compile(r"(?i:index|registry|registries|proxy|mirror|repository|hosted|channel|source|links)")
_ROUTE = re.compile(r"(?i:npm_config_|yarn_|pip_|uv_|cargo_)?(?:https?_?|no_?|http_)proxy", re.IGNORECASE)
_FILES = (
    *("~/.config/pip/pip.conf", "~/.pip/pip.conf", "/etc/pip.conf", "~/.config/uv/uv.toml", "/etc/uv/uv.toml"),
    *("~/.npmrc", "~/.yarnrc", "~/.yarnrc.yml", "~/.cargo/config.toml", "~/.cargo/config", "~/.condarc"),
    *("~/.bundle/config", "~/.gemrc", "~/.m2/settings.xml", "~/.config/pip/config", "~/.config/go/env"),
)
_URL = re.compile(r"https?://(?:[^@/\s'\"]*@)?(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+)(?::(\d{1,5}))?")
_MOST = 200_000


def is_registry(host: str) -> bool:
    """Whether a host is one that everybody gets packages from."""
    return host in KNOWN


def hosts_named(command: str) -> list[str]:
    """The hosts of the web addresses that stand in a command."""
    return list(dict.fromkeys(host for host, _ in _places(command)))


def users_own(environ: Mapping[str, str], apart_from: Iterable[Path]) -> frozenset[tuple[str, int]]:
    """The (host, port) that the user's environment and own files name as where packages come from. A file that lies in
    one of the folders ``apart_from`` can be written by commands, and says nothing."""
    found = {place for name, value in environ.items() if _names_index(name) for place in _places(value)}
    folders = [folder.resolve() for folder in apart_from]
    for name in _FILES:
        path = Path(os.path.realpath(Path(name).expanduser()))
        if not any(path.is_relative_to(folder) for folder in folders):
            found |= set(_in_file(path))
    return frozenset(found)


def _names_index(name: str) -> bool:
    if _ROUTE.fullmatch(name):
        return False  # the way there, not the place
    return _NAMES.fullmatch(name) is not None and _WHAT.search(name) is not None


@lru_cache(maxsize=64)
def _in_file(path: Path) -> tuple[tuple[str, int], ...]:
    try:
        with path.open("rb") as file:
            text = file.read(_MOST).decode("utf-8", "replace")
    except OSError:
        return ()
    lines = (line for line in text.splitlines() if not line.lstrip().startswith(("#", ";", "//")))
    return tuple(
        place for line in lines if not re.match(r"\s*(?:https?-)?proxy\s*[=:]", line) for place in _places(line)
    )


def _places(text: str) -> Iterator[tuple[str, int]]:
    for match in _URL.finditer(text):
        scheme = match.group(0).partition(":")[0]
        yield match.group(1).strip("[]").lower(), int(match.group(2) or (443 if scheme == "https" else 80))
