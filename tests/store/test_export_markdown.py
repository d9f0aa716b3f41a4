"""A Markdown export holds no HTML of others and no link that runs anything."""

from __future__ import annotations

import re

import pytest

from agent_tui.store.export_text import defused

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
