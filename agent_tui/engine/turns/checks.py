"""What the user's checks (``[tools] check``) say of files that the model has just changed: it goes with the result."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agent_tui.context.tokens import char_tokens, round_up
from agent_tui.errors import ToolError
from agent_tui.text.clean import cut, pictured_line
from agent_tui.text.numbers import tokens
from agent_tui.tools.base import ToolContext, ToolOutcome
from agent_tui.tools.builtin.bash import BashTool
from agent_tui.tools.files.walk import Glob

SECONDS = 30.0
CHARACTERS = 4_000
"""Of one check's output; the rest is saved."""
LONGEST = 300
"""Characters of a command as it is told: it may name every file of a patch."""


async def checked(outcome: ToolOutcome, paths: Sequence[Path], context: ToolContext) -> ToolOutcome:
    """The outcome of a change with that of its checks, which run as commands of the model do that may write."""
    if outcome.is_error or not context.config.check:
        return outcome
    there = [path for path in paths if path.is_file()]
    lines, failed = [], []
    # An interruption now must not hide from the model that its change was made.
    context.keep(outcome.text)
    held = replace(
        context,
        domain="work",
        first_look=False,
        jobs=None,
        config=replace(context.config, output_limit=CHARACTERS),
        keep=lambda said: context.keep(f"{outcome.text}\n{said}"),
    )
    for command in commands(context.config.check, there, context.root):
        try:
            said = await BashTool().run({"command": command, "timeout": SECONDS}, held)
        except ToolError as error:
            said = ToolOutcome(str(error), is_error=True)
        lines.append(f"[check {cut(pictured_line(command), LONGEST)}: {'failed' if said.is_error else 'passed'}]")
        if said.is_error:
            lines.append(said.text)
            failed.append(command)
    if not lines:
        return outcome
    told = "\n".join(lines)
    price = f"({tokens(round_up(char_tokens(told)), True)} tokens)"
    what = f"check failed {price}: {pictured_line(failed[0])}" if failed else f"check passed {price}"
    text = f"{outcome.text}\n{told}"
    return replace(outcome, text=text, display={**(outcome.display or {}), "check": what})


def commands(check: Mapping[str, str], paths: Sequence[Path], root: Path) -> Iterator[str]:
    """One for each pattern that a file of the project matches; ``{file}`` stands for all that do."""
    named = {path: path.relative_to(root.resolve()).as_posix() for path in paths if path.is_relative_to(root.resolve())}
    for pattern, command in check.items():
        glob = Glob(pattern)
        if files := [str(path) for path, name in named.items() if glob.matches(name)]:
            yield command.replace("{file}", shlex.join(files))
