"""What a held command may read of a home is what makes tools run, under every means."""

from __future__ import annotations

import os
import shutil
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_tui.config import SandboxConfig
from agent_tui.tools.sandbox import places
from agent_tui.tools.sandbox.box import Sandbox
from agent_tui.tools.sandbox.jail import Jail
from agent_tui.tools.sandbox.policy import DOMAINS, SandboxPolicy
from tests.support import sandbox_world as world
from tests.support.forms import one_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="tried on Linux only")

# Where tools keep what lets people in, each by its own documentation.
CREDENTIALS = (
    *(".local/share/uv/credentials/pypi.toml", ".rye/credentials", ".rye/config.toml", ".cabal/config"),
    *(".stack/upload/credentials.json", ".stack/config.yaml", ".hex/hex.config", ".pub-cache/credentials.json"),
    *(
        ".pub-cache/pub-tokens.json",
        ".sbt/.credentials",
        ".sbt/1.0/plugins/credentials.sbt",
        ".sbt/sonatype_credential",
    ),
    *(".ivy2/.credentials", ".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties"),
    *(".gradle/init.gradle", ".gradle/caches/token", ".cargo/credentials", ".cargo/credentials.toml"),
    *(".cargo/config.toml", ".gem/credentials", ".bundle/config", ".composer/auth.json", ".nuget/NuGet.Config"),
    *(".dotnet/corefx/cryptography/x509stores/my/key.pfx", ".julia/servers/pkg.org/auth.toml", ".opam/plugins/key"),
    *(".julia/config/startup.jl", ".npmrc", ".yarnrc.yml", ".yarn/npmrc", ".bunfig.toml", ".bun/.env", ".deno/auth"),
    *(".local/share/pnpm/rc", ".local/share/hatch/publish/users.json", ".local/share/pypoetry/auth.toml"),
    *(".local/share/mise/tracked-configs/env", ".local/share/mise/state/token", ".asdf/.asdfrc", ".volta/hooks.json"),
    *(".sdkman/etc/config", ".rvm/config/s3", ".rvm/user/credentials", ".pyenv/.env", ".nvm/.npmrc", ".n/token"),
    *(".conda/.condarc", "miniconda3/.condarc", "miniconda3/conda-meta/state", ".mamba/auth", ".condarc"),
    *("go/src/private/token.go", "go/.netrc", "sdk/token", "bin/deploy-key", ".krew/receipts/key", ".pixi/config.toml"),
    *(
        ".local/share/virtualenvs/app/.env",
        ".virtualenvs/app/.env",
        ".virtualenvs/postactivate",
        ".flutter",
        "flutter/k",
    ),
    *(
        ".proto/.prototools",
        ".moon/id",
        ".fvm/token",
        ".poetry/auth.toml",
        ".swiftly/env",
        ".elan/env",
        ".ghcup/config",
    ),
    *(".local/share/keyrings/login", ".local/share/gem/credentials", ".local/share/containers/auth.json", ".local/key"),
    *(
        ".local/share/cargo/credentials.toml",
        ".local/lib/secret",
        ".local/state/token",
        ".terraform.d/credentials.tfrc",
    ),
    *(".config/pypoetry/auth.toml", ".config/pip/pip.conf", ".config/gh/hosts.yml", ".config/containers/auth.json"),
    *(".snowsql/config", ".databrickscfg", ".expo/state.json", ".railway/config.json", ".supabase/access-token"),
    *(".cloudflared/cert.pem", ".ngrok2/ngrok.yml", ".minio/config", ".mc/config.json", ".aws/sso/cache/t.json"),
)


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    base = Path("/var/tmp") / f"agent-tui-test-{uuid.uuid4().hex[:8]}"
    home = base / "home"
    for root, parts in places.TOOLCHAINS.items():
        for part in parts.split():
            (home / root / part.replace("*", "1")).mkdir(parents=True, exist_ok=True)
    for name in CREDENTIALS:
        _secret(home / name)
    for root in places.TOOLCHAINS:
        for name in (".env", "credentials", "config", "auth.json", "token"):
            _secret(home / root / name)
    monkeypatch.setenv("HOME", str(home))
    try:
        yield home
    finally:
        shutil.rmtree(base)


