"""A Markdown export holds no HTML of others and no link that runs anything, and it is one document."""

from __future__ import annotations

import re

import pytest

from agent_tui.commands.export import render
from agent_tui.commands.export.markdown import defused, nested
from tests.support.export_session import example_session, harmless

EVIL = "<img src=x onerror=alert(1)>"


@pytest.mark.parametrize(
    "text",
    [
        EVIL,
        f"text {EVIL}",
        f"    {EVIL}",
        f"\\`{EVIL}\\`",
        f"`open\n`{EVIL}`",
        f"# a `\n{EVIL} `",
        f"| a ` | {EVIL} ` |",
        f"- a\n  ```\n{EVIL}\n  ```",
        f"> ```\n{EVIL}",
        f"```\ncode\n```\n{EVIL}",
        f"```\ncode\n````\n{EVIL}",
        f"```{EVIL}`\n",
        f"~~~\ncode\n~~~\n{EVIL}",
        f"``` a`b\n{EVIL}\n```",
        f"``a` `b` {EVIL}\n\n`` {EVIL}",
        f"<!-- -->{EVIL}",
        f"<javascript:alert(1)>{EVIL}",
    ],
)
def test_html_is_escaped_wherever_it_is_not_plainly_code(text: str) -> None:
    done = defused(text)
    assert EVIL not in outside_fences(done)
    assert done.count("&lt;") >= 1


def outside_fences(text: str) -> str:
    return re.sub(r"^(```+|~~~+)[^\n]*\n.*?^\1[`~]*$", "", text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    "text", ["```html\n<b>x</b>\n```", "a `Vec<T>` b", "``a`<b>``", "~~~\n<b>\n~~~", "plain > text & more", "a\n\nb\n"]
)
def test_code_and_plain_text_stay_as_they_are(text: str) -> None:
    assert defused(text) == text


def test_an_open_fence_is_closed() -> None:
    assert defused("````\n<b>").endswith("\n````")


@pytest.mark.parametrize(
    "target",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "java&#115;cript:alert(1)",
        "javascript&colon;alert(1)",
        "javascript\\:alert(1)",
        "&#x6A;avascript:alert(1)",
        "data:text/html,x",
        "vbscript:x",
        "file:///etc/passwd",
        "<javascript:alert(1)>",
    ],
)
@pytest.mark.parametrize(
    "form", ["[x]({})", "![x]({})", "[x](\n{})", "[x]: {}", "[x][y]\n\n[y]: {}", "[x]( {} 'title')"]
)
def test_links_that_run_something_are_marked(target: str, form: str) -> None:
    assert "unsafe:" in defused(form.format(target))


@pytest.mark.parametrize("target", ["https://example.org/a:b", "http://x", "mailto:a@b", "docs/a.md", "#part", "/a"])
def test_other_links_stay(target: str) -> None:
    assert defused(f"[x]({target}) [y]: {target}") == f"[x]({target}) [y]: {target}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# One\n\n## Two\n###### Six", "### One\n\n#### Two\n###### Six"),
        ("One\n===\n\nTwo\nlines\n---\nend", "### One\n\n#### Two lines\nend"),
        ("> # Quoted\n\n- # In a list", "> ### Quoted\n\n- ### In a list"),
        ("```sh\n# a comment\n```\n\n    # code\n\n#hashtag", "```sh\n# a comment\n```\n\n    # code\n\n#hashtag"),
    ],
)
def test_headings_of_a_text_stand_below_those_of_the_document(text: str, expected: str) -> None:
    assert nested(text) == expected


def test_a_session_reads_as_one_document_without_bookkeeping() -> None:
    text = render(*example_session(), "md")
    assert re.findall(r"^#.*", outside_fences(text), re.MULTILINE) == [
        "# Fix the greeting",
        "## User",
        "## Assistant",
        "### Done",
        "## User",
        "## User",
        "#### Goal",
        "## Assistant (dropped from the context)",
    ]
    assert "<summary>✗ bash make test · 2 errors · 1.4 s</summary>\n\n`````\n2 errors\n````\nin a fence\n`````" in text
    assert "```diff\n@@ -1,2 +1,2 @@" in text
    assert "> **Compacted** 2 messages summarised · 90k → 12k ± 0.4k tokens" in text
    assert "> **Rewound to here** 2 messages left behind, beginning with “Not like this”" in text
    assert "*The server closed the connection.*" in text
    for kept_out in ("the program told this", "left behind by a rewind", "sk-ant", "c2ln", "call_1", "ses_1"):
        assert kept_out not in text
    harmless(text)
