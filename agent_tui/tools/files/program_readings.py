"""What is known of programs: whether the files among their words are only looked at, what they find by themselves, and
of which nobody can tell what they run."""
# ruff: noqa: E501  (a table)

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agent_tui.records import dataclass


@dataclass(slots=True, frozen=True)
class Reading:
    """``looks``: the files among its words are data, unless ``runs`` is found in them. ``finds`` are patterns of files,
    and of folders where they end with ``/``, from where it stands up to the project. ``whole``: all of the project
    runs, but for what the program itself ``writes``. ``shell``: its words may be lines of shell. ``unknown``: it runs
    what cannot be told."""

    looks: bool = False
    runs: str = ""
    finds: tuple[str, ...] = ()
    whole: bool = False
    writes: tuple[str, ...] = ()
    shell: bool = False
    folders: bool = False
    unknown: bool = False


_NODE_CONFIG = ("package.json", "node_modules/")
_NPM = (*_NODE_CONFIG, ".npmrc", ".yarnrc*", ".pnp.*", ".pnpmfile.cjs", "pnpm-workspace.yaml")
_MAKE = ("GNUmakefile", "makefile", "Makefile")
_VENV = ("pyproject.toml", "uv.toml", "poetry.toml", "Pipfile", ".env", ".venv/", "src/")
_GRADLE = ("*.gradle", "*.gradle.kts", "gradle.properties", "gradle/", "buildSrc/")
_SCRIPT, _LOOKS = Reading(), Reading(looks=True)
_SHELL = Reading(shell=True)
_UNKNOWN = Reading(unknown=True)