def _secret(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_dir():
        path.write_text(f"token = {world.SECRET}\n")


def _place(home: Path, sandbox: Sandbox) -> tuple[Jail, world.Place]:
    place = world.Place(home.parent / "place")
    place.project.mkdir(parents=True, exist_ok=True)
    return Jail(SandboxConfig(), place.project, home.parent / "cache", sandbox=sandbox), place


@pytest.mark.slow
@pytest.mark.parametrize("domain", DOMAINS[:2])
async def test_no_tools_keys_can_be_read(home: Path, sandbox: Sandbox, domain: str) -> None:
    jail, place = _place(home, sandbox)
    script = 'grep -rs "" "$HOME"; for one in "$@"; do cat "$HOME/$one"; done; true'
    script = script.replace('"$@"', " ".join(CREDENTIALS))
    _, output = await world.run(jail, "look" if domain == "look" else "work", place, script, {})
    assert world.SECRET not in output and ".ssh" not in output and "cat:" in output


@pytest.mark.slow
async def test_nor_where_the_home_is_the_project(home: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    place = world.Place(home.parent / "place")
    place.base.mkdir()
    home.rename(place.project)
    monkeypatch.setenv("HOME", str(place.project))
    jail = Jail(SandboxConfig(), place.project, home.parent / "cache", sandbox=sandbox)
    script = "\n".join(f'cat "$HOME/{root}/credentials" "$HOME/{root}/.env"' for root in places.TOOLCHAINS)
    _, output = await world.run(jail, "look", place, f"{script}\nls .pyenv", {})
    assert world.SECRET not in output and "versions" in output


@pytest.mark.slow
async def test_a_folder_of_programs_is_there_when_path_names_it(
    home: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = home / "bin" / "tool"
    tool.write_text("#!/bin/sh\necho it runs\n")
    tool.chmod(0o755)
    jail, place = _place(home, sandbox)
    assert "it runs" not in (await world.run(jail, "look", place, "$HOME/bin/tool", {}))[1]
    monkeypatch.setenv("PATH", f"{home / 'bin'}:{os.environ['PATH']}")
    assert "it runs" in (await world.run(jail, "look", place, "tool", {}))[1]


def test_a_configuration_that_is_longer_than_is_read_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    policy = SandboxPolicy(tmp_path / "p", tmp_path / "s")
    for name, text in (("config.toml", "# a\n" * 10), ("config", "# a\n" * 60_000 + 'token = "x"\n')):
        (tmp_path / ".cargo").mkdir(exist_ok=True)
        (tmp_path / ".cargo" / name).write_text(text)
    found = {path.name for path in places.readable(policy) if path.parent == tmp_path / ".cargo"}
    assert found == {"config.toml"}


@pytest.mark.slow
async def test_a_configuration_without_secrets_is_there(home: Path, sandbox: Sandbox) -> None:
    (home / ".cargo" / "config.toml").write_text('[build]\nrustflags = ["-C", "link-arg=-s"]\n')
    jail, place = _place(home, sandbox)
    assert "link-arg" in (await world.run(jail, "look", place, "cat $HOME/.cargo/config.toml", {}))[1]


TOOLS = {
    "python": 'python -c "import ssl, sqlite3; print(6 * 7)"',
    "pyenv": "pyenv versions --bare | head -1 | grep -q . && echo 42",
    "node": "node -e 'console.log(6 * 7)'",
    "npm": "npm --version > v && echo 42",
    "cargo": "cargo new -q --vcs none a && cd a && cargo build -q --offline && target/debug/a | sed s/Hello.*/42/",
    "rustc": "echo 'fn main() { println!(\"{}\", 6 * 7) }' > a.rs && rustc a.rs && ./a",
    "go": "printf 'package main\\nfunc main() { println(6 * 7) }' > a.go && go run a.go 2>&1",
    "java": "java -version && echo 42",
    "mvn": "mvn -o -v > v 2>&1 && echo 42",
    "git": "git init -q . && git -c user.name=a -c user.email=a@b commit -qm x --allow-empty && echo 42",
    "uv": "uv --version && echo 42",
    "ruby": "ruby -e 'puts 6 * 7'",
    "cc": "printf 'int main() { return 42; }' > a.c && cc a.c -o a; ./a; echo $?",
}


@pytest.mark.forms(1)
@pytest.mark.parametrize("tool", one_of(TOOLS, every=3))
async def test_the_tools_of_this_machine_run(tool: str, sandbox: Sandbox, tmp_path: Path) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    place = world.Place(tmp_path / "place")
    place.project.mkdir(parents=True)
    jail = Jail(SandboxConfig(), place.project, tmp_path / "cache", sandbox=sandbox)
    script = TOOLS[tool]
    if sandbox.backend is not None and sandbox.backend.own_tmp:
        script = script.replace(" --vcs none", "")  # elsewhere the user's git configuration is seen and refused
    _, output = await world.run(jail, "work", place, script, {})
    assert output.strip().splitlines()[-1:] == ["42"], output
