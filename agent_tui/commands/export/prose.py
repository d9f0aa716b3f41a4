"""Markdown and code of others as HTML in which nothing runs, loads or breaks out of its place."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from agent_tui.text.clean import clean
from agent_tui.text.code import coloured
from agent_tui.text.diff import Spans, spans_apart
from agent_tui.urls import page_address

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

LEVELS = 2
"""The headings of a text are below those of the page: its title and who speaks."""
LOWEST = 6
MOST_MARKDOWN = 50_000
"""Characters of one text that are read as Markdown; longer ones are shown as they are."""
MOST_COLOURED = 1_000_000
"""Characters of code in one page that are coloured: it takes most of the time."""
_SCHEME = re.compile(r"[^/?#]*:")
_LANGUAGE = re.compile(r"[\w+#.-]{0,20}")
_TASK = re.compile(r"\[([ xX])\][ \t]+")


Runs: TypeAlias = Sequence[tuple[int, str]]
"""Where the parts of a line end, and their styles."""


def escape(text: str) -> str:
    return html.escape(text)


def verbatim(text: str, kind: str = "") -> str:
    """A text as it is, every line and blank of it."""
    return f"<pre{f' class={kind}' if kind else ''}>{escape(text)}</pre>"


class Prose:
    """Writes the texts of one page."""

    def __init__(self) -> None:
        self._left = MOST_COLOURED

    def markdown(self, text: str) -> str:
        """HTML of a Markdown text."""
        if len(text) > MOST_MARKDOWN:
            return f'<div class="said">{escape(text)}</div>'
        made: str = parser().render(text, {"page": self})
        return made

    def code(self, text: str, language: str) -> str:
        """A block of code in colours."""
        lines = "\n".join(map(painted, text.split("\n"), self.runs(text, language)))
        name = f'<span class="language">{escape(language)}</span>' if language else ""
        return f'<div class="code">{name}<pre><code>{lines}</code></pre></div>\n'

    def runs(self, text: str, language: str) -> list[list[tuple[int, str]]]:
        """The colours of a code, line by line, as long as there is not too much of it."""
        if len(text) > self._left:
            language = ""
        self._left -= len(text) if language else 0
        return coloured(text, language)


def painted(line: str, runs: Runs, marked: Spans = ()) -> str:
    """A line in its colours, with some of it marked."""
    out, at = "", 0
    for end, style in (*runs, (len(line), "")):
        words = "".join(
            f"<mark>{escape(line[start:stop])}</mark>" if apart else escape(line[start:stop])
            for start, stop, apart in _between(marked, at, end)
        )
        out += f'<span class="{style.replace("_", "-")}">{words}</span>' if style and words else words
        at = end
    return out


def _between(marked: Spans, at: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """Yields a piece of a line in its parts: from, to, and whether that is marked."""
    inside = [(max(start, at), min(stop, end)) for start, stop in marked if start < end and stop > at]
    for start, stop, apart in spans_apart(tuple((start - at, stop - at) for start, stop in inside), end - at):
        yield at + start, at + stop, apart


@cache
def parser(*, linkify: bool = True) -> MarkdownIt:
    """The reader of Markdown for people: raw HTML in it is text, and so is a link that would run something."""
    from markdown_it import MarkdownIt

    made = MarkdownIt("commonmark", {"html": False, "linkify": linkify})
    made.enable(["table", "strikethrough", "linkify"])
    made.validateLink = _leads_somewhere  # type: ignore[method-assign, assignment]
    # ``README.md`` is a file here, not a place in Moldova.
    assert made.linkify is not None
    made.linkify.set({"fuzzy_link": False, "fuzzy_email": False, "fuzzy_ip": False})
    for name, rule in (
        *(("fence", _fence), ("code_block", _fence), ("image", _image), ("text", _text), ("list_item_open", _item)),
        *(("link_open", _link_open), ("link_close", _link_close)),
        *(("heading_open", _heading), ("heading_close", _heading)),
        *(("table_open", _table_open), ("table_close", _table_close), ("th_open", _cell), ("td_open", _cell)),
    ):
        made.add_render_rule(name, rule)
    return made


Tokens = Sequence["Token"]


def _leads_somewhere(target: str) -> bool:
    """Returns whether a link may stay one: to a page, mail, or a place in the project or the text."""
    return bool(page_address(target)) or _SCHEME.match(target) is None


def language_of(info: str) -> str:
    """The language that the head of a block of code names; empty where it is none."""
    word = re.split(r"[\s,{:]", info.strip(), maxsplit=1)[0]
    return word if _LANGUAGE.fullmatch(word) else ""


def _fence(renderer: Any, tokens: Tokens, at: int, options: Any, env: dict[str, Any]) -> str:
    language = language_of(tokens[at].info)
    page: Prose = env["page"]
    return page.code(tokens[at].content.removesuffix("\n"), language)


def _link_open(renderer: Any, tokens: Tokens, at: int, options: Any, env: dict[str, Any]) -> str:
    begin, env["link"] = _link(str(tokens[at].attrs.get("href", "")))
    return begin


def _link_close(renderer: Any, tokens: Tokens, at: int, options: Any, env: dict[str, Any]) -> str:
    # There are no links in links.
    return str(env.pop("link"))


def _link(target: str) -> tuple[str, str]:
    """The beginning and end of a link. A path in the project leads nowhere where the page is read."""
    if page := page_address(target):
        return f'<a href="{escape(page)}" rel="noopener noreferrer nofollow">', "</a>"
    return f'<span title="{escape(target)}">', "</span>"


def _image(renderer: Any, tokens: Tokens, at: int, options: Any, env: dict[str, Any]) -> str:
    """A picture from elsewhere is not loaded: its words stand for it, and lead to it."""
    words = f"[{escape(tokens[at].content or 'picture')}]"
    if "link" in env:
        return words
    begin, end = _link(str(tokens[at].attrs.get("src", "")))
    return f"{begin}{words}{end}"


def _text(renderer: Any, tokens: Tokens, at: int, options: Any, env: dict[str, Any]) -> str:
    text = clean(tokens[at].content)  # entities may stand for anything
    if env.pop("item", False) and (box := _TASK.match(text)):
        return f"{'☐' if box[1] == ' ' else '☑'} {escape(text[box.end() :])}"
    return escape(text)


def _item(renderer: Any, tokens: Tokens, at: int, options: Any, env: dict[str, Any]) -> str:
    # The text that follows is its first.
    env["item"] = at + 2 < len(tokens) and tokens[at + 2].type == "inline"
    return "<li>"


def _heading(renderer: Any, tokens: Tokens, at: int, options: Any, env: dict[str, Any]) -> str:
    level = min(LOWEST, int(tokens[at].tag[1:]) + LEVELS)
    return f"<h{level}>" if tokens[at].nesting > 0 else f"</h{level}>\n"


def _table_open(renderer: Any, tokens: Tokens, at: int, options: Any, env: dict[str, Any]) -> str:
    return '<div class="wide"><table>\n'


def _table_close(renderer: Any, tokens: Tokens, at: int, options: Any, env: dict[str, Any]) -> str:
    return "</table></div>\n"


def _cell(renderer: Any, tokens: Tokens, at: int, options: Any, env: dict[str, Any]) -> str:
    # Its ``style`` attribute is not allowed by the page's policy.
    aligned = str(tokens[at].attrs.get("style", "")).rpartition(":")[2]
    return f'<{tokens[at].tag} class="{aligned}">' if aligned in ("right", "center") else f"<{tokens[at].tag}>"
