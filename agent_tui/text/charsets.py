"""The encodings of web pages, from a list: a server names one, and Python's own list of names holds others that are no
encodings of text, run long, or read one text as another. Of the standard library alone: a child reads pages."""

from __future__ import annotations

import re

LOOKED_AT = 2_048
"""Bytes at the beginning of a page in which it may name its encoding."""

_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_CODECS = (
    (r"(?:unicode-1-1-)?utf-?8", "utf-8"),
    (r"(?:iso-?8859-?1|latin-?1|l1|us-ascii|ascii)", "cp1252"),
    (r"iso-?8859-?9|latin5", "cp1254"),
    (r"iso-?8859-?11|tis-620|(?:windows|cp)-?874", "cp874"),
    (r"iso-?8859-?([2-8]|10|1[3-6])(?:-[ei])?", r"iso8859-\1"),
    (r"(?:windows|x-cp|cp)-?(125[0-8]|866)", r"cp\1"),
    (r"koi8-?([ru])", r"koi8-\1"),
    (r"(?:x-)?mac(?:intosh|-roman)", "mac-roman"),
    (r"x-mac-(?:cyrillic|ukrainian)", "mac-cyrillic"),
    (r"gb-?(?:2312(?:-80)?|k|18030)|x-gbk|(?:windows|cp)-?936", "gb18030"),
    (r"(?:cn-|x-x-)?big5(?:-hkscs)?", "big5hkscs"),
    (r"(?:x-)?s(?:hift)?-?jis|ms-kanji|windows-31j|(?:windows|cp)-?932", "cp932"),
    (r"(?:x-)?euc-?jp", "euc_jp"),
    (r"iso-?2022-?jp", "iso2022_jp"),
    (r"euc-?kr|ks-?c-?5601(?:-19(?:87|89))?|(?:windows|cp)-?949", "cp949"),
    (r"utf-?16(?:-?le)?", "utf-16-le"),
    (r"utf-?16-?be", "utf-16-be"),
)
"""By patterns of the names that pages use (encoding.spec.whatwg.org): how Python calls it."""


def codec_of(name: str) -> str | None:
    """What Python calls the encoding that a page names; None for one that pages are not read in."""
    name = name.strip(" \t\"'").lower().replace("_", "-")
    for pattern, codec in _CODECS:
        if (match := re.fullmatch(pattern, name)) is not None:
            return match.expand(codec)
    return None


def decoded_page(body: bytes, content_type: str) -> str:
    """The text of a page: by its mark, by what its header or itself says, else as UTF-8."""
    codec = next((codec for mark, codec in _MARKS if body.startswith(mark)), None)
    for said in (content_type, body[:LOOKED_AT].decode("latin-1")):
        if codec is None and (match := re.search(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", said, re.IGNORECASE)):
            codec = codec_of(match[1])
    return body.decode(codec or "utf-8", "replace").replace("\r\n", "\n")
