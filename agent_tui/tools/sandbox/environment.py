"""The environment of children: the user's own without what is secret, and quiet; in a sandbox what is listed.

Names and values decide. A value that is a number or a switch is no secret whatever its name says.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from agent_tui.pipes.programs import whole_git_config
from agent_tui.text.secrets import MIN_LENGTH, holds_secret, names_account, without_keys
from agent_tui.tools.sandbox.policy import NO_SECRETS, Secrecy

_TAIL = 20_000
"""Characters at the end of an output that are looked at."""


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in text.split())


QUIET = _pairs(
    """
    PAGER=cat GIT_PAGER=cat MANPAGER=cat SYSTEMD_PAGER=cat GH_PAGER=cat GIT_TERMINAL_PROMPT=0 GIT_EDITOR=true
    GIT_SEQUENCE_EDITOR=true GIT_ASKPASS=true SSH_ASKPASS=false SSH_ASKPASS_REQUIRE=never GCM_INTERACTIVE=never
    GH_PROMPT_DISABLED=1 DEBIAN_FRONTEND=noninteractive PIP_NO_INPUT=1 HISTFILE=/dev/null LESSHISTFILE=- TERM=dumb
    AGENT_TUI=1
    """
)
"""Programs are kept from paging, asking, editing, drawing and remembering."""

CACHES = _pairs(
    """
    XDG_CACHE_HOME=xdg PIP_CACHE_DIR=pip UV_CACHE_DIR=uv POETRY_CACHE_DIR=poetry PDM_CACHE_DIR=pdm
    PIPENV_CACHE_DIR=pipenv PRE_COMMIT_HOME=pre-commit MPLCONFIGDIR=matplotlib npm_config_cache=npm
    YARN_CACHE_FOLDER=yarn BUN_INSTALL_CACHE_DIR=bun DENO_DIR=deno GOCACHE=go-build CCACHE_DIR=ccache
    SCCACHE_DIR=sccache NUGET_PACKAGES=nuget COMPOSER_CACHE_DIR=composer COREPACK_HOME=corepack
    BUNDLE_USER_CACHE=bundle GEM_SPEC_CACHE=gem CP_HOME_DIR=cocoapods
    """
)
"""Caches of compilers and package managers, which are below the home otherwise."""

ONLINE_CACHES = _pairs("CARGO_HOME=cargo GOMODCACHE=go-mod GRADLE_USER_HOME=gradle")
"""Those that hold sources as well: moved where they can be filled anew, else the user's own is read."""

# CDPATH would let `cd src` lead out of the project; with PWD `cd ..` would follow links backwards.
_MISLEADING = frozenset({"CDPATH", "PWD", "OLDPWD"})

_PLAIN = re.compile(r"|\d{1,6}|true|false|yes|no|on|off|auto|always|never", re.IGNORECASE)

