"""Source code in colours: which part of a line is a keyword, a string, a comment. The screen and the exported page
paint the same parts."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

MAX_CODE = 40_000
"""Characters of one piece of code that are coloured; longer ones (a minified file) are shown plain."""


def coloured(code: str, language: str) -> list[list[tuple[int, str]]]:
    """For each line of ``code`` (which has no trailing newline) where its parts end and their styles (``tok_keyword``;
    empty: plain); empty lists where the language is not known. ``language`` is a name such as ``python``."""
    lines = code.count("\n") + 1
    lexer = _lexer(language.lower()) if language and len(code) <= MAX_CODE else None
    if lexer is None:
        return [[] for _ in range(lines)]
    out: list[list[tuple[int, str]]] = [[]]
    at = 0
    for _, kind, text in lexer.get_tokens_unprocessed(code):
        style = _style(kind)
        for k, part in enumerate(text.split("\n")):
            if k:
                out.append([])
                at = 0
            if part:
                at += len(part)
                if out[-1] and out[-1][-1][1] == style:
                    out[-1].pop()
                out[-1].append((at, style))
    return out + [[] for _ in range(lines - len(out))]


_BY_NAME = {"makefile": "make", "dockerfile": "docker", "cmakelists.txt": "cmake", "gemfile": "rb", "rakefile": "rb"}
_BY_ENDING = {
    **dict.fromkeys(("h", "hh"), "c"),
    **dict.fromkeys(("hpp", "cc", "cxx", "hxx"), "cpp"),
    **dict.fromkeys(("mjs", "cjs"), "js"),
    **dict.fromkeys(("mts", "cts"), "ts"),
    **dict.fromkeys(("md", "markdown", "txt", "log", "csv"), ""),
    "kt": "kotlin",
    "kts": "kotlin",
    "ml": "ocaml",
    "fs": "fsharp",
    "htm": "html",
    "gradle": "groovy",
    "r": "splus",
    "m": "objective-c",
    "svelte": "html",
    "lock": "toml",
    "conf": "ini",
    "erl": "erlang",
}
"""Languages where the ending of a file's name is no name of its language."""


def language_of_file(name: str) -> str:
    """The language of a file by its name, for ``coloured``; empty for prose. Nothing is looked up: to go through the
    patterns of all lexers takes a sixth of a second, and a name that no language has colours nothing."""
    name = name.rpartition("/")[2].lower()
    ending = name.rpartition(".")[2] if "." in name else ""
    return _BY_NAME.get(name, _BY_ENDING.get(ending, ending))


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


_STYLES = (
    ("Comment.Preproc", "tok_keyword"),
    ("Comment", "tok_comment"),
    ("Keyword.Type", "tok_type"),
    ("Keyword.Constant", "tok_number"),
    ("Keyword", "tok_keyword"),
    ("Operator.Word", "tok_keyword"),
    ("Literal.Number", "tok_number"),
    ("Literal.String", "tok_string"),
    ("Name.Function", "tok_name"),
    ("Name.Class", "tok_type"),
    ("Name.Builtin", "tok_type"),
    ("Name.Exception", "tok_type"),
    ("Name.Decorator", "tok_name"),
    ("Name.Tag", "tok_keyword"),
    ("Name.Attribute", "tok_name"),
    ("Generic.Inserted", "add"),
    ("Generic.Deleted", "remove"),
    ("Generic.Subheading", "hunk"),
    ("Generic.Heading", "strong"),
    ("Generic.Strong", "strong"),
    ("Generic.Emph", "em"),
    ("Generic.Prompt", "muted"),
)
"""Styles by what Pygments calls a piece of code, or begins to call it; the first that fits."""


@lru_cache(512)
def _style(kind: Any) -> str:
    name = ".".join(kind)
    return next((style for known, style in _STYLES if f"{name}.".startswith(f"{known}.")), "")
