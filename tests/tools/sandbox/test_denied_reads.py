"""What a rule denies reading is not read by programs either, by whatever means they are held."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import pytest

from agent_tui.config import PermissionMode, PermissionsConfig, SandboxConfig
from agent_tui.tools.permissions.permissions import Permissions
from agent_tui.tools.rules import denied
from agent_tui.tools.sandbox.box import Sandbox
from agent_tui.tools.sandbox.jail import Jail
from agent_tui.tools.sandbox.policy import Domain
from tests.support import sandbox_world as world
from tests.support.every import every
from tests.support.forms import one_of
from tests.support.git import git
from tests.support.tool_context import bash, permissions_of, read

SECRET = "TOKEN-of-the-project"

READERS = {
    "cat": "cat .env",
    "python": '"$PYTHON" -I -c \'print(open(".env").read())\'',
    "node": 'node -e \'console.log(require("fs").readFileSync(".env", "utf8"))\'',
    "make": "printf 'include .env\\n$(info $(PASSWORD))\\nall:\\n\\t@cat .env\\n' | make -f -",
    "perl": "perl -ne print .env",
    "awk": "awk 1 .env",
    "grep": "grep -r TOKEN .",
    "tar": "tar -cf - . | cat",
    "source": "set -a; . ./.env; env",
    "link": "cat link",
    "hard link": "cat src/hard",
    "dd": "dd if=.env",
    "other spelling": "cat src/../.env /proc/self/cwd/.env; head /dev/fd/3 3< .env",
    "git": "git hash-object -w .env && git cat-file blob $(git hash-object .env)",
}
"""Ways to read a file, by the program that does it."""


@pytest.fixture
def base() -> Iterator[Path]:
    base = Path("/var/tmp") / f"agent-tui-test-{uuid.uuid4().hex[:8]}"
    (base / "project" / "src").mkdir(parents=True)
    yield base.resolve()
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
def project(base: Path) -> Path:
    """A repository with a file that is left out of it, a link to that and another name of it."""
    root = base / "project"
    world.make_repository(root)
    (root / ".gitignore").write_text(".env\nlink\nhard\n")
    (root / ".env").write_text(f"PASSWORD={SECRET}\n")
    (root / "link").symlink_to(".env")
    (root / "src" / "hard").hardlink_to(root / ".env")
    return root


def parts(
    project: Path, sandbox: Sandbox, *deny: str, mode: PermissionMode = "auto", readable: Sequence[Path] = ()
) -> tuple[Jail, Permissions]:
    """The jail and the judge of a project, joined as the program joins them."""
    jail = Jail(SandboxConfig(), project, project.parent / "cache", readable=readable, sandbox=sandbox)
    config = PermissionsConfig(mode, deny=list(deny))
    permissions = permissions_of(project, config, holds=jail.holds, sees=jail.sees, shows=jail.shows, masks=jail.masks)
    jail.denied = permissions.denied_below
    return jail, permissions


def masking(sandbox: Sandbox) -> list[Domain]:
    """The domains in which this means keeps files from programs."""
    assert sandbox.backend is not None
    return ["look", "work"] if sandbox.backend.subtracts else ["look"]


async def ran(jail: Jail, domain: Domain, script: str) -> str:
    python = f"PYTHON={shutil.which('python3') or 'python3'}\n"
    return (await world.run_in(jail.root, jail, domain, python + script, seconds=20))[1]


async def test_no_program_reads_it(sandbox: Sandbox, project: Path) -> None:
    jail, permissions = parts(project, sandbox, "read(**/.env)")
    # Each in a shell of its own, one after the other: what one of them prints stands behind its name.
    mark = uuid.uuid4().hex
    script = "\n".join(f"echo '{mark}{name}'; (\n{way}\n) 2>&1" for name, way in READERS.items())

    async def read_by(domain: Domain) -> set[str]:
        said = (await ran(jail, domain, script)).split(mark)[1:]
        assert [part.partition("\n")[0] for part in said] == [*READERS], "each was tried"
        return {part.partition("\n")[0] for part in said if SECRET in part}

    for domain in masking(sandbox):
        assert await read_by(domain) == set(), domain
    permissions.rules.forget("read(**/.env)", "deny")
    missing = {name for name in ("node", "make", "perl") if shutil.which(name) is None}
    led = await read_by(masking(sandbox)[-1])
    assert led >= READERS.keys() - {"git", "other spelling"} - missing, "the ways lead there"


RULES = [
    ("read(.env)", [".env", "src/.env"]),
    ("read(./.env)", [".env"]),
    ("read(src/*.key)", ["src/a.key"]),
    ("read(**/secrets/**)", ["secrets/a", "src/secrets/b/c"]),
    ("read(secrets/)", ["secrets/a", "src/secrets/b/c"]),
    ("read(./secrets)", ["secrets/a"]),
    ("read({.env,*.pem})", [".env", "src/.env", "src/x.pem"]),
    ("grep(**/.env)", [".env", "src/.env"]),
    ("read(<project>/src/**)", ["src/.env", "src/a.key", "src/x.pem", "src/secrets/b/c"]),
    ("read(~/project/src/x.pem)", ["src/x.pem"]),
    ("read(~/added/**)", ["../added/notes"]),
    ("read(<base>/**/.env)", [".env", "src/.env"]),
    ("read(linked/**)", ["real/a"]),
]
NAMES = ("src/.env", "src/a.key", "src/x.pem", "secrets/a", "src/secrets/b/c", "real/a", "../added/notes", "plain")


@pytest.fixture
def filled(project: Path, base: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project with all that the rules name, and more."""
    monkeypatch.setenv("HOME", str(base))
    for name in NAMES:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(f"TOKEN of {name}\n")
    (project / "linked").symlink_to("real")
    return project


