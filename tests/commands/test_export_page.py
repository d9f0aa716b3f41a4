"""The exported page holds everything people read of a session, and nothing in it runs, loads or breaks out."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from agent_tui.commands.export import FORMATS, render
from agent_tui.commands.export.page import MOST_PICTURE
from agent_tui.commands.export.prose import MOST_MARKDOWN, Prose
from agent_tui.commands.export.readable import MOST_OUTPUT
from agent_tui.errors import StoreError
from agent_tui.models.messages import AttachmentPart, Message, Part, SearchPart, TextPart, ToolResultPart
from agent_tui.models.session import SessionInfo
from agent_tui.store.content import SessionContent
from tests.commands.export_session import KEY, PIXEL, example_session, harmless
from tests.support.browser import browser_program, browsing
from tests.support.every import every

pytestmark = pytest.mark.quick

BROWSER = browser_program() or ""
VOID = {"meta", "br", "hr", "img", "path", "rect"}
TAGS = {
    *[
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "header",
        "main",
        "footer",
        "article",
        "section",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "p",
        "br",
        "hr",
        "div",
        "span",
    ],
    *[
        "b",
        "i",
        "em",
        "strong",
        "s",
        "code",
        "pre",
        "blockquote",
        "ul",
        "ol",
        "li",
        "dl",
        "dt",
        "dd",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "a",
        "img",
        "mark",
        "time",
    ],
    *["details", "summary", "figure", "figcaption", "svg", "g", "path", "rect"],
}
ATTRIBUTES = {
    *[
        "class",
        "id",
        "href",
        "rel",
        "title",
        "alt",
        "src",
        "dir",
        "lang",
        "open",
        "start",
        "charset",
        "name",
        "content",
        "http-equiv",
        "datetime",
    ],
    *["role", "aria-label", "viewbox", "preserveaspectratio", "x", "y", "width", "height", "d"],
}


class Page(HTMLParser):
    """A page as a browser reads it. Fails at whatever is not allowed in it, or closed in the wrong place."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, str]] = []
        """Each text with the tags around it."""
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        assert tag in TAGS and found.keys() <= ATTRIBUTES, (tag, found)
        assert re.match(r"(https?://|mailto:|#p\d+$)", found.get("href", "#p1")), found
        assert found.get("src", "data:image/").startswith("data:image/"), found
        self.seen.append((tag, found))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((" ".join(self.open), data))

    def text(self, tag: str = "body") -> str:
        """All that stands somewhere in such a tag."""
        return "".join(data for path, data in self.texts if tag in path.split())

    def count(self, tag: str, **wanted: str) -> int:
        return sum(name == tag and wanted.items() <= found.items() for name, found in self.seen)


def page_of(*messages: Message) -> str:
    by_id = {message.id: message for message in messages}
    return render(SessionInfo("s", "/p", created=1.0, head_id=messages[-1].id), SessionContent(by_id), "html")


def said(*parts: Part) -> str:
    return page_of(Message("m", "assistant", list(parts)))


def test_the_page_shows_what_was_said_and_done() -> None:
    source = render(*example_session(), "html")
    page, text = Page(source), Page(source).text()
    harmless(source)
    assert page.text("h1") == "Fix the greeting"
    assert "$0.06" in page.text("dl") and "273k in (50.0 % from the cache), 600 out" in page.text("dl")
    assert page.text("h2").count("Assistant") == 2 and "dropped from the context" in page.text("h2")
    assert page.text("h3") == "Done"
    assert page.text("mark") == "worldthere"
    assert "return 'hello " in page.text("table") and page.count("tr", **{"class": "removed"}) == 1
    assert "bash" in page.text("summary") and "2 errors" in page.text("pre")
    assert "Pasted 20 lines" in page.text("summary") and "On branch main" in page.text("pre")
    assert "Compacted 90k → 12k ± 0.4k" in page.text("summary")
    assert "Rewound to here 2 messages left behind, beginning with “Not like this”" in text
    assert "The server closed the connection." in text
    assert [found["src"] for tag, found in page.seen if tag == "img"] == [f"data:image/png;base64,{PIXEL}"]
    for kept_out in ("the program told this", "left behind by a rewind", KEY, "c2ln", "call_1", "/home/ann"):
        assert kept_out not in source


def test_the_timeline_is_drawn_with_its_limit_and_cliffs() -> None:
    source = render(*example_session(), "html")
    page = Page(source)
    assert "The context rose from 10k to 90k over 5 steps, compacted once, and is 20k now." in page.text("figcaption")
    assert page.count("g") == 6 and page.count("g", **{"class": "left"}) == 1
    assert page.count("rect") == 12 and page.count("path", **{"class": "limit"}) == 1
    assert page.count("path", **{"class": "mark"}) == 1
    assert "Step 5 · 12k tokens · 50 % from the cache · $0.01 · compacted 90k → 12k" in page.text("svg")
    assert "System prompt" in page.text("ul") and "Limit 75k" in page.text("ul")
    assert "<figure" not in page_of(Message("m", "user", [TextPart("hi")]))


