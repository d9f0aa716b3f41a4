"""``agent-tui context --step``: the context as it was before a step, and what changed."""

from __future__ import annotations

import pytest

from tests.support.cli import Cli


@pytest.fixture
def session(cli: Cli) -> str:
    """A session of three steps."""
    found: str = cli.run("-p", "hello", "-m", "demo", "--output-format", "json").json["session_id"]
    for text in ("tell me more", "and more"):
        assert cli.run("-p", text, "-c", "-m", "demo").code == 0
    return found


@pytest.mark.slow
def test_a_step_is_printed_with_its_differences(cli: Cli, session: str) -> None:
    data = cli.run("context", "--session", session, "--step", "3", "--json").json
    step = data["step"]
    assert (step["number"], step["of"], step["differs_tokens"], step["on_path"]) == (3, 3, 0, True)
    assert data["context"]["total"] == step["estimated_input_tokens"]
    assert step["error_tokens"] == step["estimated_input_tokens"] - step["billed_input_tokens"]
    assert data["compared_with"] == 2
    assert data["delta"] == sum(row["delta"] for row in data["context"]["rows"])
    first = cli.run("context", "--session", session, "--step", "1", "--json").json
    assert first["compared_with"] is None and first["delta"] is None
    back = cli.run("context", "--session", session, "--step", "1", "--diff", "3", "--json").json
    assert back["delta"] == first["context"]["total"] - data["context"]["total"]
    text = cli.run("context", "--session", session, "--step", "3").out
    for words in ("Step 3 of 3", f"{step['billed_input_tokens']:,}", "Since step 2", "Messages"):
        assert words in text


@pytest.mark.slow
def test_what_cannot_be_asked_gets_one_line(cli: Cli, session: str) -> None:
    for flags, said in (
        (("--step", "4"), "No such step: 4. This session has steps 1 to 3."),
        (("--step", "0"), "No such step: 0. This session has steps 1 to 3."),
        (("--step", "2", "--diff", "9"), "No such step: 9. This session has steps 1 to 3."),
        (("--diff", "1"), "--diff needs --step, the step to compare."),
        (("--step", "1", "-m", "demo"), "-m cannot be combined with --step: a past step already had its model."),
    ):
        outcome = cli.run("context", "--session", session, *flags)
        assert (outcome.code, outcome.out, outcome.error) == (2, "", f"agent-tui: {said}"), flags


def test_a_session_without_steps_says_so(cli: Cli) -> None:
    outcome = cli.run("context", "--step", "1")
    assert outcome.code == 2
    assert "No steps yet" in outcome.error
