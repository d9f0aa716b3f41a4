from __future__ import annotations

from pathlib import Path

import pytest

from agent_tui.tools.sandbox.environment import cache_env, child_env, is_secret

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
    env = child_env(SECRET | PLAIN, secrets=[KEY], names=["NAMED_IN_CONFIG"])
    assert sorted(SECRET.keys() & env.keys()) == []
    assert {name: env.get(name) for name in PLAIN} == PLAIN


def test_what_the_user_allows_stays_whatever_it_is() -> None:
    env = child_env(SECRET, secrets=[KEY], allow=["MY_TOKEN", "AWS_*"])
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


@pytest.mark.parametrize("value", ["", "1", "123456", "true", "No", "auto"])
def test_numbers_and_switches_are_no_secrets(value: str) -> None:
    assert not is_secret("SOME_TOKEN", value)


def test_short_keys_do_not_match_inside_other_words() -> None:
    assert not is_secret("GREETING", "good morning", secrets=["mo", ""])
    assert is_secret("GREETING", "mo", secrets=["mo"])


def test_sources_move_only_where_they_can_be_fetched() -> None:
    offline, online = cache_env(Path("/c"), False), cache_env(Path("/c"), True)
    assert offline["PIP_CACHE_DIR"] == "/c/pip" and offline["npm_config_cache"] == "/c/npm"
    assert "CARGO_HOME" not in offline and online["CARGO_HOME"] == "/c/cargo"
