"""Commands, environments and specifications larger than one argument of a process may be."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.config import SandboxConfig
from agent_tui.errors import ToolError
from agent_tui.tools.base import ToolContext
from agent_tui.tools.builtin.bash import BashTool
from agent_tui.tools.children.jobs import Jobs
from agent_tui.tools.rules.denied import DeniedFiles
from agent_tui.tools.sandbox.box import Sandbox
from agent_tui.tools.sandbox.jail import Jail
from agent_tui.tools.sandbox.policy import Domain
from tests.support.tool_context import make_context

SIZE = 1_000_000


@pytest.fixture
def base() -> Iterator[Path]:
    base = Path("/var/tmp") / f"agent-tui-test-{uuid.uuid4().hex[:8]}"
    (base / "project").mkdir(parents=True)
    yield base.resolve()
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
def context(sandbox_or_none: Sandbox, base: Path) -> ToolContext:
    jail = Jail(SandboxConfig(), base / "project", base / "cache", sandbox=sandbox_or_none)
    return replace(make_context(base / "project"), jail=jail, jobs=Jobs())


HEREDOC = f"cat > made <<'END'\n{'é$x' * (SIZE // 4)}\nEND\nwc -c made; echo \"$0\" | head -c 100; exit 3"


@pytest.mark.forms(1)
@pytest.mark.parametrize("domain", ["work", "free"])
async def test_a_heredoc_of_a_megabyte_is_run(context: ToolContext, domain: Domain) -> None:
    outcome = await BashTool().run({"command": HEREDOC}, replace(context, domain=domain))
    assert (context.root / "made").read_text() == f"{'é$x' * (SIZE // 4)}\n"
    assert f"{SIZE + 1} made" in outcome.text and outcome.text.endswith("[exit code 3]")


async def test_one_that_only_looks_is_run(context: ToolContext) -> None:
    command = f"wc -c <<'END'\n{'x' * SIZE}\nEND"
    outcome = await BashTool().run({"command": command}, replace(context, domain="look", first_look=True))
    assert outcome.text == str(SIZE + 1)


@pytest.mark.forms(1)
async def test_in_the_background_and_as_the_users_own(context: ToolContext) -> None:
    context = replace(context, domain="work")
    await BashTool().run({"command": HEREDOC, "background": True}, context)
    assert context.jobs is not None
    (job,) = context.jobs.all()
    assert await job.ended(20)
    assert f"{SIZE + 1} made" in job.look()
    outcome = await BashTool(own=True).run({"command": HEREDOC}, context)
    assert f"{SIZE + 1} made" in outcome.text


async def test_an_environment_that_is_too_large_is_said(context: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAKE_LARGE", "x" * 200_000)
    with pytest.raises(ToolError, match=r"the environment is too large \(\d+ KiB, most of it MAKE_LARGE \(195 KiB\)"):
        await BashTool().run({"command": "true"}, replace(context, domain="work"))


@pytest.mark.slow
async def test_hundreds_of_masks_are_laid_on(sandbox: Sandbox, base: Path) -> None:
    for number in range(300):
        folder = base / "project" / f"a-rather-long-name-{uuid.uuid4().hex}-{number}"
        folder.mkdir()
        (folder / ".env").write_text("TOKEN")
        (folder / "plain").write_text("plain\n")
    jail = Jail(SandboxConfig(), base / "project", base / "cache", sandbox=sandbox)
    finder = DeniedFiles(base / "project", lambda: ["**/.env"], lambda path: path.name == ".env")
    jail.denied = finder.find
    context = replace(make_context(base / "project"), jail=jail, domain="look")
    outcome = await BashTool().run({"command": "cat */.env 2>/dev/null; cat */plain | wc -l"}, context)
    assert outcome.text.splitlines()[0] == "300"