_TABLE: tuple[tuple[str, Reading], ...] = (
    # What only looks at what it is given, or prints it
    ("echo printf true false : test [ [[ exit return sleep date pwd ls stat file wc du df basename dirname realpath", _LOOKS),
    ("readlink touch mkdir rmdir rm chmod kill which type hash id whoami hostname uname set unset shift local", _LOOKS),
    ("cat head tail tac nl cut tr uniq paste fold column comm diff cmp md5sum sha1sum sha256sum base64 xxd", _LOOKS),
    ("grep egrep fgrep jq yq notify-send osascript say pbcopy terminal-notifier gofmt rustfmt shellcheck shfmt", _LOOKS),
    ("curl wget", Reading(looks=True, runs=r"(?:^|\s)(?:-K|--config|--use-askpass)")),
    ("rg ag", Reading(looks=True, runs=r"--pre\b|--hostname-bin|--pager")),
    ("sort", Reading(looks=True, runs=r"--compress-program")),
    ("awk gawk mawk nawk", Reading(looks=True, runs=r"(?:^|\s)-[fil]|--(?:file|include|load)|system|getline|\||@")),
    ("sed gsed", Reading(looks=True, runs=r"(?:^|\s)-\w*f|--file|(?:^|[\s;{\d$/])e(?:[\s;}]|$)|/\w*e\b")),
    ("find fd", Reading(looks=True, runs=r"-exec|-ok|(?:^|\s)-[xX]\b")),
    ("git", Reading(looks=True, runs=r"!|(?:^|\s)(?:-c|-x|--exec\S*|--config-env\S*|--upload-pack\S*|bisect|submodule|filter-branch)\b")),
    ("ruff black isort pyflakes pycodestyle pydocstyle bandit vulture taplo hadolint actionlint yamllint", _LOOKS),
    ("biome oxlint markdownlint clang-format clang-tidy typos dprint go-vet", _LOOKS),
    ("go:vet go:fmt go:list go:version go:env cargo:fmt cargo:metadata cargo:tree cargo:--version", _LOOKS),
    ("py:py_compile py:compileall py:json.tool py:ruff py:black py:isort py:pyflakes py:pycodestyle py:tabnanny", _LOOKS),
    # Checkers that load what their configuration names
    ("eslint tslint stylelint", Reading(looks=True, finds=("eslint.config.*", ".eslintrc*", ".stylelintrc*", *_NODE_CONFIG))),
    ("prettier", Reading(looks=True, finds=("prettier.config.*", ".prettierrc*", *_NODE_CONFIG))),
    ("tsc", Reading(looks=True, finds=("tsconfig*.json", *_NODE_CONFIG))),
    ("mypy pylint flake8 py:mypy py:pylint py:flake8",
     Reading(looks=True, finds=("mypy.ini", ".mypy.ini", "pyproject.toml", "setup.cfg", "tox.ini", ".pylintrc", ".flake8"))),
    # What runs its words as a command, or reads lines of shell
    ("sh bash dash zsh ksh fish ash eval exec source . xargs parallel env sudo nice nohup time timeout watch command", _SHELL),
    ("trap builtin coproc cd pushd popd export declare readonly typeset alias read mapfile wait", _SHELL),
    # What runs the file that it is given, and what lies with it
    ("perl ruby php lua pypy Rscript pwsh julia elixir kotlinc kotlin scala groovy tclsh swift runghc crystal nim osh", _SCRIPT),
    ("python py", Reading()),
    ("java", Reading(folders=True)),
    ("run-parts", Reading(folders=True)),
    ("node nodejs deno tsx ts-node", Reading(finds=(*_NODE_CONFIG, "deno.json*", "tsconfig*.json"))),
    ("npm pnpm yarn bun npx bunx pnpx", Reading(finds=(*_NPM, "bunfig.toml", "tsconfig*.json"))),
    ("uv uvx poetry pipenv pdm hatch rye pipx", Reading(finds=_VENV)),
    # What finds what it runs
    ("make gmake", Reading(finds=_MAKE)),
    ("just", Reading(finds=("justfile", "Justfile", ".justfile"))),
    ("task", Reading(finds=("Taskfile*.y*ml", "taskfile*.y*ml"))),
    ("pre-commit", Reading(finds=(".pre-commit-config.yaml",))),
    ("lefthook", Reading(finds=("lefthook*", ".lefthook*"))),
    ("nox", Reading(finds=("noxfile.py",))),
    ("rake bundle", Reading(finds=("Gemfile*", "Rakefile", "rakefile", ".bundle/", "lib/"))),
    ("docker docker-compose podman", Reading(finds=("docker-compose*.y*ml", "compose*.y*ml", "Dockerfile*", ".env"))),
    ("gradle gradlew", Reading(finds=_GRADLE)),
    ("mvn mvnw", Reading(finds=("pom.xml", ".mvn/"))),
    ("terraform tofu", Reading(finds=("*.tf", "*.tf.json", ".terraform/", "modules/"))),
    ("nix nix-shell nix-build", Reading(finds=("*.nix", "flake.lock"))),
    ("go:run go:generate go:tool", Reading(whole=True)),
    ("cargo:run cargo:r", Reading(whole=True, writes=("target",))),
    ("dotnet:run swift:run zig:build mix lein clj sbt bazel", Reading(whole=True, writes=("bin", "obj", "target", "_build"))),
    # Tests and builds of the project: after each edit they run what was edited, and that is what they are for
    ("pytest tox go cargo dotnet cmake ninja phpunit jest vitest mocha py:pytest py:unittest py:tox py:nox", _UNKNOWN),
)  # fmt: skip
READINGS: Mapping[str, Reading] = {name: reading for names, reading in _TABLE for name in names.split()}

BEFORE = frozenset(["sudo", "env", "command", "exec", "nice", "nohup", "time", "timeout", "builtin", "xargs"])
"""Stand before a program and its words."""

KEYWORDS = frozenset(
    [
        "if",
        "then",
        "else",
        "elif",
        "fi",
        "do",
        "done",
        "while",
        "until",
        "for",
        "in",
        "case",
        "esac",
        "function",
        "select",
        "{",
        "}",
        "!",
        "coproc",
    ]
)
PIPED = frozenset(["sh", "bash", "dash", "zsh", "ksh", "fish", "ash", "eval", "source", ".", "xargs", "parallel"])
"""Run what they are given by another program."""


def program_name(word: str) -> str:
    """The name under which a program is known, without its folder and version."""
    name = word.rstrip("/").rpartition("/")[2]
    return re.sub(r"(?<=[a-z])[\d.]+$", "", name) or name


def reading_of(words: Sequence[str]) -> Reading | None:
    """What is known of a program with its arguments; None where nothing is."""
    name = program_name(words[0])
    plain = [word for word in words[1:] if not word.startswith("-")]
    if name in ("python", "py", "pypy") and "-m" in words[:-1]:
        # of other modules it is known that Python finds them
        module = words[words.index("-m") + 1]
        return READINGS.get(f"py:{module}", READINGS["python"])
    return READINGS.get(f"{name}:{plain[0] if plain else ''}") or READINGS.get(name)
