"""What can be asked without a chat: context, sessions, export, models, doctor, config, completions."""

from __future__ import annotations

import subprocess
import tomllib
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent_tui.commands.bookkeeping import report_text
from agent_tui.commands.report import ContextReport
from agent_tui.engine.agent import Agent
from agent_tui.models.steps import FixedPart
from agent_tui.models.usage import LearnedLimit
from agent_tui.store.store import Store
from tests.support.agents import parts_for, running
from tests.support.cli import Cli

CONTEXT_KEYS = {
    *("model", "window", "reserve", "limit", "total", "free", "over", "percent", "basis", "estimated_tokens"),
    *("would_compact", "turns_left", "calculation", "rows", "accuracy", "session"),
}
CALCULATION = {
    *("last_input_tokens", "last_output_tokens", "dropped_reasoning_tokens", "removed_tokens", "fixed_delta_tokens"),
    "new_messages_tokens",
}
ACCURACY = {"intervals", "inside", "last_error_tokens", "last_error_percent", "median_error_percent", "calls", "ratio"}
SESSION = {
    *("input_tokens", "output_tokens", "reasoning_tokens", "cache_read_tokens", "cache_write_tokens", "cost_usd"),
    *("cost_known_usd", "unpriced_calls", "usage_by_kind"),
    "compactions",
}


@pytest.fixture
def session(cli: Cli) -> str:
    """A session with one answered message."""
    found: str = cli.run("-p", "hello", "-m", "demo", "--output-format", "json").json["session_id"]
    return found


def everything(cli: Cli) -> list[object]:
    with Store.open(cli.paths.database) as store:
        return [store.export(info.id) for info in store.sessions.all(None)]