_LISTED = re.compile(
    "|".join(
        (
            # Who and where, and how text is shown.
            "PATH|HOME|USER|LOGNAME|SHELL|SHLVL|HOSTNAME|TZ|LANG|LANGUAGE|LC_.+|TERM|COLORTERM|COLUMNS|LINES|TMP|TEMP",
            "NO_COLOR|FORCE_COLOR|CLICOLOR.*|LS_COLORS|GREP_COLORS?|LESS|MANPATH|INFOPATH|XDG_(?:DATA|CONFIG)_(?:HOME|DIRS)",
            "CI|GITHUB_ACTIONS|GITLAB_CI|DEBUG|VERBOSE|LOG_?LEVEL|HOST|PORT|SOURCE_DATE_EPOCH|IN_NIX_SHELL|NIX_.+",
            # Roads to the network that is there, and whom to believe on it.
            "(?:https?|ftp|all|no)_proxy|(?:HTTPS?|FTP|ALL|NO)_PROXY|SSL_CERT_(?:FILE|DIR)|GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
            r"\w+_CA_(?:BUNDLE|CERTS?|FILE|CERTS_FILE)|GIT_SSL_CAINFO|GIT_(?:AUTHOR|COMMITTER)_.+|GIT_(?:TRACE|PAGER|EDITOR)",
            # Compilers and what they find.
            "CC|CXX|CPP|LD|AR|AS|NM|FC|F77|RANLIB|STRIP|OBJCOPY|CFLAGS|CXXFLAGS|CPPFLAGS|LDFLAGS|FFLAGS|LDLIBS|CPATH",
            r"MAKE\w*|MFLAGS|NINJA.*|CMAKE_.+|CTEST_.+|MESON.*|PKG_CONFIG.*|\w*LIBRARY_PATH|\w+_INCLUDE_PATH|OPENSSL_.+",
            "LLVM_.+|CLANG.*|CUDA.*|NVCC.*|ROCM.*|OMP_.+|MKL_.+|OPENBLAS_.+|TORCH_.+|NUMBA_.+|TOKENIZERS_PARALLELISM",
            # Languages and their tools.
            "PY[A-Z0-9]*_.+|PYTHON.*|PIP_.+|UV_.+|POETRY_.+|PDM_.+|PIPENV_.+|HATCH_.+|TOX_.+|NOX.*|COVERAGE.*|VIRTUAL_ENV.*",
            "CONDA.*|MAMBA.*|JUPYTER_.+|MPLBACKEND|DJANGO_SETTINGS_MODULE|FLASK_(?:APP|ENV|DEBUG)|(?:RAILS|RACK|APP|MIX)_ENV",
            "NODE_.+|(?:npm|NPM)_(?:config|CONFIG)_.+|NVM_.+|FNM_.+|VOLTA_.+|YARN_.+|PNPM_.+|BUN_.+|DENO_.+|COREPACK_.+",
            "TS_NODE_.+|JEST_.+|PLAYWRIGHT_.+|PUPPETEER_.+|CYPRESS_.+|CHROME_(?:BIN|PATH)|ELECTRON_.+|NEXT_TELEMETRY_DISABLED",
            "CARGO.*|RUST.*|SQLX_OFFLINE|CGO_.+|GO(?:PATH|ROOT|BIN|OS|ARCH|ARM|AMD64|FLAGS|CACHE|TMPDIR|ENV|WORK|PROXY|SUMDB)",
            "GO(?:NOSUMDB|NOPROXY|NOSUMCHECK|PRIVATE|TOOLCHAIN|MAXPROCS|GC|MEMLIMIT|EXPERIMENT|MODCACHE|111MODULE|DEBUG)|GOENV_.+",
            "JAVA_.+|_JAVA_OPTIONS|JDK_.+|JRE_.+|CLASSPATH|MAVEN_.+|MVNW_.+|M2(?:_HOME)?|GRADLE_.+|ANT_.+|SBT_.+|KOTLIN_.+",
            "SCALA_.+|ANDROID_.+|FLUTTER_.+|PUB_.+|DART_.+|DOTNET_.+|NUGET_.+|MSBUILD.*|ASPNETCORE_ENVIRONMENT|SWIFT.*",
            "RUBY.*|GEM_.+|BUNDLE_(?:PATH|GEMFILE|WITHOUT|JOBS|FROZEN|DEPLOYMENT|BIN)|RBENV_.+|rvm_.+|PERL.*|PHP.*|COMPOSER_.+",
            "LUA_.+|OPAM.*|OCAML.*|CAML_.+|STACK_.+|CABAL_.+|GHC.*|ERL_.+|ELIXIR_.+|HEX_.+|REBAR_.+|JULIA_.+|R_.+|ZIG_.+|NIM.*",
            "VCPKG_.+|CONAN_.+|BAZEL.*|S?CCACHE_.+|PROTOC.*|EMSDK.*|EM_.+|IDF_.+|ASDF_.+|MISE_.+|SDKMAN_.+|HOMEBREW_.+",
            r"\w+_(?:HOME|ROOT)",
        )
    )
)
"""Names of the variables that a command in a sandbox gets, as far as their values are no secrets. What is an
application's own is not among them, whatever it is called."""

_RANDOM = re.compile(r"(?=.*[a-z])(?=.*[A-Z])(?=.*\d)[A-Za-z0-9+_=-]{24,}")
"""Values that look secret: what follows a telling name, and letters and figures as no word has them."""


def is_secret(name: str, value: str, secrets: Collection[str] = ()) -> bool:
    """Returns whether a variable is kept from children. ``secrets`` are the keys that are configured, by value."""
    if any(value == secret or (len(secret) >= MIN_LENGTH and secret in value) for secret in secrets if secret):
        return True
    if holds_secret(value):
        return True
    return names_account(name) and _PLAIN.fullmatch(value) is None


def child_env(environ: Mapping[str, str], closed: bool = False, secrecy: Secrecy = NO_SECRETS) -> dict[str, str]:
    """``environ`` without secrets and quiet. ``closed``: only what a command in a sandbox is known to need."""
    secrets = secrecy.secrets()

    def stays(name: str, value: str) -> bool:
        if any(fnmatchcase(name, pattern) for pattern in secrecy.allow):
            return True
        if name in _MISLEADING or name in secrecy.names:
            return False
        if closed and (not _LISTED.fullmatch(name) or _RANDOM.fullmatch(value)):
            return False
        return not is_secret(name, value, secrets)

    kept = {name: value for name, value in environ.items() if stays(name, value)}
    for name, key in environ.items():
        at = name.removeprefix("GIT_CONFIG_KEY_")
        value = kept.get(f"GIT_CONFIG_VALUE_{at}", "")
        if at != name and (is_secret(key.lower(), value, secrets) or without_keys(value) != value):
            kept.pop(name, None)
    return whole_git_config(environ, kept) | QUIET


def missed(output: str, environ: Mapping[str, str], given: Mapping[str, str]) -> list[str]:
    """A line for a failed command whose output names variables of ``environ`` that are not among those it was
    ``given``."""
    left = {name for name in environ if name not in given and name not in _MISLEADING}
    found = sorted(left.intersection(re.findall(r"[A-Z][A-Z0-9_]+", output[-_TAIL:])))[:5]
    if not found:
        return []
    names, quoted = ", ".join(found), ", ".join(f'"{name}"' for name in found)
    return [f"[sandbox: not passed to commands: {names}. The user can name it: [tools] env_allow = [{quoted}]]"]


def cache_env(folder: Path, online: bool) -> dict[str, str]:
    """Caches below ``folder``. ``online``: also those that hold sources, which can then be fetched."""
    wanted = CACHES | (ONLINE_CACHES if online else {})
    return {name: str(folder / place) for name, place in wanted.items()}
