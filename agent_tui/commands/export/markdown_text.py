"""Texts of others as parts of a Markdown document: whatever they hold, a renderer shows what was said, once, and none
of it becomes HTML, a picture that loads, or a link that runs something."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agent_tui.commands.export.prose import LEVELS, LOWEST, MOST_MARKDOWN, language_of, parser
from agent_tui.text.clean import clean

if TYPE_CHECKING:
    from markdown_it.token import Token

_TICKS = re.compile("`+")
_SIGNS = re.compile(r"\\(?=[!-/:-@\[-`{-~\s]|$)|[`*\[\]|]|(?<!/)~(?!/)|!$|(?<![^\W_])_|_(?![^\W_])")
"""Signs that may mean something wherever they stand. An underscore within a word means nothing; an exclamation mark at
the end would make a picture of the link that follows."""
_ENTITY = re.compile(r"&(?=#?\w+;)")
_BEGINS = re.compile(r"(?=#{1,6}(?:\s|$)|[-+](?:\s|$)|>|[-=:+][-=:\s]*$)|(?<=\d)(?=[.)](?:\s|$))")
"""Where a sign makes something of the line that it begins; of a number it is the one behind it."""
_NUMBER = re.compile(r"\d{1,9}")
_LAYOUT = re.compile(r"^[^\S\n]|[^\S\n]$|\n{3,}", re.MULTILINE)
"""What Markdown does not keep of a text: indents, blanks at the ends of lines, several empty lines."""
_CLOSING = re.compile(r"#+$")
_OPENING, _ENDING = {"em_open", "strong_open", "s_open"}, {"em_close", "strong_close", "s_close"}


def escaped(text: str) -> str:
    """A text that no sign in it makes anything of, to stand within a line."""
    text = _SIGNS.sub(r"\\\g<0>", clean(text))
    return _ENTITY.sub("&amp;", text).replace("<", "&lt;").replace("\n", "&#10;")


def heading(level: int, words: str) -> str:
    """A heading of words that are escaped already."""
    words = _begun(_CLOSING.sub(r"\\\g<0>", words))
    return f"{'#' * level} {words}".rstrip()


def code_span(text: str) -> str:
    """A line of code within a text."""
    pad = " " if text[:1] == "`" or text[-1:] == "`" or (text[:1] == text[-1:] == " " and text.strip()) else ""
    fence = _fence(text, 1)
    return f"{fence}{pad}{text}{pad}{fence}" if text else ""


def fenced(text: str, language: str = "") -> str:
    """A block of code, with a fence longer than all that it holds."""
    fence = _fence(text, 3)
    return f"{fence}{language}\n{text.removesuffix(chr(10))}\n{fence}"


def _fence(text: str, least: int) -> str:
    return "`" * max(least, 1 + max(map(len, _TICKS.findall(text)), default=0))


def verbatim(text: str) -> str:
    """What was written as plain text: every line and sign of it. Where Markdown would not keep how it is laid out, it
    stands in a block."""
    if not text.strip() or _LAYOUT.search(text):
        return fenced(text)
    lines = (_begun(escaped(line).replace("$", "\\$")) for line in text.split("\n"))
    return re.sub(r"(?<=[^\n])\n(?=[^\n])", "\\\\\n", "\n".join(lines))


def rewritten(text: str) -> str:
    """Markdown of others as a part of this document: what it makes of itself, written anew, its headings below ours."""
    if len(text) > MOST_MARKDOWN:
        return verbatim(text)
    tokens = parser(linkify=False).parse(text)
    return verbatim(text) if _too_deep(tokens) else "\n\n".join(_Blocks(tokens).until(""))


def _too_deep(tokens: Sequence[Token]) -> bool:
    """Returns whether the parser may have left something out because it stands in too many lists or quotes."""
    return any(token.level >= parser(linkify=False).options.maxNesting - 1 for token in tokens)


class _Blocks:
    """Writes block tokens, one after the other."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = iter(tokens)
        self._tight = False
        """The item that was written last has no empty lines between its blocks."""

    def until(self, closing: str) -> Iterator[str]:
        """Yields the blocks up to the token of that type."""
        tight = False
        for token in self._tokens:
            match token.type:
                case "paragraph_open":
                    tight = tight or token.hidden
                    yield _paragraph(self._inline())
                case "heading_open":
                    level = min(LOWEST, int(token.tag[1:]) + LEVELS)
                    yield heading(level, _inline(self._inline(), one_line=True))
                case "fence":
                    yield fenced(token.content, language_of(token.info))
                case "code_block":
                    yield fenced(token.content)
                case "hr":
                    yield "___"
                case "blockquote_open":
                    yield _indented("\n\n".join(self.until("blockquote_close")), "> ", "> ")
                case "bullet_list_open":
                    yield self._list(None)
                case "ordered_list_open":
                    yield self._list(int(token.attrs.get("start", 1)))
                case "table_open":
                    yield self._table()
                case kind if kind == closing:
                    break
        self._tight = tight

    def _inline(self) -> Sequence[Token]:
        return next(self._tokens).children or ()

    def _list(self, number: int | None) -> str:
        items: list[str] = []
        tight = False
        for token in self._tokens:
            if token.type != "list_item_open":
                break
            blocks = list(self.until("list_item_close"))
            tight = tight or self._tight
            sign = f"{token.markup} " if number is None else f"{number + len(items)}{token.markup} "
            text = ("\n" if self._tight else "\n\n").join(blocks)
            items.append(_indented(_task(text), sign, " " * len(sign)).rstrip())
        return ("\n" if tight else "\n\n").join(items)

    def _table(self) -> str:
        rows: list[list[str]] = []
        signs: list[str] = []
        for token in self._tokens:
            if token.type == "table_close":
                break
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "th_open":
                signs.append(_ALIGNED.get(str(token.attrs.get("style", "")).rpartition(":")[2], "---"))
            elif token.type == "inline":
                rows[-1].append(_begun(_inline(token.children or (), one_line=True, cell=True)))
        return "\n".join(f"| {' | '.join(cells)} |" for cells in (rows[0], signs, *rows[1:]))


