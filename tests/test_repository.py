"""What newcomers and machines find in the repository itself: its top level, its workflows, the versions it names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
TOP = {
    ".ci",
    ".github",
    ".gitignore",
    ".pre-commit-config.yaml",
    "AGENTS.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "action.yml",
    "agent_tui",
    "config.example.toml",
    "constraints.txt",
    "docs",
    "pyproject.toml",
    "tests",
    "themes",
}
SCRATCH = {
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".import_linter_cache",
    ".hypothesis",
    ".venv",
    "venv",
    ".git",
}


def load(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text("utf-8"))


def test_the_top_level_holds_what_it_should() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no clone: what belongs to it is not known")
    tracked = {name.partition("/")[0] for name in listed.stdout.splitlines()}
    assert tracked == TOP


def test_the_constraints_fit_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    asked = [Requirement(line) for line in (*project["dependencies"], *(one for extra in extras for one in extra))]
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.+!]+( ; .+)?", line)] == [], "names and versions"
    versions: dict[str, list[str]] = {}
    for one in map(Requirement, lines):
        versions.setdefault(canonicalize_name(one.name), []).extend(spec.version for spec in one.specifier)
    missing = [str(need) for need in asked if canonicalize_name(need.name) not in versions]
    assert missing == []
    wrong = [
        (str(need), v) for need in asked for v in versions[canonicalize_name(need.name)] if v not in need.specifier
    ]
    assert wrong == []


def test_each_room_of_tests_is_in_one_part_of_the_workflow() -> None:
    tests = load(".github/workflows/ci.yml")["jobs"]["tests"]
    parts = tests["strategy"]["matrix"]["part"]
    rooms = [room for part in parts for room in tests["env"][part.upper()].split()]
    here = {f"tests/{path.relative_to(ROOT / 'tests').parts[0]}" for path in ROOT.glob("tests/*/**/test_*.py")}
    assert sorted(room for room in rooms if "*" not in room) == sorted(here)
    assert "tests/test_*.py" in rooms


def test_the_workflow_tries_every_python_that_the_package_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = [line.rpartition(" ")[2] for line in project["classifiers"] if "Python :: 3." in line]
    assert load(".github/workflows/ci.yml")["jobs"]["tests"]["strategy"]["matrix"]["python"] == named


def test_guides_for_agents_are_short_and_true() -> None:
    lines = [line for line in (ROOT / "AGENTS.md").read_text("utf-8").splitlines() if line]
    assert len(lines) <= 10
    named = re.findall(r"`([A-Z]+\.md|\.ci/\w+|docs/|agent_tui/\w+)`", "\n".join(lines))
    assert named and [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.slow
@pytest.mark.parametrize("pull_request", [True, False])
def test_the_action_asks_about_the_change(tmp_path: Path, pull_request: bool) -> None:
    """Its script as a runner would start it, with the demo model."""
    base, checkout = changed_checkout(tmp_path)
    temporary = tmp_path / "runner temp"
    (temporary / "agent-tui/bin").mkdir(parents=True)
    (temporary / "agent-tui/bin/agent-tui").symlink_to(Path(sys.executable).parent / "agent-tui")
    step = next(step for step in load("action.yml")["runs"]["steps"] if step.get("id") == "ask")
    given = {
        "PROMPT": 'Review "$(touch pwned)"',
        "MODEL": "demo",
        "MODE": "plan",
        "BUDGET": "0.50",
        "TURNS": "3",
        "ARGS": "--append-system-prompt\nSay `id` and $HOME\n",
        "BASE": base if pull_request else "",
    }
    assert step["env"].keys() == given.keys()
    files = {name: temporary / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    ran = subprocess.run(
        ["bash", "-e", "-c", step["run"]],
        cwd=checkout,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "AGENT_TUI_HOME": str(tmp_path / "state"),
            "RUNNER_TEMP": str(temporary),
            **given,
            **{name: str(path) for name, path in files.items()},
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ("+new" in (temporary / "agent-tui.diff").read_text()) is pull_request
    answer = files["GITHUB_STEP_SUMMARY"].read_text()
    assert answer.strip() and files["GITHUB_OUTPUT"].read_text().startswith("answer<<")
    assert answer.strip() in files["GITHUB_OUTPUT"].read_text()
    assert not (checkout / "pwned").exists()


def changed_checkout(folder: Path) -> tuple[str, Path]:
    """A shallow clone of a repository whose newest commit changes a file, and the commit before."""

    def git(where: Path, *words: str) -> str:
        who = ["-c", "user.name=n", "-c", "user.email=n@example.com"]
        ran = subprocess.run(["git", *who, *words], cwd=where, capture_output=True, text=True, check=True)
        return ran.stdout.strip()

    origin = folder / "origin"
    origin.mkdir()
    git(origin, "init", "-q")
    git(origin, "config", "uploadpack.allowReachableSHA1InWant", "true")
    for text in ("old\n", "new\n"):
        (origin / "file").write_text(text)
        git(origin, "add", "file")
        git(origin, "commit", "-qm", text.strip())
    git(folder, "clone", "-q", "--depth=1", origin.as_uri(), "checkout")
    return git(origin, "rev-parse", "HEAD~1"), folder / "checkout"
