"""Ports of its own: what a held command may do on 127.0.0.1 and ::1, by every means that this machine has."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.config import SandboxConfig
from agent_tui.tools.sandbox import words
from agent_tui.tools.sandbox.backends import Landlock, Seatbelt, profile, spec
from agent_tui.tools.sandbox.box import Sandbox, trial
from agent_tui.tools.sandbox.jail import Jail
from agent_tui.tools.sandbox.network import session_network
from agent_tui.tools.sandbox.policy import Domain, Loopback, SandboxBackend, SandboxPolicy
from tests.support.every import every

SERVES = """
import socket, sys
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    try:
        with socket.socket(family) as server:
            server.bind((host, 0))
            server.listen()
            with socket.create_connection(server.getsockname()[:2], 5), server.accept()[0]:
                print("served", host)
    except OSError as error:
        print("refused", host)
"""
REACHES = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), 5).close()
    print("reached")
except OSError:
    print("not reached")
"""


@pytest.fixture
def backend(sandbox: Sandbox) -> SandboxBackend:
    assert sandbox.backend is not None
    return sandbox.backend


@pytest.fixture
def with_ports(sandbox: Sandbox) -> SandboxBackend:
    """Each of those that say that they give ports."""
    assert sandbox.backend is not None
    if not sandbox.has_ports("own"):
        pytest.skip(f"{sandbox.name} gives a command no ports of its own")
    return sandbox.backend


@pytest.fixture
def policy(tmp_path: Path) -> SandboxPolicy:
    (tmp_path / "project").mkdir()
    found = SandboxPolicy(tmp_path / "project", tmp_path / "scratch")
    found.prepare()
    return found


def run(
    backend: SandboxBackend, policy: SandboxPolicy, code: str, *arguments: str, domain: Domain = "work"
) -> list[str]:
    command = [sys.executable, "-I", "-S", "-c", code, *arguments]
    with backend.wrap(command, domain, policy, policy.root, {"PATH": os.environ["PATH"]}) as launch:
        done = subprocess.run(
            launch.argv, env=launch.env, cwd=policy.root, pass_fds=launch.pass_fds, capture_output=True, text=True
        )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def with_loopback(policy: SandboxPolicy, loopback: Loopback) -> SandboxPolicy:
    return SandboxPolicy(policy.root, policy.scratch, loopback=loopback)


@pytest.mark.quick
def test_a_test_runner_serves_and_connects(with_ports: SandboxBackend, policy: SandboxPolicy) -> None:
    domains: tuple[Domain, ...] = ("look", "work")
    for domain in domains:
        told = run(with_ports, policy, SERVES, domain=domain)
        assert "served 127.0.0.1" in told
        if Path("/proc/net/if_inet6").exists():
            assert "served ::1" in told


def test_no_port_of_the_machine_is_reached(backend: SandboxBackend, policy: SandboxPolicy) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        for loopback in ("own", "machine", "deny"):
            told = run(backend, with_loopback(policy, loopback), REACHES, "127.0.0.1", port)
            assert told == ["not reached"], loopback
            told = run(backend, with_loopback(policy, loopback), REACHES, "127.0.0.1", port, domain="look")
            assert told == ["not reached"], loopback
        shared = replace(policy, shared=session_network())
        assert run(backend, shared, REACHES, "127.0.0.1", port) == ["not reached"]


@pytest.mark.quick
def test_what_holds_is_tried_in_the_shared_network_too(with_ports: SandboxBackend, tmp_path: Path) -> None:
    network = session_network()
    if network is None:
        pytest.skip("this system has none")
    assert trial(with_ports, "work", tmp_path, network) == ""


def test_it_can_be_switched_off(backend: SandboxBackend, policy: SandboxPolicy) -> None:
    told = run(backend, with_loopback(policy, "deny"), SERVES)
    assert told == ["refused 127.0.0.1", "refused ::1"]
    assert run(backend, with_loopback(policy, "deny"), SERVES, domain="look") == told


def test_an_own_network_gives_no_rights_with_it(backend: SandboxBackend, policy: SandboxPolicy) -> None:
    """Whoever makes a network may change it, until that is given up."""
    changes = (
        "import os\nfor line in open('/proc/self/status'):\n    'CapEff' in line and print(int(line.split()[1], 16))"
    )
    (rights,) = (int(line) for line in run(backend, policy, changes))
    assert rights & (1 << 12 | 1 << 13 | 1 << 21) == 0, "administers or sends raw packets"


