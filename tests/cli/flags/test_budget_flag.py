"""Budgets of a run in dollars, and the prices they go by."""

from __future__ import annotations

import pytest

from tests.support.cli import LOOKING, Cli, answers

PAID = '[models.paid]\nmodel = "demo"\nprices = { input = 3.0, output = 15.0, cache_read = 0.3 }\n'


def test_a_run_that_would_break_its_budget_ends_before_the_call(cli: Cli) -> None:
    cli.config(PAID)
    cli.script(LOOKING)
    outcome = cli.run("-p", "work", "-m", "paid", "--budget", "0.03", "--output-format", "json")
    data = outcome.json
    assert (outcome.code, data["stop_reason"]) == (54, "budget")
    assert 0 < data["cost_usd"] <= 0.03 and data["steps"] > 1
    assert "--budget = $0.0300" in outcome.error and "To continue:" in outcome.error
    assert data["notices"][-1]["code"] == "budget"
    cli.setenv("AGENT_TUI_BUDGET", "0.001")
    assert cli.run("-p", "work", "-m", "paid").code == 54
    assert cli.run("-p", "work", "-m", "demo", "--max-turns", "1").code == 53, (
        "a free model breaks no budget in dollars"
    )


@pytest.mark.quick
@pytest.mark.parametrize("amount", ["0", "-1", "nan", "inf"])
def test_a_budget_is_more_than_nothing(cli: Cli, amount: str) -> None:
    cli.refused(2, "-p", "hi", "-m", "demo", f"--budget={amount}", words="--budget")


def test_the_figure_of_a_turn_is_told_where_the_run_is_verbose(cli: Cli) -> None:
    cli.config(PAID)
    cli.script(answers("One.", "Two."))
    outcome = cli.run("-p", "hi", "-m", "paid", "--verbose")
    (figure,) = [line for line in outcome.err.splitlines() if "$" in line]
    assert figure.startswith("7 tokens · $0.0") and outcome.out == "One.\n"
    assert "$" not in cli.run("-p", "hi", "-m", "demo", "--verbose").err


@pytest.mark.forms(1)
@pytest.mark.parametrize(
    ("own", "asked", "spent"), [("0.03", "0.001", False), ("0.001", "9.0", False), (None, "9.0", True)]
)
def test_a_project_makes_a_budget_smaller_and_never_larger(cli: Cli, own: str | None, asked: str, spent: bool) -> None:
    cli.config(PAID + (f"[budget]\nturn_usd = {own}\n" if own else ""))
    cli.script(answers("Came."))
    project = cli.project / ".agent-tui"
    project.mkdir()
    (project / "config.toml").write_text(f"[budget]\nturn_usd = {asked}\n", "utf-8")
    assert cli.run("-p", "hi", "-m", "paid", "--trust").code == (0 if spent else 54)


def test_a_project_does_not_say_what_calls_cost_where_its_user_has_a_budget(cli: Cli) -> None:
    project = cli.project / ".agent-tui"
    project.mkdir()
    (project / "config.toml").write_text(
        '[models.paid]\nmodel = "demo"\nprices = { input = 0.0, output = 0.0 }\n', "utf-8"
    )
    cli.config(PAID)
    assert cli.run("-p", "hi", "-m", "paid", "--trust").code == 0
    cli.config(PAID + "[budget]\nturn_usd = 0.001\n")
    cli.refused(2, "-p", "hi", "-m", "paid", "--trust", words="remove models.paid.prices here")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[budget]\nturn_usd = 0\n", "budget.turn_usd: must be greater than 0"),
        ("[budget]\nweek_usd = 1.0\n", "unknown key budget.week_usd"),
        ('[models.x]\nmodel = "demo"\nprices = { input = 3.0 }\n', "needs both input and output"),
        ('[models.x]\nmodel = "demo"\nprices = { input = -3.0, output = 1.0 }\n', "at least 0"),
    ],
)
def test_budgets_and_prices_that_make_no_sense_are_one_line(cli: Cli, text: str, words: str) -> None:
    cli.config(text)
    cli.refused(2, "-p", "hi", "-m", "demo", words=words)


CUT = '[[step]]\ntext = "It begins well and"\nfinish = "length"\n'


def test_an_answer_that_its_budget_cuts_off_says_so(cli: Cli) -> None:
    cli.config(PAID)
    cli.script(CUT)
    run = ("-p", "work", "-m", "paid", "--budget", "0.02")
    text = cli.run(*run)
    assert (text.code, text.out) == (54, "It begins well and\n")
    assert "The answer was cut off at" in text.error and "--budget = $0.0200 has no room for more" in text.error
    data = cli.run(*run, "--output-format", "json").json
    assert data["stop_reason"] == "budget" and data["notices"][-1]["code"] == "budget"
    assert cli.run("-p", "work", "-m", "paid", "--budget", "50").code == 0, "cut off by the model's own limit"


HANGS = (
    '[[step]]\nmatch = "hello"\ntext = "Fine."\n[[step]]\nmatch = "hang"\ntext = "And then"\nafter = 8\nhang = true\n'
)


@pytest.mark.slow
def test_what_a_killed_run_cost_is_the_same_in_export_and_json_and_when_it_goes_on(cli: Cli) -> None:
    cli.config(PAID)
    cli.script(HANGS)
    cli.run("-p", "hello", "-m", "paid")
    session = cli.newest()
    process = cli.start("-p", "hang", "-m", "paid", "--resume", session, "--output-format", "stream-json")
    assert process.stdout is not None
    try:
        assert any('"And then"' in line or '"text": "And' in line for line in process.stdout)
    finally:
        process.kill()
        process.communicate()

    def figures() -> tuple[object, ...]:
        export = cli.run("export", session, "--format", "json").json
        shown = cli.run("context", "--session", session, "--json").json["session"]
        (known,) = {(part["cost_known_usd"], part["unpriced_calls"]) for part in (export, shown)}
        return *known, [step["status"] for step in export["steps"]]

    killed = figures()
    assert killed[1:] == (1, ["complete", "stopped"]) and killed[0] > 0  # type: ignore[operator]
    cli.script(answers("Back."))
    assert cli.run("-p", "go on", "-m", "paid", "--resume", session).code == 0
    known, unpriced, statuses = figures()
    assert (unpriced, statuses) == (1, ["complete", "stopped", "complete"]) and known > killed[0]  # type: ignore[operator]
