"""What a trusted project configures beside the user's own: no secret of the user's goes where the project says."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from agent_tui.bootstrap import load_settings
from agent_tui.config import McpServer, ModelConfig, Settings
from agent_tui.config.files import SECRET_BESIDE_ADDRESS, file_layer
from agent_tui.config.schema import OWN_SETTINGS, refusal
from agent_tui.errors import ConfigError
from agent_tui.options import Options
from agent_tui.paths import PROJECT_CONFIG, Paths, user_paths

pytestmark = pytest.mark.quick

OWN = {
    "mcp": 'url = "https://mine.example/"\nheaders = { Authorization = "SECRET" }\nenv = { TOKEN = "SECRET" }\n'
    'args = ["SECRET"]\ncwd = "/mine"\ntimeout = 7\n',
    "models": 'model = "openai/mine"\napi_base = "https://mine.example"\napi_key_env = "SECRET"\n'
    'extra = { api_key = "SECRET" }\ncontext_window = 7\n',
}
THEIRS = {"mcp": 'url = "https://theirs.example/"\n', "models": 'model = "openai/x"\napi_base = "https://theirs"\n'}
CLASSES: dict[str, type[Any]] = {"mcp": McpServer, "models": ModelConfig}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path / "home"))
    return user_paths()


def loaded(home: Paths, root: Path, own: str, theirs: str, later: str = "") -> Settings:
    files = [(home.config_file, own), (root / ".agent-tui" / "config.toml", theirs), (root / "later.toml", later)]
    for path, text in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return load_settings(Options(config=root / "later.toml"), home, file_layer(root / PROJECT_CONFIG))


def test_every_table_with_an_address_of_its_own_is_kept_apart() -> None:
    """A table of tables that is added is one of these, or says here why it holds no secret."""
    hints = get_type_hints(Settings)
    tables = {
        field.name
        for field in fields(Settings)
        if get_origin(hints[field.name]) is dict and is_dataclass(get_args(hints[field.name])[1])
    }
    assert tables == set(SECRET_BESIDE_ADDRESS)
    for table, secrets in SECRET_BESIDE_ADDRESS.items():
        assert set(secrets) <= {field.name for field in fields(CLASSES[table])}


@pytest.mark.parametrize("own", OWN_SETTINGS)
def test_what_is_the_users_alone_to_say_is_refused_of_a_project(own: str) -> None:
    keys, only = own.split("."), OWN_SETTINGS[own]
    values: list[object] = [{}, ["x"], "x"]
    for value in values:
        assert refusal(keys, only or value).startswith("only your own configuration may set ")
        assert refusal([*keys, "more", 0], only or value).startswith("only your own configuration may set ")
    assert refusal(["permissions", "mode"], "auto") == refusal(["ui", "notifications"], False) == ""


@pytest.mark.parametrize("table", SECRET_BESIDE_ADDRESS)
def test_a_projects_entry_has_nothing_of_the_users_of_that_name(home: Paths, tmp_path: Path, table: str) -> None:
    head = f"[{table}.shared]\n"
    entry = getattr(loaded(home, tmp_path, head + OWN[table], head + THEIRS[table]), table)["shared"]
    alone = getattr(loaded(home, tmp_path, "", head + THEIRS[table]), table)["shared"]
    assert entry == alone and "SECRET" not in repr(entry)


@pytest.mark.parametrize("table", SECRET_BESIDE_ADDRESS)
def test_the_users_other_entries_stay(home: Paths, tmp_path: Path, table: str) -> None:
    settings = loaded(home, tmp_path, f"[{table}.mine]\n{OWN[table]}", f"[{table}.theirs]\n{THEIRS[table]}")
    assert set(getattr(settings, table)) == {"mine", "theirs"} and "SECRET" in repr(getattr(settings, table)["mine"])


@pytest.mark.parametrize("table", SECRET_BESIDE_ADDRESS)
def test_a_secret_the_user_gives_afterwards_does_not_join_a_projects_address(
    home: Paths, tmp_path: Path, table: str
) -> None:
    head = f"[{table}.shared]\n"
    entry = getattr(loaded(home, tmp_path, "", head + THEIRS[table], head + OWN[table]), table)["shared"]
    assert entry == getattr(loaded(home, tmp_path, head + OWN[table], ""), table)["shared"]


def test_what_is_no_secret_can_be_set_over_a_projects_model(home: Paths, tmp_path: Path) -> None:
    head = "[models.shared]\n"
    model = loaded(home, tmp_path, "", head + THEIRS["models"], head + "context_window = 9\n").models["shared"]
    assert (model.api_base, model.context_window) == ("https://theirs", 9)


def test_a_variables_secret_stays_from_a_projects_server(
    home: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_TUI_MCP__SHARED__HEADERS", '{"authorization": "SECRET"}')
    assert loaded(home, tmp_path, "", "[mcp.shared]\n" + THEIRS["mcp"]).mcp["shared"].url is None


def test_a_projects_model_that_lacks_what_the_users_has_is_one_line(home: Paths, tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"\.agent-tui/config\.toml, line 1: models\.a: needs a model.* of the same name\.$"
    ):
        loaded(home, tmp_path, "[models.a]\n" + OWN["models"], "[models.a]\ncontext_window = 6\n")
