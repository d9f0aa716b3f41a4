"""Namespaces of our own: who is inside, how a command in them ends, and what is used where there are none."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from agent_tui.tools.sandbox import backends, filters
from agent_tui.tools.sandbox.policy import Launch, SandboxPolicy
from agent_tui.tools.sandbox.start import confined
from tests.support import sandbox_world as world

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="of Linux")


@pytest.fixture
def policy(tmp_path: Path) -> SandboxPolicy:
    (tmp_path / "project").mkdir()
    policy = SandboxPolicy(tmp_path / "project", tmp_path / "scratch")
    policy.prepare()
    return policy


def launched(argv: Sequence[str], policy: SandboxPolicy) -> Launch:
    sandbox = world.held_by("namespaces")
    assert sandbox.backend is not None
    return sandbox.backend.wrap(argv, "work", policy, policy.root, {"PATH": "/usr/bin:/bin"})


def said(script: str, policy: SandboxPolicy) -> tuple[int, str]:
    with launched(["bash", "-c", script], policy) as launch:
        done = subprocess.run(
            launch.argv,
            env=launch.env,
            pass_fds=launch.pass_fds,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.forms(1)
@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 7", 7), ("exec no-such-program", 127), ("kill -TERM $$", -15), ("kill -SEGV $$", -11), ("kill -9 $$", -9)],
)
def test_a_command_ends_as_it_ended(script: str, code: int, policy: SandboxPolicy) -> None:
    assert said(script, policy)[0] == code


def test_the_first_process_is_not_the_commands_to_end(policy: SandboxPolicy) -> None:
    script = "for s in KILL STOP TERM INT HUP; do kill -$s 1 2> /dev/null; done; kill -TERM 0; echo on"
    assert said(f"trap '' TERM; {script}", policy) == (0, "on\n")


def test_nobody_inside_has_any_capability(policy: SandboxPolicy) -> None:
    _, output = said("grep -h Cap /proc/[0-9]*/status; grep NoNewPrivs /proc/self/status", policy)
    words = output.split()
    assert {word for name, word in pairwise(words) if name.startswith("Cap")} == {"0" * 16}
    assert words[-1] == "1"


def test_orphans_end_with_the_command(policy: SandboxPolicy) -> None:
    """They hold the pipe that is read here: it would not end before they do."""
    code, output = said("(setsid sleep 1000 &) ; setsid nohup sleep 1000 2>/dev/null & echo left", policy)
    assert (code, output) == (0, "left\n")


def test_all_ends_when_what_stands_for_it_outside_is_killed(policy: SandboxPolicy) -> None:
    with launched(["bash", "-c", "echo up; (setsid sleep 1000 &) ; sleep 1000"], policy) as launch:
        process = subprocess.Popen(launch.argv, env=launch.env, pass_fds=launch.pass_fds, stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None and process.stdout.readline() == b"up\n"
        process.kill()
        assert process.stdout.read() == b""


def test_a_link_in_the_place_of_a_mount_is_not_followed(policy: SandboxPolicy, tmp_path: Path) -> None:
    """As a command may put it there between the plan and the mount."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("SECRET")
    (policy.root / ".vscode").mkdir()
    launch = launched(["cat", ".vscode/secret"], policy)
    (policy.root / ".vscode").rmdir()
    (policy.root / ".vscode").symlink_to(outside)
    with launch:
        done = subprocess.run(launch.argv, env=launch.env, pass_fds=launch.pass_fds, capture_output=True, check=False)
    assert done.returncode == 126 and b"SECRET" not in done.stdout


def test_where_there_are_none_the_next_means_is_taken_and_said(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from agent_tui.tools.sandbox.box import probe\n"
        "from agent_tui.tools.sandbox.words import status_line\n"
        "print(status_line(probe(Path(sys.argv[1]))))"
    )
    # What a container does, and a distribution that forbids user namespaces: the kernel refuses to make them.
    program = filters.program((filters.AF_UNIX, *filters.INTERNET), metadata=True)
    refused = confined({"capabilities": False, "seccomp": program}, [sys.executable, "-c", code, str(tmp_path)])
    done = subprocess.run(refused, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("Landlock, the last resort (") and "not permitted" in done.stdout, done


@pytest.mark.forms(5)
@pytest.mark.parametrize("kind", ["read", "empty", "dir", "link"])
@pytest.mark.parametrize("way", ["{outside}", "/.old{outside}"])
def test_a_link_put_in_the_way_of_a_mount_leads_nowhere(
    way: str, kind: backends.Kind, policy: SandboxPolicy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that runs already may exchange a folder between the plan and the mount."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (policy.root / "file").touch()
    (policy.root / "way").symlink_to(way.format(outside=outside))
    source = {"read": str(policy.root / "file"), "link": "file"}.get(kind, "")
    made = backends.plan("work", policy)
    at = next(number for number, mount in enumerate(made) if mount[0] == "proc")
    made.insert(at, (kind, source, str(policy.root / "way" / "a")))
    monkeypatch.setattr(backends, "plan", lambda domain, policy: made)
    code, output = said("echo ran", policy)
    assert (code != 0, "ran" in output, list(outside.iterdir())) == (True, False, [])