@pytest.mark.quick
def test_landlock_alone_has_none_and_says_so(policy: SandboxPolicy) -> None:
    alone, apart = Landlock(7), Landlock(7, ports=True)
    assert spec("work", policy)["own_network"] is False and spec("work", policy)["network"] is False
    assert spec("work", policy, ports=True)["own_network"] is True
    assert spec("look", policy, ports=True)["own_network"] is True
    assert spec("look", policy)["network"] is False
    assert "no network, not even on this machine" in alone.enforces("look", "allow", "own")
    assert "no network except ports on 127.0.0.1 that the command itself opens" in apart.enforces(
        "look", "allow", "own"
    )
    assert spec("work", with_loopback(policy, "deny"), ports=True)["network"] is False
    assert "no network, not even on this machine" in alone.enforces("work", "ask", "own")
    assert "no network except ports of its own on 127.0.0.1 and ::1" in apart.enforces("work", "ask", "own")
    assert "no network, not even on this machine" in apart.enforces("work", "ask", "deny")
    assert "network open" in apart.enforces("work", "allow", "own")


@pytest.mark.quick
def test_where_addresses_are_told_apart_the_machines_ports_are_opened_only_when_said(policy: SandboxPolicy) -> None:
    seatbelt = Seatbelt("/usr/bin/sandbox-exec")
    assert "network" not in profile("work", policy).replace("mach", "")
    assert '(allow network-outbound (remote ip "localhost:*"))' in profile("work", with_loopback(policy, "machine"))
    assert "network-" not in profile("look", with_loopback(policy, "machine"))
    assert "no network, not even on this machine" in seatbelt.enforces("work", "ask", "own")
    assert "no network except this machine's own ports" in seatbelt.enforces("work", "ask", "machine")


@pytest.mark.quick
@every(
    ("backend", "loopback", "ports"),
    [
        (Landlock(7, ports=True), "own", True),
        (Landlock(7, ports=True), "deny", False),
        (Landlock(7), "own", False),
        (Seatbelt("x"), "own", False),
        (Seatbelt("x"), "machine", True),
    ],
)
def test_the_judge_is_told_what_there_is(
    tmp_path: Path, backend: SandboxBackend, loopback: Loopback, ports: bool
) -> None:
    jail = Jail(SandboxConfig(loopback=loopback), tmp_path, tmp_path / "cache")
    assert not jail.has_ports(), "not before it was tried"
    jail.sandbox = Sandbox(backend, frozenset({"look", "work"}))
    assert jail.has_ports() is ports
    jail.sandbox = Sandbox(backend, frozenset({"look"}))
    assert not jail.has_ports()


@pytest.mark.quick
@every(
    ("backend", "loopback", "words_"),
    [
        (Landlock(7, ports=True), "own", "no network except ports of its own"),
        (Landlock(7, ports=True), "machine", "no network except ports of its own"),
        (Landlock(7), "own", 'cannot open ports on 127.0.0.1; to allow it: bubblewrap, or [sandbox] network = "allow"'),
        (Landlock(7), "deny", "no network, not even on this machine"),
        (Seatbelt("x"), "own", 'cannot open ports on 127.0.0.1; to allow it: [sandbox] loopback = "machine"'),
        (Seatbelt("x"), "machine", "no network except this machine's own ports"),
    ],
)
def test_doctor_says_what_a_test_runner_will_find(backend: SandboxBackend, loopback: Loopback, words_: str) -> None:
    sandbox = Sandbox(backend, frozenset({"look", "work"}))
    assert words_ in words.ports_line(sandbox, "ask", loopback)
    assert words.ports_line(sandbox, "allow", loopback) == "network open"
    assert words.ports_line(Sandbox(), "ask", loopback) == ""
    shares = words.ports_line(replace(sandbox, shares=True), "ask", loopback)
    assert shares.endswith("shared by the commands of a run") is ("ports of its own" in shares)


@pytest.mark.quick
def test_a_port_that_is_not_there_is_explained() -> None:
    (line,) = words.refused("curl: (7) Failed to connect to localhost port 3000", "work")
    assert "ports that it opens itself" in line and '"outside": true' in line
    (line,) = words.refused("curl: (7) Failed to connect to localhost port 3000", "work", shares=True)
    assert "ports that commands in the sandbox have open" in line and '"outside": true' in line
    (line,) = words.refused("curl: (6) Could not resolve host: example.org", "work")
    assert "ports" not in line
