"""Notebooks as cells, PDFs as text."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from agent_tui.errors import ToolError
from agent_tui.tools.base import ToolContext
from agent_tui.tools.builtin.edit import WriteTool
from agent_tui.tools.builtin.read import NOTEBOOK_NOTE, PDF_NOTE, ReadTool
from tests.support.tool_context import make_context

pytestmark = pytest.mark.quick

pypdf = pytest.mark.skipif(importlib.util.find_spec("pypdf") is None, reason="the extra is not installed")


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return make_context(tmp_path / "project")


async def read(context: ToolContext, path: str, **more: object) -> str:
    return (await ReadTool().run({"path": path, **more}, context)).text


def notebook(*cells: dict[str, Any]) -> str:
    return json.dumps({"cells": list(cells), "nbformat": 4, "metadata": {}})


async def test_a_notebook_is_shown_as_its_cells(context: ToolContext) -> None:
    outputs = [
        {"output_type": "stream", "text": ["\x1b[31mone\x1b[0m\n", "two\n"]},
        {"output_type": "display_data", "data": {"image/png": "AAAA", "text/plain": ["<Figure>"]}},
        {"output_type": "error", "traceback": ["Traceback", "ZeroDivisionError"], "ename": "Z", "evalue": "e"},
    ]
    (context.root / "a.ipynb").write_text(
        notebook(
            {"cell_type": "markdown", "source": ["# Title\n", "text"]},
            {"cell_type": "code", "source": "print(1)", "execution_count": 3, "outputs": outputs},
        )
    )
    assert await read(context, "a.ipynb") == (
        "1\t[cell 1, markdown]\n2\t# Title\n3\ttext\n4\t\n5\t[cell 2, code, run [3]]\n6\tprint(1)\n7\t[output]\n"
        "8\tone\n9\ttwo\n10\t[output]\n11\t<Figure>\n12\t[image/png, not shown]\n13\t[output]\n14\tTraceback\n"
        "15\tZeroDivisionError\n"
        f"[{NOTEBOOK_NOTE}]"
    )
    assert (await read(context, "a.ipynb", offset=5, limit=2)).startswith(
        "5\t[cell 2, code, run [3]]\n6\tprint(1)\n[lines"
    )
    await WriteTool().run({"path": "a.ipynb", "content": notebook()}, context)
    assert "no cells" in await read(context, "a.ipynb")


@pytest.mark.parametrize("content", ["", "[]", '{"cells": 3}', '{"cells": [1]}', "[" * 100_000, '{"worksheets": []}'])
async def test_what_is_no_notebook_says_so(context: ToolContext, content: str) -> None:
    (context.root / "a.ipynb").write_text(content)
    with pytest.raises(ToolError, match="not a notebook that can be shown; look at it with bash"):
        await read(context, "a.ipynb")


async def test_long_output_of_a_cell_is_cut(context: ToolContext) -> None:
    outputs = [{"output_type": "stream", "text": "x\n" * 500}]
    (context.root / "a.ipynb").write_text(notebook({"cell_type": "code", "source": "a", "outputs": outputs}))
    text = await read(context, "a.ipynb")
    assert "[… 440 more lines of output]" in text and len(text.split("\n")) < 70


def pdf(*pages: str) -> bytes:
    """A PDF with a line of text on each page, and no table of where its objects are."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = ["<</Type/Catalog/Pages 2 0 R>>", f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>"]
    objects += ["<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET"
        objects.append(
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents {5 + 2 * number} 0 R"
            "/Resources<</Font<</F1 3 0 R>>>>>>"
        )
        objects.append(f"<</Length {len(stream)}>>\nstream\n{stream}\nendstream")
    body, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer<</Size {len(objects) + 1}/Root 1 0 R>>\n"
    return body + f"{end}startxref\n{len(body)}\n%%EOF\n".encode()


@pypdf
async def test_the_text_of_a_pdf_is_shown_by_page(context: ToolContext) -> None:
    (context.root / "a.pdf").write_bytes(pdf("Hello there", "", "Third"))
    text = await read(context, "a.pdf")
    assert text.startswith("1\t[page 1 of 3]\n2\tHello there\n3\t\n4\t[page 2 of 3]\n5\t[no text; perhaps an image]\n")
    assert "\n8\tThird\n" in text and text.endswith(f"[{PDF_NOTE}]")
    assert "8\tThird" in await read(context, "a.pdf", offset=8, limit=1)


@pypdf
async def test_a_broken_pdf_says_what_to_try(context: ToolContext) -> None:
    (context.root / "a.pdf").write_bytes(b"%PDF-1.7\n" + bytes(range(256)) * 20)
    with pytest.raises(ToolError, match="cannot be read; try pdftotext with bash"):
        await read(context, "a.pdf")


async def test_without_the_library_one_line_says_how_to_get_it(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    (context.root / "a.pdf").write_bytes(pdf("Hello"))
    monkeypatch.setattr("agent_tui.tools.builtin.pdf.LIBRARY", "no_such_library")
    with pytest.raises(ToolError, match=r"pdftotext.*pip install 'pypdf>=6'") as error:
        await read(context, "a.pdf")
    assert "\n" not in str(error.value)