def test_the_policy_allows_this_style_and_pictures_in_the_page_alone() -> None:
    source = render(*example_session(), "html")
    style = re.search(r"<style>(.*?)</style>", source, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    policy = next(found["content"] for _, found in Page(source).seen if found.get("http-equiv"))
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    assert "url(" not in style[1] and "@import" not in style[1]


@every(
    "text",
    [
        "</div></article><script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1)) [x](JAVASCRIPT:x) [x](java&#115;cript:x) [x](data:text/html,x) [x](file:///etc/passwd)",
        '[x](https://e.org/"><script>) [x](https://e.org "\\"><script>") <https://e.org/"onclick="x>',
        "![<script>](https://e.org/x.png) ![x](data:image/png;base64,xx) [![x](https://e.org/x.png)](https://e.org)",
        '```"><script>\n</code></pre><script>\n```',
        "```python\n'</span></code><script>'\n```",
        '| <script> | b |\n|:-:|-:|\n| </td></table> | " |',
        "<!-- --> <![CDATA[ ]]> <?php ?> &lt;script&gt; &#60;script&#62;",
        "[a]: javascript:alert(1)\n\n[a] [a][] [b][a]",
        "- [ ] <b>\n- [x] </li>\n" + "> " * 60 + "deep",
    ],
)
def test_no_markdown_breaks_out(text: str) -> None:
    hostile = ToolResultPart(
        "c", text, text, display={"kind": "diff", "text": f"@@ -1 +1 @@\n-{text}\n+{text}x", "path": text}
    )
    parts: list[Part] = [
        TextPart(text),
        hostile,
        AttachmentPart(text, text, text=text),
        AttachmentPart(text, text, data=text),
    ]
    info, content = SessionInfo(text, text, text, text, 1.0, head_id="u"), SessionContent()
    content.messages = {
        "m": Message("m", "assistant", parts, note=text),
        "u": Message("u", "user", parts, parent_id="m"),
    }
    Page(render(info, content, "html"))


def test_what_is_huge_is_cut_and_said_to_be() -> None:
    large, many = "A" * (MOST_PICTURE + 4), AttachmentPart("x.svg", "image/svg+xml", data="PHN2Zz4=")
    page = Page(said(AttachmentPart("x.png", "image/png", data=large), many, ToolResultPart("c", "bash", "x" * 50_000)))
    assert page.count("img") == 0 and page.text("p").count("not shown here") == 2
    assert page.text("pre") == "x" * MOST_OUTPUT
    assert "… 10,000 more characters; the JSON export has them" in page.text("p")
    assert "**" in Page(said(TextPart("**a** " * (MOST_MARKDOWN // 6 + 1)))).text("div")


def test_a_diff_is_coloured_as_the_file_that_it_is_of() -> None:
    text = '@@ -1,4 +1,4 @@\n """Two\n-lines of old words\n+lines of new words\n """\n def f(): pass\n'
    source = said(ToolResultPart("c", "edit", "ok", display={"kind": "diff", "text": text, "path": "a/b.py"}))
    assert '<td>2</td><td>+</td><td><span class="tok-string">lines of <mark>new</mark> words</span></td>' in source
    assert '<span class="tok-keyword">def</span>' in source
    assert Page(source).count("details", open="", **{"class": "tool"}) == 1


def test_links_lead_to_the_web_alone() -> None:
    made = Prose().markdown("https://e.org/a [b](https://e.org/b) [c](src/c.py) README.md ![d](https://e.org/d.png)")
    page = Page(made)
    assert [found["href"] for tag, found in page.seen if tag == "a"] == [
        f"https://e.org/{name}" for name in ("a", "b", "d.png")
    ]
    assert {found["rel"] for tag, found in page.seen if tag == "a"} == {"noopener noreferrer nofollow"}


def test_a_copy_does_not_name_what_was_paid_before(tmp_path: Path) -> None:
    info, content = example_session()
    copy = replace(info, parent_session="ses_0", created=content.steps[4].created)
    assert "$0.02" in Page(render(copy, content, "html")).text("dl")


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(StoreError, match=", ".join(FORMATS)):
        render(*example_session(), "pdf")


@pytest.mark.skipif(not BROWSER, reason="no browser here")
async def test_a_browser_shows_it_and_asks_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(render(*example_session(), "html"), "utf-8")
    async with browsing(BROWSER, tmp_path) as tab:
        await tab.size(390, 800)
        await tab.open((tmp_path / "page.html").as_uri())
        assert await tab.value("document.documentElement.scrollWidth") <= 390
        assert await tab.value("getComputedStyle(document.querySelector('.user')).borderLeftWidth") == "3px"
        assert [address for address in tab.requested if not address.startswith(("file:", "data:"))] == []
        assert tab.wrong == []


def test_a_search_at_the_provider_is_a_call_with_its_sources_and_nothing_encrypted() -> None:
    call = SearchPart({"id": "s", "query": "who\x1b[31m won", "item": {"encrypted": "secret"}})
    evil = "<img src=x onerror=alert(1)>"
    found = SearchPart({"id": "s", "sources": [[evil, "https://a.example/"]], "item": {"encrypted_content": "secret"}})
    message = Message("m", "assistant", [call, found, TextPart("They won.")])
    info, content = SessionInfo("s", "/p", created=1.0, head_id="m"), SessionContent({"m": message})
    for form in ("html", "md"):
        text = render(info, content, form)
        harmless(text)
        assert "web_search" in text and "1 source" in text and "https://a.example/" in text
        assert "secret" not in text and evil not in re.sub(r"^```[\s\S]*?^```", "", text, flags=re.MULTILINE)
