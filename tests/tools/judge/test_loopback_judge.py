"""What talks to this machine alone needs no question where commands have ports of their own; what only says so does."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_tui.config import PermissionMode, PermissionsConfig
from agent_tui.tools.base import Intent
from agent_tui.tools.rules.decision import Decision
from tests.support.commands import lines, sections
from tests.support.every import every
from tests.support.tool_context import permissions_of

pytestmark = pytest.mark.quick

HERE = [command for heading, command in sections("everyday.txt") if heading == "Ports of this machine"]
ELSEWHERE = lines("not_this_machine.txt")
HELD: tuple[PermissionMode, ...] = ("accept-edits", "auto")


def judged(root: Path, command: str, mode: PermissionMode, ports: bool = True, holds: bool = True) -> Decision:
    permissions = permissions_of(
        root,
        PermissionsConfig(mode),
        holds=lambda domain: holds or domain == "free",
        has_ports=lambda: ports,
    )
    return permissions.decide("bash", Intent("command", command, command=command))


@every("mode", HELD)
@every("command", HERE)
def test_ports_of_this_machine_need_no_question(tmp_path: Path, command: str, mode: PermissionMode) -> None:
    decision = judged(tmp_path, command, mode)
    assert (decision.action, decision.domain, decision.network) == ("allow", "work", False), decision.reason


@every("command", HERE)
def test_ask_tries_them_without_and_asks_then(tmp_path: Path, command: str) -> None:
    first = judged(tmp_path, command, "ask")
    assert (first.action, first.domain) == ("allow", "look")
    assert first.if_stopped is not None and first.if_stopped.domain == "work" and not first.if_stopped.network
    assert judged(tmp_path, command, "plan").domain != "work"


@every("mode", HELD)
@every("command", ELSEWHERE)
def test_what_may_lead_elsewhere_asks_or_is_held_to_this_machine(
    tmp_path: Path, command: str, mode: PermissionMode
) -> None:
    decision = judged(tmp_path, command, mode)
    assert decision.action == "ask" or (decision.domain == "work" and not decision.network)
    assert judged(tmp_path, command, mode, holds=False).action == "ask"


@every("command", [command for command in HERE if command.startswith(("curl", "nc", "wget", "http"))])
def test_without_ports_in_the_sandbox_it_is_asked_to_leave_it(tmp_path: Path, command: str) -> None:
    for mode in HELD:
        assert judged(tmp_path, command, mode, ports=False).action == "ask"


def test_a_rule_still_says_no(tmp_path: Path) -> None:
    permissions = permissions_of(
        tmp_path,
        PermissionsConfig("auto", deny=["bash(curl *)"], ask=["bash(nc *)"]),
        holds=lambda domain: True,
        has_ports=lambda: True,
    )

    def action(command: str) -> str:
        return permissions.decide("bash", Intent("command", command, command=command)).action

    assert action("curl localhost:8000") == "deny"
    assert action("nc -z localhost 80") == "ask"
