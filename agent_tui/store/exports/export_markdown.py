"""Foreign Markdown made harmless: no raw HTML, and no link that runs anything, wherever the page is rendered.

Renderers disagree about where code ends. So ``<`` is left alone only where every one of them sees code: in a fence at
the first column, and in a code span that is plainly one on its line. Elsewhere it becomes ``&lt;``, which at worst
looks odd.
"""

from __future__ import annotations

import html
import re

from agent_tui.text.clean import printable

SCHEMES = frozenset({"http", "https", "mailto"})
"""Of links; those without a scheme are fine, too."""

_FENCE = re.compile(r"(`{3,})[^`\n]*$|(~{3,})")
_RUN = re.compile("`+")
_DESTINATION = re.compile(r"(\]\s*[(:]\s*(?:&lt;)?\s*)([^\s)]+)")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


def defused(text: str) -> str:
    """Markdown of others, with raw HTML escaped and links to anything but web pages and mail marked as unsafe."""
    done: list[str] = []
    paragraph: list[str] = []
    fence = ""

    def end_paragraph() -> None:
        if paragraph:
            done.append(_paragraph(paragraph))
            paragraph.clear()

    for line in text.split("\n"):
        if fence:
            done.append(line)
            # A closing fence is at least as long, of the same sign, with nothing behind it.
            if line.startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif (match := _FENCE.match(line)) is not None:
            end_paragraph()
            # What stands behind the signs is not code.
            signs = match[1] or match[2]
            done.append(signs + line[len(signs) :].replace("<", "&lt;"))
            fence = signs
        elif not line.strip():
            end_paragraph()
            done.append(line)
        else:
            paragraph.append(line)
    end_paragraph()
    return "\n".join(done) + (f"\n{fence}" if fence else "")


def _paragraph(lines: list[str]) -> str:
    whole = "\n".join(lines)
    within_all = _spans(whole)
    pieces: list[str] = []
    at = 0
    for line in lines:
        plain = "|" not in line and "\\" not in line
        spans = [s for s in _spans(line) if plain and (s[0] + at, s[1] + at) in within_all]
        end = 0
        for start, stop in spans:
            pieces += [line[end:start].replace("<", "&lt;"), line[start:stop]]
            end = stop
        pieces += [line[end:].replace("<", "&lt;"), "\n"]
        at += len(line) + 1
    return _DESTINATION.sub(_safe_link, "".join(pieces[:-1]))


def _spans(text: str) -> set[tuple[int, int]]:
    """Where code spans begin and end: a run of backticks to the next one of the same length."""
    runs = [(m.start(), m.end()) for m in _RUN.finditer(text)]
    found: set[tuple[int, int]] = set()
    i = 0
    while i < len(runs):
        size = runs[i][1] - runs[i][0]
        close = next((j for j in range(i + 1, len(runs)) if runs[j][1] - runs[j][0] == size), None)
        if close is None:
            i += 1
        else:
            found.add((runs[i][0], runs[close][1]))
            i = close + 1
    return found


def _safe_link(match: re.Match[str]) -> str:
    target = _ESCAPED.sub(r"\1", html.unescape(html.unescape(match[2])))
    target = "".join(printable(target).split()).lstrip("<")
    scheme = _SCHEME.match(target)
    if scheme is None or scheme[1].lower() in SCHEMES:
        return match[0]
    return f"{match[1]}unsafe:{match[2]}"
