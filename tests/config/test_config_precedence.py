"""Which place wins, and where files are: flag > environment > --config > project > user > default."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agent_tui.bootstrap import config_layers, load_settings
from agent_tui.config import Settings
from agent_tui.config.files import build_settings, early_settings, env_layer, file_layer, merge
from agent_tui.errors import ConfigError
from agent_tui.options import Options
from agent_tui.paths import PROJECT_CONFIG, Paths, project_root, user_paths

pytestmark = pytest.mark.quick


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """Folders of a user without configuration; ``AGENT_TUI_HOME`` moves everything."""
    monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path / "home"))
    return user_paths()


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def limit(options: Options, paths: Paths, root: Path, trusted: bool = True) -> int:
    return load_settings(options, paths, file_layer(root / PROJECT_CONFIG) if trusted else None).agent.step_limit


def test_each_place_wins_over_the_one_before(home: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, options = tmp_path / "project", Options()
    assert limit(options, home, root) == Settings().agent.step_limit
    write(home.config_file, "[agent]\nstep_limit = 11\nretries = 2\n")
    assert limit(options, home, root) == 11
    write(root / ".agent-tui" / "config.toml", "[agent]\nstep_limit = 12\n")
    assert limit(options, home, root) == 12
    options.config = write(tmp_path / "more.toml", "[agent]\nstep_limit = 13\n")
    assert limit(options, home, root) == 13
    monkeypatch.setenv("AGENT_TUI_AGENT__STEP_LIMIT", "14")
    assert limit(options, home, root) == 14
    assert load_settings(options, home, file_layer(root / PROJECT_CONFIG)).agent.retries == 2


def test_flags_win_over_variables(home: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_TUI_PERMISSIONS__MODE", "plan")
    assert load_settings(Options(), home, file_layer(tmp_path / PROJECT_CONFIG)).permissions.mode == "plan"
    assert (
        load_settings(Options(permission_mode="auto"), home, file_layer(tmp_path / PROJECT_CONFIG)).permissions.mode
        == "auto"
    )


def test_a_projects_file_counts_only_when_the_folder_is_trusted(home: Paths, tmp_path: Path) -> None:
    root = tmp_path / "project"
    write(root / ".agent-tui" / "config.toml", "[permissions]\nmode = 'auto'\n[agent]\nstep_limit = 12\n")
    assert load_settings(Options(), home, None) == Settings()
    assert load_settings(Options(), home, file_layer(root / PROJECT_CONFIG)).permissions.mode == "auto"
    write(root / ".agent-tui" / "config.toml", "not toml")
    assert load_settings(Options(), home, None) == Settings()
    with pytest.raises(ConfigError, match="not valid TOML"):
        load_settings(Options(), home, file_layer(root / PROJECT_CONFIG))


def test_nested_variables_make_tables() -> None:
    layer = env_layer(
        {
            "AGENT_TUI_CONTEXT__AUTO_COMPACT": "false",
            "AGENT_TUI_CONTEXT__COMPACT_AT": "0.5",
            "AGENT_TUI_TOOLS__DISABLED": '["fetch"]',
            "AGENT_TUI_UI__EDITOR": "123",
            "AGENT_TUI_MODELS__FAST__MODEL": "openai/gpt-5",
            "AGENT_TUI_MODELS__FAST__CONTEXT_WINDOW": "1000",
            "AGENT_TUI_HOME": "/elsewhere",
            "HOME": "/x",
        }
    )
    settings = build_settings(layer.values)
    assert settings.context.auto_compact is False
    assert settings.context.compact_at == 0.5
    assert settings.tools.disabled == ["fetch"]
    assert settings.ui.editor == "123"
    assert settings.models["fast"].model == "openai/gpt-5"
    assert settings.models["fast"].context_window == 1000


def test_tables_are_merged_and_lists_replaced(home: Paths, tmp_path: Path) -> None:
    write(home.config_file, "[models.a]\nmodel = 'xai/a'\ncontext_window = 5\n[permissions]\nallow = ['read']\n")
    options = Options(
        config=write(tmp_path / "b.toml", "[models.a]\ncontext_window = 6\n[permissions]\nallow = ['grep']\n")
    )
    settings = load_settings(options, home, file_layer(tmp_path / PROJECT_CONFIG))
    assert (settings.models["a"].model, settings.models["a"].context_window) == ("xai/a", 6)
    assert settings.permissions.allow == ["grep"]


def test_layers_say_where_they_come_from(home: Paths, tmp_path: Path) -> None:
    file = write(home.config_file, "[ui]\ntheme = 'agent-light'\n")
    layers = config_layers(Options(permission_mode="plan"), home, file_layer(tmp_path / PROJECT_CONFIG))
    assert [layer.where for layer in layers] == [str(file), "environment", "command line"]
    assert merge(layers)["permissions"] == {"mode": "plan"}


def test_everything_is_below_the_home_that_was_set(home: Paths, tmp_path: Path) -> None:
    base = tmp_path / "home"
    for path in (home.config_file, home.database, home.log_file, home.cache, home.themes):
        assert path.is_relative_to(base)
    assert not base.exists()


def test_the_first_frame_ignores_what_is_broken(home: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home.config_file, "[ui]\ntheme = 'agent-light'\n[keys]\nfind = 'f3'\n[nonsense]\n")
    settings = early_settings(None, home)
    assert (settings.ui.theme, settings.keys) == ("agent-light", {"find": "f3"})
    monkeypatch.setenv("AGENT_TUI_UI__THEME", "other")
    assert early_settings(None, home).ui.theme == "other"
    write(home.config_file, "theme =")
    assert early_settings(None, home).ui.theme == "other"


def test_a_projects_root_is_the_nearest_repository_or_configured_folder(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "a" / ".agent-tui").mkdir()
    assert project_root(deep) == (tmp_path / "a").resolve()
    subprocess.run(["git", "init", "-q", str(deep)], check=True)
    assert project_root(deep) == deep.resolve()


def test_settings_are_equal_where_every_field_is() -> None:
    one, other = Settings(), Settings()
    assert one == other
    other.ui.editor = "vi"
    elsewhere: object = one.agent
    assert one != other and one.ui != other.ui and one.ui != elsewhere
    assert "ui=UiConfig(theme='auto'" in repr(one) and "editor='vi'" in repr(other)
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "default_model = 'sonet'\n[models.sonnet]\nmodel = 'xai/b'",
            "line 1: default_model: Unknown model 'sonet'. Did you mean sonnet",
        ),
        ("[context]\nsummary_model = 'haiuk'", "line 2: context.summary_model: Unknown model 'haiuk'. Did you mean"),
        (
            "[models.x]\nmodel = 'opnai/gpt-5'",
            "line 2: models.x.model: Unknown provider 'opnai' in model 'opnai/gpt-5'.",
        ),
        ("[models.x]\nmodel = 'b'", "line 2: models.x.model: Unknown model 'b'"),
        ("default_model = 'sk\\u001b[31m'", "default_model: Unknown model"),
    ],
)
def test_a_model_that_cannot_exist_is_named_with_its_place(
    home: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    write(home.config_file, text)
    with pytest.raises(ConfigError) as caught:
        load_settings(Options(), home, file_layer(tmp_path / PROJECT_CONFIG))
    assert words in str(caught.value) and str(caught.value).isprintable() and caught.value.exit_code == 2
    write(home.config_file, "[models.x]\nmodel = 'b'\napi_base = 'http://127.0.0.1:9'")
    assert load_settings(Options(), home, file_layer(tmp_path / PROJECT_CONFIG)).models["x"].model == "b", (
        "a server of the user's own"
    )
    monkeypatch.setenv("AGENT_TUI_DEFAULT_MODEL", "gone")
    with pytest.raises(ConfigError, match="AGENT_TUI_DEFAULT_MODEL"):
        load_settings(Options(), home, file_layer(tmp_path / PROJECT_CONFIG))
