"""A Markdown export, read by any renderer, shows what was said: each text once, none of it as HTML, a picture that
loads or a link that runs something; and it is one document."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from agent_tui.commands.export import render
from agent_tui.commands.export.markdown_text import code_span, escaped, fenced, rewritten, verbatim
from agent_tui.commands.export.prose import MOST_MARKDOWN, Prose
from agent_tui.models.messages import (
    OWN_OUTPUT,
    AttachmentPart,
    Message,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from agent_tui.store.content import SessionContent
from agent_tui.text.clean import clean
from tests.commands.export_session import example_session, harmless
from tests.support.every import every

SAYS = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
"""What a text says by itself, where HTML in it is text."""
SHOWS = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
"""A renderer that does all that a document asks for."""
PIECES = (
    *("`", "``", "```", "~~~", "`a` `b` `c`", "`` x`y ``", "`\ta  b`", "`|`"),
    *("a", "b c", "é", "漢字", "\u200d", "\u00a0", "\t", "    ", "  ", "  \n", "\n", "\n\n", "\\\n"),
    *("*", "**", "_", "__", "~~", "\\", "|", "!", "$", "#", ":--", "---", "===", "# ", "> ", "- ", "+ ", "1. ", "2) "),
    *(
        "[x](y)",
        "[r]",
        "<b>",
        "</details>",
        "<!--",
        "-->",
        "[x](javascript:alert(1))",
        "<javascript:x>",
        "<http://x.y>",
    ),
    *(
        "http://a.b/c_d_e*f",
        "&amp;",
        "&lt;",
        "&#32;",
        "&#27;",
        "$x_1$",
        "\\(y\\)",
        "snake_case",
        "C:\\x",
        "'",
        '"',
        "]",
    ),
    *("| a | b |\n|---|---|\n| `x\\|y` | z |\n", "```py\nx = 1\n```\n", "    code\n", "- [x] done\n", "@", "(", ")"),
)


class Page(HTMLParser):
    """What is seen of a page: its text, and the tags that make something of it."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text, self.tags = "", list[str]()
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        target = dict(attrs).get("href") or ""
        assert not re.match(r"\s*(?:javascript|data|file|vbscript):", target, re.IGNORECASE)

    def handle_data(self, data: str) -> None:
        self.text += data


def seen(text: str) -> str:
    return " ".join(text.split())


def hostile(count: int) -> list[str]:
    draw = random.Random(37)
    return [clean("".join(draw.choices(PIECES, k=draw.randint(1, 9)))).strip("\n") for _ in range(count)]


@pytest.mark.slow
def test_markdown_of_others_says_the_same_in_the_document() -> None:
    for text in hostile(1_000):
        page = Page(SHOWS.render(rewritten(text)))
        assert seen(page.text) == seen(Page(SAYS.render(text)).text), text
        assert not {"b", "img", "script", "details"}.intersection(page.tags), text


def test_the_page_says_the_same() -> None:
    for text in hostile(300):
        # Long addresses, boxes and the languages of code have words of the page's.
        if not re.search(r"http|\[x\]|```|~~~", text):
            assert seen(clean(Page(Prose().markdown(text)).text)) == seen(clean(Page(SAYS.render(text)).text)), text


@pytest.mark.slow
def test_plain_text_is_shown_sign_by_sign() -> None:
    for text in hostile(1_000):
        page = Page(SHOWS.render(verbatim(text)).replace("<br />\n", "\n").replace("</p>\n<p>", "\n\n"))
        assert page.text.rstrip("\n") == text.rstrip("\n"), text
        assert set(page.tags) <= {"p", "pre", "code"}, text


@pytest.mark.forms(1)
@pytest.mark.parametrize("write", [escaped, code_span, fenced])
def test_a_line_and_a_block_are_shown_sign_by_sign(write: Callable[[str], str]) -> None:
    for text in hostile(500):
        line = text if write is fenced else text.replace("\n", " ").strip()
        if line:
            edge = "" if write is fenced else "."
            page = Page(SHOWS.render(f"{edge}{write(line)}{edge}"))
            assert page.text.rstrip("\n") == f"{edge}{line}{edge}".rstrip("\n"), text


