"""What publishes or tells a secret is asked about, in every mode that asks at all, held or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_tui.config import PermissionMode, PermissionsConfig
from agent_tui.tools.base import Intent
from agent_tui.tools.judge.programs import PUBLISHING, publishes
from agent_tui.tools.rules.decision import Decision
from agent_tui.tools.sandbox.policy import Network
from tests.support.every import every
from tests.support.tool_context import permissions_of

pytestmark = pytest.mark.quick

LINES = [
    line
    for line in (Path(__file__).parent / "data" / "publishing.txt").read_text().splitlines()
    if line and not line.startswith("#")
]


def judged(
    folder: Path,
    command: str,
    mode: PermissionMode = "auto",
    held: bool = False,
    network: Network = "ask",
    allow: tuple[str, ...] = (),
) -> Decision:
    rules = PermissionsConfig(mode=mode, allow=list(allow))
    permissions = permissions_of(
        folder, rules, holds=lambda domain: held or domain == "free", network=network, has_ports=lambda: held
    )
    return permissions.decide("bash", Intent("command", command, command=command))


@every("command", LINES)
def test_it_is_asked_about_with_and_without_a_sandbox(tmp_path: Path, command: str) -> None:
    for mode in ("ask", "accept-edits", "auto"):
        cases: list[tuple[bool, Network]] = [(False, "ask"), (True, "ask"), (True, "allow")]
        for held, network in cases:
            found = judged(tmp_path, command, mode, held, network)
            assert found.action == "ask", (mode, held, network)
            if held:  # where it can do what it was allowed to do: with the user's own keys
                assert found.domain == "free" or found.remotes, (mode, network)


@pytest.mark.parametrize("held", [True, False])
def test_a_rule_allows_it(tmp_path: Path, held: bool) -> None:
    for command, rule in (("npm publish", "bash(npm publish)"), ("git push origin main", "bash(git push *)")):
        assert judged(tmp_path, command, held=held, allow=(rule,)).action == "allow"


@every(
    "command",
    ["npm test", "npm run build", "npm view x", "cargo build", "cargo test publish", "uv run pytest", "uv sync",
     "gem list", "git fetch", "git log --grep push", "gh pr list", "gh pr view 3 --comments", "gh run watch 5",
     "gh api repos/a/b", "gh auth status", "gh search issues push", "python -m build", "twine check dist/a.whl",
     "twine --version", "poetry install", "./gradlew build", "mvn test", "npm install publish", "npx tsc --noEmit"],
)  # fmt: skip
def test_what_only_looks_or_builds_is_not_taken_for_it(command: str) -> None:
    assert publishes(command.split()) == ""


@every("program", sorted(PUBLISHING))
def test_every_program_of_the_list_is_found_behind_what_starts_it(program: str) -> None:
    line = [program, *PUBLISHING[program][0], "x"]
    for start in ([], ["npx"], ["uv", "run"], ["python3", "-m"], ["bundle", "exec"], ["pipx", "run", "--quiet"]):
        assert publishes([*start, *line]), start
    assert publishes([f"/usr/bin/{program}", *line[1:]])
    assert not publishes([program, "--version"])
