"""An error in a setting names the place it comes from, whichever of the places of the configuration that is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from agent_tui.bootstrap import load_settings
from agent_tui.cli import parse_options
from agent_tui.config.files import env_layer, file_layer, line_number
from agent_tui.errors import ConfigError
from agent_tui.paths import PROJECT_CONFIG, user_paths

pytestmark = pytest.mark.quick

Place = Callable[[str], tuple[list[str], str]]
"""Puts a text of TOML somewhere; the flags that belong to it, and what an error is to begin with."""


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Place]:
    monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path / "home"))
    root = tmp_path / "project"

    def written(path: Path, *flags: str) -> Place:
        def put(text: str) -> tuple[list[str], str]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
            return list(flags), f"{path}, line 2: "

        return put

    return {
        "user": written(user_paths().config_file),
        "project": written(root / ".agent-tui/config.toml"),
        "--config": written(tmp_path / "more.toml", "--config", str(tmp_path / "more.toml")),
    }


def refusal(tmp_path: Path, *flags: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_settings(parse_options(flags), user_paths(), file_layer(tmp_path / "project" / PROJECT_CONFIG))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("where", ["user", "project", "--config"])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[permissions]\nallow = ["bsah(ls)"]', "permissions.allow: 'bsah(ls)' names no tool: did you mean bash?"),
        ('[permissions]\nask = ["bash(ls"]', "permissions.ask: the rule 'bash(ls' must be"),
        ('[permissions]\ndeny = ["todo(x)"]', "permissions.deny: 'todo(x)': todo takes no pattern"),
        ('[permissions]\nmode = "yolo"', "permissions.mode: "),
        ("[agent]\nretries = 50", "agent.retries: "),
        ("[context]\nauto_compat = true", "unknown key context.auto_compat"),
        ('[keys]\nfind = "ctrl f"', "keys.find: "),
        ('# mine\ndefault_model = "sonet"', "default_model: "),
        ('# mine\n[models.x]\napi = "chat"', "models.x: needs a model"),
    ],
)
def test_a_file_is_named_with_its_line(
    places: Mapping[str, Place], tmp_path: Path, where: str, text: str, words: str
) -> None:
    flags, begins = places[where](text)
    assert refusal(tmp_path, *flags).startswith(begins + words)


def test_a_rule_in_a_list_is_found_and_one_that_is_overridden_too(places: Mapping[str, Place], tmp_path: Path) -> None:
    places["user"]('[permissions]\nallow = [\n  "bash(ls)",\n  "github__x(y)",\n]')
    places["project"]('[permissions]\nallow = ["bash(ls)"]')
    said = refusal(tmp_path)
    assert f"{user_paths().config_file}, line 4: permissions.allow: " in said


def test_servers_tools_are_checked_in_the_file_they_stand_in(places: Mapping[str, Place], tmp_path: Path) -> None:
    _, begins = places["user"]('[permissions]\nmcp_read_only = ["bash"]')
    assert refusal(tmp_path).startswith(begins + "permissions.mcp_read_only: 'bash' names no tool of an MCP server")


@pytest.mark.parametrize(
    ("variable", "value", "begins"),
    [
        ("AGENT_TUI_PERMISSIONS__ALLOW", '["bsah"]', "environment: AGENT_TUI_PERMISSIONS__ALLOW: 'bsah' names no tool"),
        ("AGENT_TUI_PERMISSIONS", '{"deny": ["bsah"]}', "environment: AGENT_TUI_PERMISSIONS (deny): 'bsah' names no"),
        ("AGENT_TUI_AGENT__RETRIES", "50", "environment: AGENT_TUI_AGENT__RETRIES: "),
        ("AGENT_TUI_ALLOW", "bash(ls)\nbsah", "environment: AGENT_TUI_ALLOW: 'bsah' names no tool"),
        ("AGENT_TUI_DENY", '["bash(ls"]', "environment: AGENT_TUI_DENY: the rule 'bash(ls'"),
        ("AGENT_TUI_MAX_TURNS", "0", "environment: AGENT_TUI_MAX_TURNS 0: must be at least 1"),
        ("AGENT_TUI_SESSION", "../x", "environment: AGENT_TUI_SESSION '../x'"),
    ],
)
def test_a_variable_is_named(
    places: Mapping[str, Place], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, begins: str
) -> None:
    monkeypatch.setenv(variable, value)
    assert refusal(tmp_path).startswith(begins)


def test_what_is_said_to_the_tests_is_no_setting() -> None:
    """The program is started beside such variables: by ``.ci/run``, and by who has them in the shell."""
    root = Path(__file__).resolve().parents[2]
    texts = [
        path.read_text("utf-8") for path in [root / "CONTRIBUTING.md", *(root / ".ci").iterdir()] if path.is_file()
    ]
    named = set(re.findall(r"\bAGENT_TUI_[A-Z_]+", "\n".join(texts)))
    assert {"AGENT_TUI_TEST_MEANS", "AGENT_TUI_LONG_TESTS", "AGENT_TUI_HOME"} <= named
    assert env_layer(dict.fromkeys(named, "some")).values == {}


def test_of_a_list_that_a_variable_and_a_flag_give_together_each_names_its_own(
    places: Mapping[str, Place], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_TUI_ALLOW", "bash(ls)")
    assert refusal(tmp_path, "--allow", "bsah").startswith("--allow: 'bsah' names no tool")
    monkeypatch.setenv("AGENT_TUI_ALLOW", "bsah")
    assert refusal(tmp_path, "--allow", "bash(ls)").startswith("environment: AGENT_TUI_ALLOW: ")


@pytest.mark.parametrize(
    ("text", "key", "entry", "line"),
    [
        ("a = 1\n[t]\na = 2", "t.a", "", 3),
        ("a = 1\n[t]\na = 2", "t", "", 2),
        ("t.a = 1", "t.a", "", 1),
        ('[t."x y"]\nb = 1', "t.x y.b", "", 2),
        ("[t]\na = [\n 'x',\n 'x',\n]", "t.a", "x", 0),
        ("[[t]]\na = 1\n[[t]]\na = 2", "t.a", "", 0),
        ("", "t.a", "", 0),
    ],
)
def test_a_line_is_named_only_where_it_is_certain(text: str, key: str, entry: str, line: int) -> None:
    assert line_number(text, key, entry) == line


def test_what_is_no_file_is_no_configuration_but_where_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.toml").symlink_to("/dev/null")
    with pytest.raises(ConfigError, match="not a regular file"):
        file_layer(tmp_path / "config.toml")
    assert file_layer(tmp_path / "config.toml", required=True) is not None  # as ``--config <(…)`` is
    assert file_layer(tmp_path / "missing.toml") is None
    with pytest.raises(ConfigError, match="no such file"):
        file_layer(tmp_path / "missing.toml", required=True)
