"""Makes logical rows of Markdown source and colours its code. A light renderer: no widgets, no markup of its own."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from agent_tui.text.clean import drawable
from agent_tui.ui.flow.lines import Decoration, Drawn, Flow, Run, blank, cap_line
from agent_tui.ui.markdown.table import Cell, Table, inline

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


MAX_CODE = 40_000
"""Characters of one piece of code that are coloured; longer ones (a minified file) are shown plain."""


def code_runs(code: str, language: str) -> list[list[Run]]:
    """Runs for each line of ``code`` (which has no trailing newline); empty lists where nothing is known."""
    lines = code.count("\n") + 1
    lexer = _lexer(language.lower()) if language and len(code) <= MAX_CODE else None
    if lexer is None:
        return [[] for _ in range(lines)]
    out: list[list[Run]] = [[]]
    at = 0
    for _, kind, text in lexer.get_tokens_unprocessed(code):
        style = _style(kind)
        first = True
        for part in text.split("\n"):
            if not first:
                out.append([])
                at = 0
            first = False
            if part:
                at += len(part)
                runs = out[-1]
                if runs and runs[-1][1] == style:
                    runs.pop()
                runs.append((at, style, None))
    out += [[] for _ in range(lines - len(out))]
    return out


@lru_cache(64)
def _lexer(language: str) -> Any:
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    if language in ("text", "plain", "txt", "output", "none"):
        return None
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


@lru_cache(512)
def _style(kind: Any) -> str:
    from pygments.token import Token

    for parent, style in (
        (Token.Comment.Preproc, "tok_keyword"),
        (Token.Comment, "tok_comment"),
        (Token.Keyword.Type, "tok_type"),
        (Token.Keyword.Constant, "tok_number"),
        (Token.Keyword, "tok_keyword"),
        (Token.Operator.Word, "tok_keyword"),
        (Token.Literal.Number, "tok_number"),
        (Token.Literal.String, "tok_string"),
        (Token.Name.Function, "tok_name"),
        (Token.Name.Class, "tok_type"),
        (Token.Name.Builtin, "tok_type"),
        (Token.Name.Exception, "tok_type"),
        (Token.Name.Decorator, "tok_name"),
        (Token.Name.Tag, "tok_keyword"),
        (Token.Name.Attribute, "tok_name"),
        (Token.Generic.Inserted, "add"),
        (Token.Generic.Deleted, "remove"),
        (Token.Generic.Subheading, "hunk"),
        (Token.Generic.Heading, "strong"),
        (Token.Generic.Strong, "strong"),
        (Token.Generic.Emph, "em"),
        (Token.Generic.Prompt, "muted"),
    ):
        if kind in parent:
            return style
    return ""


BULLETS = ("•", "◦", "▪")
_TASK = re.compile(r"\[([ xX])\]\s+")


@cache
def parser(blocks_only: bool = False) -> MarkdownIt:
    """The parser; ``blocks_only`` leaves inline text alone, which is all the splitter needs.

    Imported when the first text is drawn: the prompt is there 50 ms earlier without it."""

    from markdown_it import MarkdownIt

    made = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    return made.disable("inline") if blocks_only else made


def markdown_flows(
    source: str, margin: Decoration = (), base: str = "", references: str = "", number: int | None = None
) -> list[Flow]:
    """The rows of ``source``. ``references`` is source with link definitions from elsewhere in the text, ``number``
    the number of its first item, where it is part of an ordered list."""
    env: dict[str, object] = {}
    if references:
        parser().parse(references, env)
    tokens = parser().parse(source, env)
    if number is not None and tokens:
        tokens[0].attrs["start"] = number
    return _Walker(tokens, source.split("\n"), margin, base).run()


def code_flows(
    code: str, language: str, margin: Decoration = (), *, first: bool = True, copy: list[str] | None = None
) -> list[Flow]:
    """The rows of a code block; ``first`` has its label, ``copy`` what a click on the label copies."""
    out: list[Flow] = []
    inside: Decoration = (*margin, (" ", "code"))
    bare = len(margin)
    if first:
        action = None if copy is None else ("copy", copy)
        right = f"{language} · copy" if language else "copy"
        out.append(
            Flow(first=inside, fill="code", bare=bare, boxed=True, silent=True, right=right, right_action=action)
        )
    lines = [cap_line(line).expandtabs(4) for line in drawable(code).split("\n")]
    for line, runs in zip(lines, code_runs("\n".join(lines), language), strict=True):
        out.append(Flow(line, runs, first=inside, fill="code", bare=bare, boxed=True, wrap="char", wide=True))
    return out


def language_of(info: str) -> str:
    """The language from a fence's info string, fit for a label."""
    word = re.split(r"[\s,{:]", info.strip(), maxsplit=1)[0]
    return drawable(word)[:20]