@pytest.mark.quick
def test_context_has_the_fixed_keys_and_adds_up(cli: Cli, session: str) -> None:
    outcome = cli.run("context", "--session", session, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    data = outcome.json
    assert set(data) >= CONTEXT_KEYS
    assert set(data["calculation"]) == CALCULATION
    assert set(data["accuracy"]) == ACCURACY
    assert 0 <= data["low"] <= data["total"] <= data["high"]
    assert set(data["session"]) >= SESSION
    for row in data["rows"]:
        assert set(row) >= {"id", "label", "tokens", "basis", "estimated_tokens", "children"}
        assert not row["children"] or sum(child["tokens"] for child in row["children"]) == row["tokens"]
    assert sum(row["tokens"] for row in data["rows"]) == data["total"]
    assert data["total"] + data["free"] + data["reserve"] - data["over"] == data["window"]
    assert data["basis"] == "derived"


def test_context_without_an_anchor_says_null_not_0(cli: Cli) -> None:
    data = cli.run("context", "-m", "demo", "--json").json
    assert (data["calculation"]["last_input_tokens"], data["calculation"]["last_output_tokens"]) == (None, None)
    assert data["calculation"]["new_messages_tokens"] == data["total"]
    assert (data["session"]["input_tokens"], data["session"]["cost_usd"]) == (None, 0.0)
    assert cli.run("sessions", "--all", "--json").json == []


@pytest.mark.slow
def test_context_as_text_has_all_numbers(cli: Cli, session: str) -> None:
    data = cli.run("context", "--json").json
    text = cli.run("context").out
    for number in (data["total"], data["free"], data["reserve"], *(row["tokens"] for row in data["rows"])):
        assert f"{number:,}" in text
    for name in ("Calculation", "Accuracy", "Session", "Proof"):
        assert f"\n{name} " in text


@pytest.mark.slow
def test_a_look_changes_nothing(cli: Cli, session: str) -> None:
    before = everything(cli)
    for arguments in (
        ("context",),
        ("context", "--json", "-m", "openai/gpt-5", "--session", session),
        ("export", session),
    ):
        assert cli.run(*arguments).code == 0
    assert everything(cli) == before


@pytest.mark.slow
def test_a_look_works_while_the_session_is_open_elsewhere(cli: Cli, session: str) -> None:
    with Store.open(cli.paths.database) as store, store.locks.take(session):
        assert cli.run("context", "--session", session, "--json").json["basis"] == "derived"
        assert cli.run("export", session).code == 0
        busy = cli.run("-p", "more", "-r", session, "--output-format", "json")
        assert (busy.code, busy.json["stop_reason"]) == (1, "error")
        assert [notice["code"] for notice in busy.json["notices"]] == ["read_only"]
        assert cli.run("sessions", "delete", session, "--yes").code == 1


async def test_tools_of_servers_are_those_of_the_newest_step(cli: Cli) -> None:
    home, project = cli.home, cli.project
    async with running(parts_for(home, project)) as (agent, _):
        agent.turns.submit("hello")
        await agent.turns.join()
        session, step = agent.conversation.info.id, agent.conversation.steps[-1]
        alone = agent.context.usage().total
        read = FixedPart("tools", "mcp:files", "files_read", 400, "fp", raw_tokens=100, ascii_chars=400)
        step.fixed = (*step.fixed, read)
        assert step.settlement is not None
        largest = max(step.settlement.costs, key=step.settlement.costs.__getitem__)
        step.settlement.costs[largest] -= 100
        step.settlement.costs["tools:fp"] = 100
        agent.store.steps.write(session, step)
    looking = Agent(parts_for(home, project, resume=session))
    try:
        usage = await looking.inspect()
    finally:
        await looking.close()
    (tools,) = [row for row in usage.rows if row.id == "tools"]
    assert "mcp:files" in {child.id.removeprefix("tools/") for child in tools.children} | {
        c.label for c in tools.children
    }
    assert usage.calculation.fixed_delta == 0
    assert usage.total == alone
    assert "files" in report_text(ContextReport(usage))


@pytest.mark.slow
def test_sessions_are_listed_newest_first(cli: Cli) -> None:
    first, second = (
        cli.run("-p", text, "-m", "demo", "--output-format", "json").json["session_id"] for text in ("one", "two")
    )
    rows = cli.run("sessions", "--json").json
    assert [row["id"] for row in rows] == [second, first]
    assert set(rows[0]) == {"id", "title", "project", "model", "created", "updated", "messages"}
    text = cli.run("sessions").out
    assert text.index(second) < text.index(first)
    assert cli.run("sessions", "list").out == text
    assert cli.run("sessions", "list", "--json", "--all").json == rows


@pytest.mark.quick
def test_sessions_are_searched_by_what_was_said(cli: Cli, session: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (row,) = cli.run("sessions", "--search", "DEMO model", "--json").json
    assert (row["id"], row["hit"]["role"], row["hit"]["left_behind"]) == (session, "assistant", False)
    marked = [row["hit"]["line"][start:end] for start, end in row["hit"]["spans"]]
    assert {text.lower() for text in marked} == {"demo", "model"}
    assert "    model: " in cli.run("sessions", "--search", "demo").out
    assert cli.run("sessions", "--search", "zebra", "--json").json == []
    assert "No session of this project has these words" in cli.run("sessions", "--search", "zebra").err
    assert cli.run("sessions", "--search", " ").code == 2
    elsewhere = cli.project.parent / "other"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert cli.run("sessions", "--search", "demo", "--json").json == []
    assert [row["id"] for row in cli.run("sessions", "--all", "--search", "demo", "--json").json] == [session]


def test_sessions_of_other_projects_are_behind_all(cli: Cli, session: str, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = cli.project.parent / "other"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert cli.run("sessions", "--json").json == []
    assert [row["id"] for row in cli.run("sessions", "--all", "--json").json] == [session]


def test_deleting_is_for_good(cli: Cli, session: str) -> None:
    assert cli.run("sessions", "delete", session, "--yes").code == 0
    assert cli.run("sessions", "--json").json == []


@pytest.mark.forms(1)
@pytest.mark.parametrize(("form", "start"), [("json", "{"), ("md", "# hello"), ("html", "<!doctype html>")])
def test_exports(cli: Cli, session: str, form: str, start: str) -> None:
    assert cli.run("export", session, "--format", form).out.startswith(start)
    file = cli.project / f"out.{form}"
    assert cli.run("export", session, "--format", form, "-o", str(file)).code == 0
    assert file.read_text("utf-8").startswith(start)


def test_a_page_is_not_poured_into_a_terminal(cli: Cli, session: str, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = SimpleNamespace(stdout=SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("agent_tui.cli.sessions.sys", terminal)
    for name in (f"{session}.html", f"{session}-2.html"):
        file = cli.paths.exports / name
        assert cli.run("export", session, "--format", "html").out == f"Exported to {file}.\n"
        assert file.read_text("utf-8").startswith("<!doctype html>")
    assert cli.run("export", session, "--format", "md").out.startswith("# hello")
    assert cli.run("export", session, "--format", "html", "-o", "-").out.startswith("<!doctype html>")


@pytest.mark.quick
def test_exported_json_is_complete(cli: Cli, session: str) -> None:
    data = cli.run("export", session).json
    assert {"session", "messages", "steps", "compactions"} <= set(data)
    assert [message["role"] for message in data["messages"]] == ["user", "assistant"]
    assert {"id", "role", "parts", "status"} <= set(data["messages"][0])
    assert {"type", "text", "provider_metadata"} <= set(data["messages"][1]["parts"][0])
    assert {"kind", "model", "message_id", "usage", "estimated_input_tokens", "actual_input_tokens"} <= set(
        data["steps"][0]
    )


def test_models_have_a_line_each(cli: Cli) -> None:
    cli.config('[models.own]\nmodel = "openai/own-x"\ncontext_window = 8000\napi_base = "http://127.0.0.1:9"\n')
    outcome = cli.run("models")
    assert outcome.code == 0
    own, demo = outcome.out.splitlines()
    assert own.startswith("own (openai/own-x)")
    assert "8k window (config)" in own
    assert demo.startswith("demo ")
    assert "16k window" in demo
    rows = cli.run("models", "--json").json
    assert [row["key"] for row in rows] == ["own", "demo"]
    assert rows[0]["limits"]["window"] == 8000


@pytest.mark.quick
def test_doctor_reports(cli: Cli) -> None:
    outcome = cli.run("doctor")
    assert outcome.code == 0
    assert {line.split()[0] for line in outcome.out.splitlines()} <= {"ok", "warn"}
    assert "demo: 16,000 tokens" in outcome.out


def test_config_init_writes_the_example_once(cli: Cli) -> None:
    outcome = cli.run("config", "init")
    assert outcome.out.strip() == str(cli.paths.config_file) == cli.run("config", "path").out.strip()
    assert cli.run("config", "show").code == 0
    again = cli.run("config", "init")
    assert again.code == 2
    assert "already exists" in again.error


@pytest.mark.quick
def test_config_show_is_what_is_in_force(cli: Cli) -> None:
    cli.config("[agent]\nstep_limit = 7\n")
    cli.setenv("AGENT_TUI_UI__THEME", "agent-light")
    shown = cli.run("config", "show").out
    values = tomllib.loads(shown)
    assert (values["agent"]["step_limit"], values["ui"]["theme"]) == (7, "agent-light")
    assert f"# from {cli.paths.config_file}" in shown
    assert "# from environment" in shown


@pytest.mark.slow
def test_a_projects_configuration_counts_after_trust(cli: Cli) -> None:
    folder = cli.project / ".agent-tui"
    folder.mkdir()
    (folder / "config.toml").write_text("[agent]\nstep_limit = 5\n", "utf-8")
    assert tomllib.loads(cli.run("config", "show").out)["agent"]["step_limit"] == 100
    untrusted = cli.run("-p", "hi", "-m", "demo", "--output-format", "json").json["notices"]
    assert [notice["code"] for notice in untrusted] == ["untrusted"]
    assert cli.run("-p", "hi", "-m", "demo", "--trust", "--output-format", "json").json["notices"] == []
    assert tomllib.loads(cli.run("config", "show").out)["agent"]["step_limit"] == 5


@pytest.mark.quick
def test_version(cli: Cli) -> None:
    outcome = cli.run("--version")
    assert (outcome.code, outcome.out.split()[0]) == (0, "agent-tui")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_flags_and_commands(cli: Cli, shell: str) -> None:
    text = cli.run("completions", shell).out
    for word in ("output-format", "permission-mode", "doctor", "completions"):
        assert word in text


@pytest.mark.quick
def test_the_bash_script_is_valid(cli: Cli) -> None:
    text = cli.run("completions", "bash").out
    done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_shared_flags_may_stand_before_a_subcommand(cli: Cli, session: str) -> None:
    file = cli.home / "more.toml"
    file.write_text("[context]\ncompact_at = 5000\n")
    for flags in (("-m", "demo"), ("--model=demo", "--config", str(file)), (f"--config={file}",)):
        data = cli.run(*flags, "context", "--session", session, "--json").json
        assert data == cli.run("context", "--session", session, "--json", *flags).json, flags
        assert (data["limit"] == 5_000) == (len(flags) != 2 or flags[0] != "-m"), flags


def test_flags_that_a_subcommand_lacks_are_refused(cli: Cli) -> None:
    outcome = cli.run("-m", "demo", "sessions")
    said = "agent-tui: agent-tui sessions has no -m. Run `agent-tui sessions --help` to list its flags.\n"
    assert (outcome.code, outcome.err) == (2, said)


@pytest.mark.slow
def test_flags_of_the_whole_program_stand_before_and_behind_every_subcommand(
    cli: Cli, session: str, tmp_path: Path
) -> None:
    more = tmp_path / "more.toml"
    more.write_text("[context]\ncompact_at = 5000\n")
    config, cd, folder = ["--config", str(more)], [f"--cd={tmp_path}"], ["-C", str(tmp_path)]
    cheap = product(("sessions", "models", "config show"), (config, cd, folder))
    for name, given in (*cheap, ("context", folder), ("doctor", config)):
        before, behind = cli.run(*given, *name.split()), cli.run(*name.split(), *given)
        assert (before.code, before.out, before.err) == (behind.code, behind.out, behind.err), (name, given)
        assert before.code != 2


def test_a_word_that_is_a_subcommand_is_a_message_after_a_dash_dash(cli: Cli) -> None:
    assert cli.run("-m", "demo", "-p", "--", "context").code == 0


@pytest.mark.slow
def test_doctor_forgets_what_servers_said_of_limits(cli: Cli) -> None:
    assert cli.run("doctor", "--forget").out == "Nothing to forget: no server has corrected a limit yet.\n"
    with Store.open(cli.paths.database) as store:
        store.learned.put_limit(LearnedLimit("openai/x", "http://127.0.0.1:1", 8_192, learned_at=1.0))
    report = cli.run("doctor").out
    assert "openai/x at http://127.0.0.1:1: window 8,192" in report
    assert cli.run("doctor", "--forget").out == "Forgot the learned limits of 1 model.\n"
    assert "openai/x" not in cli.run("doctor").out
