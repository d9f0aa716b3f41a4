"""Makes logical rows of Markdown source. A light renderer: no widgets, no markup of its own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

from agent_tui.text.clean import drawable
from agent_tui.text.code import coloured
from agent_tui.ui.flow.layout import MAX_PROSE, Decoration, Drawn, Flow, Run, shown_line
from agent_tui.ui.markdown.table import Cell, Table, inline

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


def code_runs(code: str, language: str) -> list[list[Run]]:
    """Runs for each line of ``code`` (which has no trailing newline); empty lists where nothing is known."""
    return [[(end, style, None) for end, style in line] for line in coloured(code, language)]


BULLETS = ("•", "◦", "▪")
_TASK = re.compile(r"\[([ xX])\]\s+")


@cache
def parser(blocks_only: bool = False) -> MarkdownIt:
    """The parser; ``blocks_only`` leaves inline text alone, which is all the splitter needs."""
    # Imported when the first text is drawn: the prompt is there 50 ms earlier without it.
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
    box = partial(Flow, first=(*margin, (" ", "code")), fill="code", bare=len(margin), boxed=True)
    if first:
        out.append(box(silent=True, right=f"{language} · copy" if language else "copy"))
        if copy is not None:
            out[0].right_action = ("copy", copy)
    lines = [shown_line(line) for line in drawable(code).split("\n")]
    for line, runs in zip(lines, code_runs("\n".join(lines), language), strict=True):
        out.append(box(line, runs, wrap="char", wide=True))
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
        begin = self.at
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token.type == close:
                self.at += 1
                return
            if self.at > begin and not tight:
                self.out.append(Flow(first=self.rest))
            self.at += 1
            self._block(token)

    def _block(self, token: Token) -> None:
        match token.type:
            case "paragraph_open" | "heading_open":
                text, runs = inline(self.tokens[self.at])
                self.at += 2
                self._row(text, runs, token.tag if token.type == "heading_open" else "")
            case "bullet_list_open" | "ordered_list_open":
                self._list(token)
            case "blockquote_open":
                self._quote()
            case "fence" | "code_block":
                code = token.content.removesuffix("\n")
                first, rest = self._prefix()
                if first != rest:
                    self.out.append(Flow(first=first, lead=self._lead()))
                self.out += code_flows(code, language_of(token.info), rest, copy=[code])
            case "hr":
                self.out.append(Drawn(lambda room: "─" * min(room, MAX_PROSE), self._prefix()[0]))
            case "table_open":
                self._table()
            case "html_block":
                for line in drawable(token.content.rstrip("\n")).split("\n"):
                    self._row(shown_line(line), [], "muted")
            case _:
                self._row(drawable(token.content), [], "muted")

    def _prefix(self) -> tuple[Decoration, Decoration]:
        first, self.first = self.first, self.rest
        return first, self.rest

    def _lead(self) -> str:
        lead, self.lead = self.lead, ""
        return lead

    def _row(self, text: str = "", runs: Sequence[Run] = (), style: str = "") -> None:
        first, rest = self._prefix()
        self.out.append(Flow(text, runs, base=f"{self.base} {style}", first=first, rest=rest, lead=self._lead()))

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
                self.out.append(Flow(first=outer_rest))
            mark = BULLETS[min(self.depth, 3) - 1] if number is None else f"{number}{item.markup or '.'}"
            lead = "- " if number is None else f"{mark} "
            task = self._task()
            if task is not None:
                mark, lead = ("☑", "- [x] ") if task else ("☐", "- [ ] ")
            self.first = (*(outer_rest if begun else outer_first), (f"{mark} ", "bullet"))
            self.rest = (*outer_rest, (" " * (len(mark) + 1), ""))
            self.lead = "  " * (self.depth - 1) + lead
            begun = True
            self._nested("list_item_close", tight=self._is_tight())
            if number is not None:
                number += 1
        self.at += 1
        self.depth -= 1
        self.first = self.rest = outer_rest

    def _nested(self, close: str, tight: bool) -> None:
        """Adds the blocks up to ``close``, at least a row."""
        count = len(self.out)
        self._blocks(close, tight)
        if len(self.out) == count:
            self._row()

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
        self._nested("blockquote_close", tight=False)
        self.first = self.rest = rest
        self.base = base

    def _table(self) -> None:
        header: list[Cell] = []
        aligns: list[str] = []
        rows: list[list[Cell]] = []
        while (token := self.tokens[self.at]).type != "table_close":
            self.at += 1
            if token.type in ("th_open", "td_open"):
                (rows[-1] if rows else header).append(inline(self.tokens[self.at]))
                if token.type == "th_open":
                    aligns.append(str(token.attrs.get("style", "")).removeprefix("text-align:"))
            elif token.type == "tr_open" and header:
                rows.append([])
        self.at += 1
        self.out += Table(header, rows, aligns).flows(*self._prefix())
