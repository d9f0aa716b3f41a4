"""Small languages given on a command line: sed and awk programs that only print, jq filters that read nothing else."""

from __future__ import annotations

import re

_REGEX = r"/(?:[^/\\\n]|\\.)*/I?"
_ADDRESS = rf"(?:\d+(?:~\d+)?|\$|{_REGEX})"
_RANGE = rf"(?:{_ADDRESS}(?:\s*,\s*(?:{_ADDRESS}|[+~]\d+))?\s*!?\s*)?"


def _substitution() -> str:
    """``s`` with any usual delimiter and flags that neither write nor run."""
    forms = (rf"s{d}(?:[^{d}\\\n]|\\.)*{d}(?:[^{d}\\\n]|\\.|\\\n)*{d}[gpiIMm0-9]*" for d in map(re.escape, "/|#,@!"))
    return "|".join(forms)


_SED = re.compile(rf"\s*{_RANGE}(?:[pdqDPgGhHxnN=l]|q\d+|{_substitution()})?\s*", re.DOTALL)


def sed_only_edits(script: str) -> bool:
    """Whether a sed script prints, deletes and replaces lines and does nothing else (no ``w``, ``r``, ``e``)."""
    at = 0
    while True:
        match = _SED.match(script, at)
        if match is None:
            return False
        at = match.end()
        if at == len(script):
            return True
        if script[at] not in ";\n":
            return False
        at += 1


_AWK_REACHES = re.compile(r"system|getline|@|(?<!\|)\|(?!\|)|ARGV|ARGC|ENVIRON|PROCINFO|SYMTAB|FUNCTAB|close|fflush")
_AWK_WRITES = re.compile(r"print.*>(?!=)", re.DOTALL)


def awk_only_prints(program: str) -> bool:
    """Whether an awk program starts nothing and opens no files but its operands. Strict: the words alone count."""
    return not _AWK_REACHES.search(program) and not _AWK_WRITES.search(program) and "\\" not in _names(program)


def _names(program: str) -> str:
    """The program without its strings and patterns, where a backslash is ordinary."""
    return re.sub(r'"(?:[^"\\\n]|\\.)*"|/(?:[^/\\\n]|\\.)*/', "", program)


_JQ_READS = re.compile(r"\b(?:import|include|env|input_filename|getpath_file|\$__prog_args|modulemeta|ENV)\b|__prog")


def jq_only_filters(text: str) -> bool:
    return not _JQ_READS.search(text)