def ruled(filled: Path, sandbox: Sandbox, rule: str) -> tuple[Jail, Permissions]:
    base = filled.parent
    text = rule.replace("<project>", str(filled)).replace("<base>", str(base))
    jail, permissions = parts(filled, sandbox, text, readable=[base / "added"])
    permissions.rules.bring([])
    return jail, permissions


@pytest.mark.quick
@every(("rule", "files"), RULES)
def test_every_form_of_rule_means_its_files(filled: Path, rule: str, files: list[str]) -> None:
    masked = ruled(filled, Sandbox(), rule)[1].denied_below([filled, filled.parent / "added"]).paths
    for name in (".env", *NAMES):
        path = (filled / name).resolve()
        assert any(path.is_relative_to(one) for one in masked) is (name in files), name


@pytest.mark.forms(1)
@pytest.mark.parametrize(("rule", "files"), one_of(RULES, every=6))
async def test_what_a_rule_means_is_masked(sandbox: Sandbox, filled: Path, rule: str, files: list[str]) -> None:
    jail, _ = ruled(filled, sandbox, rule)
    said = await ran(jail, masking(sandbox)[-1], "cat " + " ".join([".env", *NAMES]))
    for name in NAMES:
        assert (f"TOKEN of {name}\n" in said) is (name not in files), name
    assert (SECRET in said) is (".env" not in files)


async def test_rules_and_files_that_come_later_hold_from_the_next_command_on(sandbox: Sandbox, project: Path) -> None:
    jail, permissions = parts(project, sandbox)
    domain = masking(sandbox)[-1]
    assert SECRET in await ran(jail, domain, "cat .env")
    permissions.rules.remember(["read(**/.env)"], "deny")
    assert SECRET not in await ran(jail, domain, "cat .env")
    (project / "src" / "deep").mkdir()
    (project / "src" / "deep" / ".env").write_text("later\n")
    assert "later" not in await ran(jail, domain, "cat src/deep/.env")


async def test_git_records_no_change_of_a_masked_file(sandbox: Sandbox, project: Path) -> None:
    """What git knows of a masked file is what it knew: nothing is committed or stashed as emptied or deleted."""
    if "work" not in masking(sandbox):
        pytest.skip("commands that write are asked about where this holds them")
    (project / "secrets").mkdir()
    (project / "secrets" / "key").write_text(SECRET)
    git(project, "add", "-f", ".env", "secrets/key")
    git(project, "commit", "-qm", "known")
    jail, _ = parts(project, sandbox, "read(**/.env)", "read(secrets/**)")
    (project / "file").write_text("changed\n")
    script = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a\n"
    script += "git add -A; git commit -qam more; git add file; git stash; git checkout -q .; git reset -q --hard\n"
    script += "git clean -fdxq; rm -rf .env secrets; mv secrets moved; mv .env x; ln .env y; ln -f file .env\n"
    script += "git status; git diff; echo x > .env; git commit -qm partly; git rm -q .env secrets/key; true"
    await ran(jail, "work", script)
    assert (project / ".env").read_text() == f"PASSWORD={SECRET}\n"
    assert (project / "secrets" / "key").read_text() == SECRET
    for commit in git(project, "rev-list", "--all").split():
        for name in (".env", "secrets/key"):
            if (project / ".git").exists() and name in git(project, "ls-tree", "-r", "--name-only", commit).split():
                assert SECRET in git(project, "show", f"{commit}:{name}")
    print(git(project, "status", "--short"), git(project, "log", "--stat", "--oneline"))


