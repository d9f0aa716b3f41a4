"""Notebooks are changed by their cells, as they are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.errors import ToolError
from agent_tui.tools.base import ToolContext
from agent_tui.tools.builtin.edit import ApplyPatchTool, EditTool
from agent_tui.tools.builtin.read import ReadTool
from agent_tui.tools.files.notebook import Cells
from tests.support.tool_context import make_context

pytestmark = pytest.mark.quick

OUTPUT = {"output_type": "stream", "name": "stdout", "text": ["1\n"]}
CELLS: list[dict[str, Any]] = [
    {"cell_type": "markdown", "id": "a1", "metadata": {"tags": ["t"]}, "source": ["# Title\n", "é"]},
    {"cell_type": "code", "execution_count": 3, "id": "b2", "metadata": {}, "outputs": [OUTPUT], "source": ["x = 1"]},
    {
        "cell_type": "code",
        "execution_count": 4,
        "id": "c3",
        "metadata": {},
        "outputs": [OUTPUT],
        "source": "print(x)\n",
    },
]
NOTEBOOK = {"cells": CELLS, "metadata": {"kernelspec": {"name": "python3"}}, "nbformat": 4, "nbformat_minor": 5}
TEXT = json.dumps(NOTEBOOK, indent=1, ensure_ascii=False) + "\n"


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return make_context(tmp_path / "project")


async def edited(context: ToolContext, *edits: tuple[str, str], text: str = TEXT) -> dict[str, Any]:
    path = context.root / "a.ipynb"
    path.write_text(text)
    arguments = {"path": "a.ipynb", "edits": [{"old_string": old, "new_string": new} for old, new in edits]}
    await ReadTool().run({"path": "a.ipynb"}, context)
    asked = EditTool().intent(arguments, context).display
    display = (await EditTool().run(arguments, context)).display
    assert asked == display, "what is asked about is what happens"
    assert display and '"cells"' not in display["text"], "people see cells, not JSON"
    found: dict[str, Any] = json.loads(path.read_text())
    return found


async def test_a_changed_cell_loses_its_output_and_all_else_stays(context: ToolContext) -> None:
    found = await edited(context, ("x = 1", "x = 2\ny = 3"))
    changed = {**CELLS[1], "source": ["x = 2\n", "y = 3"], "outputs": [], "execution_count": None}
    assert found == {**NOTEBOOK, "cells": [CELLS[0], changed, CELLS[2]]}
    lines = (context.root / "a.ipynb").read_text().split("\n")
    assert sum(line not in TEXT.split("\n") for line in lines) <= 5, "the file is written as it was"


async def test_cells_come_go_move_and_change_their_kind(context: ToolContext) -> None:
    heads = "[cell 2, code, run [3]]\nx = 1", "[cell 3, code, run [4]]"
    found = await edited(context, (heads[0], "[cell new, code]\nimport os"), (heads[1], "[cell 3, raw]"))
    first, new, raw = found["cells"]
    assert first == CELLS[0] and len(new.pop("id")) == 8
    assert new == {"cell_type": "code", "metadata": {}, "source": ["import os"], "outputs": [], "execution_count": None}
    assert raw == {"cell_type": "raw", "id": "c3", "metadata": {}, "source": ["print(x)\n"]}
    old = json.dumps({**NOTEBOOK, "nbformat_minor": 4})
    assert "id" not in (await edited(context, ("x = 1", "x = 1\n\n[cell new, code]\n1"), text=old))["cells"][2]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("[cell 1, markdown]\n", "", "first line must be the head"),
        ("[cell 2, code, run [3]]", "[cell 1, code]", "stands there twice"),
        ("[cell 2, code, run [3]]", "[cell 9, code]", "none of its 3"),
        ("[cell 2, code, run [3]]", "[cell 0, code]", "none of its 3"),
        ('"source"', "", "is not in"),
    ],
)
async def test_what_would_lose_a_cell_changes_nothing(context: ToolContext, old: str, new: str, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        await edited(context, (old, new))
    assert (context.root / "a.ipynb").read_text() == TEXT


@pytest.mark.parametrize("source", ["a\n[cell 2, code]\nb", "[cell new, raw]"])
async def test_cells_that_look_like_two_are_not_guessed_at(context: ToolContext, source: str) -> None:
    text = json.dumps({**NOTEBOOK, "cells": [{"cell_type": "code", "source": source, "outputs": []}]})
    with pytest.raises(ToolError, match="looks like the head"):
        await edited(context, ("a", "b"), text=text)


async def test_a_broken_notebook_is_mended_as_text(context: ToolContext) -> None:
    (context.root / "a.ipynb").write_text('{"cells": [}')
    await EditTool().run({"path": "a.ipynb", "edits": [{"old_string": "[}", "new_string": "[]}"}]}, context)
    assert json.loads((context.root / "a.ipynb").read_text()) == {"cells": []}


async def test_a_patch_changes_cells_too(context: ToolContext) -> None:
    (context.root / "a.ipynb").write_text(TEXT)
    patch = "*** Begin Patch\n*** Update File: a.ipynb\n@@\n-x = 1\n+x = 5\n*** End Patch\n"
    outcome = await ApplyPatchTool().run({"input": patch}, context)
    first, second, third = json.loads((context.root / "a.ipynb").read_text())["cells"]
    assert (first, second["source"], third) == (CELLS[0], ["x = 5"], CELLS[2])
    assert outcome.display and "+x = 5" in outcome.display["text"]


@given(st.lists(st.tuples(st.sampled_from(["code", "markdown", "raw"]), st.text(st.sampled_from("a\n []")))))
def test_a_text_that_is_not_changed_gives_the_same_cells(told: list[tuple[str, str]]) -> None:
    cells = [{"cell_type": kind, "source": source, "outputs": [1]} for kind, source in told]
    text = json.dumps({"cells": cells, "nbformat": 4})
    found = Cells.of(Path("a.ipynb"), text)
    assert found is not None and json.loads(found.saved(found.text)) == json.loads(text)
    assert json.loads(found.saved(found.text + "\n"))["cells"][:-1] == cells[:-1]
