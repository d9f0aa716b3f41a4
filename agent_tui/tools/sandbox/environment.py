"""The environment of children: the user's own without what is secret, and quiet.

Names and values decide. A value that is a number or a switch is no secret whatever its name says.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

MIN_SECRET = 8
"""Shorter values of configured keys are not looked for inside others: they would match ordinary words."""

QUIET = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "GH_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "false",
    "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never",
    "GH_PROMPT_DISABLED": "1",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "HISTFILE": "/dev/null",
    "LESSHISTFILE": "-",
    "TERM": "dumb",
    "AGENT_TUI": "1",
}
"""Programs are kept from paging, asking, editing, drawing and remembering."""

CACHES = {
    "XDG_CACHE_HOME": "xdg",
    "PIP_CACHE_DIR": "pip",
    "UV_CACHE_DIR": "uv",
    "POETRY_CACHE_DIR": "poetry",
    "PDM_CACHE_DIR": "pdm",
    "PIPENV_CACHE_DIR": "pipenv",
    "PRE_COMMIT_HOME": "pre-commit",
    "MPLCONFIGDIR": "matplotlib",
    "npm_config_cache": "npm",
    "YARN_CACHE_FOLDER": "yarn",
    "BUN_INSTALL_CACHE_DIR": "bun",
    "DENO_DIR": "deno",
    "GOCACHE": "go-build",
    "CCACHE_DIR": "ccache",
    "SCCACHE_DIR": "sccache",
    "NUGET_PACKAGES": "nuget",
    "COMPOSER_CACHE_DIR": "composer",
    "COREPACK_HOME": "corepack",
    "BUNDLE_USER_CACHE": "bundle",
    "GEM_SPEC_CACHE": "gem",
    "CP_HOME_DIR": "cocoapods",
}
"""Caches of compilers and package managers, which are below the home otherwise."""

ONLINE_CACHES = {
    "CARGO_HOME": "cargo",
    "GOMODCACHE": "go-mod",
    "GRADLE_USER_HOME": "gradle",
}
"""Those that hold sources as well: moved where they can be filled anew, else the user's own is read."""

# CDPATH would let `cd src` lead out of the project; with PWD `cd ..` would follow links backwards.
_MISLEADING = frozenset({"CDPATH", "PWD", "OLDPWD"})

_SECRET_WORDS = frozenset(
    (
        *("key", "keys", "apikey", "apikeys", "token", "tokens", "secret", "secrets", "password", "passwords"),
        *("passwd", "passphrase", "pass", "pwd", "credential", "credentials", "creds", "auth", "authorization"),
        *("bearer", "cookie", "cookies", "pat", "dsn", "jwt", "signature", "webhook", "sshpass", "otp", "totp", "pin"),
        *("netrc", "pgpass"),
    )
)
_SECRET_PARTS = re.compile(r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|PRIVATE|ACCESS_?ID|CONNECTION_?STRING")
_CLOUD = re.compile(
    r"(?:AWS|AZURE|ARM|GCP|GCLOUD|CLOUDSDK|GOOGLE|DIGITALOCEAN|HEROKU|VAULT|CONSUL|NOMAD|ALICLOUD|ALIBABA|OCI|IBMCLOUD|"
    r"OP_SESSION|BW_SESSION|RCLONE_CONFIG|KUBECONFIG|DOCKER_CONFIG|DOCKER_AUTH|CLOUDFLARE|CF|FLY|VERCEL|NETLIFY|PULUMI|"
    r"SNOWFLAKE|DATABRICKS|TWILIO|STRIPE|SENDGRID|MAILGUN|NETRC|PGPASSFILE|ACTIONS_ID|ACTIONS_RUNTIME)(?:_|$)"
)
_KNOWN = frozenset(
    (
        *("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PAGER", "GOOGLE_CLOUD_PROJECT", "CLOUDSDK_PYTHON", "GPG_TTY"),
        *("FLYCTL_INSTALL", "XKB_DEFAULT_LAYOUT", "TOKENIZERS_PARALLELISM", "PYTHON_KEYRING_BACKEND", "LS_COLORS"),
        *("SSH_AUTH_SOCK", "SSH_ASKPASS", "GIT_ASKPASS", "SSH_ASKPASS_REQUIRE"),
    )
)
"""Names that look secret and are not."""

_LOGIN = re.compile(r"://[^/\s:@]*:[^/\s@]+@")
_PRIVATE = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY|^(?:sk|rk|gsk|xai|ghp|gho|ghs|ghu|glpat|xox[abpr]|hf|npm|pypi)[-_][\w-]{16,}"
    r"|^github_pat_\w{20,}|^AKIA[0-9A-Z]{16}$|^AIza[\w-]{30,}|^eyJ[\w-]{10,}\.[\w-]{10,}\."
)
_PLAIN = re.compile(r"|\d{1,6}|true|false|yes|no|on|off|auto|always|never", re.IGNORECASE)