async def test_a_folder_around_a_masked_file_is_not_moved_where_the_rule_would_not_mean_it(
    sandbox: Sandbox, project: Path
) -> None:
    if "work" not in masking(sandbox):
        pytest.skip("commands that write are asked about where this holds them")
    (project / "config" / "inner").mkdir(parents=True)
    (project / "config" / "inner" / "key").write_text(SECRET)
    (project / "src" / ".env").write_text(SECRET)
    jail, _ = parts(project, sandbox, "read(config/inner/key)", "read(**/.env)")
    print(await ran(jail, "work", "mv config other; mv src moved; ls -la . src"))
    assert (project / "config" / "inner" / "key").exists() and (project / "moved" / ".env").exists()
    assert SECRET not in await ran(jail, "work", "cat config/inner/key moved/.env")


PROGRAM = "python3 -c 'print(open(\".env\").read())'"


COMMANDS = (PROGRAM, "make", "npm test", "node x.js", "bash run.sh", "grep -r TOKEN .")
ASKING: tuple[PermissionMode, ...] = ("ask", "auto", "accept-edits", "bypass")


@pytest.mark.forms(1)
@pytest.mark.parametrize("without", [False, True], ids=["with the file", "without"])
def test_what_may_read_it_runs_unasked_only_where_it_is_masked(
    sandbox_or_none: Sandbox, project: Path, without: bool
) -> None:
    if without:
        (project / ".env").unlink()
        (project / "src" / "hard").unlink()
    for mode, command in product(ASKING, COMMANDS):
        decision = bash(parts(project, sandbox_or_none, "read(**/.env)", mode=mode)[1], command)
        usual = bash(parts(project, sandbox_or_none, mode=mode)[1], command)
        where = masking(sandbox_or_none) if sandbox_or_none.backend is not None else []
        if without:
            assert decision == usual, "there is nothing to be kept from it"
        elif usual.action == "allow" and usual.domain not in where:
            assert decision.action != "allow" and ".env" in decision.reason, (mode, command)
        else:
            assert (decision.action, decision.domain) == (usual.action, usual.domain), (mode, command)


@pytest.mark.quick
def test_the_question_says_what_could_be_read_and_its_answer_can_be_kept(project: Path) -> None:
    permissions = parts(project, Sandbox(), "read(**/.env)")[1]
    decision = bash(permissions, "npm test")
    assert decision.action == "ask" and decision.patterns == ["bash(npm test *)"]
    assert decision.reason == (
        "it could read .env and 1 more, which your rules deny: nothing keeps such a program from it here"
    )
    permissions.rules.remember(decision.patterns)
    assert bash(permissions, "npm test").action == "allow"
    assert bash(permissions, "cat .gitignore && npm test && make").action == "ask"
    assert bash(permissions, "grep -r TOKEN .").action == "deny"
    assert bash(permissions, "grep TOKEN .gitignore").action == "allow"


@pytest.mark.parametrize("mode", ["auto", "bypass"])
def test_where_nobody_can_be_asked_the_refusal_says_why(project: Path, mode: PermissionMode) -> None:
    config = PermissionsConfig(mode, deny=["read(**/.env)"])
    decision = bash(permissions_of(project, config, can_ask=False), "npm test")
    assert decision.action == "deny" and "could read .env and 1 more, which your rules deny" in decision.message
    assert "--allow 'bash(npm test *)'" in decision.message


@pytest.mark.quick
def test_file_tools_know_other_names_of_it(project: Path) -> None:
    permissions = parts(project, Sandbox(), "read(**/.env)", "read(./secrets)")[1]
    for name in (".env", "link", "src/hard", "secrets/inner/key"):
        assert read(permissions, project / name).action == "deny", name
        assert permissions.denies_reading((project / name).resolve())
    assert read(permissions, project / "file").action == "allow"


def test_too_much_to_look_through_is_asked_about(
    sandbox: Sandbox, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(denied, "MAX_FOLDERS", 2)
    permissions = parts(project, sandbox, "read(**/.env)")[1]
    decision = bash(permissions, PROGRAM)
    assert decision.action == "ask" and "there is too much in" in decision.reason


@pytest.mark.quick
def test_a_search_reads_again_only_what_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        (tmp_path / f"{number}" / "deep").mkdir(parents=True)
    (tmp_path / "7" / "deep" / ".env").touch()
    found = denied.DeniedFiles(tmp_path, lambda: ["**/.env"], lambda path: path.name == ".env")
    monkeypatch.setattr(denied, "_SETTLED", -1)
    assert found.find([]).paths == (tmp_path / "7" / "deep" / ".env",)
    looked: list[str] = []
    scandir = os.scandir

    def noted(path: str) -> object:
        looked.append(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", noted)
    found.look_again()
    assert found.find([]).paths == (tmp_path / "7" / "deep" / ".env",) and looked == []
    (tmp_path / "9" / ".env").touch()
    os.utime(tmp_path / "9", (0, 0))
    found.look_again()
    assert len(found.find([]).paths) == 2 and looked == [str(tmp_path / "9")]
