"""HTML to Markdown with the standard library's parser.

A page is read by a model here, not shown to a person: headings, lists, links, code and tables as lines of text are
enough, and a converter of this size is cheaper than a dependency with a parser of its own. It runs in a child process:
a page can be made so that the parser takes the square of its length.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from urllib.parse import urljoin

from agent_tui.errors import ToolError
from agent_tui.pipes.start import isolated, run
from agent_tui.text.charsets import decoded_page
from agent_tui.text.clean import pictured_line
from agent_tui.tools.word_sets import word_set

SECONDS = 60
MEMORY = 1_500_000_000
"""Bytes of memory a conversion gets: a page of 5 MB takes a fifth of it."""

_LOOKED_AT = 8_192
_LONGEST_TYPE = 1_000
_BINARY = 3

# Not "head" and not "form": their end tags are often missing, or the whole page is one form.
_SILENT = word_set("script style noscript template svg iframe nav footer")
_BLOCKS = word_set(
    "address article aside blockquote dd details div dl dt figcaption figure header main p section summary table "
    "tbody thead ul ol tr"
)
_MARKS = {**dict.fromkeys(("code", "tt", "kbd"), "`"), "strong": "**", "b": "**", "em": "*", "i": "*"}
_VOID = word_set("area base br col embed hr img input link meta source track wbr")


def read_page(body: bytes, base: str, content_type: str) -> str:
    """The text of a page, one of HTML as Markdown, read in a process of its own, of bounded time and memory. Blocks.
    Raises ToolError."""
    from agent_tui.tools.sandbox.environment import child_env

    try:
        done = run(
            isolated(__name__, base, content_type[:_LONGEST_TYPE], str(SECONDS), bare=True),
            child_env(os.environ),
            input=body,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
        )
        done.check_returncode()
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        if getattr(error, "returncode", 0) == _BINARY:
            kind = pictured_line(content_type[:_LONGEST_TYPE]) or "no type given"
            raise ToolError(f"{base} is binary ({kind}); it cannot be shown as text.") from None
        raise ToolError(f"{base}: the page is too complex: reading its text took longer than {SECONDS} s.") from None
    return done.stdout.decode("utf-8", "replace")


def main(base: str, content_type: str, seconds: str) -> int:
    """Writes the text of the page that comes in from the address ``base``; returns how it ended."""
    import contextlib
    import resource

    for what, limit in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CPU, int(seconds))):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(what, (limit, limit))
    text = decoded_page(sys.stdin.buffer.read(), content_type)
    if "\0" in text[:_LOOKED_AT]:
        return _BINARY
    if content_type.partition(";")[0].strip().lower() in ("text/html", "application/xhtml+xml"):
        text = to_markdown(text, base)
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    return 0


def to_markdown(html: str, base: str) -> str:
    """The page's text as Markdown, links made absolute against ``base``; scripts, styles and navigation left out."""
    parser = _Converter(base)
    parser.feed(html)
    parser.close()
    return parser.text()


class _Converter(HTMLParser):
    def __init__(self, base: str) -> None:
        super().__init__(convert_charrefs=True)
        self._base = base
        self._out: list[str] = []
        self._silent: list[str] = []
        self._lists: list[int | None] = []
        self._links: list[tuple[str, int]] = []
        self._pre = 0
        self._title = ""
        self._in_title = False

    def text(self) -> str:
        body = re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]+\n", "\n", "".join(self._out))).strip()
        title = " ".join(self._title.split())
        return f"# {title}\n\n{body}" if title and not body.startswith("# ") else body

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._in_title = True
        if tag in _SILENT or self._silent:
            if tag not in _VOID and ((self._silent and tag == self._silent[-1]) or not self._silent):
                self._silent.append(tag)
            return
        values = dict(attrs)
        if tag in _BLOCKS:
            self._out.append("\n\n" if tag in ("p", "blockquote", "table", "section", "article") else "\n")
        if len(tag) == 2 and tag[0] == "h" and tag[1] in "123456":
            self._out.append("\n\n" + "#" * int(tag[1]) + " ")
        elif tag == "br":
            self._out.append("\n")
        elif tag == "hr":
            self._out.append("\n\n---\n\n")
        elif tag == "pre":
            self._pre += 1
            self._out.append("\n\n```\n")
        elif tag in _MARKS:
            self._mark(tag)
        elif tag in ("ul", "ol"):
            self._lists.append(0 if tag == "ol" else None)
        elif tag == "li":
            self._item()
        elif tag in ("td", "th"):
            self._out.append(" | ")
        elif tag == "a":
            self._links.append((values.get("href") or "", len(self._out)))
        elif tag == "img" and values.get("alt"):
            self._out.append(f"[image: {values['alt']}]")

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        if self._silent:
            if tag == self._silent[-1]:
                self._silent.pop()
            return
        if tag in _BLOCKS or (len(tag) == 2 and tag[0] == "h"):
            self._out.append("\n\n" if tag in ("p", "blockquote", "table") or tag[0] == "h" else "\n")
        if tag == "pre" and self._pre:
            self._pre -= 1
            self._out.append("\n```\n\n")
        elif tag in _MARKS:
            self._mark(tag)
        elif tag in ("ul", "ol") and self._lists:
            self._lists.pop()
        elif tag == "a" and self._links:
            self._link(*self._links.pop())

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self._title += data
        if self._silent or self._in_title:
            return
        if self._pre:
            self._out.append(data)
            return
        text = re.sub(r"\s+", " ", data)
        if text == " " and (not self._out or self._out[-1].endswith((" ", "\n"))):
            return
        if self._out and self._out[-1].endswith("\n"):
            text = text.lstrip()
        self._out.append(text)

    def _mark(self, tag: str) -> None:
        if _MARKS[tag] != "`" or not self._pre:
            self._out.append(_MARKS[tag])

    def _item(self) -> None:
        mark = "- "
        if self._lists and (number := self._lists[-1]) is not None:
            self._lists[-1] = number + 1
            mark = f"{number + 1}. "
        self._out.append("\n" + "  " * max(0, len(self._lists) - 1) + mark)

    def _link(self, href: str, start: int) -> None:
        label = "".join(self._out[start:]).strip()
        try:
            target = urljoin(self._base, href.strip())
        except ValueError:
            return
        if label and target.startswith(("http://", "https://")) and not href.startswith("#"):
            self._out[start:] = [f"[{label}]({target})"]
