"""Code in colours: Pygments tokens as runs of style names, line by line."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from agent_tui.ui.flow.lines import Run

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
