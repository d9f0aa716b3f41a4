"""Programs that publish, or tell a secret: what leaves this machine under the user's name cannot be taken back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent_tui.tools.word_sets import word_set

_PACKAGES = "publish unpublish deprecate token owner owners access dist-tag login adduser logout"


def _lines(table: dict[str, str]) -> dict[str, tuple[tuple[str, ...], ...]]:
    return {name: tuple(tuple(line.split()) for line in lines.split(",")) for name, lines in table.items()}


PUBLISHING = _lines(
    {
        **dict.fromkeys(["npm", "pnpm", "bun"], ",".join([*_PACKAGES.split(), "run publish", "pm publish"])),
        "yarn": ",".join([*_PACKAGES.split(), "run publish", *(f"npm {word}" for word in _PACKAGES.split())]),
        "cargo": "publish,login,logout,owner,yank,release",
        "gem": "push,yank,owner,signin",
        "twine": "upload,register",
        **dict.fromkeys(["uv", "poetry", "pdm", "flit", "hatch", "rye", "maturin"], "publish,upload,auth"),
        "conda": "upload",
        "anaconda": "upload,login",
        "git": "push,send-email,send-pack,credential,credential-store,credential-cache",
        **dict.fromkeys(["docker", "podman"], "push,login,image push,manifest push,compose push"),
        **dict.fromkeys(["nerdctl", "buildah", "skopeo", "crane", "oras", "helm"], "push,login,copy,cp,sync"),
        **dict.fromkeys(["mvn", "mvnw"], "deploy,release:perform,deploy:deploy,deploy:deploy-file"),
        "dotnet": "nuget push,nuget delete",
        "nuget": "push,delete,setapikey",
        "goreleaser": "release,publish",
        **dict.fromkeys(["lerna", "changeset", "vsce", "ovsx", "nx", "composer"], "publish"),
        **dict.fromkeys(["dart", "flutter"], "pub publish"),
        "mix": "hex.publish",
        **dict.fromkeys(["netlify", "firebase", "flyctl", "fly", "serverless", "sls"], "deploy"),
        "wrangler": "deploy,publish,secret",
        **dict.fromkeys(["surge", "vercel", "now", "np", "semantic-release", "heroku"], ""),
        **dict.fromkeys(["op", "bw", "lpass", "vault", "doppler", "keyring"], ""),
    }
)
"""By program, the words that it is called with for that; none: whatever it is called with."""

_BEGINNING = {"gradle": "publish", "gradlew": "publish"}
"""Programs whose tasks are named by how they begin."""

_RUNNERS = {
    tuple(line.split())
    for line in (
        *("npx", "bunx", "uvx", "pipx run", "uv run", "uv tool run", "poetry run", "pdm run", "hatch run"),
        *("rye run", "pnpm dlx", "pnpm exec", "npm exec", "npm x", "yarn dlx", "yarn exec", "yarn run", "bun x"),
        *("bundle exec", "corepack"),
    )
}

_FORGES = word_set("gh glab hub")
_LOOKS = word_set(
    "list ls view show status diff checks watch checkout clone download search browse completion help version sync"
)
_TELLING = word_set("-t --show-token")
_CHANGES_API = ("-X", "-f", "-F", "--method", "--field", "--raw-field", "--input", "--form")


def publishes(words: Sequence[str]) -> str:
    """Why a command is one that publishes or tells a secret; empty where it is not known as such. Which program is
    meant is also seen behind runners (``npx``, ``uv run``) and ``python -m``."""
    if len(words) == 2 and words[1] in ("--version", "--help", "help"):
        return ""
    name, rest = _program(words)
    if name in _FORGES:
        return f"{name} acts under your name, or tells what only you may know" if _acts(rest) else ""
    lines = PUBLISHING.get(name, ())
    begins = _BEGINNING.get(name)
    if any(_called_with(rest, line) for line in lines) or (
        begins and any(word.rpartition(":")[2].startswith(begins) for word in rest)
    ):
        return f"{name} publishes, or tells what only you may know"
    return ""


def _program(words: Sequence[str]) -> tuple[str, list[str]]:
    name, rest = words[0].rpartition("/")[2] if words else "", list(words[1:])
    if name.rstrip("0123456789.") in ("python", "pypy", "py") and "-m" in rest[:-1]:
        at = rest.index("-m")
        return rest[at + 1], rest[at + 2 :]
    plain = [name, *_plain(rest)]
    for length in (3, 2, 1):
        if tuple(plain[:length]) in _RUNNERS and len(plain) > length:
            started = plain[length]
            return _program([started.partition("@")[0] or started, *rest[rest.index(started) + 1 :]])
    return name, rest


def _plain(words: Iterable[str]) -> list[str]:
    return [word for word in words if not word.startswith(("-", "+"))]


def _called_with(words: Sequence[str], line: tuple[str, ...]) -> bool:
    """Whether the words behind a program begin with ``line``, but for options and what may be an option's value."""
    plain, first = _plain(words), 0
    before = ""
    for word in words:
        if not word.startswith(("-", "+")):
            if tuple(plain[first : first + len(line)]) == line:
                return True
            if not before.startswith("-") or "=" in before:
                return False
            first += 1
        before = word
    return not line


def _acts(words: Sequence[str]) -> bool:
    """Whether a forge's own program does more than look."""
    plain = _plain(words)
    if not plain or plain[0] in ("search", "status", "help", "version", "browse", "completion"):
        return False
    if plain[0] == "api":
        return "graphql" in plain or any(word.startswith(_CHANGES_API) for word in words)
    if plain[0] == "auth":
        return plain[1:2] != ["status"] or any(word in _TELLING for word in words)
    return not any(word in _LOOKS for word in plain[1:2])
