"""What is wrong in a configuration is said in one line: place, key, what is allowed."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from agent_tui.config import Settings
from agent_tui.config.files import Layer, build_settings, env_layer, file_layer
from agent_tui.config.schema import REMOVED, check
from agent_tui.errors import ConfigError

pytestmark = [pytest.mark.quick, pytest.mark.versions]


def line(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        check([Layer("/x/config.toml", tomllib.loads(text), {})])
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2
    return str(caught.value)


def env_line(**variables: str) -> str:
    with pytest.raises(ConfigError) as caught:
        check([env_layer(variables)])
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("gone", REMOVED)
def test_a_setting_that_is_gone_is_refused_with_what_serves_instead(gone: str) -> None:
    *table, name = gone.replace("*", "mine").split(".")
    said = line(f"[{'.'.join(table)}]\n{name} = true")
    assert said == f"/x/config.toml: {'.'.join([*table, name])} is gone: {REMOVED[gone]}. Delete this setting."


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[context]\nauto_compat = true", ["context.auto_compat", "auto_compact, compact_at"]),
        ("themes = 'x'", ["unknown key themes", "default_model"]),
        ("[context]\nauto_compact = 'false'", ["context.auto_compact", "true or false", "'false'"]),
        ("[context]\nmax_output_reserve = '5'", ["context.max_output_reserve", "integer"]),
        ("[context]\nmax_output_reserve = 0", ["context.max_output_reserve", "greater than 0"]),
        ("[context]\nexact_counting = 'on'", ["context.exact_counting", "'auto' or 'off'"]),
        *(
            (
                f"[context]\ncompact_at = {value}",
                ["context.compact_at", "fraction", "up to 1", "at least 1,024", "not "],
            )
            for value in ("80", "1.5", "0", "-0.5", "1023", "inf", "nan")
        ),
        *(
            (f"[tools]\nbash_timeout = {value}", ["tools.bash_timeout", "must be a number", "(not this value)"])
            for value in (10**400, -(10**400), hex(16**4_000))
        ),
        *(
            (f"[models.prices]\nmodel = 'demo'\n{key} = {value}", [f"models.prices.{key}", f"(not {value})"])
            for key, value in (("compact_at", "80"), ("context_window", "0"))
        ),
        ("[mcp.prices]\ncommand = 'a'\ntimeout = 0", ["mcp.prices.timeout", "greater than 0"]),
        (
            "[models.prices]\nmodel = 'demo'\nprices = {input = -1, output = 0}",
            ["models.prices.prices.input", "at least 0"],
        ),
        ("[models.x]\nmodel = 'demo'\ncompact_at = 80", ["models.x.compact_at", "0.8 is 80 %", "(not 80)"]),
        ("[agent]\nstep_limit = true", ["agent.step_limit", "integer"]),
        ("[agent]\nretries = 50", ["agent.retries", "at most 20"]),
        ("[permissions]\nmode = 'yolo'", ["permissions.mode", "'ask', 'accept-edits', 'plan', 'auto' or 'bypass'"]),
        ("[permissions]\nallow = 'bash'", ["permissions.allow", "list"]),
        ("[models.x]\napi_base = 'http://x'", ["models.x", "needs a model"]),
        ("[models.x]\nmodel = 'demo'\napi = 'rest'", ["models.x.api", "'auto', 'chat' or 'responses'"]),
        ("[mcp.x]\ncommand = 'a'\nurl = 'http://b'", ["mcp.x", "both command and url"]),
        ("[keys]\nfnd = 'ctrl+f'", ["keys.fnd", "find"]),
        *(
            (f"[keys]\nsend = '{key}'", ["keys.send", "types text", "Ctrl"])
            for key in ("x", "ctrl+s,é", "full_stop", "slash", "space", "shift+a")
        ),
        ("[keys]\nfind = 'ctrl f'", ["keys.find", "'ctrl f'"]),
        ("[keys]\nfind = 3", ["keys.find", "string"]),
        ("context = 3", ["context", "3"]),
    ],
)
def test_one_line_names_the_key_and_what_is_allowed(text: str, words: list[str]) -> None:
    said = line(text)
    assert said.startswith("/x/config.toml: ")
    for word in words:
        assert word in said


@pytest.mark.parametrize(
    "text",
    [
        "default_model = 'demo'",
        "default_model = 'openai/gpt-5'",
        "default_model = 'own'\n[models.own]\nmodel = 'openai/x'",
        "[tools]\nbash_timeout = 5",
        "[context]\ncompact_at = 120000",
        "[context]\ncompact_at = 1024",
        "[context]\ncompact_at = 1",
        "[context]\ncompact_at = 0.05",
        "[models.own]\nmodel = 'openai/x'\ncompact_at = 0.5",
        "[keys]\nfind = 'f3, ctrl+shift+f'",
    ],
)
def test_what_is_right_passes(text: str) -> None:
    check([Layer("file", tomllib.loads(text), {})])


def test_variables_are_named_as_they_were_written() -> None:
    assert "AGENT_TUI_CONTEXT__AUTO_COMPACT" in env_line(AGENT_TUI_CONTEXT__AUTO_COMPACT="maybe")
    said = env_line(AGENT_TUI_CONTEXT__COMPACT_AT="80")
    assert "AGENT_TUI_CONTEXT__COMPACT_AT" in said
    assert "0.8 is 80 %" in said
    assert "AGENT_TUI_NONSENSE" in env_line(AGENT_TUI_NONSENSE="1")
    assert "AGENT_TUI_AGENT (step_limit)" in env_line(AGENT_TUI_AGENT='{"step_limit": 0}')


def test_contradicting_variables_are_said() -> None:
    with pytest.raises(ConfigError, match="AGENT_TUI_UI__THEME"):
        env_layer({"AGENT_TUI_UI": "dark", "AGENT_TUI_UI__THEME": "x"})


def test_values_that_may_be_keys_are_not_repeated() -> None:
    for text in ("[mcp.x.headers]\nAuthorization = 12345", "[mcp.x.env]\nTOKEN = 12345"):
        assert "12345" not in line(text)


def test_a_broken_file_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[context]\nauto_compact = \n", "utf-8")
    with pytest.raises(ConfigError, match=r"config\.toml: not valid TOML: .*line 2"):
        file_layer(file)
    file.write_text(f"[tools]\nbash_timeout = 1{'0' * 5_000}\n")
    with pytest.raises(ConfigError, match="not valid TOML: Exceeds the limit"):
        file_layer(file)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot be read"):
        file_layer(file)
    with pytest.raises(ConfigError, match="no such file"):
        file_layer(tmp_path / "gone.toml", required=True)


def test_what_is_wrong_counts_as_absent_before_it_is_checked() -> None:
    settings = build_settings({"ui": {"theme": 3, "show_reasoning": True}, "context": "x", "nonsense": 1, "keys": []})
    expected = Settings()
    expected.ui.show_reasoning = True
    assert settings == expected
