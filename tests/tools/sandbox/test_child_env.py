from __future__ import annotations

from pathlib import Path

import pytest

from agent_tui.pipes.programs import with_git_config
from agent_tui.tools.sandbox.environment import cache_env, child_env, is_secret, missed
from agent_tui.tools.sandbox.policy import Secrecy
from tests.support.every import every

pytestmark = pytest.mark.quick

KEY = "k3y-value-of-a-provider"

SECRET = {
    "ANTHROPIC_API_KEY": "sk-ant-1234567890abcdef",
    "OPENAI_APIKEY": "abc",
    "MY_TOKEN": "abcdef",
    "github_token": "abcdef",
    "GITHUB_PAT": "abcdef",
    "NPM_AUTH": "abcdef",
    "NPM_CONFIG__AUTH": "abcdef",
    "npm_config_//registry.npmjs.org/:_authToken": "abcdef",
    "DB_PASSWORD": "hunter2",
    "PGPASSWORD": "hunter2",
    "MYSQL_PWD": "hunter2",
    "SSHPASS": "hunter2",
    "SECRET": "x y z",
    "CLIENT_SECRETS_FILE": "/x",
    "GOOGLE_APPLICATION_CREDENTIALS": "/home/me/key.json",
    "AWS_ACCESS_KEY_ID": "AKIAABCDEFGHIJKLMNOP",
    "AWS_SESSION_TOKEN": "abc",
    "AWS_PROFILE": "work",
    "AZURE_CLIENT_ID": "abc",
    "VAULT_ADDR": "https://vault",
    "KUBECONFIG": "/home/me/.kube/config",
    "DATABASE_URL": "postgres://me:hunter2@db/x",
    "https_proxy": "http://me:hunter2@proxy:3128",
    "SENTRY_DSN": "https://abc@sentry.io/1",
    "SIGNING_PRIVATE": "abc",
    "INNOCENT": "ghp_abcdefghijklmnopqrstuvwxyz012345",
    "HARMLESS": "-----BEGIN OPENSSH PRIVATE KEY-----",
    "PLAIN": KEY,
    "WRAPPED": f"Bearer {KEY}",
    "NAMED_IN_CONFIG": "anything",
    "AGENT_TUI_MODELS__X__EXTRA__API_KEY": "abc",
}
PLAIN = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/home/me",
    "LANG": "de_DE.UTF-8",
    "USER": "me",
    "EDITOR_NAME": "vim",
    "GIT_AUTHOR_NAME": "Me",
    "GIT_AUTHOR_EMAIL": "me@example.com",
    "AWS_REGION": "eu-central-1",
    "TOKENIZERS_PARALLELISM": "parallel",
    "MAX_TOKENS": "4096",
    "USE_TOKEN_CACHE": "true",
    "VIRTUAL_ENV": "/home/me/project/.venv",
    "CI": "true",
    "http_proxy": "http://proxy:3128",
    "COMPASS": "north",
    "MONKEY": "",
    "PASSAGE_HOME": "/x",
    "SSH_AUTH_SOCK": "/tmp/agent",
}


def test_secrets_go_and_the_rest_stays() -> None:
    env = child_env(SECRET | PLAIN, secrecy=Secrecy(lambda: [KEY], ["NAMED_IN_CONFIG"]))
    assert sorted(SECRET.keys() & env.keys()) == []
    assert {name: env.get(name) for name in PLAIN} == PLAIN


def test_what_the_user_allows_stays_whatever_it_is() -> None:
    env = child_env(SECRET, secrecy=Secrecy(lambda: [KEY], allow=["MY_TOKEN", "AWS_*"]))
    assert sorted(SECRET.keys() & env.keys()) == [
        "AWS_ACCESS_KEY_ID",
        "AWS_PROFILE",
        "AWS_SESSION_TOKEN",
        "MY_TOKEN",
        "NAMED_IN_CONFIG",
    ]


def test_children_are_quiet_and_not_misled() -> None:
    env = child_env({"PWD": "/x", "OLDPWD": "/y", "CDPATH": "/z", "PAGER": "less", "GIT_EDITOR": "vim"})
    assert not env.keys() & {"PWD", "OLDPWD", "CDPATH"}
    assert (env["PAGER"], env["GIT_EDITOR"], env["GIT_TERMINAL_PROMPT"]) == ("cat", "true", "0")