@pytest.mark.slow
@every("sign", ["`a` ", "`", "*a ", "[", "![", "<", "|a", "&", "\\", "_a_ ", "~~"])
def test_a_huge_text_is_written_about_as_fast_as_it_is_read(sign: str) -> None:
    text, begun = sign * (MOST_MARKDOWN // 5 // len(sign)), time.process_time()
    says, read = seen(Page(SAYS.render(text)).text), time.process_time()
    written, done = rewritten(text), time.process_time()
    assert seen(Page(SHOWS.render(written)).text) == says
    assert done - read < 10 * (read - begun) + 0.5


@pytest.mark.quick
def test_what_stands_too_deep_is_not_left_out() -> None:
    assert "the end" in Page(SHOWS.render(rewritten("> " * 50 + "the end"))).text


@pytest.mark.quick
@every(
    ("text", "written"),
    [
        ("use `a`, `b` and `c`", "use `a`, `b` and `c`"),
        ("# One\n\nTwo\nlines\n---\nend", "### One\n\n#### Two lines\n\nend"),
        ("> # Quoted\n\n- # In a list", "> ### Quoted\n\n- ### In a list"),
        (
            "```sh\n# a comment\n```\n\n    # code\n\n#hashtag",
            "```sh\n# a comment\n```\n\n```\n# code\n```\n\n#hashtag",
        ),
        ("````\n<b>", "```\n<b>\n```"),
        ("1. a\n2. b\n   - [ ] c\n   - [x] d", "1. a\n2. b\n   - [ ] c\n   - [x] d"),
        ("a `Vec<T>` **b** > c & d_e", "a `Vec<T>` **b** > c & d_e"),
        ("![p](http://e.example/x.png)", "[\\[p\\]](<http://e.example/x.png>)"),
        ("see [x](docs/a.md) and <http://e.example>", "see [x](<docs/a.md>) and <http://e.example>"),
        ("[x](vscript:a)\n[y]: data:b", "\\[x\\](vscript:a)\n\\[y\\]: data:b"),
    ],
)
def test_what_markdown_is_written_as(text: str, written: str) -> None:
    assert rewritten(text) == written


@pytest.mark.quick
def test_a_thought_that_nobody_can_read_is_left_out() -> None:
    info, content = example_session()
    hidden = ReasoningPart(" ", {"encrypted": "x"})
    content.messages["done"].parts.insert(0, hidden)
    assert render(info, content, "md") == render(*example_session(), "md")


@pytest.mark.quick
def test_a_session_reads_as_one_document_without_bookkeeping() -> None:
    text = render(*example_session(), "md")
    outside = re.sub(r"^(```+)[^\n]*\n.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert re.findall(r"^#.*", outside, re.MULTILINE) == [
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
    assert "> **Compacted 90k → 12k ± 0.4k**" in text
    assert "> **Rewound to here** 2 messages left behind, beginning with “Not like this”" in text
    assert "*The server closed the connection.*" in text
    assert "The context rose from 10k to 90k over 5 steps, compacted once, and is 20k now." in text
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    assert rows[0] == ["Step", "Context", "", "Of the limit", "From the cache", "Cost"]
    assert rows[6] == ["5", "12k", "███", "16 %", "50 %", "$0.01", "compacted 90k → 12k"] and len(rows) == 8
    for kept_out in ("the program told this", "left behind by a rewind", "sk-ant", "c2ln", "call_1", "ses_1"):
        assert kept_out not in text
    harmless(text)


COMMAND = "!cat <<'END'\n  two  blanks\nEND"
LONG = f"echo {'word ' * 60}the end"


@pytest.mark.quick
@pytest.mark.parametrize("form", ["md", "html"])
def test_words_of_the_user_and_commands_are_whole(form: str) -> None:
    info, _ = example_session()
    info.title, info.head_id = "C #", "failed"
    output = AttachmentPart(OWN_OUTPUT, "text/plain", text="`ok`")
    said = [
        Message("a", "user", [TextPart("**no** `a` `b`  \nx")], "complete", None, 1.0),
        Message("b", "user", [TextPart(COMMAND), output], "complete", "a", 2.0),
        Message("c", "assistant", [ToolCallPart("1", "bash", f'{{"command": "{LONG}"}}')], "complete", "b", 3.0),
        Message("failed", "tool", [ToolResultPart("1", "bash", "no", True)], "complete", "c", 4.0),
    ]
    text = render(info, SessionContent({message.id: message for message in said}, {}, [], [], "failed"), form)
    page = Page(text if form == "html" else SHOWS.render(text)).text
    for whole in ("C #", "**no** `a` `b`  \nx", COMMAND, "`ok`", LONG):
        assert page.count(whole) == 1 or whole == "C #", whole
