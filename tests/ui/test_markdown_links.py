"""Links in the transcript: what a click opens is what stands there."""

from __future__ import annotations

from markdown_it import MarkdownIt

from agent_tui.ui.markdown.table import inline
from tests.support.every import every


def drawn(text: str) -> tuple[str, set[str]]:
    """The text as it is shown, and the addresses that clicks on it open."""
    (token,) = [t for t in MarkdownIt("commonmark").parse(text) if t.type == "inline"]
    shown, runs = inline(token)
    return shown, {link for _, _, link in runs if link is not None}


@every(
    ("text", "shown", "opened"),
    [
        ("[there](https://x.org/a)", "there", {"https://x.org/a"}),
        ("[x.org](https://www.x.org/a)", "x.org", {"https://www.x.org/a"}),
        ("[README.md](https://x.org/README.md)", "README.md", {"https://x.org/README.md"}),
        ("[good.com](https://evil.test/)", "good.com (https://evil.test/)", {"https://evil.test/"}),
        ("[https://good.com](https://evil.test)", "https://good.com (https://evil.test)", {"https://evil.test"}),
        ("[good.com](mailto:a@evil.test)", "good.com (mailto:a@evil.test)", {"mailto:a@evil.test"}),
        ("[x](https://good.com@evil.test/)", "x (https://good.com@evil.test/)", set()),
        ("[x](javascript:alert(1))", "[x](javascript:alert(1))", set()),
        ("[x](vbs:a)", "x (vbs:a)", set()),
        ("see https://x.org/a.", "see https://x.org/a.", {"https://x.org/a"}),
        ("http://2130706433/", "http://2130706433/ (http://127.0.0.1/)", {"http://127.0.0.1/"}),
        ("https://аррӏе.com", "https://аррӏе.com (https://xn--80ak6aa92e.com)", {"https://xn--80ak6aa92e.com"}),
        ("https://good.com@evil.test/", "https://good.com@evil.test/", set()),
        ("https://x.org/\u202egpj.exe", "https://x.org/\ufffdgpj.exe", {"https://x.org/\ufffdgpj.exe"}),
    ],
)
def test_what_a_click_opens_is_what_stands_there(text: str, shown: str, opened: set[str]) -> None:
    assert drawn(text) == (shown, opened)