_DOORS = frozenset(
    (
        *("SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY", "GPG_AGENT_INFO", "GPG_TTY"),
        *("DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "DBUS_STARTER_ADDRESS", "XDG_RUNTIME_DIR"),
        *("DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET", "XAUTHORITY", "SESSION_MANAGER", "WINDOWID", "BROWSER"),
        *("DOCKER_HOST", "CONTAINER_HOST", "PODMAN_HOST", "TMUX", "TMUX_PANE", "STY", "KITTY_LISTEN_ON", "KITTY_PID"),
        *("WEZTERM_UNIX_SOCKET", "ALACRITTY_SOCKET", "VSCODE_IPC_HOOK", "VSCODE_IPC_HOOK_CLI", "VSCODE_GIT_IPC_HANDLE"),
        *("NVIM", "NVIM_LISTEN_ADDRESS", "VIM_SERVERNAME", "EMACS_SERVER_FILE", "PULSE_SERVER", "PIPEWIRE_REMOTE"),
        *("I3SOCK", "SWAYSOCK", "HYPRLAND_INSTANCE_SIGNATURE", "NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID"),
    )
)
"""Ways to programs outside, of no use where these cannot be reached."""


def is_secret(name: str, value: str, secrets: Collection[str] = ()) -> bool:
    """Whether a variable is kept from children. ``secrets`` are the keys that are configured, by value."""
    if any(value == secret or (len(secret) >= MIN_SECRET and secret in value) for secret in secrets if secret):
        return True
    if _PRIVATE.search(value) or _LOGIN.search(value):
        return True
    if name in _KNOWN or _PLAIN.fullmatch(value):
        return False
    upper = name.upper()
    words = re.split(r"[^A-Za-z0-9]+", name.lower())
    return bool(_SECRET_WORDS.intersection(words) or _SECRET_PARTS.search(upper) or _CLOUD.match(upper))


def child_env(
    environ: Mapping[str, str],
    *,
    closed: bool = False,
    secrets: Collection[str] = (),
    names: Iterable[str] = (),
    allow: Iterable[str] = (),
) -> dict[str, str]:
    """``environ`` without secrets and quiet. ``closed`` also leaves out the ways to programs outside a sandbox;
    ``secrets`` are configured keys by value, ``names`` the variables they are configured to come from; ``allow`` are
    names and patterns that stay whatever they are."""
    allowed, named = list(allow), set(names)

    def stays(name: str, value: str) -> bool:
        if any(fnmatchcase(name, pattern) for pattern in allowed):
            return True
        if name in _MISLEADING or name in named or (closed and name in _DOORS):
            return False
        return not is_secret(name, value, secrets)

    return {name: value for name, value in environ.items() if stays(name, value)} | QUIET


def cache_env(folder: Path, online: bool) -> dict[str, str]:
    """Caches below ``folder``. ``online``: also those that hold sources, which can then be fetched."""
    wanted = CACHES | (ONLINE_CACHES if online else {})
    return {name: str(folder / place) for name, place in wanted.items()}
