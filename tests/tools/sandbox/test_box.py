from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from agent_tui.config import SandboxConfig
from agent_tui.errors import ToolError
from agent_tui.tools.sandbox import box, places, words
from agent_tui.tools.sandbox.backends import Seatbelt, profile
from agent_tui.tools.sandbox.box import probe
from agent_tui.tools.sandbox.jail import Jail
from agent_tui.tools.sandbox.policy import (
    Domain,
    Launch,
    Loopback,
    Network,
    SandboxBackend,
    SandboxPolicy,
    domain_for,
    free,
)
from tests.support.every import every

pytestmark = pytest.mark.quick


class Pretender:
    """A backend that is there and holds nothing."""

    name = "Pretender"
    subtracts = True
    own_tmp = False
    loopback: frozenset[Loopback] = frozenset()

    def wrap(
        self, argv: Sequence[str], domain: Domain, policy: SandboxPolicy, cwd: Path, env: Mapping[str, str]
    ) -> Launch:
        return free(argv, {**env, "TMPDIR": str(policy.temporary)})

    def enforces(self, domain: Domain, network: Network, loopback: Loopback) -> list[str]:
        return ["everything"]


class Broken(Pretender):
    """One that is there and does not start."""

    name = "Broken"

    def wrap(
        self, argv: Sequence[str], domain: Domain, policy: SandboxPolicy, cwd: Path, env: Mapping[str, str]
    ) -> Launch:
        return free([sys.executable, "-c", "import sys; sys.exit('no namespaces here')"], env)


def test_what_only_pretends_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box, "backends", lambda: [Broken(), Pretender()])
    sandbox = probe(tmp_path)
    assert sandbox.name == "none" and not sandbox.holds("look") and not sandbox.holds("work")
    assert sandbox.enforces("look") == [] and sandbox.holds("free")
    assert sandbox.failed[0] == "Broken: no namespaces here"
    assert any("can read outside" in why and "can write hooks" in why for why in sandbox.failed)
    policy = SandboxPolicy(tmp_path, tmp_path / "scratch")
    assert sandbox.wrap(["true"], "look", policy, tmp_path, {}).argv == ["true"]
    assert words.status_line(sandbox).startswith("none (Broken: no namespaces here)")
    assert words.described(sandbox, "look") == "look: not enforced here"


def test_required_refuses_with_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box, "backends", list)
    sandbox = probe(tmp_path, "required")
    policy = SandboxPolicy(tmp_path, tmp_path / "scratch")
    with pytest.raises(ToolError, match="required") as refused:
        sandbox.wrap(["true"], "work", policy, tmp_path, {})
    assert "\n" not in str(refused.value)
    assert sandbox.wrap(["true"], "free", policy, tmp_path, {}).argv == ["true"]


def test_off_tries_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never() -> list[SandboxBackend]:
        raise AssertionError

    monkeypatch.setattr(box, "backends", never)
    sandbox = probe(tmp_path, "off")
    assert sandbox.name == "none" and words.status_line(sandbox) == "off ([sandbox] mode)"


async def test_it_is_tried_once_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[str] = []

    def backends() -> list[SandboxBackend]:
        tries.append("")
        return []

    monkeypatch.setattr(box, "backends", backends)
    for _ in range(2):
        await Jail(SandboxConfig(), tmp_path, tmp_path / "cache").ready()
    assert len(tries) == 1


@every(
    ("mode", "domain"),
    [
        ("plan", "look"),
        ("ask", "look"),
        ("accept-edits", "work"),
        ("auto", "work"),
        ("bypass", "free"),
        ("something new", "look"),
    ],
)
def test_modes_have_domains(mode: str, domain: str) -> None:
    assert domain_for(mode) == domain


@every(
    ("output", "domain", "said"),
    [
        ("bash: x: Permission denied", "look", "may write only $TMPDIR (look)"),
        ("touch: cannot touch '/x': Read-only file system", "work", "may write only the project"),
        ("Error: EACCES: open", "work", "may write only"),
        ("curl: (6) Could not resolve host: example.com", "work", "without a network"),
        ("npm ERR! code EAI_AGAIN", "work", "without a network"),
        ("cat: /home/me/x: No such file or directory", "look", "home folder"),
        ("fatal: unable to look up example.com (port 9418) (Name has no answer)", "work", "without a network"),
        ("dial tcp: lookup proxy.golang.org on [::1]:53: read udp", "work", "without a network"),
        ("AssertionError: 1 != 2", "work", None),
        ("fatal: unable to look up current user in the passwd file: no such user", "work", None),
        ("KeyError: lookup x on y", "work", None),
        ("could not connect to display :0", "work", None),
        ("bash: x: Permission denied", "free", None),
    ],
)
def test_what_the_sandbox_stopped_is_said(output: str, domain: Domain, said: str | None) -> None:
    lines = words.refused(output, domain)
    assert [said in line for line in lines] == ([True] if said else [])  # type: ignore[operator]


def test_a_user_who_has_no_name_wants_no_network(tmp_path: Path) -> None:
    assert words.stopped("fatal: unable to look up current user in the passwd file", False, {}, tmp_path) is None


def test_with_the_network_open_it_is_not_blamed() -> None:
    assert words.refused("Could not resolve host: x", "work", "allow") == []


def test_the_profile_for_macos_lists_what_it_must(tmp_path: Path) -> None:
    """Nothing here can run it: what it says is looked at."""
    root = tmp_path / 'pro"ject'
    (root / ".git").mkdir(parents=True)
    policy = SandboxPolicy(root, tmp_path / "scratch", hidden=(root / ".env",))
    look, work = profile("look", policy), profile("work", policy)
    quoted = str(root).replace('"', '\\"')
    assert "(deny default)" in look and "network" not in look
    assert (
        f'(allow file-write* (subpath "{quoted}"))' in work and f'(allow file-write* (subpath "{quoted}"))' not in look
    )
    assert f'(subpath "{quoted}/.git/hooks")' in work.split("deny file-write*")[1]
    assert f'(subpath "{quoted}/.env")' in look.rpartition("(deny file-read* file-write*")[2]
    launch = Seatbelt("/usr/bin/sandbox-exec").wrap(["true"], "look", policy, root, {})
    assert launch.argv[:2] == ["/usr/bin/sandbox-exec", "-p"] and launch.argv[-1] == "true"


def test_a_link_in_a_private_folder_of_an_earlier_command_is_replaced(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    policy = SandboxPolicy(tmp_path, tmp_path / "scratch")
    policy.prepare()
    shutil.rmtree(policy.cache)
    policy.cache.symlink_to(outside)
    policy.prepare()
    assert policy.cache.is_dir() and not policy.cache.is_symlink() and outside.is_dir()


def test_folders_of_programs_are_named_so_where_their_links_lead(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "tool" / "bin").mkdir(parents=True)
    (tmp_path / "bin").symlink_to(tmp_path / "home")
    (tmp_path / "scripts").symlink_to(tmp_path / "tool" / "bin")
    path = f"{tmp_path}/bin:{tmp_path}/scripts:{tmp_path}/home:relative/bin"
    assert list(places.path_folders(path)) == [tmp_path / "tool" / "bin"]