_ALIGNED = {"left": ":--", "right": "--:", "center": ":-:"}


def _indented(text: str, first: str, rest: str) -> str:
    lines = [f"{rest}{line}".rstrip() if not line else f"{rest}{line}" for line in text.split("\n")]
    return first + "\n".join(lines)[len(rest) :] if text else first


def _task(text: str) -> str:
    """The box that begins an item of a list stays one."""
    return re.sub(r"^\\\[([ xX])\\\](?=\s)", r"[\1]", text)


def _paragraph(tokens: Sequence[Token]) -> str:
    return "\n".join(_begun(line) for line in _inline(tokens).split("\n"))


def _begun(line: str) -> str:
    """A line whose first sign makes nothing of it, with the blanks at its ends."""
    first, words, last = _in_three(line)
    number = _NUMBER.match(words)
    if (sign := _BEGINS.match(words, number.end() if number else 0)) is not None:
        words = f"{words[: sign.start()]}\\{words[sign.start() :]}"
    return f"{_blanks(first)}{words}{_blanks(last)}"


def _in_three(text: str) -> tuple[str, str, str]:
    """Returns the blanks that a text begins with, its words, and the blanks at its end."""
    words = text.lstrip()
    end = words.rstrip()
    return text[: len(text) - len(words)], end, words[len(end) :]


def _apart(blanks: str, marked: bool) -> str:
    """Blanks at an end of a text, whether or not a mark stands there."""
    return _blanks(blanks) if marked or blanks.strip(" ") else blanks


def _blanks(text: str) -> str:
    return "".join(f"&#{ord(sign)};" for sign in text)


def _inline(tokens: Sequence[Token], *, one_line: bool = False, cell: bool = False) -> str:
    """Tokens within a paragraph, or within a single line. In a ``cell`` a bar is escaped in code as well."""
    out: list[str] = []
    link, left = "", enumerate(tokens)
    kinds = ["", *(token.type for token in tokens), ""]
    for at, token in left:
        match token.type:
            case "text":
                # What begins or ends with a blank is not emphasised, unless that is written as an entity.
                first, text, last = _in_three(escaped(token.content))
                out += [_apart(first, kinds[at] in _OPENING), text, _apart(last, kinds[at + 2] in _ENDING)]
            case "code_inline":
                code = code_span(clean(token.content))
                out.append(code.replace("|", "\\|") if cell else code)
            case "softbreak":
                out.append(" " if one_line else "\n")
            case "hardbreak":
                out.append(" " if one_line else "\\\n")
            case "link_open" if token.markup == "autolink":
                target, shown = str(token.attrs.get("href", "")), next(left)[1].content
                next(left)
                out.append(f"<{target if ':' in shown else target.removeprefix('mailto:')}>")
            case "link_open":
                link = _destination(token.attrs.get("href"))
                out.append("[")
            case "link_close":
                out.append(f"]({link})")
                link = ""
            case "image":
                # A picture from elsewhere is not loaded: its words stand for it, and lead to it.
                words = f"\\[{escaped(token.content or 'picture')}\\]"
                out.append(words if link else f"[{words}]({_destination(token.attrs.get('src'))})")
            case kind if kind in _OPENING or kind in _ENDING:
                out.append(token.markup)
    return "".join(out)


def _destination(target: object) -> str:
    return f"<{_ENTITY.sub('&amp;', str(target or ''))}>"
