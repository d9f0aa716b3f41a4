"""What a command in the sandbox is told of it, and which places outside the project it finds there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agent_tui.config import SandboxConfig
from agent_tui.tools.sandbox import places
from agent_tui.tools.sandbox.backends import Bubblewrap, Landlock
from agent_tui.tools.sandbox.box import Sandbox
from agent_tui.tools.sandbox.jail import Jail
from agent_tui.tools.sandbox.words import refused
from tests.support.every import every

pytestmark = pytest.mark.quick

HOME = str(Path.home())


@every(
    ("output", "path"),
    [
        (f"PermissionError: [Errno 13] Permission denied: '{HOME}/.cache/x'", "~/.cache/x"),
        (f"mkdir: cannot create directory ‘{HOME}/.cache’: Read-only file system", "~/.cache"),
        ("bash: line 1: /usr/x: Permission denied", "/usr/x"),
        ("Error: EACCES: permission denied, open '/opt/y'", "/opt/y"),
        ("touch: cannot touch '/first': Permission denied\ntouch: cannot touch '/last': Permission denied", "/last"),
        ("error: could not lock config file ~/.gitconfig: Operation not permitted", "~/.gitconfig"),
    ],
)
def test_what_failed_because_of_the_sandbox_names_the_place_and_the_way_out(output: str, path: str) -> None:
    (line,) = refused(output, "work")
    assert line.startswith(f"[sandbox: {path}: not allowed here, ") and '"outside": true' in line
    (looked,) = refused(output, "look")
    assert path in looked and 'outside"' not in looked, "nothing leaves it in the modes that look"
    assert refused(output, "free") == []


def test_a_home_that_lies_anywhere_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Path("/var/lib/jenkins")
    assert refused(f"cat: {home}/.netrc: No such file or directory", "work") == []
    monkeypatch.setattr(Path, "home", lambda: home)
    (line,) = refused(f"cat: {home}/.netrc: No such file or directory", "work")
    assert line.startswith("[sandbox: ~/.netrc: cannot be seen here")


def test_what_is_missing_and_what_needs_the_network_say_so_too() -> None:
    (line,) = refused(f"cat: {HOME}/.netrc: No such file or directory", "work")
    assert line.startswith("[sandbox: ~/.netrc: cannot be seen here") and '"outside": true' in line
    (line,) = refused("curl: (6) Could not resolve host: x", "work", "ask")
    assert "without a network" in line and '"outside": true' in line
    assert refused("curl: (6) Could not resolve host: x", "work", "allow") == []
    assert refused("AssertionError: 1 != 2", "work") == []


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


@pytest.mark.skipif(sys.platform != "linux", reason="the backends of Linux")
def test_places_that_are_there_inside_need_no_question(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")  # a home of tests may lie in the temporary folder
    proven = Sandbox(Bubblewrap("/usr/bin/bwrap"), frozenset(("look", "work")))
    jail = Jail(SandboxConfig(), project, tmp_path / "cache", sandbox=proven)
    jail.policy().prepare()
    assert jail.sees(Path("/usr/bin/env").resolve(), "read") and not jail.sees(Path("/usr/x"), "edit")
    assert jail.sees(jail.policy().temporary.resolve() / "new", "edit")
    for secret in (Path.home() / ".ssh/id", Path("/etc/shadow"), Path.home() / "notes"):
        assert not jail.sees(secret, "read"), secret
    # Of its own /tmp a command sees what it put there; what others have there, it does not.
    shared = Path("/tmp").resolve()
    assert jail.sees(shared / "agent-tui-no-such-file", "edit")
    (jail.policy().temporary / "kept").write_text("")
    assert jail.sees(shared / "kept", "read")
    assert not jail.sees(shared, "read")
    if project.resolve().is_relative_to(shared):
        (tmp_path / "others").write_text("")
        assert not jail.sees(tmp_path.resolve() / "others", "read")
    shares = Jail(SandboxConfig(), project, tmp_path / "cache", sandbox=Sandbox(Landlock(7), proven.proven))
    assert not shares.sees(shared / "agent-tui-no-such-file", "edit")
    assert not Jail(SandboxConfig(), project, tmp_path / "cache").sees(Path("/usr/bin/env"), "read")


def test_the_interpreter_of_a_virtual_environment_is_found_where_it_links_to(project: Path, tmp_path: Path) -> None:
    installed = tmp_path / "opt/python"
    for folder in (installed / "bin", installed / "lib/python3.12", project / ".venv/bin", tmp_path / "hop/bin"):
        folder.mkdir(parents=True)
    (installed / "bin/python3.12").write_text("")
    (tmp_path / "hop/lib/python3.12").mkdir(parents=True)
    (tmp_path / "hop/bin/python3").symlink_to(installed / "bin/python3.12")
    (project / ".venv/bin/python").symlink_to(tmp_path / "hop/bin/python3")
    parts = [folder.resolve() / part for folder in (tmp_path / "hop", installed) for part in ("bin", "lib")]
    assert places.project_interpreters(project) == parts
    jail = Jail(SandboxConfig(), project, tmp_path / "cache")
    assert set(parts) <= set(jail.policy().readable) and installed.resolve() not in jail.policy().readable


@pytest.mark.parametrize("leads", ["secret/bin/python", ".config/bin/python", "bin/python", ".local/bin/python"])
def test_a_link_that_says_so_is_not_believed(
    project: Path, tmp_path: Path, leads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no Python is installed, in a secret place, the home itself, and what holds something secret."""
    monkeypatch.setattr(places, "home", lambda: tmp_path / "home")
    places._usual_secrets.cache_clear()
    target = tmp_path / "home" / leads
    target.parent.mkdir(parents=True)
    target.write_text("")
    if "secret" not in leads:
        (target.parent.parent / "lib/python3.12").mkdir(parents=True)
    (project / "venv/bin").mkdir(parents=True)
    (project / "venv/bin/python").symlink_to(target)
    assert places.project_interpreters(project) == []
    places._usual_secrets.cache_clear()