class _Walker:
    """Walks block tokens. ``first`` is what the next row begins with, ``rest`` all rows after it."""

    def __init__(self, tokens: list[Token], source: list[str], margin: Decoration, base: str) -> None:
        self.tokens = tokens
        self.source = source
        self.at = 0
        self.out: list[Flow] = []
        self.first = margin
        self.rest = margin
        self.base = base
        self.lead = ""
        self.depth = 0

    def run(self) -> list[Flow]:
        self._blocks("", tight=False)
        return self.out

    def _blocks(self, close: str, tight: bool) -> None:
        begun = False
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token.type == close:
                self.at += 1
                return
            if begun and not tight:
                self.out.append(blank(self.rest))
            begun = True
            self._block(token)

    def _block(self, token: Token) -> None:
        self.at += 1
        kind = token.type
        if kind == "paragraph_open":
            text, runs = self._inline()
            self._row(text, runs)
        elif kind == "heading_open":
            text, runs = self._inline()
            self._row(text, runs, token.tag)
        elif kind in ("bullet_list_open", "ordered_list_open"):
            self._list(token)
        elif kind == "blockquote_open":
            self._quote()
        elif kind in ("fence", "code_block"):
            code = token.content.removesuffix("\n")
            first, rest = self._prefix()
            if first != rest:
                self.out.append(Flow(first=first, lead=self._lead()))
            self.out += code_flows(code, language_of(token.info), rest, copy=[code])
        elif kind == "hr":
            first, _ = self._prefix()
            self.out.append(Drawn(lambda room: "─" * min(room, 120), base="rule", first=first))
        elif kind == "table_open":
            self._table()
        elif kind == "html_block":
            for line in drawable(token.content.rstrip("\n")).split("\n"):
                self._row(cap_line(line).expandtabs(4), [], "muted")
        else:
            self._row(drawable(token.content), [], "muted")

    def _prefix(self) -> tuple[Decoration, Decoration]:
        first, self.first = self.first, self.rest
        return first, self.rest

    def _lead(self) -> str:
        lead, self.lead = self.lead, ""
        return lead

    def _row(self, text: str, runs: list[Run], style: str = "") -> None:
        first, rest = self._prefix()
        base = f"{self.base} {style}" if self.base else style
        self.out.append(Flow(text, runs, base=base, first=first, rest=rest, lead=self._lead()))

    def _inline(self) -> tuple[str, list[Run]]:
        token = self.tokens[self.at]
        self.at += 2
        return inline(token)

    def _list(self, opening: Token) -> None:
        number = int(opening.attrs.get("start", 1)) if opening.type == "ordered_list_open" else None
        close = opening.type.replace("_open", "_close")
        self.depth += 1
        outer_first, outer_rest = self.first, self.rest
        begun = False
        while self.tokens[self.at].type != close:
            item = self.tokens[self.at]
            self.at += 1
            line = item.map[0] if item.map else 0
            if begun and line and not self.source[line - 1].strip(" >\t"):
                self.out.append(blank(outer_rest))
            mark = BULLETS[min(self.depth, 3) - 1] if number is None else f"{number}{item.markup or '.'}"
            lead = "- " if number is None else f"{mark} "
            task = self._task()
            if task is not None:
                mark, lead = ("☑", "- [x] ") if task else ("☐", "- [ ] ")
            self.first = (*(outer_rest if begun else outer_first), (f"{mark} ", "bullet"))
            self.rest = (*outer_rest, (" " * (len(mark) + 1), ""))
            self.lead = "  " * (self.depth - 1) + lead
            begun = True
            count = len(self.out)
            self._blocks("list_item_close", tight=self._is_tight())
            if len(self.out) == count:
                self._row("", [])
            if number is not None:
                number += 1
        self.at += 1
        self.depth -= 1
        self.first = self.rest = outer_rest

    def _task(self) -> bool | None:
        if self.at + 1 >= len(self.tokens) or self.tokens[self.at].type != "paragraph_open":
            return None
        children = self.tokens[self.at + 1].children
        match = _TASK.match(children[0].content) if children and children[0].type == "text" else None
        if match is None or not children:
            return None
        children[0].content = children[0].content[match.end() :]
        return match.group(1) != " "

    def _is_tight(self) -> bool:
        token = self.tokens[self.at]
        return token.hidden or token.type != "paragraph_open"

    def _quote(self) -> None:
        first, rest = self._prefix()
        bar = ("▎ ", "quote_bar")
        base, self.base = self.base, f"{self.base} quote"
        self.first, self.rest = (*first, bar), (*rest, bar)
        count = len(self.out)
        self._blocks("blockquote_close", tight=False)
        if len(self.out) == count:
            self._row("", [])
        self.first = self.rest = rest
        self.base = base

    def _table(self) -> None:
        header: list[Cell] = []
        aligns: list[str] = []
        rows: list[list[Cell]] = []
        while (token := self.tokens[self.at]).type != "table_close":
            self.at += 1
            if token.type in ("th_open", "td_open"):
                cell = inline(self.tokens[self.at])
                if token.type == "th_open":
                    header.append(cell)
                    style = str(token.attrs.get("style", ""))
                    aligns.append(style.removeprefix("text-align:"))
                else:
                    rows[-1].append(cell)
            elif token.type == "tr_open" and header:
                rows.append([])
        self.at += 1
        first, rest = self._prefix()
        self.out += Table(header, rows, aligns).flows(first, rest)