def test_ways_out_are_left_out_where_they_lead_nowhere() -> None:
    doors = {"SSH_AUTH_SOCK": "/a", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/b", "DISPLAY": ":0", "TMUX": "/c"}
    assert doors.keys() <= child_env(doors).keys()
    assert not doors.keys() & child_env(doors, closed=True).keys()


@every("value", ["", "1", "123456", "true", "No", "auto"])
def test_numbers_and_switches_are_no_secrets(value: str) -> None:
    assert not is_secret("SOME_TOKEN", value)


def test_short_keys_do_not_match_inside_other_words() -> None:
    assert not is_secret("GREETING", "good morning", secrets=["mo", ""])
    assert is_secret("GREETING", "mo", secrets=["mo"])


def test_sources_move_only_where_they_can_be_fetched() -> None:
    offline, online = cache_env(Path("/c"), False), cache_env(Path("/c"), True)
    assert offline["PIP_CACHE_DIR"] == "/c/pip" and offline["npm_config_cache"] == "/c/npm"
    assert "CARGO_HOME" not in offline and online["CARGO_HOME"] == "/c/cargo"


NEEDED = {
    "LC_ALL": "C.UTF-8",
    "PYTHONPATH": "src",
    "PIP_INDEX_URL": "https://mirror.example.com/simple",
    "NODE_ENV": "test",
    "NPM_CONFIG_REGISTRY": "https://mirror.example.com",
    "CARGO_BUILD_JOBS": "4",
    "RUSTFLAGS": "-C target-cpu=native",
    "GOPATH": "/home/me/go",
    "GOFLAGS": "-mod=vendor",
    "JAVA_HOME": "/usr/lib/jvm/17",
    "MAVEN_OPTS": "-Xmx2g -Dstyle.color=never",
    "CC": "clang",
    "CFLAGS": "-O2 -g",
    "PKG_CONFIG_PATH": "/opt/lib/pkgconfig",
    "LD_LIBRARY_PATH": "/opt/lib",
    "CONDA_PREFIX": "/opt/conda",
    "DJANGO_SETTINGS_MODULE": "site.settings.test",
    "no_proxy": "localhost",
    "REQUESTS_CA_BUNDLE": "/etc/ssl/ca.pem",
    "PYENV_ROOT": "/home/me/.pyenv",
    "GIT_AUTHOR_NAME": "Me",
    "CI": "true",
}
NOT_NEEDED = {
    "DB_PW": "hunter2",
    "MNEMONIC": "witch collapse practice feed shame open despair creek road again ice least",
    "AZ_SAS": "sv=2022-11-02&ss=b&sig=abcdefgh%3D",
    "JDBC_URL": "jdbc:postgresql://db/x?user=me&password=hunter2",
    "SLACK_HOOK": "https://hooks.slack.com/services/T0/B0/XXXX",
    "SEED": "1234567890",
    "GOOGLE_THING": "x",
    "APP_DATABASE": "db",
    "PYTHON_STORE": "Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MEFCQ0Q=",
    "NODE_OPTIONS": "--require x --password=hunter2",
    "JAVA_TOOL_OPTIONS": "-Djavax.net.ssl.trustStorePassword=hunter2",
    "BUNDLE_GEMS__EXAMPLE__COM": "me:hunter2",
    "TF_VAR_x": "hunter2",
    "SSH_AUTH_SOCK": "/tmp/agent",
}


def test_in_a_sandbox_only_what_is_listed_passes() -> None:
    env = child_env(NEEDED | NOT_NEEDED, closed=True)
    assert {name: env.get(name) for name in NEEDED} == NEEDED
    assert sorted(NOT_NEEDED.keys() & env.keys()) == []
    assert child_env(NOT_NEEDED, closed=True, secrecy=Secrecy(allow=["DB_PW", "TF_*"])).keys() & NOT_NEEDED.keys() == {
        "DB_PW",
        "TF_VAR_x",
    }


def test_a_failed_command_that_speaks_of_a_variable_is_told_how_it_would_get_it() -> None:
    environ = {"APP_DATABASE": "db", "PATH": "/bin", "PWD": "/x"}
    given = child_env(environ, closed=True)
    (line,) = missed("KeyError: 'APP_DATABASE' in PATH, PWD", environ, given)
    assert 'env_allow = ["APP_DATABASE"]' in line and "PATH" not in line and "PWD" not in line
    assert missed("KeyError: 'OTHER'", environ, given) == []


def test_gits_configuration_in_variables_is_given_in_whole_pairs() -> None:
    plain, secret = (
        ("safe.directory", "*"),
        ("http.https://x.org/.extraheader", "AUTHORIZATION: basic bWU6aHVudGVyMg=="),
    )
    environ = with_git_config({}, [secret, plain, ("a.token", "hunter2"), ("a.b", "c")])
    given = child_env(environ)
    assert {n: v for n, v in given.items() if n.startswith("GIT_CONFIG")} == with_git_config({}, [plain, ("a.b", "c")])
    assert not any(name.startswith("GIT_CONFIG") for name in child_env(environ, closed=True))
