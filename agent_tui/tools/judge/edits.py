"""Tells which commands do no more than edit the files they name: they are edits, where those were allowed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from agent_tui.tools.files.beneath import has_other_names, is_read_only
from agent_tui.tools.judge.subject import Subject
from agent_tui.tools.judge.words import Word
from agent_tui.tools.rules.standing import Standing

_PLACE = r"(?:\d+|\$|/(?:\\.|[^/\\\n])*/)"
_CHANGE = r"s([/|#,:@!])(?:\\.|(?!\1)[^\\\n])*\1(?:\\.|(?!\1)[^\\\n])*\1"
_SED = re.compile(rf"\s*(?:{_PLACE}(?:,{_PLACE})?\s*!?\s*)?(?:{_CHANGE}[gpiIM0-9]*|[dp])\s*(?:;|\n|$)")
"""One command of sed that starts no program and writes no other file, as ``e``, ``w`` and ``r`` do."""
_SED_TEXT = re.compile(rf"\s*(?:{_PLACE}(?:,{_PLACE})?\s*)?[aic]\s?[^\n]*")
_PERL = re.compile(rf"\s*{_CHANGE}[gims0-9]*\s*;?\s*")
_PERL_CODE = re.compile(r"@|\(\?\??\{|\$(?![\d)|/#,:!]|$)")
"""What may run code within a pattern of Perl, or in what is put in its place."""


def edits_for_session(subject: Subject) -> bool:
    """Returns whether a program does nothing but edit files that the user let be edited until the session ends. Raises
    NotUnderstoodError."""
    command, words = subject.command, subject.command.words
    if not words or command.assignments or subject.started.given or any(word.dynamic for word in words):
        return False
    files = _edited(subject.words[0], words[1:])
    if not files or any(word.glob and word.text[:1] in "*?[" for word in files):
        return False  # it may become an option
    paths = [path for word in files for path in subject.paths("edit", word)]
    return bool(paths) and all(is_session_edit(subject.standing, path) for path in paths)


def is_session_edit(standing: Standing, path: Path) -> bool:
    """Returns whether the user let a file be edited until the session ends, and a held command may do so."""
    rules = standing.rules
    if standing.mode != "ask" or not standing.holds("work") or not rules.for_session_path("edit", path):
        return False
    if standing.protected(path) or rules.for_path("ask", "edit", "edit", path):
        return False
    return not is_read_only(path) and not has_other_names(path)


def _edited(name: str, arguments: Sequence[Word]) -> Sequence[Word]:
    """The files that a known editor of files is given; none where it may do more."""
    if name == "tee":
        plain = all(word.text in ("-a", "--append") for word in arguments if word.text.startswith("-"))
        return [word for word in arguments if not word.text.startswith("-")] if plain else ()
    if name not in ("sed", "perl"):
        return ()
    flags, code = (r"-[Ernsz]*i?", "-e") if name == "sed" else (r"-[0pn]*i?|-[0pn]+e|-i", "-e")
    scripts: list[str] = []
    files: list[Word] = []
    in_place = False
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        text = word.text
        ends = text == code or (name == "perl" and re.fullmatch(r"-[0pn]+e", text))
        if ends and rest:
            scripts.append(rest.pop(0).text)
        elif text == "--in-place" or re.fullmatch(flags, text):
            in_place = in_place or text == "--in-place" or text.endswith("i")
        elif text.startswith("-"):
            return ()
        elif name == "sed" and not scripts:
            scripts.append(text)
        else:
            files.append(word)
    harmless = _is_sed if name == "sed" else _is_perl
    return files if in_place and scripts and all(map(harmless, scripts)) else ()


def _is_sed(script: str) -> bool:
    if _SED_TEXT.fullmatch(script):
        return True
    at = 0
    while at < len(script):
        found = _SED.match(script, at)
        if found is None or found.end() == at:
            return False
        at = found.end()
    return bool(script.strip())


def _is_perl(script: str) -> bool:
    return _PERL.fullmatch(script) is not None and _PERL_CODE.search(script) is None
